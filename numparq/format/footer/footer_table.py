"""Footers of many local files as one table: which columns, rows and statistics they have, without opening them."""

from __future__ import annotations

import binascii
import os
import re
import stat
from collections.abc import Sequence

import numpy as np

from numparq.format.key_values.range_bounds import without_range_bounds
from numparq.format.thrift.decode import decoder_stack
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import NEED_ROOM
from numparq.kernels.thrift.wire import S_ROOM
from numparq.util.regular_file import OPEN_FLAGS

from .file_metadata import MAX_ROWS, Footer, parse_footer
from .joined_footer import JoinedChunks, JoinedFooter
from .tail import MAGIC, MIN_FILE_BYTES

# Read from the end of each file; a longer footer takes another read.
_TAIL_BYTES = 8 << 10
# A file with a longer footer is opened, and so is every file once the footers take that much.
_MAX_FOOTER_BYTES, _MAX_BYTES = 1 << 20, 64 << 20
_ARENA_WORDS = 1 << 16
_NUM_ROWS, _ROW_GROUPS = 3, 4  # ids of fields of FileMetaData

# pyarrow's Arrow schema has the pandas metadata, too.
_ARROW_SCHEMA = re.compile(rb"(?<=ARROW:schema)(.{1,6}?)([A-Za-z0-9+/]{64,}={0,2})", re.DOTALL)


class FooterTable:
    """Footers of files, read together.

    Attributes
    ----------
    groups : list of int64 array
        Positions of the files whose footers are equal but for their rows; columns and key-value metadata of all are
        those of the first.
    unread : list of int
        Positions of the other files, which have to be opened; damaged ones are among them.
    statuses : list of os.stat_result, or None
        Status of each file when it was read.
    row_counts, lengths : list of int
        Rows, and bytes of FileMetaData, of each file.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.statuses, self._data, stops = _read_tails(paths)
        lengths = np.diff(stops, prepend=0)
        self.lengths: list[int] = lengths.tolist()
        self._ends, starts = stops, stops - lengths
        read = np.flatnonzero(lengths)
        words, records, spans = _decode_roots(self._data, starts[read], stops[read])
        is_valid = records >= 0
        self._row_groups = _RowGroups(words, records[is_valid], read[is_valid])
        self.row_counts: list[int] = self._row_groups.count_rows(len(paths))
        by_key: dict[bytes, list[int]] = {}
        view = self._data.data
        for at, start, stop, span in zip(
            read[is_valid].tolist(),
            starts[read][is_valid].tolist(),
            stops[read][is_valid].tolist(),
            spans[is_valid].tolist(),
            strict=True,
        ):
            (first, second), (third, fourth) = sorted((span[:2], span[2:]))
            first, third = max(first, start), max(third, start)
            second, fourth = max(second, first), max(fourth, third)
            by_key.setdefault(b"".join((view[start:first], view[second:third], view[fourth:stop])), []).append(at)
        self.groups = [np.array(sorted(group), np.int64) for group in _merge_equal(by_key).values()]
        known = np.zeros(len(paths), np.bool_)
        known[read[is_valid]] = True
        self.unread = np.flatnonzero(~known).tolist()

    def footer(self, position: int) -> Footer:
        """Parse the footer of a file."""
        stop = int(self._ends[position])
        length = self.lengths[position]
        return parse_footer(self._data[stop - length : stop], length)

    def rows_of(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of all row groups of some files, in order, and the place of each one's file among these."""
        row_groups, owners = self._row_groups.of_files(positions)
        return self._row_groups.num_rows[row_groups], owners

    def join(self, prototype: Footer, positions: np.ndarray, leaf_ordinals: Sequence[int]) -> JoinedFooter | None:
        """Join the footers of files of one group, as far as some leaves need it; None if any contradicts the first.

        `prototype` is the footer of the group's first file.
        """
        row_groups, owners = self._row_groups.of_files(positions)
        num_rows, counts = self._row_groups.num_rows[row_groups], self._row_groups.num_chunks[row_groups]
        if (counts != prototype.num_leaves).any() or ((num_rows < 0) | (num_rows > MAX_ROWS)).any():
            return None
        starts = self._row_groups.chunk_starts(row_groups, leaf_ordinals)
        chunks = JoinedChunks(self._data, starts, self._ends[positions[owners]], leaf_ordinals)
        return JoinedFooter(prototype, num_rows, chunks)


