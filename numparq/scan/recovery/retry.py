"""Retry failed decode jobs, column chunk by column chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.jobs.job import DecodeJob
from numparq.column.jobs.nested import NestedJob
from numparq.column.jobs.schedule import JobScheduler
from numparq.column.jobs.slice import DictionaryJob, FixedJob
from numparq.column.read.context import ReadContext
from numparq.column.read.dictionary import EMPTY_DICTIONARY as NO_VALUES
from numparq.column.read.output import OutputMemory
from numparq.column.read.pages import Pages
from numparq.errors import LimitError, ParquetError
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_ROW_START, C_ROW_STOP, C_START

from .bisect import IntactPages, decode_intact_pages
from .footer_checks import PageHeaderCheck, TolerantChunkTables
from .losses import Losses, LostRows
from .lost_rows import nested_piece_with_placeholders, placeholder_rows, slice_piece
from .page_walk import read_page_locations, walk_pages

__all__ = ["TolerantContext", "TolerantJobMaker"]


@dataclass
class TolerantContext(ReadContext):
    """The context of a read that goes on behind damages; `header_check` holds page headers against the footer."""

    header_check: PageHeaderCheck | None = None

    def check_pages(self, row_group: int, columns: list[int], pages: Pages) -> None:
        """Check pages before they are decoded; PageFailure."""
        if self.header_check is not None:
            self.header_check.check(row_group, columns, pages)
        super().check_pages(row_group, columns, pages)


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
            self.error = error


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
            for column in job.columns:
                self._losses.forget(job.row_group, column)
        trials = [_CaughtJob(job) for job in jobs]
        super().run(trials)  # type: ignore[arg-type]
        for trial in trials:
            if trial.error is not None:
                self._retry(trial)

    def _retry(self, trial: _CaughtJob) -> None:
        """Do the chunks of a failed job one by one."""
        job = trial.job
        job.chunks, job.arrays, job.retries = trial.pristine.copy(), [], {}
        for place, column in enumerate(job.columns):
            chunk = trial.pristine[place : place + 1]
            fault = self._chunk_tables.faults.get((job.row_group, column))
            if fault is not None:
                lost = [LostRows(0, self._chunk_tables.num_rows(job.row_group), fault)]
                self._store(job, place, _single_chunk_job(job, chunk, column), IntactPages(lost=lost))
                continue
            again = _CaughtJob(_single_chunk_job(job, chunk, column))
            again()
            if again.error is not None:
                alone = _single_chunk_job(job, chunk, column)
                self._store(job, place, alone, self._decode_pages(alone, again.error))
                continue
            job.retries.update(again.job.retries)
            job.arrays.extend(again.job.arrays)
            job.chunks[place, C_NULL_COUNT] = again.chunks[0, C_NULL_COUNT]

    def _decode_pages(self, alone: DecodeJob, error: ParquetError) -> IntactPages:
        """Walk over a chunk's pages, by its offset index if it has a sound one, and decode them."""
        leaf, num_rows = self._chunk_tables.leaves[alone.columns[0]], self._chunk_tables.num_rows(alone.row_group)
        try:
            record = self._chunk_tables.footer.chunks.chunk_record(alone.row_group, leaf.index)
            start, end = alone.chunks[0, [C_START, C_END]].tolist()
            locations = read_page_locations(self._context.source, record, start, end, num_rows)
        except LimitError:
            raise
        except ParquetError:
            locations = None
        repeated = leaf.max_repetition_level > 0
        walked = walk_pages(self._context.source, alone.chunks, num_rows, locations, repeated)
        decoded = decode_intact_pages(alone, walked, num_rows)
        if decoded.failed is None and not decoded.lost:  # no page can be named, and yet the chunk is not whole
            return IntactPages(lost=[LostRows(0, num_rows, error)])
        return decoded

    def _store(self, job: DecodeJob, position: int, alone: DecodeJob, decoded: IntactPages) -> None:
        """Put what could be decoded of a chunk in the place of what a job should have decoded; the rest is lost."""
        column = alone.columns[0]
        if decoded.failed is not None:
            job.retries[column] = decoded.failed
            return
        first, stop = _row_range(alone)
        lost = [LostRows(max(rows.first, first), min(rows.stop, stop), rows.reason) for rows in decoded.lost]
        self._losses.add(job.row_group, column, lost)
        job.chunks[position, C_NULL_COUNT] = sum(int(done.chunks[0, C_NULL_COUNT]) for _, _, done in decoded.jobs)
        job.arrays.extend(_pieces_with_placeholders(alone, decoded, first, stop))


def _single_chunk_job(job: DecodeJob, chunk: np.ndarray, column: int) -> DecodeJob:
    """Make a job of one chunk of a job."""
    changes = {"columns": [column], "chunks": chunk.copy(), "shares_pages": False, "retries": {}, "arrays": []}
    if isinstance(job, DictionaryJob):
        job.codes.fill(-1)
        changes["dictionary"] = NO_VALUES
    if isinstance(job, NestedJob):  # every attempt would keep a dictionary of its own
        changes["target"] = replace(job.target, keep_codes=False)
    return replace(job, **changes)  # type: ignore[arg-type]


def _row_range(job: DecodeJob) -> tuple[int, int]:
    """Give the rows that are wanted of a chunk, counted within its row group."""
    if isinstance(job, NestedJob):
        return job.rows.start, job.rows.stop
    return int(job.chunks[0, C_ROW_START]), int(job.chunks[0, C_ROW_STOP])


def _pieces_with_placeholders(job: DecodeJob, decoded: IntactPages, first: int, stop: int) -> list[Any]:
    """Give the rows wanted of a chunk in pieces: those that were decoded, and something in place of those lost."""
    if isinstance(job, NestedJob):
        return [nested_piece_with_placeholders(job, decoded, first, stop)]
    if isinstance(job, FixedJob) and not isinstance(job, DictionaryJob):
        return []
    made: list[BinaryArray | DictionaryArray] = []
    position = first
    for begin, end, done in decoded.jobs:
        begin, end = max(begin, first), min(end, stop)
        if begin >= end:
            continue
        if begin > position:
            made.append(placeholder_rows(begin - position))
        for piece in done.arrays:
            whole = isinstance(job, DictionaryJob) and len(piece) == stop - first
            made.append(slice_piece(piece, begin - first, end - first) if whole else piece)
        position = end
    if stop > position:
        made.append(placeholder_rows(stop - position))
    return made
