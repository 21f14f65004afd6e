"""Types of partition columns: inferred or given, and directory text parsed to stored values."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from numparq.format.schema import Leaf


@dataclass(frozen=True)
class PartitionType:
    """Type of a partition column's values.

    Attributes
    ----------
    name : str
        Name in messages.
    physical : int
        Physical type of the stored values.
    parse : callable
        Returns the stored value (int, float or bytes) of a text, or raises ValueError.
    value : callable
        Returns the Python value of a stored value.
    """

    name: str
    physical: int
    parse: Callable[[str], Any] = field(compare=False)
    value: Callable[[Any], Any] = field(compare=False)
    logical: LogicalType | None = None
    type_length: int | None = None
    timezone: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether the empty text is a value; for other types it is a null."""
        return self.physical == BYTE_ARRAY

    def leaf(self, key: str, ordinal: int) -> Leaf:
        """Return a flat OPTIONAL leaf column to bind predicates to, with the negative ordinal ``-1 - ordinal``."""
        place = -1 - ordinal
        return Leaf(place, place, (key,), self.physical, self.type_length, self.logical, 1, 0)


# --- text to stored values --------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"-?[0-9]+")
_PRINTED_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_HEX = re.compile(r"0[xX][0-9a-fA-F]+")
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|-?inf(?:inity)?", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(
    _DATE.pattern + r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_BOOLEANS = {"true": 1, "false": 0, "1": 1, "0": 0}
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MOST_DIGITS = 100
_INT32 = np.iinfo(np.int32)


def _integer(text: str, low: int, high: int) -> int:
    """Parse an integer within bounds; like pyarrow, also a hexadecimal one."""
    if len(text) > _MOST_DIGITS or not (_INTEGER.fullmatch(text) or _HEX.fullmatch(text)):
        raise ValueError(text)
    if text[:2] in ("0x", "0X"):
        if len(text) - 2 > max(low, -low).bit_length() // 4 + 1 and low:
            raise ValueError(text)
        number = int(text, 16)
    else:
        number = int(text)
    if not low <= number <= high:
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _float32(text: str) -> float:
    number = _float(text)
    if math.isfinite(number) and abs(number) > float(np.finfo(np.float32).max):
        raise ValueError(text)
    return float(np.float32(number))


