"""Spark's schema in the footer (`org.apache.spark.sql.parquet.row.metadata`): write, read, apply."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numparq.format.key_values.spark import ROW_METADATA, VERSION

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

# Rules by which a Spark type refines the type that Parquet stores it as.
_REFINEMENTS: tuple[Callable[[Any, Any, Any], bool], ...] = (
    lambda types, found, told: isinstance(found, types.LongType) and isinstance(told, types.DayTimeIntervalType),
    lambda types, found, told: type(found) is type(told) is types.StringType,  # with a collation
    lambda types, found, told: (
        hasattr(types, "TimeType") and type(found) is type(told) is types.TimeType and told.precision <= found.precision
    ),
)


def spark_key_values(schema: StructType) -> dict[str, str]:
    """Return Spark's footer keys: its schema, and a version that marks the proleptic Gregorian calendar."""
    from pyspark import __version__

    return {ROW_METADATA: schema.json(), VERSION: __version__}


# --- reading Spark's schema -------------------------------------------------------------------------------------------


def read_row_metadata(metadata: Mapping[Any, Any]) -> Mapping[str, StructField]:
    """Return the fields of the schema that Spark wrote, by name; empty if missing or unreadable.

    Keys and values of `metadata` may be str or bytes.
    """
    from pyspark.sql.types import StructType

    text = metadata.get(ROW_METADATA) or metadata.get(ROW_METADATA.encode())
    try:
        fields = StructType.fromJson(_strip_user_types(json.loads(text or ""))).fields
    except Exception:  # only a hint, and untrusted
        return {}
    return {field.name: field for field in fields}


def _strip_user_types(of: Any) -> Any:
    """Replace user-defined types by their storage types; pyspark would import any class that the file names."""
    if isinstance(of, list):
        return [_strip_user_types(each) for each in of]
    if not isinstance(of, dict):
        return of
    if of.get("type") == "udt":
        return _strip_user_types(of["sqlType"])
    return {key: value if key == "metadata" else _strip_user_types(value) for key, value in of.items()}


def refine_type(found: DataType, told: DataType) -> DataType:
    """Return the type that Spark wrote, nullable, where it refines the type found; otherwise the latter."""
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
