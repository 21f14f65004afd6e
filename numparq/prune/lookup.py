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
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.read_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.util.bounded_cache import BoundedCache

from .column_indexes import ColumnIndexPruner
from .index_locations import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, IndexLocations
from .index_reader import PageIndexReader
from .page_headers import read_encodings
from .statistics import PruningStatistics, row_group_statistics

__all__ = ["MAX_CHUNKS", "MAX_ROWS", "MAX_ROW_GROUPS", "KeyPageFinder", "KeyRowRange", "LookupPlanner"]

MAX_ROW_GROUPS = 2
MAX_CHUNKS = 16
MAX_ROWS = 1 << 17

_MOST_KEPT = 16

_FEW_PAGES = 4  # whose headers are read to leave out a dictionary page
_LARGE_DICTIONARY = 64 << 10
_PLAN_BYTES = 1 << 10  # of a plan or pruner, without the pages

_Pages = tuple[np.ndarray, np.ndarray, "_KeyIntervals"]  # first rows of the pages, and the rows behind the last ones


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
        questions = [(group, leaf.index) for group in row_groups for leaf in filter_leaves]
        self._has_bloom_filter = bool(IndexLocations.for_file(file).locate(BLOOM_FILTER, questions))
        self._key = "look-up", *map(leaf_ordinal, leaves), -1, *map(leaf_ordinal, filter_leaves), -1, *row_groups

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
        key = "look-up", columns, questions, *row_groups
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
        pages = self.load(file)
        if pages is None:
            return None
        found = []
        for place, rows in enumerate(pages.may_match_rows(bound)):
            if rows.count > MAX_ROWS or (rows.count == self._num_rows(place) and self._has_dictionary(place)):
                return None
            if rows:
                found.append(self.row_group_plan(file, place, rows).with_rows(rows))
        return found

    def load(self, file: OpenFile) -> ColumnIndexPruner | None:
        """Return what prunes rows by the pages of the filter columns; None where not all of these have statistics.

        Cached in the file's entry; `file` as of `plan`.
        """
        if self._has_bloom_filter:
            return None
        found: ColumnIndexPruner | None = file.entry.get(self._key)
        if found is None and self._key not in file.entry:
            found = self._pruner(file)
            file.entry.put({self._key: found}, _PLAN_BYTES)
        return found

    def row_group_plan(self, file: OpenFile, place: int, rows: RowRanges) -> RowGroupPlan:
        """Return the plan of all rows of a row group, with the pages of its chunks where they can be had.

        Cached in the file's entry; `file` as of `plan`, `place` a position among the row groups. Of the few pages with
        `rows` it is known whether they need a dictionary.
        """
        key = *self._key, -1, place
        found: tuple[RowGroupPlan, list[ChunkPages]] | None = file.entry.get(key)
        if found is None:
            plan = self._located(file, self._row_groups[place], range(len(self._leaves)))
            found = plan, [chunk for chunk in plan.chunks if _has_large_dictionary(chunk)]
            file.entry.put({key: found}, _PLAN_BYTES)
        for chunk in found[1]:
            pages = chunk.pages_of_unknown_encoding(rows)
            if 0 < len(pages) <= _FEW_PAGES:
                read_encodings(file.source, chunk, pages)
        return found[0]

    def _pruner(self, file: OpenFile) -> ColumnIndexPruner | None:
        indexes = self._indexes(file)
        chunks = [(group, leaf.index) for group in self._row_groups for _, leaf in self._asked]
        every = [(group, leaf.index) for group in self._row_groups for leaf in self._leaves]
        indexes.load({COLUMN_INDEX: chunks, OFFSET_INDEX: every})
        places = [place for place, _ in self._asked]
        plans = [self._located(file, group, places) for group in self._row_groups]
        if any(indexes.column_index(*chunk) is None for chunk in chunks):
            return None
        return ColumnIndexPruner(file, indexes, plans, self._asked)

    def _located(self, file: OpenFile, group: int, places: Sequence[int]) -> RowGroupPlan:
        """Plan all rows of a row group, with the pages of the columns at `places`."""
        indexes, leaves = self._indexes(file), self._leaves
        (chunks,) = map(list, self._tables.chunks_as_pages([group]))
        indexes.walk_headers((group, leaves[place].index, chunks[place]) for place in places)
        for place in places:
            chunks[place] = indexes.chunk_pages(chunks[place], group, leaves[place].index) or chunks[place]
        count = self._tables.num_rows(group)
        return RowGroupPlan(group, count, RowRanges.all(count), tuple(chunks))

    def _indexes(self, file: OpenFile) -> PageIndexReader:
        return PageIndexReader(file, self._leaves, IndexLocations.for_file(file))

    def _num_rows(self, place: int) -> int:
        return self._tables.num_rows(self._row_groups[place])

    def _has_dictionary(self, place: int) -> bool:
        """Whether a filter column has a dictionary, which may tell more than its pages do."""
        return any(self._tables.has_dictionary(position, self._row_groups[place]) for position, _ in self._asked)


def _has_large_dictionary(chunk: ChunkPages) -> bool:
    """Whether a header is read sooner than the dictionary page of a chunk."""
    start, stop = chunk.dictionary_range or (0, 0)
    return stop - start >= _LARGE_DICTIONARY


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
        rows = None if look_up is None else look_up.load(file)
        if look_up is None or rows is None:
            return None
        indexed = rows.cache.get_or_make(self._asked.index, lambda: self._indexed(rows))
        if indexed is None:
            return None
        found = []
        for place, (starts, stops, intervals) in enumerate(indexed):
            pages = intervals.containing(key)
            if pages is None:
                return None
            if pages:
                start, stop = int(starts[pages[0]]), int(stops[pages[-1]])
                plan = look_up.row_group_plan(file, place, RowRanges.from_range(start, stop))
                part = KeyRowRange(plan, start, stop)
                if not 0 < part.stop - part.start <= MAX_ROWS or not all(chunk.is_indexed for chunk in plan.chunks):
                    return None
                found.append(part)
        return found

    def _look_up(self, file: OpenFile, groups: range) -> LookupPlanner | None:
        return LookupPlanner.for_row_groups(file, self._leaves, [self._asked], self._tables, groups)

    def _indexed(self, rows: ColumnIndexPruner) -> list[_Pages] | None:
        """Give the pages of each row group by its column index; None where one does not tell."""
        told = rows.leaf_statistics(self._asked)
        if told is None:
            return None
        found, start = [], 0
        for pages in told.pages:
            if pages is None:
                return None
            places = np.arange(start, start + pages.num_pages)
            start += pages.num_pages
            intervals = _KeyIntervals(told.statistics.take(places), self._asked, self._domain)
            found.append((pages.first_rows, pages.row_stops, intervals))
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
