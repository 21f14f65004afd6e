"""Spark's schema in the footer (`org.apache.spark.sql.parquet.row.metadata`): write, read, apply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numparq.format.key_values.spark import ROW_METADATA, VERSION

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

__all__ = ["read_row_metadata", "spark_key_values"]

# Types that Spark has and the format does not: what they are stored as.
_REFINEMENTS: tuple[Callable[[Any, Any, Any], bool], ...] = (
    lambda types, found, told: isinstance(found, types.LongType) and isinstance(told, types.DayTimeIntervalType),
    lambda types, found, told: type(found) is type(told) is types.StringType,  # of a collation
    lambda types, found, told: (
        hasattr(types, "TimeType") and type(found) is type(told) is types.TimeType and told.precision <= found.precision
    ),
)


def spark_key_values(schema: StructType) -> dict[str, str]:
    """Give what a footer has to say to Spark.

    Parameters
    ----------
    schema : pyspark.sql.types.StructType
        The columns of the file.

    Returns
    -------
    dict of str to str
        Spark's own description of the columns, for what the format has no word for, and a version, by which Spark
        knows that dates and timestamps are those of the proleptic Gregorian calendar.
    """
    from pyspark import __version__

    return {ROW_METADATA: schema.json(), VERSION: __version__}


# --- what Spark wrote of its types ------------------------------------------------------------------------------------


def read_row_metadata(metadata: Mapping[Any, Any]) -> Mapping[str, StructField]:
    """Give the columns that Spark described when it wrote files, by name; none where this cannot be read.

    Parameters
    ----------
    metadata : mapping
        Keys and values of the footer, as str or bytes.
    """
    from pyspark.sql.types import StructType

    text = metadata.get(ROW_METADATA) or metadata.get(ROW_METADATA.encode())
    try:
        fields = StructType.fromJson(_strip_user_types(json.loads(text or ""))).fields
    except Exception:  # a hint from a file: whatever is wrong in it
        return {}
    return {field.name: field for field in fields}


def _strip_user_types(of: Any) -> Any:
    """Leave out user-defined types, for which pyspark would import whatever class the file names."""
    if isinstance(of, list):
        return [_strip_user_types(each) for each in of]
    if not isinstance(of, dict):
        return of
    if of.get("type") == "udt":
        return _strip_user_types(of["sqlType"])
    return {key: value if key == "metadata" else _strip_user_types(value) for key, value in of.items()}


def refine_type(found: DataType, told: DataType) -> DataType:
    """Give the type that Spark wrote, nullable, as far as values of the type that was found are values of it."""
    from pyspark.sql import types

    if isinstance(found, types.ArrayType) and isinstance(told, types.ArrayType):
        return types.ArrayType(refine_type(found.elementType, told.elementType), True)
    if isinstance(found, types.MapType) and isinstance(told, types.MapType):
        return types.MapType(
            refine_type(found.keyType, told.keyType), refine_type(found.valueType, told.valueType), True
        )
    if isinstance(found, types.StructType) and isinstance(told, types.StructType):
        known = {field.name: field for field in told.fields}
        fields = []
        for field in found.fields:
            if field.name in known:
                said = known[field.name]
                field = types.StructField(field.name, refine_type(field.dataType, said.dataType), True, said.metadata)
            fields.append(field)
        return types.StructType(fields)
    return told if any(rule(types, found, told) for rule in _REFINEMENTS) else found
