"""Decoded values of one page or dictionary, their distinct count, and the headers of their DELTA sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from numparq.format.bloom_filter import hash_values
from numparq.format.physical_type import BOOLEAN, DOUBLE, FLOAT, INT32, INT64
from numparq.format.schema import Leaf
from numparq.kernels.tables import SLACK

from .level_runs import RemovedEntries

_MAX_BLOCKS = 1 << 16  # per page; later blocks are not checked

_LEVELS_COUNTED = 1 << 20  # levels at once: np.bincount makes 8 bytes of each
# Dtypes of values by physical type; others are bytes.
VALUE_DTYPES = {INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}


@dataclass(frozen=True)
class PageDictionary:
    """Decoded values of a dictionary page; arrays as in `PageValues`. `num_unread` bytes follow the last one."""

    values: np.ndarray
    starts: np.ndarray | None
    ends: np.ndarray | None
    count: int
    num_unread: int = 0

    @cached_property
    def codes(self) -> np.ndarray:
        """All codes in order, as padded bytes for the lookup kernel."""
        codes = np.zeros(self.count + SLACK // 4, np.int32)
        codes[: self.count] = np.arange(self.count)
        return codes.view(np.uint8)


@dataclass
class PageValues:
    """Decoded values of a data page.

    Attributes
    ----------
    definition_levels, repetition_levels : uint8 array, or None
        Levels of each entry that was not removed; None if the schema has none.
    num_entries, num_rows, num_values : int
        Entries, entries that begin a row, and non-null values.
    values, starts, ends, codes
        Non-null values as in `numparq.column.leaf_values.LeafValues`; with `codes`, the dictionary's.
    deviations : list of (str, str)
        Check and message of defects that did not prevent decoding.
    removed : list of RemovedEntries
        Entries of long runs that the levels lack, and the counts have.
    """

    definition_levels: np.ndarray | None
    repetition_levels: np.ndarray | None
    num_entries: int
    num_rows: int
    num_values: int
    values: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    codes: np.ndarray | None = None
    deviations: list[tuple[str, str]] = field(default_factory=list)
    removed: list[RemovedEntries] = field(default_factory=list)

    def definition_histogram(self, most: int) -> list[int]:
        """Return the number of entries of each definition level, 0 to `most`."""
        return self._histogram(self.definition_levels, most, [(run.definition, run.number) for run in self.removed])

    def repetition_histogram(self, most: int) -> list[int]:
        """Return the number of entries of each repetition level, 0 to `most`."""
        return self._histogram(self.repetition_levels, most, [(run.repetition, run.number) for run in self.removed])

    def _histogram(self, levels: np.ndarray | None, most: int, removed: list[tuple[int, int]]) -> list[int]:
        if levels is None:
            return [self.num_entries]
        total = np.zeros(most + 1, np.int64)
        for start in range(0, len(levels), _LEVELS_COUNTED):
            total += np.bincount(levels[start : start + _LEVELS_COUNTED], minlength=most + 1)
        for level, count in removed:
            total[level] += count
        return total.tolist()


class DistinctValueCounter:
    """Counts the distinct values of a chunk, page by page; floats by their bits."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf
        self._hashes: list[np.ndarray] = []

    def __call__(self, page: PageValues) -> None:
        """Add the values of a page."""
        if self._leaf.physical == BOOLEAN:
            hashes = page.values.astype(np.uint64)
        else:
            hashes = hash_values(self._leaf, page.values, page.starts, page.ends)
        used = page.codes if page.codes is not None else slice(None)
        self._hashes.append(np.unique(hashes[used]))

    @property
    def count(self) -> int:
        """Number of distinct values."""
        return len(np.unique(np.concatenate(self._hashes))) if self._hashes else 0


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while pos < len(data):
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        pos, shift = pos + 1, shift + 7
        if byte < 0x80 or shift > 63:
            break
    return value, pos


def first_delta_value(data: bytes) -> int:
    """Return the first value of a section that could be decoded; 0 if it is empty."""
    pos, numbers = 0, []
    for _ in range(4 if data else 0):
        number, pos = _varint(data, pos)
        numbers.append(number)
    return numbers[3] >> 1 ^ -(numbers[3] & 1) if numbers and numbers[2] else 0


def max_delta_bits(data: bytes) -> int:
    """Return the largest bit width of the deltas of a section that could be decoded."""
    if not data:
        return 0
    block, pos = _varint(data, 0)
    miniblocks, pos = _varint(data, pos)
    total, pos = _varint(data, pos)
    _, pos = _varint(data, pos)
    each, left, widest = max(block // max(miniblocks, 1), 1), total - 1, 0
    for _ in range(_MAX_BLOCKS):
        if left <= 0 or pos >= len(data):
            break
        _, pos = _varint(data, pos)
        used = min(-(-left // each), miniblocks)  # widths of unused miniblocks are arbitrary
        widths = data[pos : pos + used]
        widest = max([widest, *widths])
        pos += miniblocks + sum((each * width + 7) >> 3 for width in widths)
        left -= block
    return widest
