"""The protocol of an index: which rows of a store say that a file may match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from numparq.expr.expression import ColumnPredicate, Expression, Not

if TYPE_CHECKING:
    from numparq.plan.row_ranges import RowRanges
    from numparq.skipping.metadata import StoreIndex
    from numparq.skipping.part import PartRows


@dataclass(frozen=True)
class Cells:
    """Cells of one index in one row group of a part, all of them or those of some rows."""

    index: StoreIndex
    rows: PartRows
    chosen: RowRanges | None = None

    @property
    def is_local(self) -> bool:
        """Whether INT96 of the index hold local times."""
        own = self.rows.part.own
        return own is not None and self.index.column in own.local_times

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.rows.num_rows if self.chosen is None else self.chosen.count


class CellReader(Protocol):
    """Reader of the cells of one kind of index, which answers predicates.

    Attributes
    ----------
    cost : int
        Relative cost of its cells; those of costly indexes are read last, and only for rows that others leave.
    """

    cost: ClassVar[int]

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return for each cell whether its file may have a value for which all tests are true (bool).

        Tests are predicates on the index's column in normal form, `ColumnPredicate` or ``Not`` of one. True wherever
        a cell says nothing. Raises SchemaError for literals that its type cannot be compared with, and ParquetError
        for cells that cannot be read.
        """


def unwrap_test(test: Expression) -> tuple[ColumnPredicate, bool]:
    """Return a predicate without the Not around it, and whether there was one."""
    negated = isinstance(test, Not)
    predicate = test.part if isinstance(test, Not) else test
    assert isinstance(predicate, ColumnPredicate)
    return predicate, negated
