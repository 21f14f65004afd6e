"""VARIANT metadata and values, encoded from Python values."""

from __future__ import annotations

import datetime
import decimal
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import LimitError
from numparq.util.pluralize import pluralize

from .primitives import (
    ARRAY,
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_SCALE,
    NULL,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LOCAL,
    TIMESTAMP_LOCAL_NANOS,
    TIMESTAMP_NANOS,
    TRUE,
    UUID,
    VERSION,
)

_SORTED = 1 << 4
_MOST_SHORT = 63
_MOST_BYTES = (1 << 32) - 1

_MAX_DEPTH = 250  # nesting of lists and dicts that fits Python's recursion limit from any caller
_MOST_DIGITS = 38
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


# --- scalars ----------------------------------------------------------------------------------------------------------


def _null(value: Any) -> bytes:
    return primitive_header(NULL)


def _bool(value: Any) -> bytes:
    return primitive_header(TRUE if value else FALSE)


def _text(value: str) -> bytes:
    try:
        return encode_string(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"string {value!r} cannot be encoded as UTF-8") from None


def _refused(value: Any) -> bytes:
    raise TypeError(f"a variant cannot hold {value!r} of type {type(value).__name__}")


def _integer(value: Any) -> bytes:
    number = int(value)
    for kind, width in ((INT8, 1), (INT16, 2), (INT32, 4), (INT64, 8)):
        if -(1 << 8 * width - 1) <= number < 1 << 8 * width - 1:
            return primitive_header(kind) + number.to_bytes(width, "little", signed=True)
    return _unscaled(number, 0)


def _float(value: Any) -> bytes:
    return primitive_header(FLOAT) + struct.pack("<f", value)


def _double(value: Any) -> bytes:
    return primitive_header(DOUBLE) + struct.pack("<d", value)


def _decimal(value: decimal.Decimal) -> bytes:
    if not value.is_finite():
        raise ValueError(f"decimal {value} cannot be stored in a variant; use a float for NaN and infinity")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent > _MOST_DIGITS:
        digits, exponent = (digits, exponent) if any(digits) else ((0,), 0)
    if len(digits) + max(exponent, 0) > _MOST_DIGITS or -exponent > MAX_SCALE:
        raise ValueError(f"decimal {value} cannot be stored in a variant: it needs more than {_MOST_DIGITS} digits")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return _unscaled(-unscaled if sign else unscaled, max(-exponent, 0))


def _timestamp(value: pd.Timestamp) -> bytes:
    if value.unit != "ns":
        return _datetime(value.to_pydatetime(warn=False))
    return _number(TIMESTAMP_LOCAL_NANOS if value.tzinfo is None else TIMESTAMP_NANOS, value.as_unit("ns").value)


