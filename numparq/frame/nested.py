"""Nested columns as Python objects: structs as dicts, lists as NumPy arrays, maps as lists of pairs.

They are those that pyarrow makes, with two exceptions, where its answer would depend on what else is in the file: an
integer beside nulls, in a struct or map, stays an integer; and a list of integers beside nulls is one of objects where
a float64 could not hold one of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..column.buffer import BinaryPiece, ColumnBuffer
from ..column.nested_arrays import LeafArray, ListArray, NestedArray, StructArray
from ..column.shape import is_variant
from ..targets import Target
from .entries import made_by_entries
from .finish import finish

__all__ = ["ObjectMaker"]

_LARGEST_EXACT = 1 << 53
# Fewer lists, or longer ones, are cut out one by one.
_FEW_LISTS, _LONGEST_GATHERED = 256, 32
# Dicts of more fields are made one field at a time.
_MOST_WRITTEN_OUT = 200


class ObjectMaker:
    """Makes the objects of a nested column.

    Parameters
    ----------
    targets : mapping of int to Target
        How the leaves were decoded, by their ordinals.
    variants : callable, optional
        Gives a list with an object for each place of VARIANTs; without it they are the structs that are stored.
    """

    def __init__(self, targets: Mapping[int, Target], variants: Callable[[StructArray], list] | None = None) -> None:
        self._targets = targets
        self._variants = variants
        self._makers: dict[str, Callable[[Any, bool], np.ndarray]] = {
            "leaf": self._leaf, "struct": self._structs, "list": self._lists, "map": self._maps
        }  # fmt: skip

    def column(self, array: NestedArray) -> np.ndarray:
        """Make a column with an object for each place; None for a null."""
        with _collection_paused():
            return self._array(array, False)

    def _array(self, array: NestedArray, in_struct: bool) -> np.ndarray:
        """Make an array with an item for each place, as the elements of a list are.

        Within a struct or map (`in_struct`) timestamps become datetime objects, if they are not in nanoseconds.
        """
        return self._makers[array.shape.kind](array, in_struct)

    def _values(self, array: LeafArray) -> Any:
        """Finish the values that are there, as a flat column of them."""
        leaf = array.shape.leaf
        assert leaf is not None
        target = self._targets[leaf.index]
        if isinstance(array.values, np.ndarray):
            if target.storage == "null":
                return np.full(array.num_values, None, object)
            return finish(target, ColumnBuffer(array.values), array.num_values)
        if target.coded:
            return made_by_entries(array.values, partial(_of_pieces, target))
        return _of_pieces(target, array.values)

    def _leaf(self, array: LeafArray, in_struct: bool) -> np.ndarray:
        values = self._values(array)
        if isinstance(values, pd.arrays.DatetimeArray):
            exact = in_struct and values.unit != "ns"
            values = _moments(values) if exact else values.tz_convert(None).to_numpy()
        elif in_struct and values.dtype.kind == "M" and values.dtype != "M8[ns]":
            values = values.astype(object)
        return _spread(values, array)

    def _scalars(self, array: NestedArray) -> list:
        """Make a list with a Python object for each place, as the fields of a struct are; None for a null."""
        if not isinstance(array, LeafArray):
            return self._array(array, True).tolist()
        values = self._values(array)
        if isinstance(values, pd.arrays.DatetimeArray):
            values = _moments(values)
        if array.validity is None:
            return values.tolist()
        return _spread(values.astype(object), array).tolist()

    def _structs(self, array: StructArray, in_struct: bool) -> np.ndarray:
        if self._variants is not None and is_variant(array.shape):
            return _objects(self._variants(array), array)
        names = [child.shape.name for child in array.children]
        columns = [self._scalars(child) for child in array.children]
        if len(names) > _MOST_WRITTEN_OUT:
            return _objects([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)], array)
        return _objects(_dict_maker(len(names))(names, columns), array)

    def _lists(self, array: ListArray, in_struct: bool) -> np.ndarray:
        elements = self._array(array.children[0], in_struct)
        return _nulls_marked(_cut(elements, array.offsets), array)

    def _maps(self, array: ListArray, in_struct: bool) -> np.ndarray:
        keys, values = map(self._scalars, array.children)
        pairs = list(zip(keys, values, strict=True))
        return _objects([pairs[start:stop] for start, stop in pairwise(array.offsets.tolist())], array)


def _of_pieces(target: Target, pieces: list[BinaryPiece]) -> Any:
    return finish(target, ColumnBuffer(pieces=pieces), sum(map(len, pieces)))


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Keep Python from looking for garbage among objects that are all new: a third of the time for dicts."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def _dict_maker(count: int) -> Callable[[list[str], list[list]], list[dict]]:
    """Make a function that makes dicts of `count` fields: written out, which takes a third of the time.

    It is given the names and, for each, the values; nothing out of a file is part of its text.
    """
    names, values = ([f"{letter}{number}" for number in range(count)] for letter in "nv")
    pairs = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
    text = f"lambda names, columns: [{{{pairs}}} for [{', '.join(names)}] in (names,) for {', '.join(values)}, in "
    return eval(text + "zip(*columns)]", {"__builtins__": {"zip": zip}})


def _objects(made: list, array: NestedArray) -> np.ndarray:
    """Make an array of objects, None where nothing is there."""
    return _nulls_marked(np.fromiter(made, object, len(made)), array)


def _nulls_marked(out: np.ndarray, array: NestedArray) -> np.ndarray:
    if array.validity is not None:
        out[np.logical_not(array.validity.view(bool))] = None
    return out


def _cut(elements: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Cut an array up into arrays.

    Short lists are gathered by their length first: to go over the rows of a table takes half the time of
    as many slices.
    """
    sizes = np.diff(offsets)
    if len(sizes) < _FEW_LISTS or sizes.max() > _LONGEST_GATHERED:
        return np.fromiter((elements[start:stop] for start, stop in pairwise(offsets.tolist())), object, len(sizes))
    counts = np.bincount(sizes)
    order = np.argsort(sizes.astype(np.uint8), kind="stable")
    out = np.empty(len(sizes), object)
    first = 0
    for size, count in enumerate(counts.tolist()):
        rows = order[first : first + count]
        first += count
        table = elements.take(offsets[rows][:, None] + np.arange(size))
        out[rows] = np.fromiter(table, object, count)
    return out


_NULLS = {"f": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT"), "O": None}


def _spread(values: np.ndarray, array: LeafArray) -> np.ndarray:
    """Put values in their places, with what stands for a null in between."""
    if array.validity is None:
        return values
    if values.dtype.kind in "iu":
        fits = not len(values) or (values.max() <= _LARGEST_EXACT and values.min() >= -_LARGEST_EXACT)
        values = values.astype(np.float64 if fits else object)
    elif values.dtype.kind not in _NULLS:
        values = values.astype(object)
    out = np.full(array.length, _NULLS[values.dtype.kind], values.dtype)
    out[array.validity.view(bool)] = values
    return out


def _moments(values: pd.arrays.DatetimeArray) -> np.ndarray:
    """Give timestamps with a time zone as datetime objects; in nanoseconds, which those do not have, as integers."""
    if values.unit == "ns":
        return values.asi8
    try:
        return values.to_pydatetime()
    except (ValueError, OverflowError, NotImplementedError):  # beyond the years 1 to 9999
        return values.asi8
