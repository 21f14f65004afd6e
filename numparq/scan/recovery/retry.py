"""Retry failed decode jobs, column chunk by column chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numparq.column.jobs.job import DecodeJob
from numparq.column.jobs.nested import NestedJob
from numparq.column.jobs.schedule import JobScheduler
from numparq.column.jobs.slice import DictionaryJob, FixedJob
from numparq.column.read.context import ReadContext
from numparq.column.read.output import OutputMemory
from numparq.column.read.pages import Pages
from numparq.errors import LimitError, ParquetError
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_ROW_START, C_ROW_STOP, C_START
from numparq.plan.row_ranges import RowRanges

from .bisect import IntactPages, decode_intact_pages
from .footer_checks import PageHeaderCheck, TolerantChunkTables
from .losses import Losses, LostRows, without_frames
from .lost_rows import LostPiece, PartialLeaf, slice_piece
from .page_walk import read_page_locations, walk_pages

__all__ = ["TolerantContext", "TolerantJobMaker"]


@dataclass
class TolerantContext(ReadContext):
    """The context of a read that goes on behind damages; `header_check` holds page headers against the footer."""

    header_check: PageHeaderCheck | None = None

    def check_pages(self, row_groups: Sequence[int], columns: Sequence[int], pages: Pages) -> None:
        """Check pages before they are decoded; PageFailure."""
        if self.header_check is not None:
            self.header_check.check(row_groups, columns, pages)
        super().check_pages(row_groups, columns, pages)


class _CaughtJob:
    """A job that keeps its error, so that others are done all the same."""

    def __init__(self, job: DecodeJob) -> None:
        self.job = job
        self.pristine = job.chunks.copy()
        self.error: ParquetError | None = None

    @property
    def chunks(self) -> np.ndarray:
        """The job's chunk table."""
        return self.job.chunks

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        return self.job.num_bytes

    def __call__(self) -> None:
        try:
            self.job()
        except LimitError:
            raise
        except ParquetError as error:
            self.error = without_frames(error)


class TolerantJobMaker(JobScheduler):
    """Makes jobs, and has those that fail done again with what is left of their chunks.

    Parameters
    ----------
    context : TolerantContext
        Of the read.
    chunk_tables : TolerantChunkTables
        The chunks of the columns read.
    memory : OutputMemory
        Where they are decoded to.
    losses : Losses
        What is lost is noted there.
    """

    def __init__(
        self, context: TolerantContext, chunk_tables: TolerantChunkTables, memory: OutputMemory, losses: Losses
    ) -> None:
        super().__init__(context, chunk_tables, chunk_tables.leaves, memory)
        context.header_check = PageHeaderCheck(chunk_tables.footer, chunk_tables.leaves)
        self._chunk_tables = chunk_tables
        self._losses = losses

    def run(self, jobs: Sequence[DecodeJob]) -> None:
        """Do jobs; what a failed one could not decode is lost."""
        for job in jobs:
            for row_group, column in zip(job.row_groups, job.columns, strict=True):
                self._losses.forget(row_group, column)
        trials = [_CaughtJob(job) for job in jobs]
        super().run(trials)  # type: ignore[arg-type]
        for trial in trials:
            if trial.error is not None:
                self._retry(trial)

    def _retry(self, trial: _CaughtJob) -> None:
        """Do the chunks of a failed job one by one."""
        job = trial.job
        job.chunks, job.arrays, job.retries = trial.pristine.copy(), [], {}
        for place, (row_group, column) in enumerate(zip(job.row_groups, job.columns, strict=True)):
            fault = self._chunk_tables.faults.get((row_group, column))
            if fault is not None:
                lost = [LostRows(0, self._chunk_tables.num_rows(row_group), fault)]
                self._store(job, place, _single_chunk_job(job, place), IntactPages(lost=lost))
                continue
            again = _CaughtJob(_single_chunk_job(job, place))
            again()
            if again.error is not None:
                alone = _single_chunk_job(job, place)
                self._store(job, place, alone, self._decode_pages(alone, again.error))
                continue
            job.retries.update(again.job.retries)
            job.arrays.extend(again.job.arrays)
            job.chunks[place, C_NULL_COUNT] = again.chunks[0, C_NULL_COUNT]

    def _decode_pages(self, alone: DecodeJob, error: ParquetError) -> IntactPages:
        """Walk over a chunk's pages, by its offset index if it has a sound one, and decode them."""
        (row_group,), (column,) = alone.row_groups, alone.columns
        leaf, num_rows = self._chunk_tables.leaves[column], self._chunk_tables.num_rows(row_group)
        try:
            record = self._chunk_tables.footer.chunks.chunk_record(row_group, leaf.index)
            start, end = alone.chunks[0, [C_START, C_END]].tolist()
            locations = read_page_locations(self._context.reader, record, start, end, num_rows)
        except LimitError:
            raise
        except ParquetError:
            locations = None
        repeated = leaf.max_repetition_level > 0
        walked = walk_pages(self._context.reader, alone.chunks, num_rows, locations, repeated)
        decoded = decode_intact_pages(alone, walked, num_rows)
        if decoded.failed is None and not decoded.lost:  # no page can be named, and yet the chunk is not whole
            return IntactPages(lost=[LostRows(0, num_rows, error)])
        return decoded

    def _store(self, job: DecodeJob, position: int, alone: DecodeJob, decoded: IntactPages) -> None:
        """Put what could be decoded of a chunk in the place of what a job should have decoded; the rest is lost."""
        (row_group,), (column,) = alone.row_groups, alone.columns
        if decoded.failed is not None:
            job.retries[column] = decoded.failed
            return
        first, stop = _row_range(alone)
        lost = [LostRows(max(rows.first, first), min(rows.stop, stop), rows.reason) for rows in decoded.lost]
        self._losses.add(row_group, column, lost)
        job.chunks[position, C_NULL_COUNT] = sum(int(done.chunks[0, C_NULL_COUNT]) for _, _, done in decoded.jobs)
        job.arrays.extend(_pieces_with_placeholders(alone, decoded, first, stop))


