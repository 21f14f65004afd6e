"""The read plan of a file: rows and pages of each row group, and what pruned them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numparq.io.coalesce import LOCAL_COALESCING, CoalescedRanges, Coalescing, coalesce

from .chunk_pages import ChunkPages
from .row_group_plan import BYTE_RANGE_FIELDS, R_COLUMN, R_PAGE, R_ROW_GROUP, R_START, R_STOP, RowGroupPlan
from .row_ranges import RowRanges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "BYTE_RANGE_FIELDS",
    "R_COLUMN",
    "R_PAGE",
    "R_ROW_GROUP",
    "R_START",
    "R_STOP",
    "PlanCut",
    "ReadPlan",
    "RowGroupPlan",
    "narrow",
    "with_offset_indexes",
]


@dataclass(frozen=True, slots=True)
class PlanCut:
    """Rows and bytes that one planning step pruned.

    Parameters
    ----------
    level : str
        Level that pruned them: ``"statistics"``, ``"column index"``, ``"Bloom filter"``, ...
    reason : str
        The predicate and its column as text.
    num_rows, num_bytes : int
        Number of pruned rows, and of bytes over all columns.
    """

    level: str
    reason: str
    num_rows: int
    num_bytes: int


class PlanChange:
    """One planning step: its level and reason (see `PlanCut`), and the changed row groups as pairs (before, after)."""

    __slots__ = ("_cut", "_pairs", "level", "reason")

    def __init__(self, level: str, reason: str, pairs: Sequence[tuple[RowGroupPlan, RowGroupPlan]]) -> None:
        self.level, self.reason = level, reason
        self._pairs: Sequence[tuple[RowGroupPlan, RowGroupPlan]] = pairs
        self._cut: PlanCut | None = None

    def __getstate__(self) -> PlanCut:
        return self.cut

    def __setstate__(self, cut: PlanCut) -> None:
        self.level, self.reason, self._pairs, self._cut = cut.level, cut.reason, (), cut

    @property
    def cut(self) -> PlanCut:
        """Rows and bytes that the step pruned, counted on first use."""
        if self._cut is None:
            num_rows = sum(old.rows.count - new.rows.count for old, new in self._pairs)
            num_bytes = sum(old.num_bytes - new.num_bytes for old, new in self._pairs)
            self._cut = PlanCut(self.level, self.reason, num_rows, num_bytes)
            self._pairs = ()
        return self._cut


@dataclass(frozen=True, slots=True, repr=False)
class ReadPlan:
    """The plan of one read: which rows and pages of a file to read.

    Parameters
    ----------
    columns : tuple of str
        Leaf columns to read.
    row_groups : tuple of RowGroupPlan
        All row groups in scope, pruned ones included, in row order; each ordinal occurs once.
    changes : tuple of PlanChange, default ()
        Planning steps so far, in order; see `cuts`.

    Attributes
    ----------
    left : tuple of RowGroupPlan
        The row groups with selected rows.

    Raises
    ------
    ValueError
        When a row group occurs twice, or lacks a column chunk.

    Examples
    --------
    >>> plan = ReadPlan.read_all(["x"], [30, 30], [[4], [400]], [[400], [800]])
    >>> pages = ChunkPages(4, 400, 30, [[4, 196, 0], [200, 100, 10], [300, 100, 20]])
    >>> plan = with_offset_indexes(narrow(plan, {1: RowRanges()}, "statistics", "x < 5"), {(0, 0): pages})
    >>> plan = narrow(plan, {0: pages.rows_in_pages([1])}, "column index", "x < 5")
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

    columns: tuple[str, ...]
    row_groups: tuple[RowGroupPlan, ...]
    changes: tuple[PlanChange, ...] = field(default=(), compare=False)
    left: tuple[RowGroupPlan, ...] = field(init=False, compare=False)
    _by_ordinal: dict[int, RowGroupPlan] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        left, by_ordinal, width = list[RowGroupPlan](), dict[int, RowGroupPlan](), len(self.columns)
        for group in self.row_groups:
            by_ordinal[group.ordinal] = group
            if group.rows.count:
                left.append(group)
            if len(group.chunks) != width:
                raise ValueError(f"a row group of the plan does not have {width} column chunks, one for each column")
        if len(by_ordinal) != len(self.row_groups):
            raise ValueError("a row group occurs twice in the plan")
        object.__setattr__(self, "left", tuple(left))
        object.__setattr__(self, "_by_ordinal", by_ordinal)

    @classmethod
    def read_all(
        cls,
        columns: Sequence[str],
        num_rows: ArrayLike,
        starts: ArrayLike,
        ends: ArrayLike,
        ordinals: Sequence[int] | None = None,
    ) -> ReadPlan:
        """Plan to read all rows and all pages.

        Parameters
        ----------
        columns : sequence of str
            Leaf columns to read.
        num_rows : int array-like, (row groups,)
            Rows of each row group.
        starts, ends : int array-like, (row groups, columns)
            Byte range of each column chunk in the file (end exclusive).
        ordinals : sequence of int, optional
            Ordinals of the row groups; by default 0, 1, 2, ...

        Returns
        -------
        ReadPlan
        """
        counts = np.asarray(num_rows, np.int64)
        numbers = range(len(counts)) if ordinals is None else ordinals
        shape = len(counts), len(columns)
        chunks = ChunkPages.unindexed_chunks(np.reshape(starts, shape), np.reshape(ends, shape), counts)
        return cls.from_chunks(columns, counts.tolist(), chunks, numbers)

    @classmethod
    def from_chunks(
        cls,
        columns: Sequence[str],
        num_rows: Sequence[int],
        chunks: Sequence[Sequence[ChunkPages]],
        ordinals: Sequence[int],
    ) -> ReadPlan:
        """Plan to read all rows of some row groups.

        Parameters
        ----------
        columns : sequence of str
            Leaf columns to read.
        num_rows : sequence of int
            Rows of each row group.
        chunks : sequence of sequence of ChunkPages
            Pages of each column chunk, by row group and column.
        ordinals : sequence of int
            Ordinals of the row groups.

        Returns
        -------
        ReadPlan
        """
        groups = [
            RowGroupPlan(number, count, RowRanges.all(count), tuple(found))
            for number, count, found in zip(ordinals, num_rows, chunks, strict=True)
        ]
        return cls(tuple(columns), tuple(groups))

    # --- rows --------------------------------------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        """Number of selected rows."""
        return sum(group.rows.count for group in self.row_groups)

    @property
    def num_bytes(self) -> int:
        """Bytes to read for them: data and dictionary pages, without footer, page indexes and Bloom filters."""
        return sum(group.num_bytes for group in self.row_groups)

    @property
    def cuts(self) -> tuple[PlanCut, ...]:
        """Rows and bytes pruned by each planning step, in order; steps without effect are left out."""
        found = (change.cut for change in self.changes)
        return tuple(cut for cut in found if cut.num_rows or cut.num_bytes)

    def __getitem__(self, ordinal: int) -> RowGroupPlan:
        """Return the plan of a row group by its ordinal."""
        try:
            return self._by_ordinal[ordinal]
        except KeyError:
            raise KeyError(f"row group {ordinal} is not in the plan") from None

    def __iter__(self) -> Iterator[RowGroupPlan]:
        return iter(self.row_groups)

    # --- byte ranges -------------------------------------------------------------------------------------------------

    def byte_ranges(self) -> np.ndarray:
        """Return the byte ranges to read.

        Returns
        -------
        int64 array, (ranges, BYTE_RANGE_FIELDS)
            Columns R_START, R_STOP (exclusive), R_ROW_GROUP (ordinal), R_COLUMN (position in `columns`) and R_PAGE
            (ordinal of the data page, or DICTIONARY_PAGE_ORDINAL).
        """
        return np.concatenate(
            [np.empty((0, BYTE_RANGE_FIELDS), np.int64), *(group.byte_ranges() for group in self.left)]
        )

    def fetches(self, how: Coalescing = LOCAL_COALESCING) -> CoalescedRanges:
        """Coalesce the byte ranges into requests.

        Parameters
        ----------
        how : Coalescing, default LOCAL_COALESCING
            Limits for merging byte ranges into one request.

        Returns
        -------
        CoalescedRanges
            Its ranges are the rows of `byte_ranges`.
        """
        return coalesce(self.byte_ranges()[:, : R_STOP + 1], how)

    # --- text and HTML -----------------------------------------------------------------------------------------------

    def reads(self) -> list[str]:
        """Return one line for each byte range, such as ``row group 1, column b: page 3 (113 bytes)``.

        Returns
        -------
        list of str
            A column chunk without an offset index is one line that says ``all pages``.
        """
        from .explain import list_reads

        return list_reads(self)

    def __repr__(self) -> str:
        from .explain import summary_text

        return f"<ReadPlan: {summary_text(self)}>"

    def explain(self) -> str:
        """Explain what is read, what was pruned, and why.

        Returns
        -------
        str
            Several lines.
        """
        from .explain import explain_text

        return explain_text(self)

    def _repr_html_(self) -> str:
        from .explain import explain_html

        return explain_html(self)


