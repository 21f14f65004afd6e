"""Values without their dtypes, as text: equal for all types that a hint may legally give the same stored values."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

_EPOCH = datetime.datetime(1970, 1, 1)


def plain_series(values: Any) -> str:
    """Return the values of a Series or Index."""
    arrow = getattr(values.array, "_pa_array", None)
    if arrow is not None and not isinstance(values.dtype, pd.StringDtype):
        return plain_column(arrow)
    return repr([_plain(item) for item in values.astype(object).tolist()])


def plain_column(column: Any) -> str:
    """Return the values of an Arrow column, after checking it."""
    # That times are shorter than a day, and decimals as short as they should be, is not ours to check.
    column.validate(full=not any(kind in str(column.type) for kind in ("time", "decimal")))
    if "time64[ns]" in str(column.type):  # datetime.time has no nanoseconds; no hint makes such times
        return ""
    return repr([_plain(_stored(item, column.type)) for item in column.to_pylist()])


def _stored(value: Any, kind: Any) -> Any:
    """Return a value of an Arrow type as it is stored: durations as their ticks, extension types as their storage."""
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(value, uuid.UUID):
        return _stored(value, kind.storage_type)
    if value is None:
        return None
    if pa.types.is_duration(kind):
        ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        seconds = pd.Timedelta(value).as_unit("ns").value
        return seconds * ticks // 10**9
    if pa.types.is_map(kind):
        return [(_stored(key, kind.key_type), _stored(item, kind.item_type)) for key, item in value]
    if pa.types.is_struct(kind):
        return {field.name: _stored(value[field.name], field.type) for field in kind}
    if pa.types.is_nested(kind):
        return [_stored(item, kind.value_type) for item in value]
    return value


def _plain(value: Any) -> Any:
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    return value


def _array(values: np.ndarray) -> Any:
    if values.dtype.kind == "m":
        return [None if np.isnat(item) else int(item.view("i8")) for item in values]
    if values.dtype.kind == "M":
        return [_plain(pd.Timestamp(item)) for item in values]
    return [_plain(item) for item in values.tolist()]


def _float(value: float) -> Any:
    return None if value != value else int(value) if value.is_integer() else value


def _moment(value: datetime.datetime) -> Any:
    stamp = pd.Timestamp(value)
    naive = stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)
    return naive.as_unit("us").isoformat()


_CONVERSIONS: tuple[tuple[Any, Any], ...] = (
    ((type(None), type(pd.NaT), type(pd.NA)), lambda value: None),
    (np.generic, lambda value: _plain(value.item()) if value.dtype.kind not in "mM" else _array(np.array([value]))[0]),
    (np.ndarray, _array),
    (bool, int),
    (float, _float),
    (complex, lambda value: {"real": _float(value.real), "imag": _float(value.imag)}),
    (str, lambda value: value.encode("utf-8", "surrogateescape")),
    (uuid.UUID, lambda value: value.bytes),
    (pd.Timedelta, lambda value: value._value),
    (pd.Period, lambda value: value.ordinal),
    (pd.Interval, lambda value: {"left": _plain(value.left), "right": _plain(value.right)}),
    (decimal.Decimal, lambda value: str(value.normalize())),
    (datetime.datetime, _moment),
    (datetime.date, lambda value: _moment(datetime.datetime.combine(value, datetime.time()))),
    (datetime.time, lambda value: str(value)),
    (dict, lambda value: {key: _plain(item) for key, item in value.items()}),
    ((list, tuple), lambda value: [_plain(item) for item in value]),
)
