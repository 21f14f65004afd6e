"""Filter row groups by decoded values, conjunct by conjunct (late materialisation)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from numparq.column.jobs.predicate_cache import CachedBinary, CachedFixed
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.take import ValueIndices, ValueRanges, ValueSelection
from numparq.errors import error_context
from numparq.expr.bound import filter_leaves
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import And, Constant, Expression
from numparq.expr.normalize import all_of
from numparq.format.schema import Leaf
from numparq.plan.read_plan import ReadPlan, RowGroupPlan
from numparq.plan.row_ranges import RowRanges
from numparq.types.output_type import OutputType

from .filter_columns import FilterColumns, cacheable_values, leaf_positions
from .prefetch import ScanPrefetcher

__all__ = ["FilteredRows", "RowFilter", "conjuncts"]

# Rows are told by a mask where there is more than one edge of a run in so many rows.
MIN_ROWS_PER_RUN = 16
# And where the places in it are numbers of 32 bits.
MAX_MASK_ROWS = 1 << 31


@dataclass(frozen=True)
class FilteredRows:
    """The rows of a row group that satisfy a filter.

    Parameters
    ----------
    rows : RowRanges
        Within the row group; with a mask, the one range that it is for.
    kept : dict of int to CachedFixed or CachedBinary
        By the positions of columns: their values in these rows, of those that were asked and are wanted, too.
    mask : uint8 array or None
        Of each row of the range, whether it satisfies the filter (1) or not (0): where many do, here and there.
    """

    rows: RowRanges
    kept: dict[int, CachedFixed | CachedBinary]
    mask: np.ndarray | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.count if self.mask is None else int(np.count_nonzero(self.mask))

    def within(self, start: int, stop: int) -> FilteredRows:
        """Give those of the rows from `start` up to, but not including, `stop`."""
        rows = self._exact()
        return self._taken(rows, rows.clip(start, stop))

    def first(self, count: int) -> FilteredRows:
        """Give the first `count` of the rows."""
        rows = self._exact()
        return self._taken(rows, rows.select(RowRanges.all(count)))

    def _exact(self) -> RowRanges:
        return self.rows if self.mask is None else self.rows.select(RowRanges.from_mask(self.mask))

    def _taken(self, rows: RowRanges, chosen: RowRanges) -> FilteredRows:
        taking = ValueRanges.between(chosen.positions_in(rows).bounds)
        return FilteredRows(chosen, {place: column.taken(taking) for place, column in self.kept.items()})


class RowFilter:
    """Finds the rows that satisfy a filter.

    Parameters
    ----------
    context : ReadContext
        Of the read.
    chunk_tables : ChunkTables
        The chunks of all columns read, those that only the filter asks included.
    leaves : sequence of Leaf
        All these columns.
    projected_types : sequence of OutputType
        How those of them are decoded, from the first one on, that are wanted themselves.
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
        self._shown = projected_types
        self._filter_columns = FilterColumns(context, chunk_tables, leaves)

    def find(
        self,
        plan: ReadPlan,
        narrow: Callable[[RowGroupPlan], tuple[RowGroupPlan, Expression]],
        prefetcher: ScanPrefetcher,
        limit: int | None = None,
    ) -> dict[int, FilteredRows]:
        """Find the rows of all row groups of a plan.

        Parameters
        ----------
        plan : ReadPlan
            What statistics and indexes have left.
        narrow : callable
            Called for each row group when its turn comes: gives what is left of it by then, and the bound expression
            that its rows have to satisfy.
        prefetcher : ScanPrefetcher
            What fetches the pages of the columns asked, in the order of ``plan.left``.
        limit : int or None
            So many rows are enough, the first ones of the plan.

        Returns
        -------
        dict of int to Found
            By the ordinals of row groups; those without rows left are not in it.
        """
        found: dict[int, FilteredRows] = {}
        count = 0

        turns = {group.ordinal: turn for turn, group in enumerate(plan.left)}

        def work(group: RowGroupPlan) -> None:
            with error_context(row_group=group.ordinal), prefetcher.batch(turns[group.ordinal]):
                found[group.ordinal] = self.of_row_group(*narrow(group), limit is None)

        for wave in self._waves(plan.left, limit):
            self._context.crew.run([lambda group=group: work(group) for group in wave])  # type: ignore[misc]
            count += sum(found[group.ordinal].count for group in wave)
            if limit is not None and count >= limit:
                break
        return {ordinal: some for ordinal, some in found.items() if some.rows}

    def _waves(self, groups: Sequence[RowGroupPlan], limit: int | None) -> Iterator[Sequence[RowGroupPlan]]:
        """Divide row groups into those that are looked through at once: all, unless the first may have enough."""
        size = len(groups) if limit is None else self._context.crew.threads
        for first in range(0, len(groups), max(size, 1)):
            yield groups[first : first + size]

    def of_row_group(self, group: RowGroupPlan, bound: Expression, allow_mask: bool = True) -> FilteredRows:
        """Find the rows of a row group.

        Parameters
        ----------
        group : RowGroupPlan
            What is left of it.
        bound : Expression
            What they have to satisfy.
        allow_mask : bool
            Whether they may be given as a mask, where that is the shorter way to say it.

        Returns
        -------
        FilteredRows
        """
        rows, known = group.rows, dict[int, CachedFixed | CachedBinary]()
        mask: np.ndarray | None = None
        parts = conjuncts(bound)
        for step in parts:
            if isinstance(step, Constant):
                rows = rows if step.value else RowRanges()
            if not rows:
                break
            if isinstance(step, Constant):
                continue
            places = leaf_positions(self._leaves, filter_leaves(step))
            values = self._filter_columns.values(group, rows, list(places.values()))
            answers = evaluate(step, values, rows.count)
            taking: ValueSelection
            if (
                allow_mask
                and step is parts[-1]
                and len(rows) == 1
                and _is_scattered(answers)
                and len(answers) < MAX_MASK_ROWS
            ):
                mask = answers.view(np.uint8)
                taking = ValueIndices.where(mask)
            else:
                left = RowRanges.from_mask(answers)
                taking = ValueRanges.between(left.bounds)
                rows = rows.select(left)
            known = {place: some.taken(taking) for place, some in known.items()}
            for index, place in places.items():
                some = cacheable_values(self._leaves[place], values[index]) if place < len(self._shown) else None
                if some is not None:
                    known[place] = some.taken(taking)
        for place, some in known.items():
            if isinstance(some, CachedBinary) and self._shown[place].storage != "dictionary":
                known[place] = some.shrink()
        return FilteredRows(rows, known, mask)


def _is_scattered(answers: np.ndarray) -> bool:
    """Tell whether there are too many runs of rows for these to be worth counting."""
    return int(np.count_nonzero(answers[1:] != answers[:-1])) * MIN_ROWS_PER_RUN > len(answers)


def conjuncts(bound: Expression) -> list[Expression]:
    """Divide an expression into parts that all have to hold, each leaf in one of them only.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.

    Returns
    -------
    list of Expression
        In its order.
    """
    if not isinstance(bound, And):
        return [bound]
    groups: list[tuple[set[int], list[Expression]]] = []
    for part in bound.parts:
        asked = {leaf.index for leaf in filter_leaves(part)}
        together = [part]
        apart = []
        for leaves, members in groups:
            if leaves & asked:
                asked, together = asked | leaves, members + together
            else:
                apart.append((leaves, members))
        groups = [*apart, (asked, together)]
    return [all_of(members) for _, members in groups]
