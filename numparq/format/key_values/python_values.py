"""Python values (scalars, tuples, lists, dicts) as JSON, both ways without loss."""

from __future__ import annotations

import base64
import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from .time_zones import time_zone_from_text, time_zone_to_text

_MAX_NAME = 100  # characters of the name of a dtype or frequency


def value_to_json(value: Any) -> Any:
    """Encode a scalar (see `_ENCODERS`), tuple, list or dict as JSON values; TypeError for other types."""
    if value is None or type(value) in (bool, int, str):
        return value
    for cls, kind, describe in _ENCODERS:
        if isinstance(value, cls):
            return [kind, *describe(value)]
    raise TypeError(f"values of type {type(value).__name__} cannot be stored as JSON")


def value_from_json(note: Any) -> Any:
    """Decode a value from `value_to_json`; raises any Exception if the note is invalid."""
    if note is None or type(note) in (bool, int, str):
        return note
    if not isinstance(note, list) or not note:
        raise ValueError("the note does not describe a value")
    return _DECODERS[note[0]](*note[1:])


def _zone(value: Any) -> str | None:
    return None if value.tzinfo is None else time_zone_to_text(value.tzinfo)


def _timestamp(ticks: int, unit: str, zone: str | None) -> Any:
    naive = pd.Timestamp(np.int64(ticks).view(f"M8[{unit}]"))
    return naive if zone is None else naive.tz_localize("UTC").tz_convert(time_zone_from_text(zone))


def _moment(text: str, zone: str | None) -> datetime.datetime:
    naive = datetime.datetime.fromisoformat(text)
    return naive if zone is None else naive.replace(tzinfo=datetime.UTC).astimezone(time_zone_from_text(zone))


def _naive(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def _numpy_item(value: np.generic) -> list[Any]:
    if value.dtype.kind in "mM":
        return [str(value.dtype), int(value.view(np.int64))]
    return [str(value.dtype), value_to_json(value.item())]


def _numpy(dtype: str, note: Any) -> Any:
    kind = np.dtype(dtype[:_MAX_NAME])
    if kind.kind in "mM":
        return np.int64(note).view(kind)
    if kind.kind not in "biufc":
        raise ValueError(f"dtype {dtype} has no scalars that a note can hold")
    return kind.type(value_from_json(note))


# The first match counts: a Timestamp is a datetime, a datetime a date, NumPy's float64 a float.
_ENCODERS: tuple[tuple[Any, str, Callable[[Any], list[Any]]], ...] = (
    (type(pd.NaT), "NaT", lambda value: []),
    (type(pd.NA), "NA", lambda value: []),
    (np.generic, "numpy", _numpy_item),
    (float, "float", lambda value: [repr(float(value))]),
    (complex, "complex", lambda value: [repr(value.real), repr(value.imag)]),
    (bytes, "bytes", lambda value: [base64.b64encode(value).decode()]),
    (tuple, "tuple", lambda value: list(map(value_to_json, value))),
    (list, "list", lambda value: list(map(value_to_json, value))),
    (dict, "dict", lambda value: [[value_to_json(key), value_to_json(item)] for key, item in value.items()]),
    (pd.Timestamp, "Timestamp", lambda value: [int(value.asm8.view("i8")), value.unit, _zone(value)]),
    (pd.Timedelta, "Timedelta", lambda value: [int(value.asm8.view("i8")), value.unit]),
    (pd.Period, "Period", lambda value: [value.ordinal, value.freqstr]),
    (pd.Interval, "Interval", lambda value: [value_to_json(value.left), value_to_json(value.right), value.closed]),
    (datetime.datetime, "datetime", lambda value: [_naive(value).isoformat(), _zone(value)]),
    (datetime.date, "date", lambda value: [value.isoformat()]),
    (datetime.time, "time", lambda value: [value.isoformat()]),
    (datetime.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (decimal.Decimal, "Decimal", lambda value: [str(value)]),
    (uuid.UUID, "UUID", lambda value: [str(value)]),
)
_DECODERS: dict[str, Callable[..., Any]] = {
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
    "numpy": _numpy,
    "float": float,
    "complex": lambda real, imag: complex(float(real), float(imag)),
    "bytes": base64.b64decode,
    "tuple": lambda *items: tuple(map(value_from_json, items)),
    "list": lambda *items: list(map(value_from_json, items)),
    "dict": lambda *items: {value_from_json(key): value_from_json(item) for key, item in items},
    "Timestamp": _timestamp,
    "Timedelta": lambda ticks, unit: pd.Timedelta(np.int64(ticks).view(f"m8[{unit}]")),
    "Period": lambda ordinal, freq: pd.Period(ordinal=ordinal, freq=freq[:_MAX_NAME]),
    "Interval": lambda left, right, closed: pd.Interval(value_from_json(left), value_from_json(right), closed),
    "datetime": _moment,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": datetime.timedelta,
    "Decimal": decimal.Decimal,
    "UUID": uuid.UUID,
}
