"""Filter row groups by decoded values, conjunct by conjunct (late materialisation)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat
from operator import attrgetter

import numpy as np

from numparq.column.jobs.predicate_cache import CachedBinary, CachedFixed
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import RowSelection
from numparq.column.read.take import ValueIndices, ValueRanges, ValueSelection
from numparq.column.scratch import UNLIMITED
from numparq.errors import ParquetError
from numparq.expr.bound import filter_leaves
from numparq.expr.expression import And, Constant, Expression
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.normalize import all_of
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.types.output_type import OutputType

from .filter_columns import FilterColumns, cacheable_values
from .prefetch import ScanPrefetcher

# Below this mean run length a mask is cheaper than row ranges.
MIN_ROWS_PER_RUN = 16
# Row groups of few rows are filtered together: 1,000 of 200 rows in a tenth of the time.
BATCH_ROWS = 16 << 10
# Positions in a mask are 32-bit.
MAX_MASK_ROWS = 1 << 31
_NO_ROWS = RowRanges()
_FEW_ROW_GROUPS = 4  # their masks are converted one by one in less time
_rows_of = attrgetter("rows")

_Cache = dict[int, CachedFixed | CachedBinary]  # predicate cache of a row group, by position of a projected column


@dataclass(frozen=True)
class FilteredRows:
    """Rows of a row group that satisfy a predicate.

    Attributes
    ----------
    rows : RowRanges
        Within the row group; with a mask, the single range that the mask covers.
    num_rows : int
        Number of rows.
    cached : dict of int to CachedFixed or CachedBinary
        Predicate cache: by column position, the values of these rows decoded for the predicate and projected too.
    mask : uint8 array or None
        For each row of the range 1 if it satisfies the predicate, else 0; used for many short runs.
    """

    rows: RowRanges
    num_rows: int
    cached: dict[int, CachedFixed | CachedBinary]
    mask: np.ndarray | None = None

    def clip(self, start: int, stop: int) -> FilteredRows:
        """Return the rows from `start` to `stop` (exclusive), both within the row group."""
        rows = self._row_ranges()
        return self._take(rows, rows.clip(start, stop))

    def head(self, count: int) -> FilteredRows:
        """Return the first `num_rows` rows."""
        rows = self._row_ranges()
        return self._take(rows, rows.select(RowRanges.all(count)))

    def _row_ranges(self) -> RowRanges:
        return self.rows if self.mask is None else self.rows.select(RowRanges.from_mask(self.mask))

    def _take(self, rows: RowRanges, chosen: RowRanges) -> FilteredRows:
        taking = ValueRanges.from_ranges(chosen.positions_in(rows).bounds)
        return FilteredRows(chosen, chosen.count, _take(self.cached, taking))


class RowFilter:
    """Filter of row groups by decoded values.

    `leaves` are projected leaves, then filter leaves; `projected_types` are the output types of the former.
    """

    def __init__(
        self,
        context: ReadContext,
        chunk_tables: ChunkTables,
        leaves: Sequence[Leaf],
        projected_types: Sequence[OutputType],
    ) -> None:
        self._context = context
        self._leaves = leaves
        self._projected_types = projected_types
        self._filter_columns = FilterColumns(context, chunk_tables, leaves)
        self._position_of = dict(zip(map(leaf_ordinal, leaves), range(len(leaves)), strict=True))

    def filter_row_groups(
        self,
        groups: Sequence[RowGroupPlan],
        narrow: Callable[[RowGroupPlan], tuple[RowGroupPlan, Expression]],
        prefetcher: ScanPrefetcher | None,
        limit: int | None = None,
    ) -> dict[int, FilteredRows]:
        """Filter planned row groups; return rows by row group ordinal.

        `narrow` returns what is left of a row group at its turn, and its predicate. Stops once `limit` rows are found.
        """
        filtered: dict[int, FilteredRows] = {}

        def work(turn: int, batch: Sequence[RowGroupPlan]) -> None:
            try:
                if prefetcher is not None:
                    with prefetcher.batch(turn):
                        self._filter_narrowed([*map(narrow, batch)], limit is None, filtered)
                else:
                    self._filter_narrowed([*map(narrow, batch)], limit is None, filtered)
            except ParquetError as error:
                if len(batch) == 1:
                    error.where.setdefault("row_group", batch[0].ordinal)
                    raise
                for group in batch:  # the first that fails raises its own error
                    work(turn, [group])

        is_batched = limit is None and prefetcher is None
        batches = _small_batches(groups) if is_batched and len(groups) > 1 else [*zip(groups)]
        tasks = [*map(partial, repeat(work), count(), batches)]
        size = len(tasks) if limit is None else self._context.pool.threads  # with a limit, one for each thread at once
        for first in range(0, len(tasks), size or 1):
            self._context.pool.run(tasks[first : first + size])
            if limit is not None and sum(some.num_rows for some in filtered.values()) >= limit:
                break
        return filtered

    def _filter_narrowed(
        self, narrowed: Sequence[tuple[RowGroupPlan, Expression]], allow_mask: bool, filtered: dict[int, FilteredRows]
    ) -> None:
        """Filter row groups, those with the same predicate of flat columns together; add their rows to `filtered`."""
        if len(narrowed) == 1:
            group, bound = narrowed[0]
            filtered[group.ordinal] = self.filter_batch([group], bound, allow_mask)[0]
            return
        batches: dict[tuple[int, int], tuple[list[RowGroupPlan], Expression]] = {}
        for number, (group, bound) in enumerate(narrowed):
            is_nested = any(leaf.is_nested for leaf in filter_leaves(bound))
            batches.setdefault((id(bound), number if is_nested else -1), ([], bound))[0].append(group)
        for batch, bound in batches.values():
            for group, rows in zip(batch, self.filter_batch(batch, bound, allow_mask), strict=True):
                filtered[group.ordinal] = rows

    def filter_batch(
        self, groups: Sequence[RowGroupPlan], bound: Expression, allow_mask: bool = True
    ) -> list[FilteredRows]:
        """Filter the planned rows of row groups, several only for flat columns; they are decoded together.

        With `allow_mask` the last conjunct may return the mask of a single row group.
        """
        rows, mask = [*map(_rows_of, groups)], None
        cached: defaultdict[int, _Cache] = defaultdict(dict)  # by position in `groups`
        parts = conjuncts(bound) if type(bound) is And else [bound]
        for step in parts:
            if type(step) is Constant:
                rows = rows if step.value else [RowRanges()] * len(groups)
                continue
            selections, num_rows = [], 0
            for group, some in zip(groups, rows, strict=True):
                if some.count:
                    selections.append(RowSelection(group.ordinal, some, num_rows, some.count, group.chunks))
                    num_rows += some.count
            if not num_rows:
                break
            positions = [*map(self._position_of.__getitem__, map(leaf_ordinal, filter_leaves(step)))]
            num_projected = len(self._projected_types)
            answers, values, matched = self._filter_columns.match(step, selections, positions, num_projected)
            decoded = self._cacheable(positions, values, len(groups)) if min(positions) < num_projected else {}
            is_last = step is parts[-1] and allow_mask and len(groups) == 1
            if is_last and len(rows[0].bounds) == 1 and num_rows < MAX_MASK_ROWS and _is_scattered(answers):
                mask = answers.view(np.uint8)
                cached[0] = _take(cached[0] | decoded, ValueIndices.from_mask(mask)) if cached[0] or decoded else {}
            else:
                _narrow(rows, cached, decoded, answers)
            cached[0] |= matched
        filtered = []
        for number, some in enumerate(rows):
            num_rows = some.count if mask is None else int(np.count_nonzero(mask))
            columns = cached[number]
            filtered.append(FilteredRows(some, num_rows, self._cache(columns) if columns else columns, mask))
        return filtered

    def _cache(self, columns: _Cache) -> _Cache:
        """Return values of a row group for the predicate cache; none if it would exceed its share of memory."""
        for position, column in columns.items():
            if isinstance(column, CachedBinary) and self._projected_types[position].storage != "dictionary":
                columns[position] = column.shrink()
        local = self._context.local
        if local.share is UNLIMITED or local.reserve_cache(sum(column.num_bytes for column in columns.values())):
            return columns
        return {}

    def _cacheable(self, positions: Sequence[int], values: Mapping[int, ColumnVector], num_groups: int) -> _Cache:
        """Return the decoded values, by leaf ordinal, of the filter columns that are projected, too; uncopied.

        A Categorical is not among them if several row groups were decoded together: it needs their dictionaries.
        """
        cacheable: _Cache = {}
        for position in positions:
            leaf = self._leaves[position]
            if position < len(self._projected_types) and leaf.index in values:
                if num_groups > 1 and self._projected_types[position].storage == "dictionary":
                    continue
                column = cacheable_values(leaf, values[leaf.index])
                if column is not None:
                    cacheable[position] = column
        return cacheable


def _narrow(rows: list[RowRanges], cached: defaultdict[int, _Cache], decoded: _Cache, answers: np.ndarray) -> None:
    """Narrow the rows of each row group of a batch to those that match; take their values."""
    matching = None
    if len(rows) > _FEW_ROW_GROUPS:
        matching = iter(RowRanges.from_masks(answers, [some.count for some in rows if some.count]))
    first = 0
    for number, some in enumerate(rows):
        if some.count:
            left = next(matching) if matching else RowRanges.from_mask(answers[first : first + some.count])
            rows[number] = some if left.count == some.count else some.select(left)
            if left.count and (decoded or cached[number]):
                kept = ValueRanges.from_ranges(left.bounds)
                of_batch = ValueRanges.from_ranges(left.bounds + first) if first else kept
                taken = _take(decoded, of_batch)
                cached[number] = taken | _take(cached[number], kept) if cached[number] else taken
            first += some.count


def _take(columns: _Cache, selection: ValueSelection) -> _Cache:
    """Return some rows of cached columns, copied."""
    taken: _Cache = {}
    for position, column in columns.items():
        taken[position] = column.take(selection)
    return taken


def _small_batches(groups: Sequence[RowGroupPlan]) -> list[list[RowGroupPlan]]:
    """Return row groups in batches of at most 16,384 rows, or one by one if they have more."""
    batches: list[list[RowGroupPlan]] = []
    num_rows = BATCH_ROWS
    for group in groups:
        num_rows += group.rows.count
        if num_rows > BATCH_ROWS:
            batches.append([])
            num_rows = group.rows.count
        batches[-1].append(group)
    return batches


def _is_scattered(answers: np.ndarray) -> bool:
    """Whether the mask has too many runs for row ranges."""
    if not np.logical_or.reduce(answers):  # far faster than to count changes
        return False
    changes = len((answers[1:] != answers[:-1]).nonzero()[0])  # far faster than a sum of bools
    return changes * MIN_ROWS_PER_RUN > len(answers)


def conjuncts(bound: Expression) -> list[Expression]:
    """Split a bound expression into conjuncts that share no leaf column."""
    if not isinstance(bound, And):
        return [bound]
    groups: list[tuple[set[int], list[Expression]]] = []
    for part in bound.parts:
        columns, together, apart = {leaf.index for leaf in filter_leaves(part)}, [part], []
        for leaves, members in groups:
            if leaves & columns:
                columns, together = columns | leaves, members + together
            else:
                apart.append((leaves, members))
        groups = [*apart, (columns, together)]
    return [all_of(members) for _, members in groups]
