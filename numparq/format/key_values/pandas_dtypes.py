"""pandas dtypes in the `pandas` key, noted by numparq if the standard entries lose them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .time_zones import is_zone_name, portable_zone_name, time_zone_from_text, time_zone_to_text

DTYPE_KEY = "numparq"
LABEL_KEY = "numparq_label"
ATTRS_KEY = "numparq_attrs"
_DEPTH = 4
_UNITS = {(unit, 1) for unit in ("s", "ms", "us", "ns")}
_TEXT_LIMIT = 1000
_SEPARATORS = re.compile(r"[][<>(),=\s]")


@dataclass(frozen=True, slots=True)
class DtypeSpec:
    """The dtype of a written column.

    Attributes
    ----------
    dtype : numpy.dtype or pandas.api.extensions.ExtensionDtype or None
        None for an ArrowDtype and a Categorical.
    arrow : bool
        Whether it was an ArrowDtype, with the type of the Arrow schema.
    categories : DtypeSpec or None
        Dtype of a Categorical's categories.
    ordered, ascending : bool
        Whether a Categorical is ordered; whether its categories were sorted.
    values : tuple or None
        Categories of a Categorical without dictionary in the file (booleans).
    """

    dtype: Any = None
    arrow: bool = False
    categories: DtypeSpec | None = None
    ordered: bool = False
    ascending: bool = False
    values: tuple[bool, ...] | None = None


# --- write -----------------------------------------------------------------------------------------------------------


def dtype_to_json(dtype: Any) -> Any:
    """Return a JSON note (str or dict) of a NumPy or pandas dtype."""
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        note = {"categories": dtype_to_json(categories.dtype), "ordered": bool(dtype.ordered)}
        if categories.is_monotonic_increasing:
            note["ascending"] = True
        if categories.inferred_type == "boolean":  # BOOLEAN has no dictionaries
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
        return {"timestamp": dtype.unit, "zone": time_zone_to_text(dtype.tz)}
    return str(dtype)


def _sparse_note(dtype: pd.SparseDtype) -> Any:
    from .python_values import value_to_json

    try:
        return {"sparse": dtype_to_json(dtype.subtype), "fill_value": value_to_json(dtype.fill_value)}
    except TypeError:
        return dtype_to_json(dtype.subtype)


def extra_dtype_json(dtype: Any) -> Any:
    """Return a JSON note of a dtype; None if the standard entry suffices."""
    if isinstance(dtype, np.dtype):
        return None
    note = dtype_to_json(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        key = getattr(dtype.tz, "key", "UTC" if str(dtype.tz) == "UTC" else None)
        return None if note["zone"] == key else note
    return None if isinstance(note, str) else note


class DtypeEntry(NamedTuple):
    """A dtype's part of a ``columns`` entry; `note` is part of the metadata."""

    is_categorical: bool
    numpy_type: str
    metadata: dict[str, Any] | None
    note: Any


def dtype_entry(dtype: Any) -> DtypeEntry:
    """Return a dtype's part of a ``columns`` entry."""
    numpy_type, metadata = numpy_type_entry(dtype)
    note = extra_dtype_json(dtype)
    if note is not None:
        numpy_type = _readable_numpy_type(numpy_type, dtype)
        metadata = {**(metadata or {}), DTYPE_KEY: note}
    return DtypeEntry(isinstance(dtype, pd.CategoricalDtype), numpy_type, metadata, note)


def _readable_numpy_type(numpy_type: str, dtype: Any) -> str:
    """Return a name that pandas can parse; other readers would reject the file otherwise."""
    try:
        pd.api.types.pandas_dtype(numpy_type)
    except (TypeError, ValueError, NotImplementedError):
        return str(dtype.subtype) if isinstance(dtype, pd.SparseDtype) else "object"
    return numpy_type


