"""GapList: intervals that hold all values of a file, between its largest gaps. An index of numparq's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from numparq.expr.expression import Expression
from numparq.format.physical_type import BYTE_ARRAY
from numparq.plan.row_ranges import RowRanges
from numparq.skipping.part import PartRows

from .bind_values import bind_tests
from .cell_values import CellValues, cell_values
from .index import Cells, unwrap_test
from .intervals import Intervals

_LIST_LEVEL = 1


class GapListCells:
    """Answers predicates by intervals."""

    cost: ClassVar[int] = 1

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return which files may match all tests; see `CellReader`."""
        may: np.ndarray = np.ones(cells.count, np.bool_)
        leaves = {leaf.path[-1]: leaf for leaf in cells.rows.part.leaves(cells.index.column)}
        if set(leaves) != {"min", "max"} or any(leaf.max_repetition_level != 1 for leaf in leaves.values()):
            return may
        low, high = (_values(cells.rows, leaves[name], cells.chosen, cells.is_local) for name in ("min", "max"))
        offsets, others = low.vector.list_offsets, high.vector.list_offsets
        if (
            offsets is None
            or others is None
            or not np.array_equal(offsets, others)
            or low.leaf.physical != high.leaf.physical
            or low.is_doubtful is not None
        ):
            return may
        if low.leaf.physical == BYTE_ARRAY or high.is_doubtful is not None:
            return may
        there = low.vector.levels.get(_LIST_LEVEL)
        nothing = np.zeros(cells.count, np.bool_) if there is None else ~np.asarray(there[: cells.count], np.bool_)
        values = [test for test in tests if unwrap_test(test)[0].op != "is null"]
        if len(values) < len(tests) and any(unwrap_test(test)[1] for test in tests if test not in values):
            may &= np.diff(offsets) > 0
        if values:
            intervals = _intervals(low, high, offsets)
            meanings = np.zeros(cells.count, np.bool_)
            for predicates in bind_tests(values, low.leaf, low.domain):
                meanings |= intervals.may_match(predicates, low.domain)
            may &= meanings
        may |= nothing
        return may


def _values(rows: PartRows, leaf: object, chosen: RowRanges | None, is_local: bool) -> CellValues:
    return cell_values(leaf, rows.column(leaf, chosen), is_local)  # type: ignore[arg-type]


def _intervals(low: CellValues, high: CellValues, offsets: np.ndarray) -> Intervals:
    first, last = (np.ascontiguousarray(each.vector.values) for each in (low, high))
    width = low.domain.width
    count = int(offsets[-1])
    starts = np.arange(count, dtype=np.int64) * width
    size = len(first.view(np.uint8))
    are_nan = np.isnan(first[:count]) | np.isnan(last[:count]) if low.domain.is_float else np.zeros(count, np.bool_)
    lengths = np.full(count, width, np.int64)
    bounds = np.stack([starts, lengths], axis=1), np.stack([starts + size, lengths], axis=1)
    data = np.concatenate([first.view(np.uint8), last.view(np.uint8)])
    return Intervals(low.leaf, data, bounds, are_nan, offsets)
