"""Spark's types of columns, as Spark's own reader infers them, and Arrow's as Spark wants them of a worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..arrow import pyarrow
from ..column.shape import Shape, is_variant, shape_of
from ..errors import SchemaError, UnsupportedError, located
from ..schema import INT96, Leaf, Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructField, StructType

__all__ = ["arrow_for_spark", "is_collated", "is_int96", "spark_schema", "told_columns"]

_ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_MAX_PRECISION = 38
_GEOSPATIAL = {"GEOMETRY": 1, "GEOGRAPHY": 2}  # how many parameters a type has


def arrow_for_spark(schema: StructType) -> pa.Schema:
    """Give the schema that record batches must have which a Python worker hands to Spark.

    Parameters
    ----------
    schema : pyspark.sql.types.StructType
        The columns.

    Returns
    -------
    pyarrow.Schema
        Strings and bytes with 32-bit offsets, timestamps in microseconds (instants in UTC), times in nanoseconds.

    Raises
    ------
    pyspark.errors.PySparkTypeError
        When Spark has no Arrow form of a type.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def spark_schema(of: Any) -> StructType:
    """Give Spark's types of columns: those that ``spark.read.parquet`` infers of the same files.

    Parameters
    ----------
    of : SplitTable or pyarrow.Schema
        The columns. Of a schema of Arrow alone it is not known which timestamps are INT96, nor which structs VARIANTs.

    Returns
    -------
    pyspark.sql.types.StructType
        All of it nullable, as Spark has what it reads of files.

    Raises
    ------
    UnsupportedError
        When Spark has no type for the values: decimals of more than 38 digits. It names the column.

    Notes
    -----
    What Spark itself refuses to read has a type here: FLOAT16 is float, UUID string, a TIME in milliseconds time(3), a
    TIMESTAMP in nanoseconds timestamp or timestamp_ntz. What a schema of Arrow in the footer says besides the
    format's types is left aside, as Spark does, so that durations are the numbers that are stored. A schema of Spark in
    the footer is followed where it says more than the format has: intervals of days, times of a precision, collations.
    """
    from pyspark.sql.types import StructField, StructType

    pa = pyarrow("numparq.spark needs")
    arrow, schema = (of, None) if isinstance(of, pa.Schema) else (of.arrow_schema, of.schema)
    told = told_columns(arrow.metadata or {})
    fields = []
    for field in arrow:
        with located(column=field.name):
            found = spark_type(field.type, _shape(schema, field.name))
        known = told.get(field.name)
        if known is None:
            fields.append(StructField(field.name, found, True))
        else:
            fields.append(StructField(field.name, _agreed(found, known.dataType), True, known.metadata))
    return StructType(fields)


def spark_type(arrow_type: pa.DataType, shape: Shape | None = None) -> DataType:
    """Give Spark's type of values.

    Parameters
    ----------
    arrow_type : pyarrow.DataType
        As what they are decoded.
    shape : Shape, optional
        What they are in the file.

    Raises
    ------
    UnsupportedError
        When there is none.
    """
    from pyspark.sql import types

    pa = pyarrow("numparq.spark needs")
    if shape is not None and shape.leaf is not None and shape.leaf.physical == INT96:
        return types.TimestampType()
    if shape is not None and is_variant(shape):
        return types.VariantType()
    if isinstance(arrow_type, pa.BaseExtensionType):
        is_uuid = arrow_type.extension_name == "arrow.uuid"
        return types.StringType() if is_uuid else spark_type(arrow_type.storage_type, shape)
    if shape is not None and shape.leaf is not None and _kind(shape.leaf) == "ENUM":
        return types.StringType()
    geospatial = _geospatial(shape)
    if geospatial is not None:
        return geospatial
    make = _makers().get(arrow_type.id)
    if make is None:
        raise UnsupportedError(f"Spark has no type for values of {arrow_type}")
    return make(arrow_type, shape)


