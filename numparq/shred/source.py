"""Columns on their way to a file: values that have a type but no name yet (`Source`), and named ones (`Column`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrow_schema import ArrowType
from ..errors import located
from ..leaves import LeafValues, Node
from .storage import stored_as

Convert = Callable[[np.ndarray], LeafValues]
Leaves = Callable[[int, int], list[LeafValues]]


@dataclass(frozen=True, slots=True)
class ArrowField:
    """A column as Arrow describes it, for the footer's ``ARROW:schema``.

    Parameters
    ----------
    name : str
        Its name.
    type : ArrowType
        Its type; of a nested one the ``kind`` is ``list``, ``large_list``, ``fixed_size_list``, ``struct`` or ``map``.
    children : tuple of ArrowField
        Of a nested type: the item of a list, the entries of a map (a struct of key and value), the fields of a struct.
    nullable : bool
        Whether there may be nulls.
    """

    name: str
    type: ArrowType
    children: tuple[ArrowField, ...] = ()
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """The values of a column without its name.

    Parameters
    ----------
    type : ArrowType
        What they are in Arrow's terms.
    leaves : callable
        As `numparq.leaves.SourceColumn.leaves`: gives the values of rows `start` to `stop`.
    children : tuple of (str, ArrowType)
        Names and types of the leaves of a struct; empty for a flat column.
    """

    type: ArrowType
    leaves: Leaves
    children: tuple[tuple[str, ArrowType], ...] = ()

    def node(self, name: str) -> Node:
        """Give the schema of the column, under a name."""
        if self.children:
            return Node(name, children=tuple(Source(child, self.leaves).node(label) for label, child in self.children))
        physical, length, logical = stored_as(self.type)
        return Node(name, physical=physical, type_length=length, logical=logical)

    def field(self, name: str) -> ArrowField:
        """Give the column as Arrow describes it, under a name."""
        return ArrowField(name, self.type, tuple(ArrowField(label, child) for label, child in self.children))


class Column:
    """A column of the file: a `numparq.leaves.SourceColumn`.

    Parameters
    ----------
    name : str
        Its name in the file.
    source : Source
        Its values.
    node : Node or None
        Its schema, where that is not just what the source has; the values have to fit it.
    field : ArrowField or None
        The same in Arrow's terms.

    Attributes
    ----------
    node : Node
        Its schema.
    field : ArrowField
        The same in Arrow's terms.
    """

    def __init__(self, name: str, source: Source, node: Node | None = None, field: ArrowField | None = None) -> None:
        self.node = source.node(name) if node is None else node
        self.field = source.field(name) if field is None else field
        self._leaves = source.leaves

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Give the values of rows `start` to `stop`, as `numparq.leaves.SourceColumn.leaves` says."""
        with located(column=self.node.name):
            return self._leaves(start, stop)


def flat(arrow_type: ArrowType, take: Callable[[int, int], np.ndarray], convert: Convert) -> Source:
    """Give a source of one leaf, whose values are taken by ranges of rows and converted.

    Parameters
    ----------
    arrow_type : ArrowType
        What the values are.
    take : callable
        Gives the array of rows `start` to `stop`.
    convert : callable
        Makes the leaf's values of such an array.
    """
    return Source(arrow_type, lambda start, stop: [convert(take(start, stop))])


def slices(values: np.ndarray) -> Callable[[int, int], np.ndarray]:
    """Give the function that takes rows of an array."""
    return lambda start, stop: values[start:stop]


def contiguous(values: np.ndarray) -> np.ndarray:
    """Give an array's values as a contiguous array of native byte order; itself where it is one."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def validity_of(present: np.ndarray) -> np.ndarray | None:
    """Give a bool array, False at nulls, as a validity; None where there are no nulls."""
    return None if present.all() else present.view(np.uint8)
