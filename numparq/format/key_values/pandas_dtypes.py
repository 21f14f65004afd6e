"""pandas dtypes in the `pandas` key where the entries of other writers lose them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

DTYPE_KEY = "numparq"
LABEL_KEY = "numparq_label"
ATTRS_KEY = "numparq_attrs"
_DEPTH = 4
_UNITS = {(unit, 1) for unit in ("s", "ms", "us", "ns")}
_TEXT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class DtypeSpec:
    """The dtype that a column had.

    Parameters
    ----------
    dtype : numpy.dtype or pandas.api.extensions.ExtensionDtype or None
        The dtype; None for those below, and where it is not known.
    arrow : bool
        Whether it was an ArrowDtype; of which type, the Arrow schema says.
    categories : DtypeSpec or None
        Of a Categorical: the dtype of its categories.
    ordered, ascending : bool
        Of a Categorical: whether their order means something; whether they were sorted.
    values : tuple or None
        Of a Categorical that has no dictionary in the file: its categories.
    """

    dtype: Any = None
    arrow: bool = False
    categories: DtypeSpec | None = None
    ordered: bool = False
    ascending: bool = False
    values: tuple | None = None


# --- written ---------------------------------------------------------------------------------------------------------


def dtype_to_json(dtype: Any) -> Any:
    """Describe a dtype.

    Parameters
    ----------
    dtype : numpy.dtype or pandas.api.extensions.ExtensionDtype

    Returns
    -------
    str or dict
        What JSON holds.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        note = {"categories": dtype_to_json(categories.dtype), "ordered": bool(dtype.ordered)}
        if categories.is_monotonic_increasing:
            note["ascending"] = True
        if categories.inferred_type == "boolean":  # of which there are two at most, and no dictionaries
            note["values"] = [bool(value) for value in categories]
        return note
    if isinstance(dtype, pd.SparseDtype):
        return _sparse_note(dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return {"arrow": str(dtype.pyarrow_dtype)}
    if isinstance(dtype, pd.StringDtype):
        usual = pd.StringDtype(na_value=dtype.na_value).storage
        return str(dtype) if dtype.storage == usual else {"string": str(dtype), "storage": dtype.storage}
    if isinstance(dtype, pd.DatetimeTZDtype):
        from .time_zones import time_zone_to_text

        return {"timestamp": dtype.unit, "zone": time_zone_to_text(dtype.tz)}
    return str(dtype)


def _sparse_note(dtype: pd.SparseDtype) -> Any:
    from .python_values import value_to_json

    try:
        return {"sparse": dtype_to_json(dtype.subtype), "fill_value": value_to_json(dtype.fill_value)}
    except TypeError:
        return dtype_to_json(dtype.subtype)


def extra_dtype_json(dtype: Any) -> Any:
    """Describe a dtype; None where the words that all writers have for it are enough."""
    if isinstance(dtype, np.dtype):
        return None
    note = dtype_to_json(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        key = getattr(dtype.tz, "key", "UTC" if str(dtype.tz) == "UTC" else None)
        return None if note["zone"] == key else note
    return None if isinstance(note, str) else note


# --- read ------------------------------------------------------------------------------------------------------------


def column_dtype_spec(entry: dict) -> DtypeSpec | None:
    """Give the dtype that a column had.

    Parameters
    ----------
    entry : dict
        The column's item of the list ``columns``.

    Returns
    -------
    DtypeSpec or None
        None where it is not to be understood.
    """
    metadata = entry.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    numpy_type, zone = entry.get("numpy_type"), metadata.get("timezone")
    note: Any = metadata.get(DTYPE_KEY, numpy_type)
    if DTYPE_KEY not in metadata and entry.get("pandas_type") == "datetimetz" and isinstance(numpy_type, str):
        note = {"timestamp": numpy_type.removeprefix("datetime64[").removesuffix("]"), "zone": zone}
    try:
        return _spec_from_json(note, _DEPTH)
    except Exception:  # whatever pandas and others raise for a dtype that is none
        return None


def _spec_from_json(note: Any, depth: int) -> DtypeSpec:
    if isinstance(note, str):
        return DtypeSpec(_dtype(note))
    if not depth or not isinstance(note, dict):
        raise ValueError("no description of a dtype")
    if "categories" in note:
        values, inner = note.get("values"), note["categories"]
        if isinstance(inner, dict) and "categories" in inner:
            raise ValueError("categories are no Categorical")
        return DtypeSpec(
            categories=_spec_from_json(inner, depth - 1),
            ordered=bool(note.get("ordered")),
            ascending=bool(note.get("ascending")),
            values=None if values is None else tuple(map(bool, values)),
        )
    if "sparse" in note:
        from .python_values import value_from_json

        return DtypeSpec(pd.SparseDtype(_dtype(note["sparse"]), value_from_json(note["fill_value"])))
    if "string" in note:
        na_value = np.nan if note["string"] == "str" else pd.NA
        try:
            return DtypeSpec(pd.StringDtype(note["storage"], na_value=na_value))
        except ImportError:
            return DtypeSpec(pd.StringDtype(na_value=na_value))
    if "timestamp" in note:
        from .time_zones import time_zone_from_text

        return DtypeSpec(pd.DatetimeTZDtype(note["timestamp"], time_zone_from_text(note["zone"])))
    return DtypeSpec(arrow=bool(note["arrow"]))


def dtype_from_json(note: Any) -> Any:
    """Give the dtype that `dtype_to_json` described, but for a Categorical.

    Raises
    ------
    Exception
        Of any kind, where there is none.
    """
    if isinstance(note, dict) and "arrow" in note:
        if note["arrow"] == "string":  # else the name of one of pandas' own dtypes
            import pyarrow as pa

            return pd.ArrowDtype(pa.string())
        return _dtype(f"{note['arrow']}[pyarrow]")
    return _spec_from_json(note, _DEPTH).dtype


@lru_cache(maxsize=256)
def _dtype(name: str) -> Any:
    if len(name) > _TEXT_LIMIT:
        raise ValueError("no name of a dtype")
    dtype = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM" and np.datetime_data(dtype) not in _UNITS:
        raise ValueError("no dtype of pandas")
    return dtype
