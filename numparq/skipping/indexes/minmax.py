"""MinMax: the least and the greatest value of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from numparq.expr.expression import Expression
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.sort_keys import KeyDomain
from numparq.format.column_order import leaf_order
from numparq.format.page_index import UNKNOWN
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.prune.match import predicate_may_match
from numparq.prune.statistics import PruningStatistics

from .bind_values import bind_tests
from .cell_values import CellValues, cell_values
from .index import Cells, unwrap_test

_FIRST_AFTER_SURROGATES, _FIRST_SUPPLEMENTARY = 0xEE, 0xF0  # lead bytes in UTF-8 of U+E000 and U+10000
# Files that Xskipper cannot have taken bounds of footers from.
_WITHOUT_FOOTERS = (".csv", ".json", ".orc", ".avro", ".txt")


class CellBounds:
    """Bounds of many files, as statistics of containers.

    Attributes
    ----------
    leaf : Leaf
        Leaf to bind predicates to.
    statistics : PruningStatistics
        One container a cell.
    says_nothing : bool array
        Cells that tell nothing of their files.
    """

    def __init__(self, leaf: Leaf, domain: KeyDomain, statistics: PruningStatistics, says_nothing: np.ndarray) -> None:
        self.leaf, self.domain = leaf, domain
        self.statistics, self.says_nothing = statistics, says_nothing


class MinMaxCells:
    """Answers predicates by least and greatest values."""

    cost: ClassVar[int] = 0

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return which files may match all tests; see `CellReader`."""
        bounds = read_bounds(cells)
        may: np.ndarray = np.ones(cells.count, np.bool_)
        if bounds is None:
            return may
        values = []
        for test in tests:
            predicate, negated = unwrap_test(test)
            if predicate.op != "is null":
                values.append(test)
            elif negated:
                may &= ~bounds.statistics.all_null
        if values:
            meanings = np.zeros(cells.count, np.bool_)
            for predicates in bind_tests(values, bounds.leaf, bounds.domain):
                matches = np.ones(cells.count, np.bool_)
                for bound in predicates:
                    matches &= predicate_may_match(bound, bounds.statistics)
                meanings |= matches
            may &= meanings
        may |= bounds.says_nothing
        return may


def read_bounds(cells: Cells) -> CellBounds | None:
    """Return the bounds in cells; None if their columns are not two leaves of one type."""
    leaves = {leaf.path[1:]: leaf for leaf in cells.rows.part.leaves(cells.index.column)}
    if set(leaves) != {("min",), ("max",)}:
        return None
    low, high = leaves[("min",)], leaves[("max",)]
    if low.max_repetition_level or high.max_repetition_level:
        return None
    if (low.physical, low.type_length, low.logical) != (high.physical, high.type_length, high.logical):
        return None
    first, last = (cell_values(leaf, cells.rows.column(leaf, cells.chosen), cells.is_local) for leaf in (low, high))
    if (first.leaf.physical, first.leaf.logical) != (last.leaf.physical, last.leaf.logical):
        return None  # INT96 of which one column has values beyond the range of nanoseconds
    return _BoundsReader(cells, first, last).bounds()


