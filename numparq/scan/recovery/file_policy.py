"""`on_error="skip"` for one file of a scan: damaged chunks are empty, failed jobs retried; lost rows match nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numparq.column.jobs.schedule import TaskScheduler, decode_columns
from numparq.column.read.context import ReadContext
from numparq.column.read.row_selection import SLICE_OUT, SLICE_START, SLICE_STOP, RowSlices
from numparq.errors import ParquetError
from numparq.expr.bound import filter_leaves
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import Expression
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.scan.filter_columns import FilterBuffers, column_vector, leaf_positions, plain_output_type
from numparq.scan.filter_rows import BATCH_ROWS

from .footer_checks import TolerantChunkTables
from .intact_pages import DamagedChunk
from .losses import Losses, Lost
from .lost_rows import take_intact
from .retry import damage_scheduler

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory
    from numparq.io.multi_file_source import MultiFileSource
    from numparq.scan.predicate import ScanPredicate
    from numparq.types.output_type import OutputType


class SelectedFileRows(Protocol):
    """Members of `FileReader` that the policy uses to select rows."""

    context: ReadContext
    predicate: ScanPredicate | None
    selections: RowSlices


class SkipDamagedFile:
    """Error policy for the rows of one file.

    Attributes
    ----------
    losses : Losses
        Rows lost so far, by column chunk.
    matching : RowRanges or None
        Output rows of the selected row groups that satisfy the predicate; None without one.
    """

    def __init__(
        self,
        name: str,
        footer: Footer,
        damaged_chunks: Mapping[tuple[int, str], ParquetError],
        damaged_pages: dict[tuple[int, str], DamagedChunk],
    ) -> None:
        self.losses = Losses(name, [0, *np.cumsum(footer.row_group_num_rows).tolist()])
        self.matching: RowRanges | None = None
        self._damaged = damaged_chunks, damaged_pages

    def chunk_tables(
        self, footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> TolerantChunkTables:
        """Build the chunk tables."""
        self._tables = TolerantChunkTables(footer, leaves, row_groups, end, files, *self._damaged)
        return self._tables

    def scheduler(
        self, context: ReadContext, tables: TolerantChunkTables, leaves: Sequence[Leaf], memory: OutputMemory
    ) -> TaskScheduler:
        """Return the scheduler of the tasks."""
        return damage_scheduler(context, tables, memory, self.losses)

    def report(self) -> list[Lost]:
        """List the losses."""
        return self.losses.to_list([leaf.name for leaf in self._tables.leaves])

    def select(self, rows: SelectedFileRows, targets: Sequence[OutputType], limit: int | None) -> RowSlices:
        """Return the rows selected by position, in row groups with a match; `matching` has those that match.

        A lost value cannot be tested, so its row does not match.
        """
        bound = None if rows.predicate is None else rows.predicate.current()
        slices = rows.selections
        if bound is None or not len(slices):
            return slices
        found, matching, out = [], [np.empty((0, 2), np.int64)], 0
        for batch in _batches(slices, any(leaf.is_nested for leaf in filter_leaves(bound))):
            counts = batch.table[:, SLICE_STOP] - batch.table[:, SLICE_START]
            of_slice = np.repeat(np.arange(len(counts)), counts)
            is_match, is_kept = np.zeros(len(of_slice), np.bool_), np.zeros(len(counts), np.bool_)
            is_match[self._matching_rows(rows, bound, batch).indices()] = True
            is_kept[of_slice[is_match]] = True
            found.append(batch.table[is_kept])
            matching.append(RowRanges.from_mask(is_match[is_kept[of_slice]]).bounds + out)
            out += int(counts[is_kept].sum())
        self.matching = RowRanges(np.concatenate(matching))
        table = np.concatenate(found)
        table[:, SLICE_OUT] = np.cumsum(counts := table[:, SLICE_STOP] - table[:, SLICE_START]) - counts
        return RowSlices(table) if out else RowSlices.single(slices[0].row_group, 0, 0)

    def _matching_rows(self, rows: SelectedFileRows, bound: Expression, batch: RowSlices) -> RowRanges:
        """Decode the filter columns of slices; return their rows, from 0, that are intact and match."""
        leaves, num_rows, only = self._tables.leaves, batch.num_rows, batch.move(-batch[0].out)
        positions = list(leaf_positions(leaves, filter_leaves(bound)).values())
        memory = FilterBuffers(leaves, num_rows, rows.context.local.get())
        for position in positions:
            memory.reallocate(position, plain_output_type(leaves[position]))
        scheduler = damage_scheduler(rows.context, self._tables, memory, self.losses)
        decoded = decode_columns(scheduler, memory, lambda: [only], positions)
        lost = self.losses.lost_rows(only, positions)
        intact = RowRanges.all(num_rows) - lost
        if not intact:
            return intact
        if lost:
            decoded = {at: take_intact(one, intact, leaves[at], memory.targets[at]) for at, one in decoded.items()}
        vectors = {leaves[at].index: column_vector(leaves[at], column) for at, column in decoded.items()}
        return intact.select(RowRanges.from_mask(evaluate(bound, vectors, intact.count)))


def _batches(slices: RowSlices, is_nested: bool) -> Iterator[RowSlices]:
    """Yield slices of few rows together, those of nested filter columns one by one."""
    first = num_rows = 0
    for at, part in enumerate(slices):
        if at > first and (is_nested or num_rows + len(part) > BATCH_ROWS):
            yield slices[first:at]
            first, num_rows = at, 0
        num_rows += len(part)
    yield slices[first:]
