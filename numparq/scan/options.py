"""Scan options, checked, and the row slices they select by position."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import index

from numparq.column.read.row_selection import RowSlice
from numparq.typing import ColumnName, Filters, RowRange, RuntimeFilters
from numparq.util.arguments import check_row_count

__all__ = ["ScanOptions"]

_ALLOWED_VALUES = {"variants": ("values", "bytes"), "files": ("references", "bytes")}


@dataclass(frozen=True)
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
    geometries: str = "wkb"
    variants: str = "values"
    files: str = "references"
    verify_crc: bool = True
    threads: int | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.geometries != "wkb":
            from numparq.to_pandas.geometry import check_geometries

            check_geometries(self.geometries)
        if self.memory_limit is not None:
            from numparq.util.arguments import check_positive_int

            check_positive_int(self.memory_limit, "memory_limit")
        for name, words in _ALLOWED_VALUES.items():
            value = getattr(self, name)
            if value not in words:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {value!r}")

    @property
    def has_only_filters(self) -> bool:
        """Whether `filters` and plain conversion options are all that is set."""
        are_all = self.row_groups is None and self.row_range is None and self.nrows is None and self.explode is None
        as_they_are = self.categories is None and self.memory_limit is None and self.geometries == "wkb"
        nothing_more = type(self.include) is tuple and not self.include and not self.runtime_filters
        return are_all and as_they_are and nothing_more

    @property
    def categorical_names(self) -> set[str]:
        """Names of the columns to read as Categorical."""
        if isinstance(self.categories, str):
            raise TypeError(f"categories must be a list of column names, not {self.categories!r}")
        return set(self.categories or ())


def select_row_slices(
    num_rows: Sequence[int],
    row_groups: Sequence[int] | None = None,
    row_range: RowRange = None,
    nrows: int | None = None,
) -> list[RowSlice]:
    """Return non-empty row slices for the given row groups, row range (exclusive end) and row count.

    `num_rows` is that of each row group; `row_range` counts over the whole file, and either end may be None.
    """
    first, stop = _check_row_range(row_range)
    left = None if nrows is None else check_row_count(nrows, "nrows")
    starts = [0]
    for count in num_rows:
        starts.append(starts[-1] + count)
    slices: list[RowSlice] = []
    out = 0
    for group in _check_row_groups(row_groups, len(num_rows)):
        begin = max(first - starts[group], 0)
        end = min(num_rows[group], num_rows[group] if stop is None else stop - starts[group])
        if left is not None:
            end = min(end, begin + left - out)
        if begin < end:
            slices.append(RowSlice(group, begin, end, out))
            out += end - begin
    return slices


def _check_row_groups(row_groups: Sequence[int] | None, count: int) -> list[int]:
    if row_groups is None:
        return list(range(count))
    try:
        wanted = [index(group) for group in row_groups]
    except TypeError:
        raise TypeError(f"row_groups must be a list of ordinals, not {row_groups!r}") from None
    for group in wanted:
        if not 0 <= group < count:
            raise ValueError(f"row group {group} does not exist; the file has {count}, counted from 0")
    return wanted


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
