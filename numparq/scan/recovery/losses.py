"""Lost rows by column chunk, and the report in `df.attrs["numparq.lost"]`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

from numparq.column.read.row_selection import RowSlice
from numparq.errors import LimitError, ParquetError
from numparq.plan.row_ranges import RowRanges

LOST_ATTR = "numparq.lost"

_T = TypeVar("_T")


def without_frames(error: ParquetError) -> ParquetError:
    """Return an error to keep: its frames would keep the decoded columns alive until the garbage collector runs."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def catch_damage(call: Callable[..., _T], *arguments: object) -> _T | ParquetError:
    """Return what a call returns, or its error, unless that is a LimitError."""
    try:
        return call(*arguments)
    except LimitError:
        raise
    except ParquetError as error:
        return without_frames(error)


class Lost(NamedTuple):
    """Rows or a column that a read with ``on_error="skip"`` lost.

    Attributes
    ----------
    file : str
        File name.
    row_group : int or None
        Ordinal of the row group; None for a whole column.
    column : str or None
        Column name; for a nested column the path of the leaf.
    rows : tuple of (int, int) or None
        Row range with exclusive end, counted over the whole file; None for a whole column.
    reason : str
        The error.
    """

    file: str
    row_group: int | None
    column: str | None
    rows: tuple[int, int] | None
    reason: str


class LostRows(NamedTuple):
    """Lost rows of a column chunk: `first` to `stop` (exclusive) within the row group, and the error."""

    first: int
    stop: int
    reason: ParquetError


class Losses:
    """Lost rows of a read by column chunk; `starts` has the first row of each row group."""

    def __init__(self, file: str, starts: Sequence[int]) -> None:
        self._file = file
        self._starts = starts
        self._columns: dict[int, dict[int, list[LostRows]]] = {}  # by column, then row group

    def __bool__(self) -> bool:
        return any(self._columns.values())

    def forget(self, row_group: int, column: int) -> None:
        """Discard the losses of a chunk that is about to be decoded again."""
        self._columns.get(column, {}).pop(row_group, None)

    def add(self, row_group: int, column: int, lost: Iterable[LostRows]) -> None:
        """Record lost rows of a chunk; `column` is the position of its leaf among those read."""
        found = [rows for rows in lost if rows.first < rows.stop]
        if found:
            groups = self._columns.setdefault(column, {})
            groups[row_group] = _merge_ranges([*groups.get(row_group, []), *found])

    def lost_rows(self, slices: Sequence[RowSlice], columns: Collection[int]) -> RowRanges:
        """Return the output rows with a loss in the leaves `columns`."""
        found: list[tuple[int, int]] = []
        by_group: dict[int, list[RowSlice]] = {}
        for rows in slices:
            by_group.setdefault(rows.row_group, []).append(rows)
        for column in set(columns) & self._columns.keys():
            for row_group, lost in self._columns[column].items():
                for rows, (first, stop, _) in product(by_group.get(row_group, ()), lost):
                    begin, end = max(first, rows.start), min(stop, rows.stop)
                    if begin < end:
                        found.append((rows.out + begin - rows.start, rows.out + end - rows.start))
        return RowRanges(found)

    def to_list(self, names: Sequence[str]) -> list[Lost]:
        """Return the report, by row group, column and row; `names` are those of the leaves read."""
        found = []
        places = [(row_group, column) for column, groups in self._columns.items() for row_group in groups]
        for row_group, column in sorted(places):
            start = self._starts[row_group]
            for first, stop, reason in self._columns[column][row_group]:
                rows = start + first, start + stop
                found.append(Lost(self._file, row_group, names[column], rows, reason.message))
        return found


def choose_columns(lost_rows: Sequence[RowRanges], kept: RowRanges) -> tuple[list[int], RowRanges]:
    """Return the positions of columns to drop, and the rows of `kept` that are intact in all others.

    Columns count in the order of lost rows, fewest first; one that would leave none of the rows is dropped.
    """
    dropped: list[int] = []
    for position in sorted(range(len(lost_rows)), key=lambda position: lost_rows[position].count):
        left = kept - lost_rows[position]
        if left or not kept:
            kept = left
        else:
            dropped.append(position)
    return dropped, kept


def _merge_ranges(lost: list[LostRows]) -> list[LostRows]:
    """Merge adjacent row ranges that were lost for the same reason."""
    made: list[LostRows] = []
    for rows in sorted(lost, key=lambda rows: rows[:2]):
        last = made[-1] if made else None
        if last is not None and rows.first <= last.stop and rows.reason.message == last.reason.message:
            made[-1] = last._replace(stop=max(last.stop, rows.stop))
        else:
            made.append(rows)
    return made