class _BoundsReader:
    """Reads the bounds of cells by the rules for missing, contradictory and doubtful ones."""

    def __init__(self, cells: Cells, low: CellValues, high: CellValues) -> None:
        self._cells, self._low, self._high = cells, low, high
        self._has_low, self._has_high = (_codes(each.vector) >= 0 for each in (low, high))
        self.count = cells.count

    def bounds(self) -> CellBounds:
        """Return the bounds."""
        low, high, domain = self._low, self._high, self._low.domain
        no_values = ~self._has_low & ~self._has_high & ~self._is_null()
        nothing = self._has_low ^ self._has_high
        nothing |= self._is_null()
        nothing |= self._is_doubtful()
        may_have_nan = np.zeros(self.count, np.bool_)
        has_high = self._has_high.copy()
        if domain.is_float:
            first, last = self._number(low, self._has_low), self._number(high, self._has_high)
            nothing |= np.isnan(first) & self._has_low
            may_have_nan = np.isnan(last) & self._has_high
            has_high &= ~may_have_nan
            with np.errstate(invalid="ignore"):
                nothing |= first > last
        if self._cells.rows.part.is_from_footers:
            doubted = self._may_be_from_footers()
            nothing |= doubted & (no_values | domain.is_float)
        no_values &= ~nothing
        statistics = self._statistics(self._has_low & ~nothing, has_high & ~nothing, no_values, may_have_nan | nothing)
        return CellBounds(low.leaf, domain, statistics, nothing)

    def _is_null(self) -> np.ndarray:
        """Return which structs are null."""
        there = self._low.vector.levels.get(1)
        return np.zeros(self.count, np.bool_) if there is None else ~np.asarray(there, np.bool_)

    def _is_doubtful(self) -> np.ndarray:
        doubtful = np.zeros(self.count, np.bool_)
        for each in (self._low, self._high):
            if each.is_doubtful is not None:
                codes = _codes(each.vector)
                doubtful |= (codes >= 0) & each.is_doubtful[np.maximum(codes, 0)]
        return doubtful

    def _number(self, each: CellValues, exists: np.ndarray) -> np.ndarray:
        """Return floats, one a cell; 0 where there is none."""
        values = each.vector.values
        if not len(values):
            return np.zeros(self.count)
        return np.where(exists, values[np.maximum(_codes(each.vector), 0)], 0).astype(np.float64)

    def _may_be_from_footers(self) -> np.ndarray:
        """Return which cells are of files that may be Parquet."""
        names = self._cells.rows.object_names
        if self._cells.chosen is not None:
            names = [names[at] for at in self._cells.chosen.indices().tolist()]
        return np.array(
            [name is None or not name.rpartition("#")[0].endswith(_WITHOUT_FOOTERS) for name in names], np.bool_
        )

    def _statistics(
        self, has_low: np.ndarray, has_high: np.ndarray, no_values: np.ndarray, may_have_nan: np.ndarray
    ) -> PruningStatistics:
        leaf = self._low.leaf
        low, high = _plain(self._low, has_low), _plain(self._high, has_high)
        if leaf.physical == BYTE_ARRAY and self._low.domain.kind == "bytes":
            low, high = _widen(*low, False), _widen(*high, True)
        data = np.concatenate([low[0], high[0]])
        highs = np.where(high[1][:, :1] >= 0, high[1] + [len(low[0]), 0], UNKNOWN)
        unknown = np.full(self.count, UNKNOWN, np.int64)
        return PruningStatistics(
            data,
            low[1],
            highs,
            unknown,
            unknown,
            np.where(may_have_nan, UNKNOWN, 0),
            no_values,
            np.ones(self.count, np.bool_),
            leaf_order(replace(leaf, path=("value",))),
        )


def _codes(vector: ColumnVector) -> np.ndarray:
    """Return the position of each cell's value among the values of a struct's field; negative for a null."""
    assert vector.codes is not None
    return vector.codes


def _plain(each: CellValues, exists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of bounds, and position and length of each; position UNKNOWN where there is none."""
    vector, codes = each.vector, np.maximum(_codes(each.vector), 0).astype(np.int64)
    bounds = np.full((len(codes), 2), UNKNOWN, np.int64)
    if vector.offsets is not None:
        starts, ends = vector.string_bounds()
        if len(starts):
            bounds[exists] = np.stack([starts[codes], ends[codes] - starts[codes]], axis=1)[exists]
        return vector.values, bounds
    values = np.ascontiguousarray(vector.values)
    width = each.leaf.type_length or each.domain.width if values.dtype == np.uint8 else values.dtype.itemsize
    bounds[exists] = np.stack([codes * width, np.full(len(codes), width)], axis=1)[exists]
    return values.view(np.uint8), bounds


def _widen(data: np.ndarray, bounds: np.ndarray, is_high: bool) -> tuple[np.ndarray, np.ndarray]:
    """Widen bounds in Java's order of strings, by UTF-16 units, to bounds in the order of bytes.

    That order has characters beyond U+FFFF before those from U+E000 on. An upper bound ends before the first one from
    U+E000 to U+FFFF, and then has anything; a lower one before the first beyond U+FFFF, and then has bytes from EE.
    """
    if not (data >= _FIRST_AFTER_SURROGATES).any():
        return data, bounds
    added = bytearray()
    bounds = bounds.copy()
    for cell in np.flatnonzero(bounds[:, 0] >= 0).tolist():
        start, length = bounds[cell].tolist()
        text = data[start : start + length].tobytes()
        cut = next((at for at, byte in enumerate(text) if _is_cut(byte, is_high)), None)
        if cut is not None:
            bound = text[:cut] + (b"\xff" if is_high else bytes([_FIRST_AFTER_SURROGATES]))
            bounds[cell] = len(data) + len(added), len(bound)
            added += bound
    return np.concatenate([data, np.frombuffer(bytes(added), np.uint8)]), bounds


def _is_cut(byte: int, is_high: bool) -> bool:
    """Whether a bound is cut before a character with this lead byte."""
    if is_high:
        return _FIRST_AFTER_SURROGATES <= byte < _FIRST_SUPPLEMENTARY
    return byte >= _FIRST_SUPPLEMENTARY
