"""Path of an exploded collection, and the columns that replace its top-level column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from numparq.column.nested.nested_type import NestedType, is_variant, iter_leaves, project_leaves

_COLLECTIONS = ("list", "map")


@dataclass(frozen=True, slots=True)
class ExplodedColumn:
    """A column that replaces the exploded one.

    Attributes
    ----------
    name : str
        Name of the field; for an element, that of its list.
    node : NestedType
        Node in the file, with a value for each element of the innermost of its ``node.depth`` flattened lists.
    shape : NestedType
        The same node, reduced to the projected leaves.
    """

    name: str
    node: NestedType
    shape: NestedType

    @property
    def full_name(self) -> str:
        """Path of the node, joined by dots."""
        return ".".join(self.node.path)


class CollectionPath:
    """Path from a top-level column down to the item that becomes a row; `lists` are flattened, outermost first.

    A list or map at the end of `path` stands for its items. KeyError for an unknown path, ValueError for no collection.
    """

    def __init__(self, whole: NestedType, path: tuple[str, ...]) -> None:
        self.column = whole
        dissolved = _flattened_nodes(whole, path)
        self._flattened = {id(node) for node in dissolved}
        self.lists = [node for node in dissolved if node.kind in _COLLECTIONS]

    def all_columns(self) -> list[ExplodedColumn]:
        """Return all columns that replace the top-level one."""
        return list(self._columns(self.column, self.column.name))

    def select(self, path: tuple[str, ...]) -> list[ExplodedColumn]:
        """Return the columns that a path of the ``columns`` argument selects; KeyError if it is unknown.

        Fields of structs become columns of their own; lists and maps that are not flattened stay whole.
        """
        node, name = self.column, self.column.name
        while id(node) in self._flattened and len(node.path) < len(path):
            found = _children_on_path(node, path)
            if len(found[0].path) > len(path):  # the repeated group of a list or map
                break
            name = name if node.kind == "list" else found[0].name
            node = found[0]
        if id(node) in self._flattened:
            return list(self._columns(node, name))
        while node.kind == "struct" and len(node.path) < len(path):
            node = _children_on_path(node, path)[0]
            name = node.name
        if len(node.path) >= len(path):
            return [ExplodedColumn(name, node, node)]
        kept = project_leaves(node, {leaf.index for leaf in iter_leaves(node) if leaf.path[: len(path)] == path})
        if kept is None:
            raise KeyError(path)
        return [ExplodedColumn(name, node, kept)]

    def _columns(self, node: NestedType, name: str) -> Iterator[ExplodedColumn]:
        if id(node) not in self._flattened:
            yield ExplodedColumn(name, node, node)
            return
        for child in node.children:
            yield from self._columns(child, name if node.kind == "list" else child.name)


def _children_on_path(node: NestedType, path: tuple[str, ...]) -> list[NestedType]:
    """Return the children of a node on a path or below its end; the first is meant if names are equal."""
    found = [child for child in node.children if all(map(str.__eq__, child.path, path))]
    if not found:
        raise KeyError(path)
    return found


def _flattened_nodes(whole: NestedType, path: tuple[str, ...]) -> list[NestedType]:
    """Return the nodes that are replaced by their children, from the top down."""
    nodes = [whole]
    while len(nodes[-1].path) < len(path):
        if is_variant(nodes[-1]):  # its fields are no columns of their own
            raise ValueError(path)
        found = _children_on_path(nodes[-1], path)
        if nodes[-1].kind == "map" and len(found[0].path) > len(path):  # its key-value group
            return nodes
        nodes.append(found[0])
    item = nodes[-1]
    if len(nodes) == 1 or nodes[-2].kind != "list":
        if item.kind not in _COLLECTIONS:
            raise ValueError(path)
        if item.kind == "map":
            return nodes
        item = item.children[0]
        nodes.append(item)
    return nodes if item.kind == "struct" and item.logical is None else nodes[:-1]


def collection_paths(shape: NestedType) -> Iterator[str]:
    """Yield the item paths of all lists and maps of a tree, from the top down, joined by dots."""
    if shape.kind in _COLLECTIONS:
        first = shape.children[0].path
        yield ".".join(first if shape.kind == "list" else first[:-1])
    for child in () if is_variant(shape) else shape.children:
        yield from collection_paths(child)


def merge_columns(columns: list[Any]) -> list[Any]:
    """Merge the projections of the same node into one column, at the place of the first; others stay as they are."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # position in `found`, by node
    for column in columns:
        if isinstance(column, ExplodedColumn) and column.shape is not column.node:
            place = parts.setdefault(id(column.node), len(found))
            if place < len(found):
                leaves = {leaf.index for part in (found[place], column) for leaf in iter_leaves(part.shape)}
                kept = project_leaves(column.node, leaves)
                assert kept is not None
                found[place] = replace(column, shape=kept)
                continue
        found.append(column)
    return found
