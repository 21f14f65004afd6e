"""Infer the Arrow type of a column of nested Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.from_pandas.columns import array_values
from numparq.from_pandas.objects import object_values
from numparq.types.arrow_fields import ELEMENT, MAX_DEPTH
from numparq.util.text import is_utf8

from .objects import (
    LIST_CLASSES,
    common_array_dtype,
    copy_dict_items,
    field_values,
    flatten_lists,
    measure_lists,
    without_nulls,
)

_CHUNK_ROWS = 1 << 13  # rows whose elements are flattened in memory at once
_NULL = ArrowType("null")
_ARROW_DIGITS = 38  # of Arrow's 128-bit decimals


def infer_field(name: str, values: np.ndarray) -> ArrowField:
    """Return the Arrow field of a column of objects: lists and arrays are lists, dicts are structs of all their keys.

    Elements that are all null have type ``null``. SchemaError names a path whose values have no common type.
    """
    found = ArrowField(name, _NULL)
    for start in range(0, len(values), _CHUNK_ROWS):
        found = _common_field(found, _infer(name, values[start : start + _CHUNK_ROWS], (name,)), (name,))
    return found


def _infer(name: str, values: np.ndarray, path: tuple[str, ...]) -> ArrowField:
    """Return the field of the values at one path."""
    if len(path) > MAX_DEPTH:
        raise SchemaError(f"values are nested deeper than {MAX_DEPTH} levels", column=path[0])
    if values.dtype.kind != "O":
        return ArrowField(name, array_values(values).type)
    lists = measure_lists(values)
    if lists is not None:
        elements = lists.concatenate() if lists.dtype.kind == "O" else np.empty(0, lists.dtype)
        return ArrowField(name, ArrowType("list"), (_infer(ELEMENT, elements, (*path, "list", ELEMENT)),))
    present, classes = without_nulls(values)
    if classes and all(issubclass(cls, LIST_CLASSES) for cls in classes):
        dtype = common_array_dtype(present)
        elements = flatten_lists(present, path)[1] if dtype is None else np.empty(0, dtype)
        return ArrowField(name, ArrowType("list"), (_infer(ELEMENT, elements, (*path, "list", ELEMENT)),))
    if classes and all(issubclass(cls, dict) for cls in classes):
        return ArrowField(name, ArrowType("struct"), _fields(present, path))
    if any(issubclass(cls, (*LIST_CLASSES, dict)) for cls in classes):
        some = " and ".join(sorted(cls.__name__ for cls in classes)[:2])
        raise SchemaError(f"nested values have different types: {some}", column=".".join(path))
    try:
        source = object_values(present, array_values)
    except SchemaError as error:
        error.where["column"] = ".".join(path)
        raise
    if source.children:
        raise SchemaError(
            "complex numbers and intervals cannot be written within lists and structs", column=".".join(path)
        )
    return ArrowField(name, source.type)


def _fields(values: np.ndarray, path: tuple[str, ...]) -> tuple[ArrowField, ...]:
    names, sizes = _check_names(values[0], path), sum(map(len, values))
    found = [copy_dict_items(values, name) for name in names]
    if min((count for _, count in found), default=-1) < 0 or sum(count for _, count in found) < sizes:
        names = _check_names(dict.fromkeys(chain.from_iterable(values)), path)  # the first dict lacks keys of others
        found = [(field_values(values, name), 0) for name in names]
    return tuple(_infer(name, part, (*path, name)) for name, (part, _) in zip(names, found, strict=True))


def _check_names(names: Iterable[Any], path: tuple[str, ...]) -> list[str]:
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(
                f"dict key {name!r} cannot name a struct field, which takes a string", column=".".join(path)
            )
        if not is_utf8(name):
            raise SchemaError(f"the dict key {name!r} cannot be encoded as UTF-8", column=".".join(path))
    return list(names)


# --- common types -----------------------------------------------------------------------------------------------------


def _common_field(one: ArrowField, other: ArrowField, path: tuple[str, ...]) -> ArrowField:
    """Return the common field of two."""
    if _NULL in (one.type, other.type) or one == other:
        return one if other.type == _NULL else other
    kinds = {one.type.kind, other.type.kind}
    if kinds == {"list"}:
        (first,), (second,) = one.children, other.children
        return replace(one, children=(_common_field(first, second, (*path, "list", ELEMENT)),))
    if kinds == {"struct"}:
        found = {child.name: child for child in one.children}
        for child in other.children:
            known = found.get(child.name)
            found[child.name] = child if known is None else _common_field(known, child, (*path, child.name))
        return replace(one, children=tuple(found.values()))
    return replace(one, type=common_type(one.type, other.type, ".".join(path)))


def common_type(one: ArrowType, other: ArrowType, column: str) -> ArrowType:
    """Return the common type of two types without children; SchemaError, naming `column`, if there is none."""
    if one == other:
        return one
    kinds = frozenset((one.kind, other.kind))
    widen = _COMMON.get(kinds)
    if widen is None or one.extension != other.extension:
        raise SchemaError(f"nested values have different types: {one.kind} and {other.kind}", column=column)
    return widen(one, other, column)


def _common_number(one: ArrowType, other: ArrowType, column: str) -> ArrowType:
    dtypes = [np.dtype(f"{_letter(of)}{of.bit_width // 8}") for of in (one, other)]
    kinds = {dtype.kind for dtype in dtypes}
    if kinds == {"i", "u"} and max(dtype.itemsize for dtype in dtypes) == 8:
        return ArrowType("int", 64, False)  # a negative integer is refused when it is stored
    dtype = np.dtype("f8") if "f" in kinds and len(kinds) > 1 else np.result_type(*dtypes)
    if dtype.kind == "f":
        return ArrowType("float", 8 * dtype.itemsize)
    return ArrowType("int", 8 * dtype.itemsize, dtype.kind == "i")


def _letter(arrow_type: ArrowType) -> str:
    return "f" if arrow_type.kind == "float" else "i" if arrow_type.signed else "u"


def _common_decimal(one: ArrowType, other: ArrowType, column: str) -> ArrowType:
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return ArrowType("decimal", 128 if precision <= _ARROW_DIGITS else 256, precision=precision, scale=scale)


def _finer_unit(one: ArrowType, other: ArrowType, column: str) -> ArrowType:
    if bool(one.timezone) != bool(other.timezone):
        raise SchemaError(
            "some datetimes have a time zone, and some have none: one column cannot hold both", column=column
        )
    return max(one, replace(other, timezone=one.timezone), key=lambda of: ("s", "ms", "us", "ns").index(of.unit))


_CommonType = Callable[[ArrowType, ArrowType, str], ArrowType]
_COMMON: dict[frozenset[str], _CommonType] = {
    frozenset({"int"}): _common_number,
    frozenset({"float"}): _common_number,
    frozenset({"int", "float"}): _common_number,
    frozenset({"decimal"}): _common_decimal,
    frozenset({"timestamp"}): _finer_unit,
    frozenset({"duration"}): _finer_unit,
}
