"""The tables of targets: what columns of each Arrow kind become, by dtype backend.

A row is a function of the column (`numparq.targets.Column`) that gives a `Target`, or None where it does not apply.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .arrow_schema import ArrowType
from .kernels.tables import (
    BOOLEAN,
    COPY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
    INT96_NS,
    INT96_US,
    NARROW,
    WIDEN_SIGNED,
    WIDEN_UNSIGNED,
)
from .targets import BINARY_KINDS, UTF8_KINDS, Column, Target, int_dtype

_NAN = {16: np.float16(np.nan).tobytes(), 32: np.float32(np.nan).tobytes(), 64: np.float64(np.nan).tobytes()}
_NAT = np.int64(np.iinfo(np.int64).min).tobytes()


# --- dtype_backend="numpy" -------------------------------------------------------------------------------------------


def _int_conversion(column: Column) -> int:
    return NARROW if column.physical == INT32 and column.type.bit_width < 32 else COPY


def _nullable_int(column: Column, pandas_dtype: Any = None) -> Target:
    dtype = int_dtype(column.type)
    return column.fixed(
        dtype,
        "masked",
        "mask",
        conversion=_int_conversion(column),
        pandas_dtype=pandas_dtype or _NULLABLE_DTYPES[dtype],
    )


def _numpy_int(column: Column) -> Target:
    dtype = int_dtype(column.type)
    exact = Target("fixed", "block", column.type, dtype, _int_conversion(column), physical=column.physical, block=True)
    if not column.optional:
        return exact
    if exact.conversion == NARROW:
        # Narrowed first: what a writer left in the upper bytes does not count.
        widened = replace(exact, finish="narrow_floats", nulls="mask", block=False)
    else:
        widened = Target(
            "fixed",
            "widened",
            column.type,
            np.dtype("f8"),
            WIDEN_SIGNED if column.type.signed else WIDEN_UNSIGNED,
            "fill",
            _NAN[64],
            column.physical,
            block=True,
            narrow=dtype,
            on_inexact=_nullable_int(column),
        )
    return widened if column.nulls_expected else replace(exact, on_null=widened)


def _numpy_float(column: Column) -> Target:
    bits = column.type.bit_width
    return column.fixed(f"f{bits // 8}", "block", fill=_NAN[bits], block=True)


def _numpy_bool(column: Column) -> Target:
    exact = Target("fixed", "block", column.type, np.dtype(bool), physical=column.physical, block=True)
    if not column.optional:
        return exact
    objects = column.fixed(bool, "bool_objects", "mask")
    return objects if column.nulls_expected else replace(exact, on_null=objects)


def _numpy_timestamp(column: Column) -> Target:
    unit = column.type.unit
    finish = "timestamp_tz" if column.type.timezone else "block"
    target = column.fixed(f"M8[{unit}]", finish, fill=_NAT, block=finish == "block")
    if column.physical != INT96:
        return target
    return _int96(target, f"M8[{column.type.unit}]", "M8[us]", NUMPY["fixed_size_binary"](_bytes_of_int96(column)))


def _bytes_of_int96(column: Column) -> Column:
    return replace(column, type=ArrowType("fixed_size_binary", byte_width=12), type_length=12)


def _int96(target: Target, dtype: str, coarse_dtype: str, raw: Target) -> Target:
    """Read INT96 as nanoseconds, as microseconds where they do not fit, and as bytes where these are no timestamps."""
    coarse = replace(
        target, dtype=np.dtype(coarse_dtype), conversion=INT96_US, type=replace(target.type, unit="us"), on_inexact=raw
    )
    return replace(target, dtype=np.dtype(dtype), conversion=INT96_NS, on_inexact=coarse)


def _numpy_duration(column: Column) -> Target:
    return column.fixed(f"m8[{column.type.unit}]", "block", fill=_NAT, block=True)


def _numpy_binary(column: Column) -> Target:
    if column.type.dictionary is not None:
        return Target(
            "dictionary",
            "category",
            column.type,
            np.dtype("i4"),
            physical=column.physical,
            utf8=column.type.kind in UTF8_KINDS,
        )
    return column.binary("bytes")


def _numpy_text(column: Column) -> Target:
    if column.type.dictionary is not None:
        return _numpy_binary(column)
    # Text inside of an extension type (JSON is one) is not pandas' string dtype.
    return column.binary("text_objects" if column.type.extension else "text")


_DECIMAL_DTYPES = {INT32: "i4", INT64: "i8"}


def _raw_dtype(column: Column) -> str:
    return _DECIMAL_DTYPES.get(column.physical) or f"V{column.type_length}"


def _numpy_decimal(column: Column) -> Target:
    if column.physical in _DECIMAL_DTYPES or column.physical == FIXED_LEN_BYTE_ARRAY:
        return column.fixed(_raw_dtype(column), "decimals", "mask")
    return column.binary("decimals")


NUMPY: dict[str, Callable[[Column], Target]] = {
    "null": lambda column: Target("null", "nulls", column.type, physical=column.physical),
    "bool": _numpy_bool,
    "int": _numpy_int,
    "float": _numpy_float,
    "decimal": _numpy_decimal,
    "date": lambda column: column.fixed("i4", "dates", "mask"),
    "time": lambda column: column.fixed("i4" if column.physical == INT32 else "i8", "times", "mask"),
    "timestamp": _numpy_timestamp,
    "duration": _numpy_duration,
    "fixed_size_binary": lambda column: column.fixed(_raw_dtype(column), "bytes", "mask"),
    "uuid": lambda column: column.fixed("V16", "uuids", "mask"),
    **dict.fromkeys(BINARY_KINDS, _numpy_binary),
    **dict.fromkeys(UTF8_KINDS, _numpy_text),
}


# --- dtype_backend="numpy_nullable" ----------------------------------------------------------------------------------

_NULLABLE_DTYPES = {
    dtype.numpy_dtype: dtype
    for dtype in (
        pd.Int8Dtype(),
        pd.Int16Dtype(),
        pd.Int32Dtype(),
        pd.Int64Dtype(),
        pd.UInt8Dtype(),
        pd.UInt16Dtype(),
        pd.UInt32Dtype(),
        pd.UInt64Dtype(),
        pd.Float32Dtype(),
        pd.Float64Dtype(),
        pd.BooleanDtype(),
    )
}


def nullable_dtype(dtype: np.dtype) -> Any:
    """Give pandas' nullable dtype for numbers of a NumPy dtype; Float32 for float16, which has none."""
    return _NULLABLE_DTYPES[np.dtype("f4") if dtype == np.float16 else dtype]


