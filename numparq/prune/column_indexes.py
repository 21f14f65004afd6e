"""Prune rows by column indexes: row ranges of the pages that may match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.bound import combine_results
from numparq.expr.expression import Expression
from numparq.format.open_file import OpenFile
from numparq.format.page_index import ColumnIndex
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.read_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.util.bounded_cache import BoundedCache

from .index_reader import PageIndexReader
from .match import predicate_may_match
from .statistics import PruningStatistics, column_order, page_statistics

__all__ = ["ColumnIndexPruner", "LeafPageStatistics"]

_NO_ROWS = RowRanges()
_MOST_KEPT = 4


class ColumnIndexPruner:
    """The pages of row groups, and what their column indexes say of them.

    The pages of each column hold other rows than those of the next: what a test leaves is row ranges, which are
    joined as the predicate joins its tests. A test is asked of the pages of all row groups at once.

    Parameters
    ----------
    file : OpenFile
        The file.
    indexes : PageIndexReader
        With the indexes of the row groups loaded.
    groups : sequence of RowGroupPlan
        The row groups.
    asked : sequence of (int, Leaf)
        The leaves of the predicate, and their places in the plan.

    Attributes
    ----------
    kept : BoundedCache
        What follows from it, for as long as it is kept itself.
    """

    def __init__(
        self,
        file: OpenFile,
        indexes: PageIndexReader,
        groups: Sequence[RowGroupPlan],
        asked: Sequence[tuple[int, Leaf]],
    ) -> None:
        self._everything = [_all_rows(group) for group in groups]
        self._known: dict[int, LeafPageStatistics] = {}
        self.kept = BoundedCache(_MOST_KEPT)
        for place, leaf in asked:
            found = [_pages_and_index(indexes, group, place, leaf.index) for group in groups]
            there = [pair for pair in found if pair is not None]
            if not there:
                continue
            num_values = np.concatenate([pages.row_stops - pages.first_rows for pages, _ in there])
            index = ColumnIndex.joined([index for _, index in there])
            runs = page_statistics(index, num_values, leaf, column_order(file, leaf), file.footer.created_by)
            self._known[leaf.index] = LeafPageStatistics([None if pair is None else pair[0] for pair in found], runs)

    def leaf_statistics(self, leaf: Leaf) -> LeafPageStatistics | None:
        """Give what is known of the pages of a leaf; None where nothing is."""
        return self._known.get(leaf.index)

    def may_match_rows(self, bound: Expression) -> list[RowRanges]:
        """Give the rows that may satisfy a bound expression; all of a row group where the indexes do not tell."""

        def answer(test: Any) -> _RowsByGroup:
            known = self._known.get(test.leaf.index)
            return _RowsByGroup(
                self._everything if known is None else known.rows_of(predicate_may_match(test, known.runs), everything)
            )

        everything = self._everything
        return combine_results(
            bound, answer, lambda value: _RowsByGroup(everything if value else [_NO_ROWS] * len(everything))
        ).rows


class LeafPageStatistics(NamedTuple):
    """The pages of a leaf in each row group, None where its indexes do not tell; and what is known of all these."""

    pages: list[ChunkPages | None]
    runs: PruningStatistics

    def rows_of(self, mask: np.ndarray, everything: Sequence[RowRanges]) -> list[RowRanges]:
        """Give the rows of some pages, by row group."""
        found, start = [], 0
        for pages, whole in zip(self.pages, everything, strict=True):
            if pages is None:
                found.append(whole)
                continue
            some = mask[start : start + pages.num_pages]
            start += pages.num_pages
            count = np.count_nonzero(some)
            found.append(whole if count == len(some) else pages.rows_of(some) if count else _NO_ROWS)
        return found


class _RowsByGroup(NamedTuple):
    """Rows of each row group; joined, row group by row group."""

    rows: list[RowRanges]

    def __and__(self, other: _RowsByGroup) -> _RowsByGroup:
        return _RowsByGroup([ours & theirs for ours, theirs in zip(self.rows, other.rows, strict=True)])

    def __or__(self, other: _RowsByGroup) -> _RowsByGroup:
        return _RowsByGroup([ours | theirs for ours, theirs in zip(self.rows, other.rows, strict=True)])


def _all_rows(group: RowGroupPlan) -> RowRanges:
    return group.rows if group.rows.count == group.num_rows else RowRanges.all(group.num_rows)


def _pages_and_index(
    indexes: PageIndexReader, group: RowGroupPlan, place: int, leaf: int
) -> tuple[ChunkPages, ColumnIndex] | None:
    """Give the pages of a chunk and its column index, where there are both, and of the same pages."""
    index = indexes.column_index(group.ordinal, leaf)
    if index is None:
        return None
    whole = group.chunks[place]
    one = len(index.null_pages) == 1 and indexes.is_one_page(whole, group.ordinal, leaf)
    pages = whole if one else indexes.pages(whole, group.ordinal, leaf)
    return None if pages is None or pages.num_pages != len(index.null_pages) else (pages, index)
