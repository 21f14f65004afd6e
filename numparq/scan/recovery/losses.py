"""Lost rows by column chunk, and the report in `df.attrs["numparq.lost"]`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from numparq.column.read.row_selection import RowSlice
from numparq.errors import ParquetError

__all__ = ["LOST_ATTR", "Losses", "Lost", "LostRows"]

LOST_ATTR = "numparq.lost"


class Lost(NamedTuple):
    """Something that a read with ``on_error="skip"`` could not give.

    Attributes
    ----------
    file : str
        The file's name.
    row_group : int or None
        The ordinal of the row group; None for a whole column.
    column : str or None
        The column's name; of a nested one the path of the leaf.
    rows : tuple of (int, int) or None
        The first row and the one behind the last, counted over the whole file; None for a whole column.
    reason : str
        What is wrong.
    """

    file: str
    row_group: int | None
    column: str | None
    rows: tuple[int, int] | None
    reason: str


class LostRows(NamedTuple):
    """Rows of one column chunk that are lost: `first` to `stop`, counted within the row group, and why."""

    first: int
    stop: int
    reason: ParquetError


class Losses:
    """What was lost of the column chunks of a read.

    Parameters
    ----------
    file : str
        The file's name.
    starts : sequence of int
        The first row of each row group, counted over the whole file.
    """

    def __init__(self, file: str, starts: Sequence[int]) -> None:
        self._file = file
        self._starts = starts
        self._columns: dict[int, dict[int, list[LostRows]]] = {}  # by column, and by row group

    def __bool__(self) -> bool:
        return any(self._columns.values())

    def forget(self, row_group: int, column: int) -> None:
        """Take back what was said of a chunk, which is about to be decoded anew."""
        self._columns.get(column, {}).pop(row_group, None)

    def add(self, row_group: int, column: int, lost: Iterable[LostRows]) -> None:
        """Note lost rows of a chunk; `column` is the position of its leaf among those read."""
        found = [rows for rows in lost if rows.first < rows.stop]
        if found:
            groups = self._columns.setdefault(column, {})
            groups[row_group] = _merge_ranges([*groups.get(row_group, []), *found])

    def intact_rows(self, slices: Sequence[RowSlice], columns: Iterable[int]) -> np.ndarray:
        """Tell of each row of the output whether nothing of it is lost.

        Parameters
        ----------
        slices : sequence of RowSlice
            The rows read.
        columns : iterable of int
            The leaves that count.

        Returns
        -------
        bool array
        """
        whole = np.ones(slices[-1].out + len(slices[-1]) if slices else 0, np.bool_)
        by_group: dict[int, list[RowSlice]] = {}
        for rows in slices:
            by_group.setdefault(rows.row_group, []).append(rows)
        for column in set(columns) & self._columns.keys():
            for row_group, lost in self._columns[column].items():
                for rows, (first, stop, _) in product(by_group.get(row_group, ()), lost):
                    begin, end = max(first, rows.start), min(stop, rows.stop)
                    if begin < end:
                        whole[rows.out + begin - rows.start : rows.out + end - rows.start] = False
        return whole

    def num_rows(self, slices: Sequence[RowSlice], columns: Collection[int]) -> int:
        """Count the rows of the output of which something is lost in these leaves."""
        if not any(self._columns.get(column) for column in columns):
            return 0
        whole = self.intact_rows(slices, columns)
        return len(whole) - int(np.count_nonzero(whole))

    def listed(self, names: Sequence[str]) -> list[Lost]:
        """Give everything that was lost, by row group, column and row; `names` are those of the leaves read."""
        found = []
        places = [(row_group, column) for column, groups in self._columns.items() for row_group in groups]
        for row_group, column in sorted(places):
            start = self._starts[row_group]
            for first, stop, reason in self._columns[column][row_group]:
                rows = start + first, start + stop
                found.append(Lost(self._file, row_group, names[column], rows, reason.message))
        return found


def _merge_ranges(lost: list[LostRows]) -> list[LostRows]:
    """Join ranges of rows that follow each other for the same reason."""
    made: list[LostRows] = []
    for rows in sorted(lost, key=lambda rows: rows[:2]):
        last = made[-1] if made else None
        if last is not None and rows.first <= last.stop and rows.reason.message == last.reason.message:
            made[-1] = last._replace(stop=max(last.stop, rows.stop))
        else:
            made.append(rows)
    return made
