"""Cases of fixed-size values: every physical type and conversion, against the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numparq.kernels import tables as t
from numparq.kernels.status import NULL_FOUND
from support.oracles.pages import DICTIONARY_PAGE, Chunk
from support.oracles.plain import (
    BOOLEAN,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
    ColumnType,
    int96_to_ns,
    int96_to_us,
    keep,
    narrow_int,
    random_values,
    widen_to_float,
)

from .chunk_tables import DecodeRequest
from .decode_pages import DecodeOutcome, decode_fixed


@dataclass(frozen=True)
class ValueCase:
    """A physical type, a conversion, its output size, and its reference."""

    column: ColumnType
    conversion: int
    item: int
    convert: Callable[..., bytes] = keep
    narrow: int = 64  # bits of the integers that the conversion takes as they are

    def __repr__(self) -> str:
        names = ("copy", "narrow", "widen_signed", "widen_unsigned", "int96_ns", "int96_us", "codes")
        return f"{self.column.physical}-{self.column.length}-{names[self.conversion]}-{self.item}"

    def values(self, rng: np.random.Generator, count: int) -> list:
        values = random_values(rng, self.column, count)
        if self.narrow == 64:
            return values
        numbers = [int.from_bytes(value, "little", signed=True) >> (64 - self.narrow) for value in values]
        if self.conversion == t.WIDEN_UNSIGNED:
            numbers = [abs(number) for number in numbers]
        return [number.to_bytes(8, "little", signed=True) for number in numbers]


CASES = [
    ValueCase(ColumnType(BOOLEAN), t.COPY, 1),
    ValueCase(ColumnType(INT32), t.COPY, 4),
    ValueCase(ColumnType(INT64), t.COPY, 8),
    ValueCase(ColumnType(INT96), t.COPY, 12),
    ValueCase(ColumnType(FLOAT), t.COPY, 4),
    ValueCase(ColumnType(DOUBLE), t.COPY, 8),
    *(
        ValueCase(ColumnType(FIXED_LEN_BYTE_ARRAY, length), t.COPY, length)
        for length in (1, 2, 3, 4, 7, 8, 9, 16, 17, 50)
    ),
    ValueCase(ColumnType(INT32), t.NARROW, 1, narrow_int(1)),
    ValueCase(ColumnType(INT32), t.NARROW, 2, narrow_int(2)),
    ValueCase(ColumnType(INT32), t.WIDEN_SIGNED, 8, widen_to_float(True)),
    ValueCase(ColumnType(INT32), t.WIDEN_UNSIGNED, 8, widen_to_float(False)),
    ValueCase(ColumnType(INT64), t.WIDEN_SIGNED, 8, widen_to_float(True), 54),
    ValueCase(ColumnType(INT64), t.WIDEN_UNSIGNED, 8, widen_to_float(False), 54),
    ValueCase(ColumnType(INT96), t.INT96_NS, 8, int96_to_ns),
    ValueCase(ColumnType(INT96), t.INT96_US, 8, int96_to_us),
]
FILLS = (0, -1, 0x0123456789ABCDEF, -(1 << 63))


def expected_values(case: ValueCase, chunk: Chunk, request: DecodeRequest) -> DecodeOutcome:
    """Return the decoded values of a chunk, row by row."""
    null = (
        (request.fill & ((1 << 64) - 1)).to_bytes(8, "little")[: case.item]
        if case.item in (1, 2, 4, 8)
        else bytes(case.item)
    )
    rows = chunk.rows[request.start : request.stop]
    made = tuple(null if row is None else case.convert(row) for row in rows)
    mask = bytes(row is not None for row in rows) if request.nulls == t.NULLS_MASK else b""
    return DecodeOutcome(0, -1, made, mask, rows.count(None))


def first_null(chunk: Chunk, request: DecodeRequest) -> int:
    """Return the page with the first null among the requested rows, or -1."""
    row = 0
    for number, page in enumerate(chunk.pages):
        if page.type == DICTIONARY_PAGE:
            continue
        wanted = range(max(request.start - row, 0), max(min(request.stop - row, page.num_values), 0))
        if any(page.rows[i] is None for i in wanted):
            return number
        row += page.num_values
    return -1


def compare_values(engine, case: ValueCase, chunk: Chunk, request: DecodeRequest, seed: int) -> None:
    refused = first_null(chunk, request) if request.nulls == t.NULLS_RAISE else -1
    wanted = expected_values(case, chunk, request) if refused < 0 else DecodeOutcome(NULL_FOUND, refused)
    assert decode_fixed(engine, chunk, request, seed) == wanted
