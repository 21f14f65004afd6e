"""Bisect the pages of a damaged column chunk until all intact pages are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from numparq.column.jobs.job import DecodeJob
from numparq.column.jobs.nested import NestedJob
from numparq.column.jobs.slice import FixedJob
from numparq.column.read.context import ReadContext
from numparq.column.read.page_walk import PageWalk
from numparq.column.read.pages import PageFailure, Pages
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import Scratch
from numparq.errors import CorruptPageError, LimitError, ParquetError
from numparq.kernels.enums import PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.tables import C_NUM_VALUES, P_CRC, P_ENCODING, P_NUM_VALUES

from .losses import LostRows, without_frames
from .page_walk import WalkedChunk

__all__ = ["IntactPages", "decode_intact_pages"]

_CHECKED_TOGETHER = 256
_NO_PAGES = np.empty(0, np.intp)


class _KnownPageWalk(PageWalk):
    """A walk that was done before."""

    def __init__(self, context: ReadContext, chunks: np.ndarray, raw: np.ndarray, table: np.ndarray) -> None:
        super().__init__(context.reader, chunks)
        self._raw = raw
        self._table_of_pages = table

    def windows(self, scratch: Scratch) -> Iterator[Pages]:
        if len(self._table_of_pages):
            yield Pages(self._raw, self.chunks, self._table_of_pages.copy())


class _KnownPageContext(ReadContext):
    """The context of a job that decodes pages which were found, and checked, before."""

    def __init__(self, context: ReadContext, raw: np.ndarray, table: np.ndarray) -> None:
        shared = {item.name: getattr(context, item.name) for item in fields(ReadContext)}
        super().__init__(**shared)
        self._given = raw, table

    def walk_pages(self, chunks: np.ndarray, row_groups: Sequence[int]) -> PageWalk:
        return _KnownPageWalk(self, chunks, *self._given)

    def check_pages(self, row_groups: Sequence[int], columns: Sequence[int], pages: Pages) -> None:
        pass


@dataclass
class _UncountedNestedJob(NestedJob):
    """Pages of a leaf in a list whose rows nobody knows before their levels are decoded."""

    def _check_rows(self, rows: int) -> None:
        self.num_rows = rows
        self.rows = RowSlice(self.row_groups[0], 0, rows, 0)


@dataclass
class IntactPages:
    """What could be decoded of a chunk.

    Attributes
    ----------
    jobs : list of (int, int, DecodeJob)
        Rows, counted within the row group, and the job that has decoded just these; in order.
    lost : list of LostRows
        All others.
    failed : int or None
        The status, out of RETARGET, with which the chunk asks for another target.
    """

    jobs: list[tuple[int, int, DecodeJob]] = field(default_factory=list)
    lost: list[LostRows] = field(default_factory=list)
    failed: int | None = None


def decode_intact_pages(job: DecodeJob, walked: WalkedChunk, num_rows: int) -> IntactPages:
    """Decode the pages of a chunk that are whole.

    Parameters
    ----------
    job : DecodeJob
        A job of the one chunk, not done yet. It is not changed, but for the memory that its output is.
    walked : WalkedChunk
        Its pages.
    num_rows : int
        Rows of the row group.

    Returns
    -------
    IntactPages

    Raises
    ------
    LimitError
    """
    return _PageBisection(job, walked, num_rows).decode()


class _PageBisection:
    """Decodes runs of pages of one chunk."""

    def __init__(self, job: DecodeJob, walked: WalkedChunk, num_rows: int) -> None:
        self._job = job
        self._walked = walked
        self._num_rows = num_rows
        self._dictionary = walked.dictionary
        self._errors: dict[int, ParquetError] = {}
        self._found = IntactPages()

    def decode(self) -> IntactPages:
        """Do it."""
        walked = self._walked
        self._check()
        if walked.row_ranges is None:
            self._decode_prefix()
            return self._found
        self._found.lost.extend(walked.lost)
        for run in self._runs(walked.row_ranges):
            self._bisect(run, walked.row_ranges)
        if walked.inconsistency is not None and self._found.failed is None:
            self._drop_after_doubt(walked.inconsistency)
        for page, error in self._errors.items():
            first, stop = walked.row_ranges[page].tolist()
            self._found.lost.append(LostRows(first, stop, error))
        return self._found

    def _check(self) -> None:
        """Find the pages that are damaged by what is known before they are decoded."""
        walked, table = self._walked, self._walked.pages
        bad_dictionary = walked.dictionary_error
        if len(walked.dictionary):
            trouble = self._first_damage(walked.dictionary)
            found = self._attempt(_NO_PAGES, 0) if trouble is None else trouble[1]
            bad_dictionary = found if isinstance(found, ParquetError) else None
        if bad_dictionary is not None:
            self._dictionary = self._dictionary[:0]
            indices = (table[:, P_ENCODING] == PLAIN_DICTIONARY) | (table[:, P_ENCODING] == RLE_DICTIONARY)
            self._errors.update((page, bad_dictionary) for page in np.flatnonzero(indices).tolist())
        sums = self._job.context.verify_crc and bool((table[:, P_CRC] >= 0).any())
        if sums:
            without = CorruptPageError("the page header has no checksum, but other pages of the column chunk have one")
            self._errors.update((page, without) for page in np.flatnonzero(table[:, P_CRC] < 0).tolist())
        for first in range(0, len(table), _CHECKED_TOGETHER):
            self._check_pages(first, min(first + _CHECKED_TOGETHER, len(table)))

    def _check_pages(self, first: int, last: int) -> None:
        """Check the headers and checksums of some data pages."""
        while first < last:
            found = self._first_damage(self._walked.pages[first:last])
            if found is None:
                return
            page, error = found
            self._errors.setdefault(first + page, error)
            first += page + 1

    def _first_damage(self, table: np.ndarray) -> tuple[int, ParquetError] | None:
        """Check rows of the page table, in place; gives the first bad one, and what is wrong with it."""
        job = self._job
        try:
            job.context.check_pages(job.row_groups, job.columns, Pages(self._walked.raw, job.chunks, table))
        except PageFailure as failure:
            return failure.page, without_frames(failure.error)
        return None

    def _runs(self, spans: np.ndarray) -> list[np.ndarray]:
        """Divide the pages that may be whole into those that can be decoded together, as ordinals.

        Values of a fixed size go where their rows are; others follow each other, and so must their pages.
        """
        good = np.array([page for page in range(len(spans)) if page not in self._errors], np.intp)
        if not len(good) or type(self._job) is FixedJob:
            return [good] if len(good) else []
        gaps = (np.diff(good) > 1) | (spans[good[:-1], 1] != spans[good[1:], 0])
        return np.split(good, np.flatnonzero(gaps) + 1)

    def _bisect(self, run: np.ndarray, spans: np.ndarray) -> None:
        """Decode a run of pages; where that fails, its halves, down to single pages."""
        waiting = [run]
        while waiting and self._found.failed is None:
            pages = waiting.pop()
            start, stop = int(spans[pages[0], 0]), int(spans[pages[-1], 1])
            made = self._attempt(pages, stop - start)
            if isinstance(made, DecodeJob):
                self._found.jobs.append((start, stop, made))
            elif len(pages) == 1:
                self._errors[int(pages[0])] = made
            else:
                middle = len(pages) // 2
                waiting += [pages[middle:], pages[:middle]]

    def _attempt(self, pages: np.ndarray, num_rows: int) -> DecodeJob | ParquetError:
        """Decode some pages, by their ordinals; gives the job that has done so, or what is wrong with one of them."""
        data = self._walked.pages[pages]
        job = self._job_for(np.concatenate([self._dictionary, data]), int(data[:, P_NUM_VALUES].sum()), num_rows)
        try:
            job()
        except LimitError:
            raise
        except ParquetError as error:
            return without_frames(error)
        for status in job.retries.values():
            self._found.failed = status
        return job

    def _job_for(self, table: np.ndarray, num_values: int, num_rows: int) -> DecodeJob:
        job = self._job
        changes: dict[str, Any] = {
            "context": _KnownPageContext(job.context, self._walked.raw, table),
            "chunks": job.chunks.copy(),
            "shares_pages": False,
            "retries": {},
            "arrays": [],
        }
        if isinstance(job, NestedJob):
            changes["chunks"][0, C_NUM_VALUES] = num_values
            changes |= {"num_rows": num_rows, "rows": RowSlice(job.row_groups[0], 0, num_rows, 0)}
            if self._walked.row_ranges is None:
                values = {item.name: getattr(job, item.name) for item in fields(job)}
                return _UncountedNestedJob(**{**values, **changes})
        return replace(job, **changes)

    def _decode_prefix(self) -> None:
        """Decode the longest run of pages from the first on: rows go on from page to page, and none can be left out."""
        good, bad = 0, min([*self._errors, len(self._walked.pages)]) + 1
        best: DecodeJob | None = None
        error = self._errors.get(bad - 1, self._walked.end_error or self._walked.inconsistency)
        middle = bad - 1
        while good < middle < bad and self._found.failed is None:
            made = self._attempt(np.arange(middle), 0)
            if isinstance(made, DecodeJob):
                good, best = middle, made
            else:
                bad, error = middle, made
            middle = (good + bad) // 2
        rows = best.num_rows if isinstance(best, NestedJob) else 0
        if error is None and rows == self._num_rows:
            self._found.jobs.append((0, rows, best))  # type: ignore[arg-type]
            return
        error = error or CorruptPageError("the levels do not have as many rows as the row group")
        rows = min(max(rows - 1, 0), self._num_rows)  # the last one may go on in what is lost
        if best is not None and rows and self._walked.inconsistency is None:
            self._found.jobs.append((0, rows, best))
        else:
            rows = 0
        self._found.lost.append(LostRows(rows, self._num_rows, error))

    def _drop_after_doubt(self, error: ParquetError) -> None:
        """Give up all rows that headers which do not add up may have moved: those from the first bad page on, or all.

        Where no page is found to be bad, any of them may be the one whose header is wrong.
        """
        assert self._walked.row_ranges is not None
        first = int(self._walked.row_ranges[min(self._errors), 0]) if self._errors else 0
        self._found.jobs = [(start, min(stop, first), job) for start, stop, job in self._found.jobs if start < first]
        self._found.lost = [LostRows(first, self._num_rows, self._errors.get(min(self._errors, default=-1), error))]
        self._errors.clear()
