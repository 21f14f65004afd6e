"""The `schema` argument of the writer, parsed: columns of the file and their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.format.schema import OPTIONAL, REPEATED
from numparq.format.schema_node import SchemaNode
from numparq.types.arrow_fields import field_from_node
from numparq.types.parquet_type import parquet_type

_FIELD_ID = b"PARQUET:field_id"  # key in the metadata of a pyarrow field


@dataclass(frozen=True, slots=True)
class UserColumn:
    """Column type from the user's schema: as a schema node, and as an Arrow field."""

    node: SchemaNode
    field: ArrowField

    @property
    def is_flat(self) -> bool:
        """Whether it is a single leaf that is not repeated."""
        return self.node.physical is not None and self.node.repetition != REPEATED

    @property
    def is_variant(self) -> bool:
        """Whether it is an unshredded VARIANT."""
        logical, parts = self.node.logical, {child.name for child in self.node.children}
        return logical is not None and logical.kind == "VARIANT" and parts == {"metadata", "value"}


@dataclass(frozen=True, slots=True)
class UserSchema:
    """Column types from the user's schema, by column name.

    `is_complete` means that the file has exactly these columns, in this order; else the frame decides the others.
    """

    columns: dict[str, UserColumn]
    is_complete: bool


def parse_schema(schema: Any) -> UserSchema:
    """Parse a `schema` argument: a pyarrow.Schema or sequence of fields is complete, a mapping of types is not.

    Raises TypeError for anything else, ValueError for a duplicate name.
    """
    if schema is None:
        return UserSchema({}, False)
    if isinstance(schema, UserSchema):
        return schema
    if isinstance(schema, Mapping):
        return UserSchema({name: parse_column(name, kind) for name, kind in schema.items()}, False)
    has_rows = hasattr(schema, "__arrow_c_stream__")
    if has_rows or isinstance(schema, (str, bytes)) or not isinstance(schema, Iterable):
        hint = "; pass rows to write()" if has_rows else ""
        raise TypeError(
            f"schema must be a pyarrow.Schema, a sequence of fields or a dict, not {type(schema).__name__}{hint}"
        )
    columns: dict[str, UserColumn] = {}
    for item in schema:
        name = getattr(item, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"a field of schema must be a SchemaNode or a pyarrow.Field, not {type(item).__name__}")
        if name in columns:
            raise ValueError(f"the schema has the column {name!r} twice")
        columns[name] = parse_column(name, item)
    return UserSchema(columns, True)


def parse_column(name: str, kind: Any) -> UserColumn:
    """Parse the type of a column, which is named `name` whatever a field is called.

    Raises TypeError if it is not a type, SchemaError if it cannot be written.
    """
    if isinstance(kind, SchemaNode):
        node = SchemaNode(
            name, kind.repetition, kind.physical, kind.type_length, kind.logical, kind.children, kind.field_id
        )
        return UserColumn(node, field_from_node(node))
    if isinstance(kind, ArrowType):
        physical, length, logical = parquet_type(kind)
        return UserColumn(SchemaNode(name, OPTIONAL, physical, length, logical), ArrowField(name, kind))
    if not type(kind).__module__.startswith("pyarrow"):
        raise TypeError(
            f"the type of column {name!r} must be a SchemaNode, an ArrowType or a pyarrow type, not {kind!r}"
        )
    from numparq.types.arrow_fields import node_from_field
    from numparq.types.pyarrow import field_from_pyarrow

    is_field = hasattr(kind, "nullable")
    data_type = kind.type if is_field else kind
    field = field_from_pyarrow(name, data_type, kind.nullable if is_field else True)
    return UserColumn(_with_field_ids(node_from_field(field), kind if is_field else None, data_type), field)


def _with_field_ids(node: SchemaNode, field: Any, data_type: Any) -> SchemaNode:
    """Return a node with the field ids of a pyarrow field, if there is one, and of those within its type."""
    number = (field.metadata or {}).get(_FIELD_ID) if field is not None else None
    inner = _inner_fields(data_type)
    children = node.children
    if node.logical is not None and inner:  # LIST or MAP: the group in between has no field
        children = (replace(children[0], children=_with_ids(children[0].children, inner)),)
    elif inner:
        children = _with_ids(children, inner)
    return replace(node, children=children, field_id=node.field_id if number is None else int(number))


def _with_ids(nodes: tuple[SchemaNode, ...], fields: list[Any]) -> tuple[SchemaNode, ...]:
    return tuple(_with_field_ids(node, field, field.type) for node, field in zip(nodes, fields, strict=True))


def _inner_fields(data_type: Any) -> list[Any]:
    """Return the fields of a pyarrow struct, the item of a list, or the key and the item of a map."""
    from pyarrow import types

    while hasattr(data_type, "storage_type") or types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        data_type = data_type.storage_type if hasattr(data_type, "storage_type") else data_type.value_type
    if types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    return [data_type.field(number) for number in range(data_type.num_fields)]