def _boolean(text: str) -> int:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _day(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return datetime.date(*map(int, match.groups())).toordinal() - _EPOCH


def _moment(text: str, per_second: int, zoned: bool) -> int:
    """Parse a timestamp; raise ValueError if it is finer than the unit, or lacks a required time zone."""
    match = _MOMENT.fullmatch(text)
    if match is None or (zoned and match[8] is None):
        raise ValueError(text)
    day = datetime.date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    time = datetime.time(int(match[4] or 0), int(match[5] or 0), int(match[6] or 0))
    seconds = day * 86_400 + time.hour * 3600 + time.minute * 60 + time.second - _offset(match[8] or "Z")
    count, rest = divmod(int((match[7] or "").ljust(9, "0")) * per_second, 1_000_000_000)
    number = seconds * per_second + count
    if rest or not -(1 << 63) < number < 1 << 63:
        raise ValueError(text)
    return number


def _offset(zone: str) -> int:
    """Return a time zone's offset from UTC in seconds."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (-60 if zone[0] == "-" else 60) * (hours * 60 + minutes)


def _unscaled(text: str, precision: int, scale: int) -> int:
    """Parse a decimal into its unscaled integer; raise ValueError if it has too many digits."""
    if len(text) > _MOST_DIGITS or not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    shift = int(exponent) + scale
    number = int("".join(map(str, digits)))
    number, rest = (number * int(10**shift), 0) if shift >= 0 else divmod(number, int(10**-shift))
    if rest or number >= 10**precision:
        raise ValueError(text)
    return -number if sign else number


# --- types by name ----------------------------------------------------------------------------------------------------


def _integers(bits: int, signed: bool) -> PartitionType:
    low, high = (-1 << bits - 1, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    plain = signed and bits in (32, 64)
    logical = None if plain else LogicalType("INTEGER", bit_width=bits, signed=signed)
    physical = INT64 if bits == 64 else INT32
    return PartitionType(
        f"{'' if signed else 'u'}int{bits}", physical, lambda text: _integer(text, low, high), int, logical
    )


def _decimals(precision: int, scale: int) -> PartitionType:
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise ValueError(
            f"decimal({precision}, {scale}) is not a type: precision must be 1 to 38, and scale at most precision"
        )
    physical = INT32 if precision <= 9 else INT64 if precision <= 18 else FIXED_LEN_BYTE_ARRAY
    is_wide = physical == FIXED_LEN_BYTE_ARRAY

    def parse(text: str) -> int | bytes:
        number = _unscaled(text, precision, scale)
        return number.to_bytes(16, "big", signed=True) if is_wide else number

    def value(stored: Any) -> decimal.Decimal:
        number = int.from_bytes(stored, "big", signed=True) if is_wide else int(stored)
        return decimal.Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))

    logical = LogicalType("DECIMAL", precision=precision, scale=scale)
    return PartitionType(f"decimal({precision}, {scale})", physical, parse, value, logical, 16 if is_wide else None)


_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNITS = {"ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}


def _timestamps(unit: str | None, zone: str | None) -> PartitionType:
    """Build a timestamp type; the default unit is microseconds, and seconds become milliseconds (Parquet has none)."""
    unit = {None: "us", "s": "ms"}.get(unit, unit)
    assert unit is not None
    per_second = _PER_SECOND[unit]

    def value(stored: int) -> pd.Timestamp:
        moment = pd.Timestamp(np.datetime64(int(stored), unit))  # type: ignore[call-overload]
        return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)

    logical = LogicalType("TIMESTAMP", unit=_UNITS[unit], utc=zone is not None)
    name = f"timestamp[{unit}]" if zone is None else f"timestamp[{unit}, {zone}]"
    return PartitionType(
        name, INT64, lambda text: _moment(text, per_second, zone is not None), value, logical, timezone=zone
    )


TEXT = PartitionType("str", BYTE_ARRAY, str.encode, lambda stored: stored.decode(), LogicalType("STRING"))
INT32S = _integers(32, True)
_DATES = PartitionType(
    "date", INT32, _day, lambda stored: datetime.date.fromordinal(stored + _EPOCH), LogicalType("DATE")
)
_BOOLEAN_TYPE = PartitionType("bool", BOOLEAN, _boolean, bool)
_FLOAT_TYPE = PartitionType("float32", FLOAT, _float32, float)
_DOUBLE_TYPE = PartitionType("float64", DOUBLE, _float, float)

# Type names of NumPy, pandas and Arrow, and the names used here.
_NAMES: list[tuple[str, Callable[..., PartitionType]]] = [
    (r"(u?)int(8|16|32|64)", lambda unsigned, bits: _integers(int(bits), not unsigned)),
    (r"int", lambda: _integers(64, True)),
    (r"float32", lambda: _FLOAT_TYPE),
    (r"float|float64|double", lambda: _DOUBLE_TYPE),
    (r"bool|boolean", lambda: _BOOLEAN_TYPE),
    (r"str|string|large_string|string_view|utf8|object|<u0", lambda: TEXT),
    (r"date|date32|date64|date32\[day\]|date64\[ms\]", lambda: _DATES),
    (r"(?:datetime64|timestamp)(?:\[(s|ms|us|ns)(?:, (?:tz=)?(.+))?\])?", _timestamps),
    (r"decimal(?:32|64|128|256)?\(([0-9]+), ?([0-9]+)\)", lambda p, s: _decimals(int(p), int(s))),
]
_CLASSES = {
    int: "int64",
    float: "float64",
    str: "str",
    bool: "bool",
    datetime.date: "date",
    datetime.datetime: "timestamp",
    pd.Timestamp: "timestamp",
}
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=\w+, ordered=\w+>")


def parse_partition_type(spec: Any) -> tuple[PartitionType | None, bool]:
    """Parse the type of a partition column: return the type (None: infer it), and whether it is a Categorical.

    Takes a NumPy or pandas dtype, Python class, pyarrow type or type name; raises TypeError for anything else.
    """
    known = isinstance(spec, type) and spec in _CLASSES
    name = _CLASSES[spec] if known else str(spec).removesuffix("[pyarrow]")
    if name == "category":
        return None, True
    if name == "float" and not isinstance(spec, str):  # pyarrow's name of float32
        name = "float32"
    dictionary = _DICTIONARY.fullmatch(name)
    if dictionary:
        return parse_partition_type(dictionary[1])[0], True
    for pattern, make in _NAMES:
        match = re.fullmatch(pattern, name, re.IGNORECASE)
        if match:
            return make(*match.groups()), False
    raise TypeError(f"{spec!r} is not a type for a partition column; use a dtype, such as 'int64' or 'str'")


def infer_partition_type(texts: Iterable[str]) -> PartitionType:
    """Infer the type of texts: int32 if all are such integers as they are printed, else str.

    pyarrow also takes "01", "-0" and "0x10" for integers, which changes texts and merges different ones.
    """
    count = 0
    for count, text in enumerate(texts, start=1):  # noqa: B007
        if not is_printed_integer(text) or not _INT32.min <= int(text) <= _INT32.max:
            return TEXT
    return INT32S if count else TEXT


def is_printed_integer(text: str) -> bool:
    """Whether a text is an integer as it is printed: "7" and "-7", not "07", "+7", "-0" or "0x7"."""
    return len(text) <= _MOST_DIGITS and _PRINTED_INTEGER.fullmatch(text) is not None


def are_integers(texts: Iterable[str]) -> bool:
    """Whether all texts are integers, in any spelling such as "07"."""
    return all(_INTEGER.fullmatch(text) for text in texts)
