"""Prune rows by column indexes: row ranges of the pages that may match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.bound import ValuePredicate, combine_results
from numparq.expr.expression import Expression
from numparq.format.open_file import OpenFile
from numparq.format.page_index import ColumnIndex
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges

from .index_reader import PageIndexReader
from .match import predicate_may_match
from .statistics import PruningStatistics, column_order, page_statistics

_NO_ROWS = RowRanges()


_COLUMN_BYTES, _PAGE_BYTES = 2 << 10, 100  # memory of a column's statistics, and of each page's
_KEYS_BYTES = 180  # of a page's two keys as objects, besides their bytes


class ColumnIndexPruner:
    """Pages of row groups, with their pruning statistics by column index.

    Pages of different columns hold different rows, so predicates yield row ranges. `filter_columns` has positions in
    the plan.
    """

    def __init__(
        self,
        file: OpenFile,
        indexes: PageIndexReader,
        groups: Sequence[RowGroupPlan],
        filter_columns: Sequence[tuple[int, Leaf]],
    ) -> None:
        self._all_rows = [_all_rows(group) for group in groups]
        self._columns: dict[int, LeafPageStatistics] = {}
        self.num_bytes = 0
        for position, leaf in filter_columns:
            pairs = [_pages_and_index(indexes, group, position, leaf.index) for group in groups]
            known = [pair for pair in pairs if pair is not None]
            if not known:
                continue
            num_rows = np.concatenate([pages.row_stops - pages.first_rows for pages, _ in known])
            index = ColumnIndex.concatenate([index for _, index in known])
            statistics = page_statistics(index, num_rows, leaf, column_order(file.footer, leaf), file.footer.created_by)
            pages_of = [None if pair is None else pair[0] for pair in pairs]
            self._columns[leaf.index] = LeafPageStatistics(pages_of, statistics)
            self.num_bytes += _COLUMN_BYTES + _PAGE_BYTES * len(statistics) + (len(index.data) if len(known) > 1 else 0)
            if leaf.physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY):
                self.num_bytes += _KEYS_BYTES * len(statistics) + len(index.data)

    def may_match_rows(self, bound: Expression) -> list[RowRanges]:
        """Return the rows of each row group that may match; all rows if its indexes cannot decide."""
        all_rows = self._all_rows
        if type(bound) is ValuePredicate:  # by far the most frequent case
            column = self._columns.get(bound.leaf.index)
            return (
                all_rows if column is None else column.rows_of(predicate_may_match(bound, column.statistics), all_rows)
            )

        def answer(predicate: Any) -> _RowsByGroup:
            columns = [self._columns[leaf.index] for leaf in predicate.leaves if leaf.index in self._columns]
            if len(columns) < len(predicate.leaves):
                return _RowsByGroup(all_rows)
            if len(columns) > 1:
                return _RowsByGroup(_rows_of_several(predicate, columns, all_rows))
            return _RowsByGroup(columns[0].rows_of(predicate_may_match(predicate, columns[0].statistics), all_rows))

        return combine_results(
            bound, answer, lambda value: _RowsByGroup(all_rows if value else [_NO_ROWS] * len(all_rows))
        ).rows


class LeafPageStatistics(NamedTuple):
    """Pages of a leaf in each row group (None without usable indexes), and the statistics of all these pages."""

    pages: list[ChunkPages | None]
    statistics: PruningStatistics

    def rows_of(self, mask: np.ndarray, all_rows: Sequence[RowRanges]) -> list[RowRanges]:
        """Return the rows of the pages in `mask`, by row group; `all_rows` holds all rows of each."""
        rows, start = [], 0
        for pages, whole in zip(self.pages, all_rows, strict=True):
            if pages is None:
                rows.append(whole)
                continue
            some = mask[start : start + len(pages.locations)]
            start += len(some)
            count: int = np.add.reduce(some)
            rows.append(whole if count == len(some) else pages.rows_in_pages(some) if count else _NO_ROWS)
        return rows


def _rows_of_several(
    predicate: Any, columns: Sequence[LeafPageStatistics], all_rows: Sequence[RowRanges]
) -> list[RowRanges]:
    """Return the rows that may match a predicate on several leaves, by row group.

    Pages of different columns hold different rows, so it is decided for each range of rows within one page of each.
    """
    rows, before = [], [0] * len(columns)
    for group, whole in enumerate(all_rows):
        pages = [column.pages[group] for column in columns]
        located = [some for some in pages if some is not None and some.num_pages]
        if len(located) < len(columns):
            rows.append(whole)
        else:
            starts = np.unique(np.concatenate([some.first_rows for some in located]))
            ordinals = [some.first_rows.searchsorted(starts, side="right") - 1 for some in located]
            statistics = [
                column.statistics.take(first + ordinal)
                for column, first, ordinal in zip(columns, before, ordinals, strict=True)
            ]
            mask = predicate_may_match(predicate, *statistics)
            stops = np.append(starts[1:], located[0].num_rows)
            rows.append(RowRanges.from_sorted(starts[mask], stops[mask]))
        before = [first + (some.num_pages if some else 0) for first, some in zip(before, pages, strict=True)]
    return rows


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
