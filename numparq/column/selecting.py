"""From columns and wanted rows, here and there in row groups, to jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..kernels.tables import C_FAULTS, C_ITEM_SIZE, C_MASK, C_NUM_VALUES, C_OUT, C_ROW_START, C_ROW_STOP, PREFIXES_GO_ON
from ..plan.row_ranges import RowRanges
from ..targets import Target
from .chunks import RowSlice
from .fixed import NO_MASK, FixedOutput
from .job import Job
from .jobs import JobMaker, item_of, output_of
from .kept import KeptFixed, KeptFixedJob, KeptStrings, KeptStringsJob
from .scratch import allocate
from .selected import SelectedBinaryJob, SelectedDictionaryJob, SelectedFixedJob, SelectedNestedJob
from .wanted import WantedRows, located_pages

__all__ = ["SelectingMaker"]

# Where there are fewer jobs than so many for each thread, the rows of a job are shared out, unless they are this few.
JOBS_OF_THREAD = 2
SMALLEST_PART = 64 << 10


class SelectingMaker(JobMaker):
    """Makes the jobs that decode rows here and there; parameters as of `JobMaker`."""

    def jobs(self, slices: Sequence[WantedRows | RowSlice], wanted: Collection[int]) -> list[Job]:
        """Make the jobs for some columns (positions among those read) and all the rows wanted.

        Raises
        ------
        ParquetError
            For a chunk that the footer describes wrongly, or that this version does not read.
        """
        targets = self._memory.targets
        columns = [column for column in wanted if targets[column].storage != "null" or targets[column].nested]
        rows = [part for part in slices if isinstance(part, WantedRows)]
        if not columns or not rows:
            return super().jobs([part for part in slices if isinstance(part, RowSlice)], wanted)
        common = self._common(columns)
        made: list[Job] = []
        parts = -(-JOBS_OF_THREAD * self._context.crew.threads // (len(rows) * len(columns)))
        for part in rows:
            hull = RowSlice(part.row_group, int(part.rows.starts[0]), part.rows.stop, part.out)
            table = self._tables.of_row_group(common, np.array(columns, np.intp), hull)
            left = []
            for place, column in enumerate(columns):
                chunk = table[place : place + 1]
                kept = self._kept(column, chunk.copy(), part)
                made.extend(kept)
                if not kept and part.is_whole:
                    left.append(column)
                elif not kept:
                    made.extend(self._shared_out(column, chunk, part, parts))
            if left:  # a whole row group is decoded as ever, many small chunks at a time
                made.extend(super().jobs([RowSlice(part.row_group, 0, part.rows.stop, part.out)], left))
        return made

    def _in_turn(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Give the largest first: then no thread is left with one of these when the others are done."""
        return sorted(jobs, key=lambda job: job.num_bytes, reverse=True)

    def _shared_out(self, column: int, chunk: np.ndarray, rows: WantedRows, parts: int) -> list[Job]:
        """Make the jobs for a column: several, where there are few, and no page is walked over twice for it."""
        parts = self._parts(column, rows, parts)
        shares = rows.parts(parts) if parts > 1 else [rows]
        made = []
        for share in shares:
            table = chunk.copy()
            (row,) = table
            row[C_ROW_START], row[C_ROW_STOP] = share.rows.starts[0], share.rows.stop
            row[C_OUT] = row[C_MASK] = share.out
            made.append(self.selected(column, table, share))
        return made

    def _parts(self, column: int, rows: WantedRows, parts: int) -> int:
        """Say into how many parts rows are divided, at most `parts`."""
        is_shared = self._context.crew.threads > 1 and rows.mask is None and rows.chunks[column].is_indexed
        return min(parts, len(rows) // SMALLEST_PART) if is_shared else 1

    def _kept(self, column: int, chunk: np.ndarray, rows: WantedRows) -> list[Job]:
        """Make the job for a column whose values are known, if they are."""
        target, kept = self._memory.targets[column], rows.kept.get(column)
        place: tuple[Any, ...] = (self._context, rows.row_group, [column], chunk, False)
        if isinstance(kept, KeptFixed) and target.storage == "fixed":
            chunk[0, C_OUT] = item_of(self._memory, column, rows.out) * chunk[0, C_ITEM_SIZE]
            return [KeptFixedJob(*place, output=output_of(self._memory, column), kept=kept)]
        if isinstance(kept, KeptStrings) and target.storage in ("binary", "dictionary"):
            return [KeptStringsJob(*place, kept=kept, coded=target.storage == "dictionary", utf8=target.utf8)]
        return []

    def selected(self, column: int, chunk: np.ndarray, rows: WantedRows) -> Job:
        """Make the job for a column and the rows of one row group.

        Parameters
        ----------
        column : int
            Its position among the columns read.
        chunk : int64 array, (1, CHUNK_FIELDS)
            Its chunk table, which becomes the job's.
        rows : WantedRows
            The rows.
        """
        target, memory = self._memory.targets[column], self._memory
        pages = rows.chunks[column]
        is_located = pages.is_indexed and not chunk[0, C_FAULTS] & PREFIXES_GO_ON
        # Of nested columns a page that the mask leaves no row of is not decoded.
        located = located_pages(pages, rows.ranges if target.nested else rows.rows) if is_located else None
        common: dict[str, Any] = {"wanted": rows.rows.bounds, "mask": rows.mask, "located": located}
        place: tuple[Any, ...] = (self._context, rows.row_group, [column], chunk, False)
        if target.nested:
            return self._nested_rows(column, target, chunk, rows, located)
        block, values = memory.block_of[column], memory.values[column]
        if block is not None or values is not None:
            chunk[0, C_OUT] = item_of(memory, column, rows.out) * chunk[0, C_ITEM_SIZE]
            return SelectedFixedJob(*place, output=output_of(memory, column), **common)
        chunk[0, C_OUT] = chunk[0, C_MASK] = 0
        hint = self._tables.byte_array_size(column, RowSlice(rows.row_group, 0, len(rows), 0))
        if target.storage == "binary":
            return SelectedBinaryJob(*place, utf8=target.utf8, size_hint=hint, **common)
        codes = allocate(len(rows), "i4")
        return SelectedDictionaryJob(*place, codes=codes, utf8=target.utf8, size_hint=hint,
                                     output=FixedOutput(codes.view(np.uint8), NO_MASK), **common)  # fmt: skip

    def _nested_rows(
        self, column: int, target: Target, chunk: np.ndarray, rows: WantedRows, located: np.ndarray | None
    ) -> SelectedNestedJob:
        """Make the job for a leaf of a nested column: what is decoded are all rows of some pages."""
        chunk[0, C_ROW_START], chunk[0, C_ROW_STOP] = 0, chunk[0, C_NUM_VALUES]
        pages, wanted = rows.chunks[column], rows.ranges
        decoded = pages.rows_of(pages.needed(wanted)) if located is not None else RowRanges.all(pages.num_rows)
        whole = RowSlice(rows.row_group, 0, decoded.count, rows.out)
        return SelectedNestedJob(
            self._context, rows.row_group, [column], chunk, False, leaf=self._leaves[column], target=target, rows=whole,
            num_rows=decoded.count, wanted=wanted.places_in(decoded).bounds, located=located,
        )  # fmt: skip
