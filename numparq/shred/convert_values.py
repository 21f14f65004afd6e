"""What all conversions of values to the type of a schema share: each is exact, or refuses the value that is not.

A rule is a function of both types that gives the function of a leaf's values, as `numparq.shred.storage` has them
stored. Whatever stands at nulls is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..leaves import LeafValues
from ..schema import BYTE_ARRAY
from .storage import stored_as

Step = Callable[[LeafValues], LeafValues]
Rule = Callable[[ArrowType, ArrowType], Step]


class Unfit(Exception):
    """A value is none of the wanted type.

    Parameters
    ----------
    place : int
        Which of the leaf's values it is.
    shown : str
        The value.
    """

    def __init__(self, place: int, shown: str) -> None:
        super().__init__(shown)
        self.place = place
        self.shown = shown


def refuse(leaf: LeafValues, bad: np.ndarray, show: Callable[[int], Any]) -> None:
    """Raise for the first value that is bad, and no null.

    Parameters
    ----------
    leaf : LeafValues
        Its validity counts.
    bad : bool
        One for each value.
    show : callable
        Gives the value of a place.
    """
    if leaf.validity is not None and leaf.codes is None:
        bad = bad & leaf.validity.view(bool)
    if bad.any():
        place = int(np.argmax(bad))
        raise Unfit(place, repr(show(place)))


def with_values(leaf: LeafValues, values: np.ndarray) -> LeafValues:
    """Give a leaf with other values of a fixed size in place of its own."""
    return replace(leaf, values=values, starts=None, ends=None)


def keep(before: ArrowType, after: ArrowType) -> Step:
    """Leave values as they are."""
    return lambda leaf: leaf


def of_nulls(before: ArrowType, after: ArrowType) -> Step:
    """Give a column of nothing but nulls the values of a type: zeros."""
    physical, length, _ = stored_as(after)

    def step(leaf: LeafValues) -> LeafValues:
        return empty_leaf(physical, length, len(leaf.values if leaf.codes is None else leaf.codes))

    return step


_DTYPES = ("u1", "i4", "i8", "u1", "f4", "f8", "u1", "u1")  # by physical type


def empty_leaf(physical: int, length: int, count: int) -> LeafValues:
    """Give a leaf of so many nulls."""
    validity = np.zeros(count, np.uint8) if count else None
    if physical == BYTE_ARRAY:
        nowhere = np.zeros(count, np.int64)
        return LeafValues(np.zeros(0, np.uint8), nowhere, nowhere, validity)
    return LeafValues(np.zeros(count * max(length, 1), _DTYPES[physical]), validity=validity)
