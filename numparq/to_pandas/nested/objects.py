"""Nested columns as Python objects: dicts, NumPy arrays and lists of key-value pairs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from numparq.column.buffers import BinaryArray, DecodedColumn
from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray, StructArray
from numparq.column.nested.nested_type import is_variant
from numparq.errors import UnsupportedError
from numparq.to_pandas.columns import to_array
from numparq.to_pandas.dictionary import objects_by_entry
from numparq.types.output_type import OutputType

_MAX_EXACT_INTEGER = 1 << 53
# Fewer or longer lists are sliced one by one.
_MIN_GATHERED_LISTS, _MAX_GATHERED_LENGTH = 256, 32
# Dicts of more fields are built by `dict` and `zip`.
_MAX_UNROLLED_FIELDS = 200


class NestedObjectBuilder:
    """Builder of a nested column's objects; `targets` holds the output types of its leaves, by ordinal.

    `variants` returns the objects of VARIANTs; without it they stay the structs that are stored.
    """

    def __init__(
        self, targets: Mapping[int, OutputType], variants: Callable[[StructArray], list[Any]] | None = None
    ) -> None:
        self._targets = targets
        self._variants = variants
        self._builders: dict[str, Callable[[Any, bool], np.ndarray]] = {
            "leaf": self._leaf,
            "struct": self._structs,
            "list": self._lists,
            "map": self._maps,
        }

    def build(self, array: NestedArray) -> np.ndarray:
        """Return an array with an object for each row, None at nulls."""
        with _gc_paused():
            return self._array(array, False)

    def _array(self, array: NestedArray, in_struct: bool) -> np.ndarray:
        """Return an array with an item for each slot of a node, null slots included.

        Within a struct or map (`in_struct`), timestamps become datetime objects unless in nanoseconds; as in pyarrow,
        dates in a list do not.
        """
        return self._builders[array.type.kind](array, in_struct)

    def _values(self, array: LeafArray) -> Any:
        """Return the values of a leaf that are not null, as the array of a flat column."""
        leaf = array.type.leaf
        assert leaf is not None
        target = self._targets[leaf.index]
        if isinstance(array.values, np.ndarray):
            if target.storage == "null":
                return np.full(array.num_values, None, object)
            return to_array(target, DecodedColumn(array.values), array.num_values)
        if target.keep_codes:
            return objects_by_entry(array.values, partial(_pieces_to_array, target))
        return _pieces_to_array(target, array.values)

    def _leaf(self, array: LeafArray, in_struct: bool) -> np.ndarray:
        values = self._values(array)
        if isinstance(values, pd.arrays.DatetimeArray):
            exact = in_struct and values.unit != "ns"
            values = _to_datetimes(values) if exact else values.tz_convert(None).to_numpy()
        elif in_struct and values.dtype.kind == "M" and values.dtype != "M8[ns]" and not self._is_date(array):
            values = values.astype(object)
        return _with_null_slots(values, array)

    def _is_date(self, array: LeafArray) -> bool:
        assert array.type.leaf is not None
        return self._targets[array.type.leaf.index].type.kind == "date"

    def _scalars(self, array: NestedArray) -> list[Any]:
        """Return a list with a Python object, or None, for each slot of a struct's field or a map's keys or values."""
        values = self._values(array) if isinstance(array, LeafArray) else self._array(array, True)
        if isinstance(values, pd.arrays.DatetimeArray):
            values = _to_datetimes(values)
        if isinstance(array, LeafArray) and array.validity is not None:
            values = _with_null_slots(values.astype(object), array)
        scalars: list[Any] = values.tolist()
        return scalars

    def _structs(self, array: StructArray, in_struct: bool) -> np.ndarray:
        if self._variants is not None and is_variant(array.type):
            return _object_array(self._variants(array), array)
        names = [child.type.name for child in array.children]
        if len(set(names)) < len(names):
            _raise_ambiguous(names, array)
        columns = [self._scalars(child) for child in array.children]
        if len(names) > _MAX_UNROLLED_FIELDS:
            return _object_array([dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)], array)
        return _object_array(_dict_builder(len(names))(names, columns), array)

    def _lists(self, array: ListArray, in_struct: bool) -> np.ndarray:
        elements = self._array(array.children[0], in_struct)
        return _mark_nulls(_split_lists(elements, array.offsets), array)

    def _maps(self, array: ListArray, in_struct: bool) -> np.ndarray:
        keys, values = map(self._scalars, array.children)
        pairs = list(zip(keys, values, strict=True))
        return _object_array([pairs[start:stop] for start, stop in pairwise(array.offsets.tolist())], array)


def _raise_ambiguous(names: list[str], array: StructArray) -> NoReturn:
    name = next(name for name in names if names.count(name) > 1)
    raise UnsupportedError(
        f"a struct has two fields of the name {name!r}, of which a dict would lose one; "
        'use dtype_backend="pyarrow", or leave the column out',
        column=".".join(array.type.path),
    )


def _pieces_to_array(target: OutputType, pieces: list[BinaryArray]) -> Any:
    return to_array(target, DecodedColumn(arrays=pieces), sum(map(len, pieces)))


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause the garbage collector while only new objects are built; it takes a third of the time for dicts."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def _dict_builder(count: int) -> Callable[[list[str], list[list[Any]]], list[dict[str, Any]]]:
    """Return a function from names and columns to dicts of `count` fields, unrolled by `eval`: a third of the time.

    Nothing from a file becomes part of the evaluated text.
    """
    names, values = ([f"{letter}{number}" for number in range(count)] for letter in "nv")
    pairs = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
    text = f"lambda names, columns: [{{{pairs}}} for [{', '.join(names)}] in (names,) for {', '.join(values)}, in "
    builder: Callable[[list[str], list[list[Any]]], list[dict[str, Any]]]
    builder = eval(text + "zip(*columns)]", {"__builtins__": {"zip": zip}})
    return builder


def _object_array(made: list[Any], array: NestedArray) -> np.ndarray:
    """Return a list as an object array, None at nulls."""
    return _mark_nulls(np.fromiter(made, object, len(made)), array)


def _mark_nulls(out: np.ndarray, array: NestedArray) -> np.ndarray:
    if array.validity is not None:
        out[np.logical_not(array.validity.view(bool))] = None
    return out


def _split_lists(elements: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Split an array at offsets into an array of arrays.

    Short lists are gathered by length first: iterating over a table's rows takes half the time of slicing.
    """
    sizes = np.diff(offsets)
    if len(sizes) < _MIN_GATHERED_LISTS or sizes.max() > _MAX_GATHERED_LENGTH:
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


def _with_null_slots(values: np.ndarray, array: LeafArray) -> np.ndarray:
    """Return values with a null of their dtype at each null slot."""
    if array.validity is None:
        return values
    if values.dtype.kind in "iu":
        fits = not len(values) or (values.max() <= _MAX_EXACT_INTEGER and values.min() >= -_MAX_EXACT_INTEGER)
        values = values.astype(np.float64 if fits else object)
    elif values.dtype.kind not in _NULLS:
        values = values.astype(object)
    out = np.full(array.length, _NULLS[values.dtype.kind], values.dtype)
    out[array.validity.view(bool)] = values
    return out


def _to_datetimes(values: pd.arrays.DatetimeArray) -> np.ndarray:
    """Return zoned timestamps as datetime objects; as integers if in nanoseconds or outside years 1 to 9999."""
    integers: np.ndarray = values.asi8
    if values.unit == "ns":
        return integers
    try:
        datetimes: np.ndarray = values.to_pydatetime()
    except (ValueError, OverflowError, NotImplementedError):  # outside years 1 to 9999
        return integers
    return datetimes
