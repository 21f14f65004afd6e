"""Look-ups: what column indexes leave of a row group or two, told at once, and not by cutting down a plan of a read.

The answers are those of `Planner.refined`. What is not so simple (Bloom filters and dictionaries to ask, more rows than
there are in a few pages) is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..column.chunks import ChunkTables
from ..opened import OpenedFile
from ..plan.pages import ChunkPages
from ..plan.row_group_plan import RowGroupPlan
from ..plan.row_ranges import RowRanges
from ..predicate.bound import leaves_of
from ..predicate.expression import Expression
from ..schema import Leaf
from .chunk_facts import order_in
from .indexes import Indexes
from .match import fold, may_mask
from .places import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, Places
from .reasons import conjuncts

__all__ = ["MOST_GROUPS", "LookUp"]

MOST_GROUPS = 2
_MOST_CHUNKS = 16
_MOST_ROWS = 1 << 17


class LookUp:
    """Plans look-ups.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The columns that are read, those of the filters included.
    tables : ChunkTables
        Their chunks.
    places : Places
        Of the file.
    indexes : Indexes
        Of these columns.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], tables: ChunkTables, places: Places, indexes: Indexes
    ) -> None:  # fmt: skip
        self._file = file
        self._leaves = leaves
        self._tables = tables
        self._places = places
        self._indexes = indexes
        self._place_of = {leaf.index: place for place, leaf in enumerate(leaves)}

    def plan(self, row_groups: Sequence[int], bound: Expression) -> list[RowGroupPlan] | None:
        """Plan what is read of whole row groups.

        Parameters
        ----------
        row_groups : sequence of int
            Ordinals: those that statistics leave, and do not decide.
        bound : Expression
            Made by `bind`, no Constant.

        Returns
        -------
        list of RowGroupPlan or None
            In this order, those without rows left out; None where this is no look-up.
        """
        if len(row_groups) > MOST_GROUPS or len(row_groups) * len(self._leaves) > _MOST_CHUNKS:
            return None
        asked = leaves_of(bound)
        if not self._may_tell(row_groups, asked):
            return None
        self._indexes.load({
            COLUMN_INDEX: [(group, leaf.index) for group in row_groups for leaf in asked],
            OFFSET_INDEX: [(group, leaf.index) for group in row_groups for leaf in self._leaves],
        })  # fmt: skip
        found = []
        for group in row_groups:
            chunks = self._located(group)
            rows = self._rows(group, chunks, bound)
            if rows is None or rows.count > _MOST_ROWS:
                return None
            if rows:
                found.append(RowGroupPlan(group, self._tables.num_rows_of(group), rows, chunks))
        return found

    def _may_tell(self, row_groups: Sequence[int], asked: Sequence[Leaf]) -> bool:
        """Tell whether there is a column index for all that is asked, and nothing else to ask first."""
        chunks = [(group, leaf.index) for group in row_groups for leaf in asked]
        self._places.note([(group, leaf.index) for group in row_groups for leaf in self._leaves])
        return (
            len(self._indexes.there(COLUMN_INDEX, chunks)) == len(chunks)
            and not self._places.of(BLOOM_FILTER, chunks)
            and not any(self._tables.has_dictionary(self._place_of[leaf], group) for group, leaf in chunks)
        )

    def _located(self, group: int) -> tuple[ChunkPages, ...]:
        """Give the pages of all columns, by their offset indexes where these can be had."""
        (chunks,) = self._tables.whole_chunks([group])
        pairs = zip(chunks, self._leaves, strict=True)
        return tuple([self._indexes.pages(whole, group, leaf.index) or whole for whole, leaf in pairs])

    def _rows(self, group: int, chunks: Sequence[ChunkPages], bound: Expression) -> RowRanges | None:
        """Give the rows that the column indexes leave; None where they do not tell."""
        found: RowRanges | None = None
        for part in conjuncts(bound):
            leaves = leaves_of(part)
            rows = self._by_pages(group, chunks, part, leaves[0]) if len(leaves) == 1 else None
            if rows is None:
                return None
            found = rows if found is None else found & rows
        return found

    def _by_pages(self, group: int, chunks: Sequence[ChunkPages], part: Expression, leaf: Leaf) -> RowRanges | None:
        """Give the rows that the column index of the one column that is asked leaves; None where it does not tell."""
        pages, index = chunks[self._place_of[leaf.index]], self._indexes.column_index(group, leaf.index)
        if index is None or not pages.is_indexed or pages.num_pages != len(index.null_pages):
            return None
        num_values, order = pages.row_stops - pages.first_rows, order_in(self._file, leaf)
        runs = index.runs(num_values, leaf, order, self._file.footer.created_by)
        mask = fold(part, lambda test: may_mask(test, runs), lambda value: np.full(len(runs), value))
        return pages.rows_of(mask)
