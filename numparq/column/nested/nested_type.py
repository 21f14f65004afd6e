"""Nested types: structs, lists and maps of a column, legacy forms included (LogicalTypes.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from numparq.errors import UnsupportedError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowHint
from numparq.format.logical_type import LogicalType
from numparq.format.schema import OPTIONAL, REPEATED, Leaf, Schema, SchemaElement

# Deeper columns are refused: their values are objects within objects, and each level costs Python's stack.
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class NestedType:
    """A node of a nested column.

    Parameters
    ----------
    kind : str
        ``leaf``, ``struct``, ``list`` (one child: its element) or ``map`` (two: key and value).
    name : str
        Field name.
    nullable : bool
        Whether its slots may be null.
    repetition_level : int
        Number of lists around it.
    repeated_ancestor_level : int
        Least definition level with a slot for it: the innermost of those lists has an element.
    definition_level : int
        Least definition level at which it is not null.
    children : tuple of NestedType
        Fields, elements, or keys and values.
    element_level : int
        Least definition level with an element, for lists and maps.
    leaf : Leaf or None
        Leaf column, for leaves.
    path : tuple of str
        Names in the schema from the top down, with the groups between a list and its element.
    logical : LogicalType or None
        Annotation of a struct.
    """

    kind: str
    name: str
    nullable: bool
    repetition_level: int
    repeated_ancestor_level: int
    definition_level: int
    children: tuple[NestedType, ...] = ()
    element_level: int = 0
    leaf: Leaf | None = None
    path: tuple[str, ...] = ()
    logical: LogicalType | None = None


@dataclass(frozen=True, slots=True)
class _LevelPosition:
    """Position of a node in a column: its depth, the levels of its slots and of itself, its parents, its path."""

    depth: int
    slot_level: int
    level: int
    nodes: int
    path: tuple[str, ...]

    def inside(self, element: SchemaElement) -> _LevelPosition:
        """Return the position of a field that is not repeated."""
        level = self.level + (element.repetition == OPTIONAL)
        return replace(self, level=level, nodes=self.nodes + 1, path=(*self.path, element.name))

    def repeated(self, element: SchemaElement) -> _LevelPosition:
        """Return the position of a repeated field."""
        return _LevelPosition(self.depth + 1, self.level + 1, self.level + 1, self.nodes, (*self.path, element.name))


def resolve_nested_type(schema: Schema, position: int) -> NestedType:
    """Return the type tree of a top-level column.

    Parameters
    ----------
    schema : Schema
        Schema of the file.
    position : int
        Position of the top-level column.

    Raises
    ------
    UnsupportedError
        If it is nested too deeply or has no leaf. Groups without fields are dropped.
    InvalidFileError
        If the schema breaks the specification.
    """
    whole = _field(schema, schema.column_element(position), _LevelPosition(0, 0, 0, 0, ()))
    shape = project_leaves(whole, schema.column_leaves(position)) if schema.has_empty_groups else whole
    if shape is None:
        raise UnsupportedError(
            "the column is a group without fields, for which a file stores nothing", column=whole.name
        )
    return shape


def _field(schema: Schema, number: int, above: _LevelPosition) -> NestedType:
    """Return the type of a field: a list of it if it is repeated."""
    element = schema.schema_element(number)
    if above.nodes > MAX_DEPTH:
        raise UnsupportedError(f"the column is nested more than {MAX_DEPTH} deep", column=element.name)
    if element.repetition != REPEATED:
        return _value(schema, element, above.inside(element), element.repetition == OPTIONAL)
    position = above.repeated(element)
    value = _value(schema, element, replace(position, nodes=position.nodes + 2), False)
    return _list(element.name, False, replace(above, path=position.path), value)


def _value(schema: Schema, element: SchemaElement, position: _LevelPosition, nullable: bool) -> NestedType:
    """Return the type of a field itself, repeated or not."""
    if element.leaf is not None:
        leaf = schema.leaf(element.leaf)
        return NestedType(
            "leaf",
            element.name,
            nullable,
            position.depth,
            position.slot_level,
            position.level,
            leaf=leaf,
            path=position.path,
        )
    rule = _COLLECTIONS.get(element.logical.kind) if element.logical is not None else None
    collection = rule(schema, element, position, nullable) if rule else None
    if collection is not None:
        return collection
    children = tuple(_field(schema, child, position) for child in element.children)
    return NestedType(
        "struct",
        element.name,
        nullable,
        position.depth,
        position.slot_level,
        position.level,
        children,
        path=position.path,
        logical=element.logical,
    )


def _list(name: str, nullable: bool, position: _LevelPosition, *children: NestedType) -> NestedType:
    kind = "list" if len(children) == 1 else "map"
    element_level = position.level + 1
    return NestedType(
        kind,
        name,
        nullable,
        position.depth,
        position.slot_level,
        position.level,
        children,
        element_level,
        path=position.path,
    )


def _repeated_child(schema: Schema, element: SchemaElement) -> SchemaElement | None:
    """Return the only field of a LIST or MAP group if it is repeated, else None."""
    if len(element.children) != 1:
        return None
    child = schema.schema_element(element.children[0])
    return child if child.repetition == REPEATED else None


def _annotated_list(
    schema: Schema, element: SchemaElement, position: _LevelPosition, nullable: bool
) -> NestedType | None:
    repeated = _repeated_child(schema, element)
    if repeated is None:
        return None
    inner = position.repeated(repeated)
    if _is_element(schema, element, repeated):
        inner = replace(inner, nodes=inner.nodes + 1)
        return _list(element.name, nullable, position, _value(schema, repeated, inner, False))
    return _list(element.name, nullable, position, _field(schema, repeated.children[0], inner))


def _is_element(schema: Schema, element: SchemaElement, repeated: SchemaElement) -> bool:
    """Whether the repeated field of a LIST group is the element, not a group around it (rules 1 to 4)."""
    if len(repeated.children) != 1 or repeated.name in ("array", f"{element.name}_tuple"):
        return True
    return schema.schema_element(repeated.children[0]).repetition == REPEATED


def _annotated_map(
    schema: Schema, element: SchemaElement, position: _LevelPosition, nullable: bool
) -> NestedType | None:
    repeated = _repeated_child(schema, element)
    if repeated is None or len(repeated.children) not in (1, 2):
        return None
    children = [_field(schema, child, position.repeated(repeated)) for child in repeated.children]
    return _list(element.name, nullable, position, *children)


_COLLECTIONS: dict[str, Callable[[Schema, SchemaElement, _LevelPosition, bool], NestedType | None]] = {
    "LIST": _annotated_list,
    "MAP": _annotated_map,
    "MAP_KEY_VALUE": _annotated_map,
}


def is_variant(shape: NestedType) -> bool:
    """Whether a node is a VARIANT group."""
    return shape.logical is not None and shape.logical.kind == "VARIANT"


def iter_leaves(shape: NestedType) -> Iterator[Leaf]:
    """Yield the leaves of a tree, in the order of the schema."""
    if shape.leaf is not None:
        yield shape.leaf
    for child in shape.children:
        yield from iter_leaves(child)


def project_leaves(shape: NestedType, leaves: Collection[int]) -> NestedType | None:
    """Drop the nodes without any of some leaves, given by ordinal; a map without keys or values becomes a list."""
    if shape.leaf is not None:
        return shape if shape.leaf.index in leaves else None
    children = tuple(
        child for child in (project_leaves(child, leaves) for child in shape.children) if child is not None
    )
    if not children:
        return None
    kind = "list" if shape.kind == "map" and len(children) == 1 else shape.kind
    return replace(shape, kind=kind, children=children, logical=shape.logical if children == shape.children else None)


# Kinds of Arrow types that are stored as a node of each kind.
_ORIGINS = {
    "struct": ("struct",),
    "list": ("list", "large_list", "fixed_size_list", "list_view", "large_list_view", "map"),
    "map": ("map",),
}


def leaf_arrow_types(shape: NestedType, hint: ArrowHint | None) -> dict[int, ArrowType]:
    """Return the Arrow types of the leaves, as far as ``ARROW:schema`` fits the tree.

    Parameters
    ----------
    shape : NestedType
        Top-level column with all its leaves.
    hint : ArrowHint or None
        Its type in ``ARROW:schema``.

    Returns
    -------
    dict of int to ArrowType
        By the ordinals of the leaves.
    """
    arrow_type = hint.type if hint is not None else None
    if arrow_type is None:
        return {}
    if shape.leaf is not None:
        return {shape.leaf.index: arrow_type}
    types: dict[int, ArrowType] = {}
    for child, inner in zip(shape.children, child_hints(shape, hint), strict=True):
        types.update(leaf_arrow_types(child, inner))
    return types


def child_hints(shape: NestedType, hint: ArrowHint | None) -> list[ArrowHint] | list[None]:
    """Return the ``ARROW:schema`` hint of each child of a node; None where it does not fit."""
    unknown = [None] * len(shape.children)
    arrow_type = hint.type if hint is not None else None
    if hint is None or arrow_type is None or arrow_type.kind not in _ORIGINS[shape.kind]:
        return unknown
    if shape.kind != "map":
        return hint.children(len(shape.children)) or unknown
    entries = hint.children(1)
    return (entries[0].children(2) if entries else None) or unknown


def find_hint(shape: NestedType, hint: ArrowHint | None, node: NestedType) -> ArrowHint | None:
    """Return the ``ARROW:schema`` hint of a node within a tree; None where it does not fit, or has more children."""
    if hint is None or shape == node:
        return hint
    first = next(iter_leaves(node))
    for child, inner in zip(shape.children, child_hints(shape, hint), strict=True):
        is_above = child.repetition_level <= node.repetition_level and child.path == node.path[: len(child.path)]
        if is_above and first in iter_leaves(child):  # paths do not tell two fields of one name
            return find_hint(child, inner, node)
    return None
