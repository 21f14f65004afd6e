"""Tables from Arrow types to output types, one for each dtype backend of pandas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.kernels.enums import BOOLEAN, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.kernels.tables import COPY, DAYS_MS, INT96_NS, INT96_US, NARROW, WIDEN_SIGNED, WIDEN_UNSIGNED

from .output_type import BINARY_KINDS, UTF8_KINDS, LeafType, OutputType, int_dtype

_NAN = {16: np.float16(np.nan).tobytes(), 32: np.float32(np.nan).tobytes(), 64: np.float64(np.nan).tobytes()}
_NAT = np.int64(np.iinfo(np.int64).min).tobytes()


# --- dtype_backend="numpy" -------------------------------------------------------------------------------------------


def _int_conversion(leaf_type: LeafType) -> int:
    return NARROW if leaf_type.physical == INT32 and leaf_type.type.bit_width < 32 else COPY


def _nullable_int(leaf_type: LeafType, pandas_dtype: Any = None) -> OutputType:
    dtype = int_dtype(leaf_type.type)
    return leaf_type.fixed(
        dtype,
        "masked",
        "mask",
        conversion=_int_conversion(leaf_type),
        pandas_dtype=pandas_dtype or _NULLABLE_DTYPES[dtype],
    )


def _numpy_int(leaf_type: LeafType) -> OutputType:
    dtype = int_dtype(leaf_type.type)
    exact = OutputType(
        "fixed",
        "block",
        leaf_type.type,
        dtype,
        _int_conversion(leaf_type),
        physical=leaf_type.physical,
        shares_block=True,
    )
    if not leaf_type.optional:
        return exact
    if exact.conversion == NARROW:
        # Narrowed before the float cast: writers may leave garbage in the upper bytes.
        widened = replace(exact, array_kind="narrow_floats", nulls="mask", shares_block=False)
    else:
        widened = OutputType(
            "fixed",
            "widened",
            leaf_type.type,
            np.dtype("f8"),
            WIDEN_SIGNED if leaf_type.type.signed else WIDEN_UNSIGNED,
            "fill",
            _NAN[64],
            leaf_type.physical,
            shares_block=True,
            narrow_dtype=dtype,
            on_inexact=_nullable_int(leaf_type),
        )
    return widened if leaf_type.nulls_expected else replace(exact, on_null=widened)


def _numpy_float(leaf_type: LeafType) -> OutputType:
    bits = leaf_type.type.bit_width
    return leaf_type.fixed(f"f{bits // 8}", "block", fill=_NAN[bits], shares_block=True)


def _numpy_bool(leaf_type: LeafType) -> OutputType:
    exact = OutputType("fixed", "block", leaf_type.type, np.dtype(bool), physical=leaf_type.physical, shares_block=True)
    if not leaf_type.optional:
        return exact
    objects = leaf_type.fixed(bool, "bool_objects", "mask")
    return objects if leaf_type.nulls_expected else replace(exact, on_null=objects)


def _numpy_timestamp(leaf_type: LeafType) -> OutputType:
    unit = leaf_type.type.unit
    finish = "timestamp_tz" if leaf_type.type.timezone else "block"
    target = leaf_type.fixed(f"M8[{unit}]", finish, fill=_NAT, shares_block=finish == "block")
    if leaf_type.physical != INT96:
        return target
    return _int96(
        target, f"M8[{leaf_type.type.unit}]", "M8[us]", NUMPY_TYPES["fixed_size_binary"](_bytes_of_int96(leaf_type))
    )


def _bytes_of_int96(leaf_type: LeafType) -> LeafType:
    return replace(leaf_type, type=ArrowType("fixed_size_binary", byte_width=12), type_length=12)


def _int96(target: OutputType, dtype: str, coarse_dtype: str, raw: OutputType) -> OutputType:
    """Return INT96 as nanoseconds, falling back to microseconds if out of range, then to bytes."""
    coarse = replace(
        target, dtype=np.dtype(coarse_dtype), conversion=INT96_US, type=replace(target.type, unit="us"), on_inexact=raw
    )
    return replace(target, dtype=np.dtype(dtype), conversion=INT96_NS, on_inexact=coarse)


def datetime64_from_dates(target: OutputType) -> OutputType:
    """Return the output type of date objects with datetime64[ms] instead; ms, which int32 days cannot exceed."""
    cast_to = target.cast_to if target.cast_to is not None and target.cast_to.categories is not None else None
    return replace(
        target,
        array_kind="block",
        dtype=np.dtype("M8[ms]"),
        conversion=DAYS_MS,
        nulls="fill" if target.nulls == "mask" else target.nulls,
        fill=_NAT,
        shares_block=not (target.nested or target.categorical or cast_to),
        cast_to=cast_to,
    )


def _numpy_duration(leaf_type: LeafType) -> OutputType:
    return leaf_type.fixed(f"m8[{leaf_type.type.unit}]", "block", fill=_NAT, shares_block=True)


def _numpy_binary(leaf_type: LeafType) -> OutputType:
    if leaf_type.type.dictionary is not None:
        return OutputType(
            "dictionary",
            "category",
            leaf_type.type,
            np.dtype("i4"),
            physical=leaf_type.physical,
            utf8=leaf_type.type.kind in UTF8_KINDS,
        )
    return leaf_type.binary("bytes")


def _numpy_text(leaf_type: LeafType) -> OutputType:
    if leaf_type.type.dictionary is not None:
        return _numpy_binary(leaf_type)
    # pandas' string dtype is not used for text of an extension type, such as JSON.
    return leaf_type.binary("text_objects" if leaf_type.type.extension else "text")


_DECIMAL_DTYPES = {INT32: "i4", INT64: "i8"}


def _raw_dtype(leaf_type: LeafType) -> str:
    return _DECIMAL_DTYPES.get(leaf_type.physical) or f"V{leaf_type.type_length}"


def _numpy_decimal(leaf_type: LeafType) -> OutputType:
    if leaf_type.physical in _DECIMAL_DTYPES or leaf_type.physical == FIXED_LEN_BYTE_ARRAY:
        return leaf_type.fixed(_raw_dtype(leaf_type), "decimals", "mask")
    return leaf_type.binary("decimals")


NUMPY_TYPES: dict[str, Callable[[LeafType], OutputType]] = {
    "null": lambda column: OutputType("null", "nulls", column.type, physical=column.physical),
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
    """Return pandas' nullable dtype of a NumPy number; Float32 for float16, which has none."""
    return _NULLABLE_DTYPES[np.dtype("f4") if dtype == np.float16 else dtype]


