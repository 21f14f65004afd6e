"""Elements of nested objects as the values of a leaf whose type is known: from all rows, or from a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from . import object_values
from .decimals import decimal_source
from .families import source_of
from .numbers import number_converter
from .objects import kind_of, object_source
from .source import Source
from .strings import bytes_objects, string_objects
from .text import classes_of

__all__ = ["element_values"]

Classes = dict[type, None]
_NULLS = (type(None), type(pd.NA), type(pd.NaT))
_NUMBERS = ("bool", "int", "float")
_LARGEST_EXACT = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}  # integers up to here are floats of so many bytes without loss


def element_values(values: np.ndarray, arrow_type: ArrowType, path: tuple[str, ...]) -> LeafValues:
    """Give values as those of a leaf.

    Parameters
    ----------
    values : np.ndarray
        Objects, of which None, NaN, NaT and NA are nulls; or numbers, datetime64 or timedelta64.
    arrow_type : ArrowType
        What they are to be.
    path : tuple of str
        Names from the column down to the leaf, for errors.

    Returns
    -------
    LeafValues
        One for each of the values, nulls included.

    Raises
    ------
    SchemaError
        When a value is of another type, or does not fit; it names the column.
    """
    column = ".".join(path)
    if values.dtype.kind != "O":
        source = source_of(values)
        if source.type == arrow_type:
            return source.leaves(0, len(values))[0]
        values = _as_objects(values)
    classes = classes_of(values)
    _check(values, classes, arrow_type, column)
    try:
        (leaf,) = _SOURCES.get(arrow_type.kind, _inferred)(values, arrow_type, classes).leaves(0, len(values))
    except (OverflowError, TypeError, ValueError) as error:  # SchemaError among them
        if isinstance(error, SchemaError):
            error.where["column"] = column
            raise
        raise SchemaError(f"a value does not fit its type, {_named(arrow_type)}: {error}", column=column) from error
    return leaf


def _as_objects(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "mM":
        return np.fromiter(values, object, len(values))
    return values.astype(object)


# Kinds of objects, as `objects.kind_of` names them, that may stand where a type is wanted.
_TAKEN: dict[str, tuple[str, ...]] = {
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


def _check(values: np.ndarray, classes: Classes, arrow_type: ArrowType, column: str) -> None:
    """Refuse objects of a class that the type does not take."""
    taken = _TAKEN.get(arrow_type.kind, ())
    for cls in classes:
        if cls not in _NULLS and kind_of(cls) not in taken and not (cls is float and _all_nan(values)):
            raise SchemaError(f"a value of type {cls.__name__} where there should be {_named(arrow_type)}",
                              column=column)  # fmt: skip


def _all_nan(values: np.ndarray) -> bool:
    """Whether all floats among objects are NaN, and so stand for nulls."""
    return all(value != value for value in values if type(value) is float)


def _any(classes: Classes, *kinds: type) -> bool:
    return any(issubclass(cls, kinds) for cls in classes)


def _named(arrow_type: ArrowType) -> str:
    return f"{arrow_type.kind}{arrow_type.bit_width}" if arrow_type.kind in ("int", "float") else arrow_type.kind


def _whole(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Give floats among integers as integers, which they have to be."""
    with np.errstate(invalid="ignore"):
        found = values.astype(dtype)
    wrong = found.astype(object) != values
    if wrong.any():
        raise SchemaError(f"{values[wrong][0]} is no integer of {8 * dtype.itemsize} bits")
    return found


