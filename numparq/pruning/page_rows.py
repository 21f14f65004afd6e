"""Column indexes held against a predicate: which rows of a row group may satisfy it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..opened import OpenedFile
from ..plan.pages import ChunkPages
from ..plan.row_group_plan import RowGroupPlan
from ..plan.row_ranges import RowRanges
from ..predicate.expression import Expression
from ..schema import Leaf
from .chunk_facts import order_in
from .indexes import Indexes
from .match import fold, may_mask
from .runs import Runs

__all__ = ["PageRows"]


class PageRows:
    """The pages of one row group, and what its column indexes say of them.

    The pages of each column hold other rows than those of the next: what a test leaves is row ranges, which are
    joined as the predicate joins its tests.

    Parameters
    ----------
    file : OpenedFile
        The file.
    indexes : Indexes
        With the indexes of the row group loaded.
    group : RowGroupPlan
        The row group.
    asked : sequence of (int, Leaf)
        The leaves of the predicate, and their places in the plan.
    """

    def __init__(
        self, file: OpenedFile, indexes: Indexes, group: RowGroupPlan, asked: Sequence[tuple[int, Leaf]]
    ) -> None:  # fmt: skip
        self._num_rows = group.num_rows
        self._known: dict[int, tuple[ChunkPages, Runs]] = {}
        for place, leaf in asked:
            pages = indexes.pages(group.chunks[place], group.ordinal, leaf.index)
            index = indexes.column_index(group.ordinal, leaf.index)
            if pages is None or index is None:
                continue
            runs = index.runs(pages, leaf, order_in(file, leaf), file.footer.created_by)
            if runs is not None:
                self._known[leaf.index] = pages, runs

    def that_may(self, bound: Expression) -> RowRanges:
        """Give the rows that may satisfy a bound expression; all of them where the indexes do not tell."""
        everything = RowRanges.all(self._num_rows)

        def answer(test: Any) -> RowRanges:
            known = self._known.get(test.leaf.index)
            if known is None:
                return everything
            pages, runs = known
            return pages.rows_of(may_mask(test, runs))

        return fold(bound, answer, lambda value: everything if value else RowRanges())
