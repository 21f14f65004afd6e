"""Retry failed decode tasks, column chunk by column chunk, then by runs of their pages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.jobs.codes_sink import CodesSink
from numparq.column.jobs.fixed_sink import FixedSink
from numparq.column.jobs.nested_sink import NestedSink
from numparq.column.jobs.schedule import TaskScheduler
from numparq.column.jobs.task import DecodeTask
from numparq.column.nested.levels import LeafRows, NestedLeaf
from numparq.column.read.context import ReadContext
from numparq.column.read.page_sources import InMemoryPages
from numparq.column.read.pages import PageFailure, Pages
from numparq.column.read.row_selection import RowSlice
from numparq.errors import CorruptPageError, ParquetError
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import OFFSET_INDEX, untrusted_statistics
from numparq.kernels.enums import PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.tables import (
    C_END,
    C_NULL_COUNT,
    C_NUM_VALUES,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    P_CRC,
    P_ENCODING,
    P_NUM_VALUES,
)
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.row_ranges import RowRanges

from .footer_checks import PageHeaderCheck, TolerantChunkTables
from .intact_pages import IntactPages, decode_known_pages, record_pages
from .located_rows import decode_located_rows
from .losses import Losses, LostRows, catch_damage, without_frames
from .lost_rows import LostPiece, PartialLeaf, slice_piece
from .page_walk import WalkedChunk, read_chunk_pages, walk_pages

if TYPE_CHECKING:
    from numparq.column.read.output import OutputMemory

_CHECKED_TOGETHER = 256
_NO_PAGES = np.empty(0, np.intp)


def damage_scheduler(
    context: ReadContext, tables: TolerantChunkTables, memory: OutputMemory, losses: Losses
) -> TaskScheduler:
    """Return a scheduler whose tasks skip damage, of which `losses` keeps account.

    `context` now checks page headers against the footer.
    """
    context.header_check = PageHeaderCheck(tables.footer, tables.leaves).check
    scheduler = TaskScheduler(context, tables, tables.leaves, memory)
    scheduler.run_task = partial(_run_task, tables, losses)
    return scheduler


def _run_task(tables: TolerantChunkTables, losses: Losses, task: DecodeTask) -> None:
    """Run a task; if it fails, its chunks one by one. What cannot be decoded is lost."""
    for row_group, column in zip(task.row_groups, task.columns, strict=True):
        losses.forget(row_group, column)
    if decode_located_rows(tables, task) or _decode_known_pages(tables, losses, task):
        return
    chunks = task.source.chunks.copy()
    if catch_damage(task) is None:
        return
    task.source = replace(task.source, chunks=chunks)  # type: ignore[type-var]
    sink = task.sink
    sink.arrays, sink.failed = [], {}
    for position, (row_group, column) in enumerate(zip(task.row_groups, task.columns, strict=True)):
        single = task.single(position)
        error = tables.faults.get((row_group, column))
        if error is not None:
            lost = [LostRows(0, tables.num_rows(row_group), error)]
            num_nulls = _store(task, single, IntactPages(lost=lost), losses)
        elif (error := catch_damage(single)) is not None:
            single = task.single(position)
            decoded = _decode_pages(tables, single, error)
            num_nulls = _store(task, single, decoded, losses)
            if decoded.failed is None:
                record_pages(tables.damaged_pages, tables.leaves[column].name, single, decoded)
        else:
            sink.failed.update(single.sink.failed)
            sink.arrays.extend(single.sink.arrays)
            num_nulls = int(single.source.chunks[0, C_NULL_COUNT])
        chunks[position, C_NULL_COUNT] = num_nulls


def _decode_known_pages(tables: TolerantChunkTables, losses: Losses, task: DecodeTask) -> bool:
    """Run a task of some rows of a chunk whose damage another unit has found; return whether it succeeded."""
    known = decode_known_pages(tables.damaged_pages, tables.leaves[task.columns[0]].name, task)
    if known is not None:
        num_nulls = _store(task, task.single(0), known, losses)
        task.source.chunks[0, C_NULL_COUNT] = num_nulls
    return known is not None


def _decode_pages(tables: TolerantChunkTables, task: DecodeTask, error: ParquetError) -> IntactPages:
    """Walk over a chunk's pages, by its offset index if the headers do not suffice, and decode them."""
    (row_group,), (column,), reader = task.row_groups, task.columns, task.context.reader
    leaf, num_rows, chunks = tables.leaves[column], tables.num_rows(row_group), task.source.chunks
    is_repeated = leaf.max_repetition_level > 0
    walked = walk_pages(reader, chunks, num_rows, repeated=is_repeated)
    is_enough = walked.are_headers_sound and walked.row_ranges is not None
    located = None if is_enough else _locate_pages(tables, task, leaf)
    if located is not None:
        by_index = walk_pages(reader, chunks, num_rows, located, is_repeated)
        if by_index.are_headers_sound or not walked.are_headers_sound:  # else the index is wrong, not the headers
            walked = by_index
    decoded = decode_intact_pages(task, walked, num_rows)
    if decoded.num_other_rows:  # the index is wrong, or a damaged page has other rows
        by_headers = decode_intact_pages(task, walk_pages(reader, chunks, num_rows, repeated=is_repeated), num_rows)
        if decoded.num_other_rows > 1 or by_headers.num_lost_rows < decoded.num_lost_rows:
            decoded = by_headers
    if decoded.failed is None and not decoded.lost:  # no page can be named, and yet the chunk is not whole
        return IntactPages(lost=[LostRows(0, num_rows, error)])
    return decoded


