"""Scalars within Python lists and dicts as leaf values of a known type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.from_pandas import column_values, objects, temporal
from numparq.from_pandas.column_values import ColumnValues
from numparq.from_pandas.columns import array_values
from numparq.from_pandas.decimals import decimal_values
from numparq.from_pandas.numbers import number_converter, scalar_reader
from numparq.from_pandas.object_layout import distinct_classes
from numparq.from_pandas.objects import class_kind, object_values
from numparq.from_pandas.strings import bytes_objects, string_objects
from numparq.util.pluralize import agree_noun

Classes = dict[type, None]
_NULLS = (type(None), type(pd.NA), type(pd.NaT))
_NUMBERS = ("bool", "int", "float")
_ROW = re.compile(r"^row \d+: ")  # a position among elements is that of no row
_MAX_EXACT_INTEGER = {
    2: 1 << 11,
    4: 1 << 24,
    8: 1 << 53,
}  # by bytes of a float: all integers up to here are exact


def element_values(values: np.ndarray, arrow_type: ArrowType, path: tuple[str, ...]) -> LeafValues:
    """Return objects (None, NaN, NaT and NA as nulls) or a NumPy array as leaf values of a type, nulls included.

    `path` is the names from the column to the leaf. SchemaError names it if a value does not fit.
    """
    column = ".".join(path)
    if values.dtype.kind != "O":
        source = array_values(values)
        if source.type == arrow_type:
            return source.read_leaves(0, len(values))[0]
        values = _as_objects(values)
    classes = distinct_classes(values)
    _check_classes(values, classes, arrow_type, column)
    try:
        (leaf,) = _BY_KIND.get(arrow_type.kind, _object_values)(values, arrow_type, classes).read_leaves(0, len(values))
    except (OverflowError, TypeError, ValueError) as error:  # SchemaError among them
        if isinstance(error, SchemaError):
            error.where["column"] = column
            error.message = _ROW.sub("", error.message)
            raise
        raise SchemaError(f"a value does not fit {_type_name(arrow_type)}: {error}", column=column) from error
    return leaf


def _as_objects(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "mM":
        return np.fromiter(values, object, len(values))
    return values.astype(object)


# Kinds of objects (`objects.class_kind`) that each kind of type accepts.
_ACCEPTED_KINDS: dict[str, tuple[str, ...]] = {
    "null": (),
    "bool": ("bool",),
    "int": ("int", "float", "bool", "Period"),
    "float": ("float", "int", "bool"),
    "decimal": ("Decimal", "int"),
    "date": ("date",),
    "time": ("time",),
    "timestamp": ("datetime",),
    "duration": ("timedelta",),
    "uuid": ("UUID", "bytes"),
    "fixed_size_binary": ("bytes", "str", "UUID"),
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), ("str", "bytes")),
    **dict.fromkeys(("binary", "large_binary", "binary_view"), ("bytes", "str")),
}


def _check_classes(values: np.ndarray, classes: Classes, arrow_type: ArrowType, column: str) -> None:
    """Raise SchemaError for objects of a class that the type does not accept."""
    taken = _ACCEPTED_KINDS.get(arrow_type.kind, ())
    for cls in classes:
        if cls not in _NULLS and class_kind(cls) not in taken and not (cls is float and _all_nan(values)):
            raise SchemaError(
                f"a value of type {cls.__name__} cannot be written as {_type_name(arrow_type)}", column=column
            )


def _all_nan(values: np.ndarray) -> bool:
    """Whether all floats among the objects are NaN, which means null."""
    return all(value != value for value in values if type(value) is float)


def _any(classes: Classes, *kinds: type) -> bool:
    return any(issubclass(cls, kinds) for cls in classes)


def _type_name(arrow_type: ArrowType) -> str:
    return f"{arrow_type.kind}{arrow_type.bit_width}" if arrow_type.kind in ("int", "float") else arrow_type.kind


def _floats_to_integers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers as integers; SchemaError for a float that is not a whole number in range."""
    with np.errstate(invalid="ignore"):
        found = values.astype(dtype)
    wrong = found.astype(object) != values
    if wrong.any():
        raise SchemaError(f"{values[wrong][0]} is not a whole number in the range of {dtype.name}")
    return found


