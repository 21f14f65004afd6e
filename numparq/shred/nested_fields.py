"""Nested types: Arrow's fields as nodes of a schema, in the way pyarrow writes them."""

from __future__ import annotations

from ..errors import SchemaError
from ..leaves import Node
from ..metadata.logical_type import LogicalType
from ..schema import OPTIONAL, REPEATED, REQUIRED
from .source import ArrowField
from .storage import stored_as

__all__ = ["ELEMENT", "LIST_KINDS", "MAX_DEPTH", "NESTED", "node_of"]

LIST_KINDS = ("list", "large_list", "fixed_size_list")
NESTED = (*LIST_KINDS, "map", "struct")
ELEMENT = "element"
MAX_DEPTH = 100  # of types within types; what lies deeper holds itself

_LIST, _MAP = LogicalType("LIST"), LogicalType("MAP")


def node_of(field: ArrowField, depth: int = 0) -> Node:
    """Give the schema of a field.

    Parameters
    ----------
    field : ArrowField
        Of any type: lists (of one child, whatever it is called), maps (of one child, a struct of key and value),
        structs, and all that `stored_as` takes.
    depth : int
        How many types it is within.

    Returns
    -------
    Node
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
    if kind not in NESTED:
        physical, length, logical = stored_as(field.type)
        return Node(field.name, repetition, physical, length, logical)
    if kind == "struct":
        if not field.children:
            raise SchemaError("a struct without fields cannot be written: Parquet has no groups without columns",
                              column=field.name)  # fmt: skip
        children = tuple(node_of(child, depth + 1) for child in field.children)
        return Node(field.name, repetition, children=children)
    if kind == "map":
        key, item = field.children[0].children
        pair = node_of(_named(key, "key", False), depth + 1), node_of(_named(item, "value", item.nullable), depth + 1)
        return Node(field.name, repetition, logical=_MAP, children=(Node("key_value", REPEATED, children=pair),))
    (element,) = field.children
    child = node_of(_named(element, ELEMENT, element.nullable), depth + 1)
    return Node(field.name, repetition, logical=_LIST, children=(Node("list", REPEATED, children=(child,)),))


def _named(field: ArrowField, name: str, nullable: bool) -> ArrowField:
    return ArrowField(name, field.type, field.children, nullable)