def _locate_pages(tables: TolerantChunkTables, task: DecodeTask, leaf: Leaf) -> ChunkPages | None:
    """Return the pages of a task's only chunk by its offset index; None without a sound one."""
    if OFFSET_INDEX in untrusted_statistics(tables.footer.created_by, leaf):
        return None
    (row_group,), (start, end) = task.row_groups, task.source.chunks[0, [C_START, C_END]].tolist()

    def locate() -> ChunkPages | None:
        record = tables.footer.chunks.chunk_record(row_group, leaf.index)
        reader, num_rows = task.context.reader, tables.num_rows(row_group)
        return read_chunk_pages(reader, record, (row_group, leaf.index), (start, end), num_rows)

    located = catch_damage(locate)
    if located is None or isinstance(located, ParquetError) or not located.is_complete:
        return None
    return located


def _store(task: DecodeTask, single: DecodeTask, decoded: IntactPages, losses: Losses) -> int:
    """Add the decoded pages of one chunk to the arrays of a task; the rest is lost. Return the null count."""
    (row_group,), (column,) = single.row_groups, single.columns
    if decoded.failed is not None:
        task.sink.failed[column] = decoded.failed
        return 0
    first, stop = _row_range(single)
    lost = [LostRows(max(rows.first, first), min(rows.stop, stop), rows.reason) for rows in decoded.lost]
    losses.add(row_group, column, lost)
    task.sink.arrays.extend(_arrays_with_placeholders(single, decoded, first, stop))
    return sum(int(done.source.chunks[0, C_NULL_COUNT]) for _, _, done in decoded.tasks)


def _row_range(task: DecodeTask) -> tuple[int, int]:
    """Return the selected rows of a chunk, counted within its row group."""
    if isinstance(task.sink, NestedSink):
        return task.sink.rows.start, task.sink.rows.stop
    chunk = task.source.chunks[0]
    return int(chunk[C_ROW_START]), int(chunk[C_ROW_STOP])


def _arrays_with_placeholders(task: DecodeTask, decoded: IntactPages, first: int, stop: int) -> list[Any]:
    """Return the rows `first` to `stop` (exclusive) of a chunk: arrays of decoded rows, placeholders for lost ones."""
    sink = task.sink
    if isinstance(sink, NestedSink):
        return [_leaf_with_losses(sink, decoded, first, stop)]
    if isinstance(sink, FixedSink):
        return []
    arrays: list[Any] = []
    position = first
    for begin, end, done in decoded.tasks:
        begin, end = max(begin, first), min(end, stop)
        if begin >= end:
            continue
        if begin > position:
            arrays.append(LostPiece(begin - position))
        for array in done.sink.arrays:
            is_whole = isinstance(sink, CodesSink) and len(array) == stop - first
            arrays.append(slice_piece(array, begin - first, end - first) if is_whole else array)
        position = end
    if stop > position:
        arrays.append(LostPiece(stop - position))
    return arrays


def _leaf_with_losses(sink: NestedSink, decoded: IntactPages, first: int, stop: int) -> LeafRows:
    """Return the rows `first` to `stop` (exclusive) of a chunk of a nested leaf, as far as they are intact."""
    parts = []
    for begin, end, done in decoded.tasks:
        leaf: NestedLeaf = done.sink.arrays[0]
        start, end = max(begin, first), min(end, stop)
        if start < end:
            rows = RowRanges([(start - begin, end - begin)])
            parts.append((start - first, end - first, leaf.take(rows, sink.leaf, sink.target)))
    rows = RowRanges.all(stop - first)
    partial_leaf = PartialLeaf(parts, stop - first, sink.rows.row_group)
    return partial_leaf if rows - partial_leaf.intact else partial_leaf.take(rows, sink.leaf, sink.target)