def _to_floats(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers as floats; SchemaError for a finite one that becomes infinite."""
    with np.errstate(over="ignore"):
        found = values.astype(dtype)
    wrong = np.isinf(found)
    wrong[wrong] = found[wrong].astype(object) != values[wrong]
    if wrong.any():
        raise SchemaError(f"{values[wrong][0]} is beyond the range of {dtype.name}")
    return found


def _integers_to_floats(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers as floats; SchemaError for an integer that is not exact as a float."""
    found = _to_floats(values, dtype)
    for place in np.flatnonzero(np.abs(found) >= _MAX_EXACT_INTEGER[dtype.itemsize]).tolist():
        value = values[place]
        if isinstance(value, (int, np.integer)) and (np.isinf(found[place]) or int(found[place]) != int(value)):
            raise SchemaError(f"integer {value} cannot be stored as {dtype.name} without loss")
    return found


def _numbers(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    if arrow_type.extension is not None:
        return _object_values(values, arrow_type, classes)
    letter = {"bool": "?", "float": "f", "int": "i" if arrow_type.signed else "u"}[arrow_type.kind]
    dtype = np.dtype(letter if letter == "?" else f"{letter}{arrow_type.bit_width // 8}")
    _, convert = number_converter(dtype)
    exact: Callable[[np.ndarray, np.dtype], np.ndarray] = np.ndarray.astype
    if letter in "iu" and _any(classes, float, np.floating):
        exact = _floats_to_integers
    elif letter == "f":
        exact = _integers_to_floats if _any(classes, int, np.integer) else _to_floats
    width = 2 if dtype == np.float16 else 0
    return column_values.flat_object_values(
        arrow_type, values, lambda part: convert(exact(part, dtype)).values, width, scalar_reader(dtype)
    )


def _timestamps(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    stored_unit = "ms" if arrow_type.unit == "s" else arrow_type.unit

    def convert(part: np.ndarray) -> np.ndarray:
        moments = _in_unit(pd.DatetimeIndex(pd.to_datetime(part, utc=True)), arrow_type.unit)
        ticks: np.ndarray = moments.as_unit(stored_unit).asi8
        return ticks

    return column_values.flat_object_values(arrow_type, values, convert)


def _durations(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    def convert(part: np.ndarray) -> np.ndarray:
        ticks: np.ndarray = _in_unit(pd.TimedeltaIndex(pd.to_timedelta(part)), arrow_type.unit).asi8
        return ticks

    return column_values.flat_object_values(arrow_type, values, convert)


def _in_unit(exact: Any, unit: str) -> Any:
    """Return a DatetimeIndex or TimedeltaIndex in another unit; SchemaError if that is not exact."""
    wanted = exact.as_unit(unit)
    inexact = np.asarray(exact != wanted)
    if inexact.any():
        raise SchemaError(f"{exact[inexact][0]} cannot be stored in {unit} without loss; round it first")
    return wanted


# By unit of a time: microseconds of a unit, and of a stored tick (Parquet has no times in seconds).
_TIME_TICKS = {"s": (1_000_000, 1000), "ms": (1000, 1000), "us": (1, 1)}


def _times(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    source = temporal.time_objects(values)
    unit, tick = _TIME_TICKS.get(arrow_type.unit, (1, 1))

    def leaves(start: int, stop: int) -> list[LeafValues]:
        (leaf,) = source.read_leaves(start, stop)
        if tick > 1:
            if (leaf.values % unit).any():
                raise SchemaError(f"a time of day cannot be stored in {arrow_type.unit} without loss; round it first")
            leaf.values = (leaf.values // tick).astype(np.int32)
        elif arrow_type.unit == "ns":
            leaf.values = leaf.values * 1000
        return [leaf]

    return ColumnValues(arrow_type, leaves)


def _decimals(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    import decimal

    if _any(classes, int, np.integer):
        whole = [decimal.Decimal(int(value)) if isinstance(value, (int, np.integer)) else value for value in values]
        values = np.fromiter(whole, object, len(whole))
    return decimal_values(values, arrow_type)


def _texts(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    if _any(classes, bytes, bytearray, memoryview):
        values = np.fromiter(map(_decoded, values), object, len(values))
    return string_objects(values)


def _decoded(value: Any) -> Any:
    return bytes(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else value


def _bytes(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    if _any(classes, str):
        values = np.fromiter((v.encode() if isinstance(v, str) else v for v in values), object, len(values))
    return bytes_objects(values)


def _fixed_bytes(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    width = arrow_type.byte_width

    def convert(part: np.ndarray) -> np.ndarray:
        octets = [bytes(getattr(value, "bytes", value)) for value in part]
        length = next((len(value) for value in octets if len(value) != width), width)
        if length != width:
            raise SchemaError(
                f"a value of {length} {agree_noun(length, 'byte')} does not fit {width} {agree_noun(width, 'byte')}"
            )
        return np.frombuffer(b"".join(octets), np.uint8)

    return column_values.flat_object_values(arrow_type, values, convert, width)


def _object_values(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> ColumnValues:
    """Return the values of objects by their inferred type, which must be the expected one."""
    source = object_values(values, array_values)
    if source.type == arrow_type:
        return source
    if source.type.kind != "null":
        raise SchemaError(f"values of type {_type_name(source.type)} cannot be written as {_type_name(arrow_type)}")
    return column_values.flat_object_values(arrow_type, values, lambda part: part.astype(np.int64))


_BY_KIND: dict[str, Callable[[np.ndarray, ArrowType, Classes], ColumnValues]] = {
    "null": lambda values, arrow_type, classes: objects.null_values(),
    **dict.fromkeys(_NUMBERS, _numbers),
    "decimal": _decimals,
    "date": lambda values, arrow_type, classes: temporal.date_objects(values),
    "time": _times,
    "timestamp": _timestamps,
    "duration": _durations,
    **dict.fromkeys(("uuid", "fixed_size_binary"), _fixed_bytes),
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), _texts),
    **dict.fromkeys(("binary", "large_binary", "binary_view"), _bytes),
}
