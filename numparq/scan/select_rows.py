"""Select the rows to decode: by position, by pruning, by the predicate."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSelection, RowSlice
from numparq.errors import error_context
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.read_plan import ReadPlan, RowGroupPlan, narrow
from numparq.plan.row_ranges import RowRanges
from numparq.prune.lookup import MAX_ROW_GROUPS
from numparq.prune.planner import ReadPlanner
from numparq.types.output_type import OutputType

from .filter_columns import leaf_positions
from .filter_rows import FilteredRows, RowFilter
from .predicate import ScanPredicate
from .prefetch import ScanPrefetcher, row_group_byte_ranges

__all__ = ["RowSelectionBuilder"]


class RowSelectionBuilder:
    """Chooses the rows of a read.

    Parameters
    ----------
    file : OpenFile
        The file.
    chunk_tables : ChunkTables
        The chunks of all columns read, those that only filters ask included.
    leaves : sequence of Leaf
        All these columns.
    projected_types : sequence of OutputType
        How those of them are decoded, from the first one on, that are wanted themselves.
    predicate : ScanPredicate or None
        What the rows have to satisfy.
    """

    def __init__(
        self,
        file: OpenFile,
        chunk_tables: ChunkTables,
        leaves: Sequence[Leaf],
        projected_types: Sequence[OutputType],
        predicate: ScanPredicate | None,
    ) -> None:
        self._tables = chunk_tables
        self._leaves = leaves
        self._shown = projected_types
        self._condition = predicate
        self._planner = ReadPlanner(file, leaves, chunk_tables)

    def plan(self, slices: Sequence[RowSlice]) -> ReadPlan:
        """Plan what is decoded to find the rows: what positions, statistics and indexes leave.

        Parameters
        ----------
        slices : sequence of RowSlice
            The rows chosen by position.

        Returns
        -------
        ReadPlan
        """
        plan = self._planner.whole(_row_ranges(slices))
        asked = None if self._condition is None else self._condition.now()
        return self._planner.located(plan, self._leaves) if asked is None else self._planner.pruned(plan, asked)

    def rows(
        self, slices: Sequence[RowSlice], context: ReadContext, ahead: ScanPrefetcher, limit: int | None = None
    ) -> list[RowSelection]:
        """Find the rows to decode.

        Parameters
        ----------
        slices : sequence of RowSlice
            The rows chosen by position; a row group may be there more than once.
        context : ReadContext
            Of the read.
        ahead : ScanPrefetcher
            What fetches the pages.
        limit : int or None
            At most so many rows of those that satisfy the filter.

        Returns
        -------
        list of WantedRows
            In the order of `slices`.
        """
        if self._condition is None:
            return _to_selections(self.plan(slices), slices, {}, limit)
        condition = self._condition
        bound = condition.now()
        if bound is not None:  # what is left out by statistics is not worth a plan
            candidates = set(self._planner.may_match_row_groups([part.row_group for part in slices], bound))
            slices = [part for part in slices if part.row_group in candidates]
            if limit is None and not ahead.is_remote and condition.settled is bound:
                known = self._point_lookup(slices, bound, context)
                if known is not None:
                    return known
        plan = self._planner.whole(_row_ranges(slices))
        plan = plan if bound is None else self._planner.prune_by_indexes(plan, bound)
        if ahead.is_remote:
            decided = set() if bound is None else self._planner.decided(plan, bound)
            self._fetch(plan, ahead, condition.leaves, decided)
        finder = RowFilter(context, self._tables, self._leaves, self._shown)
        found = finder.find(plan, lambda group: self._narrow(group, condition, bound), ahead, limit)
        left = {group.ordinal: found[group.ordinal].rows if group.ordinal in found else RowRanges() for group in plan}
        plan = narrow(plan, left, "filter", repr(condition))
        return _to_selections(self._planner.located(plan, self._leaves[: len(self._shown)]), slices, found, limit)

    def _point_lookup(
        self, slices: Sequence[RowSlice], bound: Expression, context: ReadContext
    ) -> list[RowSelection] | None:
        """Find the rows of a look-up; None where it is none."""
        if len(slices) > MAX_ROW_GROUPS:
            return None
        for part in slices:
            if len(part) < self._tables.num_rows_of(part.row_group):
                return None
        plans = self._planner.look_up([part.row_group for part in slices], bound)
        if plans is None:
            return None
        finder = RowFilter(context, self._tables, self._leaves, self._shown)
        wanted: list[RowSelection] = []
        for group in plans:
            with error_context(row_group=group.ordinal):
                found = finder.of_row_group(group, bound)
            if found.rows:
                out = wanted[-1].out + len(wanted[-1]) if wanted else 0
                wanted.append(RowSelection(group.ordinal, found.rows, out, group.chunks, found.kept, found.mask))
        return wanted

    def _fetch(self, plan: ReadPlan, ahead: ScanPrefetcher, leaves: Sequence[Leaf], decided: Container[int]) -> None:
        """Have the pages fetched of the columns that are asked; where that is little, those of all columns."""
        nothing = np.empty((0, 2), np.int64)
        if plan.num_bytes <= ahead.little:
            shown, everything = range(len(self._shown)), range(len(self._leaves))
            each = [
                row_group_byte_ranges(group, shown if group.ordinal in decided else everything) for group in plan.left
            ]
            ahead.fetch_all(np.concatenate([nothing, *each]))
            return
        asked = list(leaf_positions(self._leaves, leaves).values())
        ahead.schedule(
            [nothing if group.ordinal in decided else row_group_byte_ranges(group, asked) for group in plan.left]
        )

    def _narrow(
        self, group: RowGroupPlan, predicate: ScanPredicate, planned: Expression | None
    ) -> tuple[RowGroupPlan, Expression]:
        """Give what is left of a row group, and what its rows have to satisfy, when its turn comes."""
        bound = predicate.now()
        if bound is None:
            return group, Constant(True)
        plan = ReadPlan(tuple(leaf.name for leaf in self._leaves), (group,))
        if bound is not planned:  # a runtime filter has arrived since
            plan = self._planner.pruned(plan, bound)
        return plan.row_groups[0], Constant(True) if self._planner.decided(plan, bound) else bound


def _row_ranges(slices: Sequence[RowSlice]) -> dict[int, RowRanges]:
    """Give the rows of slices by the ordinals of row groups; those of one that is there more than once together."""
    found: dict[int, RowRanges] = {}
    for part in slices:
        rows = RowRanges.all(part.stop) if part.start == 0 else RowRanges.run(part.start, part.stop)
        found[part.row_group] = found[part.row_group] | rows if part.row_group in found else rows
    return found


def _to_selections(
    plan: ReadPlan, slices: Sequence[RowSlice], found: Mapping[int, FilteredRows], limit: int | None
) -> list[RowSelection]:
    """Give the rows left in the order of the slices, as many as are wanted."""
    placed: list[RowSelection] = []
    out = 0
    groups = {group.ordinal: group for group in plan.row_groups}
    for part in slices:
        group = groups[part.row_group]
        known = found.get(part.row_group, _NOTHING)
        some = FilteredRows(group.rows, known.kept, known.mask)
        if some.rows and (some.rows.stop > part.stop or int(some.rows.starts[0]) < part.start):
            some = some.within(part.start, part.stop)
        if limit is not None and some.count > limit - out:
            some = some.first(limit - out)
        if some.rows:
            placed.append(RowSelection(part.row_group, some.rows, out, group.chunks, some.kept, some.mask))
            out += len(placed[-1])
    return placed


_NOTHING = FilteredRows(RowRanges(), {})
