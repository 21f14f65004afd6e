"""Leaf kinds for predicates: values, literals, and the comparable form of both."""

from __future__ import annotations

import datetime
import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.logical_type import LogicalType
from numparq.format.schema import Leaf

from .literals import beside_decimals

EPOCH = datetime.datetime(1970, 1, 1)
NS = {"MILLIS": 10**6, "MICROS": 10**3, "NANOS": 1}


def leaf(physical, kind=None, length=None, index=0, name="x", optional=1, **parameters):
    logical = LogicalType(kind, **parameters) if kind else None
    return Leaf(index, index, (name,), physical, length, logical, optional, 0)


class StubFlatSchema:
    """A minimal schema for `bind`, of flat leaves."""

    def __init__(self, leaves):
        self.leaves = list(leaves)
        self.columns = [leaf.path[0] for leaf in self.leaves]
        self.positions = {name: place for place, name in enumerate(self.columns)}
        self.num_leaves = len(self.leaves)

    def flat_leaf(self, position):
        return self.leaves[position]

    leaf = flat_leaf


@dataclass
class LeafKind:
    """A leaf kind: strategies for `stored` values and literals, their comparable form, and PLAIN bytes."""

    leaf: Leaf
    stored: Any
    worth: Callable[[Any], Any]
    plain: Callable[[Any], bytes]
    literals: Any
    meaning: Callable[[Any], Any]
    text: bool = False  # whether startswith and like apply
    dtype: str = ""  # of the decoded values, if they are of a fixed size

    def values(self, items, validity=None) -> ColumnVector:
        """Return decoded values; nulls hold arbitrary data."""
        plain = [self.plain(item) for item in items]
        data = np.frombuffer(b"".join(plain), np.uint8).copy()
        mask = None if validity is None else np.array(validity, np.uint8)
        if self.leaf.physical == 3:
            return ColumnVector(np.array(items, "i8").view("M8[ns]"), validity=mask)
        if self.leaf.physical != 6:
            return ColumnVector(data.view(self.dtype) if self.dtype else data, validity=mask)
        return ColumnVector(data, np.cumsum([0, *map(len, plain)]), mask)


def pack_format(code):
    return lambda value: struct.pack(code, value)


def exact_number(value):
    """Return a number as a Fraction, or as a float if infinite or NaN."""
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else float(value)
    if isinstance(value, (float, np.floating)):
        return Fraction(float(value)) if math.isfinite(value) else float(value)
    return Fraction(int(value)) if not isinstance(value, Fraction) else value


def rounding(dtype):
    """Return the conversion of plain numbers beside a float dtype: NumPy rounds them unless they overflow."""

    def meaning(literal):
        if type(literal) in (int, float) and not isinstance(literal, bool):
            try:
                with np.errstate(over="ignore"):
                    rounded = np.dtype(dtype).type(float(literal))
            except OverflowError:
                return exact_number(literal)
            return (
                exact_number(rounded)
                if np.isfinite(rounded) or not np.isfinite(float(literal))
                else exact_number(literal)
            )
        return exact_number(literal)

    return meaning


NEAR = st.integers(-4, 4)
NUMBERS = st.one_of(
    NEAR,
    NEAR.map(lambda n: n + 0.5),
    st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1, 2**64]),
    st.sampled_from(
        [
            2**70,
            -(2**70),
            math.inf,
            -math.inf,
            math.nan,
            Decimal("0.01"),
            Decimal("1e400"),
            255,
            -129,
            Decimal("NaN"),
            np.float32(0.1),
            np.int8(3),
            Fraction(1, 3),
            np.uint64(2**64 - 1),
            1e-320,
            True,
        ]
    ),
    st.floats(),
    st.integers(-300, 300),
)


def whole(code, low, high, logical=None, physical=1, dtype="", **parameters):
    edges = st.sampled_from([low, high, low + 1, high - 1])
    stored = st.one_of(st.integers(max(-4, low), 4), edges, st.integers(low, high))
    return LeafKind(
        leaf(physical, logical, **parameters), stored, Fraction, pack_format(code), NUMBERS, exact_number, dtype=dtype
    )


