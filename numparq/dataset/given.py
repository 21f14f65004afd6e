"""A schema that the caller gives, as fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..metadata.elements import schema_elements
from ..metadata.encode import encode
from ..opened import OpenedFile
from ..schema import Schema
from ..shred.arrow_message import arrow_message
from ..shred.given import given_schema
from .fields import Field, fields_of, fields_of_schema

__all__ = ["given_fields"]


def given_fields(schema: Any) -> list[Field]:
    """Understand a schema.

    Parameters
    ----------
    schema : Schema, pyarrow.Schema, mapping, or sequence
        As in `numparq.dataset.resolution.DatasetSchema.of`.

    Returns
    -------
    list of Field
        The columns.

    Raises
    ------
    TypeError
        When it, or a type in it, is something else.
    ValueError
        When a name is there twice.
    SchemaError
        When the format has no such type.
    """
    if isinstance(schema, Schema):
        return [field for field in fields_of_schema(schema) if field is not None]
    columns = given_schema(_mapping(schema)).columns.values()
    footer = encode("FileMetaData", {
        "version": 1, "schema": schema_elements([column.node for column in columns]), "num_rows": 0, "row_groups": [],
        "key_value_metadata": [{"key": "ARROW:schema", "value": arrow_message([column.field for column in columns])}],
    })  # fmt: skip
    file = OpenedFile(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return [field for field in fields_of(file) if field is not None]


def _mapping(schema: Any) -> Any:
    """Give pairs of names and types as a mapping; anything else as it is."""
    if isinstance(schema, (str, bytes, Mapping)) or not isinstance(schema, Iterable):
        return schema
    items = list(schema)
    if not items or not all(isinstance(item, tuple) and len(item) == 2 for item in items):
        return items
    names = [name for name, _ in items]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the schema has the column {twice!r} twice")
    return dict(items)
