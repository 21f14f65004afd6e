"""Interval and complex columns from structs of two leaves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.nested.arrays import LeafArray, StructArray
from numparq.column.nested.nested_type import NestedType
from numparq.format.arrow_type import ArrowType
from numparq.types.output_type import OutputType

from .leaf import leaf_to_array

__all__ = ["complex_array", "interval_array", "interval_closed", "is_leaf_pair"]

_CLOSED = ("left", "right", "both", "neither")


def is_leaf_pair(shape: NestedType, first: str, second: str) -> bool:
    """Whether a column is a struct of exactly two leaves of these names."""
    names = [child.name for child in shape.children if child.leaf is not None]
    return shape.kind == "struct" and len(shape.children) == 2 and names == [first, second]


def interval_closed(arrow_type: ArrowType | None, pandas_dtype: Any) -> str | None:
    """Return the closed side of intervals by Arrow extension type or pandas dtype; None for other columns."""
    if arrow_type is not None and arrow_type.extension == "pandas.interval":
        try:
            closed = json.loads(arrow_type.extension_metadata or "")["closed"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return closed if closed in _CLOSED else None
    return pandas_dtype.closed if isinstance(pandas_dtype, pd.IntervalDtype) else None


def interval_array(array: StructArray, targets: list[OutputType], closed: str) -> Any:
    """Return an interval array of left and right; None if pandas refuses them, as when one ends before it starts.

    `targets` are the output types of both sides as flat columns.
    """
    left, right = (leaf_to_array(side, target) for side, target in zip(_leaves(array), targets, strict=True))
    try:
        return pd.arrays.IntervalArray.from_arrays(left, right, closed)
    except (ValueError, TypeError):
        return None


def complex_array(array: StructArray, dtype: np.dtype) -> np.ndarray:
    """Return complex numbers of real and imaginary parts; a null is NaN."""
    out = np.full(array.length, complex(np.nan, np.nan), dtype)
    for part, leaf in zip((out.real, out.imag), _leaves(array), strict=True):
        present = slice(None) if leaf.validity is None else leaf.validity.view(bool)
        part[present] = leaf.values
    return out


def _leaves(array: StructArray) -> list[LeafArray]:
    return [child for child in array.children if isinstance(child, LeafArray)]
