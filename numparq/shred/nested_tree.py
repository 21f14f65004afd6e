"""Nested values as arrays, one a node of the schema, as Arrow has them: what lists of objects and Arrow data become.

============================================ ====================================== ================================
node                                         array                                  stands for, in Arrow
============================================ ====================================== ================================
holds values                                 `LeafArray`                            the type of the values
group                                        `StructArray`, an array for each child struct
LIST group, one repeated child               `ListArray`, an array for the element  list
MAP group, one repeated child                `ListArray`, arrays for key and value  map
repeated, without LIST or MAP around it      `ListArray`, not null, an array for    list of what is repeated, neither
                                             the element                            nullable
============================================ ====================================== ================================

What is repeated within a LIST is mostly a group of one child, which is then the element. Where `is_element` has it so,
it is the element itself; its array is then a `LeafArray` or a `StructArray`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..leaves import LeafValues, Node
from ..schema import REPEATED

__all__ = ["LeafArray", "ListArray", "NestedArray", "StructArray", "is_collection", "is_element", "is_nested"]


@dataclass(slots=True)
class LeafArray:
    """Values of a leaf.

    Parameters
    ----------
    length : int
        How many places it has, nulls included.
    values : LeafValues
        A value for each place, without levels.
    """

    length: int
    values: LeafValues


@dataclass(slots=True)
class StructArray:
    """Groups that are neither LIST nor MAP.

    Parameters
    ----------
    length : int
        How many places it has.
    validity : uint8, or None
        1 where there is a group; None where none is null.
    children : tuple of NestedArray
        The fields, in the node's order, each of this length.
    """

    length: int
    validity: np.ndarray | None
    children: tuple[NestedArray, ...]


@dataclass(slots=True)
class ListArray:
    """Lists or maps.

    Parameters
    ----------
    length : int
        How many places it has.
    validity : uint8, or None
        1 where there is a list, an empty one too; None where none is null.
    offsets : int64
        List `i` has the elements from ``offsets[i]`` to ``offsets[i + 1]``; those of a null list are skipped.
    children : tuple of NestedArray
        The elements; of a map the keys and the values. (A `StructArray` may also be given as its children.)
    """

    length: int
    validity: np.ndarray | None
    offsets: np.ndarray
    children: tuple[NestedArray, ...]


NestedArray = LeafArray | StructArray | ListArray
_COLLECTIONS = ("LIST", "MAP", "MAP_KEY_VALUE")


def is_collection(node: Node) -> bool:
    """Say whether a node is a list or a map: a group marked as one, around one repeated child.

    A map's holds a key and a value, or keys alone.
    """
    if node.logical is None or node.logical.kind not in _COLLECTIONS or len(node.children) != 1:
        return False
    repeated = node.children[0]
    return repeated.repetition == REPEATED and (node.logical.kind == "LIST" or len(repeated.children) in (1, 2))


def is_element(around: Node, repeated: Node) -> bool:
    """Say whether what is repeated is the element of a list, not a group around it (LogicalTypes.md, Lists).

    Parameters
    ----------
    around : Node
        The LIST or MAP group; `repeated` itself where there is none.
    repeated : Node
        What is repeated.
    """
    if around is repeated or repeated.physical is not None:
        return True
    if around.logical is None or around.logical.kind != "LIST":
        return False
    named_so = repeated.name in ("array", f"{around.name}_tuple")
    return named_so or len(repeated.children) != 1 or repeated.children[0].repetition == REPEATED


def is_nested(node: Node) -> bool:
    """Say whether a top-level column has to be shredded: a group, or repeated."""
    return node.physical is None or node.repetition == REPEATED