def _nullable_float(column: Column, pandas_dtype: Any = None) -> Target | None:
    bits = column.type.bit_width
    dtype = np.dtype(f"f{bits // 8}")
    if dtype not in _NULLABLE_DTYPES and pandas_dtype is None:
        return None
    return column.fixed(dtype, "masked_floats", fill=_NAN[bits], pandas_dtype=pandas_dtype or _NULLABLE_DTYPES[dtype])


def _nullable_bool(column: Column) -> Target:
    return column.fixed(bool, "masked", "mask", pandas_dtype=_NULLABLE_DTYPES[np.dtype(bool)])


def _nullable_text(column: Column) -> Target | None:
    return None if column.type.dictionary is not None else column.binary("text", pandas_dtype=pd.StringDtype())


NULLABLE: dict[str, Callable[[Column], Target | None]] = {
    "int": _nullable_int,
    "float": _nullable_float,
    "bool": _nullable_bool,
    "utf8": _nullable_text,
    "large_utf8": _nullable_text,
}


# --- dtypes that the footer's pandas metadata asks for; None where they do not suit what is stored --------------------


def _restore_masked(column: Column, pandas_dtype: Any) -> Target | None:
    wanted, kind = pandas_dtype.numpy_dtype.kind, column.type.kind
    if kind == "int" and wanted in "iuf":
        return _nullable_int(column, pandas_dtype)
    if kind == "float" and wanted in "iuf":
        return _nullable_float(column, pandas_dtype)
    return None


def _restore_period(column: Column, pandas_dtype: Any) -> Target | None:
    if column.type.kind != "int" or column.type.bit_width != 64:
        return None
    return column.fixed("i8", "periods", fill=_NAT, pandas_dtype=pandas_dtype)


def _restore_timestamp(column: Column, pandas_dtype: Any) -> Target | None:
    if column.type.kind != "timestamp":
        return None
    target = replace(_numpy_timestamp(column), finish="timestamp_tz", block=False, pandas_dtype=pandas_dtype)
    return replace(target, unit=pandas_dtype.unit)


_MASKED_NUMBERS = tuple(type(dtype) for dtype in _NULLABLE_DTYPES.values() if not isinstance(dtype, pd.BooleanDtype))
RESTORED: tuple[tuple[Any, Callable[[Column, Any], Target | None]], ...] = (
    (pd.BooleanDtype, lambda column, dtype: _nullable_bool(column) if column.type.kind == "bool" else None),
    (_MASKED_NUMBERS, _restore_masked),
    (
        pd.StringDtype,
        lambda column, dtype: column.binary("text", pandas_dtype=dtype) if column.type.kind in UTF8_KINDS else None,
    ),
    (pd.PeriodDtype, _restore_period),
    (pd.DatetimeTZDtype, _restore_timestamp),
)


def period_dtype(arrow_type: ArrowType) -> Any:
    """Give the PeriodDtype that the extension type ``pandas.period`` describes; None where it describes none."""
    try:
        return pd.PeriodDtype(json.loads(arrow_type.extension_metadata or "")["freq"])
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


# --- dtype_backend="pyarrow" -----------------------------------------------------------------------------------------


def arrow_target(column: Column, pandas_dtype: Any) -> Target:
    """Keep values as Arrow has them, with their validity."""
    kind, more = column.type.kind, {"pandas_dtype": pandas_dtype}
    if kind == "null":
        return Target("null", "arrow", column.type, physical=column.physical, **more)
    if column.type.dictionary is not None:
        return replace(_numpy_binary(column), finish="arrow", **more)
    if kind in UTF8_KINDS or kind in BINARY_KINDS or (kind == "decimal" and column.physical not in _FIXED_DECIMALS):
        return column.binary("arrow", **more)
    if kind == "int":
        return column.fixed(int_dtype(column.type), "arrow", "mask", conversion=_int_conversion(column), **more)
    if kind == "timestamp" and column.physical == INT96:
        raw = _bytes_of_int96(column).fixed("V12", "arrow", "mask", **more)
        return _int96(column.fixed("i8", "arrow", "mask", **more), "i8", "i8", raw)
    return column.fixed(_ARROW_DTYPES.get(column.physical) or f"V{column.type_length}", "arrow", "mask", **more)


_FIXED_DECIMALS = (INT32, INT64, FIXED_LEN_BYTE_ARRAY)
_ARROW_DTYPES = {BOOLEAN: "?", INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}
