"""Arrow fields from schema nodes and back (LogicalTypes.md, Nested Types)."""

from __future__ import annotations

from dataclasses import replace

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.format.logical_type import LogicalType
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode

from .parquet_type import infer_arrow_type, parquet_type

_LIST_OR_MAP = ("LIST", "MAP", "MAP_KEY_VALUE")

LIST_KINDS = ("list", "large_list", "fixed_size_list")
NESTED_KINDS = (*LIST_KINDS, "map", "struct")
ELEMENT = "element"
MAX_DEPTH = 100  # of types within types; what lies deeper holds itself

_LIST, _MAP = LogicalType("LIST"), LogicalType("MAP")


def is_list_or_map(node: SchemaNode) -> bool:
    """Whether a node is a list or a map: a group annotated so, with one repeated child.

    A map's holds a key and a value, or keys alone.
    """
    if node.logical is None or node.logical.kind not in _LIST_OR_MAP or len(node.children) != 1:
        return False
    repeated = node.children[0]
    return repeated.repetition == REPEATED and (node.logical.kind == "LIST" or len(repeated.children) in (1, 2))


def is_list_element(around: SchemaNode, repeated: SchemaNode) -> bool:
    """Whether a repeated field is the element of a list, not a group around it (LogicalTypes.md, Lists).

    Parameters
    ----------
    around : SchemaNode
        The LIST or MAP group; `repeated` itself where there is none.
    repeated : SchemaNode
        What is repeated.
    """
    if around is repeated or repeated.physical is not None:
        return True
    if around.logical is None or around.logical.kind != "LIST":
        return False
    named_so = repeated.name in ("array", f"{around.name}_tuple")
    return named_so or len(repeated.children) != 1 or repeated.children[0].repetition == REPEATED


def field_from_node(node: SchemaNode) -> ArrowField:
    """Describe a column as Arrow would.

    Parameters
    ----------
    node : SchemaNode
        Its schema.

    Returns
    -------
    ArrowField
        Under the names that the schema has.
    """
    if node.repetition == REPEATED:
        return ArrowField(node.name, ArrowType("list"), (field_from_node(replace(node, repetition=REQUIRED)),), False)
    nullable = node.repetition != REQUIRED
    if node.physical is not None:
        arrow_type = infer_arrow_type(node.physical, node.type_length or None, node.logical)
        return ArrowField(node.name, arrow_type, nullable=nullable)
    if is_list_or_map(node) and node.logical is not None:
        (repeated,) = node.children
        if node.logical.kind == "LIST" or len(repeated.children) == 1:
            return ArrowField(node.name, ArrowType("list"), (_element_field(node),), nullable)
        entries = ArrowField(repeated.name, ArrowType("struct"), _children(repeated), False)
        return ArrowField(node.name, ArrowType("map"), (entries,), nullable)
    return ArrowField(node.name, ArrowType("struct"), _children(node), nullable)


def _children(node: SchemaNode) -> tuple[ArrowField, ...]:
    return tuple(map(field_from_node, node.children))


def _element_field(node: SchemaNode) -> ArrowField:
    """Return the item of a LIST group, or of a MAP of keys alone: the repeated field, or the field within it."""
    (repeated,) = node.children
    return field_from_node(
        replace(repeated, repetition=REQUIRED) if is_list_element(node, repeated) else repeated.children[0]
    )


def node_from_field(field: ArrowField, depth: int = 0) -> SchemaNode:
    """Return the schema node of a field.

    Parameters
    ----------
    field : ArrowField
        Of any type: lists (of one child, whatever it is called), maps (of one child, a struct of key and value),
        structs, and all that `parquet_type` takes.
    depth : int
        How many types it is within.

    Returns
    -------
    SchemaNode
        OPTIONAL where the field is nullable, else REQUIRED. A list is ``<name> (LIST) { repeated group list {
        element } }``, a map ``<name> (MAP) { repeated group key_value { required key; value } }``, a struct a
        group (LogicalTypes.md, Nested Types).

    Raises
    ------
    SchemaError
        When the format has no such type: a struct without fields among them.
    """
    if depth > MAX_DEPTH:
        raise SchemaError(f"types are nested more than {MAX_DEPTH} deep", column=field.name)
    repetition = OPTIONAL if field.nullable else REQUIRED
    kind = field.type.kind
    if kind not in NESTED_KINDS:
        physical, length, logical = parquet_type(field.type)
        return SchemaNode(field.name, repetition, physical, length, logical)
    if kind == "struct":
        if not field.children:
            raise SchemaError(
                "a struct without fields cannot be written: Parquet has no groups without columns", column=field.name
            )
        children = tuple(node_from_field(child, depth + 1) for child in field.children)
        return SchemaNode(field.name, repetition, children=children)
    if kind == "map":
        key, item = field.children[0].children
        pair = (
            node_from_field(_named(key, "key", False), depth + 1),
            node_from_field(_named(item, "value", item.nullable), depth + 1),
        )
        return SchemaNode(
            field.name, repetition, logical=_MAP, children=(SchemaNode("key_value", REPEATED, children=pair),)
        )
    (element,) = field.children
    child = node_from_field(_named(element, ELEMENT, element.nullable), depth + 1)
    return SchemaNode(
        field.name, repetition, logical=_LIST, children=(SchemaNode("list", REPEATED, children=(child,)),)
    )


def _named(field: ArrowField, name: str, nullable: bool) -> ArrowField:
    return ArrowField(name, field.type, field.children, nullable)
