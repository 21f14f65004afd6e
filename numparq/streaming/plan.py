"""Rows divided into units: as many at a time as memory allows, along the borders of row groups where these fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ..column.chunks import RowSlice
from ..errors import LimitError
from ..memory_budget import RowCosts, in_words

__all__ = ["UnitPlan"]

# Of rows whose strings may be larger than anything says, the first unit is so many times smaller.
VAGUE = 4.0
# No unit of a row group has fewer rows than that, unless not even so many fit: each costs the borders of its pages.
FEWEST_ROWS = 1024


class Shares(Protocol):
    """What there is for a unit; `numparq.streaming.division.Shares` is it."""

    room: int
    batch_rows: int
    is_strict: bool


class UnitPlan:
    """Divides rows into units, each when it is its turn.

    Parameters
    ----------
    slices : sequence of RowSlice
        The rows.
    costs : RowCosts
        What they take.
    shares : Shares
        The bytes that a unit may take. Units within a row group have a multiple of the rows of a batch, where that much
        fits.
    divided : callable
        Called with the ordinal of a row group before it is divided; gives what keeps rows of it from being read alone:
        the names of columns, none if nothing does.

    Attributes
    ----------
    inflation : float
        How many times larger rows are than was estimated, as far as is known.
    """

    def __init__(
        self, slices: Sequence[RowSlice], costs: RowCosts, shares: Shares, divided: Callable[[int], list[str]],
    ) -> None:  # fmt: skip
        self._slices = slices
        self._costs = costs
        self._room = shares.room
        self._batch_rows = shares.batch_rows
        self._is_strict = shares.is_strict
        self._divided = divided
        self.inflation = VAGUE if costs.is_vague else 1.0

    def observed(self, slices: Sequence[Any], taken: int) -> None:
        """Be told how many bytes rows took: what follows is estimated by that, if not by less than the footer says."""
        estimate = self._costs.of(slices)
        if estimate and sum(map(len, slices)) >= FEWEST_ROWS:
            self.inflation = max(1.0, taken / estimate)

    def bytes_of(self, slices: Sequence[Any]) -> float:
        """Give what rows take, as far as is known."""
        return self._costs.of(slices) * self.inflation

    def units(self) -> Iterator[list[RowSlice]]:
        """Give the rows of one unit after the other.

        Raises
        ------
        LimitError
            For a row group that can neither be divided nor read as a whole, and rows of which none fits.
        """
        unit: list[RowSlice] = []
        left = float(self._room)
        for part in self._slices:
            size = len(part) * self._row_bytes(part)
            if unit and size > left:
                yield unit
                unit, left = [], float(self._room)
            if size <= left:
                unit.append(_at(part, part.start, part.stop, unit))
                left -= size
            else:
                yield from self._parts(part)
        if unit:
            yield unit

    def _row_bytes(self, part: RowSlice) -> float:
        return self._costs.of_row(part.row_group) * self.inflation

    def _parts(self, part: RowSlice) -> Iterator[list[RowSlice]]:
        """Divide a row group that does not fit."""
        whole = self._divided(part.row_group)
        if whole and not self._is_strict:
            yield [_at(part, part.start, part.stop, ())]
            return
        if whole:
            names = ", ".join(map(repr, whole[:3])) + (", ..." if len(whole) > 3 else "")
            raise LimitError(
                f"{len(part):,} rows would take about {in_words(len(part) * self._row_bytes(part))} at once, and there "
                f"is room for {in_words(self._room)}: rows of {names} begin in one page and end in another, and cannot "
                "be read alone; raise memory_limit, or leave the column out",
                row_group=part.row_group,
            )
        start = part.start
        while start < part.stop:
            stop = min(start + self._rows_that_fit(part), part.stop)
            yield [_at(part, start, stop, ())]
            start = stop

    def _rows_that_fit(self, part: RowSlice) -> int:
        fit = int(self._room / self._row_bytes(part))
        if not fit and not self._is_strict:
            return 1
        if not fit:
            raise LimitError(
                f"a row takes about {in_words(self._row_bytes(part))}, and there is room for {in_words(self._room)}: "
                "raise memory_limit, or read fewer columns", row_group=part.row_group,
            )  # fmt: skip
        return fit // self._batch_rows * self._batch_rows or fit


def _at(part: RowSlice, start: int, stop: int, before: Sequence[RowSlice]) -> RowSlice:
    """Give some rows of a slice, to come behind those of others."""
    return RowSlice(part.row_group, start, stop, sum(map(len, before)))