def _shape(schema: Schema | None, name: str) -> Shape | None:
    """Give the tree of a column of files, also of a field of a struct by its dotted name; None of any other."""
    if schema is None:
        return None
    if name in schema.positions:
        return shape_of(schema, schema.positions[name])
    top, *inner = name.split(".")
    if top not in schema.positions:
        return None
    shape: Shape | None = shape_of(schema, schema.positions[top])
    for part in inner:
        shape = next((child for child in shape.children if child.name == part), None) if shape is not None else None
    return shape


def is_int96(schema: Schema, name: Any) -> bool:
    """Whether a column of files is of INT96: instants to Spark, of which numparq knows no zone."""
    from ..predicate.columns import find

    try:
        return find(schema, name).leaf.physical == INT96
    except SchemaError:
        return False  # a partition column, or none at all


# --- of Arrow's types -------------------------------------------------------------------------------------------------


def _makers() -> Mapping[int, Callable[[Any, Shape | None], DataType]]:
    """Give what makes Spark's type, by the id of Arrow's."""
    from pyspark.sql import types

    ids = pyarrow("numparq.spark needs").lib
    simple = {
        "BOOL": types.BooleanType(), "INT8": types.ByteType(), "INT16": types.ShortType(), "INT32": types.IntegerType(),
        "INT64": types.LongType(), "UINT8": types.ShortType(), "UINT16": types.IntegerType(),
        "UINT32": types.LongType(), "UINT64": types.DecimalType(20, 0), "HALF_FLOAT": types.FloatType(),
        "FLOAT": types.FloatType(), "DOUBLE": types.DoubleType(), "DATE32": types.DateType(),
        "DURATION": types.LongType(), "NA": types.IntegerType(),
        **dict.fromkeys(("STRING", "LARGE_STRING", "STRING_VIEW"), types.StringType()),
        **dict.fromkeys(("BINARY", "LARGE_BINARY", "BINARY_VIEW", "FIXED_SIZE_BINARY"), types.BinaryType()),
    }  # fmt: skip
    composed: dict[str, Callable[[Any, Shape | None], DataType]] = {
        **dict.fromkeys(("DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256"), _decimal),
        **dict.fromkeys(("TIME32", "TIME64"), _time),
        **dict.fromkeys(("LIST", "LARGE_LIST", "FIXED_SIZE_LIST", "LIST_VIEW", "LARGE_LIST_VIEW"), _list),
        "TIMESTAMP": lambda of, shape: types.TimestampNTZType() if of.tz is None else types.TimestampType(),
        "DICTIONARY": lambda of, shape: spark_type(of.value_type, shape),
        "STRUCT": _struct, "MAP": _map,
    }  # fmt: skip
    made = {getattr(ids, f"Type_{name}"): _always(of) for name, of in simple.items()}
    return made | {
        getattr(ids, f"Type_{name}"): make for name, make in composed.items() if hasattr(ids, f"Type_{name}")
    }


def _always(of: DataType) -> Callable[[Any, Shape | None], DataType]:
    return lambda arrow_type, shape: of


def _decimal(of: Any, shape: Shape | None) -> DataType:
    from pyspark.sql.types import DecimalType

    if of.precision > _MAX_PRECISION or not 0 <= of.scale <= of.precision:
        raise UnsupportedError(f"Spark has no DECIMAL({of.precision}, {of.scale})")
    return DecimalType(of.precision, of.scale)


def _time(of: Any, shape: Shape | None) -> DataType:
    from pyspark.sql import types

    if not hasattr(types, "TimeType"):
        raise UnsupportedError("this version of Spark has no type for the time of a day")
    return types.TimeType(_DIGITS[of.unit])


def _list(of: Any, shape: Shape | None) -> DataType:
    from pyspark.sql.types import ArrayType

    (element,) = _inner(shape, "list", 1)
    return ArrayType(spark_type(of.value_type, element), True)


def _map(of: Any, shape: Shape | None) -> DataType:
    from pyspark.sql.types import MapType

    key, value = _inner(shape, "map", 2)
    return MapType(spark_type(of.key_type, key), spark_type(of.item_type, value), True)


def _struct(of: Any, shape: Shape | None) -> DataType:
    from pyspark.sql.types import StructField, StructType

    fields, inner = list(of), _inner(shape, "struct", of.num_fields)
    return StructType([StructField(f.name, spark_type(f.type, i), True) for f, i in zip(fields, inner, strict=True)])


