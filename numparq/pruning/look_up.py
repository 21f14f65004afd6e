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
from ..predicate.bound import leaves_of
from ..predicate.expression import Expression
from ..schema import Leaf
from .indexes import Indexes
from .page_rows import PageRows
from .places import BLOOM_FILTER, COLUMN_INDEX, OFFSET_INDEX, Places

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
        plans = [self._whole(group) for group in row_groups]
        pages = PageRows(self._file, self._indexes, plans, [(self._place_of[leaf.index], leaf) for leaf in asked])
        left = pages.that_may(bound)
        if any(rows.count > _MOST_ROWS for rows in left):
            return None
        return [plan.with_rows(rows) for plan, rows in zip(plans, left, strict=True) if rows]

    def _may_tell(self, row_groups: Sequence[int], asked: Sequence[Leaf]) -> bool:
        """Tell whether there is a column index for all that is asked, and nothing else to ask first."""
        chunks = [(group, leaf.index) for group in row_groups for leaf in asked]
        self._places.note([(group, leaf.index) for group in row_groups for leaf in self._leaves])
        return (
            len(self._indexes.there(COLUMN_INDEX, chunks)) == len(chunks)
            and not self._places.of(BLOOM_FILTER, chunks)
            and not any(self._tables.has_dictionary(self._place_of[leaf], group) for group, leaf in chunks)
        )

    def _whole(self, group: int) -> RowGroupPlan:
        """Plan all rows of a row group, with the pages of columns by their offset indexes where these can be had."""
        (chunks,) = self._tables.whole_chunks([group])
        pairs = zip(chunks, self._leaves, strict=True)
        located = tuple([self._indexes.pages(whole, group, leaf.index) or whole for whole, leaf in pairs])
        count = self._tables.num_rows_of(group)
        return RowGroupPlan(group, count, RowRanges.all(count), located)
