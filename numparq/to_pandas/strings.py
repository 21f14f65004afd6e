"""Strings and bytes: Arrow-backed where pyarrow is installed, else Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray

from .objects import null_mask, str_object_array


def fixed_bytes_objects(values: np.ndarray, validity: np.ndarray | None, null_count: int) -> np.ndarray:
    """Make `bytes` objects of items of a fixed size, None at nulls."""
    out = np.empty(len(values), object)
    out[:] = values.tolist()
    mask = null_mask(validity, null_count)
    if mask is not None:
        out[mask] = None
    return out


def binary_objects(pieces: list[BinaryArray], make: Callable[..., np.ndarray], null: object) -> np.ndarray:
    """Make one object array of all pieces.

    Parameters
    ----------
    pieces : list of BinaryArray
        The rows.
    make : callable
        `make_str_array` or `make_bytes_array` of the kernels.
    null : object
        What stands for a null.

    Returns
    -------
    numpy.ndarray
        dtype object.
    """
    made = [make(piece.offsets, piece.data, piece.validity, null) for piece in pieces]
    if len(made) == 1:
        return made[0]
    return np.concatenate(made) if made else np.empty(0, object)


def string_array(pieces: list[BinaryArray], dtype: pd.StringDtype | None) -> Any:
    """Make a string column.

    Parameters
    ----------
    pieces : list of BinaryArray
        The rows; valid UTF-8.
    dtype : pandas.StringDtype or None
        The dtype; None for pandas' default of strings, ``str``.

    Returns
    -------
    pandas.api.extensions.ExtensionArray
        Of `dtype`.
    """
    if dtype is None:
        dtype = pd.StringDtype(na_value=np.nan)
    if dtype.storage == "pyarrow":
        return _arrow_strings(pieces, dtype)
    objects = binary_objects(pieces, str_object_array, dtype.na_value)
    # Not the public constructor: it would look at every object again to see whether it is a string.
    return dtype.construct_array_type()._simple_new(objects, dtype)


def _arrow_strings(pieces: list[BinaryArray], dtype: pd.StringDtype) -> Any:
    from numparq.util.optional import import_pyarrow

    from .arrow import large_binary_array

    pa = import_pyarrow()
    chunks = [large_binary_array(piece, pa.large_string()) for piece in pieces]
    return pd.arrays.ArrowStringArray(pa.chunked_array(chunks, type=pa.large_string()), dtype=dtype)


def default_string_array(strings: list[str]) -> Any:
    """Make an array of pandas' default string dtype of str objects, none of them missing.

    Where one of them is no Unicode text (a name that was not UTF-8), they are kept as Python objects.
    """
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
