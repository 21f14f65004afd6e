"""Schema file: a Parquet file without rows, in memory, that carries a merged schema."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from numparq.errors import SchemaError, error_context
from numparq.format.key_values.arrow import encode_arrow_schema
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.open_file import OpenFile
from numparq.format.schema_node import SchemaNode, to_schema_elements
from numparq.format.thrift.encode import encode_struct

from .fields import SchemaField, to_arrow_field, to_schema_node

__all__ = ["build_schema_file", "without_range_index"]

_MAGIC = b"PAR1"
# Of the united schema of files of which others wrote some; of our own, what `OpenedFile.is_own` looks for.
_FOREIGN, _OWN = "numparq, uniting files", "numparq version 0, uniting files"


def build_schema_file(
    fields: Sequence[SchemaField], keys: Mapping[str, bytes], *, has_arrow_schema: bool, is_own: bool
) -> OpenFile:
    """Make a file of no rows.

    Parameters
    ----------
    fields : sequence of SchemaField
        Its columns.
    keys : mapping of str to bytes
        Of its footer, but for the Arrow schema.
    has_arrow_schema : bool
        Whether it tells the types that `fields` have in Arrow.
    is_own : bool
        Whether numparq wrote all the files that it stands for.

    Returns
    -------
    OpenFile
        In memory.
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
    return OpenFile(_MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _storable(node: SchemaNode) -> SchemaNode:
    """Give a node as the format allows it: files have logical types that their physical ones cannot hold.

    These mean nothing, to numparq as to others, but that a column of them cannot be read is not lost with them.
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


def without_range_index(file: OpenFile) -> OpenFile:
    """Let a file stand for many: what its metadata say of a RangeIndex is of its own rows.

    Returns
    -------
    OpenFile
        The file itself, where they say nothing of one; else one that shares all else with it.
    """
    with error_context(file=file.source.name):
        metadata = file.pandas_metadata
    if metadata is None or len(metadata.index_fields) == len(metadata.index):
        return file
    made = copy.copy(file)
    made.pandas_metadata = _indexed_by_columns(metadata)
    return made


def _indexed_by_columns(metadata: PandasMetadata) -> PandasMetadata:
    made = copy.copy(metadata)
    made.index = tuple(level for level in metadata.index if isinstance(level, str))
    return made
