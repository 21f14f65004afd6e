"""Filter pushdown: Spark filters as expressions, and a probe for leaking filters (Spark 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, Filter

from numparq.errors import SchemaError
from numparq.expr.normalize import all_of
from numparq.spark.schema.comparison import is_collated
from numparq.spark.worker_errors import sentence_first

from .source import NumparqDataSource, NumparqReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from numparq.expr.expression import Expression
    from numparq.spark.scan.plan import SparkScan
    from numparq.spark.scan.request import ReadRequest

_SETTING = "spark.sql.python.filterPushdown.enabled"
_PROBE_ROWS = 30

# --- filters as expressions -------------------------------------------------------------------------------------------

# Types that numparq compares as Spark does. Not floats: to Spark, NaN equals itself and is the largest number.
_COMPARED = {
    "BooleanType",
    "ByteType",
    "ShortType",
    "IntegerType",
    "LongType",
    "DecimalType",
    "StringType",
    "BinaryType",
    "DateType",
    "TimestampType",
    "TimestampNTZType",
}
_EXPRESSIONS: dict[str, Callable[[Any, Any], Expression]] = {
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


class PushdownDataSource(NumparqDataSource):
    """Data source with the option ``pushdown``."""

    allows_pushdown = True

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the splits, which takes filters if the option says so."""
        with sentence_first():
            request = self._request()
            if request.pushdown:
                return PushdownReader(self._scan_for(schema), request, schema)
        return super().reader(schema)


class PushdownReader(NumparqReader):
    """Reader that drops rows by the filters of a query; Spark applies these filters again."""

    def __init__(self, table: SparkScan, request: ReadRequest, schema: StructType) -> None:
        super().__init__(table)
        self._request = request
        self._schema = schema

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Plan again with the supported filters; return all filters, for Spark to apply."""
        reader = self._batch_reader.split_reader
        names = reader.names
        known = [made for each in filters if (made := to_expression(each, self._schema, names)) is not None]
        if known and not self._replan(known) and len(known) > 1:
            for each in known:
                self._replan([each])
        return filters

    def _replan(self, known: Iterable[Expression]) -> bool:
        """Plan again with more filters; False if a stored type cannot be compared with one of their literals."""
        from numparq.spark.scan.plan import SparkScan

        given = self._batch_reader.split_reader.filters
        request = replace(self._request, filters=all_of([*([] if given is None else [given]), *known]))
        try:
            table = SparkScan.plan(request, self._schema)
        except SchemaError:
            return False
        self._request, self._splits, self._batch_reader = request, table.splits, table.batch_reader
        return True


def to_expression(each: Filter, schema: StructType, names: Collection[str]) -> Expression | None:
    """Return a filter of Spark as an expression; None if its meaning would differ (floats, collations, struct fields).

    `names` are the columns that files have under the same name.
    """
    from numparq.expr.column import col

    if isinstance(each, datasource.Not):
        inner = to_expression(each.child, schema, names)
        return None if inner is None else ~inner
    make = _EXPRESSIONS.get(type(each).__name__)
    path: tuple[str, ...] = getattr(each, "attribute", ())
    if make is None or len(path) != 1 or path[0] not in names or path[0] not in schema.fieldNames():
        return None
    kind, value = schema[path[0]].dataType, getattr(each, "value", None)
    is_null_test = type(each).__name__ in ("IsNull", "IsNotNull")
    if not is_null_test and (type(kind).__name__ not in _COMPARED or is_collated(kind) or _has_null(value)):
        return None
    return make(col(path[0]), value)


def _has_null(value: Any) -> bool:
    """Whether a literal is or contains null, which makes its negation ambiguous."""
    return value is None or (isinstance(value, (tuple, list, set)) and any(each is None for each in value))


# --- probe for leaking filters ----------------------------------------------------------------------------------------


def filters_leak(spark: SparkSession) -> bool:
    """Whether this Spark applies the filters of one query to another of the same DataFrame.

    Runs a few small jobs on a data source of their own.
    """
    from numparq.spark.tasks import describe_jobs

    spark.dataSource.register(_probe_source())
    with _pushdown_enabled(spark), describe_jobs(spark, "numparq: check that filters of queries stay apart"):
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
def _pushdown_enabled(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_SETTING, None)
    spark.conf.set(_SETTING, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_SETTING)
        else:
            spark.conf.set(_SETTING, before)


def _probe_source() -> type:
    """Return a data source that prunes as Spark's documentation describes; defined here, it is pickled by value."""

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
