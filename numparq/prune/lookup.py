"""Point look-ups: row groups and pages by cached indexes, without a full plan."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.expression import Expression
from numparq.expr.sort_keys import KeyDomain
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.plan.read_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.util.bounded_cache import BoundedCache

from .column_indexes import ColumnIndexPruner
from .index_locations import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, IndexLocations
from .index_reader import IndexBatch, PageIndexReader
from .statistics import PruningStatistics, row_group_statistics

__all__ = ["MAX_CHUNKS", "MAX_ROWS", "MAX_ROW_GROUPS", "KeyPageFinder", "KeyRowRange", "LookupPlanner"]

MAX_ROW_GROUPS = 2
MAX_CHUNKS = 16
MAX_ROWS = 1 << 17

_MOST_KEPT = 16

_Pages = tuple[
    RowGroupPlan, np.ndarray, np.ndarray, "_KeyIntervals"
]  # with first rows, and the rows behind the last ones


class LookupPlanner:
    """Plans look-ups in certain row groups by certain columns; made by `for_row_groups`.

    Nothing in it is of the file but what the footer says, and where indexes lie: files with equal footers share it.

    Parameters
    ----------
    file : OpenFile
        The file.
    leaves : sequence of Leaf
        The columns that are read, those of the filters included.
    asked : sequence of Leaf
        Those of the filters.
    tables : ChunkTables
        The chunks of `leaves`.
    row_groups : sequence of int
        Ordinals, of whole row groups.
    """

    def __init__(
        self,
        file: OpenFile,
        leaves: Sequence[Leaf],
        filter_leaves: Sequence[Leaf],
        tables: ChunkTables,
        row_groups: Sequence[int],
    ) -> None:
        self._leaves = leaves
        self._tables = tables
        self._row_groups = row_groups
        place_of = {leaf.index: place for place, leaf in enumerate(leaves)}
        self._asked = [(place_of[leaf.index], leaf) for leaf in filter_leaves]
        self._wanted = {
            COLUMN_INDEX: [(group, leaf.index) for group in row_groups for leaf in filter_leaves],
            OFFSET_INDEX: [(group, leaf.index) for group in row_groups for leaf in leaves],
        }
        self._together: IndexBatch | None = self._indexes(file).batch(self._wanted) if self._are_told(file) else None

    @classmethod
    def for_row_groups(
        cls,
        file: OpenFile,
        leaves: Sequence[Leaf],
        filter_leaves: Sequence[Leaf],
        tables: ChunkTables,
        row_groups: Sequence[int],
    ) -> LookupPlanner | None:
        """Give what plans look-ups; None where these would be of more than a few chunks. Parameters as above."""
        if len(row_groups) > MAX_ROW_GROUPS or len(row_groups) * len(leaves) > MAX_CHUNKS:
            return None
        columns, questions = tuple(map(leaf_ordinal, leaves)), tuple(map(leaf_ordinal, filter_leaves))
        key = "look-up", columns, questions, file.coalescing, *row_groups
        return IndexLocations.for_file(file).cache.get_or_make(
            key, lambda: cls(file, leaves, filter_leaves, tables, row_groups)
        )

    def plan(self, file: OpenFile, bound: Expression) -> list[RowGroupPlan] | None:
        """Plan what is read of the row groups.

        Parameters
        ----------
        file : OpenFile
            The file, or one with an equal footer.
        bound : Expression
            Made by `bind`, no Constant, of the columns asked; one that statistics do not decide.

        Returns
        -------
        list of RowGroupPlan or None
            In their order, those without rows left out; None where this is no look-up.
        """
        told = self.load(file)
        if told is None:
            return None
        plans, pages = told
        found = []
        for plan, rows in zip(plans, pages.may_match_rows(bound), strict=True):
            if rows.count > MAX_ROWS:
                return None
            if rows:
                found.append(plan.with_rows(rows))
        return found

    def load(self, file: OpenFile) -> tuple[list[RowGroupPlan], ColumnIndexPruner] | None:
        """Read the indexes that have not been, and give what follows from them, which is kept with them.

        Parameters
        ----------
        file : OpenFile
            As of `plan`.

        Returns
        -------
        plans : list of RowGroupPlan
            Of all rows of each row group.
        pages : ColumnIndexPruner
            What tells of these. None in place of both where this is no look-up.
        """
        together, found = self._together, None
        if together is None:
            return None
        if file.index_cache.keys().isdisjoint(together.keys):
            found = together.read(file.source)
            file.index_cache.update(found.indexes)
        else:
            self._indexes(file).load(self._wanted)
            found = together.cached_in(file.index_cache)
        return self._made(file) if found is None else found.cache.get_or_make(self, lambda: self._made(file))

    def _are_told(self, file: OpenFile) -> bool:
        """Tell whether there is a column index for all that is asked, and nothing else to ask first."""
        places, asked = IndexLocations.for_file(file), self._wanted[COLUMN_INDEX]
        places.load(self._wanted[OFFSET_INDEX])
        return (
            len(self._indexes(file).chunks_with_index(COLUMN_INDEX, asked)) == len(asked)
            and not places.locate(BLOOM_FILTER, asked)
            and not any(
                self._tables.has_dictionary(place, group) for place, _ in self._asked for group in self._row_groups
            )
        )

    def _indexes(self, file: OpenFile) -> PageIndexReader:
        return PageIndexReader(file, self._leaves, IndexLocations.for_file(file))

    def _made(self, file: OpenFile) -> tuple[list[RowGroupPlan], ColumnIndexPruner]:
        """Make of indexes that have been read the plans of whole row groups, and what tells of their rows."""
        indexes = self._indexes(file)
        plans = [self._whole(indexes, group) for group in self._row_groups]
        return plans, ColumnIndexPruner(file, indexes, plans, self._asked)

    def _whole(self, indexes: PageIndexReader, group: int) -> RowGroupPlan:
        """Plan all rows of a row group, with the pages of columns by their offset indexes where these can be had."""
        (chunks,) = self._tables.chunks_as_pages([group])
        pairs = zip(chunks, self._leaves, strict=True)
        located = tuple([indexes.chunk_pages(whole, group, leaf.index) or whole for whole, leaf in pairs])
        count = self._tables.num_rows(group)
        return RowGroupPlan(group, count, RowRanges.all(count), located)


class KeyRowRange(NamedTuple):
    """Rows of a row group that may have a key: from `start` on, up to but not including `stop`."""

    group: RowGroupPlan
    start: int
    stop: int


class KeyPageFinder:
    """The pages of a column, in files with one and the same footer.

    Parameters
    ----------
    file : OpenFile
        One of the files; nothing of it is kept but what its footer says.
    leaves : sequence of Leaf
        All columns that are read.
    asked : Leaf
        That of them which is to have the key.
    domain : KeyDomain
        Its keys.
    tables : ChunkTables
        The chunks of `leaves`.
    """

    def __init__(
        self, file: OpenFile, leaves: Sequence[Leaf], filter_leaves: Leaf, domain: KeyDomain, tables: ChunkTables
    ) -> None:
        self._leaves = leaves
        self._asked = filter_leaves
        self._domain = domain
        self._tables = tables
        self._groups = _KeyIntervals(
            row_group_statistics(file, filter_leaves, range(file.num_row_groups)), filter_leaves, domain
        )
        self._of_one_key = self._groups.single_key_positions()
        self._look_ups = BoundedCache(_MOST_KEPT)

    def find(self, file: OpenFile, key: int) -> list[KeyRowRange] | None:
        """Find the rows whose pages may have a key, and read the indexes that tell and have not been read.

        Parameters
        ----------
        file : OpenFile
            The file.
        key : int
            One of the domain.

        Returns
        -------
        list of KeyRows or None
            A run of rows for each row group that has any; None where one would not do, where nothing tells, or
            where statistics might decide without a look at the rows.
        """
        groups = self._groups.containing(key)
        if groups is None or not 0 < len(groups) <= MAX_ROW_GROUPS or not self._of_one_key.isdisjoint(groups):
            return None
        look_up = self._look_ups.get_or_make(groups, lambda: self._look_up(file, groups))
        told = None if look_up is None else look_up.load(file)
        if told is None:
            return None
        plans, rows = told
        indexed = rows.cache.get_or_make(self._asked.index, lambda: self._indexed(plans, rows))
        if indexed is None:
            return None
        found = []
        for group, starts, stops, intervals in indexed:
            pages = intervals.containing(key)
            if pages is None:
                return None
            if pages:
                part = KeyRowRange(group, int(starts[pages[0]]), int(stops[pages[-1]]))
                if not 0 < part.stop - part.start <= MAX_ROWS:
                    return None
                found.append(part)
        return found

    def _look_up(self, file: OpenFile, groups: range) -> LookupPlanner | None:
        return LookupPlanner.for_row_groups(file, self._leaves, [self._asked], self._tables, groups)

    def _indexed(self, plans: Sequence[RowGroupPlan], rows: ColumnIndexPruner) -> list[_Pages] | None:
        """Give the pages of each row group by its column index; None where one does not tell."""
        told = rows.leaf_statistics(self._asked)
        if told is None or not all(chunk.is_indexed for group in plans for chunk in group.chunks):
            return None
        found, start = [], 0
        for group, pages in zip(plans, told.pages, strict=True):
            if pages is None:
                return None
            places = np.arange(start, start + pages.num_pages)
            start += pages.num_pages
            intervals = _KeyIntervals(told.statistics.take(places), self._asked, self._domain)
            found.append((group, pages.first_rows, pages.row_stops, intervals))
        return found


class _KeyIntervals:
    """Key bounds of containers, from `PruningStatistics.key_bounds`; containers of nulls only have none."""

    def __init__(self, runs: PruningStatistics, leaf: Leaf, domain: KeyDomain) -> None:
        lows, highs = runs.key_bounds(domain)
        has_values = runs.may_have_values(leaf)
        self._lows = np.where(has_values, lows, domain.high - 1)
        self._highs = np.where(has_values, highs, domain.low)
        self._are_sorted = all((keys[1:] >= keys[:-1]).all() for keys in (self._lows, self._highs))

    def containing(self, key: int) -> range | None:
        """Give those that may have a key, by their places; None where they do not stand together."""
        if self._are_sorted:
            first, stop = bisect_left(self._highs, key), bisect_right(self._lows, key)
            return range(first, stop)
        found = ((self._lows <= key) & (self._highs >= key)).nonzero()[0].tolist()
        if not found:
            return range(0)
        return range(found[0], found[-1] + 1) if found[-1] - found[0] < len(found) else None

    def single_key_positions(self) -> frozenset[int]:
        """Give the places of those that have no more than one key."""
        return frozenset((self._lows == self._highs).nonzero()[0].tolist())
