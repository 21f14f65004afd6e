"""A schema that the caller gives: which columns a file has, and of what types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..arrow_schema import ArrowType
from ..leaves import Node
from ..schema import OPTIONAL, REPEATED
from .fields import field_of
from .source import ArrowField
from .storage import stored_as


@dataclass(frozen=True, slots=True)
class GivenColumn:
    """The type that a column is to have.

    Parameters
    ----------
    node : Node
        In the file.
    field : ArrowField
        In Arrow's terms.
    """

    node: Node
    field: ArrowField

    @property
    def is_flat(self) -> bool:
        """Whether it is one leaf, that is not repeated."""
        return self.node.physical is not None and self.node.repetition != REPEATED

    @property
    def is_variant(self) -> bool:
        """Whether it is a VARIANT that is not shredded."""
        logical, parts = self.node.logical, {child.name for child in self.node.children}
        return logical is not None and logical.kind == "VARIANT" and parts == {"metadata", "value"}


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """The types that columns are to have.

    Parameters
    ----------
    columns : dict of str to GivenColumn
        By name in the file.
    complete : bool
        Whether the file has these columns, in this order, and no others; else the rest has the types of the frame.
    """

    columns: dict[str, GivenColumn]
    complete: bool


def given_schema(schema: Any) -> GivenSchema:
    """Understand a schema.

    Parameters
    ----------
    schema : pyarrow.Schema, sequence, mapping, GivenSchema or None
        A schema or a sequence (of Nodes or pyarrow Fields) says what columns the file has. A mapping of names to
        types fixes some: a type is a `Node` (which says how values are stored, too), a pyarrow type or Field, or an
        `ArrowType`.

    Raises
    ------
    TypeError
        When it, or a type in it, is something else.
    ValueError
        When a name is there twice.
    """
    if schema is None:
        return GivenSchema({}, False)
    if isinstance(schema, GivenSchema):
        return schema
    if isinstance(schema, Mapping):
        return GivenSchema({name: given_column(name, kind) for name, kind in schema.items()}, False)
    if isinstance(schema, (str, bytes)) or not isinstance(schema, Iterable):
        raise TypeError(f"a schema is a pyarrow.Schema, a sequence of fields, or a dict, not {type(schema).__name__}")
    columns: dict[str, GivenColumn] = {}
    for item in schema:
        name = getattr(item, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"a field of a schema is a Node or a pyarrow.Field, not {type(item).__name__}")
        if name in columns:
            raise ValueError(f"the schema has the column {name!r} twice")
        columns[name] = given_column(name, item)
    return GivenSchema(columns, True)


def given_column(name: str, kind: Any) -> GivenColumn:
    """Understand the type of a column; its name is `name`, whatever a field is called.

    Raises
    ------
    TypeError
        When it is no type.
    SchemaError
        When it is one that cannot be written.
    """
    if isinstance(kind, Node):
        node = Node(name, kind.repetition, kind.physical, kind.type_length, kind.logical, kind.children, kind.field_id)
        return GivenColumn(node, field_of(node))
    if isinstance(kind, ArrowType):
        physical, length, logical = stored_as(kind)
        return GivenColumn(Node(name, OPTIONAL, physical, length, logical), ArrowField(name, kind))
    if not type(kind).__module__.startswith("pyarrow"):
        raise TypeError(f"the type of column {name!r} is a Node, a pyarrow type or an ArrowType, not {kind!r}")
    from .nested_arrow import arrow_field
    from .nested_fields import node_of

    nullable = getattr(kind, "nullable", True)
    field = arrow_field(name, kind.type if hasattr(kind, "nullable") else kind, nullable)
    return GivenColumn(node_of(field), field)
