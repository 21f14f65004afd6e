"""Python lists, dicts and tuples as nested arrays of a known type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from numparq.column.nested.shred import UnshreddedArray, UnshreddedLeaf, UnshreddedList, UnshreddedStruct
from numparq.errors import SchemaError
from numparq.format.key_values.arrow import ArrowField
from numparq.from_pandas.object_layout import (
    array_layout,
    distinct_classes,
    kernel_constants,
    knows_containers,
    object_layout,
)
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.objects.types import LIST, TUPLE
from numparq.kernels.status import BAD_VALUE, check_status
from numparq.types.arrow_fields import ELEMENT, LIST_KINDS
from numparq.util.pluralize import agree_noun, pluralize

from .elements import Classes, element_values

# Classes whose objects are lists, at any depth.
LIST_CLASSES = (list, tuple, set, frozenset, np.ndarray, pd.Series, pd.Index, pd.api.extensions.ExtensionArray)
_NEVER_NULL = {bool, int, str, bytes, list, tuple, dict, set, frozenset, np.ndarray}  # pd.isna asks each object
_TYPED = "biufMm"  # kinds of NumPy dtypes kept as arrays
_DTYPE, _DIMENSIONS = attrgetter("dtype"), attrgetter("ndim")


def nested_from_objects(values: np.ndarray, field: ArrowField, path: tuple[str, ...]) -> UnshreddedArray:
    """Return objects (at a leaf, also a NumPy array) as a nested array of a type; None, NaN, NaT and NA are nulls.

    A map accepts dicts or lists of pairs, a struct dicts or tuples. SchemaError names `path` if a value does not fit.
    """
    make = _BY_KIND.get(field.type.kind)
    if make is not None:
        return make(values, field, path)
    return UnshreddedLeaf(len(values), element_values(values, field.type, path))


def without_nulls(values: np.ndarray) -> tuple[np.ndarray, Classes]:
    """Return the objects that are not null, and their classes."""
    absent, classes = _find_nulls(values)
    if absent is None:
        return values, classes
    present = values[~absent]
    return present, distinct_classes(present)


def _find_nulls(values: np.ndarray) -> tuple[np.ndarray | None, Classes]:
    """Return a mask of the nulls, None if there are none, and the classes of objects."""
    classes = distinct_classes(values) if values.dtype.kind == "O" else {}
    if classes and _NEVER_NULL.issuperset(classes):
        return None, classes
    absent = np.asarray(pd.isna(values))
    return absent if absent.any() else None, classes


def _fill_nulls(values: np.ndarray, stand_in: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Replace nulls; return the values and their validity, None if there are no nulls."""
    absent, _ = _find_nulls(values)
    if absent is None:
        return values, None
    item = np.empty((), object)
    item[()] = stand_in
    values = values.astype(object)
    values[absent] = item
    return values, (~absent).view(np.uint8)


def _check_classes(values: np.ndarray, kinds: tuple[type, ...], what: str, path: tuple[str, ...]) -> None:
    """Raise SchemaError for a value of another class."""
    for kind in distinct_classes(values):
        if not issubclass(kind, kinds):
            raise SchemaError(f"a value must be {what}, not {kind.__name__}", column=".".join(path))


class MeasuredLists(NamedTuple):
    """Lists measured by a kernel, with nulls among them.

    Attributes
    ----------
    dtype : numpy.dtype
        That of all lists, which are contiguous 1-D arrays, or object for lists and tuples.
    offsets : numpy.ndarray
        int64, in items, one more than lists.
    validity : numpy.ndarray or None
        uint8, 0 for a null; None if there are none.
    """

    objects: np.ndarray
    dtype: np.dtype
    offsets: np.ndarray
    validity: np.ndarray | None

    def concatenate(self) -> np.ndarray:
        """Return the items of all lists."""
        out, count = np.empty(self.offsets[-1], self.dtype), len(self.objects)
        bounds = (self.offsets, np.ones(count, np.uint8) if self.validity is None else self.validity)
        if self.dtype.kind == "O":
            status = text_kernels.copy_list_items(self.objects, count, kernel_constants(), *bounds, out)
        else:
            place = (array_layout(), id(self.dtype), self.dtype.itemsize)
            status = text_kernels.copy_arrays(self.objects, count, *place, *bounds, out.view("u1"))
        check_status(status, SchemaError)
        return out


def measure_lists(lists: np.ndarray) -> MeasuredLists | None:
    """Measure lists, tuples and nulls, or arrays of one dtype and nulls; return None if a kernel cannot read them."""
    first = next((item for item in lists if item is not None), None)
    layout, count = array_layout(), len(lists)
    if object_layout() is None or layout is None or not knows_containers():
        return None
    objects, offsets, validity = np.ascontiguousarray(lists), np.empty(count + 1, np.int64), np.empty(count, np.uint8)
    if isinstance(first, (list, tuple)):
        kinds, dtype = (LIST, TUPLE), np.dtype(object)
        present = text_kernels.measure_containers(objects, count, kernel_constants(), *kinds, offsets, validity)
    elif type(first) is np.ndarray and first.dtype.kind in _TYPED and first.dtype.isnative:
        dtype = first.dtype
        place = (layout, id(dtype), dtype.itemsize)
        present = text_kernels.measure_arrays(objects, count, kernel_constants(), *place, offsets, validity)
    else:
        return None
    return (
        None if present == BAD_VALUE else MeasuredLists(objects, dtype, offsets, validity if present < count else None)
    )