def _nullable_float(leaf_type: LeafType, pandas_dtype: Any = None) -> OutputType | None:
    bits = leaf_type.type.bit_width
    dtype = np.dtype(f"f{bits // 8}")
    if dtype not in _NULLABLE_DTYPES and pandas_dtype is None:
        return None
    return leaf_type.fixed(
        dtype, "masked_floats", fill=_NAN[bits], pandas_dtype=pandas_dtype or _NULLABLE_DTYPES[dtype]
    )


def _nullable_bool(leaf_type: LeafType) -> OutputType:
    return leaf_type.fixed(bool, "masked", "mask", pandas_dtype=_NULLABLE_DTYPES[np.dtype(bool)])


def _nullable_text(leaf_type: LeafType) -> OutputType | None:
    return None if leaf_type.type.dictionary is not None else leaf_type.binary("text", pandas_dtype=pd.StringDtype())


NULLABLE_TYPES: dict[str, Callable[[LeafType], OutputType | None]] = {
    "int": _nullable_int,
    "float": _nullable_float,
    "bool": _nullable_bool,
    "utf8": _nullable_text,
    "large_utf8": _nullable_text,
}


# --- dtypes of the footer's pandas metadata; None if they do not suit the stored type ---------------------------------


def _restore_period(leaf_type: LeafType, pandas_dtype: Any) -> OutputType | None:
    if leaf_type.type.bit_width != 64:
        return None
    return leaf_type.fixed("i8", "periods", fill=_NAT, pandas_dtype=pandas_dtype)


def _restore_timestamp(leaf_type: LeafType, pandas_dtype: Any) -> OutputType:
    target = replace(
        _numpy_timestamp(leaf_type), array_kind="timestamp_tz", shares_block=False, pandas_dtype=pandas_dtype
    )
    return replace(target, unit=pandas_dtype.unit)


