"""The read plan of a file: rows and pages of each row group, and what pruned them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from numparq.io.coalesce import LOCAL_COALESCING, CoalescedRanges, Coalescing, coalesce
from numparq.util.pluralize import agree_noun

from .chunk_pages import ChunkPages
from .plan_change import PlanChange, PlanCut
from .row_group_plan import BYTE_RANGE_FIELDS, R_STOP, RowGroupPlan
from .row_ranges import RowRanges
from .whole_chunks import WholeChunks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
        When a row group occurs twice, lacks a column chunk, or has other rows than its row ranges or pages.
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
                raise ValueError(
                    f"a row group of the plan does not have {width} {agree_noun(width, 'column chunk')}, one for "
                    "each column"
                )
            group.check_rows()
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
        chunks = WholeChunks.of_row_groups(np.reshape(starts, shape), np.reshape(ends, shape), counts)
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
