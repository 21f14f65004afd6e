"""Look-ups: what column indexes leave of a row group or two, told at once, and not by cutting down a plan of a read.

The answers are those of `Planner.refined`. What is not so simple (Bloom filters and dictionaries to ask, more rows than
there are in a few pages) is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..column.chunks import ChunkTables
from ..opened import OpenedFile
from ..plan.row_group_plan import RowGroupPlan
from ..plan.row_ranges import RowRanges
from ..predicate.expression import Expression
from ..schema import Leaf, ordinal_of
from .indexes import Indexes, Together
from .page_rows import PageRows
from .places import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, Places

__all__ = ["MOST_CHUNKS", "MOST_GROUPS", "MOST_ROWS", "LookUp"]

MOST_GROUPS = 2
MOST_CHUNKS = 16
MOST_ROWS = 1 << 17


class LookUp:
    """Plans look-ups in certain row groups by certain columns; made by `of`.

    Nothing in it is of the file but what the footer says, and where indexes lie: files with equal footers share it.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The columns that are read, those of the filters included.
    asked : sequence of Leaf
        Those of the filters.
    tables : ChunkTables
        The chunks of `leaves`.
    row_groups : sequence of int
        Ordinals, of whole row groups.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], asked: Sequence[Leaf], tables: ChunkTables,
        row_groups: Sequence[int],
    ) -> None:  # fmt: skip
        self._leaves = leaves
        self._tables = tables
        self._row_groups = row_groups
        place_of = {leaf.index: place for place, leaf in enumerate(leaves)}
        self._asked = [(place_of[leaf.index], leaf) for leaf in asked]
        self._wanted = {
            COLUMN_INDEX: [(group, leaf.index) for group in row_groups for leaf in asked],
            OFFSET_INDEX: [(group, leaf.index) for group in row_groups for leaf in leaves],
        }
        self._together: Together | None = self._indexes(file).together(self._wanted) if self._are_told(file) else None

    @classmethod
    def of(
        cls, file: OpenedFile, leaves: Sequence[Leaf], asked: Sequence[Leaf], tables: ChunkTables,
        row_groups: Sequence[int],
    ) -> LookUp | None:  # fmt: skip
        """Give what plans look-ups; None where these would be of more than a few chunks. Parameters as above."""
        if len(row_groups) > MOST_GROUPS or len(row_groups) * len(leaves) > MOST_CHUNKS:
            return None
        columns, questions = tuple(map(ordinal_of, leaves)), tuple(map(ordinal_of, asked))
        key = "look-up", columns, questions, file.coalescing, *row_groups
        return Places.of_file(file).kept.get(key, lambda: cls(file, leaves, asked, tables, row_groups))

    def plan(self, file: OpenedFile, bound: Expression) -> list[RowGroupPlan] | None:
        """Plan what is read of the row groups.

        Parameters
        ----------
        file : OpenedFile
            The file, or one with an equal footer.
        bound : Expression
            Made by `bind`, no Constant, of the columns asked; one that statistics do not decide.

        Returns
        -------
        list of RowGroupPlan or None
            In their order, those without rows left out; None where this is no look-up.
        """
        told = self.told(file)
        if told is None:
            return None
        plans, pages = told
        found = []
        for plan, rows in zip(plans, pages.that_may(bound), strict=True):
            if rows.count > MOST_ROWS:
                return None
            if rows:
                found.append(plan.with_rows(rows))
        return found

    def told(self, file: OpenedFile) -> tuple[list[RowGroupPlan], PageRows] | None:
        """Read the indexes that have not been, and give what follows from them, which is kept with them.

        Parameters
        ----------
        file : OpenedFile
            As of `plan`.

        Returns
        -------
        plans : list of RowGroupPlan
            Of all rows of each row group.
        pages : PageRows
            What tells of these. None in place of both where this is no look-up.
        """
        together, found = self._together, None
        if together is None:
            return None
        if file.indexes.keys().isdisjoint(together.wanted):
            found = together.read(file.source)
            file.indexes.update(found.indexes)
        else:
            self._indexes(file).load(self._wanted)
            found = together.found_in(file.indexes)
        return self._made(file) if found is None else found.kept.get(self, lambda: self._made(file))

    def _are_told(self, file: OpenedFile) -> bool:
        """Tell whether there is a column index for all that is asked, and nothing else to ask first."""
        places, asked = Places.of_file(file), self._wanted[COLUMN_INDEX]
        places.note(self._wanted[OFFSET_INDEX])
        return (
            len(self._indexes(file).there(COLUMN_INDEX, asked)) == len(asked)
            and not places.of(BLOOM_FILTER, asked)
            and not any(self._tables.has_dictionary(place, group) for place, _ in self._asked
                        for group in self._row_groups)
        )  # fmt: skip

    def _indexes(self, file: OpenedFile) -> Indexes:
        return Indexes(file, self._leaves, Places.of_file(file))

    def _made(self, file: OpenedFile) -> tuple[list[RowGroupPlan], PageRows]:
        """Make of indexes that have been read the plans of whole row groups, and what tells of their rows."""
        indexes = self._indexes(file)
        plans = [self._whole(indexes, group) for group in self._row_groups]
        return plans, PageRows(file, indexes, plans, self._asked)

    def _whole(self, indexes: Indexes, group: int) -> RowGroupPlan:
        """Plan all rows of a row group, with the pages of columns by their offset indexes where these can be had."""
        (chunks,) = self._tables.whole_chunks([group])
        pairs = zip(chunks, self._leaves, strict=True)
        located = tuple([indexes.pages(whole, group, leaf.index) or whole for whole, leaf in pairs])
        count = self._tables.num_rows_of(group)
        return RowGroupPlan(group, count, RowRanges.all(count), located)
