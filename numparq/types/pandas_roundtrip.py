"""Output types that restore the pandas dtypes recorded by numparq."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.pandas_dtypes import DtypeSpec
from numparq.format.schema import Leaf
from numparq.kernels.enums import BOOLEAN, INT96

from .choose import choose_output_type
from .output_type import UTF8_KINDS, OutputType
from .parquet_type import infer_arrow_type


def roundtrip_output_type(
    leaf: Leaf, hint: ArrowType | None, dtype_spec: DtypeSpec, arrow_type: Any, has_nulls: bool = False
) -> OutputType | None:
    """Choose the output type of a flat leaf column with a recorded pandas dtype; None if it cannot be restored.

    `hint` is its type by ``ARROW:schema``; the callable `arrow_type` returns the same as a pyarrow type, or None.
    """
    if dtype_spec.categories is not None:
        return _categories(leaf, hint, dtype_spec, arrow_type, has_nulls)
    if dtype_spec.arrow:
        return _arrow(leaf, hint, arrow_type)
    dtype = dtype_spec.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _of_dtype(leaf, hint, dtype.subtype, has_nulls).replace_all(shares_block=False, cast_to=dtype_spec)
    return _of_dtype(leaf, hint, dtype, has_nulls)


def _of_dtype(leaf: Leaf, hint: ArrowType | None, dtype: Any, has_nulls: bool) -> OutputType:
    if not isinstance(dtype, np.dtype):
        target = choose_output_type(leaf, hint, has_nulls=has_nulls, pandas_dtype=dtype)
        if target.array_kind == "masked_floats":  # numparq wrote the file: a NaN is a value, not a null
            nulls = "mask" if leaf.max_definition_level else "refuse"
            return replace(target, array_kind="masked", nulls=nulls, fill=b"")
        if isinstance(dtype, pd.DatetimeTZDtype) and target.array_kind == "timestamp_tz":
            return replace(target, unit="", cast_to=DtypeSpec(dtype) if dtype.unit != target.type.unit else None)
        return target
    if dtype.kind == "O":
        return _objects(leaf, hint, has_nulls).replace_all(shares_block=False, cast_to=DtypeSpec(dtype))
    unit = np.datetime_data(dtype)[0] if dtype.kind in "mM" else ""
    if dtype.kind == "m" and hint is None:
        hint = ArrowType("duration", unit=unit)
    target = choose_output_type(leaf, hint, has_nulls=has_nulls)
    if dtype.kind == "M" and unit != target.type.unit:
        return target.replace_all(shares_block=False, cast_to=DtypeSpec(dtype))
    return target


def _objects(leaf: Leaf, hint: ArrowType | None, has_nulls: bool) -> OutputType:
    target = choose_output_type(leaf, hint, has_nulls=has_nulls)
    if target.array_kind == "text":
        return replace(target, array_kind="text_objects")
    if target.type.kind in ("int", "bool") and not target.type.extension:
        return choose_output_type(leaf, hint, dtype_backend="numpy_nullable", has_nulls=has_nulls)
    return target


def _arrow(leaf: Leaf, hint: ArrowType | None, arrow_type: Any) -> OutputType | None:
    wanted_type = arrow_type()
    if wanted_type is None:
        return None
    dtype = pd.ArrowDtype(wanted_type)
    if not hasattr(wanted_type, "value_type") or not hasattr(wanted_type, "index_type"):
        return choose_output_type(leaf, hint, pandas_dtype=dtype)
    values = DtypeSpec(categories=DtypeSpec(arrow=True), ordered=wanted_type.ordered)
    target = _categories(leaf, hint, values, arrow_type, False)
    return None if target is None else replace(target, cast_to=DtypeSpec(dtype))


def _categories(
    leaf: Leaf, hint: ArrowType | None, dtype_spec: DtypeSpec, arrow_type: Any, has_nulls: bool
) -> OutputType | None:
    """Return an output type of codes and a dictionary; booleans and all-null columns have no dictionary."""
    assert dtype_spec.categories is not None
    if leaf.physical == INT96:
        return None
    plain = replace(hint, dictionary=None) if hint is not None else None
    values = infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical, plain)
    if leaf.physical == BOOLEAN or values.kind == "null":
        target = choose_output_type(leaf, plain, dtype_backend="numpy_nullable", has_nulls=has_nulls)
        return target.replace_all(shares_block=False, cast_to=dtype_spec)

    def entry_type() -> Any:
        found = arrow_type()
        return getattr(found, "value_type", found)

    entries = roundtrip_output_type(replace(leaf, max_definition_level=0), plain, dtype_spec.categories, entry_type)
    if entries is None:
        return None
    return OutputType(
        "dictionary",
        "category",
        values,
        np.dtype("i4"),
        physical=leaf.physical,
        utf8=values.kind in UTF8_KINDS,
        entry_type=entries,
        cast_to=dtype_spec,
    )
