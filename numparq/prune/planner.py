"""Plan a read and narrow the plan level by level: statistics, Bloom filters, column indexes, dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress, filterfalse

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bound import conjuncts, describe, filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.plan.read_plan import ReadPlan, RowGroupPlan, narrow, with_offset_indexes
from numparq.plan.row_ranges import RowRanges

from .bloom_filters import BloomFilterPruner
from .column_indexes import ColumnIndexPruner
from .dictionaries import DictionaryPruner
from .index_locations import COLUMN_INDEX, OFFSET_INDEX, IndexLocations
from .index_reader import PageIndexReader
from .lookup import LookupPlanner
from .match import containers_may_match, containers_must_match
from .statistics import PruningStatistics, row_group_statistics

__all__ = ["ReadPlanner"]

_NO_ROWS = RowRanges()
_FEW = 16  # column chunks whose indexes are located, or loaded, at once
_FEW_RANGES = 8  # row ranges of a row group whose pages are found by their headers


class ReadPlanner:
    """Plans reads of a file; `leaves` are the columns read, filter columns included, in the order of `tables`."""

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], tables: ChunkTables) -> None:
        self._file = file
        self._leaves = leaves
        self._tables = tables
        self._sure: tuple[Expression | None, dict[int, bool]] = None, {}

    # --- built on first use -------------------------------------------------------------------------------------------

    @cached_property
    def _position_of(self) -> dict[int, int]:
        return {leaf.index: place for place, leaf in enumerate(self._leaves)}

    @cached_property
    def _places(self) -> IndexLocations:
        return IndexLocations.for_file(self._file)

    @cached_property
    def _indexes(self) -> PageIndexReader:
        return PageIndexReader(self._file, self._leaves, self._places)

    @cached_property
    def _bloom_filters(self) -> BloomFilterPruner:
        return BloomFilterPruner(self._file, self._places)

    @cached_property
    def _dictionaries(self) -> DictionaryPruner:
        return DictionaryPruner(self._file, self._leaves, self._tables)

    # --- without predicates ------------------------------------------------------------------------------------------

    def plan_rows(self, rows: Mapping[int, RowRanges]) -> ReadPlan:
        """Return the plan that reads the given rows of each row group from whole chunks; nothing is fetched.

        `rows` maps ordinals of row groups to row ranges, in the order of the plan.
        """
        ordinals = list(rows)
        counts = [self._tables.num_rows(group) for group in ordinals]
        plan = ReadPlan.from_chunks(self._tables.names, counts, self._tables.chunks_as_pages(ordinals), ordinals)
        partial = {
            group: chosen for (group, chosen), count in zip(rows.items(), counts, strict=True) if chosen.count < count
        }
        return narrow(plan, partial, "rows", "not selected")

    def locate_pages(self, plan: ReadPlan, leaves: Sequence[Leaf]) -> ReadPlan:
        """Return the plan with the pages of these leaves' chunks by offset index, for partly selected row groups.

        The offset indexes that are not cached are fetched together.
        """
        partial = [group for group in plan.left if group.rows.count < group.num_rows]
        return self._with_pages(plan, partial, self._column_positions(leaves)) if partial else plan

    def _with_pages(self, plan: ReadPlan, groups: Sequence[RowGroupPlan], places: list[tuple[int, int]]) -> ReadPlan:
        """Return the plan with pages by offset index; `places` are positions in the plan and leaf ordinals."""
        todo = [
            (group, place, leaf) for group in groups for place, leaf in places if not group.chunks[place].is_indexed
        ]
        if not todo:
            return plan
        self._indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for group, _, leaf in todo]})
        # Scattered rows lie in nearly every page: headers are walked for rows in few places.
        entry = self._file.entry
        without = [each for each in todo if (OFFSET_INDEX, each[0].ordinal, each[2]) not in entry]
        self._indexes.walk_headers(
            (group.ordinal, leaf, group.chunks[place])
            for group, place, leaf in without
            if len(group.rows) <= _FEW_RANGES
        )
        found = {
            (group.ordinal, place): pages
            for group, place, leaf in todo
            if (pages := self._indexes.chunk_pages(group.chunks[place], group.ordinal, leaf)) is not None
        }
        return with_offset_indexes(plan, found) if found else plan

    def _column_positions(self, leaves: Sequence[Leaf]) -> list[tuple[int, int]]:
        """Return position among the columns and ordinal of each leaf."""
        ordinals = [*map(leaf_ordinal, leaves)]
        return [*zip(map(self._position_of.__getitem__, ordinals), ordinals, strict=True)]

    # --- with predicates ---------------------------------------------------------------------------------------------

    def fully_matched(self, plan: ReadPlan, bound: Expression) -> set[int]:
        """Return the ordinals of row groups whose rows all match a bound expression, by statistics alone."""
        return self.filter_fully_matched([group.ordinal for group in plan.left], bound)

    def filter_fully_matched(self, ordinals: Sequence[int], bound: Expression) -> set[int]:
        """Return those of the row groups whose rows all match a bound expression, by statistics alone."""
        sure = self._answers(bound)
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
        return {leaf.index: row_group_statistics(self._file, leaf, row_groups) for leaf in filter_leaves(bound)}

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
        if len(groups) <= _FEW:  # those that cannot match are decided, too, in no more time
            self._answers(bound).update(_surely(bound, groups, runs))
        else:
            kept = may.nonzero()[0]
            self._answers(bound).update(_surely(bound, left, {leaf: some.take(kept) for leaf, some in runs.items()}))
        return left

    def plan_lookup(self, row_groups: Sequence[int], bound: Expression) -> list[RowGroupPlan] | None:
        """Plan a point look-up in whole row groups, out of `may_match_row_groups`; None if it needs a full plan.

        Row groups without any row left are left out.
        """
        sure = self._answers(bound)
        if isinstance(bound, Constant) or set(map(sure.get, row_groups)) != {False}:
            return None
        found = LookupPlanner.for_row_groups(self._file, self._leaves, filter_leaves(bound), self._tables, row_groups)
        return None if found is None else found.plan(self._file, bound)

    def prune_by_indexes(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        """Prune as `prune` does, without the row group statistics."""
        if isinstance(bound, Constant) or not plan.left:
            return plan
        decided = self.fully_matched(plan, bound)
        self._locate_indexes(plan)
        plan, answered = self._by_bloom_filters(plan, bound, decided)
        plan = self._by_pages(plan, bound, decided)
        plan = self._by_dictionaries(plan, bound, decided, answered)
        return self.locate_pages(plan, self._leaves)

    def _locate_indexes(self, plan: ReadPlan) -> None:
        """Look up the index locations of all chunks at once, if these are few."""
        if len(plan.left) * len(self._leaves) <= _FEW:
            self._places.load([(group.ordinal, leaf.index) for group in plan.left for leaf in self._leaves])

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
        for part, dropped in self._bloom_filters.prune(bound, groups, answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "Bloom filter", describe(part))
        return plan, answered

    def _by_dictionaries(
        self, plan: ReadPlan, bound: Expression, fully_matched: set[int], answered: set[tuple[int, int]]
    ) -> ReadPlan:
        # Rows that page statistics have narrowed are read in the time that a dictionary takes.
        whole = [group for group in _undecided(plan, fully_matched) if plan[group].rows.count == plan[group].num_rows]
        for part, dropped in self._dictionaries.prune(plan, bound, whole, answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "dictionary", describe(part))
        return plan

    def _by_pages(self, plan: ReadPlan, bound: Expression, fully_matched: set[int]) -> ReadPlan:
        asked = filter_leaves(bound)
        ordinals = self._load_page_indexes(plan, _undecided(plan, fully_matched), asked)
        if not ordinals:
            return plan
        groups = [plan[ordinal] for ordinal in ordinals]
        pages = ColumnIndexPruner(
            self._file, self._indexes, groups, [(self._position_of[leaf.index], leaf) for leaf in asked]
        )
        found = [(part, pages.may_match_rows(part)) for part in conjuncts(bound)]
        left = [group.rows for group in groups]
        for _, several in found:
            left = [rows & kept for rows, kept in zip(left, several, strict=True)]
        partial = [group for group, rows in zip(groups, left, strict=True) if rows and rows.count < group.rows.count]
        plan = self._with_pages(plan, partial, self._column_positions(self._leaves))
        level = self._indexes.origin(ordinals[0], asked[0].index)
        for part, several in found:
            plan = narrow(plan, dict(zip(ordinals, several, strict=True)), level, describe(part))
        return plan

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
    return [group.ordinal for group in plan.left if group.ordinal not in fully_matched]
