"""A file of a scan, and the rows wanted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numparq.column.read.row_selection import RowSlice
from numparq.expr.expression import Constant
from numparq.format.open_file import OpenFile
from numparq.scan.predicate import ScanPredicate

__all__ = ["FileSelection"]


@dataclass(eq=False)
class FileSelection:
    """Rows of a file, selected by position and by a predicate; `ordinal` is that of the file among all listed."""

    file: OpenFile
    ordinal: int
    slices: Sequence[RowSlice]
    predicate: ScanPredicate | None = None

    @property
    def matches_nothing(self) -> bool:
        """Whether it is known that no row satisfies the predicate."""
        return self.predicate is not None and self.predicate.current() == Constant(False)
