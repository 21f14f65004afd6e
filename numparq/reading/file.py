"""One read of one file, as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.chunks import RowSlice
from ..dtypes import choose
from ..errors import LimitError, ParquetError
from ..frame import allocate
from ..frame.strings import text_of
from ..opened import OpenedFile
from ..schema import Leaf
from ..selection import checked_count, select_rows
from ..targets import Target
from ..threads import Crew, thread_count
from .choices import Choices
from .columns import columns_of
from .rows import FileRows
from .ways import Strict

if TYPE_CHECKING:
    import pandas as pd

    from ..filtering.condition import Condition
    from ..plan.read_plan import ReadPlan
    from ..recovery import Recovery

__all__ = ["FileRead"]

_FEW = 64  # row groups, of which slices are kept


class FileRead:
    """One read of a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    columns : sequence of str or tuple, or None
        The columns wanted, as in `numparq.read_parquet`.
    choices : Choices
        What else is asked for.

    Raises
    ------
    SchemaError
        When the file has no such column.
    """

    def __init__(self, file: OpenedFile, columns: Any, choices: Choices) -> None:
        self._file = file
        self._choices = choices
        self._columns = columns_of(file, columns, choices)
        self._condition = self._made_condition()
        self._slices = self._chosen_rows(choices.row_groups, choices.row_range)
        if not self._slices and file.is_own and file.num_row_groups:
            self._slices = [RowSlice(0, 0, 0, 0)]  # for the categories, which the first row group has

    def _chosen_rows(self, row_groups: Any, row_range: Any) -> list[RowSlice]:
        """Choose rows by position."""
        footer, limit = self._file.footer, None if self._condition is not None else self._choices.nrows
        if row_groups is row_range is limit is None and len(footer.row_group_num_rows) <= _FEW:
            return footer.kept.get("all rows", lambda: select_rows(footer.row_group_num_rows.tolist()))
        return select_rows(footer.row_group_num_rows.tolist(), row_groups, row_range, limit)

    def _made_condition(self) -> Condition | None:
        """Bind what the rows have to satisfy, if anything."""
        if self._choices.filters is None and not self._choices.runtime_filters:
            return None
        from ..filtering.condition import Condition

        return Condition(self._file, self._choices.filters, self._choices.runtime_filters)

    def plan(self) -> ReadPlan:
        """Plan what is decoded, or, of rows that have to satisfy a condition, what is left to look through."""
        slices = [rows for rows in self._slices if len(rows)]
        return FileRows(self._file, self._columns.leaves, slices, self._condition).plan()

    def frame(self, ways: Strict | Recovery) -> pd.DataFrame:
        """Read.

        Parameters
        ----------
        ways : Strict or Recovery
            What is done where the file is damaged.

        Returns
        -------
        pandas.DataFrame
        """
        self._file.check_unchanged()
        columns, choices = self._columns, self._choices
        rows = FileRows(self._file, columns.leaves, self._slices, self._condition, ways)
        null_counts = rows.null_counts
        targets = columns.targets(null_counts)
        limit = None if choices.nrows is None else checked_count(choices.nrows, "nrows")
        try:
            with Crew(thread_count(choices.threads)) as crew:
                rows.begin(crew, choices.verify_crc)
                try:
                    if choices.memory_limit is not None:
                        self._check_memory_to_find(rows, choices.memory_limit)
                    rows.find(targets, limit)
                    if choices.memory_limit is not None:
                        self._check_memory(columns.leaves, targets, rows.slices, choices.memory_limit)
                    layout = allocate(targets, rows.count, columns.separate)
                    buffers = rows.decode(layout, _wanted(layout))
                finally:
                    rows.close()
            if self._condition is not None:
                columns.count_nulls(buffers, null_counts)
            layout, buffers, columns.labels, columns.nested, virtual = ways.whole(
                layout, buffers, columns.labels, columns.nested, self._virtual(rows), columns.leaves, rows.slices
            )
            frame = columns.frame(layout, buffers, virtual)
            if choices.explode is None:
                ways.label(frame, columns.metadata)
            return frame
        except ParquetError as error:
            rows.tables.name_file(error)
            raise
        except MemoryError as error:
            what = f"{rows.count:,} rows of {len(columns.names)} columns"
            raise LimitError(f"there is not enough memory to read {what}") from error

    def _check_memory_to_find(self, rows: FileRows, limit: int) -> None:
        """Refuse a filter whose columns take more memory than is allowed: each thread looks through a row group."""
        if self._condition is not None:
            largest = sorted(rows.slices, key=len)[-thread_count(self._choices.threads) :]
            asked = self._condition.leaves
            self._check_memory(asked, [choose(leaf, null_count=1) for leaf in asked], largest, limit)

    def _check_memory(
        self, leaves: Sequence[Leaf], targets: Sequence[Target], slices: Sequence[Any], limit: int
    ) -> None:  # fmt: skip
        """Refuse rows that take more memory than is allowed."""
        if not slices:
            return
        from ..memory_budget import RowCosts, check

        groups = [part.row_group for part in slices]
        costs = RowCosts(self._file, leaves, targets, groups, self._choices.dtype_backend != "pyarrow")
        check([(costs, slices)], thread_count(self._choices.threads), limit)

    def _virtual(self, rows: FileRows) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        if not self._columns.virtual:
            return []
        return [
            (name, text_of([self._file.source.name]).take(np.zeros(rows.count, np.intp)))
            if name == "file"
            else (name, rows.virtual(name))
            for name in self._columns.virtual
        ]


def _wanted(layout: Any) -> Any:
    """Give the columns to decode: all; where there are no rows, those that have their categories from a dictionary."""
    columns = range(len(layout.targets))
    return columns if layout.num_rows else [at for at in columns if layout.targets[at].entries is not None]
