"""Infer types of partition columns from directory names, as Spark does."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.discover.files import DatasetListing

__all__ = ["infer_partition_types", "infers_partition_types", "user_partition_types"]

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"

_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")  # as Java spells them
_LIMITS = {"int32": 1 << 31, "int64": 1 << 63}
_DIGITS = {"int32": 10, "int64": 20}  # of the decimals that integers become
_MAX_PRECISION = 38
_NAMES = {
    "StringType": "str",
    "ByteType": "int8",
    "ShortType": "int16",
    "IntegerType": "int32",
    "LongType": "int64",
    "FloatType": "float32",
    "DoubleType": "float64",
    "BooleanType": "bool",
    "DateType": "date",
    "TimestampNTZType": "timestamp[us]",
}


def infers_partition_types(spark: SparkSession) -> bool:
    """Say whether a session infers types of partition columns."""
    return spark.conf.get(_INFERENCE, "true") != "false"


def infer_partition_types(
    listing: DatasetListing, user_types: Mapping[str, Any], schema_types: Mapping[str, str], *, infers: bool = True
) -> dict[str, Any]:
    """Give the types of the partition columns of a table.

    Parameters
    ----------
    listing : DatasetListing
        The files, and what their directories are called.
    user_types : mapping of str to Any
        Types that the caller gives, by column.
    schema_types : mapping of str to str
        Types of a schema of the caller's, which may have other columns as well.
    infers : bool
        Whether the others are inferred; else they are str.

    Returns
    -------
    dict of str to Any
        As the argument ``partitioning`` takes them: int32, int64, a decimal without fractions, float64 or date where
        all values of a column are such ones, else str. Moments are text, for it is a matter of the session's time zone
        which they are.

    Raises
    ------
    ValueError
        When a type is given for no partition column.
    """
    unknown = next((name for name in user_types if name not in listing.keys), None)
    if unknown is not None and listing.keys:
        known = ", ".join(map(repr, listing.keys))
        raise ValueError(
            f"a type is given for the partition column {unknown!r}, and the files are partitioned by {known}"
        )
    divided = listing.files.divided
    there = [divided.partitions[each] for each in np.unique(divided.which).tolist()]
    types: dict[str, Any] = {}
    for place, key in enumerate(listing.keys):
        if key in user_types or key in schema_types:
            types[key] = user_types[key] if key in user_types else schema_types[key]
        else:
            types[key] = _common_type(values[place] for values in there) if infers else "str"
    return types


def user_partition_types(schema: StructType | None) -> dict[str, str]:
    """Give the types that columns of a caller's schema have, as far as partition columns can be of them."""
    fields = [] if schema is None else schema.fields
    names = {field.name: _name(field.dataType) for field in fields}
    return {field: name for field, name in names.items() if name is not None}


def _name(of: Any) -> str | None:
    kind = type(of).__name__
    return f"decimal({of.precision}, {of.scale})" if kind == "DecimalType" else _NAMES.get(kind)


def _common_type(texts: Iterable[str | None]) -> str:
    """Give the type that holds all values; nulls are of any."""
    found: str | None = None
    for text in texts:
        if text is not None:
            kind = _value_type(text)
            found = kind if found is None or found == kind else _wider_type(found, kind)
            if found == "str":
                return found
    return found or "str"


def _value_type(text: str) -> str:
    """Give the type of a value, as far as it can be read as such: Java's ``+5`` and ``1e3`` are text here."""
    if _INTEGER.fullmatch(text):
        number = int(text)
        return next((name for name, limit in _LIMITS.items() if -limit <= number < limit), _integer_type(number))
    if _FLOAT.fullmatch(text):
        _, digits, exponent = Decimal(text).as_tuple()
        if int(exponent) < 0:
            return "float64"
        return "str" if exponent or "e" in text.lower() else _integer_type(int("".join(map(str, digits))))
    if text in _NO_NUMBERS:
        return "float64"
    return "date" if _is_date(text) else "str"


def _integer_type(number: int) -> str:
    """Give the type of a number without a fraction that is no integer of 64 bits."""
    digits = len(str(abs(number)))
    return f"decimal({digits}, 0)" if digits <= _MAX_PRECISION else "float64"


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _wider_type(one: str, other: str) -> str:
    """Give what holds the values of two types, or text. A double holds all of int32, and not all of int64."""
    both = {one, other}
    if both == {"float64", "int32"}:
        return "float64"
    digits = [_DIGITS.get(name) or _precision(name) for name in both]
    if 0 in digits:
        return "str"
    return "int64" if both == set(_DIGITS) else f"decimal({max(digits)}, 0)"


def _precision(name: str) -> int:
    return int(name[len("decimal(") : name.index(",")]) if name.startswith("decimal(") else 0
