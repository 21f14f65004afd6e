"""Shred nested arrays to definition levels, repetition levels and values (Dremel)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.physical_type import FIXED_LEN_BYTE_ARRAY, INT96
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from numparq.kernels.kernel_groups import nested_encode_kernels
from numparq.kernels.status import check_status
from numparq.types.arrow_fields import is_list_element, is_list_or_map


@dataclass(slots=True)
class UnshreddedLeaf:
    """Values of a leaf: `length` slots, nulls included, without levels."""

    length: int
    values: LeafValues


@dataclass(slots=True)
class UnshreddedStruct:
    """Structs: groups that are neither LIST nor MAP.

    Attributes
    ----------
    validity : numpy.ndarray or None
        uint8, 0 for a null struct; None if none is null.
    children : tuple of UnshreddedArray
        Fields in the node's order, each with `length` slots.
    """

    length: int
    validity: np.ndarray | None
    children: tuple[UnshreddedArray, ...]


@dataclass(slots=True)
class UnshreddedList:
    """Lists or maps.

    Attributes
    ----------
    validity : numpy.ndarray or None
        uint8, 0 for a null list; None if none is null.
    offsets : numpy.ndarray
        int64: list `i` has elements ``offsets[i]`` to ``offsets[i + 1]``; those of a null list are skipped.
    children : tuple of UnshreddedArray
        The elements; keys and values of a map.
    """

    length: int
    validity: np.ndarray | None
    offsets: np.ndarray
    children: tuple[UnshreddedArray, ...]


UnshreddedArray = UnshreddedLeaf | UnshreddedStruct | UnshreddedList

MAX_LEVEL = 255  # levels are uint8
_INT96_BYTES = 12
ToPhysical = Callable[[SchemaNode, UnshreddedLeaf], UnshreddedLeaf]


@dataclass(frozen=True, slots=True)
class LevelEntries:
    """Level entries of all leaves below a node; see `numparq.kernels.nested`.

    Attributes
    ----------
    index : numpy.ndarray
        int64, the slot in the node's array, or -1.
    definition, repetition : numpy.ndarray
        uint8, the levels so far.
    level, depth : int
        Maximum definition and repetition level so far.
    is_owned : bool
        Whether `index` and `definition` may be overwritten: fresh memory costs more than the work.
    stored : callable or None
        Casts the values of a leaf to its physical type.
    """

    index: np.ndarray
    definition: np.ndarray
    repetition: np.ndarray
    level: int = 0
    depth: int = 0
    is_owned: bool = True
    stored: ToPhysical | None = None

    def output_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return output arrays for the next indices and definition levels: its own if owned, else new ones."""
        if self.is_owned:
            return self.index, self.definition
        return np.empty_like(self.index), np.empty_like(self.definition)


def shred(node: SchemaNode, array: UnshreddedArray, stored: ToPhysical | None = None) -> list[LeafValues]:
    """Shred rows of a nested column into one LeafValues a leaf, in schema order, with levels and dense values.

    SchemaError for a null in a REQUIRED node or too many levels. `stored` casts a leaf to its physical type.
    """
    index = np.arange(array.length, dtype=np.int64)
    definition = np.zeros(array.length, np.uint8)
    shredded: list[LeafValues] = []
    _shred_node(
        node,
        array,
        LevelEntries(index, definition, np.zeros(array.length, np.uint8), stored=stored),
        (node.name,),
        shredded,
    )
    return shredded


def _shred_node(
    node: SchemaNode, array: UnshreddedArray, above: LevelEntries, path: tuple[str, ...], shredded: list[LeafValues]
) -> None:
    """Append the leaves of a node to `shredded`."""
    optional = int(node.repetition == OPTIONAL)
    if above.level + (node.repetition != REQUIRED) + is_list_or_map(node) > MAX_LEVEL:
        raise SchemaError(f"the schema has more than {MAX_LEVEL} levels", column=".".join(path))
    if node.repetition == REPEATED:
        _shred_list(node, node, array, above, path, shredded)
    elif is_list_or_map(node):
        repeated = node.children[0]
        _shred_list(node, repeated, array, above, (*path, repeated.name), shredded)
    elif node.physical is not None:
        assert isinstance(array, UnshreddedLeaf)
        shredded.append(_shred_leaf(node, array, above, optional, path))
    else:
        assert isinstance(array, UnshreddedStruct)
        within = _enter_group(array, above, optional, path)
        _shred_children(node, array.children, within, path, shredded)


