"""Files with a schema and no rows."""

from __future__ import annotations

import struct

from numparq.format.schema_node import SchemaNode, to_schema_elements
from numparq.format.thrift.encode import encode_struct


def encode_footer(columns: list[SchemaNode]) -> bytes:
    """Encode a FileMetaData without row groups."""
    elements = to_schema_elements(columns)
    leaves = sum("type" in element for element in elements)
    return encode_struct(
        "FileMetaData",
        {
            "version": 1,
            "schema": elements,
            "num_rows": 0,
            "row_groups": [],
            "column_orders": [{"TYPE_ORDER": {}}] * leaves,
        },
    )


def build_empty_file(columns: list[SchemaNode]) -> bytes:
    footer = encode_footer(columns)
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"
