"""A file of a scan, and the rows wanted of it."""

from __future__ import annotations

from collections.abc import Sequence

from numparq.column.read.row_selection import RowSlice
from numparq.expr.expression import Constant
from numparq.format.open_file import OpenFile

from .options import all_row_slices
from .predicate import ScanPredicate

__all__ = ["ScanFile"]


class ScanFile:
    """Rows of a file, selected by position (`chosen`; None: all) and by a predicate.

    Attributes
    ----------
    ordinal : int
        Ordinal of the file among all listed.
    has_all_rows : bool
        Whether no row is left out.
    """

    __slots__ = ("_chosen", "file", "has_all_rows", "ordinal", "predicate")

    def __init__(
        self,
        file: OpenFile,
        ordinal: int,
        chosen: Sequence[RowSlice] | None = None,
        predicate: ScanPredicate | None = None,
    ) -> None:
        self.file = file
        self.ordinal = ordinal
        self._chosen = chosen
        self.predicate = predicate
        self.has_all_rows = chosen is None and predicate is None

    @property
    def slices(self) -> Sequence[RowSlice]:
        """Rows selected by position."""
        return all_row_slices(self.file.footer) if self._chosen is None else self._chosen

    @property
    def matches_nothing(self) -> bool:
        """Whether it is known that no row satisfies the predicate."""
        return self.predicate is not None and self.predicate.current() == Constant(False)
