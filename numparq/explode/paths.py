"""Where the path of an exploded collection leads, and which columns then stand in the place of its top-level column.

All that lies on the way from that column down to the item that each row is to be is *dissolved*: a struct is replaced
by its fields, a map by its keys and values, a list by its element. What is beside the way is a column, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..column.shape import Shape, is_variant, leaves_of, pruned

__all__ = ["Item", "Way", "collections_of", "merged"]

_COLLECTIONS = ("list", "map")


@dataclass(frozen=True, slots=True)
class Item:
    """A column that stands in the place of the exploded one.

    Parameters
    ----------
    name : str
        Its name as a field; the list's, of what is an element of one.
    node : Shape
        What it is. It lies in ``node.depth`` of the lists that are flattened, and has a value for each of the
        innermost of them's elements.
    shape : Shape
        What is wanted of it: the same, perhaps with less in it.
    """

    name: str
    node: Shape
    shape: Shape

    @property
    def full_name(self) -> str:
        """The path to it, joined by dots."""
        return ".".join(self.node.path)


class Way:
    """The way from a top-level column down to the item that each row is to be.

    Parameters
    ----------
    whole : Shape
        The column.
    path : tuple of str
        The path to the item: to the element of a list, the key-value group of a map, or what is repeated; a list or
        map that is no element itself stands for its own items.

    Attributes
    ----------
    lists : list of Shape
        The lists and maps that are flattened, from the outermost on.

    Raises
    ------
    KeyError
        When nothing has that path.
    ValueError
        When it leads to no collection.
    """

    def __init__(self, whole: Shape, path: tuple[str, ...]) -> None:
        self.whole = whole
        dissolved = _dissolved(whole, path)
        self._dissolved = {id(node) for node in dissolved}
        self.lists = [node for node in dissolved if node.kind in _COLLECTIONS]

    def all_items(self) -> list[Item]:
        """Give all columns that stand in the place of the top-level one."""
        return list(self._items(self.whole, self.whole.name))

    def items(self, path: tuple[str, ...]) -> list[Item]:
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
        while id(node) in self._dissolved and len(node.path) < len(path):
            found = _leading(node, path)
            if len(found[0].path) > len(path):  # the repeated group around an element, or around a key and a value
                break
            name = name if node.kind == "list" else found[0].name
            node = found[0]
        if id(node) in self._dissolved:
            return list(self._items(node, name))
        while node.kind == "struct" and len(node.path) < len(path):
            node = _leading(node, path)[0]
            name = node.name
        if len(node.path) >= len(path):
            return [Item(name, node, node)]
        kept = pruned(node, {leaf.index for leaf in leaves_of(node) if leaf.path[: len(path)] == path})
        if kept is None:
            raise KeyError(path)
        return [Item(name, node, kept)]

    def _items(self, node: Shape, name: str) -> Iterator[Item]:
        if id(node) not in self._dissolved:
            yield Item(name, node, node)
            return
        for child in node.children:
            yield from self._items(child, name if node.kind == "list" else child.name)


def _leading(node: Shape, path: tuple[str, ...]) -> list[Shape]:
    """Give the children of a node that lie on a path, or behind its end; the first of equal names is meant."""
    found = [child for child in node.children if all(map(str.__eq__, child.path, path))]
    if not found:
        raise KeyError(path)
    return found


def _dissolved(whole: Shape, path: tuple[str, ...]) -> list[Shape]:
    """Give the nodes that are replaced by what is in them, from the top down."""
    nodes = [whole]
    while len(nodes[-1].path) < len(path):
        if is_variant(nodes[-1]):  # whose parts are no columns of their own
            raise ValueError(path)
        found = _leading(nodes[-1], path)
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


def collections_of(shape: Shape) -> Iterator[str]:
    """Give the paths of the items of all lists and maps in a tree, from the top down, joined by dots."""
    if shape.kind in _COLLECTIONS:
        first = shape.children[0].path
        yield ".".join(first if shape.kind == "list" else first[:-1])
    for child in () if is_variant(shape) else shape.children:
        yield from collections_of(child)


def merged(columns: list[Any]) -> list[Any]:
    """Make one column of all parts of the same node, where the first of them is; columns that are no items stay."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # where in `found` what is left of a node is
    for column in columns:
        if isinstance(column, Item) and column.shape is not column.node:
            place = parts.setdefault(id(column.node), len(found))
            if place < len(found):
                leaves = {leaf.index for part in (found[place], column) for leaf in leaves_of(part.shape)}
                kept = pruned(column.node, leaves)
                assert kept is not None
                found[place] = replace(column, shape=kept)
                continue
        found.append(column)
    return found
