"""Casts at their limits: integers to float64, INT96 to nanoseconds and microseconds."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta

import numpy as np
import pytest

from numparq.kernels import tables as t
from numparq.kernels.status import BAD_VALUE, INEXACT
from support.kernels.chunk_tables import DecodeRequest
from support.kernels.decode_pages import DecodeOutcome, decode_fixed
from support.kernels.engines import engines
from support.oracles import Damaged, Inexact
from support.oracles.pages import PLAIN, RLE_DICTIONARY, UNCOMPRESSED, Chunk, data_page, dictionary_page
from support.oracles.plain import (
    INT32,
    INT64,
    INT96,
    NANOSECONDS_A_DAY,
    ColumnType,
    int96,
    int96_to_ns,
    int96_to_us,
    widen_to_float,
)

pytestmark = engines


def decode(engine, column, values, conversion, dictionary=False):
    rng = np.random.default_rng(len(values))
    pages = [
        data_page(
            column, values, RLE_DICTIONARY if dictionary else PLAIN, UNCOMPRESSED, 1, rng, list(dict.fromkeys(values))
        )
    ]
    if dictionary:
        pages.insert(0, dictionary_page(column, list(dict.fromkeys(values)), UNCOMPRESSED, rng))
    request = DecodeRequest(conversion, 8, t.NULLS_RAISE, 0, 0, len(values))
    return decode_fixed(engine, Chunk(column, UNCOMPRESSED, pages), request)


def compare(engine, column, value, conversion, convert, optional=False):
    """Check the cast of one value, PLAIN and in a dictionary."""
    column = ColumnType(column.physical, 0, optional)
    try:
        expected = DecodeOutcome(0, -1, (convert(value),))
    except Inexact:
        expected = DecodeOutcome(INEXACT, 0)
    except Damaged:
        expected = DecodeOutcome(BAD_VALUE, 0)
    assert decode(engine, column, [value], conversion) == expected
    assert decode(engine, column, [value], conversion, dictionary=True) == expected


LIMIT = 1 << 53


@pytest.mark.parametrize("signed", [True, False])
def test_64_bit_integers_are_exact_up_to_2_to_the_53(engine, signed):
    conversion = t.WIDEN_SIGNED if signed else t.WIDEN_UNSIGNED
    edges = [
        0,
        1,
        -1,
        LIMIT - 1,
        LIMIT,
        LIMIT + 1,
        LIMIT + 2,
        -LIMIT + 1,
        -LIMIT,
        -LIMIT - 1,
        (1 << 63) - 1,
        -(1 << 63),
        1 << 62,
        -2,
    ]
    for number in edges:
        compare(engine, ColumnType(INT64), struct.pack("<q", number), conversion, widen_to_float(signed))


@pytest.mark.parametrize("signed", [True, False])
def test_32_bit_integers_are_always_exact(engine, signed):
    conversion = t.WIDEN_SIGNED if signed else t.WIDEN_UNSIGNED
    for number in (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 31) + 1):
        compare(engine, ColumnType(INT32), struct.pack("<I", number), conversion, widen_to_float(signed))


def test_one_inexact_value_among_many(engine):
    fine = [struct.pack("<q", number) for number in range(40)]
    for place in range(0, 41, 1 if engine.name == "compiled" else 13):
        values = [*fine[:place], struct.pack("<q", LIMIT + 1), *fine[place:]]
        assert decode(engine, ColumnType(INT64), values, t.WIDEN_SIGNED).status == INEXACT
        assert decode(engine, ColumnType(INT64), values, t.COPY).rows == tuple(values)


DAYS = {
    "1677": 2_333_837,
    "1678": 2_334_103,
    "1969": 2_440_587,
    "1970": 2_440_588,
    "2262": 2_547_339,
    "9999": 5_373_484,
    "1582": 2_299_161,
    "first": -(1 << 31),
    "last": (1 << 31) - 1,
    "zero": 0,
}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("conversion", "convert"), [(t.INT96_NS, int96_to_ns), (t.INT96_US, int96_to_us)])
def test_int96_at_the_limits(engine, conversion, convert):
    times = [
        0,
        1,
        999,
        1000,
        1001,
        NANOSECONDS_A_DAY - 1,
        NANOSECONDS_A_DAY,
        NANOSECONDS_A_DAY + 1,
        -1,
        -1000,
        -1001,
        -NANOSECONDS_A_DAY,
        (1 << 63) - 1,
        -(1 << 63),
        85_636_854_775_807,
        85_636_854_775_808,
        763_145_224_191,
        763_145_224_192,
        763_145_224_193,
    ]
    days = {
        2_440_588 + offset
        for offset in (
            106_750,
            106_751,
            106_752,
            -106_751,
            -106_752,
            -106_753,
            106_751_989,
            106_751_990,
            106_751_991,
            106_751_992,
            -106_751_990,
            -106_751_991,
            -106_751_992,
            -109_192_578,
            -109_192_583,
        )
    }
    for day in sorted(days | set(DAYS.values()))[:: 1 if engine.name == "compiled" else 3]:
        for time in times:
            compare(engine, ColumnType(INT96), int96(time, day), conversion, convert)


def test_int96_of_known_dates(engine):
    for moment in (
        datetime(1, 1, 1),
        datetime(1677, 9, 21),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(1970, 1, 1),
        datetime(2026, 2, 28, 12, 30, 1, 5),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ):
        passed = moment - datetime(1970, 1, 1)
        value = int96((passed.seconds * 10**6 + passed.microseconds) * 1000, 2_440_588 + passed.days)
        outcome = decode(engine, ColumnType(INT96), [value], t.INT96_US)
        assert outcome.rows == (struct.pack("<q", passed // timedelta(microseconds=1)),)


def days_to_ms(value):
    return struct.pack("<q", struct.unpack("<i", value)[0] * 86_400_000)


def test_days_to_milliseconds(engine):
    for days in (-(1 << 31), -1, 0, 1, 18_321, (1 << 31) - 1):
        compare(engine, ColumnType(INT32), struct.pack("<i", days), t.DAYS_MS, days_to_ms)


def test_int96_wrapped_around_by_spark(engine):
    """Microsecond timestamps near the upper limit, written as Spark does, are read back."""
    day, rng = 86_400_000_000, np.random.default_rng(4)
    for micros in [
        (1 << 63) - 1,
        (1 << 63) - day,
        *rng.integers((1 << 63) - 2_440_000 * day, (1 << 63) - 1, 20).tolist(),
    ]:
        wrapped = (micros + 2_440_588 * day + (1 << 63)) % (1 << 64) - (1 << 63)
        assert wrapped < 0
        days, time = -(-wrapped // day), -(-wrapped % day)  # rounded to zero, as in Java
        outcome = decode(engine, ColumnType(INT96), [int96(time * 1000, days)], t.INT96_US)
        assert outcome.rows == (struct.pack("<q", micros),)


def test_random_int96(engine):
    rng = np.random.default_rng(3)
    for _ in range(engine.size(300)):
        value = int96(int(rng.integers(-(1 << 63), (1 << 63) - 1)), int(rng.integers(2_330_000, 2_550_000)))
        compare(engine, ColumnType(INT96), value, t.INT96_NS, int96_to_ns)
        compare(engine, ColumnType(INT96), value, t.INT96_US, int96_to_us)
