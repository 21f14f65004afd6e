"""How columns of our own files are decoded, so that they become again what they were: dtypes that pyarrow loses.

What a column was, `numparq.dtype_notes.Wanted` says; how it is decoded is `numparq.dtypes.choose` for the most part,
and `numparq.frame` turns what comes of that into what is wanted (`Target.wanted`).
"""

from __future__ import annotations

import binascii
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .arrow_schema import ArrowType
from .dtype_notes import Wanted
from .dtypes import choose
from .kernels.tables import BOOLEAN, INT96
from .logical import resolve
from .schema import Leaf
from .targets import UTF8_KINDS, Target


def restored_target(
    leaf: Leaf, origin: ArrowType | None, wanted: Wanted, arrow_type: Any, null_count: int | None = None
) -> Target | None:
    """Choose how to decode a flat leaf column whose pandas dtype is known.

    Parameters
    ----------
    leaf : numparq.schema.Leaf
        The column.
    origin : ArrowType or None
        Its type by the footer's ``ARROW:schema``.
    wanted : Wanted
        The dtype that it had.
    arrow_type : callable
        Gives that same type as pyarrow's, or None.
    null_count : int or None
        As in `numparq.dtypes.choose`.

    Returns
    -------
    Target or None
        None where the dtype cannot be made here.
    """
    if wanted.categories is not None:
        return _categories(leaf, origin, wanted, arrow_type, null_count)
    if wanted.arrow:
        return _arrow(leaf, origin, arrow_type)
    dtype = wanted.dtype
    if isinstance(dtype, pd.SparseDtype):
        return _of_dtype(leaf, origin, dtype.subtype, null_count).along(block=False, wanted=wanted)
    return _of_dtype(leaf, origin, dtype, null_count)


def stored_arrow_type(value: str | bytes | None, leaf: Leaf) -> Any:
    """Give pyarrow's own type of a top-level column, by the footer's ``ARROW:schema``.

    Returns
    -------
    pyarrow.DataType or None
        None where there is no such key, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    if value is None:
        return None
    try:
        field = pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(value))).field(leaf.column)
        return field.type if field.name == leaf.name else None
    except (pa.ArrowException, ValueError, OSError, IndexError):
        return None


def _of_dtype(leaf: Leaf, origin: ArrowType | None, dtype: Any, null_count: int | None) -> Target:
    if not isinstance(dtype, np.dtype):
        target = choose(leaf, origin, null_count=null_count, pandas_dtype=dtype)
        if target.finish == "masked_floats":  # here, a NaN is a value
            nulls = "mask" if leaf.max_definition_level else "refuse"
            return replace(target, finish="masked", nulls=nulls, fill=b"")
        if isinstance(dtype, pd.DatetimeTZDtype) and target.finish == "timestamp_tz":
            return replace(target, unit="", wanted=Wanted(dtype) if dtype.unit != target.type.unit else None)
        return target
    if dtype.kind == "O":
        return _objects(leaf, origin, null_count).along(block=False, wanted=Wanted(dtype))
    unit = np.datetime_data(dtype)[0] if dtype.kind in "mM" else ""
    if dtype.kind == "m" and origin is None:
        origin = ArrowType("duration", unit=unit)
    target = choose(leaf, origin, null_count=null_count)
    if dtype.kind == "M" and unit != target.type.unit:
        return target.along(block=False, wanted=Wanted(dtype))
    return target


def _objects(leaf: Leaf, origin: ArrowType | None, null_count: int | None) -> Target:
    target = choose(leaf, origin, null_count=null_count)
    if target.finish == "text":
        return replace(target, finish="text_objects")
    if target.type.kind in ("int", "bool") and not target.type.extension:
        return choose(leaf, origin, dtype_backend="numpy_nullable", null_count=null_count)
    return target


def _arrow(leaf: Leaf, origin: ArrowType | None, arrow_type: Any) -> Target | None:
    wanted_type = arrow_type()
    if wanted_type is None:
        return None
    dtype = pd.ArrowDtype(wanted_type)
    if not hasattr(wanted_type, "value_type") or not hasattr(wanted_type, "index_type"):
        return choose(leaf, origin, pandas_dtype=dtype)
    values = Wanted(categories=Wanted(arrow=True), ordered=wanted_type.ordered)
    target = _categories(leaf, origin, values, arrow_type, None)
    return None if target is None else replace(target, wanted=Wanted(dtype))


def _categories(
    leaf: Leaf, origin: ArrowType | None, wanted: Wanted, arrow_type: Any, null_count: int | None
) -> Target | None:
    """Decode codes and a dictionary; booleans, and what is nothing but nulls, have none."""
    assert wanted.categories is not None
    if leaf.physical == INT96:
        return None
    plain = replace(origin, dictionary=None) if origin is not None else None
    values = resolve(leaf.physical, leaf.type_length, leaf.logical, plain)
    if leaf.physical == BOOLEAN or values.kind == "null":
        target = choose(leaf, plain, dtype_backend="numpy_nullable", null_count=null_count)
        return target.along(block=False, wanted=wanted)

    def entry_type() -> Any:
        found = arrow_type()
        return getattr(found, "value_type", found)

    entries = restored_target(replace(leaf, max_definition_level=0), plain, wanted.categories, entry_type, 0)
    if entries is None:
        return None
    return Target("dictionary", "category", values, np.dtype("i4"), physical=leaf.physical,
                  utf8=values.kind in UTF8_KINDS, entries=entries, wanted=wanted)  # fmt: skip
