"""Column mapping of a scan: which leaf of the projection each leaf of a file becomes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from numparq.column.projection import NestedProjection, projection_of
from numparq.format.schema import Leaf

if TYPE_CHECKING:
    from .projected_columns import ProjectedColumns

__all__ = ["FileColumns", "can_be_missing", "leaf_range"]

_Value = TypeVar("_Value")


class FileColumns:
    """Projected columns as files of one schema store them; made by `identity` or `mapped`.

    Attributes
    ----------
    stored : dict of int to Leaf or NestedProjection
        The files' columns by position in the projection; empty if they are the projected columns themselves.
    leaves : sequence of Leaf
        Their leaves: first those decoded into the frame's memory, at `positions` among the projected leaves, then those
        of the columns `cast`.
    missing_positions : sequence of int
        Positions of projected leaves that are null in these files.
    cast : sequence of int
        Positions of columns that any file of the scan casts, and these store.
    """

    __slots__ = (
        "_missing",
        "_num_cast_leaves",
        "_projection",
        "cast",
        "is_identity",
        "leaves",
        "missing_positions",
        "positions",
        "stored",
    )

    is_identity: bool
    stored: dict[int, Leaf | NestedProjection]
    leaves: Sequence[Leaf]
    positions: Sequence[int]
    missing_positions: Sequence[int]
    cast: Sequence[int]
    _projection: ProjectedColumns
    _missing: list[int]
    _num_cast_leaves: list[int]

    @classmethod
    def identity(cls, leaves: Sequence[Leaf]) -> FileColumns:
        """Return the mapping of a file that has the projected leaves themselves."""
        columns = cls()
        columns.is_identity = True
        columns.leaves, columns.positions = leaves, range(len(leaves))
        columns.missing_positions = columns.cast = ()
        columns.stored = {}
        return columns

    @classmethod
    def mapped(
        cls,
        projection: ProjectedColumns,
        stored: Mapping[int, Leaf | NestedProjection | None],
        cast_positions: Collection[int] = (),
    ) -> FileColumns:
        """Return the mapping of files with columns `stored`, by position in the projection; None if they lack one."""
        columns = cls()
        columns.is_identity = False
        columns._projection = projection
        columns.stored = {at: column for at, column in stored.items() if column is not None}
        shared = [at for at in columns.stored if at not in cast_positions]
        columns.positions = [leaf for at in shared for leaf in leaf_range(projection, at)]
        columns.cast = [at for at in columns.stored if at in cast_positions]
        columns._missing = [at for at in stored if at not in columns.stored]
        columns.missing_positions = [
            leaf for at in columns._missing if at not in cast_positions for leaf in leaf_range(projection, at)
        ]
        columns._num_cast_leaves = [len(projection_of([columns.stored[at]]).leaves) for at in columns.cast]
        columns.leaves = projection_of([columns.stored[at] for at in (*shared, *columns.cast)]).leaves
        return columns

    def by_projected_leaf(self, values: Sequence[_Value], of_nested: _Value, of_missing: _Value) -> dict[int, _Value]:
        """Return what is known of the files' leaves by position of the projected leaf.

        `of_nested` stands for leaves of nested columns that are cast, `of_missing` for leaves that the files lack.
        """
        if self.is_identity:
            return dict(enumerate(values))
        known = dict(zip(self.positions, values, strict=False))
        for at, own in zip(self.cast, self._cast_leaves(), strict=True):
            value = values[own.start] if isinstance(self._projection.selected[at], Leaf) else of_nested
            known.update(dict.fromkeys(leaf_range(self._projection, at), value))
        for at in self._missing:
            known.update(dict.fromkeys(leaf_range(self._projection, at), of_missing))
        return known

    def own_leaves(self) -> dict[int, Sequence[int]] | None:
        """Return the positions among `leaves` by projected leaf, or by the first of a cast column; None: the same."""
        if self.is_identity:
            return None
        own: dict[int, Sequence[int]] = {leaf: [at] for at, leaf in enumerate(self.positions)}
        cast = zip(self.cast, self._cast_leaves(), strict=True)
        return own | {self._projection.leaf_slices[at].start: leaves for at, leaves in cast}

    def _cast_leaves(self) -> list[range]:
        first, ranges = len(self.positions), []
        for count in self._num_cast_leaves:
            ranges.append(range(first, first + count))
            first += count
        return ranges


def leaf_range(projection: ProjectedColumns, column: int) -> range:
    """Return the positions of a column's leaves."""
    leaves = projection.leaf_slices[column]
    return range(leaves.start, leaves.stop)


def can_be_missing(column: Leaf | NestedProjection) -> bool:
    """Whether a file without a column can have nulls in the frame's memory: of a nested one, levels of 0."""
    return isinstance(column, Leaf) or all(leaf.max_definition_level for leaf in column.leaves)
