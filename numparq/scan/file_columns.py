"""Column mapping of a scan: which leaf of the projection each leaf of a file becomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from numparq.column.projection import NestedProjection, projection_of
from numparq.format.schema import Leaf

from .leaf_casts import LeafCast, map_leaves

_Value = TypeVar("_Value")


class SelectedColumns(Protocol):
    """Columns that a read selects, and the slice of each among the projected leaves."""

    @property
    def selected(self) -> Sequence[Leaf | NestedProjection]:
        """Selected columns."""

    @property
    def leaf_slices(self) -> Sequence[slice]:
        """Slice of each among the projected leaves."""


class CastColumn(NamedTuple):
    """A column that a file casts: its name, positions of its projected leaves and of the file's, and their casts."""

    name: str
    projected: range
    leaves: range
    casts: Sequence[LeafCast]


class FileColumns:
    """Projected columns as files of one schema store them; made by `identity` or `mapped`.

    Attributes
    ----------
    is_identity : bool
        Whether the files have the projected columns themselves.
    leaves : sequence of Leaf
        Their leaves: first those decoded into the frame's memory, at `positions` among the projected leaves, then those
        of the columns `cast`.
    missing_positions : sequence of int
        Positions of projected leaves that are null in these files.
    cast : sequence of CastColumn
        Columns whose leaves these files cast.
    """

    __slots__ = ("cast", "is_identity", "leaves", "missing_positions", "positions")

    is_identity: bool
    leaves: Sequence[Leaf]
    positions: Sequence[int]
    missing_positions: Sequence[int]
    cast: Sequence[CastColumn]

    @classmethod
    def identity(cls, leaves: Sequence[Leaf]) -> FileColumns:
        """Return the mapping of a file that has the projected leaves themselves."""
        columns = cls()
        columns.is_identity = True
        columns.leaves, columns.positions = leaves, range(len(leaves))
        columns.missing_positions = columns.cast = ()
        return columns

    @classmethod
    def mapped(
        cls,
        projection: SelectedColumns,
        stored: Mapping[int, Leaf | NestedProjection | None],
        cast_positions: Collection[int] = (),
    ) -> FileColumns:
        """Return the mapping of files with columns `stored`, by position in the projection; None if they lack one."""
        columns = cls()
        columns.is_identity = False
        there = {at: column for at, column in stored.items() if column is not None}
        shared = [at for at in there if at not in cast_positions]
        columns.positions = [leaf for at in shared for leaf in leaf_range(projection, at)]
        columns.missing_positions = [leaf for at in stored if at not in there for leaf in leaf_range(projection, at)]
        leaves = projection_of([there[at] for at in shared]).leaves
        cast = []
        for at in there:
            if at in cast_positions:
                column, first = projection.selected[at], len(leaves)
                leaves += projection_of([there[at]]).leaves
                casts = map_leaves(column, there[at])
                cast.append(CastColumn(column.name, leaf_range(projection, at), range(first, len(leaves)), casts))
        columns.leaves, columns.cast = leaves, cast
        return columns

    def by_projected_leaf(self, values: Sequence[_Value], of_nested: _Value, of_missing: _Value) -> dict[int, _Value]:
        """Return what is known of the files' leaves by position of the projected leaf.

        `of_nested` stands for leaves of nested columns that are cast, `of_missing` for leaves that the files lack.
        """
        if self.is_identity:
            return dict(enumerate(values))
        known = dict(zip(self.positions, values, strict=False))
        for column in self.cast:
            value = of_nested if column.casts[0].levels else values[column.leaves.start]
            known.update(dict.fromkeys(column.projected, value))
        return known | dict.fromkeys(self.missing_positions, of_missing)

    def own_leaves(self) -> dict[int, Sequence[int]] | None:
        """Return the positions among `leaves` by projected leaf, or by the first of a cast column; None: the same."""
        if self.is_identity:
            return None
        own: dict[int, Sequence[int]] = {leaf: [at] for at, leaf in enumerate(self.positions)}
        return own | {column.projected.start: column.leaves for column in self.cast}


def leaf_range(projection: SelectedColumns, column: int) -> range:
    """Return the positions of a column's leaves."""
    leaves = projection.leaf_slices[column]
    return range(leaves.start, leaves.stop)
