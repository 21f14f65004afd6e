"""Plan a read and narrow the plan level by level: statistics, Bloom filters, column indexes, dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bound import conjuncts, describe, filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
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
_FEW = 16  # column chunks


class ReadPlanner:
    """Plans reads of some columns of a file.

    Parameters
    ----------
    file : OpenFile
        The file.
    leaves : sequence of Leaf
        The columns that are read, those of the filters included.
    tables : ChunkTables
        Where their chunks lie, checked; of these leaves, in this order.
    """

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], tables: ChunkTables) -> None:
        self._file = file
        self._leaves = leaves
        self._tables = tables
        self._sure: tuple[Expression | None, dict[int, bool]] = None, {}

    # --- what is there where a read takes a plan ---------------------------------------------------------------------

    @cached_property
    def _names(self) -> list[str]:
        return [leaf.name for leaf in self._leaves]

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

    def whole(self, rows: Mapping[int, RowRanges]) -> ReadPlan:
        """Make the plan that reads whole chunks.

        Parameters
        ----------
        rows : mapping of int to RowRanges
            The row groups, by their ordinals and in the order of the plan, and the rows wanted of each.

        Returns
        -------
        ReadPlan
            Nothing is fetched for it.
        """
        ordinals = list(rows)
        counts = [self._tables.num_rows_of(group) for group in ordinals]
        plan = ReadPlan.from_chunks(self._names, counts, self._tables.whole_chunks(ordinals), ordinals)
        partial = {
            group: chosen for (group, chosen), count in zip(rows.items(), counts, strict=True) if chosen.count < count
        }
        return narrow(plan, partial, "rows", "not asked for")

    def located(self, plan: ReadPlan, leaves: Sequence[Leaf]) -> ReadPlan:
        """Take up the offset indexes of row groups of which some rows are left out.

        Parameters
        ----------
        plan : ReadPlan
            As it is so far; of any of the planner's columns.
        leaves : sequence of Leaf
            Those of the columns that are to be located.

        Returns
        -------
        ReadPlan
            With the pages of all chunks that have a trusted offset index. Those not read before are fetched together.
        """
        places = [(place, leaf.index) for place, leaf in self._placed(plan, leaves)]
        partial = [group for group in plan.left if group.rows.count < group.num_rows]
        return self._with_pages(plan, partial, places)

    def _with_pages(self, plan: ReadPlan, groups: Sequence[RowGroupPlan], places: list[tuple[int, int]]) -> ReadPlan:
        """Take up offset indexes, of columns by their place in the plan and their ordinal."""
        todo = [
            (group, place, leaf) for group in groups for place, leaf in places if not group.chunks[place].is_indexed
        ]
        if not todo:
            return plan
        self._indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for group, _, leaf in todo]})
        found = {
            (group.ordinal, place): pages
            for group, place, leaf in todo
            if (pages := self._indexes.pages(group.chunks[place], group.ordinal, leaf)) is not None
        }
        return with_offset_indexes(plan, found) if found else plan

    def _placed(self, plan: ReadPlan, leaves: Sequence[Leaf]) -> list[tuple[int, Leaf]]:
        """Give the place of each leaf among the columns of a plan; those that it lacks are left out."""
        if plan.columns == tuple(self._names):
            place_of = {leaf.index: place for place, leaf in enumerate(self._leaves)}
        else:
            places = {name: place for place, name in enumerate(plan.columns)}
            named = zip(self._leaves, self._names, strict=True)
            place_of = {leaf.index: places[name] for leaf, name in named if name in places}
        return [(place_of[leaf.index], leaf) for leaf in leaves if leaf.index in place_of]

    # --- with predicates ---------------------------------------------------------------------------------------------

    def decided(self, plan: ReadPlan, bound: Expression) -> set[int]:
        """Find the row groups of which all rows satisfy a predicate, by their statistics alone.

        Parameters
        ----------
        plan : ReadPlan
            Its row groups with rows left are looked at.
        bound : Expression
            Made by `bind`.

        Returns
        -------
        set of int
            Ordinals: no row of these need be looked at to know that it is wanted.
        """
        sure = self._answers(bound)
        ordinals = [group.ordinal for group in plan.left]
        missing = [ordinal for ordinal in ordinals if ordinal not in sure]
        if missing:
            sure.update(_surely(bound, missing, self._runs(bound, missing)))
        return {ordinal for ordinal in ordinals if sure[ordinal]}

    def _answers(self, bound: Expression) -> dict[int, bool]:
        """Give what has been found out of a predicate: by row group, whether all of its rows satisfy it."""
        asked, sure = self._sure
        if asked is not bound and (asked is None or asked != bound):
            self._sure = _, sure = bound, {}
        return sure

    def _runs(self, bound: Expression, row_groups: Sequence[int]) -> dict[int, PruningStatistics]:
        """Give the statistics of row groups, by the ordinals of the leaves of a predicate."""
        return {leaf.index: row_group_statistics(self._file, leaf, row_groups) for leaf in filter_leaves(bound)}

    def pruned(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        """Leave out the rows of which the file says that they cannot satisfy a predicate.

        Parameters
        ----------
        plan : ReadPlan
            As it is so far, with all columns of the planner.
        bound : Expression
            Made by `bind`.

        Returns
        -------
        ReadPlan
            By row-group statistics, Bloom filters, column indexes and dictionaries, in this order. Of row groups that
            the statistics decide, nothing is fetched. Where rows are left out, all chunks have their pages, if they
            have a trusted offset index.
        """
        if isinstance(bound, Constant):
            nothing = {} if bound.value else {group.ordinal: _NO_ROWS for group in plan.row_groups}
            return narrow(plan, nothing, "predicate", "no row can satisfy it")
        return self.prune_by_indexes(self._by_statistics(plan, bound), bound)

    def may_match_row_groups(self, row_groups: Sequence[int], bound: Expression) -> list[int]:
        """Give the row groups of which the statistics do not say that no row satisfies a predicate.

        Parameters
        ----------
        row_groups : sequence of int
            Ordinals.
        bound : Expression
            Made by `bind`.

        Returns
        -------
        list of int
            Those that a plan is worth making of; nothing is fetched for it.
        """
        groups = list(dict.fromkeys(row_groups))
        if isinstance(bound, Constant):
            return groups if bound.value else []
        runs = self._runs(bound, groups)
        kept = containers_may_match(bound, runs, len(groups)).nonzero()[0]
        left = [groups[place] for place in kept.tolist()]
        self._answers(bound).update(_surely(bound, left, {leaf: some.at(kept) for leaf, some in runs.items()}))
        return left

    def look_up(self, row_groups: Sequence[int], bound: Expression) -> list[RowGroupPlan] | None:
        """Plan what is read of whole row groups that are `candidates`, where these are few, and so are their rows.

        Parameters
        ----------
        row_groups : sequence of int
            Ordinals.
        bound : Expression
            What `candidates` was asked about.

        Returns
        -------
        list of RowGroupPlan or None
            In this order, without those of which no row is left; None where that takes a plan of the read.
        """
        sure = self._answers(bound)
        if isinstance(bound, Constant) or set(map(sure.get, row_groups)) != {False}:
            return None
        found = LookupPlanner.of(self._file, self._leaves, filter_leaves(bound), self._tables, row_groups)
        return None if found is None else found.plan(self._file, bound)

    def prune_by_indexes(self, plan: ReadPlan, bound: Expression) -> ReadPlan:
        """Do what `pruned` does, but for the statistics of row groups, which have been asked already."""
        if isinstance(bound, Constant) or not plan.left:
            return plan
        decided = self.decided(plan, bound)
        self._locate_indexes(plan)
        plan, answered = self._by_bloom_filters(plan, bound, decided)
        plan = self._by_pages(plan, bound, decided)
        plan = self._by_dictionaries(plan, bound, decided, answered)
        return self.located(plan, self._leaves)

    def _locate_indexes(self, plan: ReadPlan) -> None:
        """Look up at once what the footer says of all chunks that may be asked about, where they are few."""
        if len(plan.left) * len(self._leaves) <= _FEW:
            self._places.note([(group.ordinal, leaf.index) for group in plan.left for leaf in self._leaves])

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
        """Narrow, and tell which chunks (ordinals of row group and leaf) had a Bloom filter to ask."""
        groups = _undecided(plan, fully_matched)
        answered: set[tuple[int, int]] = set()
        for part, dropped in self._bloom_filters.dropped(bound, groups, answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "Bloom filter", describe(part))
        return plan, answered

    def _by_dictionaries(
        self, plan: ReadPlan, bound: Expression, fully_matched: set[int], answered: set[tuple[int, int]]
    ) -> ReadPlan:
        for part, dropped in self._dictionaries.dropped(plan, bound, _undecided(plan, fully_matched), answered):
            plan = narrow(plan, dict.fromkeys(dropped, _NO_ROWS), "dictionary", describe(part))
        return plan

    def _by_pages(self, plan: ReadPlan, bound: Expression, fully_matched: set[int]) -> ReadPlan:
        asked = self._placed(plan, filter_leaves(bound))
        ordinals = self._load_page_indexes(_undecided(plan, fully_matched), [leaf for _, leaf in asked])
        if not ordinals:
            return plan
        groups = [plan[ordinal] for ordinal in ordinals]
        pages = ColumnIndexPruner(self._file, self._indexes, groups, asked)
        found = [(part, pages.may_match_rows(part)) for part in conjuncts(bound)]
        left = [group.rows for group in groups]
        for _, several in found:
            left = [rows & kept for rows, kept in zip(left, several, strict=True)]
        partial = [group for group, rows in zip(groups, left, strict=True) if rows and rows.count < group.rows.count]
        every = [(place, leaf.index) for place, leaf in self._placed(plan, self._leaves)]
        plan = self._with_pages(plan, partial, every)
        for part, several in found:
            plan = narrow(plan, dict(zip(ordinals, several, strict=True)), "column index", describe(part))
        return plan

    def _load_page_indexes(self, groups: list[int], asked: list[Leaf]) -> list[int]:
        """Fetch what the rows of row groups are told by; gives those that have any column index of a column asked."""
        there = self._indexes.there(COLUMN_INDEX, [(group, leaf.index) for group in groups for leaf in asked])
        useful = list(dict.fromkeys(group for group, _ in there))
        # Where a request takes its time, and where they are few, the pages of all columns are asked for at once.
        at_once = self._file.source.is_remote or len(useful) * len(self._leaves) <= _FEW
        leaves = self._leaves if at_once else asked
        chunks = [(group, leaf.index) for group in useful for leaf in leaves]
        self._indexes.load({COLUMN_INDEX: there, OFFSET_INDEX: chunks})
        return useful


def _surely(bound: Expression, row_groups: Sequence[int], runs: Mapping[int, PruningStatistics]) -> dict[int, bool]:
    """Tell of row groups whether all of their rows satisfy a predicate."""
    return dict(zip(row_groups, containers_must_match(bound, runs, len(row_groups)).tolist(), strict=True))


def _undecided(plan: ReadPlan, fully_matched: set[int]) -> list[int]:
    return [group.ordinal for group in plan.left if group.ordinal not in fully_matched]
