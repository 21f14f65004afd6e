"""The page index of a column chunk: ColumnIndex and OffsetIndex (PageIndex.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.util.bounded_cache import BoundedCache

from .column_order import ColumnOrder
from .page_bounds import DEFAULT_TRUNCATE_LENGTH, PageBounds, truncate_max_value, truncate_min_value
from .thrift.decode import read_record
from .thrift.layout import ThriftLayout, thrift_layout

if TYPE_CHECKING:
    from numparq.plan.chunk_pages import ChunkPages

    from .size_statistics import PageSizeStatistics

__all__ = [
    "ASCENDING",
    "DESCENDING",
    "PAGE_OFFSET",
    "PAGE_ROW",
    "PAGE_SIZE",
    "UNKNOWN",
    "UNORDERED",
    "ColumnIndex",
    "OffsetIndex",
    "boundary_order",
    "build_column_index",
    "build_offset_index",
]

UNORDERED, ASCENDING, DESCENDING = range(3)  # BoundaryOrder

# Columns of the locations of pages.
PAGE_OFFSET, PAGE_SIZE, PAGE_ROW = range(3)

UNKNOWN = -1  # of a count, and of a position

_COLUMN_INDEX_FIELDS = ("null_pages", "min_values", "max_values", "boundary_order", "null_counts", "nan_counts")
_BOUNDARY_ORDERS = range(3)
_MAX_CACHED_STATISTICS = 2

_LOCATION = {PAGE_OFFSET: "offset", PAGE_SIZE: "compressed_page_size", PAGE_ROW: "first_row_index"}
_MAX_CACHED_PAGES = 4


def build_offset_index(
    offsets: Sequence[int],
    compressed_page_sizes: Sequence[int],
    first_row_indexes: Sequence[int],
    sizes: PageSizeStatistics | None = None,
) -> dict[str, Any]:
    """Make the OffsetIndex of a column chunk.

    Parameters
    ----------
    offsets : sequence of int
        Where the header of each data page begins in the file.
    compressed_page_sizes : sequence of int
        Bytes of each data page, its header counted.
    first_row_indexes : sequence of int
        The first row of each data page, counted within the row group.
    sizes : PageSizeStatistics, optional
        Those of its pages.

    Returns
    -------
    dict
        By the field names of the IDL.
    """
    locations = zip(offsets, compressed_page_sizes, first_row_indexes, strict=True)
    found: dict[str, Any] = {
        "page_locations": [
            {"offset": int(offset), "compressed_page_size": int(size), "first_row_index": int(row)}
            for offset, size, row in locations
        ]
    }
    if sizes is not None and sizes.byte_array_bytes is not None:
        found["unencoded_byte_array_data_bytes"] = sizes.byte_array_bytes.tolist()
    return found


def build_column_index(
    pages: PageBounds,
    null_counts: Sequence[int],
    sizes: PageSizeStatistics | None = None,
    *,
    length: int = DEFAULT_TRUNCATE_LENGTH,
) -> dict[str, Any] | None:
    """Make the ColumnIndex of a column chunk.

    Parameters
    ----------
    pages : PageBounds
        The bounds of its pages.
    null_counts : sequence of int
        The nulls of each page.
    sizes : PageSizeStatistics, optional
        Those of its pages.
    length : int
        Bytes above which bounds are cut, as in `truncate_min_value`.

    Returns
    -------
    dict or None
        By the field names of the IDL. None where there can be none: the type has no order, a page has only NaNs under
        the order of the type, or a bound that had to be cut has none that is larger.
    """
    if pages.order.kind == "none":
        return None
    null_pages = [not count for count in pages.num_values]
    lows = [_bound(low, length, pages.order, truncate_min_value) for low in pages.min_values]
    highs = [_bound(high, length, pages.order, truncate_max_value) for high in pages.max_values]
    if any(
        (low is None or high is None) and not empty for low, high, empty in zip(lows, highs, null_pages, strict=True)
    ):
        return None
    found: dict[str, Any] = {
        "null_pages": null_pages,
        "min_values": [low or b"" for low in lows],
        "max_values": [high or b"" for high in highs],
        "boundary_order": boundary_order(
            pages.order, [low for low in lows if low is not None], [high for high in highs if high is not None]
        ),
        "null_counts": [int(count) for count in null_counts],
    }
    if sizes is not None:
        for name, counts in (("repetition", sizes.repetition), ("definition", sizes.definition)):
            if counts is not None:
                found[f"{name}_level_histograms"] = counts.reshape(-1).tolist()
    if pages.nan_counts is not None:
        found["nan_counts"] = list(pages.nan_counts)
    return found


def _bound(value: bytes | None, length: int, order: ColumnOrder, truncate: Any) -> bytes | None:
    return None if value is None else truncate(value, length, order)[0]


def boundary_order(order: ColumnOrder, min_values: Sequence[bytes], max_values: Sequence[bytes]) -> int:
    """Say how the bounds of the pages of a chunk follow each other.

    Parameters
    ----------
    order : ColumnOrder
        How they compare.
    min_values, max_values : sequence of bytes
        As they are written, without those of null pages.

    Returns
    -------
    int
        ASCENDING, also where all are equal or there are none, DESCENDING or UNORDERED.
    """
    if len(min_values) < 2 and len(max_values) < 2:
        return ASCENDING
    lows, highs = [order.key(low) for low in min_values], [order.key(high) for high in max_values]
    if all(a <= b for keys in (lows, highs) for a, b in pairwise(keys)):
        return ASCENDING
    return DESCENDING if all(a >= b for keys in (lows, highs) for a, b in pairwise(keys)) else UNORDERED


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndex:
    """A ColumnIndex; all lists are known to be of the same length.

    Parameters
    ----------
    data : uint8 array
        The bytes that bounds lie in.
    null_pages : bool array
        Which pages are said to have nothing but nulls.
    lows, highs : int64 array, (pages, 2)
        Where in `data` the bounds lie, and their lengths.
    null_counts, nan_counts : int64 array
        `UNKNOWN` where the index does not tell.
    """

    data: np.ndarray
    null_pages: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    null_counts: np.ndarray
    nan_counts: np.ndarray
    cache: BoundedCache = field(default_factory=lambda: BoundedCache(_MAX_CACHED_STATISTICS), init=False, repr=False)

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> ColumnIndex | None:
        """Decode one.

        Parameters
        ----------
        data : uint8 array
            Its bytes, and SLACK readable ones behind.
        length : int
            How many may belong to it.

        Returns
        -------
        ColumnIndex or None
            None where its lists are not all of the same length, or its boundary order is none that there is.

        Raises
        ------
        InvalidFileError
            When the bytes are no ColumnIndex.
        """
        wanted = thrift_layout("ColumnIndex", *_COLUMN_INDEX_FIELDS)
        words = read_record(data, length, wanted)
        heads = words[: wanted.words].tolist()

        def elements(name: str, width: int = 1) -> np.ndarray:
            """Give those of a list, of bytes their positions and lengths; none of them where it is absent."""
            slot = wanted.slot(name)
            first, count = max(heads[slot], 0), heads[slot + 1]
            found = words[first : first + count * width].copy()  # else all of what was read for it would be kept
            return found if width == 1 else found.reshape(count, width)

        null_pages = elements("null_pages")
        count = len(null_pages)
        lows, highs = elements("min_values", 2), elements("max_values", 2)
        nulls, nans = elements("null_counts"), elements("nan_counts")
        if len(lows) != count or len(highs) != count or len(nulls) not in (0, count) or len(nans) not in (0, count):
            return None
        if heads[wanted.slot("boundary_order")] not in _BOUNDARY_ORDERS:
            return None
        unknown = np.full(count, UNKNOWN, np.int64)
        return cls(data, null_pages != 0, lows, highs, nulls if len(nulls) else unknown, nans if len(nans) else unknown)

    @classmethod
    def joined(cls, indexes: Sequence[ColumnIndex]) -> ColumnIndex:
        """Put the indexes of several chunks, at least one, behind each other."""
        if len(indexes) == 1:
            return indexes[0]
        sizes = [len(index.data) for index in indexes]
        shifts = np.repeat(np.cumsum(sizes) - sizes, [len(index.null_pages) for index in indexes])

        def moved(which: str) -> np.ndarray:
            places = np.concatenate([getattr(index, which) for index in indexes])
            places[:, 0] += np.where(places[:, 0] < 0, 0, shifts)
            return places

        data, null_pages, null_counts, nan_counts = (
            np.concatenate([getattr(index, which) for index in indexes])
            for which in ("data", "null_pages", "null_counts", "nan_counts")
        )
        return cls(data, null_pages, moved("lows"), moved("highs"), null_counts, nan_counts)


class OffsetIndex:
    """An OffsetIndex. Nothing changes it.

    Parameters
    ----------
    locations : int64 array, (pages, 3)
        As `ChunkPages` has them, not checked yet.
    """

    __slots__ = ("cache", "locations")

    def __init__(self, locations: np.ndarray) -> None:
        self.locations = locations
        self.cache = BoundedCache(_MAX_CACHED_PAGES)

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> OffsetIndex:
        """Decode one.

        Parameters
        ----------
        data : uint8 array
            Its bytes.
        length : int
            How many may belong to it.

        Raises
        ------
        InvalidFileError
            When the bytes are no OffsetIndex.
        """
        wanted, slot, width, slots = _offset_index_layout()
        words = read_record(data, length, wanted)
        first, count = words[slot : slot + 2].tolist()
        first = max(first, 0)
        return cls(words[first : first + count * width].reshape(count, width)[:, slots])

    def is_one_page(self, whole: ChunkPages) -> bool:
        """Tell whether it has one page that is all of a chunk's data."""
        if len(self.locations) != 1:
            return False
        start, size, row = self.locations[0].tolist()
        return row == 0 and whole.start <= start < start + size == whole.end


@lru_cache(maxsize=1)
def _offset_index_layout() -> tuple[ThriftLayout, int, int, list[int]]:
    """Give the layout of an OffsetIndex, where its list is, the words of a PageLocation, and which are wanted."""
    wanted = thrift_layout("OffsetIndex", *(f"page_locations.{name}" for name in _LOCATION.values()))
    record = wanted.record_layout("page_locations")
    slots = [record.slots[_LOCATION[column]].word for column in sorted(_LOCATION)]
    return wanted, wanted.slot("page_locations"), record.words, slots
