"""What is asked of a read on Spark, and how it is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..arguments import checked_size
from ..errors import SchemaError
from .projection import field_places

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from ..dataset.splits import SplitTable
    from ..schema import Schema

__all__ = ["ReadRequest", "file_schema", "key_types", "planned"]

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
    infers_partitions: bool = True

    def __post_init__(self) -> None:
        if self.rows_per_batch is not None:
            checked_size(self.rows_per_batch, "rows_per_batch")
        if self.nanoseconds not in _NANOSECONDS:
            raise ValueError(f"nanoseconds is {' or '.join(map(repr, _NANOSECONDS))}, not {self.nanoseconds!r}")

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
        return _divided(request, request.columns)
    if request.columns is not None:
        raise ValueError("columns are given twice: by a schema, and by the option 'columns'")
    names = list(dict.fromkeys(schema.fieldNames()))
    try:
        return _divided(request, names)
    except SchemaError:  # not all are there, or their names are of another case
        there = _divided(request, None).names
        places = [place for place in field_places(there, names) if place is not None]
        return _divided(request, [there[place] for place in dict.fromkeys(places)])


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


def key_types(request: ReadRequest, names: list[Any], schema: StructType | None = None) -> dict[Any, list[DataType]]:
    """Look at the types of columns before anything is planned.

    Parameters
    ----------
    request : ReadRequest
        What is asked for.
    names : list
        The columns, as `numparq.col` takes them.
    schema : pyspark.sql.types.StructType, optional
        The caller's.

    Returns
    -------
    dict
        For each column the type that it has in files, or as a partition column, and that of the caller's schema.

    Raises
    ------
    SchemaError
        When there is no such column.
    """
    from .types import spark_schema

    alone = replace(request, filters=None, runtime_filters=(), include=(), partitioning=_as_spark(request, schema))
    found = {}
    for name in names:
        (field,) = spark_schema(_divided(alone, [name])).fields
        wanted = () if schema is None else schema.fields
        found[name] = [field.dataType, *(each.dataType for each in wanted if each.name.lower() == field.name.lower())]
    return found
