"""The Arrow type of a column, from nothing but its schema."""

from __future__ import annotations

from dataclasses import replace

from ..arrow_schema import ArrowType
from ..leaves import Node
from ..logical import resolve
from ..schema import REPEATED, REQUIRED
from .nested_tree import is_collection, is_element
from .source import ArrowField


def field_of(node: Node) -> ArrowField:
    """Describe a column as Arrow would.

    Parameters
    ----------
    node : Node
        Its schema.

    Returns
    -------
    ArrowField
        Under the names that the schema has.
    """
    if node.repetition == REPEATED:
        return ArrowField(node.name, ArrowType("list"), (field_of(replace(node, repetition=REQUIRED)),), False)
    nullable = node.repetition != REQUIRED
    if node.physical is not None:
        arrow_type = resolve(node.physical, node.type_length or None, node.logical)
        return ArrowField(node.name, arrow_type, nullable=nullable)
    if is_collection(node) and node.logical is not None:
        (repeated,) = node.children
        if node.logical.kind == "LIST" or len(repeated.children) == 1:
            return ArrowField(node.name, ArrowType("list"), (_item(node),), nullable)
        entries = ArrowField(repeated.name, ArrowType("struct"), _children(repeated), False)
        return ArrowField(node.name, ArrowType("map"), (entries,), nullable)
    return ArrowField(node.name, ArrowType("struct"), _children(node), nullable)


def _children(node: Node) -> tuple[ArrowField, ...]:
    return tuple(map(field_of, node.children))


def _item(node: Node) -> ArrowField:
    """Give the item of a LIST group, or a MAP of keys alone: what is repeated in it, or what that is around."""
    (repeated,) = node.children
    return field_of(replace(repeated, repetition=REQUIRED) if is_element(node, repeated) else repeated.children[0])
