"""Filters of Spark's queries, taken over by the data source: only where Spark is seen to keep them apart.

Spark 4.3 plans the read of a DataFrame once, and has the filters of one query count in all others of it, whose rows
are then missing. So nothing is pushed unless `leaks` has found that this version does not do so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, Filter

from ..errors import SchemaError
from .source import NumparqDataSource, NumparqReader
from .types import is_collated, is_int96

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from ..predicate import Expression
    from .reader import SparkTable
    from .request import ReadRequest

__all__ = ["PushdownDataSource", "expression_of", "leaks"]

_SETTING = "spark.sql.python.filterPushdown.enabled"
_PROBE_ROWS = 30


class PushdownDataSource(NumparqDataSource):
    """The data source, with the option ``pushdown``."""

    allows_pushdown = True

    def reader(self, schema: StructType) -> DataSourceReader:
        """Give what reads the splits, and takes filters where the option says so."""
        request = self._request()
        if not request.pushdown:
            return super().reader(schema)
        return PushdownReader(self._table_of(schema), request, schema)


class PushdownReader(NumparqReader):
    """Leaves out rows that do not satisfy the filters of a query; Spark applies them again.

    Parameters
    ----------
    table : SparkTable
        The table without filters of a query.
    request : ReadRequest
        What was asked for.
    schema : StructType
        The columns that Spark expects.
    """

    def __init__(self, table: SparkTable, request: ReadRequest, schema: StructType) -> None:
        super().__init__(table)
        self._request = request
        self._schema = schema

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Plan with the filters that are understood; give all of them back, for Spark to apply."""
        reader = self._batches.reader
        names = {name: is_int96(reader.schema, name) for name in reader.names}
        known = [made for each in filters if (made := expression_of(each, self._schema, names)) is not None]
        if known and not self._takes(known) and len(known) > 1:
            for each in known:
                self._takes([each])
        return filters

    def _takes(self, known: Iterable[Expression]) -> bool:
        """Plan anew with more filters; False where a stored type is not compared with a literal of theirs."""
        from .reader import SparkTable

        request = replace(self._request, filters=_both(self._request, known))
        try:
            table = SparkTable.of(request, self._schema)
        except SchemaError:
            return False
        self._request, self._splits, self._batches = request, table.splits, table.batches
        return True


def _both(request: ReadRequest, more: Iterable[Expression]) -> Expression:
    from ..predicate import as_expression
    from ..predicate.normal import all_of
    from ..predicate.text import parse_for
    from .request import file_schema

    given = request.filters
    if given is None:
        return all_of(list(more))
    if isinstance(given, str):
        given = parse_for(given, lambda: file_schema(request))
    return all_of([as_expression(given), *more])


# --- filters as expressions -------------------------------------------------------------------------------------------

# Types whose values are compared by numparq as by Spark; to Spark, NaN is equal to itself, and the largest number.
_COMPARED = {"BooleanType", "ByteType", "ShortType", "IntegerType", "LongType", "DecimalType", "StringType",
             "BinaryType", "DateType", "TimestampType", "TimestampNTZType"}  # fmt: skip
_MADE: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": lambda column, value: column == value,
    "GreaterThan": lambda column, value: column > value,
    "GreaterThanOrEqual": lambda column, value: column >= value,
    "LessThan": lambda column, value: column < value,
    "LessThanOrEqual": lambda column, value: column <= value,
    "In": lambda column, value: column.isin(list(value)),
    "StringStartsWith": lambda column, value: column.startswith(value),
    "IsNull": lambda column, value: column.is_null(),
    "IsNotNull": lambda column, value: column.is_not_null(),
}


def expression_of(each: Filter, schema: StructType, names: Mapping[str, bool]) -> Expression | None:
    """Give a filter of Spark as an expression.

    Parameters
    ----------
    each : pyspark.sql.datasource.Filter
        The filter.
    schema : StructType
        The columns that Spark knows.
    names : mapping of str to bool
        Those that are in files under the same name, and whether they are INT96.

    Returns
    -------
    Expression or None
        None where it would not mean the same: of floating-point numbers, of strings with a collation, of fields.
    """
    from ..predicate import col

    if isinstance(each, datasource.Not):
        inner = expression_of(each.child, schema, names)
        return None if inner is None else ~inner
    make = _MADE.get(type(each).__name__)
    path: tuple[str, ...] = getattr(each, "attribute", ())
    if make is None or len(path) != 1 or path[0] not in names or path[0] not in schema.fieldNames():
        return None
    kind, value = schema[path[0]].dataType, getattr(each, "value", None)
    is_null_test = type(each).__name__ in ("IsNull", "IsNotNull")
    if not is_null_test and (type(kind).__name__ not in _COMPARED or is_collated(kind) or _has_null(value)):
        return None
    return make(col(path[0]), _without_zone(value) if names[path[0]] else value)


def _without_zone(value: Any) -> Any:
    """Give an instant, or several, as INT96 is compared with it."""
    if isinstance(value, (tuple, list)):
        return [_without_zone(each) for each in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _has_null(value: Any) -> bool:
    """Whether a literal is null, or has one in it: what a negation of it means is another matter."""
    return value is None or (isinstance(value, (tuple, list, set)) and any(each is None for each in value))


# --- the probe --------------------------------------------------------------------------------------------------------


def leaks(spark: SparkSession) -> bool:
    """Find out whether this Spark lets the filters of one query count in another one of the same DataFrame.

    Parameters
    ----------
    spark : SparkSession
        It runs a few small jobs, on a data source of their own.
    """
    from .descriptions import described

    spark.dataSource.register(_probe())
    with _pushing(spark), described(spark, "numparq: are filters of queries kept apart?"):
        found = spark.read.format("numparq_probe").load()
        counts = (
            found.filter("i = 3").count(),
            found.count(),
            found.filter("i = 3").union(found.filter("i = 4")).count(),
            found.filter("i < 5").crossJoin(found.filter("i > 27")).count(),
            found.count(),
        )
    return counts != (1, _PROBE_ROWS, 2, 5 * 2, _PROBE_ROWS)


@contextmanager
def _pushing(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_SETTING, None)
    spark.conf.set(_SETTING, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_SETTING)
        else:
            spark.conf.set(_SETTING, before)


def _probe() -> type:
    """Make a data source that prunes as Spark's documentation has it; made here, it travels with its code."""

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.tests: list[Any] = []

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
            self.tests = [(type(each).__name__, getattr(each, "value", None)) for each in filters]
            return filters

        def read(self, partition: Any) -> Any:
            how = {"EqualTo": int.__eq__, "LessThan": int.__lt__, "GreaterThan": int.__gt__}
            for number in range(30):
                if all(how[name](number, value) for name, value in self.tests if name in how):
                    yield (number,)

    class Probe(datasource.DataSource):
        @classmethod
        def name(cls) -> str:
            return "numparq_probe"

        def schema(self) -> str:
            return "i int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Probe
