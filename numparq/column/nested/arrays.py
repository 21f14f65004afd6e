"""Nested arrays: validity and offsets of each node, assembled from the levels of the leaves (Dremel)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numparq.column.scratch import allocate
from numparq.errors import InvalidFileError
from numparq.kernels import nested_decode_kernels

from .levels import NestedLeaf
from .nested_type import NestedType, iter_leaves

_DISAGREE = "the columns of a group do not agree on which of its values are null"


@dataclass(slots=True)
class LeafArray:
    """Values of a leaf.

    Parameters
    ----------
    type : NestedType
        What it is an array of.
    length : int
        Its places.
    validity : uint8, or None
        1 where there is a value; None where there is one everywhere.
    values : numpy.ndarray or list of BinaryArray or DictionaryArray
        The values that are there.
    num_values : int
        How many these are.
    """

    type: NestedType
    length: int
    validity: np.ndarray | None
    values: Any
    num_values: int


@dataclass(slots=True)
class StructArray:
    """Structs; each of the children has a place for each of theirs, null where the struct is.

    Parameters
    ----------
    type, length, validity
        As of `LeafArray`.
    children : list of NestedArray
        The fields.
    """

    type: NestedType
    length: int
    validity: np.ndarray | None
    children: list[NestedArray]


@dataclass(slots=True)
class ListArray:
    """Lists, or maps.

    Parameters
    ----------
    type, length, validity
        As of `LeafArray`.
    offsets : int64
        List `i` has the elements from ``offsets[i]`` to ``offsets[i + 1]``; a null list has none.
    children : list of NestedArray
        The elements; of a map the keys and the values.
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
        The column, or what is wanted of it.
    leaves : mapping of int to NestedLeaf
        The levels and values of its leaves, by their ordinals.

    Raises
    ------
    InvalidFileError
        When the leaves of a group do not agree with each other.
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
            others, there = _validity(shape, piece)
            if others != length or not _equal(validity, there):
                raise InvalidFileError(_DISAGREE)
        return StructArray(shape, length, validity, [assemble(child, leaves) for child in shape.children])
    length, validity, offsets = _lists(shape, below[0])
    for piece in below[1:]:
        others, there, ends = _lists(shape, piece)
        if others != length or not _equal(validity, there) or not np.array_equal(offsets, ends):
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
