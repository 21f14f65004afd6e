"""Scan options, checked, and the row slices they select by position."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np

from numparq.column.read.row_selection import SLICE_GROUP, SLICE_OUT, SLICE_START, SLICE_STOP, RowSlices
from numparq.format.footer.file_metadata import Footer
from numparq.typing import ColumnName, Filters, RowRange, RuntimeFilters
from numparq.util.arguments import check_flag, check_list, check_row_count

_MAX_CACHED_ROW_GROUPS = 4096  # slices of more row groups are not cached
_MAX_ROWS = 1 << 62  # what is beyond may not fit an int64
_ALLOWED_VALUES = {
    "dates": ("objects", "datetime64"),
    "variants": ("values", "bytes"),
    "files": ("references", "bytes"),
}


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Options of a read besides its columns, as in `numparq.read_parquet`."""

    filters: Filters = None
    runtime_filters: RuntimeFilters = ()
    explode: ColumnName | None = None
    dtype_backend: str = "numpy"
    row_groups: Sequence[int] | None = None
    row_range: RowRange = None
    nrows: int | None = None
    categories: Collection[str] | None = None
    include: Sequence[str] = ()
    dates: str = "objects"
    geometries: str = "wkb"
    variants: str = "values"
    files: str = "references"
    verify_crc: bool = True
    on_error: str = "raise"
    threads: int | None = None
    memory_limit: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.geometries != "wkb":
            from numparq.to_pandas.geometry import check_geometries

            check_geometries(self.geometries)
        if self.memory_limit is not None:
            from numparq.util.arguments import check_positive_int

            check_positive_int(self.memory_limit, "memory_limit")
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f"on_error must be 'raise' or 'skip', not {self.on_error!r}")
        if self.verify_crc is not True:
            check_flag(self.verify_crc, "verify_crc")
        for name, allowed in _ALLOWED_VALUES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")

    @property
    def categorical_names(self) -> set[str]:
        """Names of the columns to read as Categorical."""
        return set() if self.categories is None else set(check_list(self.categories, "categories"))


def all_row_slices(footer: Footer) -> RowSlices:
    """Return the slices of all rows of a file; cached unless there are many."""
    if len(footer.row_group_num_rows) > _MAX_CACHED_ROW_GROUPS:
        return select_row_slices(footer.row_group_num_rows)
    cached: RowSlices | None = footer.cache.get("all rows")
    if cached is None:
        return footer.cache.get_or_make("all rows", lambda: select_row_slices(footer.row_group_num_rows))
    return cached


def select_row_slices(
    num_rows: Sequence[int] | np.ndarray,
    row_groups: Sequence[int] | None = None,
    row_range: RowRange = None,
    nrows: int | None = None,
) -> RowSlices:
    """Return non-empty row slices for the given row groups, row range (exclusive end) and row count.

    `num_rows` is that of each row group; `row_range` counts over the whole file, and either end may be None.
    """
    first, stop = _check_row_range(row_range)
    counts = np.asarray(num_rows, np.int64)
    first, last = min(first, _MAX_ROWS), _MAX_ROWS if stop is None else min(stop, _MAX_ROWS)
    groups = np.array(_check_row_groups(row_groups, len(counts)), np.int64)
    starts = (counts.cumsum() - counts)[groups]
    table = np.empty((len(groups), 4), np.int64)
    table[:, SLICE_GROUP] = groups
    table[:, SLICE_START] = begins = np.maximum(first - starts, 0)
    sizes = np.maximum(np.minimum(counts[groups], last - starts) - begins, 0)
    if nrows is not None:
        left = min(check_row_count(nrows, "nrows"), _MAX_ROWS) - (sizes.cumsum() - sizes)
        sizes = np.minimum(sizes, np.maximum(left, 0))
    table[:, SLICE_STOP] = begins + sizes
    table[:, SLICE_OUT] = sizes.cumsum() - sizes
    return RowSlices(table[sizes > 0])


def _check_row_groups(row_groups: Sequence[int] | None, count: int) -> list[int]:
    if row_groups is None:
        return list(range(count))
    try:
        if any(isinstance(group, bool) for group in row_groups):
            raise TypeError
        ordinals = [index(group) for group in row_groups]
    except TypeError:
        raise TypeError(f"row_groups must be a list of ordinals, not {row_groups!r}") from None
    for group in ordinals:
        if not 0 <= group < count:
            raise ValueError(f"row group {group} does not exist; there are {count}, counted from 0")
    return ordinals


def _check_row_range(row_range: RowRange) -> tuple[int, int | None]:
    if row_range is None:
        return 0, None
    if isinstance(row_range, (range, slice)):
        if row_range.step not in (None, 1):
            raise ValueError("row_range must not have a step")
        row_range = row_range.start, row_range.stop
    try:
        first, stop = row_range
    except (TypeError, ValueError):
        raise TypeError(f"row_range must be a pair (first, stop), not {row_range!r}") from None
    begin = 0 if first is None else check_row_count(first, "the start of row_range")
    end = None if stop is None else check_row_count(stop, "the stop of row_range")
    if end is not None and end < begin:
        raise ValueError(f"row_range ends at {end}, before it begins at {begin}")
    return begin, end
