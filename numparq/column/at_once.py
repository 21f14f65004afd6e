"""A run of rows of a chunk whose pages are located, decoded by one call, where nothing is in the way of that.

What is in the way (damage, another codec, another encoding, nulls where there may be none) is not looked into here:
then the steps are done one by one, which know what to do, or what to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..errors import NEED_ROOM, UNSUPPORTED_ENCODING
from ..io.source import Source
from ..kernels import delta_kernels, kernels
from ..kernels.at_once import ROOM_FIELDS
from ..kernels.compact_wire import S_ROOM, S_TOP, STACK_WORDS
from ..kernels.located_pages import L_END, L_ROW, L_ROWS, L_START
from ..kernels.partial import STATE_FIELDS
from ..kernels.placement import TOTAL_FIELDS
from ..kernels.tables import (
    BATCH_FIELDS,
    BIT_PACKED,
    BOOLEAN,
    C_CODEC,
    C_DICTIONARY_PAGE,
    C_FAULTS,
    C_MASK,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    PAGE_FIELDS,
    SLACK,
    SNAPPY,
    UNCOMPRESSED,
)
from .buffer import BinaryPiece
from .fixed import FixedOutput
from .located import bytes_of, fetched
from .pages import BATCH_BYTES, header_layout
from .plain import is_delta
from .scattered import LEAST_BYTES, is_scattered
from .scratch import Scratch, allocate
from .utf8 import is_utf8

__all__ = ["AtOnce", "Reading"]

# So few pages, and bytes of them, are read together: of more it does not matter how they are read.
MOST_PAGES = 16
MOST_BYTES = 1 << 20


_BUFFERS = ("decompressed", "dictionary", "dense", "levels")  # in the order of the fields of ROOM_FIELDS


class Reading(Protocol):
    """What is asked of a `Context`."""

    @property
    def source(self) -> Source:
        """The file."""

    @property
    def scratch(self) -> Scratch:
        """The buffers of the calling thread."""

    @property
    def verify_crc(self) -> bool:
        """Whether pages with a CRC are held against it."""

    @property
    def bit_packed(self) -> int:
        """How this writer's levels in the encoding BIT_PACKED lie."""


class _Room:
    """The tables and buffers that the kernels work in; a thread's, used again for every run of rows."""

    def __init__(self, scratch: Scratch) -> None:
        self.table, self.slots, words = header_layout()
        self.record = np.zeros(words, np.int64)
        self.stack = np.zeros(STACK_WORDS, np.int64)
        self.stack[S_TOP] = self.stack[S_ROOM] = words
        self.pages = np.empty(MOST_PAGES * PAGE_FIELDS, np.int64)
        self.batches = np.empty((MOST_PAGES + 1) * BATCH_FIELDS, np.int64)
        self.totals = np.empty(TOTAL_FIELDS, np.int64)
        self.state = np.zeros(STATE_FIELDS, np.int64)
        self.sizes = np.zeros(ROOM_FIELDS, np.int64)
        self._scratch = scratch
        self._lengths = np.zeros(ROOM_FIELDS, np.int64)
        self.grow()

    def ready(self) -> list[np.ndarray]:
        """Give what the kernels decode in, and tell them in `sizes` how large it is."""
        self.sizes[:] = self._lengths
        return self._buffers

    def grow(self) -> bool:
        """Have buffers of the sizes that they should have, which kernels say in `sizes`; whether that helps."""
        before = self._lengths.tolist()
        self._buffers = [self._scratch.take(*wanted) for wanted in zip(_BUFFERS, self.sizes.tolist(), strict=True)]
        self._lengths[:] = [len(buffer) - SLACK for buffer in self._buffers]
        return self._lengths.tolist() != before


