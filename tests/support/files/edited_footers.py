"""Files with edited footers: pyarrow writes the pages, thriftpy2 rewrites the metadata."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from thriftpy2.protocol.compact import TCompactProtocolFactory
from thriftpy2.utils import deserialize, serialize

from support.thrift_definition import thrift_module

PROTOCOL = TCompactProtocolFactory()
THRIFT = thrift_module()


def write_with_footer(table: pa.Table, edit: Callable[[Any], None], **options: Any) -> bytes:
    """Write a table (without ARROW:schema by default) and edit its FileMetaData."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **{"store_schema": False, **options})
    raw = buffer.getvalue()
    size = struct.unpack("<I", raw[-8:-4])[0]
    footer = deserialize(THRIFT.FileMetaData(), raw[-8 - size : -8], PROTOCOL)
    edit(footer)
    written = serialize(footer, PROTOCOL)
    return raw[: -8 - size] + written + struct.pack("<I", len(written)) + b"PAR1"


def write_annotated_column(column: pa.Array, **element: Any) -> bytes:
    """Write one column ``a`` with exactly these annotations in its SchemaElement."""

    def edit(footer: Any) -> None:
        for name in ("converted_type", "logicalType", "precision", "scale"):
            setattr(footer.schema[1], name, element.get(name))

    return write_with_footer(pa.table({"a": column}), edit)


def logical_type(kind: str, **parameters: Any) -> Any:
    """Build a LogicalType; ``unit="MILLIS"`` and the like become TimeUnits."""
    if "unit" in parameters:
        unit = parameters["unit"]
        member = {"MILLIS": "MilliSeconds", "MICROS": "MicroSeconds", "NANOS": "NanoSeconds"}[unit]
        parameters["unit"] = THRIFT.TimeUnit(**{unit: getattr(THRIFT, member)()})
    fields = {name: value for _, (_, name, *value) in THRIFT.LogicalType.thrift_spec.items()}
    return THRIFT.LogicalType(**{kind: fields[kind][0](**parameters)})
