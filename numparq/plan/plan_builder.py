"""Plan a read step by step: rows and pages of each row group are narrowed in place, and built into a read plan once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .chunk_pages import ChunkPages
from .plan_change import PlanChange
from .read_plan import ReadPlan
from .row_group_plan import RowGroupPlan
from .row_ranges import RowRanges


class PlanBuilder:
    """Row groups of a read that is being planned.

    Parameters
    ----------
    columns : sequence of str
        Leaf columns to read.
    row_groups : iterable of RowGroupPlan
        Row groups in scope, in row order.

    Attributes
    ----------
    groups : dict of int to RowGroupPlan
        Row groups by ordinal, pruned ones included, in row order.

    Examples
    --------
    >>> whole = ReadPlan.read_all(["x"], [30, 30], [[4], [400]], [[400], [800]])
    >>> pages = ChunkPages(4, 400, 30, [[4, 196, 0], [200, 100, 10], [300, 100, 20]])
    >>> builder = PlanBuilder(whole.columns, whole.row_groups)
    >>> builder.narrow({1: RowRanges()}, "statistics", "x < 5")
    >>> builder.set_pages({(0, 0): pages})
    >>> builder.narrow({0: pages.rows_in_pages([1])}, "column index", "x < 5")
    >>> plan = builder.build()
    >>> plan.reads()
    ['row group 0, column x: page 1 (100 bytes)']
    >>> print(plan.explain())
    1 column, 10 of 60 rows, 100 of 796 bytes
    pruned by
      statistics    30 rows  400 bytes  x < 5
      column index  20 rows  296 bytes  x < 5
    read from 1 of 2 row groups
      row group 0: 10 of 30 rows in 1 range; x: 1 of 3 pages
    """

    __slots__ = ("_columns", "_steps", "groups")

    def __init__(self, columns: Sequence[str], row_groups: Iterable[RowGroupPlan]) -> None:
        self._columns = columns
        self.groups = {}
        for group in row_groups:
            self.groups[group.ordinal] = group
        self._steps: list[tuple[str, str | Callable[[], str], list[tuple[RowGroupPlan, RowGroupPlan]]]] = []

    @property
    def left(self) -> list[RowGroupPlan]:
        """The row groups with selected rows."""
        left = []
        for group in self.groups.values():
            if group.rows.count:
                left.append(group)
        return left

    def narrow(self, row_ranges: Mapping[int, RowRanges], level: str, reason: str | Callable[[], str]) -> None:
        """Prune rows.

        Parameters
        ----------
        row_ranges : mapping of int to RowRanges
            Rows that may match, by row group ordinal. Other row groups stay unchanged.
        level, reason : str
            Recorded in the `PlanCut` if any row is pruned; the reason may be a callable that returns it.

        Raises
        ------
        ValueError
            When the plan lacks one of the row groups.
        """
        pairs, groups = [], self.groups
        for ordinal, rows in row_ranges.items():
            group = groups.get(ordinal)
            if group is None:
                raise ValueError(f"the plan has no row group {ordinal}")
            left = group.rows & rows
            if left.count < group.rows.count:
                groups[ordinal] = narrowed = RowGroupPlan(ordinal, group.num_rows, left, group.chunks)
                pairs.append((group, narrowed))
        if pairs:
            self._steps.append((level, reason, pairs))

    def set_pages(self, pages: Mapping[tuple[int, int], ChunkPages]) -> None:
        """Replace column chunks by their pages, so that pages without selected rows are skipped.

        Parameters
        ----------
        pages : mapping of (int, int) to ChunkPages
            Pages from offset indexes, by row group ordinal and column position in the plan.

        Raises
        ------
        ValueError
            When pages belong to another column chunk.
        """
        chunks: dict[int, list[ChunkPages]] = {}
        for (ordinal, column), located in pages.items():
            if ordinal not in chunks:
                chunks[ordinal] = list(self.groups[ordinal].chunks)
            before = chunks[ordinal][column]
            if (located.start, located.end, located.num_rows) != (before.start, before.end, before.num_rows):
                name = self._columns[column]
                raise ValueError(f"the pages do not belong to column {name!r} in row group {ordinal}")
            chunks[ordinal][column] = located
        pairs = []
        for ordinal, several in chunks.items():
            group = self.groups[ordinal]
            self.groups[ordinal] = after = RowGroupPlan(ordinal, group.num_rows, group.rows, tuple(several))
            pairs.append((group, after))
        if pairs:
            self._steps.append(("offset index", "pages without selected rows", pairs))

    def build(self) -> ReadPlan:
        """Return the plan so far."""
        changes = [PlanChange(level, reason, pairs) for level, reason, pairs in self._steps]
        return ReadPlan(tuple(self._columns), tuple(self.groups.values()), tuple(changes))
