"""Columns of Python objects: their classes decide the Arrow type, as in pyarrow."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType

from . import decimals, numbers, struct_dtypes, temporal
from .column_values import ColumnValues, flat_object_values
from .object_layout import distinct_classes
from .strings import bytes_objects, string_objects

_UUID_BYTES = 16

_MISSING = (type(None), type(pd.NA), type(pd.NaT))

# Kinds of classes; the first match counts, as bool and timedelta64 are ints and datetime is a date.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "str"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((bool, np.bool_), "bool"),
    ((datetime.timedelta, np.timedelta64), "timedelta"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((complex, np.complexfloating), "complex"),
    (decimal.Decimal, "Decimal"),
    ((datetime.datetime, np.datetime64), "datetime"),
    (datetime.date, "date"),
    (datetime.time, "time"),
    (uuid.UUID, "UUID"),
    (pd.Period, "Period"),
    (pd.Interval, "Interval"),
    ((list, tuple, dict, set, frozenset, np.ndarray, pd.Series, pd.Index, pd.api.extensions.ExtensionArray), "nested"),
)

_ToValues = Callable[[np.ndarray, dict[type, None], Callable[[Any], ColumnValues]], ColumnValues]


def _extension_values(
    values: np.ndarray, classes: dict[type, None], source_of: Callable[[Any], ColumnValues]
) -> ColumnValues:
    """Return the values of Period or Interval objects by the extension array that pandas builds of them."""
    array = pd.array([None if missing else value for value, missing in zip(values, pd.isna(values), strict=True)])
    if not isinstance(array.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise SchemaError("a column of objects holds periods or intervals of different dtypes")
    return source_of(array)


def _raise_nested(
    values: np.ndarray, classes: dict[type, None], source_of: Callable[[Any], ColumnValues]
) -> ColumnValues:
    from .column_values import NestedValuesError

    raise NestedValuesError


_BY_KIND: dict[str, _ToValues] = {
    "str": lambda values, classes, source_of: string_objects(values),
    "bytes": lambda values, classes, source_of: bytes_objects(values),
    "bool": lambda values, classes, source_of: numbers.boolean_objects(values),
    "int": lambda values, classes, source_of: numbers.integer_objects(values, classes),
    "float": lambda values, classes, source_of: numbers.float_objects(values, classes),
    "complex": lambda values, classes, source_of: struct_dtypes.complex_objects(values),
    "Decimal": lambda values, classes, source_of: decimals.decimal_objects(values),
    "datetime": lambda values, classes, source_of: temporal.datetime_objects(values, classes),
    "date": lambda values, classes, source_of: temporal.date_objects(values),
    "time": lambda values, classes, source_of: temporal.time_objects(values),
    "timedelta": lambda values, classes, source_of: temporal.timedelta_objects(values, classes),
    "UUID": lambda values, classes, source_of: uuid_objects(values),
    "Period": _extension_values,
    "Interval": _extension_values,
    "nested": _raise_nested,
}


def null_values() -> ColumnValues:
    """Return the values of a column of nulls only, of Arrow type null."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        count = stop - start
        return [LeafValues(np.zeros(count, np.int32), validity=np.zeros(count, np.uint8) if count else None)]

    return ColumnValues(ArrowType("null"), leaves)


def uuid_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of `uuid.UUID` objects."""

    def convert(part: np.ndarray) -> np.ndarray:
        return np.frombuffer(b"".join([value.bytes for value in part]), np.uint8)

    return flat_object_values(ArrowType("uuid", byte_width=16), values, convert, _UUID_BYTES)


def object_values(values: np.ndarray, array_values: Callable[[Any], ColumnValues]) -> ColumnValues:
    """Return the values of Python objects, with None, NaN, NaT and NA as nulls, converted when their rows are read.

    Raises NestedValuesError for lists, dicts and the like, SchemaError if no type holds all objects.
    """
    classes = distinct_classes(values)
    kinds: dict[str, type] = {}
    for cls in classes:
        if cls not in _MISSING:
            kinds.setdefault(class_kind(cls), cls)
    # If all floats are NaN, they are nulls beside objects of another kind, a Decimal's NaN included.
    if "float" in kinds and len(kinds) > 1 and not _has_non_nan(values, classes):
        del kinds["float"]
    if set(kinds) == {"int", "float"}:
        return numbers.mixed_number_objects(values)
    if len(kinds) > 1:
        first, second = (cls.__name__ for cls in list(kinds.values())[:2])
        raise SchemaError(f"a column of objects holds values of different types, {first} and {second} among them")
    if not kinds or (set(kinds) == {"float"} and not _has_non_nan(values, classes)):
        return null_values()
    (kind,) = kinds
    return _BY_KIND[kind](values, classes, array_values)


def class_kind(cls: type) -> str:
    """Return the kind of a class of objects; SchemaError if they cannot be written."""
    for base, kind in _KINDS:
        if issubclass(cls, base):
            return kind
    raise SchemaError(f"objects of type {cls.__module__}.{cls.__qualname__} cannot be written")


def _has_non_nan(values: np.ndarray, classes: dict[type, None]) -> bool:
    """Whether any float among the objects is not NaN."""
    floats = {cls for cls in classes if issubclass(cls, (float, np.floating))}
    return any(value == value for value in values if type(value) in floats)