def _single_chunk_job(job: DecodeJob, position: int) -> DecodeJob:
    """Make a job of one chunk of a job that has not begun."""
    one = slice(position, position + 1)
    changes = {
        "row_groups": job.row_groups[one],
        "columns": job.columns[one],
        "chunks": job.chunks[one].copy(),
        "shares_pages": False,
        "retries": {},
        "arrays": [],
    }
    if isinstance(job, FixedJob):
        changes["output_of"] = job.output_of[one]
    if isinstance(job, NestedJob):  # every attempt would keep a dictionary of its own
        changes["target"] = replace(job.target, keep_codes=False)
    return replace(job, **changes)  # type: ignore[arg-type]


def _row_range(job: DecodeJob) -> tuple[int, int]:
    """Give the rows that are wanted of a chunk, counted within its row group."""
    if isinstance(job, NestedJob):
        return job.rows.start, job.rows.stop
    return int(job.chunks[0, C_ROW_START]), int(job.chunks[0, C_ROW_STOP])


def _pieces_with_placeholders(job: DecodeJob, decoded: IntactPages, first: int, stop: int) -> list[Any]:
    """Return the rows `first` to `stop` (exclusive) of a chunk: what was decoded, with placeholders for the rest."""
    if isinstance(job, NestedJob):
        parts = [(begin - first, end - first, done.arrays[0]) for begin, end, done in decoded.jobs]
        partial = PartialLeaf(parts, stop - first, job.row_groups[0])
        rows = RowRanges.all(stop - first)
        return [partial if rows - partial.intact else partial.take(rows, job.leaf, job.target)]
    if isinstance(job, FixedJob) and not isinstance(job, DictionaryJob):
        return []
    made: list[Any] = []
    position = first
    for begin, end, done in decoded.jobs:
        begin, end = max(begin, first), min(end, stop)
        if begin >= end:
            continue
        if begin > position:
            made.append(LostPiece(begin - position))
        for piece in done.arrays:
            whole = isinstance(job, DictionaryJob) and len(piece) == stop - first
            made.append(slice_piece(piece, begin - first, end - first) if whole else piece)
        position = end
    if stop > position:
        made.append(LostPiece(stop - position))
    return made