class _RowGroups:
    """Row groups of many files, file by file: rows, number of column chunks, and where these are described."""

    def __init__(self, words: np.ndarray, records: np.ndarray, files: np.ndarray) -> None:
        layout = _root_layout()
        self._words = words
        step = layout.record_layout("row_groups").words
        slot = layout.slot("row_groups")
        firsts, counts = np.maximum(words[records + slot], 0), words[records + slot + 1]
        self._stops = np.zeros(int(files.max(initial=-1)) + 2, np.int64)
        self._stops[files + 1] = counts
        np.cumsum(self._stops, out=self._stops)
        within = np.arange(int(counts.sum())) - (np.cumsum(counts) - counts).repeat(counts)
        records_of_groups = firsts.repeat(counts) + within * step
        self.num_rows = words[records_of_groups + layout.slot("row_groups.num_rows")]
        self._chunks = words[records_of_groups + layout.slot("row_groups.columns")]
        self.num_chunks = words[records_of_groups + layout.slot("row_groups.columns") + 1]

    def count_rows(self, num_files: int) -> list[int]:
        """Return the rows of each file."""
        sums = np.cumsum(np.append(0, self.num_rows))[self._stops]
        counts: list[int] = np.diff(sums).tolist()
        return counts + [0] * (num_files - len(counts))

    def of_files(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ordinals of the row groups of some files, and the place of each one's file among these."""
        firsts, counts = self._stops[positions], self._stops[positions + 1] - self._stops[positions]
        owners = np.arange(len(positions)).repeat(counts)
        within = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
        return firsts[owners] + within, owners

    def chunk_starts(self, row_groups: np.ndarray, leaf_ordinals: Sequence[int]) -> np.ndarray:
        """Return the offsets of ColumnChunk structs: int64, (row groups, leaves)."""
        layout = _root_layout()
        step = layout.record_layout("row_groups.columns").words
        firsts = self._chunks[row_groups, None] + layout.slot("row_groups.columns.@")
        starts: np.ndarray = self._words[firsts + np.asarray(leaf_ordinals, np.int64) * step]
        return starts


def _root_layout() -> ThriftLayout:
    return thrift_layout("FileMetaData", "row_groups.num_rows", "row_groups.columns.@")


def _read_tails(paths: Sequence[str]) -> tuple[list[os.stat_result | None], np.ndarray, np.ndarray]:
    """Read the footers of files, one after the other; return statuses, bytes, and the end of each one's.

    Nothing is read of a file that is not Parquet, or cannot be read.
    """
    statuses: list[os.stat_result | None] = []
    footers, stops = bytearray(), []
    tail = bytearray(_TAIL_BYTES)
    for path in paths:
        status = None
        try:
            descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
            try:
                opened = os.fstat(descriptor)
                if stat.S_ISREG(opened.st_mode) and _append_footer(footers, descriptor, opened.st_size, tail):
                    status = opened
            finally:
                os.close(descriptor)
        except OSError:
            pass  # it is opened by itself, which fails
        statuses.append(status)
        stops.append(len(footers))
    return statuses, np.frombuffer(footers, np.uint8), np.array(stops, np.int64)


def _append_footer(footers: bytearray, descriptor: int, size: int, tail: bytearray) -> bool:
    """Append the FileMetaData of an open file; return whether it has any."""
    count = min(size, len(tail))
    if size < MIN_FILE_BYTES or os.preadv(descriptor, [memoryview(tail)[:count]], size - count) != count:
        return False
    length = int.from_bytes(tail[count - 8 : count - 4], "little")
    if tail[count - 4 : count] != MAGIC or length > min(size - MIN_FILE_BYTES, _MAX_FOOTER_BYTES):
        return False
    if len(footers) + length > _MAX_BYTES:
        return False
    missing = length + 8 - count
    if missing > 0:
        front = os.pread(descriptor, missing, size - 8 - length)
        if len(front) != missing:
            return False
        footers += front
    footers += memoryview(tail)[max(-missing, 0) : count - 8]
    return True


def _decode_roots(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode the row groups of FileMetaData; return words, the record of each (a status if damaged), and its spans.

    Spans are start and end of the numbers of rows, and of the row groups: int64 (files, 4).
    """
    layout, count = _root_layout(), len(starts)
    records, spans = np.empty(count, np.int64), np.empty((count, 4), np.int64)
    # A described column chunk takes 60 bytes and more. Footers with less each claim too much to be decoded here.
    room, most = _ARENA_WORDS + len(data) // 16, _ARENA_WORDS + len(data)
    arena, done, stack = np.empty(room, np.int64), 0, decoder_stack(0, room)
    while done < count:
        done += kernels.read_thrift_roots(
            data,
            starts[done:],
            ends[done:],
            count - done,
            layout.table,
            _NUM_ROWS,
            _ROW_GROUPS,
            arena,
            stack,
            spans[done:].reshape(-1),
            records[done:],
        )
        if done < count and room >= most:
            records[done:] = NEED_ROOM
            break
        if done < count:
            room = min(room * 2, most)
            arena, used = np.empty(room, np.int64), arena
            arena[: len(used)] = used
            stack[S_ROOM] = room
    return arena, records, spans


def _merge_equal(by_key: dict[bytes, list[int]]) -> dict[bytes, list[int]]:
    """Unite the groups whose footers differ in the bounds of a RangeIndex alone."""
    if len(by_key) <= 1:
        return by_key
    merged: dict[bytes, list[int]] = {}
    for key, group in by_key.items():
        merged.setdefault(without_range_bounds(_ARROW_SCHEMA.sub(_decoded_schema, key)), []).extend(group)
    return merged


def _decoded_schema(match: re.Match[bytes]) -> bytes:
    try:
        return match[1] + binascii.a2b_base64(match[2])
    except binascii.Error:
        return match[0]
