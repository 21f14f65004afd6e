"""What the values of a column chunk are, or the entries of its dictionary: counted, hashed, their bounds and order."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...predicate.domain import domain_of
from ...predicate.values import Values
from ...schema import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, Leaf
from ...statistics import order_of, page_bounds
from .hashing import hash_stored
from .kinds import Kind
from .sketch import DistinctSketch

__all__ = ["ChunkValues", "summary"]

_NS_OF_US = 1000


class ChunkValues(NamedTuple):
    """What is known of values.

    Attributes
    ----------
    present : int
        How many there are, without nulls; of a dictionary its entries.
    nans : int
        How many of them are NaN.
    low, high : key or None
        The smallest and the largest one; None where there are none but NaNs, or the type has no order.
    sketch : DistinctSketch
        Of those that are no NaN.
    in_order : bool or None
        Whether none is less than the one before; None of lists, of dictionaries, and where there is no order.
    text_bytes : int
        Bytes of all of them, of BYTE_ARRAY.
    shortest, longest : int or None
        Likewise.
    """

    present: int
    nans: int
    low: Any
    high: Any
    sketch: DistinctSketch
    in_order: bool | None
    text_bytes: int = 0
    shortest: int | None = None
    longest: int | None = None


def summary(leaf: Leaf, kind: Kind, values: Values, *, is_dictionary: bool = False) -> ChunkValues:
    """Say what values are.

    Parameters
    ----------
    leaf : Leaf
        Their column.
    kind : Kind
        What it has.
    values : Values
        As they are stored: those of a chunk, or the entries of its dictionary.
    is_dictionary : bool
        Whether they are entries, which have no order among rows.

    Returns
    -------
    ChunkValues
    """
    found = _Present(leaf, values)
    order = "numbers" if found.values.dtype.kind == "M" else order_of(leaf).kind
    keep = ~np.isnan(found.numbers) if kind.keys == "float64" else None
    nans = 0 if keep is None else int((~keep).sum() if found.codes is None else (~keep)[found.codes].sum())
    low, high = (None, None) if order == "none" else _bounds(leaf, kind, found, keep)
    hashed = found.values if keep is None or keep.all() else found.numbers[keep].view(found.values.dtype)
    sketch = DistinctSketch.of(hash_stored(leaf, kind, hashed, found.starts, found.ends))
    asks_order = not (is_dictionary or leaf.max_repetition_level or order == "none")
    in_order = _in_order(leaf, kind, found, keep) if asks_order else None
    return ChunkValues(found.count, nans, low, high, sketch, in_order, *found.lengths())


class _Present:
    """The values that there are, without nulls; of coded ones the entries that are named, and the one of each value."""

    def __init__(self, leaf: Leaf, found: Values) -> None:
        self._leaf = leaf
        self.codes: np.ndarray | None = None
        self.starts: np.ndarray | None = None
        self.ends: np.ndarray | None = None
        self.values = found.values
        is_binary = leaf.physical == BYTE_ARRAY
        offsets = None if found.offsets is None else np.asarray(found.offsets, np.int64)
        if is_binary:
            assert offsets is not None
            self.starts, self.ends = offsets[:-1], offsets[1:]
        if leaf.is_nested:  # whose values are those that there are
            pass
        elif found.codes is not None:
            self._take_named(found.codes)
        elif found.validity is not None:
            there = np.asarray(found.validity[: self._items], np.bool_)
            if is_binary:
                assert self.starts is not None and self.ends is not None
                self.starts, self.ends = self.starts[there], self.ends[there]
            else:
                self.values = self._rows()[there]
        if not is_binary:
            self.values = np.ascontiguousarray(self._rows()).reshape(-1)
        self.count = self._items if self.codes is None else len(self.codes)

    def _take_named(self, codes: np.ndarray) -> None:
        """Keep the entries that codes name, and the codes as numbers of these."""
        assert self.starts is not None and self.ends is not None
        named = np.bincount(codes[codes >= 0], minlength=len(self.starts)) > 0
        self.codes = (np.cumsum(named) - 1)[codes[codes >= 0]]
        self.starts, self.ends = self.starts[named], self.ends[named]

    def _rows(self) -> np.ndarray:
        """Give values of a fixed size an item each."""
        values = self.values
        if self._leaf.physical == FIXED_LEN_BYTE_ARRAY and values.dtype == np.uint8:
            return values.view(f"V{self._leaf.type_length}") if self._leaf.type_length else values
        return values

    @property
    def _items(self) -> int:
        return len(self.starts) if self.starts is not None else len(self._rows())

    @property
    def numbers(self) -> np.ndarray:
        """The values, of types that are numbers to NumPy, as such."""
        values, leaf = self.values, self._leaf
        if leaf.physical == FIXED_LEN_BYTE_ARRAY:
            return values.view("<f2")
        if values.dtype.kind == "M":
            return values.view(np.int64)
        is_unsigned = leaf.logical is not None and leaf.logical.kind == "INTEGER" and not leaf.logical.signed
        return values.view("u4" if leaf.physical == INT32 else "u8") if is_unsigned else values

    def lengths(self) -> tuple[int, int | None, int | None]:
        """Give the bytes of all values together, of the shortest and of the longest one."""
        if self.starts is None or self.ends is None or not len(self.starts):
            return 0, None, None
        lengths = self.ends - self.starts
        total = lengths.sum() if self.codes is None else lengths[self.codes].sum()
        return int(total), int(lengths.min()), int(lengths.max())

    def plain(self) -> Iterator[bytes]:
        """Give each value of bytes; of coded ones each entry."""
        if self.starts is None or self.ends is None:
            yield from (bytes(item) for item in self.values.tolist())
            return
        data = memoryview(np.ascontiguousarray(self.values))  # type: ignore[arg-type]
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(data[start:end])


def _is_numeric(leaf: Leaf, found: _Present) -> bool:
    return found.values.dtype.kind == "M" or domain_of(leaf).kind in ("signed", "unsigned", "boolean", "float")


def _bounds(leaf: Leaf, kind: Kind, found: _Present, keep: np.ndarray | None) -> tuple[Any, Any]:
    """Give the keys of the smallest and the largest value."""
    if not _is_numeric(leaf, found):
        return _bounds_of_bytes(leaf, found)
    numbers = found.numbers if keep is None else found.numbers[keep]
    if not len(numbers):
        return None, None
    low, high = numbers.min().item(), numbers.max().item()
    if found.values.dtype.kind == "M" and np.datetime_data(found.values.dtype)[0] == "us":
        return low * _NS_OF_US, high * _NS_OF_US
    return (low, high) if kind.keys != "float64" else (float(low), float(high))


def _bounds_of_bytes(leaf: Leaf, found: _Present) -> tuple[Any, Any]:
    count = len(found.starts) if found.starts is not None else len(found.values)
    if not count:
        return None, None
    data = np.ascontiguousarray(found.values).view(np.uint8)
    pages = page_bounds(order_of(leaf), data, np.array([0, count], np.int64), starts=_own(found.starts),
                        ends=_own(found.ends))  # fmt: skip
    key = domain_of(leaf).key
    low, high = pages.min_values[0], pages.max_values[0]
    return (None if low is None else key(low)), (None if high is None else key(high))


def _own(places: np.ndarray | None) -> np.ndarray | None:
    return None if places is None else np.ascontiguousarray(places, np.int64)


def _in_order(leaf: Leaf, kind: Kind, found: _Present, keep: np.ndarray | None) -> bool:
    """Tell whether no value is less than the one before."""
    if _is_numeric(leaf, found):
        numbers = found.numbers if keep is None else found.numbers[keep]
        return bool((numbers[1:] >= numbers[:-1]).all())
    key = domain_of(leaf).key
    if found.codes is None:
        return all(one <= two for one, two in pairwise(map(key, found.plain())))
    ranks = _ranks([key(item) for item in found.plain()])[found.codes]
    return bool((ranks[1:] >= ranks[:-1]).all())


def _ranks(keys: Sequence[Any]) -> np.ndarray:
    """Number keys in their order, equal ones alike."""
    ranks, rank = np.zeros(len(keys), np.int64), 0
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for before, place in pairwise(order):
        rank += operator.ne(keys[before], keys[place])
        ranks[place] = rank
    return ranks
