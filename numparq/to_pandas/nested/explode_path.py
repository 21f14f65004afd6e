"""Path of an exploded collection, and the columns that replace its top-level column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from numparq.column.nested.nested_type import NestedType, is_variant, iter_leaves, project_leaves

__all__ = ["CollectionPath", "ExplodedColumn", "collection_paths", "merge_columns"]

_COLLECTIONS = ("list", "map")


@dataclass(frozen=True, slots=True)
class ExplodedColumn:
    """A column that stands in the place of the exploded one.

    Parameters
    ----------
    name : str
        Its name as a field; the list's, of what is an element of one.
    node : NestedType
        What it is. It lies in ``node.depth`` of the lists that are flattened, and has a value for each of the
        innermost of them's elements.
    shape : NestedType
        What is wanted of it: the same, perhaps with less in it.
    """

    name: str
    node: NestedType
    shape: NestedType

    @property
    def full_name(self) -> str:
        """The path to it, joined by dots."""
        return ".".join(self.node.path)


class CollectionPath:
    """The way from a top-level column down to the item that each row is to be.

    Parameters
    ----------
    whole : NestedType
        The column.
    path : tuple of str
        The path to the item: to the element of a list, the key-value group of a map, or what is repeated; a list or
        map that is no element itself stands for its own items.

    Attributes
    ----------
    lists : list of NestedType
        The lists and maps that are flattened, from the outermost on.

    Raises
    ------
    KeyError
        When nothing has that path.
    ValueError
        When it leads to no collection.
    """

    def __init__(self, whole: NestedType, path: tuple[str, ...]) -> None:
        self.whole = whole
        dissolved = _flattened_nodes(whole, path)
        self._flattened = {id(node) for node in dissolved}
        self.lists = [node for node in dissolved if node.kind in _COLLECTIONS]

    def all_columns(self) -> list[ExplodedColumn]:
        """Give all columns that stand in the place of the top-level one."""
        return list(self._items(self.whole, self.whole.name))

    def items(self, path: tuple[str, ...]) -> list[ExplodedColumn]:
        """Give the columns that a path selects: all of what is dissolved, or what is beside the way.

        Parameters
        ----------
        path : tuple of str
            As in the ``columns`` argument: a field of a struct is a column of its own, what is within a list or map
            that is not flattened stays in it.

        Raises
        ------
        KeyError
            When nothing has that path.
        """
        node, name = self.whole, self.whole.name
        while id(node) in self._flattened and len(node.path) < len(path):
            found = _children_on_path(node, path)
            if len(found[0].path) > len(path):  # the repeated group around an element, or around a key and a value
                break
            name = name if node.kind == "list" else found[0].name
            node = found[0]
        if id(node) in self._flattened:
            return list(self._items(node, name))
        while node.kind == "struct" and len(node.path) < len(path):
            node = _children_on_path(node, path)[0]
            name = node.name
        if len(node.path) >= len(path):
            return [ExplodedColumn(name, node, node)]
        kept = project_leaves(node, {leaf.index for leaf in iter_leaves(node) if leaf.path[: len(path)] == path})
        if kept is None:
            raise KeyError(path)
        return [ExplodedColumn(name, node, kept)]

    def _items(self, node: NestedType, name: str) -> Iterator[ExplodedColumn]:
        if id(node) not in self._flattened:
            yield ExplodedColumn(name, node, node)
            return
        for child in node.children:
            yield from self._items(child, name if node.kind == "list" else child.name)


def _children_on_path(node: NestedType, path: tuple[str, ...]) -> list[NestedType]:
    """Give the children of a node that lie on a path, or behind its end; the first of equal names is meant."""
    found = [child for child in node.children if all(map(str.__eq__, child.path, path))]
    if not found:
        raise KeyError(path)
    return found


def _flattened_nodes(whole: NestedType, path: tuple[str, ...]) -> list[NestedType]:
    """Give the nodes that are replaced by what is in them, from the top down."""
    nodes = [whole]
    while len(nodes[-1].path) < len(path):
        if is_variant(nodes[-1]):  # whose parts are no columns of their own
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
    """Give the paths of the items of all lists and maps in a tree, from the top down, joined by dots."""
    if shape.kind in _COLLECTIONS:
        first = shape.children[0].path
        yield ".".join(first if shape.kind == "list" else first[:-1])
    for child in () if is_variant(shape) else shape.children:
        yield from collection_paths(child)


def merge_columns(columns: list[Any]) -> list[Any]:
    """Make one column of all parts of the same node, where the first of them is; columns that are no items stay."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # where in `found` what is left of a node is
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