def _kind(leaf: Leaf) -> str | None:
    return leaf.logical.kind if leaf.logical is not None else None


def _geospatial(shape: Shape | None) -> DataType | None:
    """Give the type of a GEOMETRY or GEOGRAPHY; None of others, and of those whose coordinates Spark does not know."""
    from pyspark.sql.types import StructType

    logical = shape.leaf.logical if shape is not None and shape.leaf is not None else None
    if logical is None or logical.kind not in _GEOSPATIAL:
        return None
    crs = (logical.crs or "OGC:CRS84", (logical.algorithm or "spherical").upper())[: _GEOSPATIAL[logical.kind]]
    text = f"{logical.kind.lower()}({', '.join(crs)})"
    field = {"name": "", "type": text, "nullable": True, "metadata": {}}
    try:
        return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType
    except Exception:  # a text from a file, and a version of Spark that may have no such types
        return None


def _inner(shape: Shape | None, kind: str, count: int) -> tuple[Shape | None, ...]:
    """Give what is in a node of a tree; not known where the tree is another one than Arrow's."""
    if shape is None or shape.kind != kind or len(shape.children) != count:
        return (None,) * count
    return shape.children


# --- what Spark wrote of its types ------------------------------------------------------------------------------------


def told_columns(metadata: Mapping[Any, Any]) -> Mapping[str, StructField]:
    """Give the columns that Spark described when it wrote files, by name; none where this cannot be read.

    Parameters
    ----------
    metadata : mapping
        Keys and values of the footer, as str or bytes.
    """
    from pyspark.sql.types import StructType

    text = metadata.get(_ROW_METADATA) or metadata.get(_ROW_METADATA.encode())
    try:
        fields = StructType.fromJson(_without_classes(json.loads(text or ""))).fields
    except Exception:  # a hint from a file: whatever is wrong in it
        return {}
    return {field.name: field for field in fields}


def is_collated(of: DataType) -> bool:
    """Whether strings of a type are equal by something else than their bytes."""
    return getattr(of, "collation", None) not in ("UTF8_BINARY", None)


def _without_classes(of: Any) -> Any:
    """Leave out user-defined types, for which pyspark would import whatever class the file names."""
    if isinstance(of, list):
        return [_without_classes(each) for each in of]
    if not isinstance(of, dict):
        return of
    if of.get("type") == "udt":
        return _without_classes(of["sqlType"])
    return {key: value if key == "metadata" else _without_classes(value) for key, value in of.items()}


def _agreed(found: DataType, told: DataType) -> DataType:
    """Give the type that Spark wrote, nullable, as far as values of the type that was found are values of it."""
    from pyspark.sql import types

    if isinstance(found, types.ArrayType) and isinstance(told, types.ArrayType):
        return types.ArrayType(_agreed(found.elementType, told.elementType), True)
    if isinstance(found, types.MapType) and isinstance(told, types.MapType):
        return types.MapType(_agreed(found.keyType, told.keyType), _agreed(found.valueType, told.valueType), True)
    if isinstance(found, types.StructType) and isinstance(told, types.StructType):
        known = {field.name: field for field in told.fields}
        fields = []
        for field in found.fields:
            if field.name in known:
                said = known[field.name]
                field = types.StructField(field.name, _agreed(field.dataType, said.dataType), True, said.metadata)
            fields.append(field)
        return types.StructType(fields)
    return told if any(rule(types, found, told) for rule in _SAID_BY_SPARK) else found


# Types that Spark has and the format does not: what they are stored as.
_SAID_BY_SPARK: tuple[Callable[[Any, Any, Any], bool], ...] = (
    lambda types, found, told: isinstance(found, types.LongType) and isinstance(told, types.DayTimeIntervalType),
    lambda types, found, told: type(found) is type(told) is types.StringType,  # of a collation
    lambda types, found, told: hasattr(types, "TimeType") and type(found) is type(told) is types.TimeType
    and told.precision <= found.precision,
)  # fmt: skip
