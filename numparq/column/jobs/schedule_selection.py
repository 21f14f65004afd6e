"""Schedule decode jobs for row selections."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from numparq.column.read.chunk_selection import ChunkSelection
from numparq.column.read.dictionary import DictionaryCache
from numparq.column.read.output import fixed_output
from numparq.column.read.row_selection import (
    RowSelection,
    RowSlice,
    RowSlices,
    selected_page_locations,
)
from numparq.kernels.enums import BYTE_ARRAY
from numparq.kernels.tables import (
    C_ITEM_SIZE,
    C_NUM_VALUES,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_VALIDITY,
    L_ROW,
    PREFIX_CARRYOVER,
)
from numparq.plan.row_ranges import RowRanges
from numparq.types.output_type import OutputType

from .job import DecodeJob
from .predicate_cache import CachedBinary, CachedBinaryJob, CachedFixed, CachedFixedJob
from .schedule import JobScheduler
from .selection import BinarySelectionJob, DictionarySelectionJob, FixedSelectionJob, NestedSelectionJob

__all__ = ["SelectionScheduler"]

# Where there are fewer jobs than so many for each thread, the rows of a job are shared out, unless they are this few.
JOBS_PER_THREAD = 2
MIN_ROWS_PER_JOB = 64 << 10


class SelectionScheduler(JobScheduler):
    """Makes the jobs that decode rows here and there; parameters as of `JobScheduler`."""

    def build_jobs(self, slices: RowSlices, wanted: Collection[int]) -> list[DecodeJob]:
        """Make the jobs for some columns (positions among those read) and all the rows wanted.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        if slices.selections is None:
            return super().build_jobs(slices, wanted)
        columns, template = self._decodable(wanted)
        if not columns:
            return []
        hulls = slices.table
        table = self._tables.chunk_table(template, np.array(columns, np.intp), slices)
        made: list[DecodeJob] = []
        threads = self._context.pool.threads
        parts = -(-JOBS_PER_THREAD * threads // (len(slices) * len(columns))) if threads > 1 else 1
        whole: list[int] = []  # row groups, one after the other, of which all rows of the same columns are decoded
        before: list[int] = []
        for number, part in enumerate(slices.selections):
            left, jobs = self._part_jobs(columns, table[number * len(columns) :], part, parts)
            if whole and left != before:
                made.extend(super().build_jobs(RowSlices(hulls[whole]), before))
                whole = []
            made.extend(jobs)
            before = left
            if left:
                whole.append(number)
        if whole:
            made.extend(super().build_jobs(RowSlices(hulls[whole]), before))
        return made

    def _part_jobs(
        self, columns: Sequence[int], table: np.ndarray, part: RowSelection, parts: int
    ) -> tuple[list[int], list[DecodeJob]]:
        """Build the jobs of one row group, but for the columns, returned, all of whose rows are decoded."""
        left, made = [], []
        selects_all, cached = part.selects_all, part.cached
        for place, column in enumerate(columns):
            chunk = table[place : place + 1].copy()
            job = self._cached_job(column, chunk, part) if column in cached else None
            if job is not None:
                made.append(job)
            elif selects_all:
                left.append(column)
            elif parts > 1:
                made.extend(self._split_jobs(column, chunk, part, parts))
            else:
                made.append(self.build_selection_job(column, chunk, part))
        return left, made

    def _run_order(self, jobs: Sequence[DecodeJob]) -> Sequence[DecodeJob]:
        """Give the largest first: then no thread is left with one of these when the others are done."""
        return sorted(jobs, key=lambda job: job.num_bytes, reverse=True)

    def _split_jobs(self, column: int, chunk: np.ndarray, rows: RowSelection, parts: int) -> list[DecodeJob]:
        """Make the jobs for a column: several, where there are few, and no page is walked over twice for it."""
        parts = self._num_splits(column, rows, parts)
        if parts < 2:
            return [self.build_selection_job(column, chunk, rows)]
        made = []
        for share in rows.split(parts):
            table = chunk.copy()
            (row,) = table
            row[C_ROW_START], row[C_ROW_STOP] = share.row_ranges.starts[0], share.row_ranges.stop
            row[C_OUT] = row[C_VALIDITY] = share.out
            made.append(self.build_selection_job(column, table, share))
        return made

    def _num_splits(self, column: int, rows: RowSelection, parts: int) -> int:
        """Say into how many parts rows are divided, at most `parts`."""
        is_shared = rows.mask is None and rows.chunk_pages[column].is_indexed
        return min(parts, len(rows) // MIN_ROWS_PER_JOB) if is_shared else 1

    def _cached_job(self, column: int, chunk: np.ndarray, rows: RowSelection) -> DecodeJob | None:
        """Make the job for a column whose values are known; None if the output type needs the pages."""
        target, kept = self._memory.targets[column], rows.cached[column]
        place: tuple[Any, ...] = (self._context, [rows.row_group], [column], chunk, False)
        if isinstance(kept, CachedFixed) and target.storage == "fixed":
            chunk[0, C_OUT] += (self._memory.row_of[column] or 0) * self._memory.num_rows
            chunk[0, C_OUT] *= chunk[0, C_ITEM_SIZE]
            return CachedFixedJob(*place, outputs=[fixed_output(self._memory, column)], cached=kept)
        if isinstance(kept, CachedBinary) and target.storage in ("binary", "dictionary"):
            return CachedBinaryJob(*place, cached=kept, keep_codes=target.storage == "dictionary", utf8=target.utf8)
        return None

    def build_selection_job(self, column: int, chunk: np.ndarray, rows: RowSelection) -> DecodeJob:
        """Make the job for a column and the rows of one row group.

        Parameters
        ----------
        column : int
            Its position among the columns read.
        chunk : int64 array, (1, CHUNK_FIELDS)
            Its chunk table, which becomes the job's; C_OUT is the output row of the first one.
        rows : RowSelection
            The rows.
        """
        target, memory = self._memory.targets[column], self._memory
        pages = rows.chunk_pages[column]
        is_located = pages.is_indexed and not chunk[0, C_QUIRKS] & PREFIX_CARRYOVER
        # Of nested columns a page that the mask leaves no row of is not decoded.
        located = (
            selected_page_locations(pages, rows.selected_ranges if target.nested else rows.row_ranges)
            if is_located
            else None
        )
        place: tuple[Any, ...] = (self._context, [rows.row_group], [column], chunk, False)
        if target.nested:
            return self._nested_rows(column, target, chunk, rows, located)
        has_memory = memory.block_of[column] is not None or memory.values[column] is not None
        common: dict[str, Any] = {"selected": ChunkSelection(rows.row_ranges.bounds, rows.mask), "locations": located}
        if located is not None and len(located) and located[0, L_ROW] < 0:
            common["dictionary_cache"] = cache = self._dictionary_cache(column, chunk[0], rows.row_group)
            if cache is not None and cache.found is not None:
                common["locations"] = located[1:]
        if has_memory:
            chunk[0, C_OUT] += (memory.row_of[column] or 0) * memory.num_rows
            chunk[0, C_OUT] *= chunk[0, C_ITEM_SIZE]
            return FixedSelectionJob(*place, outputs=[fixed_output(memory, column)], **common)
        chunk[0, C_OUT] = chunk[0, C_VALIDITY] = 0
        hint = self._tables.estimate_string_bytes(column, RowSlices.single(rows.row_group, 0, len(rows)))
        make = BinarySelectionJob if target.storage == "binary" else DictionarySelectionJob
        return make(*place, utf8=target.utf8, size_hint=hint, **common)

    def _dictionary_cache(self, column: int, chunk: np.ndarray, row_group: int) -> DictionaryCache | None:
        """Return the cache of a chunk's dictionary; None in limited memory, and for codes of fixed-size values."""
        file, target = self._context.file, self._memory.targets[column]
        if file is None or self._context.local.limit is not None:
            return None
        if target.storage == "dictionary" and chunk[C_TYPE] != BYTE_ARRAY:
            return None
        checks = target.utf8, self._context.verify_crc
        return DictionaryCache(file.entry, row_group, self.leaves[column].index, chunk, checks)

    def _nested_rows(
        self, column: int, target: OutputType, chunk: np.ndarray, rows: RowSelection, located: np.ndarray | None
    ) -> NestedSelectionJob:
        """Make the job for a leaf of a nested column: what is decoded are all rows of some pages."""
        chunk[0, C_ROW_START], chunk[0, C_ROW_STOP] = 0, chunk[0, C_NUM_VALUES]
        pages, wanted = rows.chunk_pages[column], rows.selected_ranges
        decoded = (
            pages.rows_in_pages(pages.pages_with_rows(wanted)) if located is not None else RowRanges.all(pages.num_rows)
        )
        whole = RowSlice(rows.row_group, 0, decoded.count, rows.out)
        return NestedSelectionJob(
            self._context,
            [rows.row_group],
            [column],
            chunk,
            False,
            leaf=self.leaves[column],
            target=target,
            rows=whole,
            num_rows=decoded.count,
            selected=ChunkSelection(wanted.positions_in(decoded).bounds, None),
            locations=located,
        )
