"""VARIANT primitive types and short strings: type ids, and a decoder for each header byte."""

from __future__ import annotations

import datetime
import decimal
import struct
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import InvalidFileError, UnsupportedError

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
(
    NULL,
    TRUE,
    FALSE,
    INT8,
    INT16,
    INT32,
    INT64,
    DOUBLE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DATE,
    TIMESTAMP,
    TIMESTAMP_LOCAL,
    FLOAT,
    BINARY,
    STRING,
    TIME,
    TIMESTAMP_NANOS,
    TIMESTAMP_LOCAL_NANOS,
    UUID,
) = range(21)
MAX_SCALE = 38

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_LAST_DAY = datetime.date.max.toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_US_OF_DAY = 86_400_000_000

PrimitiveDecoder = Callable[[bytes, int, int], Any]


# --- decoders ---------------------------------------------------------------------------------------------------------


def _length_error(what: str, end: int, there: int) -> InvalidFileError:
    return InvalidFileError(f"the {what} of a variant ends at byte {end} instead of byte {there}")


def _constant(value: Any) -> PrimitiveDecoder:
    def decode(data: bytes, start: int, end: int) -> Any:
        if end != start + 1:
            raise _length_error("value", start + 1, end)
        return value

    return decode


def _number(form: str, make: Callable[[Any], Any] | None = None) -> PrimitiveDecoder:
    """Return a decoder of a number in a `struct` format; `make` converts it."""
    unpack, size = struct.Struct(f"<{form}").unpack_from, struct.calcsize(f"<{form}") + 1

    def decode(data: bytes, start: int, end: int) -> Any:
        if end != start + size:
            raise _length_error("value", start + size, end)
        (number,) = unpack(data, start + 1)
        return number if make is None else make(number)

    return decode


def _decimal(width: int) -> PrimitiveDecoder:
    def decode(data: bytes, start: int, end: int) -> decimal.Decimal:
        if end != start + 2 + width:
            raise _length_error("decimal", start + 2 + width, end)
        scale = data[start + 1]
        if scale > MAX_SCALE:
            raise InvalidFileError(f"a decimal in a variant has scale {scale}, above the limit of {MAX_SCALE}")
        unscaled = int.from_bytes(data[start + 2 : end], "little", signed=True)
        return decimal.Decimal(f"{unscaled}E-{scale}")  # exact, whatever the context

    return decode


# --- dates, times, strings, UUIDs -------------------------------------------------------------------------------------


def days_to_date(days: int) -> Any:
    """Return the date of days since 1970-01-01; datetime64[D] if `datetime.date` cannot hold it."""
    ordinal = _EPOCH_DAY + days
    return datetime.date.fromordinal(ordinal) if 0 < ordinal <= _LAST_DAY else np.datetime64(days, "D")


def _sized(make: Callable[[bytes, int, int], Any]) -> PrimitiveDecoder:
    """Return a decoder of length-prefixed bytes."""

    def decode(data: bytes, start: int, end: int) -> Any:
        first = start + 5
        length = int.from_bytes(data[start + 1 : first], "little")
        if first + length != end:
            raise _length_error("string or binary value", first + length, end)
        return make(data, first, end)

    return decode


def decode_text(data: bytes, start: int, end: int) -> str:
    """Decode UTF-8 bytes from `start` to `end` (exclusive)."""
    try:
        return str(data[start:end], "utf-8")
    except UnicodeDecodeError:
        raise InvalidFileError("a string in a variant is not valid UTF-8") from None


def micros_to_time(microseconds: int) -> Any:
    """Return a time of day in microseconds; timedelta64[us] if it is not within a day."""
    if not 0 <= microseconds < _US_OF_DAY:
        return np.timedelta64(microseconds, "us")
    seconds, fraction = divmod(microseconds, 1_000_000)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction)


def _uuid(data: bytes, start: int, end: int) -> uuid.UUID:
    if end != start + 17:
        raise _length_error("UUID", start + 17, end)
    return uuid.UUID(bytes=data[start + 1 : end])


_PRIMITIVES: dict[int, PrimitiveDecoder] = {
    NULL: _constant(None),
    TRUE: _constant(True),
    FALSE: _constant(False),
    INT8: _number("b"),
    INT16: _number("h"),
    INT32: _number("i"),
    INT64: _number("q"),
    DOUBLE: _number("d"),
    DECIMAL4: _decimal(4),
    DECIMAL8: _decimal(8),
    DECIMAL16: _decimal(16),
    DATE: _number("i", days_to_date),
    TIMESTAMP: _number("q", lambda number: micros_to_datetime(number, True)),
    TIMESTAMP_LOCAL: _number("q", lambda number: micros_to_datetime(number, False)),
    FLOAT: _number("f"),
    BINARY: _sized(lambda data, start, end: data[start:end]),
    STRING: _sized(decode_text),
    TIME: _number("q", micros_to_time),
    TIMESTAMP_NANOS: _number("q", lambda number: nanos_to_timestamp(number, True)),
    TIMESTAMP_LOCAL_NANOS: _number("q", lambda number: nanos_to_timestamp(number, False)),
    UUID: _uuid,
}


def _short_string(length: int) -> PrimitiveDecoder:
    def decode(data: bytes, start: int, end: int) -> str:
        if end != start + 1 + length:
            raise _length_error("short string", start + 1 + length, end)
        return decode_text(data, start + 1, end)

    return decode


def _unknown(number: int) -> PrimitiveDecoder:
    def decode(data: bytes, start: int, end: int) -> Any:
        raise UnsupportedError(f"a variant has a value of primitive type {number}, which numparq cannot read")

    return decode


def _scalar(header: int) -> PrimitiveDecoder | None:
    kind, rest = header & 3, header >> 2
    if kind == SHORT_STRING:
        return _short_string(rest)
    return (_PRIMITIVES.get(rest) or _unknown(rest)) if kind == PRIMITIVE else None


HEADER_DECODERS: list[PrimitiveDecoder | None] = [_scalar(header) for header in range(256)]

VERSION = 1


def micros_to_datetime(microseconds: int, utc: bool) -> Any:
    """Return the datetime of microseconds since 1970; datetime64[us] if `datetime.datetime` cannot hold it."""
    try:
        return (_EPOCH_UTC if utc else _EPOCH) + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return np.datetime64(microseconds, "us")


def nanos_to_timestamp(nanoseconds: int, utc: bool) -> Any:
    """Return the `pandas.Timestamp` of nanoseconds since 1970."""
    return pd.Timestamp(nanoseconds, unit="ns", tz="UTC" if utc else None)
