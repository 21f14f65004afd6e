"""Prune rows by column indexes: row ranges of the pages that may match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.bound import ValuePredicate, combine_results
from numparq.expr.expression import Expression
from numparq.format.open_file import OpenFile
from numparq.format.page_index import ColumnIndex
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges

from .index_reader import PageIndexReader
from .match import predicate_may_match
from .statistics import PruningStatistics, column_order, page_statistics

__all__ = ["ColumnIndexPruner", "LeafPageStatistics"]

_NO_ROWS = RowRanges()


class ColumnIndexPruner:
    """Pages of row groups, with their pruning statistics by column index.

    Pages of different columns hold different rows, so predicates yield row ranges. `asked` has positions in the plan.
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
        for place, leaf in asked:
            found = [_pages_and_index(indexes, group, place, leaf.index) for group in groups]
            there = [pair for pair in found if pair is not None]
            if not there:
                continue
            num_values = np.concatenate([pages.row_stops - pages.first_rows for pages, _ in there])
            index = ColumnIndex.concatenate([index for _, index in there])
            runs = page_statistics(index, num_values, leaf, column_order(file, leaf), file.footer.created_by)
            self._known[leaf.index] = LeafPageStatistics([None if pair is None else pair[0] for pair in found], runs)

    def may_match_rows(self, bound: Expression) -> list[RowRanges]:
        """Return the rows of each row group that may match; all rows if its indexes cannot decide."""
        everything = self._everything
        if type(bound) is ValuePredicate:  # by far the most frequent case
            pages = self._known.get(bound.leaf.index)
            if pages is None:
                return everything
            return pages.rows_of(predicate_may_match(bound, pages.statistics), everything)

        def answer(test: Any) -> _RowsByGroup:
            known = [self._known[leaf.index] for leaf in test.leaves if leaf.index in self._known]
            if len(known) < len(test.leaves):
                return _RowsByGroup(everything)
            if len(known) > 1:
                return _RowsByGroup(_rows_of_several(test, known, everything))
            return _RowsByGroup(known[0].rows_of(predicate_may_match(test, known[0].statistics), everything))

        return combine_results(
            bound, answer, lambda value: _RowsByGroup(everything if value else [_NO_ROWS] * len(everything))
        ).rows


class LeafPageStatistics(NamedTuple):
    """Pages of a leaf in each row group (None without usable indexes), and the statistics of all these pages."""

    pages: list[ChunkPages | None]
    statistics: PruningStatistics

    def rows_of(self, mask: np.ndarray, everything: Sequence[RowRanges]) -> list[RowRanges]:
        """Return the rows of the pages in `mask`, by row group; `everything` holds all rows of each."""
        found, start = [], 0
        for pages, whole in zip(self.pages, everything, strict=True):
            if pages is None:
                found.append(whole)
                continue
            some = mask[start : start + len(pages.locations)]
            start += len(some)
            count: int = np.add.reduce(some)
            found.append(whole if count == len(some) else pages.rows_in_pages(some) if count else _NO_ROWS)
        return found


def _rows_of_several(
    predicate: Any, leaves: Sequence[LeafPageStatistics], everything: Sequence[RowRanges]
) -> list[RowRanges]:
    """Return the rows that may match a predicate on several leaves, by row group.

    Pages of different columns hold different rows, so it is decided for each run of rows within one page of each.
    """
    found, before = [], [0] * len(leaves)
    for group, whole in enumerate(everything):
        pages = [leaf.pages[group] for leaf in leaves]
        located = [some for some in pages if some is not None and some.num_pages]
        if len(located) < len(leaves):
            found.append(whole)
        else:
            starts = np.unique(np.concatenate([some.first_rows for some in located]))
            places = [some.first_rows.searchsorted(starts, side="right") - 1 for some in located]
            statistics = [
                leaf.statistics.take(start + place) for leaf, start, place in zip(leaves, before, places, strict=True)
            ]
            mask = predicate_may_match(predicate, *statistics)
            stops = np.append(starts[1:], located[0].num_rows)
            found.append(RowRanges.from_sorted(starts[mask], stops[mask]))
        before = [start + (some.num_pages if some else 0) for start, some in zip(before, pages, strict=True)]
    return found


class _RowsByGroup(NamedTuple):
    """Row ranges of each row group; combined group by group."""

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
    """Return pages and column index of a chunk, if it has both and they agree on the number of pages."""
    index = indexes.column_index(group.ordinal, leaf)
    if index is None:
        return None
    whole = group.chunks[place]
    one = len(index.null_pages) == 1 and indexes.is_one_page(whole, group.ordinal, leaf)
    pages = whole if one else indexes.chunk_pages(whole, group.ordinal, leaf)
    return None if pages is None or pages.num_pages != len(index.null_pages) else (pages, index)
