"""What is asked of a read on Spark, and how it is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..arguments import checked_size
from ..errors import SchemaError
from ..filtering.condition import Origins
from .keys import KeyColumn
from .projection import FieldPlaces, exact_places, field_places

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..dataset.splits import SplitTable
    from ..schema import Schema

__all__ = ["ReadRequest", "alone", "file_schema", "key_columns", "planned"]

_NANOSECONDS = ("exact", "floor")


@dataclass(frozen=True)
class ReadRequest:
    """What is asked of a read.

    Attributes
    ----------
    path, columns, storage_options, filesystem, partitioning, resolve, include, verify_crc
        As in `numparq.read_parquet`.
    filters
        As there, or text as `numparq.predicate.text.parse` has it.
    runtime_filters : tuple of RuntimeFilter
        Those that have arrived.
    split_bytes, min_splits, plan_files
        As in `numparq.dataset.splits.split_table`.
    rows_per_batch : int or None
        Rows of a record batch at most.
    nanoseconds : {"exact", "floor"}
        As of `numparq.spark.arrow_batches.ArrowBatches`.
    pushdown : bool
        Whether Spark's filters are taken.
    case_sensitive : bool
        Whether names of a schema are exact: else they are looked up regardless of case, where there are none so.
    infers_partitions : bool
        Whether types of partition columns that are not given are inferred, as Spark does; else they are text.
    """

    path: Any
    columns: list[Any] | None = None
    filters: Any = None
    runtime_filters: tuple[Any, ...] = ()
    split_bytes: int | None = None
    min_splits: int = 1
    plan_files: int | None = None
    rows_per_batch: int | None = None
    partitioning: Any = "hive"
    resolve: str = "name"
    include: tuple[str, ...] | list[str] = ()
    storage_options: dict[str, Any] | None = None
    filesystem: Any = None
    verify_crc: bool = True
    nanoseconds: str = "exact"
    pushdown: bool = False
    case_sensitive: bool = False
    infers_partitions: bool = True

    def __post_init__(self) -> None:
        if self.rows_per_batch is not None:
            checked_size(self.rows_per_batch, "rows_per_batch")
        if self.nanoseconds not in _NANOSECONDS:
            raise ValueError(f"nanoseconds is {' or '.join(map(repr, _NANOSECONDS))}, not {self.nanoseconds!r}")

    @property
    def places(self) -> FieldPlaces:
        """What finds columns and fields of a schema."""
        return exact_places if self.case_sensitive else field_places

    def with_filters(self, more: tuple[Any, ...]) -> ReadRequest:
        """Give the same with more runtime filters."""
        return replace(self, runtime_filters=(*self.runtime_filters, *more))


def planned(request: ReadRequest, schema: StructType | None = None) -> SplitTable:
    """Divide what is asked for into splits.

    Parameters
    ----------
    request : ReadRequest
        What is asked for.
    schema : pyspark.sql.types.StructType, optional
        The caller's: its columns are read, as far as there are any of these names.

    Returns
    -------
    SplitTable

    Raises
    ------
    ValueError
        When there are both a schema and columns, or the filter cannot be understood.
    ParquetError, FileNotFoundError
        As `numparq.dataset.splits.split_table` does.
    """
    if isinstance(request.filters, str):
        from ..predicate.text import parse_for

        request = replace(request, filters=parse_for(request.filters, lambda: file_schema(request)))
    request = replace(request, partitioning=_as_spark(request, schema))
    if schema is None:
        return _divided(request, request.columns) if request.columns is not None else _in_order(request)
    if request.columns is not None:
        raise ValueError("columns are given twice: by a schema, and by the option 'columns'")
    names = list(dict.fromkeys(schema.fieldNames()))
    try:
        table = _divided(request, names)
    except SchemaError:  # not all are there, or their names are of another case
        there = _divided(request, None).names
        places = [place for place in request.places(there, names) if place is not None]
        return _divided(request, [there[place] for place in dict.fromkeys(places)])
    request.places([*table.schema.columns, *table.partitions], names)  # others may be called so, but for their case
    return table


def _in_order(request: ReadRequest) -> SplitTable:
    """Give all columns in Spark's order: a partition column stands where files have one of that name."""
    table = _divided(request, None)
    names = [name for name in table.names if name not in request.include]
    order = list(dict.fromkeys([*(name for name in table.schema.columns if name in names), *names]))
    return table if order == names else _divided(request, order)


def _as_spark(request: ReadRequest, schema: StructType | None) -> Any:
    """Have types of partition columns that are not given be those that Spark finds; a schema gives them."""
    from .partition_types import partition_types, types_asked_for

    if request.partitioning != "hive" and not isinstance(request.partitioning, Mapping):
        return request.partitioning
    given = {} if isinstance(request.partitioning, str) else dict(request.partitioning)
    asked = types_asked_for(schema)
    return lambda listing: partition_types(listing, given, asked, infers=request.infers_partitions)


def _divided(request: ReadRequest, columns: list[Any] | None) -> SplitTable:
    from ..dataset.splits import split_table

    if columns is not None:
        columns = [name for name in columns if name not in request.include]
    limits = {"split_bytes": request.split_bytes, "plan_files": request.plan_files}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    return split_table(
        request.path, columns, request.filters, runtime_filters=request.runtime_filters,
        min_splits=request.min_splits, partitioning=request.partitioning,
        resolve=request.resolve, storage_options=request.storage_options, filesystem=request.filesystem,
        include=request.include, variants="bytes", verify_crc=request.verify_crc, threads=1, **given,
    )  # fmt: skip


def file_schema(request: ReadRequest) -> Schema:
    """Look at the columns that are in files, before anything is planned."""
    from ..dataset.dataset import Dataset

    with Dataset(
        request.path, partitioning=request.partitioning, resolve=request.resolve,
        storage_options=request.storage_options, filesystem=request.filesystem,
    ) as dataset:  # fmt: skip
        return dataset.schema


def key_columns(
    names: list[Any], divided: Callable[[list[Any]], SplitTable], schema: StructType | None = None
) -> dict[Any, KeyColumn]:
    """Look at columns that keys of a join are for, before anything is planned.

    Parameters
    ----------
    names : list
        The columns, as `numparq.col` takes them.
    divided : callable
        Divides the table, with some columns alone.
    schema : pyspark.sql.types.StructType, optional
        The caller's.

    Returns
    -------
    dict
        By the name.

    Raises
    ------
    SchemaError
        When there is no such column.
    """
    from ..predicate.columns import find
    from .types import spark_schema

    found = {}
    for name in names:
        table = divided([name])
        (field,) = spark_schema(table).fields
        wanted = () if schema is None else schema.fields
        types = [field.dataType, *(each.dataType for each in wanted if each.name.lower() == field.name.lower())]
        if name in table.partitions:
            found[name] = KeyColumn(types)
        else:
            leaf = find(table.schema, name).leaf
            found[name] = KeyColumn(types, leaf, Origins(table.prototype).get(leaf.index))
    return found


def alone(request: ReadRequest, schema: StructType | None = None) -> Callable[[list[Any]], SplitTable]:
    """Give what divides the table of a request with some columns alone, and nothing else that was asked for."""
    partitioning = _as_spark(request, schema)
    plain = replace(request, filters=None, runtime_filters=(), include=(), partitioning=partitioning)
    return lambda names: _divided(plain, names)