# Kinds of Arrow types that an ArrowDtype may have for a stored kind, which the type holds without loss or raises.
_ARROW_KINDS: dict[str, Collection[str]] = {
    **dict.fromkeys(UTF8_KINDS, UTF8_KINDS),
    **dict.fromkeys((*BINARY_KINDS, "fixed_size_binary"), (*BINARY_KINDS, "fixed_size_binary")),
    "int": ("int", "duration"),
}


def _restore_arrow(leaf_type: LeafType, pandas_dtype: pd.ArrowDtype) -> OutputType | None:
    from .pyarrow import type_from_pyarrow

    stored = leaf_type.type
    try:
        hint = type_from_pyarrow(pandas_dtype.pyarrow_dtype)
    except SchemaError:
        return None
    fits = hint.kind in _ARROW_KINDS.get(stored.kind, (stored.kind,))
    if stored.kind == "float":  # pyarrow rounds without an error
        fits = fits and hint.bit_width >= stored.bit_width
    if (stored.kind, hint.kind) == ("int", "duration"):
        fits = stored.bit_width == 64 and stored.signed
    return pyarrow_output_type(leaf_type, pandas_dtype) if fits else None


_MASKED_NUMBERS = tuple(type(dtype) for dtype in _NULLABLE_DTYPES.values() if not isinstance(dtype, pd.BooleanDtype))
# Class of a dtype, stored kinds that it fits (None: the function decides), and the function that restores it.
_PANDAS_TYPES: tuple[tuple[Any, Collection[str] | None, Callable[[LeafType, Any], OutputType | None]], ...] = (
    (pd.ArrowDtype, None, _restore_arrow),
    (pd.BooleanDtype, ("bool",), lambda column, dtype: _nullable_bool(column)),
    (_MASKED_NUMBERS, ("int",), _nullable_int),
    (_MASKED_NUMBERS, ("float",), _nullable_float),
    (pd.StringDtype, UTF8_KINDS, lambda column, dtype: column.binary("text", pandas_dtype=dtype)),
    (pd.PeriodDtype, ("int",), _restore_period),
    (pd.DatetimeTZDtype, ("timestamp",), _restore_timestamp),
)


def restore_pandas_type(leaf_type: LeafType, pandas_dtype: Any) -> OutputType | None:
    """Return the output type of a dtype of the pandas metadata; None if it does not fit the stored type."""
    for dtype_class, kinds, restore in _PANDAS_TYPES:
        if isinstance(pandas_dtype, dtype_class) and (kinds is None or leaf_type.type.kind in kinds):
            return restore(leaf_type, pandas_dtype)
    return None


def period_dtype(arrow_type: ArrowType) -> Any:
    """Return the PeriodDtype of the extension type ``pandas.period``; None if its metadata is invalid."""
    try:
        return pd.PeriodDtype(json.loads(arrow_type.extension_metadata or "")["freq"])
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


# --- dtype_backend="pyarrow" -----------------------------------------------------------------------------------------


def pyarrow_output_type(leaf_type: LeafType, pandas_dtype: Any) -> OutputType:
    """Return an output type with Arrow's values and validity."""
    kind, more = leaf_type.type.kind, {"pandas_dtype": pandas_dtype}
    if kind == "null":
        return OutputType("null", "arrow", leaf_type.type, physical=leaf_type.physical, **more)
    if leaf_type.type.dictionary is not None:
        return replace(_numpy_binary(leaf_type), array_kind="arrow", **more)
    if kind in UTF8_KINDS or kind in BINARY_KINDS or (kind == "decimal" and leaf_type.physical not in _FIXED_DECIMALS):
        return leaf_type.binary("arrow", **more)
    if kind == "int":
        return leaf_type.fixed(
            int_dtype(leaf_type.type), "arrow", "mask", conversion=_int_conversion(leaf_type), **more
        )
    if kind == "timestamp" and leaf_type.physical == INT96:
        raw = _bytes_of_int96(leaf_type).fixed("V12", "arrow", "mask", **more)
        return _int96(leaf_type.fixed("i8", "arrow", "mask", **more), "i8", "i8", raw)
    return leaf_type.fixed(
        _ARROW_DTYPES.get(leaf_type.physical) or f"V{leaf_type.type_length}", "arrow", "mask", **more
    )


_FIXED_DECIMALS = (INT32, INT64, FIXED_LEN_BYTE_ARRAY)
_ARROW_DTYPES = {BOOLEAN: "?", INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}