class AtOnce:
    """A run of rows of one flat chunk; made by `of`.

    Parameters
    ----------
    context : Reading
        Of the read.
    chunk : int64 array, (CHUNK_FIELDS,)
        The chunk's row of the chunk table; not changed.
    located : int64 array, (pages, LOCATED_FIELDS)
        The pages that hold the rows, as `located_pages` gives them.
    start, stop : int
        The rows.

    Attributes
    ----------
    raw : uint8 array
        The bytes of the pages, which have been fetched.
    located : int64 array, (pages, LOCATED_FIELDS)
        Where the pages lie in these.
    """

    __slots__ = ("_chunk", "_count", "_few", "_scratch", "_verify", "located", "raw")

    def __init__(self, context: Reading, chunk: np.ndarray, located: np.ndarray, start: int, stop: int) -> None:
        self._scratch = context.scratch
        self._verify = int(context.verify_crc)
        self._chunk = chunk.copy()
        self._chunk[C_DICTIONARY_PAGE] = -1
        self._chunk[C_NULL_COUNT] = 0
        self._chunk[C_ROW_START], self._chunk[C_ROW_STOP] = start, stop
        self.located = located.copy()
        self.raw = fetched(context.source, self.located, self._scratch)
        self._count = stop - start
        self._few = is_scattered(self._count, _num_rows(located))

    @classmethod
    def of(
        cls, context: Reading, chunk: np.ndarray, located: np.ndarray | None, wanted: np.ndarray
    ) -> AtOnce | None:  # fmt: skip
        """Get ready to read rows, and fetch their pages; None where it is clear that the steps have to be done.

        Parameters
        ----------
        context, chunk
            As above.
        located : int64 array or None
            As above, where there is an offset index.
        wanted : int64 array, (ranges, 2)
            The rows.
        """
        if located is None or len(wanted) != 1:
            return None
        return cls.of_run(context, chunk, located, *wanted[0].tolist())

    @classmethod
    def of_run(cls, context: Reading, chunk: np.ndarray, located: np.ndarray, start: int, stop: int) -> AtOnce | None:
        """Get ready as `of` does, for rows that are one run; parameters as of the class."""
        if not 0 < len(located) <= MOST_PAGES:
            return None
        if chunk[C_FAULTS] or chunk[C_CODEC] not in (UNCOMPRESSED, SNAPPY) or context.bit_packed != BIT_PACKED:
            return None
        if located[-1, L_END] - located[0, L_START] > MOST_BYTES and bytes_of(located) > MOST_BYTES:
            return None
        return cls(context, chunk, located, start, stop)

    @staticmethod
    def takes_strings(located: np.ndarray, count: int) -> bool:
        """Tell whether `strings` takes so many rows of some located pages: where they are few, and of no dictionary."""
        return bool(len(located)) and located[0, L_ROW] >= 0 and is_scattered(count, _num_rows(located))

    def fixed(self, output: FixedOutput) -> int | None:
        """Decode values of a fixed size to where the chunk's C_OUT and C_MASK say; gives the nulls among them.

        None where that did not work; then the output holds nothing.
        """
        chunk, few = self._chunk, self._few and self._chunk[C_TYPE] != BOOLEAN
        count, row, out = self._count if few else 0, int(chunk[C_MASK]), int(chunk[C_OUT])
        if few:
            chunk[C_MASK] = 0  # places are counted from the first row
        places, values = self._places(count)
        room = _room_of(self._scratch)
        while True:
            buffers = room.ready()
            status = kernels.read_located_fixed(
                self.raw, self.located.reshape(-1), len(self.located), self._verify, chunk, room.pages, room.table,
                room.slots, room.record, room.stack, room.batches, room.totals, room.state, room.sizes, *buffers,
                places, count, values, output.mask, row, output.out, out,
            )  # fmt: skip
            if status != NEED_ROOM or not room.grow():
                break
        if status > 0:
            chunk[C_MASK] = row
            status = self._made_plain(status, room, buffers, output)
        return None if status < 0 else int(chunk[C_NULL_COUNT])

    def _made_plain(self, encoding: int, room: _Room, buffers: Sequence[np.ndarray], output: FixedOutput) -> int:
        """Decode pages that are decompressed, all in an encoding that is made PLAIN first; 0 or a negative status."""
        if not is_delta(encoding, int(self._chunk[C_TYPE])):
            return UNSUPPORTED_ENCODING
        decompressed, dictionary, dense, levels = buffers
        count, plain = len(self.located), self._scratch.take("plain", BATCH_BYTES)
        status = delta_kernels.decode_to_plain(
            self._chunk, room.pages, 0, count, self.raw, decompressed, self._scratch.take("lengths", 0), plain,
            len(plain) - SLACK, room.state,
        )  # fmt: skip
        if status != count:  # there is not room enough for all
            return min(status, UNSUPPORTED_ENCODING)
        return kernels.decode_fixed_pages(
            self._chunk, room.pages, 0, count, self.raw, plain, dictionary, dense, levels, output.mask, output.out,
            room.state,
        )  # fmt: skip

    def strings(self, utf8: bool) -> BinaryPiece | None:
        """Take strings; None where `takes_strings` says no, or that did not work."""
        if not self._few or self.located[0, L_ROW] < 0:  # as `takes_strings` has it
            return None
        chunk, count = self._chunk, self._count
        chunk[C_MASK] = 0
        places, values = self._places(count)
        offsets, validity, data = allocate(count + 1, "i8"), allocate(count), allocate(LEAST_BYTES + SLACK)
        room = _room_of(self._scratch)
        while True:
            decompressed, _, _, levels = room.ready()
            status = kernels.read_located_strings(
                self.raw, self.located.reshape(-1), len(self.located), self._verify, chunk, room.pages, room.table,
                room.slots, room.record, room.stack, room.batches, room.totals, room.state, room.sizes, decompressed,
                levels, places, count, values, validity, offsets, data, LEAST_BYTES,
            )  # fmt: skip
            if status != NEED_ROOM or not room.grow():
                break
        has_nulls = bool(chunk[C_MAX_DEFINITION]) and int(chunk[C_NULL_COUNT]) > 0
        piece = BinaryPiece(offsets, data, validity if has_nulls else None)
        return None if status < 0 or (utf8 and not is_utf8(piece)) else piece

    def _places(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        values = self._scratch.take("numbers of values", 8 * count)[: 8 * count].view(np.int64)
        return np.arange(count, dtype=np.int32), values


def _num_rows(located: np.ndarray) -> int:
    return int(located[-1, L_ROW] + located[-1, L_ROWS] - located[0, L_ROW])


def _room_of(scratch: Scratch) -> _Room:
    found = scratch.tables.get(_Room)
    if found is None:
        found = scratch.tables[_Room] = _Room(scratch)
    return found
