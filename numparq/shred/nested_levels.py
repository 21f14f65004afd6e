"""Nested arrays to the leaves of a column: definition and repetition levels, and the values that there are.

The kernels of `numparq.kernels.shred` go down the schema a node at a time; leaves below the same group share the work
above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import SchemaError, check
from ..kernels import shredding_kernels
from ..leaves import LeafValues, Node
from ..logical import resolve
from ..schema import FIXED_LEN_BYTE_ARRAY, INT96, OPTIONAL, REPEATED, REQUIRED
from .nested_tree import LeafArray, ListArray, NestedArray, StructArray, is_collection, is_element
from .physical import restored
from .storage import stored_as

__all__ = ["MAX_LEVEL", "shred"]

MAX_LEVEL = 255  # levels are held in bytes
_INT96_BYTES = 12


@dataclass(frozen=True, slots=True)
class Entries:
    """The places in the levels of all leaves below a node; see `numparq.kernels.shred`.

    Parameters
    ----------
    index : int64
        The place in the node's array, or -1.
    definition, repetition : uint8
        The levels so far.
    level : int
        The largest definition level so far.
    depth : int
        The largest repetition level so far.
    spare : bool
        Whether nobody else needs `index` and `definition`, so that what comes of them may take their place: fresh
        memory costs more than the work.
    """

    index: np.ndarray
    definition: np.ndarray
    repetition: np.ndarray
    level: int = 0
    depth: int = 0
    spare: bool = True

    def room(self) -> tuple[np.ndarray, np.ndarray]:
        """Give arrays for as many indices and definition levels."""
        if self.spare:
            return self.index, self.definition
        return np.empty_like(self.index), np.empty_like(self.definition)


def shred(node: Node, array: NestedArray) -> list[LeafValues]:
    """Take rows of a nested column apart.

    Parameters
    ----------
    node : Node
        The column's schema.
    array : NestedArray
        Its rows, in the form that `numparq.shred.nested_tree` gives for such a node.

    Returns
    -------
    list of LeafValues
        One for each leaf in the order of the schema, with `definition` (None where its maximum level is 0) and
        `repetition` (None likewise), and the values that there are.

    Raises
    ------
    SchemaError
        Where there is a null and the schema has none, naming the column; when levels go beyond `MAX_LEVEL`.
    """
    index = np.arange(array.length, dtype=np.int64)
    definition = np.zeros(array.length, np.uint8)
    found: list[LeafValues] = []
    _walk(node, array, Entries(index, definition, np.zeros(array.length, np.uint8)), (node.name,), found)
    return found


def _walk(node: Node, array: NestedArray, above: Entries, path: tuple[str, ...], found: list[LeafValues]) -> None:
    """Append the leaves of a node."""
    optional = int(node.repetition == OPTIONAL)
    if above.level + (node.repetition != REQUIRED) + is_collection(node) > MAX_LEVEL:
        raise SchemaError(f"the schema has more than {MAX_LEVEL} levels", column=".".join(path))
    if node.repetition == REPEATED:
        _list(node, node, array, above, path, found)
    elif is_collection(node):
        repeated = node.children[0]
        _list(node, repeated, array, above, (*path, repeated.name), found)
    elif node.physical is not None:
        assert isinstance(array, LeafArray)
        found.append(_leaf(node, array, above, optional, path))
    else:
        assert isinstance(array, StructArray)
        within = _enter_group(array, above, optional, path)
        _children(node, array.children, within, path, found)


def _children(
    node: Node, arrays: tuple[NestedArray, ...], within: Entries, path: tuple[str, ...], found: list[LeafValues]
) -> None:
    if not node.children:
        raise SchemaError("a struct without fields cannot be written: Parquet has no groups without columns",
                          column=".".join(path))  # fmt: skip
    last = len(arrays) - 1
    for number, (child, array) in enumerate(zip(node.children, arrays, strict=True)):
        above = within if number == last else replace(within, spare=False)
        _walk(child, array, above, (*path, child.name), found)


def _list(
    node: Node,
    repeated: Node,
    array: NestedArray,
    above: Entries,
    path: tuple[str, ...],
    found: list[LeafValues],
) -> None:
    """Append the leaves below a repeated node, whose lists `array` has; `node` is the group around it, or the same."""
    assert isinstance(array, ListArray)
    within = _enter_list(array, above, int(node.repetition == OPTIONAL), path)
    if is_element(node, repeated):
        _walk(replace(repeated, repetition=REQUIRED), array.children[0], within, path, found)
    else:
        _children(repeated, array.children, within, path, found)


def _enter_group(array: StructArray, above: Entries, optional: int, path: tuple[str, ...]) -> Entries:
    if not optional and array.validity is None:
        return above
    index, definition = above.room()
    status = shredding_kernels.enter_group(
        above.index, above.definition, len(index), _validity(array), optional, index, definition
    )
    check(status, SchemaError, column=".".join(path))
    return replace(above, index=index, definition=definition, level=above.level + optional, spare=True)


def _enter_list(array: ListArray, above: Entries, optional: int, path: tuple[str, ...]) -> Entries:
    validity, count = _validity(array), len(above.index)
    num_elements = min(child.length for child in array.children)
    entries = shredding_kernels.count_elements(above.index, count, validity, array.offsets, num_elements)
    check(entries, SchemaError, column=".".join(path))
    index = np.empty(entries, np.int64)
    definition, repetition = np.empty(entries, np.uint8), np.empty(entries, np.uint8)
    depth = above.depth + 1
    status = shredding_kernels.enter_list(
        above.index, above.definition, above.repetition, count, validity, optional, array.offsets, depth,
        index, definition, repetition,
    )  # fmt: skip
    check(status, SchemaError, column=".".join(path))
    return Entries(index, definition, repetition, above.level + optional + 1, depth)


def _leaf(node: Node, array: LeafArray, above: Entries, optional: int, path: tuple[str, ...]) -> LeafValues:
    positions, definition = above.room()
    present = shredding_kernels.enter_leaf(
        above.index, above.definition, len(positions), _validity(array), optional, definition, positions
    )
    check(present, SchemaError, column=".".join(path))
    values = _picked(node, _stored(node, array), positions[:present])
    values.definition = definition if above.level + optional else None
    values.repetition = above.repetition if above.depth else None
    return values


def _validity(array: NestedArray) -> np.ndarray:
    validity = array.values.validity if isinstance(array, LeafArray) else array.validity
    return np.ones(array.length, np.uint8) if validity is None else validity


def _stored(node: Node, array: LeafArray) -> LeafArray:
    """Give values in the physical type that the schema wants, where that is not the usual one of their type."""
    is_decimal = node.logical is not None and node.logical.kind == "DECIMAL"
    if node.physical is None or not (is_decimal or node.physical == INT96):
        return array
    usual = stored_as(resolve(node.physical, node.type_length or None, node.logical))
    store = restored(usual, (node.physical, node.type_length, node.logical))
    return array if store is None else replace(array, values=store(array.values))


def _picked(node: Node, array: LeafArray, positions: np.ndarray) -> LeafValues:
    """Give the values at places, which are in order and all different: as views where nothing is left out."""
    values, count = array.values, len(positions)
    where: slice | np.ndarray = positions
    if not count or positions[-1] - positions[0] + 1 == count:
        first = int(positions[0]) if count else 0
        where = slice(first, first + count)
    if values.codes is not None:
        return replace(values, codes=values.codes[where], validity=None)
    if values.starts is not None and values.ends is not None:
        return replace(values, starts=values.starts[where], ends=values.ends[where], validity=None)
    if node.physical in (FIXED_LEN_BYTE_ARRAY, INT96):
        width = _INT96_BYTES if node.physical == INT96 else node.type_length
        items = values.values.reshape(array.length, width)
        return replace(values, values=items[where].reshape(-1), validity=None)
    return replace(values, values=values.values[where], validity=None)