def prefer_few(few, others):
    """Draw from a few values half of the time, so that values, literals and bounds coincide."""
    return st.booleans().flatmap(lambda usual: st.sampled_from(few) if usual else others)


def floating(code, physical, dtype, logical=None, length=None):
    width = np.dtype(dtype).itemsize * 8
    stored = prefer_few([0.0, -0.0, math.nan, math.nan, math.inf, 0.5, 3.0], st.floats(width=width))
    odd = st.one_of(NUMBERS, st.floats(width=width), st.sampled_from([0.1, 65519, 65520, 3.5e38, 10**400]))
    near = prefer_few([0.0, -0.0, 0, 0.5, 3, math.nan], odd)
    return LeafKind(
        leaf(physical, logical, length), stored, exact_number, pack_format(code), near, rounding(dtype), dtype=dtype
    )


TEXTS = st.one_of(
    st.text("ab%_é𐍈\0\x7f", max_size=4),
    st.text(max_size=3),
    st.sampled_from(["abcdefgh", "abcdefghi", "abcdefgh\0", "a" * 17, "\U0010ffff" * 3]),
)
BYTES = st.one_of(st.binary(max_size=4), st.sampled_from([b"", b"\0", b"\xff", b"\xff\xff", b"a" * 8, b"a" * 9]))


def text_kind(logical):
    stored = literals = prefer_few(["", "a", "ab", "b"], TEXTS)
    return LeafKind(leaf(6, logical), stored, lambda v: v, str.encode, literals, lambda v: v, True)


def bytes_kind(length=None):
    stored = st.binary(min_size=length, max_size=length) if length else BYTES
    if length:
        stored = st.one_of(stored, st.integers(0, 3).map(lambda n: n.to_bytes(length, "big")))
    near = st.one_of(BYTES, stored)
    same = bytes
    return LeafKind(leaf(7 if length else 6, None, length), stored, same, same, near, same, True)


