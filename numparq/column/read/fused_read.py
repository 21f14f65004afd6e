"""Fused read: one run of rows by a single kernel call, or None if a page needs the general path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.encodings import uses_delta_kernels
from numparq.column.scratch import Scratch, allocate
from numparq.kernels import delta_kernels, kernels
from numparq.kernels.decode.scratch_layout import TOTAL_FIELDS
from numparq.kernels.enums import BIT_PACKED, BOOLEAN, SNAPPY, UNCOMPRESSED
from numparq.kernels.selection.fused_read import ROOM_FIELDS
from numparq.kernels.selection.lazy_pages import STATE_FIELDS
from numparq.kernels.status import NEED_ROOM, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    ARRAY_FILLERS,
    BATCH_FIELDS,
    C_CODEC,
    C_DICTIONARY_PAGE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_VALIDITY,
    L_END,
    L_ROW,
    L_ROWS,
    L_START,
    PADDED_PAGES,
    PAGE_FIELDS,
    SLACK,
)
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

from .decode import is_utf8
from .decompress import BATCH_BYTES
from .output import FixedOutput
from .page_selection import MIN_STRING_BYTES, is_sparse
from .page_walk import count_page_bytes, fetch_pages, page_header_layout

if TYPE_CHECKING:
    from .context import FusedReadContext

__all__ = ["FusedRead"]

# Limits of a fused read; beyond them the overhead of the general path does not matter.
MAX_FUSED_PAGES = 16
MAX_FUSED_BYTES = 1 << 20

_HARMLESS_QUIRKS = PADDED_PAGES | ARRAY_FILLERS
_BUFFERS = ("decompressed", "dictionary", "dense", "levels")  # in the order of ROOM_FIELDS


class _KernelBuffers:
    """Tables and buffers of the fused kernels; one set a thread, reused for every run of rows."""

    def __init__(self, scratch: Scratch) -> None:
        self.table, self.slots, words = page_header_layout()
        self.record = np.zeros(words, np.int64)
        self.stack = np.zeros(STACK_WORDS, np.int64)
        self.stack[S_TOP] = self.stack[S_ROOM] = words
        self.pages = np.empty(MAX_FUSED_PAGES * PAGE_FIELDS, np.int64)
        self.batches = np.empty((MAX_FUSED_PAGES + 1) * BATCH_FIELDS, np.int64)
        self.totals = np.empty(TOTAL_FIELDS, np.int64)
        self.state = np.zeros(STATE_FIELDS, np.int64)
        self.sizes = np.zeros(ROOM_FIELDS, np.int64)
        self._scratch = scratch
        self._lengths = np.zeros(ROOM_FIELDS, np.int64)
        self.grow()

    def ready(self) -> list[np.ndarray]:
        """Return the decoding buffers, and set `sizes` to their lengths."""
        self.sizes[:] = self._lengths
        return self._buffers

    def grow(self) -> bool:
        """Grow buffers to the `sizes` that a kernel asked for; return whether any grew."""
        before = self._lengths.tolist()
        self._buffers = [self._scratch.buffer(*wanted) for wanted in zip(_BUFFERS, self.sizes.tolist(), strict=True)]
        self._lengths[:] = [len(buffer) - SLACK for buffer in self._buffers]
        return self._lengths.tolist() != before


class FusedRead:
    """Fused read of one run of rows of a flat column chunk; made by `prepare` or `prepare_run`, which fetch its pages.

    `chunk` is a row of the chunk table, not changed; `start` and `stop` (exclusive) are the rows.

    Attributes
    ----------
    raw : numpy.ndarray
        uint8, the fetched bytes of the pages.
    locations : numpy.ndarray
        int64, (pages, LOCATED_FIELDS): locations of the pages that hold the rows, within `raw`.
    """

    __slots__ = ("_chunk", "_count", "_is_sparse", "_scratch", "_verify", "locations", "raw")

    def __init__(
        self, context: FusedReadContext, chunk: np.ndarray, located: np.ndarray, start: int, stop: int
    ) -> None:
        self._scratch = context.scratch
        self._verify = int(context.verify_crc)
        self._chunk = chunk.copy()
        self._chunk[C_DICTIONARY_PAGE] = -1
        self._chunk[C_NULL_COUNT] = 0
        self._chunk[C_ROW_START], self._chunk[C_ROW_STOP] = start, stop
        self.locations = located.copy()
        self.raw = fetch_pages(context.source, self.locations, self._scratch)
        self._count = stop - start
        self._is_sparse = is_sparse(self._count, _num_rows(located))

    @classmethod
    def prepare(
        cls, context: FusedReadContext, chunk: np.ndarray, located: np.ndarray | None, row_ranges: np.ndarray
    ) -> FusedRead | None:
        """Prepare a fused read and fetch its pages; None if the general path is needed.

        `locations` is None without an offset index; `row_ranges` are row ranges, int64 of shape (ranges, 2).
        """
        if located is None or len(row_ranges) != 1:
            return None
        return cls.prepare_run(context, chunk, located, *row_ranges[0].tolist())

    @classmethod
    def prepare_run(
        cls, context: FusedReadContext, chunk: np.ndarray, located: np.ndarray, start: int, stop: int
    ) -> FusedRead | None:
        """Prepare as `prepare` does, for a single run of rows."""
        if not 0 < len(located) <= MAX_FUSED_PAGES:
            return None
        if (
            chunk[C_QUIRKS] & ~_HARMLESS_QUIRKS
            or chunk[C_CODEC] not in (UNCOMPRESSED, SNAPPY)
            or context.bit_packed != BIT_PACKED
        ):
            return None
        if located[-1, L_END] - located[0, L_START] > MAX_FUSED_BYTES and count_page_bytes(located) > MAX_FUSED_BYTES:
            return None
        return cls(context, chunk, located, start, stop)

    @staticmethod
    def can_read_strings(located: np.ndarray, count: int) -> bool:
        """Whether `read_strings` can read `count` rows of these pages: a sparse selection, and no dictionary page."""
        return bool(len(located)) and located[0, L_ROW] >= 0 and is_sparse(count, _num_rows(located))

    def read_fixed(self, output: FixedOutput) -> int | None:
        """Decode fixed-size values to C_OUT and C_VALIDITY of the chunk; return the null count.

        None if the general path is needed; the output is then undefined.
        """
        chunk, few = self._chunk, self._is_sparse and self._chunk[C_TYPE] != BOOLEAN
        count, row, out = self._count if few else 0, int(chunk[C_VALIDITY]), int(chunk[C_OUT])
        if few:
            chunk[C_VALIDITY] = 0  # indices count from the first selected row
        places, values = self._places(count)
        room = _kernel_buffers(self._scratch)
        while True:
            buffers = room.ready()
            status = kernels.fused_read_fixed(
                self.raw,
                self.locations.reshape(-1),
                len(self.locations),
                self._verify,
                chunk,
                room.pages,
                room.table,
                room.slots,
                room.record,
                room.stack,
                room.batches,
                room.totals,
                room.state,
                room.sizes,
                *buffers,
                places,
                count,
                values,
                output.mask,
                row,
                output.out,
                out,
            )
            if status != NEED_ROOM or not room.grow():
                break
        if status > 0:
            chunk[C_VALIDITY] = row
            status = self._transcode(status, room, buffers, output)
        return None if status < 0 else int(chunk[C_NULL_COUNT])

    def _transcode(
        self, encoding: int, room: _KernelBuffers, buffers: Sequence[np.ndarray], output: FixedOutput
    ) -> int:
        """Transcode decompressed pages of one encoding to PLAIN and decode them; return 0 or a negative status."""
        if not uses_delta_kernels(encoding, int(self._chunk[C_TYPE])):
            return UNSUPPORTED_ENCODING
        decompressed, dictionary, dense, levels = buffers
        count, plain = len(self.locations), self._scratch.buffer("plain", BATCH_BYTES)
        status = delta_kernels.transcode_delta_pages(
            self._chunk,
            room.pages,
            0,
            count,
            self.raw,
            decompressed,
            self._scratch.buffer("lengths", 0),
            plain,
            len(plain) - SLACK,
            room.state,
        )
        if status != count:  # `plain` is too small for all pages
            return min(status, UNSUPPORTED_ENCODING)
        return kernels.decode_fixed_pages(
            self._chunk,
            room.pages,
            0,
            count,
            self.raw,
            plain,
            dictionary,
            dense,
            levels,
            output.mask,
            output.out,
            room.state,
        )

    def read_strings(self, utf8: bool) -> BinaryArray | None:
        """Read strings; None if the selection is not sparse, a dictionary page is needed, or the kernel failed."""
        if not self._is_sparse or self.locations[0, L_ROW] < 0:  # see `can_read_strings`
            return None
        chunk, count = self._chunk, self._count
        chunk[C_VALIDITY] = 0
        places, values = self._places(count)
        offsets, validity, data = allocate(count + 1, "i8"), allocate(count), allocate(MIN_STRING_BYTES + SLACK)
        room = _kernel_buffers(self._scratch)
        while True:
            decompressed, _, _, levels = room.ready()
            status = kernels.fused_read_binary(
                self.raw,
                self.locations.reshape(-1),
                len(self.locations),
                self._verify,
                chunk,
                room.pages,
                room.table,
                room.slots,
                room.record,
                room.stack,
                room.batches,
                room.totals,
                room.state,
                room.sizes,
                decompressed,
                levels,
                places,
                count,
                values,
                validity,
                offsets,
                data,
                MIN_STRING_BYTES,
            )
            if status != NEED_ROOM or not room.grow():
                break
        has_nulls = bool(chunk[C_MAX_DEFINITION]) and int(chunk[C_NULL_COUNT]) > 0
        piece = BinaryArray(offsets, data, validity if has_nulls else None)
        return None if status < 0 or (utf8 and not is_utf8(piece)) else piece

    def _places(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        values = self._scratch.buffer("numbers of values", 8 * count)[: 8 * count].view(np.int64)
        return np.arange(count, dtype=np.int32), values


def _num_rows(located: np.ndarray) -> int:
    return int(located[-1, L_ROW] + located[-1, L_ROWS] - located[0, L_ROW])


def _kernel_buffers(scratch: Scratch) -> _KernelBuffers:
    found = scratch.kernel_tables.get(_KernelBuffers)
    if found is None:
        found = scratch.kernel_tables[_KernelBuffers] = _KernelBuffers(scratch)
    return found
