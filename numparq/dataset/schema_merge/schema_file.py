"""Schema file: a Parquet file without rows, in memory, that carries a merged schema."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from numparq.errors import SchemaError, error_context
from numparq.format.footer.rewrite import encode_without_row_groups
from numparq.format.key_values.arrow import encode_arrow_schema
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.key_values.spark import SparkCalendar
from numparq.format.open_file import OpenFile
from numparq.format.schema import shared_schema
from numparq.format.schema_node import SchemaNode, to_schema_elements
from numparq.format.thrift.encode import encode_struct

from .fields import SchemaField, to_arrow_field, to_schema_node

_MAGIC = b"PAR1"
# created_by of a schema file: numparq wrote not all of the files, or all (recognized by `OpenFile.is_own`).
_FOREIGN, _OWN = "numparq, uniting files", "numparq version 0, uniting files"


def build_schema_file(
    fields: Sequence[SchemaField],
    keys: Mapping[str, bytes],
    *,
    has_arrow_schema: bool,
    is_own: bool,
    calendar: SparkCalendar | None = None,
) -> OpenFile:
    """Build a schema file in memory: a Parquet file without rows; ``is_own`` if numparq wrote all files it stands for.

    ``keys`` are the key-value metadata without ``ARROW:schema``, which is added if ``has_arrow_schema``.
    ``calendar`` is as of `OpenFile`.
    """
    nodes = [_storable(to_schema_node(field)) for field in fields]
    pairs = [{"key": key, "value": value} for key, value in keys.items()]
    if has_arrow_schema:
        pairs.append({"key": "ARROW:schema", "value": encode_arrow_schema([to_arrow_field(field) for field in fields])})
    footer = encode_struct(
        "FileMetaData",
        {
            "version": 1,
            "schema": to_schema_elements(nodes),
            "num_rows": 0,
            "row_groups": [],
            "key_value_metadata": pairs or None,
            "created_by": _OWN if is_own else _FOREIGN,
        },
    )
    file = OpenFile(_in_a_file(footer))
    file.calendar = calendar
    return file


def without_rows(file: OpenFile) -> bytes:
    """Return a file with the footer of another one, but without row groups."""
    return _in_a_file(encode_without_row_groups(file.footer))


def _in_a_file(footer: bytes) -> bytes:
    return _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC


def _storable(node: SchemaNode) -> SchemaNode:
    """Return a node without logical types that the format does not allow for its physical type.

    Some files have such types, and readers ignore them; without them, the schema file can be encoded.
    """
    children = tuple(map(_storable, node.children))
    made = SchemaNode(
        node.name, node.repetition, node.physical, node.type_length, node.logical, children, node.field_id
    )
    if node.logical is None or node.physical is None:
        return made
    try:
        to_schema_elements([made])
    except SchemaError:
        return SchemaNode(node.name, node.repetition, node.physical, node.type_length, field_id=node.field_id)
    return made


def with_todays_calendar(file: OpenFile) -> OpenFile:
    """Return a file whose leaf columns are in the proleptic Gregorian calendar; itself if they are."""
    todays = file.schema.calendar.without_rebase
    if file.schema.calendar == todays:
        return file
    made = file.alias()
    made.schema = shared_schema(file.footer.schema_elements, todays)
    return made


def without_range_index(file: OpenFile) -> OpenFile:
    """Return a file without the RangeIndex in its pandas metadata, which counts its own rows; itself if it has none.

    The result shares all else with the file.
    """
    with error_context(file=file.source.name):
        metadata = file.pandas_metadata
    if metadata is None or len(metadata.index_fields) == len(metadata.index):
        return file
    made = file.alias()
    made.pandas_metadata = _indexed_by_columns(metadata)
    return made


def _indexed_by_columns(metadata: PandasMetadata) -> PandasMetadata:
    made = copy.copy(metadata)
    made.index = tuple(level for level in metadata.index if isinstance(level, str))
    return made
