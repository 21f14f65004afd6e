"""Schema-only output types: the same dtype whatever values, batches and files hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.format.key_values.pandas_dtypes import DtypeSpec
from numparq.kernels.tables import INT96_NS

from .dtype_backends import NULLABLE_TYPES, NUMPY_TYPES, nullable_dtype
from .output_type import LeafType, OutputType

_UNITS = ("s", "ms", "us", "ns")
_LARGEST_EXACT = {4: 2, 8: 4}  # bytes of a float -> bytes of the widest integer type that it holds exactly


def schema_only_type(output_type: OutputType, *, may_be_null: bool) -> OutputType:
    """Return the schema-only type of an output type, without fallbacks; a null is an error unless `may_be_null`.

    Integers and booleans that may be null are nullable, INT96 is microseconds. Only lossless casts are kept.
    """
    if output_type.conversion == INT96_NS and output_type.on_inexact is not None:
        output_type = output_type.on_inexact
    if not output_type.nested:
        rule = _RULES.get(output_type.array_kind)
        output_type = output_type if rule is None else rule(output_type, may_be_null)
    wanted = output_type.cast_to if output_type.nested else _lossless_cast(output_type.cast_to, output_type)
    if output_type.on_null is None and output_type.on_inexact is None and wanted is output_type.cast_to:
        return output_type
    return replace(output_type, cast_to=wanted, on_null=None, on_inexact=None)


def _numbers(output_type: OutputType, may_be_null: bool) -> OutputType:
    """Fix integers and booleans, which otherwise become floats or objects if there are nulls."""
    kind = output_type.type.kind
    if kind not in ("int", "bool"):
        return output_type
    column = LeafType(output_type.type, output_type.physical, 0, may_be_null, False)
    made = (NULLABLE_TYPES if may_be_null else NUMPY_TYPES)[kind](column)
    assert made is not None
    is_apart = output_type.categorical or output_type.cast_to is not None
    return replace(
        made,
        shares_block=made.shares_block and not is_apart,
        categorical=output_type.categorical,
        cast_to=output_type.cast_to,
    )


def _masked(output_type: OutputType, may_be_null: bool) -> OutputType:
    """Fix nullable numbers: keep the recorded width only if it holds all stored values."""
    stored, wanted = output_type.dtype, output_type.pandas_dtype
    assert stored is not None
    if _holds(stored, wanted.numpy_dtype):
        return output_type
    return replace(output_type, pandas_dtype=nullable_dtype(stored))


def _holds(stored: np.dtype, wanted: np.dtype) -> bool:
    """Whether one dtype holds every number of another."""
    if stored.kind in "iu" and wanted.kind == "f":
        return stored.itemsize <= _LARGEST_EXACT.get(wanted.itemsize, 0)
    return np.can_cast(stored, wanted, "safe")


def _zoned(output_type: OutputType, may_be_null: bool) -> OutputType:
    """Fix timestamps with a time zone: drop a finer unit, in which some would overflow."""
    is_finer = output_type.unit != "" and _UNITS.index(output_type.unit) > _UNITS.index(output_type.type.unit)
    return replace(output_type, unit="") if is_finer else output_type


def _arrow(output_type: OutputType, may_be_null: bool) -> OutputType:
    """Fix Arrow data to the stored type, since pyarrow casts to another one only what fits."""
    return replace(output_type, pandas_dtype=None, unit="")


_RULES: dict[str, Callable[[OutputType, bool], OutputType]] = {
    "block": _numbers,
    "widened": _numbers,
    "narrow_floats": _numbers,
    "bool_objects": _numbers,
    "masked": _masked,
    "masked_floats": _masked,
    "timestamp_tz": _zoned,
    "arrow": _arrow,
}


def _lossless_cast(wanted: DtypeSpec | None, output_type: OutputType) -> DtypeSpec | None:
    """Return the dtype to cast to if that succeeds for all values, else None."""
    if wanted is None or wanted.categories is not None:
        return wanted
    dtype: Any = wanted.dtype
    if isinstance(dtype, pd.SparseDtype):
        is_same = output_type.array_kind == "block" and output_type.dtype == dtype.subtype
        return wanted if is_same or dtype.subtype.kind == "O" else None
    if isinstance(dtype, pd.ArrowDtype):  # dictionary type of a Categorical
        return wanted
    return wanted if isinstance(dtype, np.dtype) and dtype.kind == "O" else None
