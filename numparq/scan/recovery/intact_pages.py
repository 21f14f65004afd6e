"""Intact pages of a damaged chunk; units of a stream decode those with their rows, as the first one found them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import numpy as np

from numparq.column.jobs.nested_sink import NestedSink
from numparq.column.jobs.task import DecodeTask, PageSink
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.page_sources import InMemoryPages, LocatedPages
from numparq.column.read.pages import stored_ends
from numparq.column.read.row_selection import RowSlice
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_NUM_VALUES,
    C_QUIRKS,
    C_SEALED,
    C_START,
    L_END,
    L_IN_CHUNK,
    L_ROW,
    L_ROWS,
    L_START,
    LOCATION_FIELDS,
    P_HEADER,
    P_IN_CHUNK,
    P_NUM_VALUES,
    P_TYPE,
    PREFIX_CARRYOVER,
)
from numparq.types.output_type import OutputType

from .losses import LostRows, catch_damage

DecodedRun = tuple[int, int, DecodeTask]  # first row and end (exclusive) in the row group, and the task that has them


@dataclass
class IntactPages:
    """Decoded part of a damaged chunk.

    Attributes
    ----------
    tasks : list of (int, int, DecodeTask)
        Rows, counted within the row group, and the task that has decoded them; in order.
    lost : list of LostRows
        All others.
    failed : int or None
        The status, out of RETRY_STATUSES, with which the chunk asks for another output type.
    num_other_rows : int
        Number of lost pages whose levels have another number of rows than `WalkedChunk`.
    """

    tasks: list[DecodedRun] = field(default_factory=list)
    lost: list[LostRows] = field(default_factory=list)
    failed: int | None = None
    num_other_rows: int = 0

    @property
    def num_lost_rows(self) -> int:
        """Number of lost rows."""
        return sum(lost.stop - lost.first for lost in self.lost)


@dataclass(frozen=True)
class IntactRun:
    """Intact pages in a row that hold the rows `start` to `stop` (exclusive) of a row group.

    Attributes
    ----------
    dictionary, locations : int64 array, (pages, LOCATION_FIELDS)
        Locations of the dictionary page, if any, and of the data pages.
    num_values : int64 array
        Level entries of each data page.
    first_rows, row_stops : int64 array
        Rows that a data page makes up with those that continue its last row.
    """

    start: int
    stop: int
    dictionary: np.ndarray
    locations: np.ndarray
    num_values: np.ndarray
    first_rows: np.ndarray
    row_stops: np.ndarray


@dataclass(frozen=True)
class DamagedChunk:
    """Intact runs of pages, and lost rows, of a chunk whose values are decoded to `target`."""

    target: OutputType
    runs: Sequence[IntactRun]
    lost: Sequence[LostRows]

    def decode(self, task: DecodeTask, sink: NestedSink) -> list[DecodedRun] | None:
        """Decode the pages with rows that a task of the chunk takes; None if one of them is damaged after all."""
        decoded = []
        for run in self.runs:
            first, stop = max(sink.rows.start, run.start), min(sink.rows.stop, run.stop)
            if first >= stop:
                continue
            pages = (run.first_rows < stop) & (run.row_stops > first)
            begin, end = int(run.first_rows[pages][0]), int(run.row_stops[pages][-1])
            chunks = task.source.chunks.copy()
            chunks[0, C_NUM_VALUES] = run.num_values[pages].sum()
            locations = np.concatenate([run.dictionary, run.locations[pages]])
            source = LocatedPages(task.context.reader, chunks, locations, not sink.leaf.max_repetition_level)
            rows = RowSlice(sink.rows.row_group, 0, end - begin, 0)
            part = replace(task, source=source, sink=NestedSink(sink.leaf, sink.target, end - begin, rows))
            if catch_damage(part) is not None or part.sink.failed:
                return None
            decoded.append((begin, min(end, run.stop), part))
        return decoded


def record_pages(
    known: dict[tuple[int, str], DamagedChunk],
    leaf: str,
    task: DecodeTask,
    decoded: IntactPages,
) -> None:
    """Record what is intact of a nested leaf's chunk, of which a task takes some rows, if other units can use it."""
    if not _takes_some_rows(task.sink) or task.source.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
        return  # in the latter, pages cannot be decoded without those before
    runs = _find_intact_runs(task, decoded.tasks)
    if runs is not None:
        known[task.row_groups[0], leaf] = DamagedChunk(task.sink.target, runs, decoded.lost)


def decode_known_pages(
    known: Mapping[tuple[int, str], DamagedChunk], leaf: str, task: DecodeTask
) -> IntactPages | None:
    """Decode the rows of a task that are intact by `record_pages`; None if that does not know its chunk."""
    damaged = known.get((task.row_groups[0], leaf))
    if damaged is None or not _takes_some_rows(task.sink) or damaged.target != task.sink.target:
        return None
    decoded = damaged.decode(task, task.sink)
    return None if decoded is None else IntactPages(decoded, list(damaged.lost))


def _takes_some_rows(sink: PageSink) -> TypeGuard[NestedSink]:
    return isinstance(sink, NestedSink) and 0 < len(sink.rows) < (sink.num_rows or 0)


def _find_intact_runs(task: DecodeTask, decoded: Sequence[DecodedRun]) -> list[IntactRun] | None:
    """Return the pages that were decoded, with their rows by the levels; None if these do not tell them."""
    chunk_start = int(task.source.chunks[0, C_START])
    runs = []
    for start, stop, part in decoded:
        assert isinstance(part.source, InMemoryPages)
        leaf: NestedLeaf = part.sink.arrays[0]
        locations = _locations(part.source.page_table, chunk_start, int(task.source.chunks[0, C_SEALED]))
        is_data = part.source.page_table[:, P_TYPE] != DICTIONARY_PAGE
        num_values = part.source.page_table[is_data, P_NUM_VALUES]
        edges = np.concatenate([[0], num_values.cumsum()])
        if not len(num_values) or edges[-1] != leaf.num_entries:
            return None
        begins_row = np.ones(leaf.num_entries, np.bool_) if leaf.repetition is None else leaf.repetition == 0
        rows_before = np.concatenate([[0], begins_row[: leaf.num_entries].cumsum()]) + start
        begins_page = np.append(begins_row[: leaf.num_entries], False)[edges[:-1]]  # an empty page begins no row
        begins_page[0] = True
        heads = np.flatnonzero(begins_page)
        sizes = np.diff(np.append(heads, len(num_values)))
        firsts = rows_before[edges[heads]]
        data = locations[is_data]
        data[:, L_ROW], data[:, L_ROWS] = rows_before[edges[:-1]], np.diff(rows_before[edges])
        first_rows, row_stops = np.repeat(firsts, sizes), np.repeat(np.append(firsts[1:], rows_before[-1]), sizes)
        runs.append(IntactRun(start, stop, locations[~is_data], data, num_values, first_rows, row_stops))
    return runs


def _locations(pages: np.ndarray, chunk_start: int, sealed: int) -> np.ndarray:
    """Return the locations of pages in the file, by a page table that counts from the chunk's start; without rows.

    `sealed` is C_SEALED of the chunk.
    """
    locations = np.zeros((len(pages), LOCATION_FIELDS), np.int64)
    locations[:, L_START] = chunk_start + pages[:, P_HEADER]
    locations[:, L_END] = chunk_start + stored_ends(pages, sealed)
    locations[:, L_ROW], locations[:, L_IN_CHUNK] = -1, pages[:, P_IN_CHUNK]
    return locations
