"""Read request: the arguments of a Spark read, from `read` or from data source options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numparq.spark.schema.user_schema import FieldFinder, find_fields, find_fields_exactly
from numparq.util.arguments import check_positive_int

__all__ = ["ReadRequest"]

_NANOSECONDS = ("exact", "floor")


@dataclass(frozen=True)
class ReadRequest:
    """What is asked of a read.

    Attributes
    ----------
    path, columns, storage_options, filesystem, partitioning, resolve, include, verify_crc
        As in `numparq.read_parquet`.
    filters
        As there, or text as `numparq.expr.parse.parse_filter` has it.
    runtime_filters : tuple of RuntimeFilter
        Those that have arrived.
    split_bytes, min_splits, plan_files
        As in `numparq.dataset.splits.table.split_table`.
    rows_per_batch : int or None
        Rows of a record batch at most.
    nanoseconds : {"exact", "floor"}
        As of `numparq.spark.scan.arrow_batches.RecordBatchBuilder`.
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
            check_positive_int(self.rows_per_batch, "rows_per_batch")
        if self.nanoseconds not in _NANOSECONDS:
            raise ValueError(f"nanoseconds is {' or '.join(map(repr, _NANOSECONDS))}, not {self.nanoseconds!r}")

    @property
    def places(self) -> FieldFinder:
        """What finds columns and fields of a schema."""
        return find_fields_exactly if self.case_sensitive else find_fields

    def with_filters(self, more: tuple[Any, ...]) -> ReadRequest:
        """Give the same with more runtime filters."""
        return replace(self, runtime_filters=(*self.runtime_filters, *more))
