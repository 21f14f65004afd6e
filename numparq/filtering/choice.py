"""Which rows a read decodes: chosen by position, by what planning leaves out, and by a filter's own columns."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from ..column.chunks import ChunkTables, RowSlice
from ..column.context import Context
from ..column.wanted import WantedRows
from ..errors import located
from ..opened import OpenedFile
from ..plan.read_plan import ReadPlan, narrow
from ..plan.row_group_plan import RowGroupPlan
from ..plan.row_ranges import RowRanges
from ..predicate.expression import Constant, Expression
from ..pruning import Planner
from ..pruning.look_up import MOST_GROUPS
from ..schema import Leaf
from ..targets import Target
from .ahead import Ahead, ranges_of_group
from .asked import ordinals
from .condition import Condition
from .rows import Found, RowFinder

__all__ = ["RowChoice"]


class RowChoice:
    """Chooses the rows of a read.

    Parameters
    ----------
    file : OpenedFile
        The file.
    tables : ChunkTables
        The chunks of all columns read, those that only filters ask included.
    leaves : sequence of Leaf
        All these columns.
    shown : sequence of Target
        How those of them are decoded, from the first one on, that are wanted themselves.
    condition : Condition or None
        What the rows have to satisfy.
    """

    def __init__(
        self, file: OpenedFile, tables: ChunkTables, leaves: Sequence[Leaf], shown: Sequence[Target],
        condition: Condition | None,
    ) -> None:  # fmt: skip
        self._tables = tables
        self._leaves = leaves
        self._shown = shown
        self._condition = condition
        self._planner = Planner(file, leaves, tables)

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
        plan = self._planner.whole(_ranges(slices))
        asked = None if self._condition is None else self._condition.now()
        return self._planner.located(plan, self._leaves) if asked is None else self._planner.pruned(plan, asked)

    def rows(
        self, slices: Sequence[RowSlice], context: Context, ahead: Ahead, limit: int | None = None
    ) -> list[WantedRows]:
        """Find the rows to decode.

        Parameters
        ----------
        slices : sequence of RowSlice
            The rows chosen by position; a row group may be there more than once.
        context : Context
            Of the read.
        ahead : Ahead
            What fetches the pages.
        limit : int or None
            At most so many rows of those that satisfy the filter.

        Returns
        -------
        list of WantedRows
            In the order of `slices`.
        """
        if self._condition is None:
            return _placed(self.plan(slices), slices, {}, limit)
        condition = self._condition
        bound = condition.now()
        if bound is not None:  # what is left out by statistics is not worth a plan
            candidates = set(self._planner.candidates([part.row_group for part in slices], bound))
            slices = [part for part in slices if part.row_group in candidates]
            if limit is None and not ahead.is_worth_it and condition.settled is bound:
                known = self._looked_up(slices, bound, context)
                if known is not None:
                    return known
        plan = self._planner.whole(_ranges(slices))
        plan = plan if bound is None else self._planner.refined(plan, bound)
        if ahead.is_worth_it:
            decided = set() if bound is None else self._planner.decided(plan, bound)
            self._fetch(plan, ahead, condition.leaves, decided)
        finder = RowFinder(context, self._tables, self._leaves, self._shown)
        found = finder.find(plan, lambda group: self._narrowed(group, condition, bound), ahead, limit)
        left = {group.ordinal: found[group.ordinal].rows if group.ordinal in found else RowRanges() for group in plan}
        plan = narrow(plan, left, "filter", repr(condition))
        return _placed(self._planner.located(plan, self._leaves[: len(self._shown)]), slices, found, limit)

    def _looked_up(self, slices: Sequence[RowSlice], bound: Expression, context: Context) -> list[WantedRows] | None:
        """Find the rows of a look-up; None where it is none."""
        if len(slices) > MOST_GROUPS:
            return None
        for part in slices:
            if len(part) < self._tables.num_rows_of(part.row_group):
                return None
        plans = self._planner.look_up([part.row_group for part in slices], bound)
        if plans is None:
            return None
        finder = RowFinder(context, self._tables, self._leaves, self._shown)
        wanted: list[WantedRows] = []
        for group in plans:
            with located(row_group=group.ordinal):
                found = finder.of_row_group(group, bound)
            if found.rows:
                out = wanted[-1].out + len(wanted[-1]) if wanted else 0
                wanted.append(WantedRows(group.ordinal, found.rows, out, group.chunks, found.kept, found.mask))
        return wanted

    def _fetch(self, plan: ReadPlan, ahead: Ahead, leaves: Sequence[Leaf], decided: Container[int]) -> None:
        """Have the pages fetched of the columns that are asked; where that is little, those of all columns."""
        nothing = np.empty((0, 2), np.int64)
        if plan.num_bytes <= ahead.little:
            shown, everything = range(len(self._shown)), range(len(self._leaves))
            each = [ranges_of_group(group, shown if group.ordinal in decided else everything) for group in plan.left]
            ahead.hold(np.concatenate([nothing, *each]))
            return
        asked = list(ordinals(self._leaves, leaves).values())
        ahead.take_turns(
            [nothing if group.ordinal in decided else ranges_of_group(group, asked) for group in plan.left]
        )

    def _narrowed(
        self, group: RowGroupPlan, condition: Condition, planned: Expression | None
    ) -> tuple[RowGroupPlan, Expression]:
        """Give what is left of a row group, and what its rows have to satisfy, when its turn comes."""
        bound = condition.now()
        if bound is None:
            return group, Constant(True)
        plan = ReadPlan(tuple(leaf.name for leaf in self._leaves), (group,))
        if bound is not planned:  # a runtime filter has arrived since
            plan = self._planner.pruned(plan, bound)
        return plan.row_groups[0], Constant(True) if self._planner.decided(plan, bound) else bound


def _ranges(slices: Sequence[RowSlice]) -> dict[int, RowRanges]:
    """Give the rows of slices by the ordinals of row groups; those of one that is there more than once together."""
    found: dict[int, RowRanges] = {}
    for part in slices:
        rows = RowRanges.all(part.stop) if part.start == 0 else RowRanges.run(part.start, part.stop)
        found[part.row_group] = found[part.row_group] | rows if part.row_group in found else rows
    return found


def _placed(
    plan: ReadPlan, slices: Sequence[RowSlice], found: Mapping[int, Found], limit: int | None
) -> list[WantedRows]:
    """Give the rows left in the order of the slices, as many as are wanted."""
    placed: list[WantedRows] = []
    out = 0
    groups = {group.ordinal: group for group in plan.row_groups}
    for part in slices:
        group = groups[part.row_group]
        known = found.get(part.row_group, _NOTHING)
        some = Found(group.rows, known.kept, known.mask)
        if some.rows and (some.rows.stop > part.stop or int(some.rows.starts[0]) < part.start):
            some = some.within(part.start, part.stop)
        if limit is not None and some.count > limit - out:
            some = some.first(limit - out)
        if some.rows:
            placed.append(WantedRows(part.row_group, some.rows, out, group.chunks, some.kept, some.mask))
            out += len(placed[-1])
    return placed


_NOTHING = Found(RowRanges(), {})
