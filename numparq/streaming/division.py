"""The rows of a file divided by memory: how many threads, how much at once, which rows after which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..arguments import optional_size
from ..column.chunks import RowSlice
from ..dtypes import choose
from ..errors import LimitError
from ..memory_budget import RowCosts, in_words, scratch_bytes
from ..opened import OpenedFile
from ..schema import Leaf
from ..settled import settled
from ..targets import Target
from ..threads import thread_count
from .locating import PageFinder
from .plan import UnitPlan

if TYPE_CHECKING:
    from ..filtering.condition import Condition

__all__ = ["Division", "Shares", "Sizes", "with_asked"]

# What is allocated while columns are finished, and what the system keeps of memory that is freed.
_MARGIN = 2.0
# So many batches of the default size there is memory for at least.
_BATCHES = 8


class Sizes:
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
        self.memory_limit = optional_size(memory_limit, "memory_limit") or self.DEFAULT_LIMIT
        self.batch_rows = optional_size(batch_rows, "batch_rows")
        self.batch_bytes = optional_size(batch_bytes, "batch_bytes")

    def rows_of_batch(self, row_bytes: float, room: float) -> int:
        """Give how many rows a batch has, of so many bytes each; by default what takes a part of `room` at most."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.batch_bytes is not None:
            return max(int(self.batch_bytes / row_bytes), 1)
        return max(min(self.DEFAULT_ROWS, int(room / _BATCHES / row_bytes)), 1)


class Shares:
    """How the memory that is allowed is divided.

    Parameters
    ----------
    costs : sequence of RowCosts
        What rows take, of each file.
    everything : float
        What all rows take.
    sizes : Sizes
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
        self, costs: Sequence[RowCosts], everything: float, sizes: Sizes, threads: int | None = None
    ) -> None:  # fmt: skip
        limit = sizes.memory_limit
        self.threads = thread_count(threads)
        while self.threads > 1 and scratch_bytes(costs, self.threads) > limit // 3:
            self.threads -= 1
        left = max(limit - scratch_bytes(costs, self.threads), 0) / _MARGIN
        largest = max((one.largest_row for one in costs), default=1.0)
        self.batch_rows = sizes.rows_of_batch(largest, left)
        self.is_exact = sizes.batch_rows is not None
        self.is_ahead, room = True, left / 2
        if self.is_exact:
            batch = min(self.batch_rows * largest, everything)
            self.is_ahead, room = _room_beside(batch, left)
            if not room and not sizes.is_strict:
                room = batch
            if not room:
                raise LimitError(
                    f"a batch of {self.batch_rows:,} rows takes about {in_words(self.batch_rows * largest)}, and there "
                    f"has to be room for three of them; memory_limit is {in_words(limit)}"
                )
        self.is_strict = sizes.is_strict
        self.room = int(room)
        self.batch_rows = max(min(self.batch_rows, int(room / largest)), 1)


def with_asked(
    leaves: Sequence[Leaf], targets: Sequence[Target], condition: Condition | None
) -> tuple[list[Leaf], list[Target]]:
    """Give columns and targets, and behind them those that only a filter asks."""
    shown = {leaf.index for leaf in leaves}
    asked = [leaf for leaf in (condition.leaves if condition else ()) if leaf.index not in shown]
    return [*leaves, *asked], [*targets, *(settled(choose(leaf), may_be_null=True) for leaf in asked)]


class Division:
    """How rows of a file are read, unit by unit.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The columns; those that only a filter asks behind the others.
    targets : sequence of Target
        How each is decoded.
    slices : sequence of RowSlice
        The rows.
    costs : RowCosts
        What they take.
    shares : Shares
        The memory.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], targets: Sequence[Target], slices: Sequence[RowSlice],
        costs: RowCosts, shares: Shares,
    ) -> None:  # fmt: skip
        self._finder = PageFinder(file, leaves, targets)
        self._plan = UnitPlan(slices, costs, shares, self._whole)

    def _whole(self, row_group: int) -> list[str]:
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

    def inflate(self, factor: float | None) -> None:
        """Be told how many times larger rows are than is estimated, as others like them show; None where none has."""
        if factor is not None:
            self._plan.inflation = factor

    def observed(self, slices: Sequence[Any], taken: int) -> None:
        """Be told how many bytes the rows of a unit took."""
        self._plan.observed(slices, taken)


def _room_beside(batch: float, left: float) -> tuple[bool, float]:
    """Give whether there is memory to read ahead, and the room for a unit.

    A batch is put together of the end of one unit and the beginning of the next, while one more may be read.
    """
    for is_ahead, units in ((True, 3), (False, 2)):
        room = (left - batch) / units
        if room >= batch:
            return is_ahead, room
    return False, 0.0
