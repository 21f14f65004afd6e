"""Pages of a column chunk by its offset index: rows to pages, pages to rows and byte ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.page_index import PAGE_OFFSET, PAGE_ROW, PAGE_SIZE, UNKNOWN
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.page_locations import (
    BEYOND_ROWS,
    FIRST_ROW,
    OFFSET_FIELDS,
    OUTSIDE_CHUNK,
    OVERLAP,
    ROW_ORDER,
    STATE_FIELDS,
)
from numparq.kernels.tables import LOCATION_FIELDS
from numparq.util.pluralize import pluralize

from .row_ranges import RowRanges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class ChunkPages:
    """Data pages of a column chunk, checked against the chunk and its row group.

    Parameters
    ----------
    start, end : int
        Byte range of the chunk in the file (end exclusive), dictionary page included.
    num_rows : int
        Rows of the row group.
    locations : int64 array, (pages, 3)
        `PageLocation` of each data page: offset of the page header, size with header, first row within the row group.
        The array is copied and made read-only.
    is_indexed : bool
        Whether the locations come from an offset index. Otherwise the whole chunk counts as one page.
    needs_dictionary : int8 array, optional
        Whether each page holds dictionary indices (1) or not (0), or that its header has not been read (UNKNOWN).

    Raises
    ------
    InvalidFileError
        When pages lie outside the chunk, overlap, or their first rows descend or exceed the row group.

    Examples
    --------
    >>> pages = ChunkPages(4, 400, 30, [[100, 90, 0], [190, 110, 10], [300, 100, 20]])
    >>> pages.pages_with_rows(RowRanges([(12, 15)]))
    array([1])
    >>> pages.byte_ranges(pages.pages_with_rows(RowRanges([(12, 15)]))).tolist()
    [[4, 100], [190, 300]]
    """

    start: int
    end: int
    num_rows: int
    locations: np.ndarray
    is_indexed: bool = True
    needs_dictionary: np.ndarray | None = None
    # End row (exclusive) of each page.
    row_stops: np.ndarray = field(init=False, repr=False)
    # Whether the data pages are contiguous up to the chunk's end; otherwise the index may lack a page.
    is_complete: bool = field(init=False, repr=False)
    # Page locations for kernels: int64, (pages, LOCATION_FIELDS), the dictionary page first if any; None: not indexed.
    page_table: np.ndarray | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        locations = np.array(self.locations, np.int64).reshape(-1, OFFSET_FIELDS)
        count, num_rows = len(locations), self.num_rows
        if num_rows and not count:
            raise InvalidFileError(f"the column chunk has no pages, but its row group has {pluralize(num_rows, 'row')}")
        row_stops, table = np.empty(count, np.int64), np.empty((count + 1, LOCATION_FIELDS), np.int64)
        state = np.zeros(STATE_FIELDS, np.int64)
        located = kernels.locate_pages(
            locations.reshape(-1), count, self.start, self.end, num_rows, row_stops, table.reshape(-1), state
        )
        page, is_complete = state.tolist()
        if located < 0:
            raise InvalidFileError(_MESSAGES[located], page=page)
        table = table[:located]
        locations.flags.writeable = table.flags.writeable = False
        values = (self.start, self.end, num_rows, locations, self.is_indexed, self.needs_dictionary)
        self._set((*values, row_stops, bool(is_complete), table if self.is_indexed else None))

    @classmethod
    def unindexed(cls, start: int, end: int, num_rows: int) -> ChunkPages:
        """Return the pages of a chunk without an offset index: one page that covers it, dictionary included."""
        if end < start:
            check_chunks(np.int64(start), np.int64(end))
        locations, row_stops = np.array([[start, end - start, 0]], np.int64), np.array([num_rows], np.int64)
        locations.flags.writeable = False
        made = cls.__new__(cls)
        made._set((start, end, num_rows, locations, False, None, row_stops, True, None))
        return made

    def _set(self, values: tuple[Any, ...]) -> None:
        for give, value in zip(_SETTERS, values, strict=True):
            give(self, value)

    # --- properties --------------------------------------------------------------------------------------------------

    @property
    def num_pages(self) -> int:
        """Number of data pages; 1 without an offset index."""
        return len(self.locations)

    @property
    def offsets(self) -> np.ndarray:
        """Offset of each page header in the file."""
        return self.locations[:, PAGE_OFFSET]

    @property
    def sizes(self) -> np.ndarray:
        """Size of each page in bytes, header included."""
        return self.locations[:, PAGE_SIZE]

    @property
    def first_rows(self) -> np.ndarray:
        """First row of each page within the row group."""
        return self.locations[:, PAGE_ROW]

    @property
    def dictionary_range(self) -> tuple[int, int] | None:
        """Byte range of the dictionary page, up to the first data page; None if there is none or no offset index."""
        first = int(self.offsets[0]) if self.num_pages else self.end
        return (self.start, first) if self.is_indexed and self.num_pages and first > self.start else None

    # --- rows to pages, and back -------------------------------------------------------------------------------------

    def pages_with_rows(self, rows: RowRanges) -> np.ndarray:
        """Return the ordinals of the pages that hold given rows of the row group: int64, ascending.

        An empty page is included with the page after it. It may hold the start of a row that continues there
        (some writers do so), and the index cannot tell.
        """
        if rows.stop > self.num_rows:
            raise ValueError(
                f"the rows end at {rows.stop:,}, beyond the {pluralize(self.num_rows, 'row')} of the row group"
            )
        if len(rows) == 1:
            return np.arange(*self.pages_in_range(*rows.bounds[0].tolist()))
        before = rows.stops.searchsorted(self.first_rows, side="right")
        return (rows.starts.searchsorted(self.row_stops, side="left") > before).nonzero()[0]

    def pages_in_range(self, start: int, stop: int) -> tuple[int, int]:
        """Return first page and end (exclusive) of the pages with a row in [start, stop), as `pages_with_rows`."""
        first = bisect_right(self.row_stops, start)
        return first, max(bisect_left(self.locations[:, PAGE_ROW], stop), first)

    def page_table_of(self, selected: RowRanges) -> np.ndarray:
        """Return the rows of `page_table` for pages with selected rows, a dictionary page first if needed."""
        located = self.page_table
        assert located is not None
        first_page = len(located) - len(self.locations)  # 1 behind a dictionary page
        if len(selected.bounds) == 1:
            start, stop = selected.bounds[0].tolist()
            first = bisect_right(self.row_stops, start)
            last = max(bisect_left(self.locations[:, PAGE_ROW], stop), first)
            if not first_page or not self._is_dictionary_needed(slice(first, last)):
                beside: np.ndarray = located[first + first_page : last + first_page]
                return beside
            pages = np.arange(first, last)
        else:
            pages = self.pages_with_rows(selected)
        rows = pages + first_page
        if first_page and len(pages) and self._is_dictionary_needed(pages):
            rows = np.concatenate([[0], rows])
        taken: np.ndarray = located.take(rows, axis=0)
        return taken

    def _is_dictionary_needed(self, pages: np.ndarray | slice) -> bool:
        """Whether one of the pages holds dictionary indices, or may."""
        needs = self.needs_dictionary
        return needs is None or bool(np.logical_or.reduce(needs[pages]))

    def pages_of_unknown_encoding(self, rows: RowRanges) -> list[int]:
        """Return the pages with given rows whose headers have not been read, unless another needs the dictionary."""
        if self.needs_dictionary is None:
            return []
        pages = self.pages_with_rows(rows)
        needs = self.needs_dictionary[pages]
        if np.maximum.reduce(needs, initial=0) > 0:
            return []
        found: list[int] = pages[needs == UNKNOWN].tolist()
        return found

    def rows_in_pages(self, pages: ArrayLike) -> RowRanges:
        """Return the rows of the given pages: ordinals in any order, or a mask over all pages."""
        pages = np.asarray(pages)
        pages = pages.nonzero()[0] if pages.dtype == np.bool_ else np.unique(pages.astype(np.intp))
        starts, stops = self.locations[pages, PAGE_ROW], self.row_stops[pages]
        if len(pages) and pages[-1] - pages[0] == len(pages) - 1 and stops[-1] > starts[0]:  # without gaps
            return RowRanges.from_range(int(starts[0]), int(stops[-1]))
        return RowRanges.from_sorted(starts, stops)

    def byte_ranges(self, pages: np.ndarray) -> np.ndarray:
        """Return the byte ranges to decode the given pages (ascending ordinals): int64, shape (n, 2), end exclusive.

        The dictionary page comes first if the chunk has one and any of these pages may need it.
        """
        dictionary = self.dictionary_range if len(pages) and self._is_dictionary_needed(pages) else None
        first = int(dictionary is not None)
        found = np.empty((first + len(pages), 2), np.int64)
        if dictionary is not None:
            found[0] = dictionary
        found[first:, 0] = self.offsets[pages]
        found[first:, 1] = found[first:, 0] + self.sizes[pages]
        return found

    def num_bytes(self, rows: RowRanges) -> int:
        """Return the number of bytes to read for given rows."""
        if not rows:
            return 0
        if not self.is_indexed:
            return self.end - self.start
        pages = self.pages_with_rows(rows)
        ranges = self.byte_ranges(pages)
        return int((ranges[:, 1] - ranges[:, 0]).sum())

    # --- equality, hash and copies -----------------------------------------------------------------------------------

    def _key(self) -> tuple[Any, ...]:
        return self.start, self.end, self.num_rows, self.is_indexed, self.locations.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkPages) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_indexed:
            return ChunkPages, (self.start, self.end, self.num_rows, self.locations)
        return _unindexed, (self.start, self.end, self.num_rows)


def _unindexed(start: int, end: int, num_rows: int) -> ChunkPages:
    return ChunkPages.unindexed(start, end, num_rows)


# Slot setters fill a frozen instance faster than object.__setattr__.
_SETTERS = tuple(getattr(ChunkPages, entry.name).__set__ for entry in fields(ChunkPages))

DICTIONARY_PAGE_ORDINAL = -1
_MESSAGES = {
    OUTSIDE_CHUNK: "the offset index has a page outside of the column chunk",
    OVERLAP: "the offset index has a page that overlaps the previous page",
    FIRST_ROW: "the offset index begins at a row other than 0",
    ROW_ORDER: "the offset index has a page that begins at an earlier row than the previous page",
    BEYOND_ROWS: "the offset index has a page that begins after the last row of the row group",
}


def check_chunks(starts: np.ndarray | np.int64, ends: np.ndarray | np.int64) -> None:
    """Raise if a column chunk ends before it begins; an all-null chunk may be empty."""
    if np.any(ends < starts):
        raise InvalidFileError("a column chunk ends before it begins")