def _in_range(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Give numbers as floats, none of which may become infinite by that."""
    with np.errstate(over="ignore"):
        found = values.astype(dtype)
    wrong = np.isinf(found)
    wrong[wrong] = found[wrong].astype(object) != values[wrong]
    if wrong.any():
        raise SchemaError(f"{values[wrong][0]} is beyond the range of floats of {8 * dtype.itemsize} bits")
    return found


def _with_integers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Give integers among floats as floats, which have to hold them."""
    found = _in_range(values, dtype)
    for place in np.flatnonzero(np.abs(found) >= _LARGEST_EXACT[dtype.itemsize]).tolist():
        value = values[place]
        if isinstance(value, (int, np.integer)) and (np.isinf(found[place]) or int(found[place]) != int(value)):
            raise SchemaError(f"the integer {value} stands among floats, and is none without loss")
    return found


def _numbers(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    if arrow_type.extension is not None:
        return _inferred(values, arrow_type, classes)
    letter = {"bool": "?", "float": "f", "int": "i" if arrow_type.signed else "u"}[arrow_type.kind]
    dtype = np.dtype(letter if letter == "?" else f"{letter}{arrow_type.bit_width // 8}")
    _, convert = number_converter(dtype)
    exact: Callable[[np.ndarray, np.dtype], np.ndarray] = np.ndarray.astype
    if letter in "iu" and _any(classes, float, np.floating):
        exact = _whole
    elif letter == "f":
        exact = _with_integers if _any(classes, int, np.integer) else _in_range
    width = 2 if dtype == np.float16 else 0
    return object_values.of_objects(arrow_type, values, lambda part: convert(exact(part, dtype)).values, width)


def _timestamps(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    unit = "ms" if arrow_type.unit == "s" else arrow_type.unit

    def convert(part: np.ndarray) -> np.ndarray:
        moments = pd.DatetimeIndex(pd.to_datetime(part, utc=True))
        return _ticks(moments, moments.as_unit(unit))

    return object_values.of_objects(arrow_type, values, convert)


def _durations(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    def convert(part: np.ndarray) -> np.ndarray:
        durations = pd.TimedeltaIndex(pd.to_timedelta(part))
        return _ticks(durations, durations.as_unit(arrow_type.unit))

    return object_values.of_objects(arrow_type, values, convert)


def _ticks(exact: Any, wanted: Any) -> np.ndarray:
    if not (exact == wanted).all():
        raise SchemaError(f"a moment is too fine for {wanted.unit}")
    return wanted.asi8


def _times(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    source = object_values.times(values)
    divisor = {"s": 1000, "ms": 1000, "us": 1, "ns": 1}[arrow_type.unit]

    def leaves(start: int, stop: int) -> list[LeafValues]:
        (leaf,) = source.leaves(start, stop)
        if divisor > 1:
            if (leaf.values % divisor).any():
                raise SchemaError("a time is too fine for milliseconds")
            leaf.values = (leaf.values // divisor).astype(np.int32)
        elif arrow_type.unit == "ns":
            leaf.values = leaf.values * 1000
        return [leaf]

    return Source(arrow_type, leaves)


def _decimals(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    import decimal

    if _any(classes, int, np.integer):
        whole = [decimal.Decimal(int(value)) if isinstance(value, (int, np.integer)) else value for value in values]
        values = np.fromiter(whole, object, len(whole))
    return decimal_source(values, arrow_type)


def _texts(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    if _any(classes, bytes, bytearray, memoryview):
        values = np.fromiter(map(_decoded, values), object, len(values))
    return string_objects(values)


def _decoded(value: Any) -> Any:
    return bytes(value).decode() if isinstance(value, (bytes, bytearray, memoryview)) else value


def _octets(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    if _any(classes, str):
        values = np.fromiter((v.encode() if isinstance(v, str) else v for v in values), object, len(values))
    return bytes_objects(values)


def _fixed_octets(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    width = arrow_type.byte_width

    def convert(part: np.ndarray) -> np.ndarray:
        octets = [bytes(getattr(value, "bytes", value)) for value in part]
        if any(len(value) != width for value in octets):
            raise SchemaError(f"a value is not of {width} bytes")
        return np.frombuffer(b"".join(octets), np.uint8)

    return object_values.of_objects(arrow_type, values, convert, width)


def _inferred(values: np.ndarray, arrow_type: ArrowType, classes: Classes) -> Source:
    """Give the source that objects have by themselves, if it is of the type."""
    source = object_source(values, source_of)
    if source.type == arrow_type:
        return source
    if source.type.kind != "null":
        raise SchemaError(f"values of type {_named(source.type)} where there should be {_named(arrow_type)}")
    return object_values.of_objects(arrow_type, values, lambda part: part.astype(np.int64))


_SOURCES: dict[str, Callable[[np.ndarray, ArrowType, Classes], Source]] = {
    "null": lambda values, arrow_type, classes: object_values.nulls(),
    **dict.fromkeys(_NUMBERS, _numbers),
    "decimal": _decimals,
    "date": lambda values, arrow_type, classes: object_values.dates(values),
    "time": _times,
    "timestamp": _timestamps,
    "duration": _durations,
    **dict.fromkeys(("uuid", "fixed_size_binary"), _fixed_octets),
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), _texts),
    **dict.fromkeys(("binary", "large_binary", "binary_view"), _octets),
}
