"""The page index of a column chunk (PageIndex.md): ColumnIndex and OffsetIndex, built and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from numparq.kernels.thrift.encode import ABSENT

from .column_order import ColumnOrder
from .statistics import PageStatistics
from .thrift.decode import read_record
from .thrift.layout import ThriftLayout, thrift_layout
from .thrift.templates import StructRecords, StructTemplate

if TYPE_CHECKING:
    from .size_statistics import PageSizeStatistics

UNORDERED, ASCENDING, DESCENDING = range(3)  # BoundaryOrder

# Columns of page locations.
PAGE_OFFSET, PAGE_SIZE, PAGE_ROW = range(3)

UNKNOWN = -1  # count or position

_COLUMN_INDEX_FIELDS = ("null_pages", "min_values", "max_values", "boundary_order", "null_counts", "nan_counts")
_BOUNDARY_ORDERS = range(3)

_LOCATION = {PAGE_OFFSET: "offset", PAGE_SIZE: "compressed_page_size", PAGE_ROW: "first_row_index"}


@lru_cache(maxsize=1)
def column_index_template() -> StructTemplate:
    """Return the template of the records of `ColumnIndexWriter`."""
    return StructTemplate(
        "ColumnIndex",
        (
            "null_pages",
            "min_values",
            "max_values",
            "boundary_order",
            "null_counts",
            "repetition_level_histograms",
            "definition_level_histograms",
            "nan_counts",
        ),
    )


@lru_cache(maxsize=1)
def offset_index_template() -> StructTemplate:
    """Return the template of the records of `add_offset_index`."""
    return StructTemplate("OffsetIndex", ("page_locations", "unencoded_byte_array_data_bytes"))


def add_offset_index(records: StructRecords, locations: Sequence[int], byte_counts: Sequence[int] | None) -> None:
    """Add an OffsetIndex.

    `locations` has offset, size in bytes (header included) and first row of each data page, one page after another.
    """
    records.words += (len(records.items), len(locations) // 3)
    records.items += locations
    records.words += _list_words(byte_counts, records.items)


class ColumnIndexWriter:
    """Adds the ColumnIndex structs of consecutive column chunks to records; their lists lie together."""

    def __init__(self, records: StructRecords, pages: PageStatistics, sizes: PageSizeStatistics) -> None:
        bounds, items, strings = pages.bounds, records.items, records.strings
        self._words, self._order, self._pages = records.words, bounds.order, pages
        self._is_unknown = [  # a page of only NaNs under the type's order, or a maximum that cannot be cut
            bool(values) and (low is None or high is None)
            for low, high, values in zip(pages.min_values, pages.max_values, bounds.num_values, strict=True)
        ]
        self._has_none = bounds.order.kind == "none"
        # For each list of the struct but the boundary order: its first item, and the items of a page.
        self._lists: list[tuple[int, int]] = []
        self._add([not values for values in bounds.num_values], items, 1)
        for bound in (pages.min_values, pages.max_values):
            self._add([word for value in bound for word in strings.add(value or b"")], items, 2)
        self._add(pages.null_counts, items, 1)
        for histograms in (sizes.repetition_histograms, sizes.definition_histograms):
            width = 0 if histograms is None else histograms.shape[1]
            self._add(None if histograms is None else histograms.reshape(-1).tolist(), items, width)
        self._add(bounds.nan_counts, items, 1)

    def _add(self, values: Sequence[int] | None, items: list[int], width: int) -> None:
        self._lists.append((ABSENT, 0) if values is None else (len(items), width))
        items += values or ()

    def add(self, first: int, last: int) -> bool:
        """Add the ColumnIndex of pages `first` to `last` (exclusive), unless the column chunk can have none.

        That is a type without order, or a page with values but without a bound.
        """
        count = last - first
        if self._has_none or (self._is_unknown[first] if count == 1 else any(self._is_unknown[first:last])):
            return False
        nulls, (lows, _), (highs, _), *others = self._lists
        order, pages = ASCENDING, self._pages
        if count > 1:
            order = boundary_order(self._order, *_present(pages.min_values[first:last], pages.max_values[first:last]))
        self._words += (nulls[0] + first, count, lows + 2 * first, count, highs + 2 * first, count, order)
        for start, width in others:
            self._words += (start + first * width, count * width) if width else (ABSENT, 0)
        return True


def _list_words(values: Sequence[int] | None, items: list[int]) -> tuple[int, int]:
    """Return the words of a list of integers; append them to the items."""
    if values is None:
        return ABSENT, 0
    items += values
    return len(items) - len(values), len(values)


def _present(lows: list[bytes | None], highs: list[bytes | None]) -> tuple[list[bytes], list[bytes]]:
    return [low for low in lows if low is not None], [high for high in highs if high is not None]


def boundary_order(order: ColumnOrder, min_values: Sequence[bytes], max_values: Sequence[bytes]) -> int:
    """Return the BoundaryOrder of written bounds, null pages left out; ASCENDING if there are none or all are equal."""
    if len(min_values) < 2 and len(max_values) < 2:
        return ASCENDING
    lows, highs = [order.sort_key(low) for low in min_values], [order.sort_key(high) for high in max_values]
    if all(a <= b for keys in (lows, highs) for a, b in pairwise(keys)):
        return ASCENDING
    return DESCENDING if all(a >= b for keys in (lows, highs) for a, b in pairwise(keys)) else UNORDERED


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndex:
    """A decoded ColumnIndex; all lists have the same length.

    Attributes
    ----------
    data : uint8 array
        Bytes that hold the bounds.
    null_pages : bool array
        Pages declared to hold only nulls.
    lows, highs : int64 array, (pages, 2)
        Position and length of each bound in `data`.
    null_counts, nan_counts : int64 array
        `UNKNOWN` if the index lacks them.
    """

    data: np.ndarray
    null_pages: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    null_counts: np.ndarray
    nan_counts: np.ndarray

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> ColumnIndex | None:
        """Decode a ColumnIndex of at most `length` bytes; `data` has SLACK readable bytes after them.

        None if its lists differ in length or its boundary order is unknown; InvalidFileError if it is no ColumnIndex.
        """
        wanted = thrift_layout("ColumnIndex", *_COLUMN_INDEX_FIELDS)
        words = read_record(data, length, wanted)
        heads = words[: wanted.words].tolist()

        def elements(name: str, width: int = 1) -> np.ndarray:
            """Return a list's elements, byte strings as position and length; empty if it is absent."""
            slot = wanted.slot(name)
            first, count = max(heads[slot], 0), heads[slot + 1]
            found = words[first : first + count * width].copy()  # a view would keep all decoded words alive
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
    def concatenate(cls, indexes: Sequence[ColumnIndex]) -> ColumnIndex:
        """Concatenate the indexes of one or more column chunks."""
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
    """A decoded OffsetIndex; `locations` and `needs_dictionary` are as in `ChunkPages`, but unchecked."""

    __slots__ = ("locations", "needs_dictionary")

    def __init__(self, locations: np.ndarray, needs_dictionary: np.ndarray | None = None) -> None:
        self.locations = locations
        unknown = np.full(len(locations), UNKNOWN, np.int8) if needs_dictionary is None else needs_dictionary
        self.needs_dictionary: np.ndarray = unknown

    @classmethod
    def read(cls, data: np.ndarray, length: int) -> OffsetIndex:
        """Decode an OffsetIndex of at most `length` bytes; InvalidFileError if it is none."""
        wanted, slot, width, slots = _offset_index_layout()
        words = read_record(data, length, wanted)
        first, count = words[slot : slot + 2].tolist()
        first = max(first, 0)
        return cls(words[first : first + count * width].reshape(count, width)[:, slots])

    def is_one_page(self, start: int, end: int) -> bool:
        """Whether it has a single page, which covers the bytes from `start` to `end` (exclusive)."""
        if len(self.locations) != 1:
            return False
        first, size, row = self.locations[0].tolist()
        return bool(row == 0 and start <= first < first + size == end)


@lru_cache(maxsize=1)
def _offset_index_layout() -> tuple[ThriftLayout, int, int, list[int]]:
    """Return the layout, the slot of its list, the words of a PageLocation, and the words to take."""
    wanted = thrift_layout("OffsetIndex", *(f"page_locations.{name}" for name in _LOCATION.values()))
    record = wanted.record_layout("page_locations")
    slots = [record.slots[_LOCATION[column]].word for column in sorted(_LOCATION)]
    return wanted, wanted.slot("page_locations"), record.words, slots
