"""pandas' string dtypes: Arrow-backed where pyarrow is installed, made of Python objects where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..column.buffer import BinaryPiece
from ..kernels.objects import make_str_array
from .objects import binary_objects


def text_array(pieces: list[BinaryPiece], dtype: pd.StringDtype | None) -> Any:
    """Make a string column.

    Parameters
    ----------
    pieces : list of BinaryPiece
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
    objects = binary_objects(pieces, make_str_array, dtype.na_value)
    # Not the public constructor: it would look at every object again to see whether it is a string.
    return dtype.construct_array_type()._simple_new(objects, dtype)


def _arrow_strings(pieces: list[BinaryPiece], dtype: pd.StringDtype) -> Any:
    from ..arrow import large_binary_array, pyarrow

    pa = pyarrow()
    chunks = [large_binary_array(piece, pa.large_string()) for piece in pieces]
    return pd.arrays.ArrowStringArray(pa.chunked_array(chunks, type=pa.large_string()), dtype=dtype)


def text_of(strings: list[str]) -> Any:
    """Make an array of pandas' default string dtype of str objects, none of them missing.

    Where one of them is no Unicode text (a name that was not UTF-8), they are kept as Python objects.
    """
    dtype = pd.StringDtype(na_value=np.nan)
    if dtype.storage == "pyarrow":
        from ..arrow import pyarrow

        pa = pyarrow()
        try:
            arrow = pa.array(strings, pa.large_string())
        except UnicodeEncodeError:
            dtype = pd.StringDtype("python", na_value=np.nan)
        else:
            return pd.arrays.ArrowStringArray(pa.chunked_array([arrow]), dtype=dtype)
    return dtype.construct_array_type()._from_sequence(strings, dtype=dtype)
