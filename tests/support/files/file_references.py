"""Files with columns of FILE references."""

from __future__ import annotations

import pytest

from .edited_footers import THRIFT, write_with_footer

pa = pytest.importorskip("pyarrow")
TYPES = {
    "uri": pa.string(),
    "offset": pa.int64(),
    "size": pa.int64(),
    "content_type": pa.string(),
    "checksum": pa.string(),
    "inline": pa.binary(),
}


def write_references(
    references, fields=tuple(TYPES), wrap=lambda array: array, edit=lambda schema: None, nullable=True
) -> bytes:
    """Write a column of FILE references."""
    array = pa.array(references, pa.struct([pa.field(name, TYPES.get(name, pa.int32())) for name in fields]))

    def annotate(footer):
        for element in footer.schema:
            if element.name in ("f", "element") and element.num_children == len(fields):
                element.logicalType = THRIFT.LogicalType(FILE=THRIFT.FileType())
        edit(footer.schema)

    return write_with_footer(pa.table({"f": wrap(array)}), annotate)


REFERENCES = [
    {"inline": b"in line", "content_type": "text/plain"},
    None,
    {"offset": 0, "size": 4},
    {"uri": "side"},
    {"uri": "below/side", "offset": 2, "size": 3},
    {"uri": "side", "size": 2},
    {"uri": "side", "offset": 4, "size": 0, "checksum": "MD5:d41d8cd98f00b204e9800998ecf8427e"},
    {"inline": b"", "uri": "s3://provenance/only", "size": 7},
]
