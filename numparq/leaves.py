"""What is to be written: the tree of a schema, and the values of its leaves, as the writer's modules hand them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .metadata.logical_type import LogicalType
from .schema import OPTIONAL, REPEATED, Leaf

__all__ = ["LeafValues", "Node", "SourceColumn", "leaves_of"]


@dataclass(frozen=True, slots=True)
class Node:
    """An element of a schema: a column that holds values, or a group.

    Parameters
    ----------
    name : str
        Its name.
    repetition : int
        REQUIRED, OPTIONAL or REPEATED.
    physical : int or None
        The physical type (0 BOOLEAN to 7 FIXED_LEN_BYTE_ARRAY); None for a group.
    type_length : int
        Bytes of a value, of FIXED_LEN_BYTE_ARRAY.
    logical : LogicalType or None
        What the values mean; of groups LIST, MAP or VARIANT.
    children : tuple of Node
        Of a group.
    field_id : int or None
        Written as it is.
    """

    name: str
    repetition: int = OPTIONAL
    physical: int | None = None
    type_length: int = 0
    logical: LogicalType | None = None
    children: tuple[Node, ...] = ()
    field_id: int | None = None


@dataclass(slots=True)
class LeafValues:
    """The values of one leaf in a range of rows.

    Parameters
    ----------
    values : np.ndarray
        C-contiguous and one-dimensional. By physical type: BOOLEAN uint8 (0 or 1), INT32 int32, INT64 int64, FLOAT
        float32, DOUBLE float64, INT96 and FIXED_LEN_BYTE_ARRAY uint8, value after value as stored, BYTE_ARRAY uint8,
        cut up by `starts` and `ends`. A float16 is FIXED_LEN_BYTE_ARRAY of length 2.
    starts, ends : int64, or None
        Of BYTE_ARRAY: value i is ``values[starts[i]:ends[i]]``.
    validity : uint8, or None
        1 where there is a value; it has an item for every row, and so have the values, whatever stands for a null.
        None where there are no nulls.
    definition, repetition : uint8, or None
        The levels of a leaf that is nested, or is so by its schema; the values are then those that there are, without
        placeholders, and `validity` is None. `repetition` is None where its maximum is 0.
    codes : int32, or None
        Of a column that is dictionary-encoded already (Categorical, Arrow dictionaries): for each row (or, with
        levels, each value that there is) the index of its value in `values`; what it is at a null does not matter.
    keeps_dictionary : bool
        Whether all of `values` are to be in the file, however large a dictionary they make: they are the categories.
    """

    values: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    validity: np.ndarray | None = None
    definition: np.ndarray | None = None
    repetition: np.ndarray | None = None
    codes: np.ndarray | None = None
    keeps_dictionary: bool = False


class SourceColumn(Protocol):
    """A top-level column that can be written: its schema, and its values by ranges of rows.

    Attributes
    ----------
    node : Node
        Its schema.
    """

    node: Node

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Give the values of each of its leaves, in the order of the schema, for rows `start` to `stop`.

        It may be called from any thread, several at once, in any order, and more than once for the same rows. What
        it gives may be a view of the caller's data, and is not written to.
        """
        ...


def leaves_of(columns: list[Node]) -> list[Leaf]:
    """List the leaves of a schema in its order, with their levels.

    Parameters
    ----------
    columns : list of Node
        The top-level columns.

    Returns
    -------
    list of Leaf
        `Leaf.element` counts the elements depth first, the root being 0.
    """
    found: list[Leaf] = []
    element = 0

    def walk(node: Node, column: int, path: tuple[str, ...], definition: int, repetition: int) -> None:
        nonlocal element
        element += 1
        path = (*path, node.name)
        definition += node.repetition in (OPTIONAL, REPEATED)
        repetition += node.repetition == REPEATED
        if node.physical is not None:
            length = node.type_length or None
            found.append(Leaf(len(found), column, path, node.physical, length, node.logical, definition, repetition,
                              node.repetition, element))  # fmt: skip
        for child in node.children:
            walk(child, column, path, definition, repetition)

    for number, column in enumerate(columns):
        walk(column, number, (), 0, 0)
    return found
