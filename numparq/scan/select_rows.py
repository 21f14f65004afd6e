"""Select the rows to decode: by position, by pruning, by the predicate."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import compress
from operator import attrgetter

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSelection, RowSlice
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.read_plan import ReadPlan, RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.prune.planner import ReadPlanner
from numparq.types.output_type import OutputType

from .filter_columns import leaf_positions
from .filter_rows import FilteredRows, RowFilter
from .predicate import ScanPredicate
from .prefetch import ScanPrefetcher, row_group_byte_ranges

__all__ = ["RowSelectionBuilder"]

_TRUE = Constant(True)
_row_group_of, _ordinal_of = attrgetter("row_group"), attrgetter("ordinal")


class RowSelectionBuilder:
    """Selection of the rows to decode.

    `leaves` are projected leaves, then filter leaves; `projected_types` are the output types of the former.
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
        """Plan what to read: the rows of the slices, pruned by statistics and indexes."""
        plan = self._planner.plan_rows(_row_ranges(slices))
        asked = None if self._condition is None else self._condition.current()
        return self._planner.locate_pages(plan, self._leaves) if asked is None else self._planner.prune(plan, asked)

    def select(
        self, slices: Sequence[RowSlice], context: ReadContext, prefetcher: ScanPrefetcher, limit: int | None = None
    ) -> list[RowSelection]:
        """Return row selections in the order of `slices`: pruned, filtered, and at most `limit` rows.

        A row group may appear in `slices` more than once. `prefetcher` prefetches the pages.
        """
        if self._condition is None:
            return _to_selections(self.plan(slices), slices, {}, limit)
        condition = self._condition
        bound = condition.current()
        if bound is not None:  # plan only row groups that statistics do not prune
            candidates = set(self._planner.may_match_row_groups([*map(_row_group_of, slices)], bound))
            slices = [*compress(slices, map(candidates.__contains__, map(_row_group_of, slices)))]
        plan = self._planner.plan_rows(_row_ranges(slices))
        plan = plan if bound is None else self._planner.prune_by_indexes(plan, bound)
        decided = set() if bound is None else self._planner.fully_matched(plan, bound)
        if prefetcher.is_remote:
            self._prefetch(plan, prefetcher, condition.leaves, decided)
        self._planner.read_encodings(plan.left, condition.leaves)

        def narrow(group: RowGroupPlan) -> tuple[RowGroupPlan, Expression]:
            """Return what is left of a row group at its turn, and its predicate."""
            latest = condition.current()
            if latest is not None and latest is not bound:
                return self._narrow(group, latest)
            return group, _TRUE if latest is None or group.ordinal in decided else latest

        finder = RowFilter(context, self._tables, self._leaves, self._shown)
        found = finder.filter_plan(plan, narrow, prefetcher, limit)
        left = []
        for group in plan.left:
            if group.ordinal in found and found[group.ordinal].rows.count:
                left.append(group.with_rows(found[group.ordinal].rows))
        plan = self._planner.locate_pages(ReadPlan(plan.columns, tuple(left)), self._leaves[: len(self._shown)])
        self._planner.read_encodings(plan.left, self._leaves[: len(self._shown)])
        return _to_selections(plan, slices, found, limit)

    def _prefetch(
        self, plan: ReadPlan, prefetcher: ScanPrefetcher, leaves: Sequence[Leaf], decided: Container[int]
    ) -> None:
        """Schedule the pages of the filter columns; fetch those of all columns if they are few bytes.

        Row groups in `decided` need no filter columns: the predicate holds for all their rows.
        """
        nothing = np.empty((0, 2), np.int64)
        if plan.num_bytes <= prefetcher.small_read_bytes:
            shown, everything = range(len(self._shown)), range(len(self._leaves))
            each = [
                row_group_byte_ranges(group, shown if group.ordinal in decided else everything) for group in plan.left
            ]
            prefetcher.fetch_all(np.concatenate([nothing, *each]))
            return
        asked = list(leaf_positions(self._leaves, leaves).values())
        prefetcher.schedule(
            [nothing if group.ordinal in decided else row_group_byte_ranges(group, asked) for group in plan.left]
        )

    def _narrow(self, group: RowGroupPlan, bound: Expression) -> tuple[RowGroupPlan, Expression]:
        """Prune a row group again by a predicate with a runtime filter that has arrived since."""
        plan = self._planner.prune(ReadPlan(tuple(self._tables.names), (group,)), bound)
        return plan[group.ordinal], _TRUE if self._planner.fully_matched(plan, bound) else bound


def _row_ranges(slices: Sequence[RowSlice]) -> dict[int, RowRanges]:
    """Return the rows of slices by row group ordinal; slices of the same row group are united."""
    found: dict[int, RowRanges] = {}
    for part in slices:
        rows = RowRanges.all(part.stop) if part.start == 0 else RowRanges.from_range(part.start, part.stop)
        found[part.row_group] = found[part.row_group] | rows if part.row_group in found else rows
    return found


def _to_selections(
    plan: ReadPlan, slices: Sequence[RowSlice], found: Mapping[int, FilteredRows], limit: int | None
) -> list[RowSelection]:
    """Return the remaining rows in the order of the slices, at most `limit`."""
    placed: list[RowSelection] = []
    out = 0
    groups = dict(zip(map(_ordinal_of, plan.left), plan.left, strict=True))
    for part in slices:
        group = groups.get(part.row_group)
        if group is None:
            continue
        some = found[part.row_group] if part.row_group in found else FilteredRows(group.rows, {})
        if some.rows.stop > part.stop or some.rows.bounds[0, 0] < part.start:
            some = some.clip(part.start, part.stop)
        if limit is not None and some.num_rows > limit - out:
            some = some.head(limit - out)
        if some.rows.count:
            placed.append(RowSelection(part.row_group, some.rows, out, group.chunks, some.cached, some.mask))
            out += some.num_rows
    return placed