def big_endian(size):
    def plain(number):
        width = size or max((number.bit_length() + 8) // 8, 1)
        return number.to_bytes(width, "big", signed=True)

    return plain


def decimal_kind(physical, plain, digits, scale, dtype="", length=None):
    most = 10**digits - 1
    stored = st.one_of(st.integers(-300, 300), st.integers(-most, most), st.sampled_from([most, -most]))
    near = st.one_of(NUMBERS, st.decimals(-10, 10, places=scale), st.decimals(-3, 3, places=scale).map(str))
    unit = Fraction(1, 10**scale)
    about = leaf(physical, "DECIMAL", length, precision=digits, scale=scale)

    return LeafKind(about, stored, lambda v: v * unit, plain, near, beside_decimals, dtype=dtype)


def in_nanoseconds(value):
    """Return a timestamp, date, time or duration in nanoseconds, since 1970 in UTC."""
    if isinstance(value, str):
        value = np.datetime64(value.replace("Z", ""), "ns")
    if isinstance(value, pd.Timestamp):
        return Fraction(value.as_unit("ns").value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return Fraction(int(value.astype(f"{value.dtype.kind}8[ns]").astype("i8")))
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return in_nanoseconds(value - EPOCH)
    if isinstance(value, datetime.date):
        return in_nanoseconds(datetime.datetime(value.year, value.month, value.day))
    if isinstance(value, datetime.time):
        value = datetime.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
    return Fraction((value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000)


ZONE = datetime.timezone(datetime.timedelta(hours=2))
NAIVE = st.one_of(
    st.datetimes(datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 3)),
    st.integers(-3, 3).map(lambda n: pd.Timestamp(n)),
    st.integers(-(10**15), 10**15).map(lambda n: np.datetime64(n, "ns")),
    st.dates(datetime.date(1969, 12, 30), datetime.date(1970, 1, 3)),
    st.sampled_from(
        ["1970-01-01", "1970-01-01T00:00:00.001", "1969-12-31 23:59:59.999999999", np.datetime64("1970-01")]
    ),
)
AWARE = st.one_of(
    st.datetimes(datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 3)).map(lambda m: m.replace(tzinfo=ZONE)),
    st.integers(-3000, 3000).map(lambda n: pd.Timestamp(n, tz="UTC")),
    st.sampled_from(["1970-01-01", "1970-01-01T00:00:00.001Z"]),
)


def moment_kind(unit, utc=False):
    near = st.one_of(st.integers(-5, 5), st.integers(-(10**15) // NS[unit], 10**15 // NS[unit]))
    about = leaf(2, "TIMESTAMP", unit=unit, utc=utc)
    literals = AWARE if utc else NAIVE
    return LeafKind(
        about, near, lambda v: Fraction(v * NS[unit]), pack_format("<q"), literals, in_nanoseconds, dtype="<i8"
    )


def int96(value):
    days, nanoseconds = divmod(value, 86_400 * 10**9)
    return struct.pack("<qi", nanoseconds, days + 2440588)


def time_kind(physical, unit, code, dtype):
    most = 86_400 * 10**9 // NS[unit] - 1
    stored = st.one_of(st.integers(0, 5), st.integers(0, most))
    literals = st.one_of(
        st.times(), st.integers(0, 10**7).map(lambda n: np.timedelta64(n, "ns")), st.just(datetime.timedelta(days=1))
    )
    about = leaf(physical, "TIME", unit=unit)
    return LeafKind(
        about, stored, lambda v: Fraction(v * NS[unit]), pack_format(code), literals, in_nanoseconds, dtype=dtype
    )


DAYS = LeafKind(
    leaf(1, "DATE"),
    st.integers(-4, 4),
    lambda v: Fraction(v * 86_400 * 10**9),
    pack_format("<i"),
    NAIVE,
    in_nanoseconds,
    dtype="<i4",
)
UUIDS = st.one_of(st.uuids(), st.integers(0, 3).map(lambda n: uuid.UUID(int=n)))

KINDS: dict[str, LeafKind] = {
    "int32": whole("<i", -(2**31), 2**31 - 1, dtype="<i4"),
    "int64": whole("<q", -(2**63), 2**63 - 1, physical=2, dtype="<i8"),
    "int8": whole("<i", -128, 127, "INTEGER", dtype="<i4", bit_width=8, signed=True),
    "uint16": whole("<i", 0, 65535, "INTEGER", dtype="<i4", bit_width=16, signed=False),
    "uint32": whole("<I", 0, 2**32 - 1, "INTEGER", dtype="<i4", bit_width=32, signed=False),
    "uint64": whole("<Q", 0, 2**64 - 1, "INTEGER", 2, dtype="<u8", bit_width=64, signed=False),
    "bool": LeafKind(leaf(0), st.booleans(), Fraction, pack_format("<?"), NUMBERS, exact_number, dtype="?"),
    "float": floating("<f", 4, "<f4"),
    "double": floating("<d", 5, "<f8"),
    "float16": floating("<e", 7, "<f2", "FLOAT16", 2),
    "string": text_kind("STRING"),
    "enum": text_kind("ENUM"),
    "binary": bytes_kind(),
    "fixed": bytes_kind(3),
    "decimal32": decimal_kind(1, pack_format("<i"), 9, 2, "<i4"),
    "decimal64": decimal_kind(2, pack_format("<q"), 18, 3, "<i8"),
    "decimal bytes": decimal_kind(6, big_endian(0), 20, 2),
    "decimal fixed": decimal_kind(7, big_endian(5), 11, 2, length=5),
    "decimal wide": decimal_kind(7, big_endian(16), 38, 2, "V16", length=16),
    "date": DAYS,
    "timestamp ms": moment_kind("MILLIS"),
    "timestamp us utc": moment_kind("MICROS", True),
    "timestamp ns": moment_kind("NANOS"),
    "int96": LeafKind(leaf(3), st.integers(-(10**15), 10**15), Fraction, int96, NAIVE, in_nanoseconds),
    "time ms": time_kind(1, "MILLIS", "<i", "<i4"),
    "time ns": time_kind(2, "NANOS", "<q", "<i8"),
    "uuid": LeafKind(
        leaf(7, "UUID", 16),
        UUIDS,
        lambda v: v.int,
        lambda v: v.bytes,
        st.one_of(UUIDS, UUIDS.map(str)),
        lambda v: (v if isinstance(v, uuid.UUID) else uuid.UUID(v)).int,
    ),
}
