"""A schema that the caller gives, as fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..leaves import Node
from ..metadata.elements import schema_elements
from ..metadata.encode import encode
from ..opened import OpenedFile
from ..schema import Schema
from ..shred.arrow_message import arrow_message
from ..shred.given import given_schema
from .fields import Field, fields_of, fields_of_schema
from .labelling import Labels

__all__ = ["dressed", "given_fields"]

_FIELD_ID = b"PARQUET:field_id"  # where pyarrow has it, in the metadata of a field


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
    asked = _mapping(schema)
    ids = _field_ids(asked)
    columns = [
        replace(column, node=_with_ids(column.node, ids[name])) if name in ids else column
        for name, column in given_schema(asked).columns.items()
    ]
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


def _field_ids(schema: Any) -> dict[str, Any]:
    """Give those of pyarrow's fields that a schema is made of, by name: they may have field ids."""
    if isinstance(schema, Mapping):
        return {name: kind for name, kind in schema.items() if hasattr(kind, "nullable")}
    return {item.name: item for item in schema if hasattr(item, "nullable") and hasattr(item, "metadata")}


def _with_ids(node: Node, field: Any) -> Node:
    """Give a node the field ids that a field of pyarrow's has, and those of structs in structs."""
    number = (field.metadata or {}).get(_FIELD_ID)
    known = {inner.name: inner for inner in _inner(field.type)}
    children = tuple(_with_ids(child, known[child.name]) if child.name in known else child for child in node.children)
    return replace(node, field_id=node.field_id if number is None else int(number), children=children)


def _inner(arrow_type: Any) -> list[Any]:
    from pyarrow import types

    return list(arrow_type) if types.is_struct(arrow_type) else []


def dressed(wanted: list[Field], files: Sequence[Sequence[Field | None]], labels: Labels) -> list[Field]:
    """Give columns what the Arrow schemas of files say of them, where these agree: a `Schema` does not have it.

    Parameters
    ----------
    wanted : list of Field
        The columns.
    files : sequence of sequence of Field
        Those of each file.
    labels : callable
        Tells columns apart.
    """
    have = [dict(zip(labels(fields), fields, strict=True)) for fields in files]
    return [
        _dressed(field, [columns[label] for columns in have if columns.get(label) is not None], labels)
        for label, field in zip(labels(wanted), wanted, strict=True)
    ]


def _dressed(wanted: Field, found: Sequence[Field | None], labels: Labels) -> Field:
    known = [field for field in found if field is not None and field.kind == wanted.kind and not field.is_null]
    if not known:
        return wanted
    if wanted.kind == "leaf":
        same = all((one.stored, one.type, one.dictionary) == (wanted.stored, known[0].type, known[0].dictionary)
                   for one in known)  # fmt: skip
        return replace(wanted, type=known[0].type, dictionary=known[0].dictionary) if same else wanted
    if wanted.kind == "struct":
        return replace(wanted, children=tuple(dressed(list(wanted.children), [one.children for one in known], labels)))
    parts = zip(wanted.children, *(one.children for one in known), strict=True)
    return replace(wanted, children=tuple(_dressed(part[0], part[1:], labels) for part in parts))
