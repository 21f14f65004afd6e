"""Decoded values of one page or dictionary, and their distinct count."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from numparq.format.bloom_filter import hash_values
from numparq.format.physical_type import BOOLEAN, DOUBLE, FLOAT, INT32, INT64
from numparq.format.schema import Leaf
from numparq.kernels.tables import SLACK

__all__ = ["VALUE_DTYPES", "PageDictionary", "PageValues"]

# Dtypes of values by physical type; others are bytes.
VALUE_DTYPES = {INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}


@dataclass(frozen=True)
class PageDictionary:
    """Decoded values of a dictionary page; arrays as in `PageValues`."""

    values: np.ndarray
    starts: np.ndarray | None
    ends: np.ndarray | None
    count: int

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
        Levels of each entry; None if the schema has none.
    num_entries, num_rows, num_values : int
        Entries, entries that begin a row, and non-null values.
    values, starts, ends, codes
        Non-null values as in `numparq.column.leaf_values.LeafValues`; with `codes`, the dictionary's.
    num_trailing_bytes : int
        Trailing bytes after the values, as far as known.
    deviations : list of (str, str)
        Check and message of defects that did not prevent decoding.
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
    num_trailing_bytes: int = 0
    deviations: list[tuple[str, str]] = field(default_factory=list)


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
