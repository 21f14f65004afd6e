"""Types of partition columns as Spark infers them of the names of directories."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ..dataset.files import Listing

__all__ = ["partition_types", "types_asked_for"]

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGERS = {"int32": 1 << 31, "int64": 1 << 63}
# What two types are together; what is not here is text. A double holds all of int32, and not all of int64.
_WIDER = {("int32", "int64"): "int64", ("float64", "int32"): "float64"}
_NAMES = {
    "StringType": "str", "ByteType": "int8", "ShortType": "int16", "IntegerType": "int32", "LongType": "int64",
    "FloatType": "float32", "DoubleType": "float64", "BooleanType": "bool", "DateType": "date",
    "TimestampNTZType": "timestamp[us]",
}  # fmt: skip


def partition_types(listing: Listing, given: Mapping[str, Any]) -> dict[str, Any]:
    """Give the types of the partition columns of a table.

    Parameters
    ----------
    listing : Listing
        The files, and what their directories are called.
    given : mapping of str to Any
        Types that the caller gives, by column.

    Returns
    -------
    dict of str to Any
        As the argument ``partitioning`` takes them: int32, int64, float64 or date where all values of a column are
        such ones, else str. Moments are text, for it is a matter of the session's time zone which they are.
    """
    divided = listing.files.divided
    there = [divided.partitions[each] for each in np.unique(divided.which).tolist()]
    types: dict[str, Any] = {}
    for place, key in enumerate(listing.keys):
        types[key] = given[key] if key in given else _common(values[place] for values in there)
    return types


def types_asked_for(schema: StructType | None) -> dict[str, str]:
    """Give the types that columns of a caller's schema have, as far as partition columns can be of them."""
    fields = [] if schema is None else schema.fields
    names = {field.name: _NAMES.get(type(field.dataType).__name__) for field in fields}
    return {field: name for field, name in names.items() if name is not None}


def _common(texts: Iterable[str | None]) -> str:
    """Give the type that holds all values; nulls are of any."""
    found: str | None = None
    for text in texts:
        if text is None:
            continue
        kind = _kind(text)
        if found is not None and kind != found:
            first, second = sorted((found, kind))
            kind = _WIDER.get((first, second), "str")
        if kind == "str":
            return "str"
        found = kind
    return found or "str"


def _kind(text: str) -> str:
    if _INTEGER.fullmatch(text):
        number = int(text)
        for name, limit in _INTEGERS.items():
            if -limit <= number < limit:
                return name
        return "str"
    if _FLOAT.fullmatch(text):  # without digits behind the point it is a decimal to Spark, and text here
        return "float64" if int(Decimal(text).as_tuple().exponent) < 0 else "str"
    if _DATE.fullmatch(text):
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            return "str"
        return "date"
    return "str"