def _shred_children(
    node: SchemaNode,
    arrays: tuple[UnshreddedArray, ...],
    within: LevelEntries,
    path: tuple[str, ...],
    shredded: list[LeafValues],
) -> None:
    if not node.children:
        raise SchemaError(
            "a struct without fields cannot be written: Parquet has no groups without columns", column=".".join(path)
        )
    last = len(arrays) - 1
    for number, (child, array) in enumerate(zip(node.children, arrays, strict=True)):
        above = within if number == last else replace(within, is_owned=False)
        _shred_node(child, array, above, (*path, child.name), shredded)


def _shred_list(
    node: SchemaNode,
    repeated: SchemaNode,
    array: UnshreddedArray,
    above: LevelEntries,
    path: tuple[str, ...],
    shredded: list[LeafValues],
) -> None:
    """Append the leaves below a repeated node; `node` is the LIST or MAP group around it, or the same node."""
    assert isinstance(array, UnshreddedList)
    within = _enter_list(array, above, int(node.repetition == OPTIONAL), path)
    if is_list_element(node, repeated):
        _shred_node(replace(repeated, repetition=REQUIRED), array.children[0], within, path, shredded)
    else:
        _shred_children(repeated, array.children, within, path, shredded)


def _enter_group(array: UnshreddedStruct, above: LevelEntries, optional: int, path: tuple[str, ...]) -> LevelEntries:
    if not optional and array.validity is None:
        return above
    index, definition = above.output_arrays()
    status = nested_encode_kernels.shred_group(
        above.index, above.definition, len(index), _validity(array), optional, index, definition
    )
    check_status(status, SchemaError, column=".".join(path))
    return replace(above, index=index, definition=definition, level=above.level + optional, is_owned=True)


def _enter_list(array: UnshreddedList, above: LevelEntries, optional: int, path: tuple[str, ...]) -> LevelEntries:
    validity, count = _validity(array), len(above.index)
    num_elements = min(child.length for child in array.children)
    entries = nested_encode_kernels.count_list_entries(above.index, count, validity, array.offsets, num_elements)
    check_status(entries, SchemaError, column=".".join(path))
    index = np.empty(entries, np.int64)
    definition, repetition = np.empty(entries, np.uint8), np.empty(entries, np.uint8)
    depth = above.depth + 1
    status = nested_encode_kernels.shred_list(
        above.index,
        above.definition,
        above.repetition,
        count,
        validity,
        optional,
        array.offsets,
        depth,
        index,
        definition,
        repetition,
    )
    check_status(status, SchemaError, column=".".join(path))
    return LevelEntries(index, definition, repetition, above.level + optional + 1, depth, stored=above.stored)


def _shred_leaf(
    node: SchemaNode, array: UnshreddedLeaf, above: LevelEntries, optional: int, path: tuple[str, ...]
) -> LeafValues:
    positions, definition = above.output_arrays()
    present = nested_encode_kernels.shred_leaf(
        above.index, above.definition, len(positions), _validity(array), optional, definition, positions
    )
    check_status(present, SchemaError, column=".".join(path))
    values = _take_values(node, array if above.stored is None else above.stored(node, array), positions[:present])
    values.definition_levels = definition if above.level + optional else None
    values.repetition_levels = above.repetition if above.depth else None
    return values


def _validity(array: UnshreddedArray) -> np.ndarray:
    validity = array.values.validity if isinstance(array, UnshreddedLeaf) else array.validity
    return np.ones(array.length, np.uint8) if validity is None else validity


def _take_values(node: SchemaNode, array: UnshreddedLeaf, positions: np.ndarray) -> LeafValues:
    """Return the values at ascending positions, as views where these are contiguous."""
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
