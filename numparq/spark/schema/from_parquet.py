"""Infer Spark's types from Parquet and Arrow types, as Spark's own reader does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numparq.column.nested.nested_type import NestedType, is_variant, resolve_nested_type
from numparq.errors import UnsupportedError, error_context
from numparq.format.schema import Leaf, Schema
from numparq.util.optional import import_pyarrow

from .row_metadata import read_row_metadata, refine_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_MAX_PRECISION = 38
_GEOSPATIAL = {"GEOMETRY": 1, "GEOGRAPHY": 2}  # number of parameters


def spark_schema(of: Any) -> StructType:
    """Return the nullable Spark schema that ``spark.read.parquet`` infers of the same files.

    Types that Spark refuses are mapped as well: FLOAT16 to float, UUID to string, TIME(MILLIS) to time(3), nanosecond
    timestamps to timestamp or timestamp_ntz. Like Spark, it ignores ``ARROW:schema`` (durations are integers) and
    follows Spark's own schema where that says more (intervals, times, collations). An Arrow schema alone does not show
    VARIANT. Raises UnsupportedError, with the column, if no type fits (decimals of more than 38 digits).
    """
    from pyspark.sql.types import StructField, StructType

    pa = import_pyarrow("numparq.spark needs")
    arrow, schema = (of, None) if isinstance(of, pa.Schema) else (of.arrow_schema, of.schema)
    told = read_row_metadata(arrow.metadata or {})
    fields = []
    for field in arrow:
        with error_context(column=field.name):
            found = spark_type(field.type, _nested_type(schema, field.name))
        known = told.get(field.name)
        if known is None:
            fields.append(StructField(field.name, found, True))
        else:
            fields.append(StructField(field.name, refine_type(found, known.dataType), True, known.metadata))
    return StructType(fields)


def spark_type(arrow_type: pa.DataType, nested_type: NestedType | None = None) -> DataType:
    """Return Spark's type of an Arrow type, given the type in the file; UnsupportedError if there is none."""
    from pyspark.sql import types

    pa = import_pyarrow("numparq.spark needs")
    if nested_type is not None and is_variant(nested_type):
        return types.VariantType()
    if isinstance(arrow_type, pa.BaseExtensionType):
        is_uuid = arrow_type.extension_name == "arrow.uuid"
        return types.StringType() if is_uuid else spark_type(arrow_type.storage_type, nested_type)
    if nested_type is not None and nested_type.leaf is not None and _kind(nested_type.leaf) == "ENUM":
        return types.StringType()
    geospatial = _geospatial(nested_type)
    if geospatial is not None:
        return geospatial
    make = _type_builders().get(arrow_type.id)
    if make is None:
        raise UnsupportedError(f"Spark has no type for Arrow type {arrow_type}")
    return make(arrow_type, nested_type)


def _nested_type(schema: Schema | None, name: str) -> NestedType | None:
    """Return the nested type of a column, or of a struct field by its dotted name; None if not in the file."""
    if schema is None:
        return None
    if name in schema.positions:
        return resolve_nested_type(schema, schema.positions[name])
    top, *inner = name.split(".")
    if top not in schema.positions:
        return None
    shape: NestedType | None = resolve_nested_type(schema, schema.positions[top])
    for part in inner:
        shape = next((child for child in shape.children if child.name == part), None) if shape is not None else None
    return shape


# --- builders by Arrow type -------------------------------------------------------------------------------------------


