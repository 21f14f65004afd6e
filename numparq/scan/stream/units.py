"""Units: row slices decoded at once, sized by the memory limit, split along row groups and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numparq.column.read.row_selection import RowSlice
from numparq.errors import LimitError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.memory import MemoryEstimate, format_bytes, scratch_bytes
from numparq.types.choose import choose_output_type
from numparq.types.output_type import OutputType
from numparq.types.schema_only import schema_only_type
from numparq.util.arguments import check_optional_positive_int, thread_count

from .page_locations import PageLocator

if TYPE_CHECKING:
    from numparq.scan.predicate import ScanPredicate

__all__ = ["BatchSize", "FileUnitPlan", "MemoryShares", "UnitPlan", "add_filter_columns"]

# Of rows whose strings may be larger than anything says, the first unit is so many times smaller.
STRING_INFLATION = 4.0
# No unit of a row group has fewer rows than that, unless not even so many fit: each costs the borders of its pages.
MIN_UNIT_ROWS = 1024

# What is allocated while columns are finished, and what the system keeps of memory that is freed.
_MARGIN = 2.0
# So many batches of the default size there is memory for at least.
_BATCHES = 8


class UnitPlan:
    """Divides rows into units, each when it is its turn.

    Parameters
    ----------
    slices : sequence of RowSlice
        The rows.
    costs : MemoryEstimate
        What they take.
    shares : Shares
        The bytes that a unit may take. Units within a row group have a multiple of the rows of a batch, where that much
        fits.
    unsplittable_columns : callable
        Called with the ordinal of a row group before it is divided; gives what keeps rows of it from being read alone:
        the names of columns, none if nothing does.

    Attributes
    ----------
    inflation : float
        How many times larger rows are than was estimated, as far as is known.
    """

    def __init__(
        self,
        slices: Sequence[RowSlice],
        costs: MemoryEstimate,
        shares: MemoryShares,
        unsplittable_columns: Callable[[int], list[str]],
    ) -> None:
        self._slices = slices
        self._costs = costs
        self._room = shares.room
        self._batch_rows = shares.batch_rows
        self._is_strict = shares.is_strict
        self._divided = unsplittable_columns
        self.inflation = STRING_INFLATION if costs.is_lower_bound else 1.0

    def observe(self, slices: Sequence[Any], taken: int) -> None:
        """Be told how many bytes rows took: what follows is estimated by that, if not by less than the footer says."""
        estimate = self._costs.of(slices)
        if estimate and sum(map(len, slices)) >= MIN_UNIT_ROWS:
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
                unit.append(_move_slice(part, part.start, part.stop, unit))
                left -= size
            else:
                yield from self._parts(part)
        if unit:
            yield unit

    def _row_bytes(self, part: RowSlice) -> float:
        return self._costs.row_bytes(part.row_group) * self.inflation

    def _parts(self, part: RowSlice) -> Iterator[list[RowSlice]]:
        """Divide a row group that does not fit."""
        whole = self._divided(part.row_group)
        if whole and not self._is_strict:
            yield [_move_slice(part, part.start, part.stop, ())]
            return
        if whole:
            names = ", ".join(map(repr, whole[:3])) + (", ..." if len(whole) > 3 else "")
            raise LimitError(
                f"{len(part):,} rows would take about {format_bytes(len(part) * self._row_bytes(part))} at once, "
                f"and there "
                f"is room for {format_bytes(self._room)}: rows of {names} begin in one page and end in another, and "
                f"cannot "
                "be read alone; raise memory_limit, or leave the column out",
                row_group=part.row_group,
            )
        start = part.start
        while start < part.stop:
            stop = min(start + self._rows_that_fit(part), part.stop)
            yield [_move_slice(part, start, stop, ())]
            start = stop

    def _rows_that_fit(self, part: RowSlice) -> int:
        fit = int(self._room / self._row_bytes(part))
        if not fit and not self._is_strict:
            return 1
        if not fit:
            raise LimitError(
                f"a row takes about {format_bytes(self._row_bytes(part))}, and there is room for "
                f"{format_bytes(self._room)}: "
                "raise memory_limit, or read fewer columns",
                row_group=part.row_group,
            )
        return fit // self._batch_rows * self._batch_rows or fit


def _move_slice(part: RowSlice, start: int, stop: int, before: Sequence[RowSlice]) -> RowSlice:
    """Give some rows of a slice, to come behind those of others."""
    return RowSlice(part.row_group, start, stop, sum(map(len, before)))


class BatchSize:
    """How large units and batches are to be.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that may be held at once: of the unit that is worked on, of the next one, and of what it takes to decode.
    batch_rows : int or None
        Rows of a batch; None for the default, and where `batch_bytes` says.
    batch_bytes : int or None
        About so many bytes of a batch.

    Attributes
    ----------
    is_strict : bool
        Whether the limit was asked for: what does not fit is refused then. Else batches are as large as they were asked
        for, and what has to be read in one piece is.

    Raises
    ------
    TypeError, ValueError
        For what is no such number, and for both sizes of a batch at once.
    """

    DEFAULT_LIMIT = 256 << 20
    DEFAULT_ROWS = 65_536

    def __init__(self, memory_limit: Any = None, batch_rows: Any = None, batch_bytes: Any = None) -> None:
        if batch_rows is not None and batch_bytes is not None:
            raise ValueError("batches have batch_rows or batch_bytes, not both")
        self.is_strict = memory_limit is not None
        self.memory_limit = check_optional_positive_int(memory_limit, "memory_limit") or self.DEFAULT_LIMIT
        self.batch_rows = check_optional_positive_int(batch_rows, "batch_rows")
        self.batch_bytes = check_optional_positive_int(batch_bytes, "batch_bytes")

    def batch_rows_for(self, row_bytes: float, room: float) -> int:
        """Give how many rows a batch has, of so many bytes each; by default what takes a part of `room` at most."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.batch_bytes is not None:
            return max(int(self.batch_bytes / row_bytes), 1)
        return max(min(self.DEFAULT_ROWS, int(room / _BATCHES / row_bytes)), 1)


