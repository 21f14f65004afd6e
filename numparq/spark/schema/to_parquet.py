"""Map Spark's types to Parquet schema nodes, as Spark's own writer does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.errors import SchemaError, UnsupportedError, error_context
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from numparq.types.parquet_type import decimal_byte_width

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

# Maximum digits of decimals stored as INT32 and INT64, and of a second's fraction in microseconds.
_INT32_DIGITS, _INT64_DIGITS, _MICROSECOND_DIGITS = 9, 18, 6


def schema_nodes(schema: StructType) -> list[Any]:
    """Return the columns of a file, for `ParquetWriter`; non-nullable ones are REQUIRED.

    Raises UnsupportedError, with the column, for a type that cannot be written.
    """
    columns = []
    for field in schema.fields:
        with error_context(column=field.name):
            columns.append(_interval(field) or _named_node(field.name, field.dataType, field.nullable))
    return columns


def _interval(field: StructField) -> Any:
    """Return an Arrow duration field for day-time intervals, which Parquet has no type for; None for others."""
    import pyarrow as pa

    if type(field.dataType).__name__ != "DayTimeIntervalType":
        return None
    return pa.field(field.name, pa.duration("us"), field.nullable)


def _named_node(name: str, data_type: DataType, nullable: bool) -> SchemaNode:
    return replace(_node(data_type), name=name, repetition=OPTIONAL if nullable else REQUIRED)


def _node(data_type: DataType) -> SchemaNode:
    """Return the schema node of a type, without name and repetition."""
    make = _RULES.get(type(data_type).__name__)
    if make is not None:
        return make(data_type)
    if hasattr(data_type, "sqlType"):  # a user-defined type
        return _node(data_type.sqlType())
    advice = _ADVICE.get(type(data_type).__name__, "cast it to another type")
    raise UnsupportedError(f"values of Spark's type {data_type.simpleString()} cannot be written: {advice}")


def _leaf(physical: int, logical: LogicalType | None = None, length: int = 0) -> Callable[[Any], SchemaNode]:
    return lambda data_type: SchemaNode("", OPTIONAL, physical, length, logical)


def _decimal(data_type: Any) -> SchemaNode:
    digits = data_type.precision
    logical = LogicalType("DECIMAL", precision=digits, scale=data_type.scale)
    if digits <= _INT64_DIGITS:
        return SchemaNode("", OPTIONAL, INT32 if digits <= _INT32_DIGITS else INT64, 0, logical)
    return SchemaNode("", OPTIONAL, FIXED_LEN_BYTE_ARRAY, decimal_byte_width(digits), logical)


def _time(data_type: Any) -> SchemaNode:
    unit = "NANOS" if data_type.precision > _MICROSECOND_DIGITS else "MICROS"
    return SchemaNode("", OPTIONAL, INT64, 0, LogicalType("TIME", unit=unit, utc=False))


def _array(data_type: Any) -> SchemaNode:
    element = _named_node("element", data_type.elementType, data_type.containsNull)
    return SchemaNode("", logical=LogicalType("LIST"), children=(SchemaNode("list", REPEATED, children=(element,)),))


def _map(data_type: Any) -> SchemaNode:
    key = _named_node("key", data_type.keyType, False)
    value = _named_node("value", data_type.valueType, data_type.valueContainsNull)
    return SchemaNode(
        "", logical=LogicalType("MAP"), children=(SchemaNode("key_value", REPEATED, children=(key, value)),)
    )


def _struct(data_type: Any) -> SchemaNode:
    if not data_type.fields:
        raise SchemaError("a struct without fields cannot be written to Parquet; add a field")
    return SchemaNode(
        "", children=tuple(_named_node(field.name, field.dataType, field.nullable) for field in data_type.fields)
    )


def _variant(data_type: Any) -> SchemaNode:
    parts = tuple(SchemaNode(name, REQUIRED, BYTE_ARRAY) for name in ("value", "metadata"))
    return SchemaNode("", logical=LogicalType("VARIANT"), children=parts)


_STRING = _leaf(BYTE_ARRAY, LogicalType("STRING"))
# By class name, since some classes are missing in older Spark versions.
_RULES: dict[str, Callable[[Any], SchemaNode]] = {
    "BooleanType": _leaf(BOOLEAN),
    "ByteType": _leaf(INT32, LogicalType("INTEGER", bit_width=8, signed=True)),
    "ShortType": _leaf(INT32, LogicalType("INTEGER", bit_width=16, signed=True)),
    "IntegerType": _leaf(INT32),
    "LongType": _leaf(INT64),
    "FloatType": _leaf(FLOAT),
    "DoubleType": _leaf(DOUBLE),
    "DecimalType": _decimal,
    "StringType": _STRING,
    "CharType": _STRING,
    "VarcharType": _STRING,
    "BinaryType": _leaf(BYTE_ARRAY),
    "DateType": _leaf(INT32, LogicalType("DATE")),
    "TimestampType": _leaf(INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=True)),
    "TimestampNTZType": _leaf(INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=False)),
    "TimeType": _time,
    "DayTimeIntervalType": _leaf(INT64),
    "ArrayType": _array,
    "MapType": _map,
    "StructType": _struct,
    "VariantType": _variant,
}
_ADVICE = {
    "NullType": "a column of only nulls needs a type: cast(null as string)",
    "YearMonthIntervalType": "Spark does not pass them to Python: cast(months as int)",
    "CalendarIntervalType": "Parquet has no such type",
    "GeometryType": "write its bytes: st_asbinary(column)",
    "GeographyType": "write its bytes: st_asbinary(column)",
}
