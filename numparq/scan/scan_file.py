"""File of a scan: its columns, and the rows selected by position and by a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numparq.column.read.row_selection import RowSlice, RowSlices
from numparq.format.open_file import OpenFile

from .file_columns import FileColumns
from .options import all_row_slices

if TYPE_CHECKING:
    from .predicate import ScanPredicate

_NO_COLUMNS = FileColumns.identity([])


class ScanFile:
    """Rows of a file, selected by position and then by a predicate.

    Attributes
    ----------
    selected_slices : RowSlices or None
        Rows selected by position; None: all.
    ordinal : int
        Ordinal of the file among all listed.
    columns : FileColumns
        How the file stores the projected columns.
    has_all_rows : bool
        Whether all rows are selected.
    """

    __slots__ = ("columns", "file", "has_all_rows", "ordinal", "predicate", "selected_slices")

    def __init__(
        self,
        file: OpenFile,
        ordinal: int,
        slices: RowSlices | None = None,
        predicate: ScanPredicate | None = None,
        columns: FileColumns = _NO_COLUMNS,
    ) -> None:
        self.file = file
        self.ordinal = ordinal
        self.selected_slices = slices
        self.predicate = predicate
        self.columns = columns
        self.has_all_rows = slices is None and predicate is None

    @property
    def slices(self) -> RowSlices:
        """Rows selected by position."""
        slices = self.selected_slices
        return all_row_slices(self.file.footer) if slices is None else slices

    @property
    def matches_nothing(self) -> bool:
        """Whether it is known that no row satisfies the predicate."""
        if self.predicate is None:
            return False
        from numparq.expr.expression import Constant

        return self.predicate.current() == Constant(False)

    def with_slices(self, slices: Sequence[RowSlice]) -> ScanFile:
        """Return the same file with other rows selected by position."""
        return ScanFile(self.file, self.ordinal, RowSlices.of(slices), self.predicate, self.columns)

    def without_columns(self) -> ScanFile:
        """Return the same rows of no columns."""
        return ScanFile(self.file, self.ordinal, self.selected_slices, self.predicate)

    def without_rows(self) -> list[ScanFile]:
        """Return the file with no row of its first row group, whose dictionaries have the categories; else nothing."""
        if not self.file.is_written_by_numparq or not self.file.num_row_groups:
            return []
        return [ScanFile(self.file, self.ordinal, RowSlices.single(0, 0, 0), None, self.columns)]