class MemoryShares:
    """How the memory that is allowed is divided.

    Parameters
    ----------
    costs : sequence of MemoryEstimate
        What rows take, of each file.
    everything : float
        What all rows take.
    sizes : BatchSize
        What is allowed.
    threads : int or None
        How many decode at most; as in `numparq.read_parquet`.

    Attributes
    ----------
    threads : int
        How many decode: no more than there is memory for.
    room : int
        Bytes of a unit.
    is_strict : bool
        Whether more than that is refused where less cannot be read at once.
    batch_rows : int
        Rows of a batch.
    is_exact : bool
        Whether they have just so many, because they were asked for by number.
    is_ahead : bool
        Whether the next unit may be read while one is in use.

    Raises
    ------
    LimitError
        When batches of as many rows as are asked for do not fit.
    """

    def __init__(
        self, costs: Sequence[MemoryEstimate], everything: float, sizes: BatchSize, threads: int | None = None
    ) -> None:
        limit = sizes.memory_limit
        self.threads = thread_count(threads)
        while self.threads > 1 and scratch_bytes(costs, self.threads) > limit // 3:
            self.threads -= 1
        left = max(limit - scratch_bytes(costs, self.threads), 0) / _MARGIN
        largest = max((one.max_row_bytes for one in costs), default=1.0)
        self.batch_rows = sizes.batch_rows_for(largest, left)
        self.is_exact = sizes.batch_rows is not None
        self.is_ahead, room = True, left / 2
        if self.is_exact:
            batch = min(self.batch_rows * largest, everything)
            self.is_ahead, room = _unit_bytes_beside_batch(batch, left)
            if not room and not sizes.is_strict:
                room = batch
            if not room:
                raise LimitError(
                    f"a batch of {self.batch_rows:,} rows takes about {format_bytes(self.batch_rows * largest)}, "
                    f"and there "
                    f"has to be room for three of them; memory_limit is {format_bytes(limit)}"
                )
        self.is_strict = sizes.is_strict
        self.room = int(room)
        self.batch_rows = max(min(self.batch_rows, int(room / largest)), 1)


def add_filter_columns(
    leaves: Sequence[Leaf], output_types: Sequence[OutputType], predicate: ScanPredicate | None
) -> tuple[list[Leaf], list[OutputType]]:
    """Give columns and targets, and behind them those that only a filter asks."""
    shown = {leaf.index for leaf in leaves}
    asked = [leaf for leaf in (predicate.leaves if predicate else ()) if leaf.index not in shown]
    return [*leaves, *asked], [
        *output_types,
        *(schema_only_type(choose_output_type(leaf), may_be_null=True) for leaf in asked),
    ]


class FileUnitPlan:
    """How rows of a file are read, unit by unit.

    Parameters
    ----------
    file : OpenFile
        The file.
    leaves : sequence of Leaf
        The columns; those that only a filter asks behind the others.
    output_types : sequence of OutputType
        How each is decoded.
    slices : sequence of RowSlice
        The rows.
    costs : MemoryEstimate
        What they take.
    shares : MemoryShares
        The memory.
    """

    def __init__(
        self,
        file: OpenFile,
        leaves: Sequence[Leaf],
        output_types: Sequence[OutputType],
        slices: Sequence[RowSlice],
        costs: MemoryEstimate,
        shares: MemoryShares,
    ) -> None:
        self._finder = PageLocator(file, leaves, output_types)
        self._plan = UnitPlan(slices, costs, shares, self._unsplittable_columns)

    def _unsplittable_columns(self, row_group: int) -> list[str]:
        """Find the pages of a row group; gives the columns of which no row can be read alone."""
        return [leaf.name for leaf in self._finder.find(row_group)]

    def units(self, before: Callable[[], None] = lambda: None) -> Iterator[list[RowSlice]]:
        """Give the rows of one unit after the other.

        Parameters
        ----------
        before : callable
            Called before each unit: raises where the file is not what it was.

        Raises
        ------
        LimitError
            For a row group that can neither be divided nor read as a whole, and rows of which none fits.
        """
        units = self._plan.units()
        while True:
            before()
            unit = next(units, None)
            if unit is None:
                return
            yield unit

    def bytes_of(self, slices: Sequence[Any]) -> float:
        """Give what rows take, as far as is known."""
        return self._plan.bytes_of(slices)

    def set_inflation(self, factor: float | None) -> None:
        """Be told how many times larger rows are than is estimated, as others like them show; None where none has."""
        if factor is not None:
            self._plan.inflation = factor

    def observe(self, slices: Sequence[Any], taken: int) -> None:
        """Be told how many bytes the rows of a unit took."""
        self._plan.observe(slices, taken)


def _unit_bytes_beside_batch(batch: float, left: float) -> tuple[bool, float]:
    """Give whether there is memory to read ahead, and the room for a unit.

    A batch is put together of the end of one unit and the beginning of the next, while one more may be read.
    """
    for is_ahead, units in ((True, 3), (False, 2)):
        room = (left - batch) / units
        if room >= batch:
            return is_ahead, room
    return False, 0.0
