"""Read request: the arguments of a Spark read, from `read` or from data source options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.listing.file_filter import ALL_FILES, FileFilter
from numparq.format.key_values.spark import SPARKS_CALENDAR, SparkCalendar
from numparq.keys.provider import check_provider_name
from numparq.spark.filters.dialect import DEFAULT_DIALECT, SparkDialect
from numparq.spark.schema.user_schema import FieldFinder, find_fields, find_fields_exactly
from numparq.util.arguments import check_positive_int

if TYPE_CHECKING:
    from numparq.dataset.discover.expected_parts import PartNames
    from numparq.expr.runtime_filter import RuntimeFilter
    from numparq.typing import ColumnName, Filters, PathLike, StorageOptions

_NANOSECONDS = ("exact", "floor")


@dataclass(frozen=True)
class ReadRequest:
    """Arguments of a read, as in `numparq.spark.read` and `numparq.read_parquet`; its runtime filters have arrived.

    `dialect` is that of filter text, and decides whether names of a schema are exact. Without `infers_partitions`
    partition columns are str.
    `calendar` is that of files that do not say, `decryption` the name of a key provider.
    """

    path: PathLike | Sequence[PathLike]
    columns: list[ColumnName] | None = None
    filters: Filters = None
    runtime_filters: tuple[RuntimeFilter, ...] = ()
    split_bytes: int | None = None
    min_splits: int = 1
    plan_files: int | None = None
    rows_per_batch: int | None = None
    partitioning: Any = "hive"
    resolve: str = "name"
    table_format: str = "auto"
    file_filter: FileFilter = ALL_FILES
    include: tuple[str, ...] | list[str] = ()
    storage_options: StorageOptions = None
    filesystem: Any = None
    verify_crc: bool = True
    nanoseconds: str = "exact"
    pushdown: bool = False
    dialect: SparkDialect = DEFAULT_DIALECT
    infers_partitions: bool = True
    calendar: SparkCalendar = SPARKS_CALENDAR
    decryption: str | None = None
    expected_parts: PartNames | None = None

    def __post_init__(self) -> None:
        if self.decryption is not None:
            check_provider_name(self.decryption, "decryption")
        if self.rows_per_batch is not None:
            check_positive_int(self.rows_per_batch, "rows_per_batch")
        if self.nanoseconds not in _NANOSECONDS:
            raise ValueError(f"nanoseconds must be {' or '.join(map(repr, _NANOSECONDS))}, not {self.nanoseconds!r}")

    @property
    def field_finder(self) -> FieldFinder:
        """Function that finds columns and fields of a schema."""
        return find_fields_exactly if self.dialect.case_sensitive else find_fields

    def with_filters(self, more: tuple[RuntimeFilter, ...]) -> ReadRequest:
        """Return the request with more runtime filters."""
        return replace(self, runtime_filters=(*self.runtime_filters, *more))
