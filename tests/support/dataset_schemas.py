"""Schemas of files that are never written, for schema merges."""

from __future__ import annotations

import io
from typing import Any

import pytest

from numparq.column.projection import select_columns
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.schema_node import SchemaNode

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


class NamedSource(io.BytesIO):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def open_table(table: Any, name: str = "file", **options: Any) -> OpenFile:
    """Open a file that pyarrow writes from a table or a dict of columns."""
    buffer = NamedSource(name)
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), buffer, **options)
    return OpenFile(buffer)


def open_column(kind: Any, name: str = "file", **options: Any) -> OpenFile:
    """Open a file of one column, which may have values, as there are no statistics."""
    return open_table({"a": pa.nulls(1, kind)}, name, write_statistics=False, **options)


def open_nodes(*nodes: SchemaNode, name: str = "file") -> OpenFile:
    """Open a file without rows and with any schema."""
    from numparq.format.schema_node import to_schema_elements
    from numparq.format.thrift.encode import encode_struct

    footer = encode_struct(
        "FileMetaData", {"version": 1, "schema": to_schema_elements(nodes), "num_rows": 0, "row_groups": []}
    )
    buffer = NamedSource(name)
    buffer.write(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return OpenFile(buffer)


def match_columns(schema: DatasetSchema, file: OpenFile, columns: Any = None) -> list[MappedColumn]:
    return schema.map_columns(file, select_columns(schema.schema, columns))


def first_column_line(schema: DatasetSchema) -> str:
    """Return the line of the schema's text about its first column."""
    return str(schema.schema).split("\n")[1].strip()


STRING = LogicalType("STRING")
