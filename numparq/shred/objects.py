"""Columns of Python objects: a look at the types of all of them decides what they become, as pyarrow does it."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from . import object_values
from .source import Source
from .strings import bytes_objects, string_objects
from .text import classes_of

_MISSING = (type(None), type(pd.NA), type(pd.NaT))

# What a class of objects is called. The first row that fits counts: bool and timedelta64 are ints, datetime a date.
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


def object_source(values: np.ndarray, source_of: Callable[[Any], Source]) -> Source:
    """Give the source of an array of Python objects, of which None, NaN, NaT and NA are nulls.

    Parameters
    ----------
    values : object
        The objects.
    source_of : callable
        Gives the source of an array of a pandas dtype; for objects that are best seen as such.

    Returns
    -------
    Source
        Objects are converted range by range.

    Raises
    ------
    Nested
        When they are lists, dicts and the like.
    SchemaError
        When there is no type that holds them all; two of their types are named.
    """
    classes = classes_of(values)
    kinds: dict[str, type] = {}
    for cls in classes:
        if cls not in _MISSING:
            kinds.setdefault(kind_of(cls), cls)
    # Where NaN is all that there is of floats, it stands for nulls; so it does where a Decimal's NaN does.
    if "float" in kinds and len(kinds) > 1 and not _has_numbers(values, classes):
        del kinds["float"]
    if set(kinds) == {"int", "float"}:
        return object_values.mixed_floats(values)
    if len(kinds) > 1:
        first, second = (cls.__name__ for cls in list(kinds.values())[:2])
        raise SchemaError(f"a column of objects holds values of different types, {first} and {second} among them")
    if not kinds or (set(kinds) == {"float"} and not _has_numbers(values, classes)):
        return object_values.nulls()
    (kind,) = kinds
    return _SOURCES[kind](values, classes, source_of)


def kind_of(cls: type) -> str:
    """Name the kind of a class of objects.

    Raises
    ------
    SchemaError
        When values of the class cannot be written.
    """
    for base, kind in _KINDS:
        if issubclass(cls, base):
            return kind
    raise SchemaError(f"objects of type {cls.__module__}.{cls.__qualname__} cannot be written")


def _has_numbers(values: np.ndarray, classes: dict[type, None]) -> bool:
    """Whether one of the floats among objects is not NaN."""
    floats = {cls for cls in classes if issubclass(cls, (float, np.floating))}
    return any(value == value for value in values if type(value) in floats)


def _nested(values: np.ndarray, classes: dict[type, None], source_of: Callable[[Any], Source]) -> Source:
    from .families import Nested

    raise Nested


def _as_dtype(values: np.ndarray, classes: dict[type, None], source_of: Callable[[Any], Source]) -> Source:
    """Let pandas make an array of periods or intervals of objects."""
    array = pd.array([None if missing else value for value, missing in zip(values, pd.isna(values), strict=True)])
    if not isinstance(array.dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise SchemaError("a column of objects holds periods or intervals of different sorts")
    return source_of(array)


_Make = Callable[[np.ndarray, dict[type, None], Callable[[Any], Source]], Source]
_SOURCES: dict[str, _Make] = {
    "str": lambda values, classes, source_of: string_objects(values),
    "bytes": lambda values, classes, source_of: bytes_objects(values),
    "bool": lambda values, classes, source_of: object_values.booleans(values),
    "int": lambda values, classes, source_of: object_values.integers(values, classes),
    "float": lambda values, classes, source_of: object_values.floats(values, classes),
    "complex": lambda values, classes, source_of: object_values.complexes(values),
    "Decimal": lambda values, classes, source_of: object_values.decimals(values),
    "datetime": lambda values, classes, source_of: object_values.datetimes(values, classes),
    "date": lambda values, classes, source_of: object_values.dates(values),
    "time": lambda values, classes, source_of: object_values.times(values),
    "timedelta": lambda values, classes, source_of: object_values.timedeltas(values, classes),
    "UUID": lambda values, classes, source_of: object_values.uuids(values),
    "Period": _as_dtype,
    "Interval": _as_dtype,
    "nested": _nested,
}