def _type_builders() -> Mapping[int, Callable[[Any, NestedType | None], DataType]]:
    """Return the builders of Spark types, by Arrow type id."""
    from pyspark.sql import types

    ids = import_pyarrow("numparq.spark needs").lib
    simple = {
        "BOOL": types.BooleanType(),
        "INT8": types.ByteType(),
        "INT16": types.ShortType(),
        "INT32": types.IntegerType(),
        "INT64": types.LongType(),
        "UINT8": types.ShortType(),
        "UINT16": types.IntegerType(),
        "UINT32": types.LongType(),
        "UINT64": types.DecimalType(20, 0),
        "HALF_FLOAT": types.FloatType(),
        "FLOAT": types.FloatType(),
        "DOUBLE": types.DoubleType(),
        "DATE32": types.DateType(),
        "DURATION": types.LongType(),
        "NA": types.IntegerType(),
        **dict.fromkeys(("STRING", "LARGE_STRING", "STRING_VIEW"), types.StringType()),
        **dict.fromkeys(("BINARY", "LARGE_BINARY", "BINARY_VIEW", "FIXED_SIZE_BINARY"), types.BinaryType()),
    }
    composed: dict[str, Callable[[Any, NestedType | None], DataType]] = {
        **dict.fromkeys(("DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256"), _decimal),
        **dict.fromkeys(("TIME32", "TIME64"), _time),
        **dict.fromkeys(("LIST", "LARGE_LIST", "FIXED_SIZE_LIST", "LIST_VIEW", "LARGE_LIST_VIEW"), _list),
        "TIMESTAMP": lambda of, shape: types.TimestampNTZType() if of.tz is None else types.TimestampType(),
        "DICTIONARY": lambda of, shape: spark_type(of.value_type, shape),
        "STRUCT": _struct,
        "MAP": _map,
    }
    made = {getattr(ids, f"Type_{name}"): _constant(of) for name, of in simple.items()}
    return made | {
        getattr(ids, f"Type_{name}"): make for name, make in composed.items() if hasattr(ids, f"Type_{name}")
    }


def _constant(of: DataType) -> Callable[[Any, NestedType | None], DataType]:
    return lambda arrow_type, shape: of


def _decimal(of: Any, nested_type: NestedType | None) -> DataType:
    from pyspark.sql.types import DecimalType

    if of.precision > _MAX_PRECISION or not 0 <= of.scale <= of.precision:
        raise UnsupportedError(
            f"Spark does not support DECIMAL({of.precision}, {of.scale}): it allows {_MAX_PRECISION} digits"
        )
    return DecimalType(of.precision, of.scale)


def _time(of: Any, nested_type: NestedType | None) -> DataType:
    from pyspark.sql import types

    if not hasattr(types, "TimeType"):
        raise UnsupportedError("this version of Spark has no type for the time of a day")
    return types.TimeType(_DIGITS[of.unit])


def _list(of: Any, nested_type: NestedType | None) -> DataType:
    from pyspark.sql.types import ArrayType

    (element,) = _child_types(nested_type, "list", 1)
    return ArrayType(spark_type(of.value_type, element), True)


def _map(of: Any, nested_type: NestedType | None) -> DataType:
    from pyspark.sql.types import MapType

    key, value = _child_types(nested_type, "map", 2)
    return MapType(spark_type(of.key_type, key), spark_type(of.item_type, value), True)


def _struct(of: Any, nested_type: NestedType | None) -> DataType:
    from pyspark.sql.types import StructField, StructType

    fields, inner = list(of), _child_types(nested_type, "struct", of.num_fields)
    return StructType([StructField(f.name, spark_type(f.type, i), True) for f, i in zip(fields, inner, strict=True)])


def _kind(leaf: Leaf) -> str | None:
    return leaf.logical.kind if leaf.logical is not None else None


def _geospatial(nested_type: NestedType | None) -> DataType | None:
    """Return the type of GEOMETRY or GEOGRAPHY; None for others, and for a CRS unknown to Spark."""
    from pyspark.sql.types import StructType

    logical = nested_type.leaf.logical if nested_type is not None and nested_type.leaf is not None else None
    if logical is None or logical.kind not in _GEOSPATIAL:
        return None
    crs = (logical.crs or "OGC:CRS84", (logical.algorithm or "spherical").upper())[: _GEOSPATIAL[logical.kind]]
    text = f"{logical.kind.lower()}({', '.join(crs)})"
    field = {"name": "", "type": text, "nullable": True, "metadata": {}}
    try:
        return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType
    except Exception:  # untrusted text, or a Spark version without these types
        return None


def _child_types(nested_type: NestedType | None, kind: str, count: int) -> tuple[NestedType | None, ...]:
    """Return the child types of a node; Nones if the file's tree differs from Arrow's."""
    if nested_type is None or nested_type.kind != kind or len(nested_type.children) != count:
        return (None,) * count
    return nested_type.children
