"""Kinds of columns: how numbers become values, what those are worth, which literals are for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from . import literals as lit

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
ALL = ("numparq", "pyarrow", "polars", "duckdb")
ARROW = ("numparq", "pyarrow")
NOT_DUCKDB = ("numparq", "pyarrow", "polars")


@dataclass(frozen=True)
class ColumnKind:
    """A kind of column.

    Parameters
    ----------
    arrow : pyarrow.DataType
        Its type.
    make : callable
        A number from 0 on as a value that pyarrow takes; larger ones give larger values.
    near : callable or None
        A literal near a value; None of what is not compared.
    edges : tuple
        Values at the ends of what there is, and odd ones.
    worth : callable
        What a value is worth.
    text : bool
        Whether there are prefixes and patterns.
    writers : tuple of str
        Who can write it.
    fields : mapping of str to Kind
        Of structs: those that can be asked.
    element : Kind or None
        Of lists: what their elements are, if these can be asked.
    """

    arrow: pa.DataType
    make: Callable[[int], Any]
    near: Callable[[np.random.Generator, Any], lit.Literal] | None = None
    edges: tuple = ()
    worth: Callable[[Any], Any] = lambda value: value
    text: bool = False
    writers: tuple[str, ...] = ALL
    fields: Mapping[str, ColumnKind] = field(default_factory=dict)
    element: ColumnKind | None = None

    @property
    def is_float(self) -> bool:
        return pa.types.is_floating(self.arrow)


def whole(bits: int, signed: bool) -> ColumnKind:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    arrow = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    span = min(high - low + 1, 1 << 40)
    first = max(low, -(2**10)) if signed else 0
    # Above the middle as well, where a signed comparison goes wrong.
    make = (lambda n: min(first + n % span, high)) if signed else (lambda n: (high // 2 - 500 + n) % (high + 1))
    return ColumnKind(arrow, make, lit.near_integer, (low, high, low + 1, high - 1, 0))


def floating(width: int) -> ColumnKind:
    arrow = {2: pa.float16(), 4: pa.float32(), 8: pa.float64()}[width]
    dtype = np.dtype(f"f{width}").type
    tiny = np.nextafter(dtype(0), dtype(1))
    edges = (0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, float(tiny), -float(tiny), float(dtype(0.1)))
    scale = 8 if width == 2 else 7
    return ColumnKind(
        arrow,
        lambda n: dtype((n % 4000 - 1000) / scale if width == 2 else (n - 1000) / scale),
        lit.near_float(width),
        tuple(dtype(edge) for edge in edges),
        float,
        writers=ARROW if width == 2 else ALL,
    )


def text(arrow: pa.DataType, prefix: str = "", writers: tuple[str, ...] = ALL) -> ColumnKind:
    edges = (prefix, prefix + "\0", "", "\U0010ffff" * 20, "z" * 70, prefix + "é", prefix + "\uffff", prefix + "%_!")
    return ColumnKind(arrow, lambda n: f"{prefix}{n:05d}", lit.near_text, edges, text=True, writers=writers)


def binary(arrow: pa.DataType, length: int | None = None, prefix: bytes = b"") -> ColumnKind:
    if length:
        edges: tuple = (b"\0" * length, b"\xff" * length, b"\x7f" + b"\xff" * (length - 1))
        half = 1 << 8 * length - 1
        return ColumnKind(
            arrow, lambda n: ((half - 500 + n) % (2 * half)).to_bytes(length, "big"), lit.near_binary, edges, text=True
        )
    edges = (b"", b"\0", b"\xff" * 70, prefix + b"\x80", b"\xff", prefix)
    return ColumnKind(arrow, lambda n: prefix + (n + 30_000).to_bytes(3, "big"), lit.near_binary, edges, text=True)


def decimal(digits: int, scale: int) -> ColumnKind:
    def scaled(n: int) -> Decimal:  # exactly, whatever the context's precision is
        return Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))

    most = 10**digits - 1
    return ColumnKind(
        pa.decimal128(digits, scale),
        lambda n: scaled(n - 1000),
        lit.near_decimal(scale),
        (scaled(0), scaled(most), scaled(-most)),
        lit.exact,
    )


def moment(unit: str, zone: str | None = None, writers: tuple[str, ...] = ALL) -> ColumnKind:
    step = {"s": 1, "ms": 333, "us": 333_333, "ns": 333_333_333}[unit]
    ns = NS[unit]
    start = -1000 * step
    edges = (0, -1, 1, 10**17 // ns, -(10**17) // ns)
    return ColumnKind(
        pa.timestamp(unit, zone),
        lambda n: start + n * step,
        lit.near_moment(ns, zone),
        edges,
        lambda value: value * ns,
        writers=writers,
    )


def time_of_day(arrow: pa.DataType, unit: str, writers: tuple[str, ...] = ALL) -> ColumnKind:
    day = lit.DAY_NS // NS[unit]
    step = day // 20_000
    return ColumnKind(
        arrow, lambda n: n * step % day, lit.near_time(NS[unit]), (0, day - 1), lambda v: v * NS[unit], writers=writers
    )


def duration(unit: str) -> ColumnKind:
    ns = NS[unit]
    return ColumnKind(
        pa.duration(unit),
        lambda n: (n - 1000) * 1001,
        lit.near_duration(ns),
        (0, -1, 10**15 // ns),
        lambda value: value * ns,
        writers=ARROW,
    )


def list_of(element: ColumnKind, writers: tuple[str, ...] = ALL) -> ColumnKind:
    """Return lists of up to three elements, some null."""

    def make(n: int) -> list:
        return [None if n % 5 == 4 and place == 1 else element.make(n + 3 * place) for place in range(n % 4)]

    def worth(value: list) -> list:
        return [None if item is None else element.worth(item) for item in value]

    edges = ([], [None], [None, None], list(element.edges[:3]))
    return ColumnKind(pa.list_(element.arrow), make, None, edges, worth, writers=writers, element=element)


def struct_of(writers: tuple[str, ...] = ALL, **fields: ColumnKind) -> ColumnKind:
    """Return structs with occasional null fields."""

    def make(n: int) -> dict:
        return {
            name: None if (n + place) % 7 == 6 else kind.make(n) for place, (name, kind) in enumerate(fields.items())
        }

    arrow = pa.struct([pa.field(name, kind.arrow) for name, kind in fields.items()])
    return ColumnKind(arrow, make, edges=(dict.fromkeys(fields),), writers=writers, fields=fields)


LONG = "a prefix that all of them have, longer than any bound of statistics is allowed to be, "
INTS = {
    f"{'' if signed else 'u'}int{bits}": whole(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)
}

KINDS: dict[str, ColumnKind] = {
    **INTS,
    "bool": ColumnKind(pa.bool_(), lambda n: n % 3 == 0, lit.near_boolean, (True, False), int),
    "half": floating(2),
    "float": floating(4),
    "double": floating(8),
    "text": text(pa.string()),
    "long": text(pa.string(), LONG),
    "high": text(pa.string(), "\U0010ffff" * 17),
    "category": text(pa.dictionary(pa.int32(), pa.string()), "c", ("numparq", "pyarrow", "polars")),
    "bytes": binary(pa.binary()),
    "same": binary(pa.binary(), prefix=b"\xff" * 66),
    "fixed": binary(pa.binary(3), 3),
    "wide": binary(pa.binary(80), 80),
    "money": decimal(5, 2),
    "sum": decimal(18, 3),
    "huge": decimal(36, 4),
    "date": ColumnKind(
        pa.date32(),
        lambda n: n - 1000,
        lit.near_moment(lit.DAY_NS, None),
        (-1, 0, 20_000),
        lambda value: value * lit.DAY_NS,
    ),
    "seconds": moment("s"),
    "millis": moment("ms"),
    "micros": moment("us"),
    "nanos": moment("ns"),
    "utc": moment("us", "UTC"),
    "utcnanos": moment("ns", "UTC", NOT_DUCKDB),
    "berlin": moment("ms", "Europe/Berlin"),
    "clock": time_of_day(pa.time32("ms"), "ms"),
    "clockus": time_of_day(pa.time64("us"), "us"),
    "clockns": time_of_day(pa.time64("ns"), "ns", NOT_DUCKDB),
    "span": duration("ms"),
    "spanns": duration("ns"),
    "uuid": ColumnKind(
        pa.uuid(),
        lambda n: ((1 << 127) - 500 + n).to_bytes(16, "big"),
        lit.near_uuid,
        (b"\0" * 16, b"\xff" * 16),
        writers=ARROW,
    ),
    "nothing": ColumnKind(pa.null(), lambda n: None, lit.near_integer, writers=ARROW),
    "record": struct_of(ra=INTS["int32"], rb=text(pa.string()), rc=floating(8)),
    "deep": struct_of(da=struct_of(db=struct_of(dc=INTS["int64"])), dd=decimal(9, 1)),
    "ints": list_of(INTS["int64"]),
    "texts": list_of(text(pa.string())),
    "doubles": list_of(floating(8)),
    "records": list_of(struct_of(la=INTS["int32"], lb=text(pa.string()))),
    "map": ColumnKind(
        pa.map_(pa.string(), pa.int32()),
        lambda n: [(f"k{place}", n) for place in range(n % 3)],
        edges=([],),
        writers=("numparq", "pyarrow", "duckdb"),
    ),
}
