"""Planning steps: what each of them pruned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .row_group_plan import RowGroupPlan


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
    """One planning step: its level and reason (see `PlanCut`), and the changed row groups as pairs (before, after).

    A reason may be a callable that returns the text.
    """

    __slots__ = ("_cut", "_pairs", "_reason", "level")

    def __init__(
        self, level: str, reason: str | Callable[[], str], pairs: Sequence[tuple[RowGroupPlan, RowGroupPlan]]
    ) -> None:
        self.level, self._reason = level, reason
        self._pairs: Sequence[tuple[RowGroupPlan, RowGroupPlan]] = pairs
        self._cut: PlanCut | None = None

    def __getstate__(self) -> PlanCut:
        return self.cut

    def __setstate__(self, cut: PlanCut) -> None:
        self.level, self._reason, self._pairs, self._cut = cut.level, cut.reason, (), cut

    @property
    def cut(self) -> PlanCut:
        """Rows and bytes that the step pruned, counted on first use."""
        if self._cut is None:
            num_rows = sum(old.rows.count - new.rows.count for old, new in self._pairs)
            num_bytes = sum(old.num_bytes - new.num_bytes for old, new in self._pairs)
            reason = self._reason if isinstance(self._reason, str) else self._reason()
            self._cut = PlanCut(self.level, reason, num_rows, num_bytes)
            self._pairs = ()
        return self._cut
