"""ValueList: the distinct values of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from numparq.expr.bound import ContainsPredicate
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import Expression

from .bind_values import bind_tests
from .cell_values import CellValues, cell_values
from .index import Cells, unwrap_test

_LIST_LEVEL = 1


class ValueListCells:
    """Answers predicates by all distinct values."""

    cost: ClassVar[int] = 1

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return which files may match all tests; see `CellReader`."""
        may: np.ndarray = np.ones(cells.count, np.bool_)
        leaves = cells.rows.part.leaves(cells.index.column)
        if len(leaves) != 1 or leaves[0].max_repetition_level != 1 or leaves[0].element_levels[1] != _LIST_LEVEL + 1:
            return may
        lists = cell_values(leaves[0], cells.rows.column(leaves[0], cells.chosen), cells.is_local)
        offsets = lists.vector.list_offsets
        if offsets is None:
            return may
        nothing = _says_nothing(lists, cells.count)
        values = []
        for test in tests:
            predicate, negated = unwrap_test(test)
            if predicate.op != "is null":
                values.append(test)
            elif negated:
                may &= np.diff(offsets) > 0
        if values:
            may &= _may_have(lists, values, cells.count)
        may |= nothing
        return may


def _may_have(lists: CellValues, tests: Sequence[Expression], count: int) -> np.ndarray:
    """Return which lists have, for each predicate that the tests are bound to, an element that matches."""
    may = np.zeros(count, np.bool_)
    for predicates in bind_tests(tests, lists.leaf, lists.domain):
        matches = np.ones(count, np.bool_)
        for bound in predicates:
            contains = ContainsPredicate(lists.leaf, _LIST_LEVEL, bound)
            matches &= evaluate(contains, {lists.leaf.index: lists.vector}, count)
        may |= matches
    return may


def _says_nothing(lists: CellValues, count: int) -> np.ndarray:
    """Return which cells are null, or have a value that an old calendar makes doubtful."""
    there = lists.vector.levels.get(_LIST_LEVEL)
    nothing = np.zeros(count, np.bool_) if there is None else ~np.asarray(there[:count], np.bool_)
    if lists.is_doubtful is not None:
        assert lists.vector.list_offsets is not None
        before = np.concatenate([[0], np.cumsum(lists.is_doubtful)])[lists.vector.list_offsets]
        nothing |= np.diff(before) > 0
    return nothing
