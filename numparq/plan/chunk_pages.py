"""Pages of a column chunk by its offset index: rows to pages, pages to rows and byte ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from numparq.errors import InvalidFileError
from numparq.format.page_index import PAGE_OFFSET, PAGE_ROW, PAGE_SIZE
from numparq.kernels.tables import L_END, L_IN_CHUNK, L_ROW, L_ROWS, L_START, LOCATION_FIELDS

from .row_ranges import RowRanges

__all__ = ["DICTIONARY_PAGE_ORDINAL", "ChunkPages"]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkPages:
    """The data pages of a column chunk; what its offset index says is checked before anything is made of it.

    Parameters
    ----------
    start, end : int
        Between which positions of the file the chunk lies, its dictionary page included.
    num_rows : int
        Rows of its row group.
    locations : int64 array, (pages, 3)
        Of each data page the position of its header, its bytes with the header, and its first row within the row
        group: PageLocation of the format. Not to be written to afterwards.
    is_indexed : bool
        Whether that is from an offset index. If not, the whole chunk is taken for one page: see `whole`.

    Raises
    ------
    InvalidFileError
        When pages cannot lie so: one behind the other in the chunk, their rows one behind the other in the row group.

    Examples
    --------
    >>> pages = ChunkPages(4, 400, 30, [[100, 90, 0], [190, 110, 10], [300, 100, 20]])
    >>> pages.needed(RowRanges([(12, 15)]))
    array([1])
    >>> pages.byte_ranges(pages.needed(RowRanges([(12, 15)]))).tolist()
    [[4, 100], [190, 300]]
    """

    start: int
    end: int
    num_rows: int
    locations: np.ndarray
    is_indexed: bool = True
    # Of each page the row behind its last one.
    row_stops: np.ndarray = field(init=False, repr=False)
    _located: np.ndarray | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        locations = np.array(self.locations, np.int64).reshape(-1, 3)
        locations.flags.writeable = False
        object.__setattr__(self, "locations", locations)
        _check_offsets(self.start, self.end, self.offsets, self.sizes)
        _check_rows(self.first_rows, self.num_rows)
        object.__setattr__(self, "row_stops", _row_stops(self.first_rows, self.num_rows))

    @classmethod
    def whole(cls, start: int, end: int, num_rows: int) -> ChunkPages:
        """Make those of a chunk without an offset index: a single page that is all of it, dictionary included.

        Parameters
        ----------
        start, end : int
            Where it lies.
        num_rows : int
            Rows of its row group.

        Returns
        -------
        ChunkPages
        """
        return cls.whole_chunks([[start]], [[end]], [num_rows])[0][0]

    @classmethod
    def whole_chunks(cls, starts: Any, ends: Any, num_rows: Any) -> list[list[ChunkPages]]:
        """Make those of the chunks of row groups, as `whole` does; thousands of them take a microsecond or two each.

        Parameters
        ----------
        starts, ends : int array-like, (row groups, columns)
            Where each lies.
        num_rows : int array-like, (row groups,)
            Rows of each row group.

        Returns
        -------
        list of list of ChunkPages
            By row group and column.
        """
        starts, ends, counts = (np.array(given, np.int64) for given in (starts, ends, num_rows))
        _check_chunks(starts, ends)
        locations = np.zeros((*starts.shape, 1, 3), np.int64)
        locations[:, :, 0, PAGE_OFFSET], locations[:, :, 0, PAGE_SIZE] = starts, ends - starts
        locations.flags.writeable = False
        groups = zip(starts.tolist(), ends.tolist(), counts.tolist(), locations, counts[:, None], strict=True)
        return [
            [
                cls._unchecked((start, end, count, location, False, row_stops, None))
                for start, end, location in zip(first, last, several, strict=True)
            ]
            for first, last, count, several, row_stops in groups
        ]

    @classmethod
    def _unchecked(cls, values: tuple) -> ChunkPages:
        """Make one of the values of its fields."""
        made = cls.__new__(cls)
        for give, value in zip(_SETTERS, values, strict=True):
            give(made, value)
        return made

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def num_pages(self) -> int:
        """How many data pages there are; 1 without an offset index."""
        return len(self.locations)

    @property
    def offsets(self) -> np.ndarray:
        """Where the header of each page begins in the file."""
        return self.locations[:, PAGE_OFFSET]

    @property
    def sizes(self) -> np.ndarray:
        """The bytes of each page, with its header."""
        return self.locations[:, PAGE_SIZE]

    @property
    def first_rows(self) -> np.ndarray:
        """The first row of each page, within the row group."""
        return self.locations[:, PAGE_ROW]

    @property
    def dictionary(self) -> tuple[int, int] | None:
        """Where the dictionary page lies: between the start of the chunk and its first data page. None without."""
        first = int(self.offsets[0]) if self.num_pages else self.end
        return (self.start, first) if self.is_indexed and self.num_pages and first > self.start else None

    @property
    def is_complete(self) -> bool:
        """Whether the data pages touch, up to the end of the chunk: else one of them may have been left out."""
        ends = self.offsets + self.sizes
        apart = np.count_nonzero(ends[:-1] != self.offsets[1:])
        return bool(self.num_pages and ends[-1] == self.end and not apart)

    @property
    def located(self) -> np.ndarray:
        """The pages as kernels take them, int64 of shape (pages, LOCATED_FIELDS); the dictionary first, if any."""
        found = self._located
        if found is None:
            found = _page_table(self)
            object.__setattr__(self, "_located", found)
        return found

    # --- rows to pages, and back -------------------------------------------------------------------------------------

    def needed(self, rows: RowRanges) -> np.ndarray:
        """Give the pages that hold some rows.

        Parameters
        ----------
        rows : RowRanges
            Within the row group.

        Returns
        -------
        int64 array
            Their ordinals, growing. An empty page is among them where the page behind it is: whether it is empty, or
            begins a row that goes on in the next one as some writers have it, the index does not tell.
        """
        if rows.stop > self.num_rows:
            raise ValueError(f"the rows go up to {rows.stop:,}, and the row group has {self.num_rows:,}")
        if len(rows) == 1:
            return np.arange(*self.pages_in_range(*rows.bounds[0].tolist()))
        before = rows.stops.searchsorted(self.first_rows, side="right")
        return (rows.starts.searchsorted(self.row_stops, side="left") > before).nonzero()[0]

    def pages_in_range(self, start: int, stop: int) -> tuple[int, int]:
        """Give the first page that holds any of some rows, and the one behind the last, as `needed` does.

        Parameters
        ----------
        start, stop : int
            Within the row group: the first row, and the one behind the last.
        """
        first = bisect_right(self.row_stops, start)
        return first, max(bisect_left(self.first_rows, stop), first)

    def page_table_in_range(self, start: int, stop: int) -> np.ndarray:
        """Give the pages that hold a run of rows, as `located` has them, the dictionary among them; rows as above."""
        located, (first, last) = self.located, self.pages_in_range(start, stop)
        if len(located) == len(self.locations):
            return located[first:last]
        return located[np.concatenate([[0], np.arange(first + 1, last + 1)])] if last > first else located[:0]

    def rows_of(self, pages: Any) -> RowRanges:
        """Give the rows that some pages hold.

        Parameters
        ----------
        pages : int or bool array
            Ordinals in any order, or a mask over all pages: those that may hold what a filter looks for.

        Returns
        -------
        RowRanges
        """
        pages = np.asarray(pages)
        if pages.dtype != np.bool_:
            pages = np.sort(pages.astype(np.intp))
        starts, stops = self.first_rows[pages], self.row_stops[pages]
        is_one = len(starts) == 1 and stops[0] > starts[0]
        return RowRanges.run(int(starts[0]), int(stops[0])) if is_one else RowRanges.in_order(starts, stops)

    def byte_ranges(self, pages: np.ndarray) -> np.ndarray:
        """Give the bytes that are needed to decode some pages.

        Parameters
        ----------
        pages : int64 array
            Their ordinals, growing.

        Returns
        -------
        int64 array, (n, 2)
            First byte, and the byte behind the last, in the file: of the dictionary page if there is one and any page
            is needed, then of each page.
        """
        dictionary = self.dictionary if len(pages) else None
        first = int(dictionary is not None)
        found = np.empty((first + len(pages), 2), np.int64)
        if dictionary is not None:
            found[0] = dictionary
        found[first:, 0] = self.offsets[pages]
        found[first:, 1] = found[first:, 0] + self.sizes[pages]
        return found

    def num_bytes(self, rows: RowRanges) -> int:
        """Give how many bytes are needed for some rows."""
        if not rows:
            return 0
        if not self.is_indexed:
            return self.end - self.start
        pages = self.needed(rows)
        start, stop = self.dictionary or (0, 0)
        return int(self.sizes[pages].sum()) + (stop - start if len(pages) else 0)

    # --- as a value --------------------------------------------------------------------------------------------------

    def _key(self) -> tuple:
        return self.start, self.end, self.num_rows, self.is_indexed, self.locations.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkPages) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


# What fills a field of one that is frozen; faster than object.__setattr__.
_SETTERS = tuple(getattr(ChunkPages, entry.name).__set__ for entry in fields(ChunkPages))

DICTIONARY_PAGE_ORDINAL = -1


def _page_table(chunk: ChunkPages) -> np.ndarray:
    """Give pages as kernels take them; of those that begin with the same row, all but the last have none."""
    dictionary = chunk.dictionary
    first = int(dictionary is not None)
    table = np.empty((first + chunk.num_pages, LOCATION_FIELDS), np.int64)
    if dictionary is not None:
        table[0] = *dictionary, -1, 0, 0
    pages = table[first:]
    pages[:, L_START], pages[:, L_ROW] = chunk.offsets, chunk.first_rows
    pages[:, L_END] = chunk.offsets + chunk.sizes
    pages[:-1, L_ROWS] = chunk.first_rows[1:] - chunk.first_rows[:-1]
    pages[-1:, L_ROWS] = chunk.num_rows - chunk.first_rows[-1:]
    pages[:, L_IN_CHUNK] = np.arange(first, first + chunk.num_pages)
    table.flags.writeable = False
    return table


def _row_stops(first_rows: np.ndarray, num_rows: int) -> np.ndarray:
    """Give for each page the next row that a page begins with, pages with the same first row passed over."""
    begins = np.empty(len(first_rows) + 1, np.int64)
    begins[:-1], begins[-1] = first_rows, num_rows
    if np.count_nonzero(begins[1:] > begins[:-1]) == len(first_rows):
        return begins[1:]
    return begins[np.minimum(np.searchsorted(begins, first_rows, side="right"), len(first_rows))]


def _check_offsets(start: int, end: int, offsets: np.ndarray, sizes: np.ndarray) -> None:
    """Hold where pages are against the chunk; a sum or difference that overflows is of one that does not lie in it."""
    inside = (offsets >= start) & (offsets < end) & (sizes > 0) & (sizes <= end - offsets)
    _check_pages(inside, "the offset index has a page that is not within the column chunk")
    apart = offsets[:-1] + sizes[:-1] <= offsets[1:]
    _check_pages(apart, "the offset index has a page that begins before the end of the one before", 1)


def _check_rows(first_rows: np.ndarray, num_rows: int) -> None:
    if not len(first_rows):
        if num_rows:
            raise InvalidFileError(f"the column chunk has no pages, and its row group has {num_rows:,} rows")
        return
    if first_rows[0] != 0:
        raise InvalidFileError(f"the offset index has the first page begin with row {first_rows[0]:,}", page=0)
    grows = first_rows[1:] >= first_rows[:-1]
    _check_pages(grows, "the offset index has a page whose first row is before that of the page before", 1)
    if first_rows[-1] > num_rows:
        _check_pages(
            first_rows <= num_rows, "the offset index has a page that begins behind the last row of the row group"
        )


def _check_chunks(starts: np.ndarray, ends: np.ndarray) -> None:
    """Raise where a column chunk ends before it begins. Of nulls only, it may have no bytes."""
    if (ends < starts).any():
        raise InvalidFileError("a column chunk ends before it begins")


def _check_pages(good: np.ndarray, message: str, first: int = 0) -> None:
    """Raise for the first page that is not good; `first` is the ordinal of that of the first item."""
    if np.count_nonzero(good) < len(good):
        raise InvalidFileError(message, page=first + int(np.argmin(good)))