def narrow(plan: ReadPlan, row_ranges: Mapping[int, RowRanges], level: str = "rows", reason: str = "") -> ReadPlan:
    """Prune rows from a plan.

    Parameters
    ----------
    plan : ReadPlan
        The plan so far.
    row_ranges : mapping of int to RowRanges
        Rows that may match, by row group ordinal. Other row groups stay unchanged.
    level, reason : str
        Recorded in the `PlanCut` if any row is pruned.

    Returns
    -------
    ReadPlan

    Raises
    ------
    ValueError
        When the plan lacks one of the row groups.
    """
    changed = {}
    for ordinal, rows in row_ranges.items():
        group = plan._by_ordinal.get(ordinal)
        if group is None:
            raise ValueError(f"the plan has no row group {ordinal}")
        left = group.rows & rows
        if left.count < group.rows.count:
            changed[ordinal] = group.with_rows(left)
    return _changed(plan, changed, level, reason)


def with_offset_indexes(plan: ReadPlan, pages: Mapping[tuple[int, int], ChunkPages]) -> ReadPlan:
    """Replace column chunks by their pages, so that pages without selected rows are skipped.

    Parameters
    ----------
    plan : ReadPlan
        The plan so far.
    pages : mapping of (int, int) to ChunkPages
        Pages from offset indexes, by row group ordinal and column position in the plan.

    Returns
    -------
    ReadPlan

    Raises
    ------
    ValueError
        When pages belong to another column chunk.
    """
    chunks: dict[int, list[ChunkPages]] = {}
    for (ordinal, column), found in pages.items():
        if ordinal not in chunks:
            chunks[ordinal] = list(plan._by_ordinal[ordinal].chunks)
        before = chunks[ordinal][column]
        if (found.start, found.end) != (before.start, before.end):
            raise ValueError(f"the pages do not belong to column {plan.columns[column]!r} in row group {ordinal}")
        chunks[ordinal][column] = found
    changed = {}
    for ordinal, several in chunks.items():
        changed[ordinal] = plan._by_ordinal[ordinal].with_chunks(tuple(several))
    return _changed(plan, changed, "offset index", "pages without selected rows")


def _changed(plan: ReadPlan, changed: Mapping[int, RowGroupPlan], level: str, reason: str) -> ReadPlan:
    """Replace row groups and record the change."""
    if not changed:
        return plan
    pairs, groups = [], []
    for group in plan.row_groups:
        after = changed.get(group.ordinal, group)
        groups.append(after)
        if after is not group:
            pairs.append((group, after))
    return ReadPlan(plan.columns, tuple(groups), (*plan.changes, PlanChange(level, reason, pairs)))
