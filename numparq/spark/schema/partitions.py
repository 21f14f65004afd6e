"""Infer types of partition columns from directory names, as Spark does."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.dataset.partitions.types import is_printed_integer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from numparq.dataset.discover.files import DatasetListing

_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"

_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")  # Java's spelling
_LIMITS = {"int32": 1 << 31, "int64": 1 << 63}
_DIGITS = {"int32": 10, "int64": 20}  # digits of an integer as a decimal
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
    """Whether a session infers the types of partition columns."""
    return spark.conf.get(_INFERENCE, "true") != "false"


def infer_partition_types(
    listing: DatasetListing, user_types: Mapping[str, Any], schema_types: Mapping[str, str], *, infers: bool = True
) -> dict[str, Any]:
    """Return the partition column types, for `partitioning`: the user's, the schema's, or inferred from all values.

    Inferred are int32, int64, integral decimals, float64 and date; all else is str. ValueError for unknown columns.
    """
    unknown = next((name for name in user_types if name not in listing.keys), None)
    if unknown is not None and listing.keys:
        known = ", ".join(map(repr, listing.keys))
        raise ValueError(f"partitioning has a type for {unknown!r}, but the files are partitioned by {known}")
    divided = listing.files.partition_index
    there = [divided.partitions[each] for each in np.unique(divided.codes).tolist()]
    types: dict[str, Any] = {}
    for place, key in enumerate(listing.keys):
        if key in user_types or key in schema_types:
            types[key] = user_types[key] if key in user_types else schema_types[key]
        else:
            types[key] = _common_type(values[place] for values in there) if infers else "str"
    return types


def user_partition_types(schema: StructType | None) -> dict[str, str]:
    """Return the types of a user's schema that partition columns can have, by column."""
    fields = [] if schema is None else schema.fields
    names = {field.name: _name(field.dataType) for field in fields}
    return {field: name for field, name in names.items() if name is not None}


def _name(of: Any) -> str | None:
    kind = type(of).__name__
    return f"decimal({of.precision}, {of.scale})" if kind == "DecimalType" else _NAMES.get(kind)


def _common_type(texts: Iterable[str | None]) -> str:
    """Return the narrowest type that holds all values; nulls fit any."""
    found: str | None = None
    for text in texts:
        if text is not None:
            kind = _value_type(text)
            found = kind if found is None or found == kind else _wider_type(found, kind)
            if found == "str":
                return found
    return found or "str"


def _value_type(text: str) -> str:
    """Return the type of a value's text; Java's ``+5`` and ``1e3`` are str, and so is ``01``."""
    if _INTEGER.fullmatch(text):
        if not is_printed_integer(text):  # Spark reads "01" as 1, and so merges it with "1"
            return "str"
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
    """Return the type of an integer beyond 64 bits."""
    digits = len(str(abs(number)))
    return f"decimal({digits}, 0)" if digits <= _MAX_PRECISION else "float64"


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _wider_type(one: str, other: str) -> str:
    """Return the common type of two types, or str; a double holds all of int32, but not of int64."""
    both = {one, other}
    if both == {"float64", "int32"}:
        return "float64"
    digits = [_DIGITS.get(name) or _precision(name) for name in both]
    if 0 in digits:
        return "str"
    return "int64" if both == set(_DIGITS) else f"decimal({max(digits)}, 0)"


def _precision(name: str) -> int:
    return int(name[len("decimal(") : name.index(",")]) if name.startswith("decimal(") else 0
