"""SchemaElements of schema nodes: read back, compared with pyarrow's, and read by pyarrow."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq.errors import SchemaError
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.tail import read_footer
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED, Schema
from numparq.format.schema_node import SchemaNode, to_schema_elements
from numparq.io.local_source import BytesSource
from support.files.schema_only_files import build_empty_file, encode_footer


def read_back(columns: list[SchemaNode]) -> Schema:
    data = np.frombuffer(encode_footer(columns), np.uint8)
    return Schema(Footer(data, len(data)))


def leaf(physical: int, logical: LogicalType | None = None, length: int = 0, name: str = "a", **more) -> SchemaNode:
    return SchemaNode(name, physical=physical, type_length=length, logical=logical, **more)


def integer(bits: int, signed: bool) -> LogicalType:
    return LogicalType("INTEGER", bit_width=bits, signed=signed)


def decimal(precision: int, scale: int) -> LogicalType:
    return LogicalType("DECIMAL", precision=precision, scale=scale)


def temporal(kind: str, unit: str, utc: bool) -> LogicalType:
    return LogicalType(kind, unit=unit, utc=utc)


LIST_OF_INT = SchemaNode(
    "a", logical=LogicalType("LIST"), children=(SchemaNode("list", REPEATED, children=(leaf(INT64, name="element"),)),)
)
MAP = SchemaNode(
    "a",
    logical=LogicalType("MAP"),
    children=(
        SchemaNode(
            "key_value",
            REPEATED,
            children=(
                leaf(BYTE_ARRAY, LogicalType("STRING"), name="key", repetition=REQUIRED),
                leaf(INT32, name="value"),
            ),
        ),
    ),
)

# A node, and the pyarrow type that has the same elements.
AS_PYARROW = [
    (leaf(BOOLEAN), pa.bool_()),
    (leaf(INT32), pa.int32()),
    (leaf(INT64), pa.int64()),
    (leaf(FLOAT), pa.float32()),
    (leaf(DOUBLE), pa.float64()),
    (leaf(BYTE_ARRAY), pa.binary()),
    (leaf(FIXED_LEN_BYTE_ARRAY, length=5), pa.binary(5)),
    (leaf(BYTE_ARRAY, LogicalType("STRING")), pa.string()),
    (leaf(BYTE_ARRAY, LogicalType("JSON")), pa.json_()),
    (leaf(FIXED_LEN_BYTE_ARRAY, LogicalType("UUID"), 16), pa.uuid()),
    (leaf(INT32, LogicalType("DATE")), pa.date32()),
    (leaf(FIXED_LEN_BYTE_ARRAY, LogicalType("FLOAT16"), 2), pa.float16()),
    (leaf(INT32, integer(8, True)), pa.int8()),
    (leaf(INT32, LogicalType("UNKNOWN")), pa.null()),
    (leaf(INT32, integer(16, True)), pa.int16()),
    (leaf(INT32, integer(8, False)), pa.uint8()),
    (leaf(INT32, integer(16, False)), pa.uint16()),
    (leaf(INT32, integer(32, False)), pa.uint32()),
    (leaf(INT64, integer(64, False)), pa.uint64()),
    (leaf(FIXED_LEN_BYTE_ARRAY, decimal(20, 3), 9), pa.decimal128(20, 3)),
    (leaf(FIXED_LEN_BYTE_ARRAY, decimal(5, 0), 3), pa.decimal128(5, 0)),
    (leaf(FIXED_LEN_BYTE_ARRAY, decimal(76, 76), 32), pa.decimal256(76, 76)),
    *(
        (leaf(INT64, temporal("TIMESTAMP", unit, utc)), pa.timestamp(short, "UTC" if utc else None))
        for unit, short in (("MILLIS", "ms"), ("MICROS", "us"), ("NANOS", "ns"))
        for utc in (False, True)
    ),
    (leaf(INT64, temporal("TIME", "NANOS", False)), pa.time64("ns")),
    (LIST_OF_INT, pa.list_(pa.int64())),
    (MAP, pa.map_(pa.string(), pa.int32())),
    (
        SchemaNode("a", children=(leaf(INT32, name="x"), leaf(FLOAT, name="y"))),
        pa.struct({"x": pa.int32(), "y": pa.float32()}),
    ),
]


def pyarrow_elements(kind: pa.DataType, nullable: bool = True) -> list[dict]:
    buffer = io.BytesIO()
    pq.write_table(pa.schema([pa.field("a", kind, nullable)]).empty_table(), buffer, store_schema=False)
    footer, _ = read_footer(BytesSource(buffer.getvalue()))
    elements = footer.record.to_dict()["schema"]
    elements[0].pop("repetition_type")  # the root has none, by the specification
    return elements


def node_id(value: object) -> str:
    return "" if isinstance(value, SchemaNode) else str(value)


@pytest.mark.parametrize(("node", "kind"), AS_PYARROW, ids=node_id)
def test_elements_equal_pyarrow(node, kind):
    ours = [
        {name: value for name, value in element.items() if value is not None} for element in to_schema_elements([node])
    ]
    assert ours == pyarrow_elements(kind)
    pq.read_table(io.BytesIO(build_empty_file([node])))  # does not raise


# The converted type of each logical type, or None.
CONVERTED = [
    (leaf(INT32, temporal("TIME", "MILLIS", True)), 7),
    (leaf(INT32, temporal("TIME", "MILLIS", False)), 7),
    (leaf(INT64, temporal("TIME", "MICROS", True)), 8),
    (leaf(INT64, temporal("TIME", "MICROS", False)), 8),
    (leaf(INT64, temporal("TIME", "NANOS", True)), None),
    (leaf(INT64, temporal("TIMESTAMP", "NANOS", False)), None),
    (leaf(INT64, temporal("TIMESTAMP", "MILLIS", False)), 9),
    (leaf(INT64, temporal("TIMESTAMP", "MICROS", False)), 10),
    (leaf(INT32, integer(32, True)), 17),
    (leaf(INT64, integer(64, True)), 18),
    (leaf(BYTE_ARRAY, LogicalType("ENUM")), 4),
    (leaf(BYTE_ARRAY, LogicalType("BSON")), 20),
    (leaf(INT32, decimal(9, 9)), 5),
    (leaf(INT64, decimal(18, 0)), 5),
    (leaf(BYTE_ARRAY, decimal(76, 7)), 5),
    (leaf(BYTE_ARRAY, LogicalType("GEOMETRY", crs="OGC:CRS84")), None),
    (leaf(BYTE_ARRAY, LogicalType("GEOMETRY")), None),
    (leaf(BYTE_ARRAY, LogicalType("GEOGRAPHY")), None),
    (leaf(BYTE_ARRAY, LogicalType("GEOGRAPHY", crs="srid:4326", algorithm="KARNEY")), None),
    (leaf(FIXED_LEN_BYTE_ARRAY, LogicalType("INTERVAL"), 12), 21),
    (leaf(INT96), None),
    (leaf(DOUBLE, LogicalType("UNKNOWN")), None),
]


@pytest.mark.parametrize(("node", "converted"), CONVERTED, ids=lambda value: str(getattr(value, "logical", "")))
def test_converted_types(node, converted):
    element = to_schema_elements([node])[1]
    assert element.get("converted_type") == converted
    assert ("logicalType" in element) == (node.logical is not None and node.logical.kind != "INTERVAL")
    found = read_back([node]).leaf(0)
    assert (found.logical, found.physical) == (node.logical, node.physical)
    assert found.type_length == (node.type_length or None)
    pq.read_metadata(io.BytesIO(build_empty_file([node])))  # does not raise


def test_decimal_precision_and_scale_are_in_the_element():
    element = to_schema_elements([leaf(INT32, decimal(7, 2))])[1]
    assert (element["precision"], element["scale"]) == (7, 2)
    assert element["logicalType"] == {"DECIMAL": {"precision": 7, "scale": 2}}


def test_variant_groups():
    node = SchemaNode(
        "v",
        logical=LogicalType("VARIANT"),
        children=(leaf(BYTE_ARRAY, name="metadata", repetition=REQUIRED), leaf(BYTE_ARRAY, name="value")),
    )
    elements = to_schema_elements([node])
    assert elements[1]["logicalType"] == {"VARIANT": {"specification_version": 1}}
    assert "optional group v (VARIANT)" in str(read_back([node]))
    assert pq.read_metadata(io.BytesIO(build_empty_file([node]))).num_columns == 2


def test_elements_are_in_depth_first_order():
    deep = SchemaNode(
        "d", children=(leaf(INT32, name="x"), SchemaNode("e", REPEATED, children=(leaf(FLOAT, name="y", field_id=7),)))
    )
    columns = [leaf(INT64, repetition=REQUIRED, field_id=0), deep, leaf(BOOLEAN, name="a")]
    elements = to_schema_elements(columns)
    assert [element["name"] for element in elements] == ["schema", "a", "d", "x", "e", "y", "a"]
    assert [element.get("num_children") for element in elements] == [3, None, 2, None, 1, None, None]
    assert [element.get("field_id") for element in elements] == [None, 0, None, None, None, 7, None]
    assert "repetition_type" not in elements[0]
    assert "type" not in elements[2]
    schema = read_back(columns)
    assert [item.path for item in schema] == [("a",), ("d", "x"), ("d", "e", "y"), ("a",)]
    assert [item.max_repetition_level for item in schema] == [0, 0, 1, 0]
    assert pq.read_schema(io.BytesIO(build_empty_file(columns))).names == ["a", "d", "a"]


def test_no_columns():
    assert to_schema_elements([]) == [{"name": "schema", "num_children": 0}]
    assert pq.read_schema(io.BytesIO(build_empty_file([]))).names == []


def test_maximum_depth():
    node = leaf(INT32, name="x")
    for _ in range(250):
        node = SchemaNode("g", OPTIONAL, children=(node,))
    assert read_back([node]).leaf(0).max_definition_level == 251


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (SchemaNode("g"), "a group without fields"),
        (leaf(INT32, repetition=3), "repetition type 3 is unknown"),
        (leaf(9), "physical type 9 is unknown"),
        (SchemaNode("a", physical=INT32, children=(leaf(INT32),)), "both a physical type and fields"),
        (leaf(FIXED_LEN_BYTE_ARRAY), "type_length of at least 1"),
        (leaf(INT32, LogicalType("STRING")), "STRING needs BYTE_ARRAY, not INT32"),
        (leaf(INT32, LogicalType("LIST")), "LIST can only annotate a group"),
        (SchemaNode("a", logical=LogicalType("DATE"), children=(leaf(INT32),)), "DATE cannot annotate a group"),
        (leaf(FIXED_LEN_BYTE_ARRAY, LogicalType("UUID"), 15), "UUID needs FIXED_LEN_BYTE_ARRAY of length 16"),
        (leaf(INT64, LogicalType("DATE")), "DATE needs INT32, not INT64"),
        (leaf(INT64, integer(32, True)), "needs INT32, not INT64"),
        (leaf(INT32, integer(64, True)), "needs INT64"),
        (leaf(INT32, integer(12, True)), "8, 16, 32 or 64 bits"),
        (leaf(INT64, temporal("TIME", "MILLIS", True)), "TIME.MILLIS, utc. needs INT32"),
        (leaf(INT96, temporal("TIMESTAMP", "NANOS", True)), "needs INT64"),
        (leaf(INT64, temporal("TIMESTAMP", "DAYS", True)), "the unit MILLIS, MICROS or NANOS"),
        (leaf(INT32, decimal(10, 2)), "more than the 9 digits"),
        (leaf(INT64, decimal(19, 2)), "more than the 18 digits"),
        (leaf(FIXED_LEN_BYTE_ARRAY, decimal(7, 2), 3), "more than the 6 digits"),
        (leaf(DOUBLE, decimal(3, 1)), "needs INT32, INT64"),
        (leaf(INT32, decimal(3, 4)), "scale .* must be from 0"),
        (leaf(INT32, decimal(3, -1)), "scale .* must be from 0"),
        (leaf(INT32, decimal(0, 0)), "at least 1"),
        (leaf(INT32, LogicalType("COLOUR")), "logical type COLOUR is unknown"),
        (leaf(BYTE_ARRAY, LogicalType("GEOGRAPHY", algorithm="FLAT")), "algorithm FLAT is unknown"),
    ],
)
def test_invalid_nodes_are_refused(node, message):
    with pytest.raises(SchemaError, match=message) as raised:
        to_schema_elements([SchemaNode("top", children=(node,))])
    assert raised.value.where == {"column": f"top.{node.name}"}