def common_array_dtype(lists: np.ndarray) -> np.dtype | None:
    """Return the dtype of lists that are all 1-D NumPy arrays of one numeric or time dtype, else None."""
    if not len(lists) or list(distinct_classes(lists)) != [np.ndarray]:
        return None
    dtype = lists[0].dtype
    if dtype.kind not in _TYPED or set(map(_DIMENSIONS, lists)) != {1}:
        return None
    same = set(map(id, map(_DTYPE, lists))) == {id(dtype)} or set(map(_DTYPE, lists)) == {dtype}
    return dtype if same else None


def flatten_lists(lists: np.ndarray, path: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of lists (int64, one more than lists), none of them null, and their elements concatenated.

    The elements keep a NumPy dtype if all lists are arrays of it; else they are objects.
    """
    if np.ma.MaskedArray in distinct_classes(lists):  # masked items become None
        lists = np.fromiter((part.tolist() if np.ma.isMA(part) else part for part in lists), object, len(lists))
    offsets = np.zeros(len(lists) + 1, np.int64)
    try:
        sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    except TypeError as error:  # a zero-dimensional array
        raise SchemaError("a value must be a list, not a zero-dimensional array", column=".".join(path)) from error
    np.cumsum(sizes, out=offsets[1:])
    if common_array_dtype(lists) is not None:
        return offsets, np.concatenate(lists)
    return offsets, np.fromiter(chain.from_iterable(lists), object, int(offsets[-1]))


def _lists(values: np.ndarray, field: ArrowField, path: tuple[str, ...]) -> UnshreddedList:
    lists = measure_lists(values) if values.dtype.kind == "O" else None
    if lists is not None:
        validity, offsets, elements = lists.validity, lists.offsets, lists.concatenate()
    else:
        filled, validity = _fill_nulls(values, ())
        _check_classes(filled, LIST_CLASSES, "a list", path)
        offsets, elements = flatten_lists(filled, path)
    element = nested_from_objects(elements, field.children[0], (*path, "list", ELEMENT))
    return UnshreddedList(len(values), validity, offsets, (element,))


def _maps(values: np.ndarray, field: ArrowField, path: tuple[str, ...]) -> UnshreddedList:
    filled, validity = _fill_nulls(values, ())
    _check_classes(filled, (Mapping, *LIST_CLASSES), "a dict or a list of pairs", path)
    pairs_of = [item.items() if isinstance(item, Mapping) else item for item in filled]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pairs_of), np.int64, len(values)), out=offsets[1:])
    pairs = list(chain.from_iterable(pairs_of))
    try:
        parts = [
            np.fromiter((key for key, _ in pairs), object, len(pairs)),
            np.fromiter((item for _, item in pairs), object, len(pairs)),
        ]
    except (TypeError, ValueError) as error:
        raise SchemaError("a map must be a dict or a list of (key, value) pairs", column=".".join(path)) from error
    fields = field.children[0].children
    children = [
        nested_from_objects(part, of, (*path, "key_value", of.name)) for part, of in zip(parts, fields, strict=True)
    ]
    return UnshreddedList(len(values), validity, offsets, tuple(children))


def _structs(values: np.ndarray, field: ArrowField, path: tuple[str, ...]) -> UnshreddedStruct:
    filled, validity = _fill_nulls(values, {})
    _check_classes(filled, (Mapping, tuple), "a dict", path)
    if any(issubclass(cls, tuple) for cls in distinct_classes(filled)):
        names = [child.name for child in field.children]
        filled = np.fromiter((_as_dict(item, names, path) for item in filled), object, len(filled))
    items = _struct_items(filled, [of.name for of in field.children], path)
    children = [nested_from_objects(part, of, (*path, of.name)) for part, of in zip(items, field.children, strict=True)]
    return UnshreddedStruct(len(values), validity, tuple(children))


def _struct_items(values: np.ndarray, names: list[str], path: tuple[str, ...]) -> list[np.ndarray]:
    """Return the dicts' values of each key; None where it is missing. SchemaError for a key of no field."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"a dict has no values for two fields of the name {name!r}", column=".".join(path))
    found = [copy_dict_items(values, name) for name in names]
    counts = [count for _, count in found]
    if min(counts, default=-1) >= 0 and sum(counts) == sum(map(len, values)):
        return [part for part, _ in found]
    extra = next((key for key in chain.from_iterable(values) if key not in names), None)
    if extra is not None:
        raise SchemaError(
            f"a dict has the key {extra!r}, but the schema does not; drop it, or add it to the schema",
            column=".".join(path),
        )
    return [field_values(values, name) for name in names]


def field_values(values: np.ndarray, name: str) -> np.ndarray:
    """Return the dicts' values of a key; None where it is missing."""
    found, count = copy_dict_items(values, name)
    return found if count >= 0 else np.fromiter((item.get(name) for item in values), object, len(values))


def copy_dict_items(values: np.ndarray, name: str) -> tuple[np.ndarray, int]:
    """Return the dicts' values of a key as `field_values` does, and how many have it; -1 for other mappings."""
    key, found = np.array([name], object), np.empty(len(values), object)
    if object_layout() is None:
        return found, -1
    objects = np.ascontiguousarray(values)
    count = text_kernels.copy_dict_items(objects, len(values), kernel_constants(), key, found)
    return found, max(count, -1)


def _as_dict(item: Mapping[str, Any] | tuple[Any, ...], names: list[str], path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(item, tuple):
        return item
    if len(item) != len(names):
        raise SchemaError(
            f"a tuple of {len(item)} {agree_noun(len(item), 'item')} does not fit a struct of "
            f"{pluralize(len(names), 'field')}",
            column=".".join(path),
        )
    return dict(zip(names, item, strict=True))


_BY_KIND: dict[str, Callable[[np.ndarray, ArrowField, tuple[str, ...]], UnshreddedArray]] = {
    **dict.fromkeys(LIST_KINDS, _lists),
    "map": _maps,
    "struct": _structs,
}
