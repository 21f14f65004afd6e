"""Cast rules: a function of two Arrow types that returns the cast of a leaf's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import ArrowType
from numparq.format.physical_type import BYTE_ARRAY
from numparq.types.parquet_type import parquet_type

Cast = Callable[[LeafValues], LeafValues]
CastRule = Callable[[ArrowType, ArrowType], Cast]


class CastError(Exception):
    """A value, at position `position` of the leaf, does not fit the target type."""

    def __init__(self, place: int, shown: str) -> None:
        super().__init__(shown)
        self.position = place
        self.value_text = shown


def raise_first(leaf: LeafValues, bad: np.ndarray, show: Callable[[int], Any]) -> None:
    """Raise CastError for the first value that is bad (bool mask) and not null; `show` returns a value."""
    if leaf.validity is not None and leaf.codes is None:
        bad = bad & leaf.validity.view(bool)
    if bad.any():
        place = int(np.argmax(bad))
        raise CastError(place, repr(show(place)))


def replace_values(leaf: LeafValues, values: np.ndarray) -> LeafValues:
    """Return the leaf with other values of a fixed size."""
    return replace(leaf, values=values, starts=None, ends=None)


def no_cast(before: ArrowType, after: ArrowType) -> Cast:
    """Return a cast that does nothing."""
    return lambda leaf: leaf


def nulls_to_zeros(before: ArrowType, after: ArrowType) -> Cast:
    """Cast a column of nulls only to a type: zeros as values."""
    physical, length, _ = parquet_type(after)

    def step(leaf: LeafValues) -> LeafValues:
        return null_leaf(physical, length, len(leaf.values if leaf.codes is None else leaf.codes))

    return step


_DTYPES = ("u1", "i4", "i8", "u1", "f4", "f8", "u1", "u1")  # by physical type


def null_leaf(physical: int, length: int, count: int) -> LeafValues:
    """Return a leaf of `count` nulls."""
    validity = np.zeros(count, np.uint8) if count else None
    if physical == BYTE_ARRAY:
        nowhere = np.zeros(count, np.int64)
        return LeafValues(np.zeros(0, np.uint8), nowhere, nowhere, validity)
    return LeafValues(np.zeros(count * max(length, 1), _DTYPES[physical]), validity=validity)
