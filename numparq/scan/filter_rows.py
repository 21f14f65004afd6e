"""Filter row groups by decoded values, conjunct by conjunct (late materialisation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat

import numpy as np

from numparq.column.jobs.predicate_cache import CachedBinary, CachedFixed
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.take import ValueIndices, ValueRanges, ValueSelection
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

__all__ = ["FilteredRows", "RowFilter", "conjuncts"]

# Below this mean run length a mask is cheaper than row ranges.
MIN_ROWS_PER_RUN = 16
# Positions in a mask are 32-bit.
MAX_MASK_ROWS = 1 << 31


@dataclass(frozen=True)
class FilteredRows:
    """Rows of a row group that satisfy a predicate.

    Attributes
    ----------
    rows : RowRanges
        Within the row group; with a mask, the single range that the mask covers.
    cached : dict of int to CachedFixed or CachedBinary
        Predicate cache: by column position, the values of these rows decoded for the predicate and projected too.
    mask : uint8 array or None
        For each row of the range 1 if it satisfies the predicate, else 0; used for many short runs.
    """

    rows: RowRanges
    cached: dict[int, CachedFixed | CachedBinary]
    mask: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.rows.count if self.mask is None else int(np.count_nonzero(self.mask))

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
        return FilteredRows(chosen, {place: column.take(taking) for place, column in self.cached.items()})


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
        prefetcher: ScanPrefetcher,
        limit: int | None = None,
    ) -> dict[int, FilteredRows]:
        """Filter planned row groups; return rows by row group ordinal.

        `narrow` returns what is left of a row group at its turn, and its predicate. Stops once `limit` rows are found.
        """
        filtered: dict[int, FilteredRows] = {}

        def work(turn: int, group: RowGroupPlan) -> None:
            try:
                if prefetcher.is_remote:
                    with prefetcher.batch(turn):
                        filtered[group.ordinal] = self.filter_row_group(*narrow(group), limit is None)
                else:
                    filtered[group.ordinal] = self.filter_row_group(*narrow(group), limit is None)
            except ParquetError as error:
                error.where.setdefault("row_group", group.ordinal)
                raise

        tasks = [*map(partial, repeat(work), count(), groups)]
        size = len(tasks) if limit is None else self._context.pool.threads  # with a limit, one for each thread at once
        for first in range(0, len(tasks), size or 1):
            self._context.pool.run(tasks[first : first + size])
            if limit is not None and sum(some.num_rows for some in filtered.values()) >= limit:
                break
        return filtered

    def filter_row_group(self, group: RowGroupPlan, bound: Expression, allow_mask: bool = True) -> FilteredRows:
        """Filter the planned rows of a row group; with `allow_mask` the last conjunct may return a mask."""
        rows, cached = group.rows, dict[int, CachedFixed | CachedBinary]()
        mask: np.ndarray | None = None
        parts = conjuncts(bound) if type(bound) is And else [bound]
        for step in parts:
            if type(step) is Constant:
                rows = rows if step.value else RowRanges()
                continue
            if not rows.count:
                break
            positions = [*map(self._position_of.__getitem__, map(leaf_ordinal, filter_leaves(step)))]
            answers, values, matched = self._filter_columns.match(
                step, group, rows, positions, len(self._projected_types)
            )
            if min(positions) < len(self._projected_types):
                cached |= self._cacheable(positions, values)
            is_last = step is parts[-1] and allow_mask
            if is_last and len(rows.bounds) == 1 and len(answers) < MAX_MASK_ROWS and _is_scattered(answers):
                mask = answers.view(np.uint8)
                selection: ValueSelection | None = ValueIndices.from_mask(mask) if cached else None
            else:
                left = RowRanges.from_mask(answers)
                selection = ValueRanges.from_ranges(left.bounds) if cached else None
                rows = rows.select(left)
            if selection is not None:
                cached = {position: column.take(selection) for position, column in cached.items()}
            cached |= matched
        for position, column in cached.items():
            if isinstance(column, CachedBinary) and self._projected_types[position].storage != "dictionary":
                cached[position] = column.shrink()
        return FilteredRows(rows, cached, mask)

    def _cacheable(
        self, positions: Sequence[int], values: Mapping[int, ColumnVector]
    ) -> dict[int, CachedFixed | CachedBinary]:
        """Return the decoded values, by leaf ordinal, of the filter columns that are projected, too; uncopied."""
        cacheable: dict[int, CachedFixed | CachedBinary] = {}
        for position in positions:
            if position < len(self._projected_types):
                leaf = self._leaves[position]
                column = cacheable_values(leaf, values[leaf.index]) if leaf.index in values else None
                if column is not None:
                    cacheable[position] = column
        return cacheable


def _is_scattered(answers: np.ndarray) -> bool:
    """Whether the mask has too many runs for row ranges."""
    changes: int = np.add.reduce(answers[1:] != answers[:-1])
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
