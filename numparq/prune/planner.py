"""Plan a read and narrow the plan level by level: statistics, Bloom filters, column indexes, dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, filterfalse, product
from operator import and_, attrgetter
from typing import NamedTuple

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bound import conjuncts, describe, filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.page_index import PAGE_OFFSET
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.read_plan import ReadPlan, RowGroupPlan, narrow, with_offset_indexes
from numparq.plan.row_ranges import RowRanges

from .bloom_filters import BloomFilterPruner
from .column_indexes import ColumnIndexPruner
from .dictionaries import DictionaryPruner
from .index_locations import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, IndexLocations
from .index_reader import PageIndexReader
from .match import containers_may_match, containers_must_match
from .page_headers import read_encodings
from .statistics import PruningStatistics, row_group_statistics

__all__ = ["ReadPlanner"]

# Kinds of keys in the file's entry: with row group and leaf, and with filter leaves and row groups.
_PAGES, _PAGE_STATISTICS = "pages", "page_statistics"
_ENTRY_BYTES = 1 << 8  # of such a value, which mostly refers to indexes

_NO_ROWS = RowRanges()
_FEW = 16  # column chunks whose indexes are located, or loaded, at once
_FEW_RANGES = 8  # row ranges of a row group whose pages are found by their headers
_FEW_PAGES = 4  # whose headers are read to leave out a dictionary page
_LARGE_DICTIONARY = 64 << 10
_rows_of, _ordinal_of = attrgetter("rows"), attrgetter("ordinal")


class _PageStatistics(NamedTuple):
    """Page statistics of the filter columns, where they come from, and the row groups that have any."""

    row_groups: list[int]
    level: str
    pages: ColumnIndexPruner


class ReadPlanner:
    """Plans reads of a file; `leaves` are the columns read, filter columns included, in the order of `tables`."""

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], tables: ChunkTables) -> None:
        self._file = file
        self._leaves = leaves
        self._tables = tables
        self._position_of = dict(zip(map(leaf_ordinal, leaves), range(len(leaves)), strict=True))
        self._places = IndexLocations.for_file(file)
        self._sure: tuple[Expression | None, dict[int, bool]] = None, {}

    # --- built on first use -------------------------------------------------------------------------------------------

    @cached_property
    def _indexes(self) -> PageIndexReader:
        return PageIndexReader(self._file, self._leaves, self._places)

    # --- without predicates ------------------------------------------------------------------------------------------

    def plan_rows(self, rows: Mapping[int, RowRanges]) -> ReadPlan:
        """Return the plan that reads the given rows of each row group from whole chunks; nothing is fetched.

        `rows` maps ordinals of row groups to row ranges, in the order of the plan.
        """
        groups, partial = [], {}
        for (ordinal, chosen), chunks in zip(rows.items(), self._tables.chunks_as_pages(list(rows)), strict=True):
            count, every = self._tables.num_rows(ordinal), chosen
            if chosen.count < count:
                partial[ordinal], every = chosen, RowRanges.all(count)
            groups.append(RowGroupPlan(ordinal, count, every, tuple(chunks)))
        plan = ReadPlan(tuple(self._tables.names), tuple(groups))
        return narrow(plan, partial, "rows", "not selected") if partial else plan

    def locate_pages(self, plan: ReadPlan, leaves: Sequence[Leaf]) -> ReadPlan:
        """Return the plan with the pages of these leaves' chunks by offset index, for partly selected row groups.

        The offset indexes that are not cached are fetched together.
        """
        partial = []
        for group in plan.left:
            if group.rows.count < group.num_rows:
                partial.append(group)
        return self._with_pages(plan, partial, leaves) if partial else plan

    def _with_pages(self, plan: ReadPlan, groups: Sequence[RowGroupPlan], leaves: Sequence[Leaf]) -> ReadPlan:
        """Return the plan with the pages of these leaves' chunks in some row groups."""
        entry, found = self._file.entry, dict[tuple[int, int], ChunkPages]()
        missing: list[tuple[RowGroupPlan, int, int]] = []
        for group in groups:
            for leaf in leaves:
                place = self._position_of[leaf.index]
                if not group.chunks[place].is_indexed:
                    pages = entry.get((_PAGES, group.ordinal, leaf.index))
                    if pages is None:
                        missing.append((group, place, leaf.index))
                    else:
                        found[group.ordinal, place] = pages
        if missing:
            found |= self._read_pages(missing)
        return with_offset_indexes(plan, found) if found else plan

    def _read_pages(self, missing: Sequence[tuple[RowGroupPlan, int, int]]) -> dict[tuple[int, int], ChunkPages]:
        """Read the offset indexes, or page headers, of chunks; return their pages by row group and position."""
        entry, indexes = self._file.entry, self._indexes
        indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for group, _, leaf in missing]})
        # Scattered rows lie in nearly every page: headers are walked for rows in few places.
        without = [each for each in missing if (OFFSET_INDEX, each[0].ordinal, each[2]) not in entry]
        indexes.walk_headers(
            (group.ordinal, leaf, group.chunks[place])
            for group, place, leaf in without
            if len(group.rows) <= _FEW_RANGES
        )
        found, known = {}, {}
        for group, place, leaf in missing:
            pages = indexes.chunk_pages(group.chunks[place], group.ordinal, leaf)
            if pages is not None:  # a stream may find later what was not found now
                found[group.ordinal, place] = known[_PAGES, group.ordinal, leaf] = pages
        entry.put(known, _ENTRY_BYTES * len(known))
        return found

    def read_encodings(self, groups: Iterable[RowGroupPlan], leaves: Sequence[Leaf]) -> None:
        """Read which pages with selected rows need the dictionary page, where that is large and those are few.

        A header is read sooner than a dictionary page. Not done for a remote file: each header would be a request.
        """
        reader = self._file.reader
        if reader.source.is_remote:
            return
        for group in groups:
            for leaf in leaves:
                chunk = group.chunks[self._position_of[leaf.index]]
                if not chunk.is_indexed or chunk.locations[0, PAGE_OFFSET] - chunk.start < _LARGE_DICTIONARY:
                    continue
                pages = chunk.pages_of_unknown_encoding(group.rows)
                if 0 < len(pages) <= _FEW_PAGES:
                    read_encodings(reader, chunk, pages)

    # --- with predicates ---------------------------------------------------------------------------------------------

    def fully_matched(self, plan: ReadPlan, bound: Expression) -> set[int]:
        """Return the ordinals of row groups whose rows all match a bound expression, by statistics alone."""
        sure, ordinals = self._answers(bound), [*map(_ordinal_of, plan.left)]
        missing = [*filterfalse(sure.__contains__, ordinals)]
        if missing:
            sure.update(_surely(bound, missing, self._runs(bound, missing)))
        return {*filter(sure.get, ordinals)}

    def _answers(self, bound: Expression) -> dict[int, bool]:
        """Return the cached answers for a bound expression: by row group, whether all of its rows match."""
        asked, sure = self._sure
        if asked is not bound and (asked is None or asked != bound):
            self._sure = _, sure = bound, {}
        return sure

    def _runs(self, bound: Expression, row_groups: Sequence[int]) -> dict[int, PruningStatistics]:
        """Return the statistics of row groups, by ordinals of the filter columns' leaves."""
        found = {}
        for leaf in filter_leaves(bound):
            found[leaf.index] = row_group_statistics(self._file, leaf, row_groups)
        return found

    def prune(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        """Prune the plan by row group statistics, Bloom filters, column indexes and dictionaries, in this order.

        Fetches nothing for row groups that statistics decide. Partly selected row groups get pages by offset index.
        """
        if isinstance(bound, Constant):
            nothing = {} if bound.value else {group.ordinal: _NO_ROWS for group in plan.row_groups}
            return narrow(plan, nothing, "predicate", "no row can match")
        return self.prune_by_indexes(self._by_statistics(plan, bound), bound)

    def may_match_row_groups(self, row_groups: Sequence[int], bound: Expression) -> list[int]:
        """Return the row groups that may match a bound expression by statistics; nothing is fetched."""
        groups = list(dict.fromkeys(row_groups))
        if isinstance(bound, Constant):
            return groups if bound.value else []
        runs = self._runs(bound, groups)
        may = containers_may_match(bound, runs, len(groups))
        left = [*compress(groups, may.tolist())]
        if not left:
            return left
        if len(groups) <= _FEW:  # those that cannot match are decided, too, in no more time
            self._answers(bound).update(_surely(bound, groups, runs))
        else:
            kept = may.nonzero()[0]
            self._answers(bound).update(_surely(bound, left, {leaf: some.take(kept) for leaf, some in runs.items()}))
        return left

    def prune_by_indexes(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        """Prune as `prune` does, without the row group statistics."""
        if isinstance(bound, Constant) or not plan.left:
            return plan
        decided = self.fully_matched(plan, bound)
        plan, answered = self._by_bloom_filters(plan, bound, decided)
        plan = self._by_pages(plan, bound, decided)
        plan = self._by_dictionaries(plan, bound, decided, answered)
        return self.locate_pages(plan, self._leaves)

    def _by_statistics(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        for part in conjuncts(bound):
            groups = [group.ordinal for group in plan.left]
            may = containers_may_match(part, self._runs(part, groups), len(groups)).tolist()
            dropped = {group: _NO_ROWS for group, kept in zip(groups, may, strict=True) if not kept}
            plan = narrow(plan, dropped, "statistics", describe(part))
        return plan

    def _by_bloom_filters(
        self, plan: ReadPlan, bound: Expression, fully_matched: set[int]
    ) -> tuple[ReadPlan, set[tuple[int, int]]]:
        """Prune by Bloom filters; also return the chunks (ordinals of row group and leaf) whose filter was probed."""
        groups = _undecided(plan, fully_matched)
        answered: set[tuple[int, int]] = set()
        if len(plan.left) * len(self._leaves) <= _FEW:  # then all their indexes are located at once
            self._places.load([*product(map(_ordinal_of, plan.left), map(leaf_ordinal, self._leaves))])
        if not self._places.locate(BLOOM_FILTER, [*product(groups, map(leaf_ordinal, filter_leaves(bound)))]):
            return plan, answered
        for part, dropped in BloomFilterPruner(self._file, self._places).prune(bound, groups, answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "Bloom filter", describe(part))
        return plan, answered

    def _by_dictionaries(
        self, plan: ReadPlan, bound: Expression, fully_matched: set[int], answered: set[tuple[int, int]]
    ) -> ReadPlan:
        # Rows that page statistics have narrowed are read in the time that a dictionary takes.
        whole = []
        for group in plan.left:
            if group.rows.count == group.num_rows and group.ordinal not in fully_matched:
                whole.append(group.ordinal)
        if not whole:
            return plan
        dictionaries = DictionaryPruner(self._file, self._leaves, self._tables)
        for part, dropped in dictionaries.prune(plan, bound, whole, answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "dictionary", describe(part))
        return plan

    def _by_pages(self, plan: ReadPlan, bound: Expression, fully_matched: set[int]) -> ReadPlan:
        asked, undecided = filter_leaves(bound), _undecided(plan, fully_matched)
        if not undecided:
            return plan
        known = self._page_statistics(plan, undecided, asked)
        if known is None:
            return plan
        groups = [*map(plan.__getitem__, known.row_groups)]
        left = [*map(_rows_of, groups)]
        found = []
        for part in conjuncts(bound):
            several = known.pages.may_match_rows(part)
            left = [*map(and_, left, several)]
            found.append((part, dict(zip(known.row_groups, several, strict=True))))
        partial = []
        for group, rows in zip(groups, left, strict=True):
            if 0 < rows.count < group.rows.count:
                partial.append(group)
        plan = self._with_pages(plan, partial, self._leaves)
        for part, rows_of in found:
            plan = narrow(plan, rows_of, known.level, describe(part))
        return plan

    def _page_statistics(self, plan: ReadPlan, groups: list[int], asked: Sequence[Leaf]) -> _PageStatistics | None:
        """Return the page statistics of row groups; kept in the file's entry if these are few."""
        if len(groups) * len(self._leaves) > _FEW:
            return self._read_page_statistics(plan, groups, asked)
        entry, key = self._file.entry, (_PAGE_STATISTICS, *map(leaf_ordinal, asked), -1, *groups)
        known: _PageStatistics | None = entry.get(key)
        if known is None and key not in entry:
            known = self._read_page_statistics(plan, groups, asked)
            entry.put({key: known}, _ENTRY_BYTES)
        return known

    def _read_page_statistics(self, plan: ReadPlan, groups: list[int], asked: Sequence[Leaf]) -> _PageStatistics | None:
        ordinals = self._load_page_indexes(plan, groups, asked)
        if not ordinals:
            return None
        places = [(self._position_of[leaf.index], leaf) for leaf in asked]
        pages = ColumnIndexPruner(self._file, self._indexes, [plan[ordinal] for ordinal in ordinals], places)
        return _PageStatistics(ordinals, self._indexes.origin(ordinals[0], asked[0].index), pages)

    def _load_page_indexes(self, plan: ReadPlan, groups: list[int], asked: Sequence[Leaf]) -> list[int]:
        """Load the page indexes; return the row groups with page statistics of any filter column."""
        chunks = [(group, leaf.index) for group in groups for leaf in asked]
        there = self._indexes.chunks_with_index(COLUMN_INDEX, chunks)
        useful = list(dict.fromkeys(group for group, _ in there))
        # If requests are slow, or chunks few, the offset indexes of all columns are loaded at once.
        at_once = self._file.source.is_remote or len(useful) * len(self._leaves) <= _FEW
        leaves = self._leaves if at_once else asked
        located = [(group, leaf.index) for group in useful for leaf in leaves]
        self._indexes.load({COLUMN_INDEX: there, OFFSET_INDEX: located})
        if len(there) < len(chunks):
            without = set(chunks).difference(there)
            found = self._indexes.walk_headers(
                (group, leaf.index, plan[group].chunks[self._position_of[leaf.index]])
                for group in groups
                for leaf in asked
                if (group, leaf.index) in without
            )
            useful = [*filter({*useful, *found}.__contains__, groups)]
        return useful


def _surely(bound: Expression, row_groups: Sequence[int], runs: Mapping[int, PruningStatistics]) -> dict[int, bool]:
    """Return by row group whether all of its rows must match."""
    return dict(zip(row_groups, containers_must_match(bound, runs, len(row_groups)).tolist(), strict=True))


def _undecided(plan: ReadPlan, fully_matched: set[int]) -> list[int]:
    return [*filterfalse(fully_matched.__contains__, map(_ordinal_of, plan.left))]
