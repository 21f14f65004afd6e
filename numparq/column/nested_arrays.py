"""Levels to arrays: each node of a nested column with its validity and, of lists, the offsets into its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidFileError
from ..kernels import nested_kernels
from ..schema import Leaf
from ..targets import Target
from .nested import NestedPiece
from .scratch import allocate
from .shape import Shape, leaves_of

__all__ = ["LeafArray", "ListArray", "NestedArray", "StructArray", "joined", "nested_array"]

_DISAGREE = "the columns of a group do not agree on which of its values are there"


@dataclass(slots=True)
class LeafArray:
    """Values of a leaf.

    Parameters
    ----------
    shape : Shape
        What it is an array of.
    length : int
        Its places.
    validity : uint8, or None
        1 where there is a value; None where there is one everywhere.
    values : numpy.ndarray or list of BinaryPiece or DictionaryPiece
        The values that are there.
    num_values : int
        How many these are.
    """

    shape: Shape
    length: int
    validity: np.ndarray | None
    values: Any
    num_values: int


@dataclass(slots=True)
class StructArray:
    """Structs; each of the children has a place for each of theirs, null where the struct is.

    Parameters
    ----------
    shape, length, validity
        As of `LeafArray`.
    children : list of NestedArray
        The fields.
    """

    shape: Shape
    length: int
    validity: np.ndarray | None
    children: list[NestedArray]


@dataclass(slots=True)
class ListArray:
    """Lists, or maps.

    Parameters
    ----------
    shape, length, validity
        As of `LeafArray`.
    offsets : int64
        List `i` has the elements from ``offsets[i]`` to ``offsets[i + 1]``; a null list has none.
    children : list of NestedArray
        The elements; of a map the keys and the values.
    """

    shape: Shape
    length: int
    validity: np.ndarray | None
    offsets: np.ndarray
    children: list[NestedArray]


NestedArray = LeafArray | StructArray | ListArray


def joined(pieces: Sequence[NestedPiece], leaf: Leaf, target: Target) -> NestedPiece:
    """Put the pieces of a leaf one behind the other.

    Parameters
    ----------
    pieces : sequence of NestedPiece
        Of row groups; none of them, where no rows are read.
    leaf : Leaf
        The leaf.
    target : Target
        How it was decoded.
    """
    if len(pieces) == 1:
        return pieces[0]
    values: Any
    if target.storage == "binary":
        values = [part for piece in pieces for part in piece.values]
    else:
        nothing = np.empty(0, object if target.dtype is None else target.dtype)
        values = np.concatenate([nothing, *(piece.values for piece in pieces)])
    return NestedPiece(
        _levels([piece.definition for piece in pieces], leaf.max_definition_level),
        _levels([piece.repetition for piece in pieces], leaf.max_repetition_level),
        sum(piece.num_entries for piece in pieces),
        values,
        -1,
    )


def _levels(parts: list[Any], most: int) -> np.ndarray | None:
    return np.concatenate([np.empty(0, np.uint8), *parts]) if most else None


def nested_array(shape: Shape, leaves: Mapping[int, NestedPiece]) -> NestedArray:
    """Make the arrays of a nested column.

    Parameters
    ----------
    shape : Shape
        The column, or what is wanted of it.
    leaves : mapping of int to NestedPiece
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
    below = [leaves[leaf.index] for leaf in leaves_of(shape)]
    if shape.kind == "struct":
        length, validity = _validity(shape, below[0])
        for piece in below[1:]:
            others, there = _validity(shape, piece)
            if others != length or not _equal(validity, there):
                raise InvalidFileError(_DISAGREE)
        return StructArray(shape, length, validity, [nested_array(child, leaves) for child in shape.children])
    length, validity, offsets = _lists(shape, below[0])
    for piece in below[1:]:
        others, there, ends = _lists(shape, piece)
        if others != length or not _equal(validity, there) or not np.array_equal(offsets, ends):
            raise InvalidFileError(_DISAGREE)
    return ListArray(shape, length, validity, offsets, [nested_array(child, leaves) for child in shape.children])


def _equal(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _validity(shape: Shape, piece: NestedPiece) -> tuple[int, np.ndarray | None]:
    """Give the number of places of a node, and which of them are not null."""
    if piece.definition is None:
        return piece.num_entries, None
    if piece.repetition is None:
        validity = (piece.definition >= shape.level).view(np.uint8)
        return piece.num_entries, None if validity.all() else validity
    validity = allocate(piece.num_entries)
    length = nested_kernels.place_validity(
        piece.definition, piece.repetition, piece.num_entries, shape.depth, shape.place_level, shape.level, validity
    )
    validity = validity[:length]
    return length, None if validity.all() else validity


def _lists(shape: Shape, piece: NestedPiece) -> tuple[int, np.ndarray | None, np.ndarray]:
    """Give the number of places of a list, which of them are not null, and the offsets into the elements."""
    assert piece.definition is not None and piece.repetition is not None
    validity, offsets = allocate(piece.num_entries), allocate(piece.num_entries + 1, "i8")
    length = nested_kernels.place_lists(
        piece.definition, piece.repetition, piece.num_entries, shape.depth, shape.place_level, shape.level,
        shape.element_level, validity, offsets,
    )  # fmt: skip
    validity, offsets = validity[:length], offsets[: length + 1]
    return length, None if validity.all() else validity, offsets