def numpy_type_entry(dtype: Any) -> tuple[str, dict[str, Any] | None]:
    """Return the ``numpy_type`` and the ``metadata`` of a dtype, as pyarrow writes them."""
    if isinstance(dtype, pd.CategoricalDtype):
        size = len(dtype.categories)
        codes = next((name for name in ("int8", "int16", "int32") if size <= np.iinfo(name).max), "int64")
        return codes, {"num_categories": size, "ordered": bool(dtype.ordered)}
    if isinstance(dtype, pd.DatetimeTZDtype):
        return f"datetime64[{dtype.unit}]", {"timezone": portable_zone_name(dtype.tz)}
    return str(dtype), None


# --- read ------------------------------------------------------------------------------------------------------------


def column_dtype_spec(entry: dict[str, Any]) -> DtypeSpec | None:
    """Return the dtype described by an item of ``columns``; None if it is invalid."""
    metadata = entry.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    numpy_type, zone = entry.get("numpy_type"), metadata.get("timezone")
    note: Any = metadata.get(DTYPE_KEY, numpy_type)
    if DTYPE_KEY not in metadata and entry.get("pandas_type") == "datetimetz" and isinstance(numpy_type, str):
        note = {"timestamp": numpy_type.removeprefix("datetime64[").removesuffix("]"), "zone": zone}
    try:
        return _spec_from_json(note, _DEPTH)
    except Exception:  # invalid dtypes may raise anything
        return None


def _spec_from_json(note: Any, depth: int) -> DtypeSpec:
    if isinstance(note, str):
        return DtypeSpec(dtype_from_name(note))
    if not depth or not isinstance(note, dict):
        raise ValueError("the note does not describe a dtype")
    if "categories" in note:
        values, inner = note.get("values"), note["categories"]
        if isinstance(inner, dict) and "categories" in inner:
            raise ValueError("the categories are not a Categorical")
        flags = None if values is None else tuple(map(bool, values))
        if flags is not None and len(set(flags)) < len(flags):
            raise ValueError("the categories are not distinct")
        return DtypeSpec(
            categories=_spec_from_json(inner, depth - 1),
            ordered=bool(note.get("ordered")),
            ascending=bool(note.get("ascending")),
            values=flags,
        )
    if "sparse" in note:
        from .python_values import value_from_json

        return DtypeSpec(pd.SparseDtype(dtype_from_name(note["sparse"]), value_from_json(note["fill_value"])))
    if "string" in note:
        na_value = np.nan if note["string"] == "str" else pd.NA
        try:
            return DtypeSpec(pd.StringDtype(note["storage"], na_value=na_value))
        except ImportError:
            return DtypeSpec(pd.StringDtype(na_value=na_value))
    if "timestamp" in note:
        return DtypeSpec(pd.DatetimeTZDtype(note["timestamp"], time_zone_from_text(note["zone"])))
    return DtypeSpec(arrow=bool(note["arrow"]))


def dtype_from_json(note: Any) -> Any:
    """Return the dtype of a note from `dtype_to_json`, except a Categorical; raises any Exception if invalid."""
    if isinstance(note, dict) and "arrow" in note:
        if note["arrow"] == "string":  # "string[pyarrow]" is a StringDtype
            import pyarrow as pa

            return pd.ArrowDtype(pa.string())
        return dtype_from_name(f"{note['arrow']}[pyarrow]")
    return _spec_from_json(note, _DEPTH).dtype


@lru_cache(maxsize=256)
def dtype_from_name(name: str) -> Any:
    """Return the NumPy or pandas dtype that a file names; raises any Exception if pandas has none.

    A part with a slash must be a time zone: pandas would open ``datetime64[ns, dateutil//path]``.
    """
    if len(name) > _TEXT_LIMIT:
        raise ValueError(f"the name of the dtype is longer than {_TEXT_LIMIT} characters")
    if not all(map(is_zone_name, (part for part in _SEPARATORS.split(name) if "/" in part))):
        raise ValueError("the name of the dtype has a part that is not a time zone")
    dtype = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM" and np.datetime_data(dtype) not in _UNITS:
        raise ValueError(f"pandas has no dtype {name}")
    return dtype