def decode_intact_pages(task: DecodeTask, walked: WalkedChunk, num_rows: int) -> IntactPages:
    """Decode the intact pages of a chunk.

    Parameters
    ----------
    task : DecodeTask
        A task of the one chunk that has not run. Only the memory of its output is changed.
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
    return _PageBisection(task, walked, num_rows).decode()


class _PageBisection:
    """Decodes runs of pages of one chunk."""

    def __init__(self, task: DecodeTask, walked: WalkedChunk, num_rows: int) -> None:
        self._task = task
        self._walked = walked
        self._num_rows = num_rows
        self._dictionary = walked.dictionary
        self._errors: dict[int, ParquetError] = {}
        self._found = IntactPages()

    def decode(self) -> IntactPages:
        """Decode all intact pages."""
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
            self._found.lost.append(LostRows(0, 0, bad_dictionary))  # names the damage if no selected page has indices
            indices = (table[:, P_ENCODING] == PLAIN_DICTIONARY) | (table[:, P_ENCODING] == RLE_DICTIONARY)
            self._errors.update((page, bad_dictionary) for page in np.flatnonzero(indices).tolist())
        sums = self._task.context.verify_crc and bool((table[:, P_CRC] >= 0).any())
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
            self._check_pages(first, first + page)  # which have not passed all checks, nor been decrypted
            first += page + 1

    def _first_damage(self, table: np.ndarray) -> tuple[int, ParquetError] | None:
        """Check rows of the page table, in place; return the first bad one, and its error."""
        task = self._task
        pages = Pages(self._walked.raw, task.source.chunks, table)
        try:
            task.context.check_pages(task.row_groups, task.columns, pages)
        except PageFailure as failure:
            return failure.page, without_frames(failure.error)
        return None

    def _runs(self, spans: np.ndarray) -> list[np.ndarray]:
        """Divide the pages without an error into runs that are decoded by one task, as ordinals.

        Values of a fixed size are decoded to their rows; others follow each other, and so must their pages.
        """
        good = np.array([page for page in range(len(spans)) if page not in self._errors], np.intp)
        if not len(good) or isinstance(self._task.sink, FixedSink):
            return [good] if len(good) else []
        gaps = (np.diff(good) > 1) | (spans[good[:-1], 1] != spans[good[1:], 0])
        return np.split(good, np.flatnonzero(gaps) + 1)

    def _bisect(self, run: np.ndarray, spans: np.ndarray) -> None:
        """Decode a run of pages; where that fails, its halves, down to single pages."""
        waiting = [run]
        while waiting and self._found.failed is None:
            pages = waiting.pop()
            start, stop = int(spans[pages[0], 0]), int(spans[pages[-1], 1])
            result = self._attempt(pages, stop - start)
            if isinstance(result, DecodeTask):
                self._found.tasks.append((start, stop, result))
            elif len(pages) == 1:
                self._errors[int(pages[0])] = result
            else:
                middle = len(pages) // 2
                waiting += [pages[middle:], pages[:middle]]

    def _attempt(self, pages: np.ndarray, num_rows: int | None) -> DecodeTask | ParquetError:
        """Decode some pages, by their ordinals; return the task that has done so, or the error of one of them.

        `num_rows` of a leaf in a list is None if only its levels have it.
        """
        data = self._walked.pages[pages]
        task = self._task_for(np.concatenate([self._dictionary, data]), int(data[:, P_NUM_VALUES].sum()), num_rows)
        error = catch_damage(task)
        if error is not None:
            if len(pages) == 1 and isinstance(task.sink, NestedSink):
                self._found.num_other_rows += task.sink.has_other_rows
            return error
        for status in task.sink.failed.values():
            self._found.failed = status
        return task

    def _task_for(self, table: np.ndarray, num_values: int, num_rows: int | None) -> DecodeTask:
        single = self._task.single(0)
        chunks, sink = single.source.chunks, single.sink
        if isinstance(sink, NestedSink):
            chunks[0, C_NUM_VALUES] = num_values
            sink.num_rows, sink.rows = num_rows, RowSlice(single.row_groups[0], 0, num_rows or 0, 0)
        return replace(single, source=InMemoryPages(self._walked.raw, chunks, table))

    def _decode_prefix(self) -> None:
        """Decode the longest run of pages from the first on: a row may continue in the next page."""
        good, bad = 0, min([*self._errors, len(self._walked.pages)]) + 1
        best: DecodeTask | None = None
        error = self._errors.get(bad - 1, self._walked.end_error or self._walked.inconsistency)
        middle = bad - 1
        while good < middle < bad and self._found.failed is None:
            result = self._attempt(np.arange(middle), None)
            if isinstance(result, DecodeTask):
                good, best = middle, result
            else:
                bad, error = middle, result
            middle = (good + bad) // 2
        sink = None if best is None else best.sink
        rows = sink.num_rows or 0 if isinstance(sink, NestedSink) else 0
        if error is None and rows == self._num_rows:
            self._found.tasks.append((0, rows, best))  # type: ignore[arg-type]
            return
        error = error or CorruptPageError("the levels do not have as many rows as the row group")
        rows = min(max(rows - 1, 0), self._num_rows)  # the last one may go on in what is lost
        if best is not None and rows and self._walked.inconsistency is None:
            self._found.tasks.append((0, rows, best))
        else:
            rows = 0
        self._found.lost.append(LostRows(rows, self._num_rows, error))

    def _drop_after_doubt(self, error: ParquetError) -> None:
        """Drop all rows that inconsistent headers may have moved: those from the first bad page on, or all.

        Without a bad page, the wrong header may be that of any page.
        """
        assert self._walked.row_ranges is not None
        first = int(self._walked.row_ranges[min(self._errors), 0]) if self._errors else 0
        tasks = self._found.tasks
        self._found.tasks = [(start, min(stop, first), task) for start, stop, task in tasks if start < first]
        self._found.lost = [LostRows(first, self._num_rows, self._errors.get(min(self._errors, default=-1), error))]
        self._errors.clear()
