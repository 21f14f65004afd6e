"""Strings and bytes: Arrow-backed where pyarrow is installed, else Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray

from .objects import build_objects, null_mask, str_object_array


def fixed_bytes_objects(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Return bytes objects of fixed-size items, None at nulls."""
    out = build_objects(values, np.ndarray.tolist)
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def binary_objects(pieces: list[BinaryArray], make: Callable[..., np.ndarray], null: object) -> np.ndarray:
    """Return one object array of several binary arrays by `str_object_array` or `bytes_object_array`."""
    made = [make(piece.offsets, piece.data, piece.validity, null) for piece in pieces]
    if len(made) == 1:
        return made[0]
    return np.concatenate(made) if made else np.empty(0, object)


def string_array(pieces: list[BinaryArray], dtype: pd.StringDtype | None) -> Any:
    """Return a string column of binary arrays (valid UTF-8); `dtype=None` is pandas' default ``str``."""
    if dtype is None:
        dtype = pd.StringDtype(na_value=np.nan)
    if dtype.storage == "pyarrow":
        return _arrow_strings(pieces, dtype)
    objects = binary_objects(pieces, str_object_array, dtype.na_value)
    # The public constructor would check every object again.
    return dtype.construct_array_type()._simple_new(objects, dtype)


def _arrow_strings(pieces: list[BinaryArray], dtype: pd.StringDtype) -> Any:
    from numparq.util.optional import import_pyarrow

    from .arrow import large_binary_array

    pa = import_pyarrow()
    chunks = [large_binary_array(piece, pa.large_string()) for piece in pieces]
    return pd.arrays.ArrowStringArray(pa.chunked_array(chunks, type=pa.large_string()), dtype=dtype)


def default_string_array(strings: list[str]) -> Any:
    """Return str objects, none missing, as pandas' default string dtype; Python-backed if one is not Unicode text."""
    dtype = pd.StringDtype(na_value=np.nan)
    if dtype.storage == "pyarrow":
        from numparq.util.optional import import_pyarrow

        pa = import_pyarrow()
        try:
            arrow = pa.array(strings, pa.large_string())
        except UnicodeEncodeError:
            dtype = pd.StringDtype("python", na_value=np.nan)
        else:
            return pd.arrays.ArrowStringArray(pa.chunked_array([arrow]), dtype=dtype)
    return dtype.construct_array_type()._from_sequence(strings, dtype=dtype)
