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

    nullable = getattr(kind, "nullable", True)
    field = field_from_pyarrow(name, kind.type if hasattr(kind, "nullable") else kind, nullable)
    node = node_from_field(field)
    field_id = (getattr(kind, "metadata", None) or {}).get(_FIELD_ID)
    return UserColumn(node if field_id is None else replace(node, field_id=int(field_id)), field)
