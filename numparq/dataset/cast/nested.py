"""Cast nested columns of Python objects: fields reordered, leaf values cast."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.nested.nested_type import NestedType, is_variant
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.physical_type import INT96
from numparq.types.parquet_type import infer_arrow_type

from .values import cast_exact, cast_time_unit, cast_time_unit_of_int, decimal_from_int, rescale_decimal

__all__ = ["cast_nested"]

# Casts a value that is not None. None stands for a cast that changes nothing.
Convert = Callable[[Any], Any]


def cast_nested(array: np.ndarray, source: NestedType, target: NestedType) -> np.ndarray:
    """Cast a column of nested Python objects; `source` has the dataset's field names.

    Raises SchemaError if a value does not fit.
    """
    convert = _node(source, target, False)
    return array if convert is None else _each(array, convert)


def _each(array: np.ndarray, convert: Convert) -> np.ndarray:
    result = [None if value is None else convert(value) for value in array]
    return np.fromiter(result, object, len(result))


def _node(source: NestedType, target: NestedType, in_struct: bool) -> Convert | None:
    """Return the cast of a value that is a Python object: in a struct or map, or of a group anywhere."""
    if source.leaf is not None and target.leaf is not None:
        return _scalar(_type(source), _type(target))
    if source.leaf is not None or (is_variant(target) and is_variant(source)):
        return None  # nothing but nulls, or the same object whatever it was made of
    return _GROUPS[target.kind](source, target, in_struct)


def _struct(source: NestedType, target: NestedType, in_struct: bool) -> Convert | None:
    known = {child.name: child for child in source.children}
    names = [child.name for child in target.children]
    converts = [_node(known[child.name], child, True) if child.name in known else None for child in target.children]
    if names == list(known) and not any(converts):
        return None
    fields = list(zip(names, converts, strict=True))

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        result = {}
        for name, convert_item in fields:
            item = value.get(name)
            result[name] = item if convert_item is None or item is None else convert_item(item)
        return result

    return convert


def _list(source: NestedType, target: NestedType, in_struct: bool) -> Convert | None:
    inner, element = source.children[0], target.children[0]
    if inner.leaf is not None and element.leaf is not None:
        return _elements(_type(inner), _type(element), in_struct)
    convert = _node(inner, element, in_struct)
    return None if convert is None else lambda value: _each(value, convert)


def _map(source: NestedType, target: NestedType, in_struct: bool) -> Convert | None:
    key, value = (_node(one, other, True) for one, other in zip(source.children, target.children, strict=True))
    if key is None and value is None:
        return None

    def convert(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return [
            (
                first if key is None or first is None else key(first),
                second if value is None or second is None else value(second),
            )
            for first, second in pairs
        ]

    return convert


_GROUPS: dict[str, Callable[[NestedType, NestedType, bool], Convert | None]] = {
    "struct": _struct,
    "list": _list,
    "map": _map,
}


def _type(shape: NestedType) -> ArrowType:
    leaf = shape.leaf
    assert leaf is not None
    leaf_type = infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical)
    return replace(leaf_type, unit="us") if leaf.physical == INT96 else leaf_type


# --- values within structs and maps ----------------------------------------------------------------------------------


def _scalar(source: ArrowType, target: ArrowType) -> Convert | None:
    rule = _SCALARS.get((source.kind, target.kind))
    return rule(source, target) if rule is not None else None


def _to_decimal(source: ArrowType, target: ArrowType) -> Convert:
    unit = decimal.Decimal((0, (1,), -target.scale))
    return lambda value: decimal_from_int(value, unit)


def _other_scale(source: ArrowType, target: ArrowType) -> Convert | None:
    unit = decimal.Decimal((0, (1,), -target.scale))
    return None if source.scale == target.scale else lambda value: rescale_decimal(value, unit)


_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _from_date(source: ArrowType, target: ArrowType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, datetime.date):  # a datetime is one, too
            raise SchemaError("a date is outside the years 1 to 9999, the range of datetime.date")
        moment = datetime.datetime(value.year, value.month, value.day)
        return cast_time_unit_of_int((moment - _EPOCH).days, "D", "ns") if target.unit == "ns" else moment

    return convert


def _to_unit(source: ArrowType, target: ArrowType) -> Convert | None:
    """Cast a datetime, or an integer for nanoseconds and beyond the years 1 to 9999."""
    if source.unit == target.unit:
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, int):
            return cast_time_unit_of_int(value, source.unit, target.unit)
        if target.unit != "ns":
            return value
        return cast_time_unit_of_int((_local(value) - _EPOCH) // _MICROSECOND, "us", "ns")

    return convert


def _local(moment: datetime.datetime) -> datetime.datetime:
    """Return a datetime in UTC, without a time zone."""
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)


_SCALARS: dict[tuple[str, str], Callable[[ArrowType, ArrowType], Convert | None]] = {
    ("int", "float"): lambda source, target: float,
    ("int", "decimal"): _to_decimal,
    ("decimal", "decimal"): _other_scale,
    ("date", "timestamp"): _from_date,
    ("timestamp", "timestamp"): _to_unit,
}


# --- lists of leaves -------------------------------------------------------------------------------------------------


def _elements(source: ArrowType, target: ArrowType, in_struct: bool) -> Convert | None:
    """Return the cast of the array that a list of leaves is."""
    if source.kind == "null":
        null = _NULLS.get(target.kind)
        return None if null is None else lambda values: np.full(len(values), null)
    if target.kind in ("int", "float") and source.kind in ("int", "float"):
        dtype = np.dtype(f"{_LETTERS[target.kind, target.signed]}{target.bit_width // 8}")
        if source.kind == target.kind and (source.bit_width, source.signed) == (target.bit_width, target.signed):
            return None
        return lambda values: _numbers(values, dtype)
    if target.kind == "timestamp" and source.kind in ("date", "timestamp"):
        return _moments_of(source, target, in_struct)
    convert_item = _scalar(source, target)
    return None if convert_item is None else lambda values: _objects(values, convert_item)


_NULLS = {"int": np.nan, "float": np.nan}
_LETTERS = {("int", True): "i", ("int", False): "u", ("float", True): "f"}


def _numbers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast numbers to wider ones; integers next to nulls are floats or objects of any width."""
    if dtype.kind == "f":
        if values.dtype.kind == "O":
            values = np.array([np.nan if value is None else value for value in values], np.float64)
        return cast_exact(values, dtype)
    return cast_exact(values, dtype) if values.dtype.kind in "iu" else values


def _objects(values: np.ndarray, convert: Convert) -> np.ndarray:
    """Cast items one by one; integers next to nulls may be floats with NaN."""
    if values.dtype.kind == "f":
        values = np.array([None if value != value else int(value) for value in values.tolist()], object)
    return _each(values if values.dtype.kind == "O" else values.astype(object), convert)


def _moments_of(source: ArrowType, target: ArrowType, in_struct: bool) -> Convert | None:
    """Return the cast of an array of datetime64, or of objects in structs unless in nanoseconds."""
    if source == target:
        return None
    one = _scalar(source, target)
    stays_objects = in_struct and target.unit != "ns"

    def convert(values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "O" and stays_objects:
            return values if one is None else _each(values, one)
        if values.dtype.kind == "O":
            moments = [value if type(value) is datetime.date or value is None else _local(value) for value in values]
            values = np.array(moments, "M8[D]" if source.kind == "date" else "M8[us]")
        result = cast_time_unit(values, target.unit)
        return result.astype(object) if stays_objects else result

    return convert
