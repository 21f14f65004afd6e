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

# Gives what a value becomes, which is not None; there is no such function where it stays what it is.
Convert = Callable[[Any], Any]


def cast_nested(array: np.ndarray, have: NestedType, wanted: NestedType) -> np.ndarray:
    """Convert a nested column.

    Parameters
    ----------
    array : numpy.ndarray
        Of objects, as they were read.
    have : NestedType
        What it is in the file; its fields have the dataset's names.
    wanted : NestedType
        What it is in the dataset.

    Raises
    ------
    SchemaError
        When a value does not fit.
    """
    convert = _node(have, wanted, False)
    return array if convert is None else _each(array, convert)


def _each(array: np.ndarray, convert: Convert) -> np.ndarray:
    made = [None if value is None else convert(value) for value in array]
    return np.fromiter(made, object, len(made))


def _node(have: NestedType, wanted: NestedType, in_struct: bool) -> Convert | None:
    """Find what converts a value that is an object: in a struct or map, or of a group anywhere."""
    if have.leaf is not None and wanted.leaf is not None:
        return _scalar(_type(have), _type(wanted))
    if have.leaf is not None or (is_variant(wanted) and is_variant(have)):
        return None  # nothing but nulls, or the same object whatever it was made of
    return _GROUPS[wanted.kind](have, wanted, in_struct)


def _struct(have: NestedType, wanted: NestedType, in_struct: bool) -> Convert | None:
    known = {child.name: child for child in have.children}
    names = [child.name for child in wanted.children]
    converts = [_node(known[child.name], child, True) if child.name in known else None for child in wanted.children]
    if names == list(known) and not any(converts):
        return None
    fields = list(zip(names, converts, strict=True))

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for name, change in fields:
            item = value.get(name)
            made[name] = item if change is None or item is None else change(item)
        return made

    return convert


def _list(have: NestedType, wanted: NestedType, in_struct: bool) -> Convert | None:
    inner, element = have.children[0], wanted.children[0]
    if inner.leaf is not None and element.leaf is not None:
        return _elements(_type(inner), _type(element), in_struct)
    convert = _node(inner, element, in_struct)
    return None if convert is None else lambda value: _each(value, convert)


def _map(have: NestedType, wanted: NestedType, in_struct: bool) -> Convert | None:
    key, value = (_node(one, other, True) for one, other in zip(have.children, wanted.children, strict=True))
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
    found = infer_arrow_type(leaf.physical, leaf.type_length, leaf.logical)
    return replace(found, unit="us") if leaf.physical == INT96 else found


# --- values within structs and maps ----------------------------------------------------------------------------------


def _scalar(have: ArrowType, wanted: ArrowType) -> Convert | None:
    rule = _SCALARS.get((have.kind, wanted.kind))
    return rule(have, wanted) if rule is not None else None


def _to_decimal(have: ArrowType, wanted: ArrowType) -> Convert:
    unit = decimal.Decimal((0, (1,), -wanted.scale))
    return lambda value: decimal_from_int(value, unit)


def _other_scale(have: ArrowType, wanted: ArrowType) -> Convert | None:
    unit = decimal.Decimal((0, (1,), -wanted.scale))
    return None if have.scale == wanted.scale else lambda value: rescale_decimal(value, unit)


_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _from_date(have: ArrowType, wanted: ArrowType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, datetime.date):  # a datetime is one, too
            raise SchemaError("a date is outside the years 1 to 9999, the range of datetime.date")
        moment = datetime.datetime(value.year, value.month, value.day)
        return cast_time_unit_of_int((moment - _EPOCH).days, "D", "ns") if wanted.unit == "ns" else moment

    return convert


def _to_unit(have: ArrowType, wanted: ArrowType) -> Convert | None:
    """Convert what is a datetime, or, in nanoseconds and beyond the years 1 to 9999, an integer."""
    if have.unit == wanted.unit:
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, int):
            return cast_time_unit_of_int(value, have.unit, wanted.unit)
        if wanted.unit != "ns":
            return value
        return cast_time_unit_of_int((_local(value) - _EPOCH) // _MICROSECOND, "us", "ns")

    return convert


def _local(moment: datetime.datetime) -> datetime.datetime:
    """Give a moment in UTC, without saying so."""
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)


_SCALARS: dict[tuple[str, str], Callable[[ArrowType, ArrowType], Convert | None]] = {
    ("int", "float"): lambda have, wanted: float,
    ("int", "decimal"): _to_decimal,
    ("decimal", "decimal"): _other_scale,
    ("date", "timestamp"): _from_date,
    ("timestamp", "timestamp"): _to_unit,
}


# --- lists of leaves -------------------------------------------------------------------------------------------------


def _elements(have: ArrowType, wanted: ArrowType, in_struct: bool) -> Convert | None:
    """Find what converts the array that a list of leaves is."""
    if have.kind == "null":
        null = _NULLS.get(wanted.kind)
        return None if null is None else lambda values: np.full(len(values), null)
    if wanted.kind in ("int", "float") and have.kind in ("int", "float"):
        dtype = np.dtype(f"{_LETTERS[wanted.kind, wanted.signed]}{wanted.bit_width // 8}")
        if have.kind == wanted.kind and (have.bit_width, have.signed) == (wanted.bit_width, wanted.signed):
            return None
        return lambda values: _numbers(values, dtype)
    if wanted.kind == "timestamp" and have.kind in ("date", "timestamp"):
        return _moments_of(have, wanted, in_struct)
    change = _scalar(have, wanted)
    return None if change is None else lambda values: _objects(values, change)


_NULLS = {"int": np.nan, "float": np.nan}
_LETTERS = {("int", True): "i", ("int", False): "u", ("float", True): "f"}


def _numbers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Give numbers as wider ones; integers beside nulls are floats, or objects, of whatever width they are."""
    if dtype.kind == "f":
        if values.dtype.kind == "O":
            values = np.array([np.nan if value is None else value for value in values], np.float64)
        return cast_exact(values, dtype)
    return cast_exact(values, dtype) if values.dtype.kind in "iu" else values


def _objects(values: np.ndarray, convert: Convert) -> np.ndarray:
    """Convert items one by one; integers beside nulls may be floats with NaN."""
    if values.dtype.kind == "f":
        values = np.array([None if value != value else int(value) for value in values.tolist()], object)
    return _each(values if values.dtype.kind == "O" else values.astype(object), convert)


def _moments_of(have: ArrowType, wanted: ArrowType, in_struct: bool) -> Convert | None:
    """Convert an array of moments: of datetime64, or, within structs and not in nanoseconds, of objects."""
    if have == wanted:
        return None
    one = _scalar(have, wanted)
    stays_objects = in_struct and wanted.unit != "ns"

    def convert(values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "O" and stays_objects:
            return values if one is None else _each(values, one)
        if values.dtype.kind == "O":
            moments = [value if type(value) is datetime.date or value is None else _local(value) for value in values]
            values = np.array(moments, "M8[D]" if have.kind == "date" else "M8[us]")
        made = cast_time_unit(values, wanted.unit)
        return made.astype(object) if stays_objects else made

    return convert
