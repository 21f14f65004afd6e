"""Columns of a read as files of one schema have them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from numparq.column.projection import NestedProjection, projection_of
from numparq.format.schema import Leaf

from .projected_columns import ProjectedColumns

__all__ = ["FileColumns", "can_be_missing", "leaf_range"]

_Answer = TypeVar("_Answer")


class FileColumns:
    """Columns of files of one schema; `own` has them by position in the table, None for one that they lack.

    `apart` are the positions of columns that some file casts: each file decodes them on its own.

    Attributes
    ----------
    stored : dict of int to Leaf or NestedProjection
        The files' columns, by position in the table.
    leaves : list of Leaf
        Their leaves: first those decoded into the table's memory, whose `places` there are given, then those `cast`.
    missing_places : list of int
        Places of the table's leaves that are null in these files.
    """

    def __init__(
        self, table: ProjectedColumns, own: Mapping[int, Leaf | NestedProjection | None], apart: Collection[int] = ()
    ) -> None:
        self._table = table
        self.apart = apart
        self.stored = {at: column for at, column in own.items() if column is not None}
        shared = [at for at in self.stored if at not in apart]
        self.places = [place for at in shared for place in leaf_range(table, at)]
        self.cast = [at for at in self.stored if at in apart]
        self._missing = [at for at in own if at not in self.stored]
        self.missing_places = [place for at in self._missing if at not in apart for place in leaf_range(table, at)]
        self.cast_projection = projection_of([self.stored[at] for at in self.cast])
        self._num_leaves = [len(projection_of([self.stored[at]]).leaves) for at in self.cast]
        self.leaves = projection_of([self.stored[at] for at in (*shared, *self.cast)]).leaves

    def table_answers(self, answers: Sequence[_Answer], of_nested: _Answer, of_missing: _Answer) -> dict[int, _Answer]:
        """Return answers about the leaves by place in the table; `of_nested` is that of nested columns cast."""
        found = dict(zip(self.places, answers, strict=False))
        for at, own in zip(self.cast, self._cast_positions(), strict=True):
            of_leaf = answers[own.start] if isinstance(self._table.selected[at], Leaf) else of_nested
            found.update(dict.fromkeys(leaf_range(self._table, at), of_leaf))
        for at in self._missing:
            found.update(dict.fromkeys(leaf_range(self._table, at), of_missing))
        return found

    def leaf_positions(self) -> dict[int, Sequence[int]]:
        """Return the positions among `leaves` by the table's leaf, or by the first one of a cast column."""
        found: dict[int, Sequence[int]] = {place: [at] for at, place in enumerate(self.places)}
        cast = zip(self.cast, self._cast_positions(), strict=True)
        return found | {self._table.leaf_slices[at].start: own for at, own in cast}

    def _cast_positions(self) -> list[range]:
        first, found = len(self.places), []
        for count in self._num_leaves:
            found.append(range(first, first + count))
            first += count
        return found


def leaf_range(table: ProjectedColumns, position: int) -> range:
    """Return the places of a column's leaves in the table."""
    place = table.leaf_slices[position]
    return range(place.start, place.stop)


def can_be_missing(column: Leaf | NestedProjection) -> bool:
    """Whether a file without a column can have nulls in its memory: of a nested one, levels of 0."""
    return isinstance(column, Leaf) or all(leaf.max_definition_level for leaf in column.leaves)
