"""Decodes damaged column chunks in every way, in memory with guard pages.

Run as ``python -m support.kernels.fuzz_decode SEED COUNT``: decodes COUNT chunks with damaged headers and bodies and
prints the outcomes. Only crashes and exceptions other than numparq's are failures.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from numparq.column import scratch as column_scratch
from numparq.column import scratch as scratch_module
from numparq.column.read import decode as read_decode
from numparq.column.read import dictionary as read_dictionary
from numparq.column.read import output as read_output
from numparq.column.read.context import ReadContext
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.pages import ChunkFailure, PageFailure
from numparq.errors import ParquetError
from numparq.format.module_reader import ModuleReader
from numparq.kernels import tables as t
from numparq.util.worker_pool import WorkerPool
from support.oracles import pages as twin
from support.oracles.plain import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    INT96,
    ColumnType,
    random_values,
)

from .chunk_tables import DecodeRequest, chunk_table
from .damaged_chunks import damage_chunk
from .guard_pages import GuardPages

GUARDED = GuardPages()

KINDS = [
    (ColumnType(BOOLEAN), t.COPY, 1),
    (ColumnType(INT32), t.COPY, 4),
    (ColumnType(INT32), t.NARROW, 1),
    (ColumnType(INT32), t.NARROW, 2),
    (ColumnType(INT32), t.WIDEN_SIGNED, 8),
    (ColumnType(INT64), t.COPY, 8),
    (ColumnType(INT64), t.WIDEN_UNSIGNED, 8),
    (ColumnType(INT96), t.INT96_NS, 8),
    (ColumnType(INT96), t.INT96_US, 8),
    (ColumnType(DOUBLE), t.COPY, 8),
    (ColumnType(FIXED_LEN_BYTE_ARRAY, 2), t.COPY, 2),
    (ColumnType(FIXED_LEN_BYTE_ARRAY, 5), t.COPY, 5),
    (ColumnType(FIXED_LEN_BYTE_ARRAY, 16), t.COPY, 16),
    (ColumnType(BYTE_ARRAY), t.CODES, 4),
    *[(ColumnType(BYTE_ARRAY), t.COPY, 0)] * 6,
]


class ExactScratch(scratch_module.Scratch):
    """Buffers of exactly the requested size plus SLACK."""

    def buffer(self, purpose: str, size: int) -> np.ndarray:
        buffer = self._buffers.get(purpose)
        if buffer is None or len(buffer) < size + t.SLACK:
            self._buffers[purpose] = buffer = GUARDED.allocate(size + t.SLACK)
        return buffer


class GuardedSource:
    """A source whose views are followed only by SLACK."""

    name = "<fuzz>"
    is_remote = False

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.num_requests = self.num_bytes = 0

    def view(self, position: int, length: int, slack: int) -> np.ndarray:
        assert position >= 0
        assert length >= 0
        assert position + length <= self.size
        return GUARDED.copy_of(self._data[position : position + length] + b"\xa5" * slack)


@dataclass(frozen=True)
class DecodeSubject:
    """A chunk and its decode arguments."""

    column: ColumnType
    chunk: twin.Chunk
    request: DecodeRequest


def subjects(rng: np.random.Generator, count: int) -> list[DecodeSubject]:
    made = []
    for number in range(count):
        column, conversion, item = KINDS[number % len(KINDS)]
        column = ColumnType(column.physical, column.length, bool(rng.random() < 0.7))
        values = random_values(rng, column, int(rng.choice([1, 3, 20])))
        dictionary = bool(rng.random() < 0.6) or conversion == t.CODES
        chunk = twin.random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 4)),
            int(rng.integers(1, 60)),
            float(rng.choice([0.0, 0.3, 1.0])),
            dictionary,
            int(rng.choice([0, 1])),
            more=bool(rng.random() < 0.5),
        )
        rows = len(chunk.rows)
        start, stop = (0, rows) if rng.random() < 0.6 else sorted(rng.integers(0, rows + 1, 2).tolist())
        nulls = int(rng.choice([t.NULLS_FILL, t.NULLS_MASK]))
        made.append(DecodeSubject(column, chunk, DecodeRequest(conversion, item, nulls, -1, start, stop)))
    return made


def flip(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a few bytes anywhere."""
    flipped = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        flipped[rng.integers(0, len(data))] ^= 1 << int(rng.integers(0, 8))
    return bytes(flipped)


def decode(subject: DecodeSubject, data: bytes) -> str:
    """Decode a chunk's bytes as the reader does; return the outcome as a word."""
    request, column = subject.request, subject.column
    chunks = chunk_table(column, subject.chunk.codec, len(subject.chunk.rows), len(data), request).reshape(1, -1)
    scratch = ExactScratch()
    context = ReadContext(ModuleReader(GuardedSource(data)), ["a"], WorkerPool(1), verify_crc=True)
    count = request.stop - request.start
    output = read_output.FixedOutput(GUARDED.allocate(count * request.item), GUARDED.allocate(count))
    try:
        for pages in ScannedPages(ModuleReader(GuardedSource(data)), chunks).windows(scratch):
            context.check_pages([0], [0], pages)
            if column.physical == BYTE_ARRAY:
                entries = read_dictionary.decode_binary_dictionary(pages, scratch)
            if request.conversion == t.CODES or column.physical != BYTE_ARRAY:
                read_decode.decode_fixed(pages, output, None, scratch)
            else:
                piece = read_decode.allocate_strings(read_decode.count_rows(chunks), 0, chunks, scratch)
                read_decode.decode_binary(pages, entries, piece, scratch)
                assert (np.diff(piece.offsets) >= 0).all()
                assert piece.offsets[-1] <= len(piece.data) - t.SLACK
                read_decode.check_utf8(piece)
    except (ChunkFailure, PageFailure) as failure:
        return failure.error.message.split(",")[0]
    except ParquetError as error:
        return error.message.split(",")[0]
    return "decoded"


def main(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    column_scratch.allocate = GUARDED.allocate
    made = subjects(rng, 60)
    stored = [subject.chunk.stored() for subject in made]
    outcomes: Counter[str] = Counter(map(decode, made, stored))
    assert outcomes["decoded"] > len(made) // 2, outcomes
    for number in range(count):
        subject, whole = made[number % len(made)], stored[number % len(made)]
        data = flip(rng, whole) if rng.random() < 0.2 else damage_chunk(rng, subject.chunk).stored()
        outcomes[decode(subject, data)] += 1
    for outcome, times in outcomes.most_common():
        print(times, outcome)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