def _datetime(value: datetime.datetime) -> bytes:
    if value.tzinfo is None or value.utcoffset() is None:
        return _number(TIMESTAMP_LOCAL, (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)
    return _number(TIMESTAMP, (value - _EPOCH_UTC) // _MICROSECOND)


def _date(value: datetime.date) -> bytes:
    return _number(DATE, (value - _EPOCH.date()).days, 4)


def _time(value: datetime.time) -> bytes:
    if value.tzinfo is not None:
        raise ValueError(f"time {value!r} cannot be stored in a variant: it has a time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _number(TIME, seconds * 1_000_000 + value.microsecond)


def _datetime64(value: np.datetime64) -> bytes:
    unit = np.datetime_data(value.dtype)[0]
    if np.isnat(value):
        return _null(value)
    if unit == "D":
        return _number(DATE, int(value.astype(np.int64)), 4)
    kind, wanted = (TIMESTAMP_LOCAL_NANOS, "ns") if unit == "ns" else (TIMESTAMP_LOCAL, "us")
    moment = value.astype(f"M8[{wanted}]")
    if moment.astype(value.dtype) != value:
        raise ValueError(f"timestamp {value} cannot be stored in a variant as microseconds without loss")
    return _number(kind, int(moment.astype(np.int64)))


# The first match counts: a bool is an int, a Timestamp a datetime, and a datetime a date.
_ENCODERS: tuple[tuple[Any, Callable[[Any], bytes]], ...] = (
    ((type(None), type(pd.NaT), type(pd.NA)), _null),
    ((bool, np.bool_), _bool),
    (str, _text),
    (np.timedelta64, _refused),  # a subclass of np.integer
    ((int, np.integer), _integer),
    ((np.float32, np.float16), _float),
    ((float, np.floating), _double),
    (decimal.Decimal, _decimal),
    ((bytes, bytearray, memoryview), lambda value: encode_binary(bytes(value))),
    (pd.Timestamp, _timestamp),
    (datetime.datetime, _datetime),
    (datetime.date, _date),
    (datetime.time, _time),
    (np.datetime64, _datetime64),
    (uuid.UUID, lambda value: primitive_header(UUID) + value.bytes),
)


def primitive_header(kind: int) -> bytes:
    """Return the header byte of a primitive type."""
    return bytes([kind << 2 | PRIMITIVE])


def encode_string(text: bytes) -> bytes:
    """Encode a string, given as UTF-8 bytes."""
    if len(text) <= _MOST_SHORT:
        return bytes([len(text) << 2 | SHORT_STRING]) + text
    return primitive_header(STRING) + _length(text) + text


def encode_binary(value: bytes) -> bytes:
    """Encode a binary value."""
    return primitive_header(BINARY) + _length(value) + value


def _length(value: bytes) -> bytes:
    _check_size(len(value))
    return len(value).to_bytes(4, "little")


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise LimitError(f"a variant would take {pluralize(size, 'byte')}, above the limit of {_MOST_BYTES:,}")


def _width(largest: int) -> int:
    """Return the bytes that an unsigned integer needs, at least one."""
    _check_size(largest)
    return max(1, (largest.bit_length() + 7) // 8)


def _packed(numbers: Iterable[int], width: int) -> bytes:
    return bytes(numbers) if width == 1 else b"".join(number.to_bytes(width, "little") for number in numbers)


def encode_metadata(names: Sequence[bytes]) -> bytes:
    """Encode metadata from UTF-8 field names by id, flagged as sorted if they are sorted and unique."""
    offsets = [0, *accumulate(map(len, names))]
    width = _width(max(len(names), offsets[-1]))
    is_sorted = len(names) > 0 and all(first < second for first, second in pairwise(names))
    header = VERSION | (_SORTED if is_sorted else 0) | (width - 1) << 6
    return bytes([header]) + _packed([len(names), *offsets], width) + b"".join(names)


def encode_array(values: Sequence[bytes]) -> bytes:
    """Encode an array from its encoded values."""
    offsets = [0, *accumulate(map(len, values))]
    width, large = _width(offsets[-1]), len(values) > 255
    header = ARRAY | (width - 1 | large << 2) << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _packed(offsets, width) + b"".join(values)


def encode_object(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """Encode an object from field ids, in byte order of their names, and the encoded values."""
    offsets = [0, *accumulate(map(len, values))]
    width, large = _width(offsets[-1]), len(values) > 255
    id_width = _width(max(ids, default=0))
    header = OBJECT | (width - 1 | (id_width - 1) << 2 | large << 4) << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _packed(ids, id_width) + _packed(offsets, width) + b"".join(values)


def encode(value: Any) -> tuple[bytes, bytes]:
    r"""Encode a Python value as a VARIANT, with the smallest types that hold it.

    Parameters
    ----------
    value : object
        None, or a bool, number, string, bytes, UUID, date, time or timestamp of Python, NumPy or pandas; or a mapping
        with string keys, list, tuple or array of such values. Integers beyond 64 bits become decimals, ``NaT`` and
        ``NA`` become null, NaN stays a number.

    Returns
    -------
    metadata, value : bytes
        Dictionary of field names, and the encoded value.

    Raises
    ------
    TypeError
        When a value has another type.
    ValueError
        When a number has too many digits for a decimal, a date or time is out of range, or the value is nested more
        than 250 levels deep.

    Examples
    --------
    >>> from numparq.format import variant
    >>> variant.encode([1, "a"])
    (b'\x01\x00\x00', b'\x03\x02\x00\x02\x04\x0c\x01\x05a')
    """
    found: set[str] = set()
    _collect_names(value, found, 0)
    try:
        names = sorted(name.encode() for name in found)
    except UnicodeEncodeError as error:
        raise ValueError(f"field name {error.object!r} cannot be encoded as UTF-8") from None
    ids = {name.decode(): number for number, name in enumerate(names)}
    return encode_metadata(names), _encode_value(value, ids)


def _collect_names(value: Any, names: set[str], depth: int) -> None:
    """Collect the names of all fields."""
    if not isinstance(value, (Mapping, list, tuple, np.ndarray)):
        return
    if depth >= _MAX_DEPTH:
        raise ValueError(f"the value is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"field names of a variant must be strings, not {name!r}")
        names.update(value)
        for inner in value.values():
            _collect_names(inner, names, depth + 1)
        return
    for inner in value:
        _collect_names(inner, names, depth + 1)


def _encode_value(value: Any, ids: dict[str, int]) -> bytes:
    if isinstance(value, Mapping):
        fields = sorted(((ids[name], inner) for name, inner in value.items()), key=itemgetter(0))
        return encode_object([number for number, _ in fields], [_encode_value(inner, ids) for _, inner in fields])
    if isinstance(value, (list, tuple, np.ndarray)):
        return encode_array([_encode_value(inner, ids) for inner in value])
    for kinds, make in _ENCODERS:
        if isinstance(value, kinds):
            return make(value)
    return _refused(value)


def _unscaled(unscaled: int, scale: int) -> bytes:
    digits = len(str(abs(unscaled)))
    if digits > _MOST_DIGITS:
        raise ValueError(f"number {unscaled} cannot be stored in a variant: it needs more than {_MOST_DIGITS} digits")
    kind, width = (DECIMAL4, 4) if digits <= 9 else (DECIMAL8, 8) if digits <= 18 else (DECIMAL16, 16)
    return primitive_header(kind) + bytes([scale]) + unscaled.to_bytes(width, "little", signed=True)


def _number(kind: int, number: int, width: int = 8) -> bytes:
    return primitive_header(kind) + number.to_bytes(width, "little", signed=True)
