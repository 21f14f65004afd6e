"""Nested arrays: validity and offsets of each node, assembled from the levels of the leaves (Dremel)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numparq.column.scratch import allocate
from numparq.errors import InvalidFileError
from numparq.kernels.kernel_groups import nested_decode_kernels

from .levels import NestedLeaf
from .nested_type import NestedType, iter_leaves

_DISAGREE = "the columns of a group do not agree on which of its values are null"


@dataclass(slots=True)
class LeafArray:
    """Values of a leaf.

    Parameters
    ----------
    type : NestedType
        Node of the leaf.
    length : int
        Number of slots, nulls included.
    validity : uint8, or None
        1 for a value, 0 for a null; None without nulls.
    values : numpy.ndarray or list of BinaryArray or DictionaryArray
        Dense values, without nulls.
    num_values : int
        Number of dense values.
    """

    type: NestedType
    length: int
    validity: np.ndarray | None
    values: Any
    num_values: int


@dataclass(slots=True)
class StructArray:
    """Structs; each child has a slot for each struct, and is null where the struct is null.

    Parameters
    ----------
    type, length, validity
        As in `LeafArray`.
    children : list of NestedArray
        Fields.
    """

    type: NestedType
    length: int
    validity: np.ndarray | None
    children: list[NestedArray]


@dataclass(slots=True)
class ListArray:
    """Lists or maps.

    Parameters
    ----------
    type, length, validity
        As in `LeafArray`.
    offsets : int64
        Elements of list `i` lie from ``offsets[i]`` to ``offsets[i + 1]`` (exclusive); a null list has none.
    children : list of NestedArray
        Elements of lists; keys and values of maps.
    """

    type: NestedType
    length: int
    validity: np.ndarray | None
    offsets: np.ndarray
    children: list[NestedArray]


NestedArray = LeafArray | StructArray | ListArray


def assemble(shape: NestedType, leaves: Mapping[int, NestedLeaf]) -> NestedArray:
    """Assemble the arrays of a nested column.

    Parameters
    ----------
    shape : NestedType
        Node of the column, with the projected leaves only.
    leaves : mapping of int to NestedLeaf
        Levels and values by leaf ordinal.

    Raises
    ------
    InvalidFileError
        If the leaves of a group differ in the nulls or lengths of the group.
    """
    if shape.leaf is not None:
        piece = leaves[shape.leaf.index]
        length, validity = _validity(shape, piece)
        present = length if validity is None else int(np.count_nonzero(validity))
        return LeafArray(shape, length, validity, piece.values, present)
    below = [leaves[leaf.index] for leaf in iter_leaves(shape)]
    if shape.kind == "struct":
        length, validity = _validity(shape, below[0])
        for piece in below[1:]:
            other_length, other_validity = _validity(shape, piece)
            if other_length != length or not _equal(validity, other_validity):
                raise InvalidFileError(_DISAGREE)
        return StructArray(shape, length, validity, [assemble(child, leaves) for child in shape.children])
    length, validity, offsets = _lists(shape, below[0])
    for piece in below[1:]:
        other_length, other_validity, other_offsets = _lists(shape, piece)
        is_same = other_length == length and np.array_equal(offsets, other_offsets)
        if not is_same or not _equal(validity, other_validity):
            raise InvalidFileError(_DISAGREE)
    return ListArray(shape, length, validity, offsets, [assemble(child, leaves) for child in shape.children])


def _equal(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _validity(shape: NestedType, piece: NestedLeaf) -> tuple[int, np.ndarray | None]:
    """Return the number of slots of a node, and their validity."""
    if piece.definition is None:
        return piece.num_entries, None
    if piece.repetition is None:
        validity = (piece.definition >= shape.definition_level).view(np.uint8)
        return piece.num_entries, None if validity.all() else validity
    validity = allocate(piece.num_entries)
    length = nested_decode_kernels.assemble_validity(
        piece.definition,
        piece.repetition,
        piece.num_entries,
        shape.repetition_level,
        shape.repeated_ancestor_level,
        shape.definition_level,
        validity,
    )
    validity = validity[:length]
    return length, None if validity.all() else validity


def _lists(shape: NestedType, piece: NestedLeaf) -> tuple[int, np.ndarray | None, np.ndarray]:
    """Return the number of slots of a list, their validity, and the offsets into the elements."""
    assert piece.definition is not None
    assert piece.repetition is not None
    validity, offsets = allocate(piece.num_entries), allocate(piece.num_entries + 1, "i8")
    length = nested_decode_kernels.assemble_lists(
        piece.definition,
        piece.repetition,
        piece.num_entries,
        shape.repetition_level,
        shape.repeated_ancestor_level,
        shape.definition_level,
        shape.element_level,
        validity,
        offsets,
    )
    validity, offsets = validity[:length], offsets[: length + 1]
    return length, None if validity.all() else validity, offsets
