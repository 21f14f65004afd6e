"""Select the rows to decode: by position, by pruning, by the predicate."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from itertools import starmap
from operator import attrgetter

import numpy as np

from numparq.column.read import row_selection
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import SLICE_GROUP, RowSelection, RowSlice
from numparq.expr.expression import Constant, Expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.prune.planner import ReadPlanner
from numparq.types.output_type import OutputType

from .filter_columns import leaf_positions
from .filter_rows import FilteredRows, RowFilter
from .predicate import ScanPredicate
from .prefetch import ScanPrefetcher, row_group_byte_ranges

_TRUE = Constant(True)
_NO_ROWS = RowRanges()
_num_rows_of = attrgetter("rows.count")
_row_range = lru_cache(maxsize=1024)(RowRanges.from_range)  # one for a million row groups of the same size

# What all waves share; the last are the bound predicate, and the row groups whose rows all match it.
_Filtering = tuple[ReadContext, ScanPrefetcher | None, ScanPredicate, Expression | None, set[int]]


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
        self._tables, self._is_joined = chunk_tables, file.footer.data_bounds is not None
        self._leaves = leaves
        self._projected_types = projected_types
        self._predicate = predicate
        self._planner = ReadPlanner(file, leaves, chunk_tables)

    def plan(self, slices: Sequence[RowSlice]) -> ReadPlan:
        """Plan what to read: the rows of the slices, pruned by statistics and indexes."""
        plan = self._planner.plan_rows(_row_ranges(slices))
        bound = None if self._predicate is None else self._predicate.current()
        if bound is None:
            self._planner.locate_pages(plan, self._leaves)
        else:
            self._planner.prune(plan, bound)
        return plan.build()

    def select(
        self,
        table: np.ndarray,
        context: ReadContext,
        prefetcher: ScanPrefetcher | None,
        limit: int | None = None,
    ) -> list[RowSelection]:
        """Return row selections in the order of the `table` of slices: pruned, filtered, and at most `limit` rows.

        A row group may appear more than once. `prefetcher` fetches the pages of a remote file.
        """
        planner, predicate = self._planner, self._predicate
        if predicate is None:
            slices = [*starmap(RowSlice, table.tolist())]
            plan = planner.plan_rows(_row_ranges(slices))
            planner.locate_pages(plan, self._leaves)
            return self._to_selections(plan, slices, {}, limit, 0)
        bound, fully_matched = predicate.current(), set[int]()
        if bound is not None:  # plan only row groups that statistics do not prune
            of_slices = table[:, SLICE_GROUP].tolist()
            row_groups = [*dict.fromkeys(of_slices)]
            candidates, fully_matched = planner.match_row_groups(row_groups, bound)
            if len(candidates) < len(row_groups):
                table = table[np.fromiter(map({*candidates}.__contains__, of_slices), np.bool_, len(table))]
        filtering = context, prefetcher, predicate, bound, fully_matched
        selections: list[RowSelection] = []
        step, out = row_selection.WAVE if prefetcher is None else max(len(table), 1), 0
        for first in range(0, len(table), step):
            wave = [*starmap(RowSlice, table[first : first + step].tolist())]
            selections += self._filter(wave, filtering, limit, out)
            out = selections[-1].out + selections[-1].num_rows if selections else 0
            if limit is not None and out >= limit:
                break
        return selections

    def _filter(
        self,
        slices: Sequence[RowSlice],
        filtering: _Filtering,
        limit: int | None,
        out: int,
    ) -> list[RowSelection]:
        """Prune by indexes and filter; return selections after `out` rows of others, at most `limit` with those."""
        context, prefetcher, predicate, bound, fully_matched = filtering
        planner, is_static = self._planner, not predicate.has_runtime_filters
        plan = planner.plan_rows(_row_ranges(slices))
        if bound is not None:
            planner.prune_by_indexes(plan, bound, fully_matched)
        groups = [*filter(_num_rows_of, plan.groups.values())]
        if prefetcher is not None:
            self._prefetch(groups, prefetcher, predicate.leaves, fully_matched)
        planner.read_encodings(plan, predicate.leaves)

        def narrow(group: RowGroupPlan) -> tuple[RowGroupPlan, Expression]:
            """Return what is left of a row group at its turn, and its predicate."""
            latest = bound if is_static else predicate.current()
            if latest is not None and latest is not bound:
                return self._narrow(group, latest)
            return group, _TRUE if latest is None or group.ordinal in fully_matched else latest

        # Small files are decoded again in less time than their values are taken.
        cached_types = () if self._is_joined else self._projected_types
        row_filter = RowFilter(context, self._tables, self._leaves, cached_types)
        filtered = row_filter.filter_row_groups(groups, narrow, prefetcher, None if limit is None else limit - out)
        for group in groups:
            rows = filtered[group.ordinal].rows if group.ordinal in filtered else _NO_ROWS
            plan.groups[group.ordinal] = RowGroupPlan(group.ordinal, group.num_rows, rows, group.chunks)
        projected = self._leaves[: len(self._projected_types)]
        planner.locate_pages(plan, projected)
        planner.read_encodings(plan, projected)
        return self._to_selections(plan, slices, filtered, limit, out)

    def _prefetch(
        self,
        groups: Sequence[RowGroupPlan],
        prefetcher: ScanPrefetcher,
        leaves: Sequence[Leaf],
        fully_matched: Container[int],
    ) -> None:
        """Schedule the pages of the filter columns; fetch those of all columns if they are few bytes.

        Row groups in `fully_matched` need no filter columns: the predicate holds for all their rows.
        """
        nothing = np.empty((0, 2), np.int64)
        if sum(group.num_bytes for group in groups) <= prefetcher.small_read_bytes:
            projected, every = range(len(self._projected_types)), range(len(self._leaves))
            each = [
                row_group_byte_ranges(group, projected if group.ordinal in fully_matched else every) for group in groups
            ]
            prefetcher.fetch_all(np.concatenate([nothing, *each]))
            return
        filter_columns = list(leaf_positions(self._leaves, leaves).values())
        prefetcher.schedule(
            [
                nothing if group.ordinal in fully_matched else row_group_byte_ranges(group, filter_columns)
                for group in groups
            ]
        )

    def _narrow(self, group: RowGroupPlan, bound: Expression) -> tuple[RowGroupPlan, Expression]:
        """Prune a row group again by a predicate with a runtime filter that has arrived since."""
        plan = PlanBuilder(self._tables.names, [group])
        fully_matched = self._planner.prune(plan, bound)
        return plan.groups[group.ordinal], _TRUE if fully_matched else bound

    def _to_selections(
        self,
        plan: PlanBuilder,
        slices: Sequence[RowSlice],
        filtered: Mapping[int, FilteredRows],
        limit: int | None,
        out: int,
    ) -> list[RowSelection]:
        """Return the remaining rows in the order of the slices, after `out` other rows; at most `limit` with those.

        Pages of other columns than the projected ones, which come first, are dropped.
        """
        selections: list[RowSelection] = []
        for part in slices:
            group = plan.groups[part.row_group]
            if not group.rows.count:
                continue
            some = (
                filtered[part.row_group]
                if part.row_group in filtered
                else FilteredRows(group.rows, group.rows.count, {})
            )
            if some.rows.stop > part.stop or some.rows.bounds[0, 0] < part.start:
                some = some.clip(part.start, part.stop)
            if limit is not None and some.num_rows > limit - out:
                some = some.head(limit - out)
            if some.rows.count:
                count = some.num_rows
                chunks = group.chunks[: len(self._projected_types)]
                selections.append(RowSelection(part.row_group, some.rows, out, count, chunks, some.cached, some.mask))
                out += count
        return selections


def _row_ranges(slices: Sequence[RowSlice]) -> dict[int, RowRanges]:
    """Return the rows of slices by row group ordinal; slices of the same row group are united."""
    row_ranges: dict[int, RowRanges] = {}
    for part in slices:
        rows, ordinal = _row_range(part.start, part.stop), part.row_group
        row_ranges[ordinal] = row_ranges[ordinal] | rows if ordinal in row_ranges else rows
    return row_ranges
