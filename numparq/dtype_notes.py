"""pandas dtypes as the ``pandas`` key of our own files tells them, where pyarrow's words for them do not suffice.

The entry of a column has a `note` then, as ``metadata["numparq"]``: JSON, which other readers pass over. `Wanted` is
what the reader makes of it, or of the words that all writers have. What a label was, if not a string, stands in
``metadata["numparq_label"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

KEY = "numparq"
LABEL = "numparq_label"
ATTRS = "numparq_attrs"
_DEPTH = 4
_UNITS = {(unit, 1) for unit in ("s", "ms", "us", "ns")}
_TEXT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """The dtype that a column had.

    Parameters
    ----------
    dtype : numpy.dtype or pandas.api.extensions.ExtensionDtype or None
        The dtype; None for those below, and where it is not known.
    arrow : bool
        Whether it was an ArrowDtype; of which type, the Arrow schema says.
    categories : Wanted or None
        Of a Categorical: the dtype of its categories.
    ordered, ascending : bool
        Of a Categorical: whether their order means something; whether they were sorted.
    values : tuple or None
        Of a Categorical that has no dictionary in the file: its categories.
    """

    dtype: Any = None
    arrow: bool = False
    categories: Wanted | None = None
    ordered: bool = False
    ascending: bool = False
    values: tuple | None = None


# --- written ---------------------------------------------------------------------------------------------------------


def note_of(dtype: Any) -> Any:
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
        note = {"categories": note_of(categories.dtype), "ordered": bool(dtype.ordered)}
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
        from .zone_notes import zone_text

        return {"timestamp": dtype.unit, "zone": zone_text(dtype.tz)}
    return str(dtype)


def _sparse_note(dtype: pd.SparseDtype) -> Any:
    from .scalar_notes import scalar_note

    try:
        return {"sparse": note_of(dtype.subtype), "fill_value": scalar_note(dtype.fill_value)}
    except TypeError:
        return note_of(dtype.subtype)


def needed_note(dtype: Any) -> Any:
    """Describe a dtype; None where the words that all writers have for it are enough."""
    if isinstance(dtype, np.dtype):
        return None
    note = note_of(dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        key = getattr(dtype.tz, "key", "UTC" if str(dtype.tz) == "UTC" else None)
        return None if note["zone"] == key else note
    return None if isinstance(note, str) else note


# --- read ------------------------------------------------------------------------------------------------------------


def wanted_of(entry: dict) -> Wanted | None:
    """Give the dtype that a column had.

    Parameters
    ----------
    entry : dict
        The column's item of the list ``columns``.

    Returns
    -------
    Wanted or None
        None where it is not to be understood.
    """
    metadata = entry.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    numpy_type, zone = entry.get("numpy_type"), metadata.get("timezone")
    note: Any = metadata.get(KEY, numpy_type)
    if KEY not in metadata and entry.get("pandas_type") == "datetimetz" and isinstance(numpy_type, str):
        note = {"timestamp": numpy_type.removeprefix("datetime64[").removesuffix("]"), "zone": zone}
    try:
        return _wanted(note, _DEPTH)
    except Exception:  # whatever pandas and others raise for a dtype that is none
        return None


def _wanted(note: Any, depth: int) -> Wanted:
    if isinstance(note, str):
        return Wanted(_dtype(note))
    if not depth or not isinstance(note, dict):
        raise ValueError("no description of a dtype")
    if "categories" in note:
        values, inner = note.get("values"), note["categories"]
        if isinstance(inner, dict) and "categories" in inner:
            raise ValueError("categories are no Categorical")
        return Wanted(
            categories=_wanted(inner, depth - 1), ordered=bool(note.get("ordered")),
            ascending=bool(note.get("ascending")), values=None if values is None else tuple(map(bool, values)),
        )  # fmt: skip
    if "sparse" in note:
        from .scalar_notes import scalar_of

        return Wanted(pd.SparseDtype(_dtype(note["sparse"]), scalar_of(note["fill_value"])))
    if "string" in note:
        na_value = np.nan if note["string"] == "str" else pd.NA
        try:
            return Wanted(pd.StringDtype(note["storage"], na_value=na_value))
        except ImportError:
            return Wanted(pd.StringDtype(na_value=na_value))
    if "timestamp" in note:
        from .zone_notes import zone_of

        return Wanted(pd.DatetimeTZDtype(note["timestamp"], zone_of(note["zone"])))
    return Wanted(arrow=bool(note["arrow"]))


def wanted_dtype(note: Any) -> Any:
    """Give the dtype that `note_of` described, but for a Categorical.

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
    return _wanted(note, _DEPTH).dtype


@lru_cache(maxsize=256)
def _dtype(name: str) -> Any:
    if len(name) > _TEXT_LIMIT:
        raise ValueError("no name of a dtype")
    dtype = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM" and np.datetime_data(dtype) not in _UNITS:
        raise ValueError("no dtype of pandas")
    return dtype
