"""How a column is decoded, and what it becomes in pandas: (Arrow type, dtype backend, nulls) to a `Target`.

`choose` gives the first guess, from what the footer says of nulls; a kernel that meets a null, or a value that does
not fit, says so, and `retarget` gives the next guess. A target is all that the reader needs to decode the column, and
all that `numparq.frame` needs to finish it.

What comes out equals what pandas makes of pyarrow's reading, with these exceptions, where that is silently wrong:

- INT96 timestamps beyond the range of nanoseconds come back in microseconds, not wrapped around.
- 64-bit integers beside nulls come back as nullable Int64 or UInt64 where one of them is beyond 2**53, not rounded.
- A DECIMAL whose precision its physical type cannot hold is an error, not plain integers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from .arrow_schema import ArrowType, DictionaryIndex
from .kernels.tables import (
    BOOLEAN,
    BYTE_ARRAY,
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
from .logical import resolve
from .targets import BINARY_KINDS, UTF8_KINDS, Column, Target, int_dtype, retarget

__all__ = [
    "COPY",
    "INT96_NS",
    "INT96_US",
    "NARROW",
    "WIDEN_SIGNED",
    "WIDEN_UNSIGNED",
    "Target",
    "choose",
    "retarget",
    "uses_origin",
]

DTYPE_BACKENDS = ("numpy", "numpy_nullable", "pyarrow")

_NAN = {16: np.float16(np.nan).tobytes(), 32: np.float32(np.nan).tobytes(), 64: np.float64(np.nan).tobytes()}
_NAT = np.int64(np.iinfo(np.int64).min).tobytes()


def uses_origin(leaf: Any, dtype_backend: str) -> bool:
    """Say whether the type by ``ARROW:schema`` can make a difference for a column; else it need not be decoded.

    Parameters
    ----------
    leaf, dtype_backend
        As in `choose`.
    """
    return dtype_backend != "numpy" or leaf.physical in (INT64, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)


def choose(
    leaf: Any,
    origin: ArrowType | None = None,
    *,
    dtype_backend: str = "numpy",
    null_count: int | None = None,
    pandas_dtype: Any = None,
    timezone: str | None = None,
    categorical: bool = False,
) -> Target:
    """Choose how to decode a flat leaf column.

    Parameters
    ----------
    leaf : numparq.schema.Leaf
        The column; its ``physical``, ``type_length``, ``logical`` and ``max_definition_level`` count.
    origin : ArrowType or None
        Its type by the footer's ``ARROW:schema``.
    dtype_backend : {"numpy", "numpy_nullable", "pyarrow"}
        As in pandas.
    null_count : int or None
        How many nulls the statistics promise for the rows to read; None where they do not say. Only a hint.
    pandas_dtype : pandas.api.extensions.ExtensionDtype or None
        The extension dtype that the footer's pandas metadata gives the column.
    timezone : str or None
        The time zone that the footer's pandas metadata gives the column.
    categorical : bool
        Whether the caller wants a Categorical.

    Returns
    -------
    Target

    Raises
    ------
    InvalidFileError
        When the type of the column breaks the specification.
    """
    optional = leaf.max_definition_level > 0
    return _choose(
        leaf.physical,
        leaf.type_length,
        leaf.logical,
        origin,
        dtype_backend,
        optional,
        optional and bool(null_count),
        pandas_dtype,
        timezone,
        categorical,
    )


@lru_cache(maxsize=4096)
def _choose(
    physical: int,
    type_length: int | None,
    logical: Any,
    origin: ArrowType | None,
    dtype_backend: str,
    optional: bool,
    nulls_expected: bool,
    pandas_dtype: Any,
    timezone: str | None,
    categorical: bool,
) -> Target:
    if dtype_backend not in DTYPE_BACKENDS:
        raise ValueError(f"dtype_backend must be one of {', '.join(DTYPE_BACKENDS)}, not {dtype_backend!r}")
    arrow_type = resolve(physical, type_length, logical, origin)
    if categorical and arrow_type.kind in ("utf8", "large_utf8", "binary", "large_binary") and not arrow_type.extension:
        arrow_type = replace(arrow_type, dictionary=arrow_type.dictionary or DictionaryIndex())
    unit = ""
    if timezone and arrow_type.kind == "timestamp" and timezone != arrow_type.timezone:
        arrow_type, unit = replace(arrow_type, timezone=timezone), "ns"
    column = Column(arrow_type, physical, type_length or 0, optional, nulls_expected)
    target = _of_backend(column, dtype_backend, pandas_dtype)
    if unit and unit != arrow_type.unit:
        target = replace(target, unit=unit)
    if categorical and arrow_type.dictionary is None:
        target = replace(target, categorical=True, block=False)
    return target


def _of_backend(column: Column, dtype_backend: str, pandas_dtype: Any) -> Target:
    kind, extension = column.type.kind, column.type.extension
    if dtype_backend == "pyarrow":
        return _arrow(column, None)
    if extension == "pandas.period":
        pandas_dtype = _period_dtype(column.type) or pandas_dtype
    if dtype_backend == "numpy_nullable" and kind in _NULLABLE and extension is None:
        target = _NULLABLE[kind](column)
        if target is not None:
            return target
    if isinstance(pandas_dtype, pd.ArrowDtype):
        return _arrow(column, pandas_dtype)
    if pandas_dtype is not None and column.type.dictionary is None:
        for dtype_class, restore in _RESTORED:
            target = restore(column, pandas_dtype) if isinstance(pandas_dtype, dtype_class) else None
            if target is not None:
                return target
    return _NUMPY[kind](column)


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
    return _int96(target, f"M8[{column.type.unit}]", "M8[us]") if column.physical == INT96 else target


def _int96(target: Target, dtype: str, coarse_dtype: str) -> Target:
    """Read INT96 as nanoseconds, and as microseconds where they do not fit."""
    coarse = replace(target, dtype=np.dtype(coarse_dtype), conversion=INT96_US, type=replace(target.type, unit="us"))
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


_NUMPY: dict[str, Callable[[Column], Target]] = {
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


_NULLABLE: dict[str, Callable[[Column], Target | None]] = {
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
_RESTORED: tuple[tuple[Any, Callable[[Column, Any], Target | None]], ...] = (
    (pd.BooleanDtype, lambda column, dtype: _nullable_bool(column) if column.type.kind == "bool" else None),
    (_MASKED_NUMBERS, _restore_masked),
    (
        pd.StringDtype,
        lambda column, dtype: column.binary("text", pandas_dtype=dtype) if column.type.kind in UTF8_KINDS else None,
    ),
    (pd.PeriodDtype, _restore_period),
    (pd.DatetimeTZDtype, _restore_timestamp),
)


def _period_dtype(arrow_type: ArrowType) -> Any:
    try:
        return pd.PeriodDtype(json.loads(arrow_type.extension_metadata or "")["freq"])
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


# --- dtype_backend="pyarrow" -----------------------------------------------------------------------------------------


def _arrow(column: Column, pandas_dtype: Any) -> Target:
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
        return _int96(column.fixed("i8", "arrow", "mask", **more), "i8", "i8")
    return column.fixed(_ARROW_DTYPES.get(column.physical) or f"V{column.type_length}", "arrow", "mask", **more)


_FIXED_DECIMALS = (INT32, INT64, FIXED_LEN_BYTE_ARRAY)
_ARROW_DTYPES = {BOOLEAN: "?", INT32: "i4", INT64: "i8", FLOAT: "f4", DOUBLE: "f8"}
