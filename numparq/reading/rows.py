"""The rows that a read wants of one file: found, by position and by what is in them, and decoded into memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.buffer import ColumnBuffer
from ..column.chunks import ChunkTables, RowSlice
from ..column.context import GAP_BYTES, Context
from ..column.rounds import Replaceable, decode_rounds
from ..column.scratch import ThreadScratch
from ..column.writers import faults_of
from ..filtering.ahead import Ahead, ranges_of_rows
from ..io.source import Source
from ..opened import OpenedFile
from ..schema import Leaf, ordinal_of
from ..targets import Target
from ..threads import Crew
from .nulls import may_have_nulls
from .ways import Strict

if TYPE_CHECKING:
    from ..column.wanted import WantedRows
    from ..filtering.choice import RowChoice
    from ..filtering.condition import Condition
    from ..plan.read_plan import ReadPlan
    from ..recovery import Recovery

__all__ = ["FileRows"]


class FileRows:
    """The rows that a read wants of a file.

    `begin` has to be called before rows are found and decoded, `close` afterwards.

    Parameters
    ----------
    file : OpenedFile
        The file.
    leaves : sequence of Leaf
        The leaves that are wanted of it.
    slices : sequence of RowSlice
        The rows chosen by position.
    condition : Condition or None
        What they have to satisfy.
    ways : Strict or Recovery
        What is done where the file is damaged.

    Attributes
    ----------
    slices : sequence of RowSlice or WantedRows
        The rows: those chosen by position, and after `find` those that satisfy the condition.
    tables : ChunkTables
        The column chunks of `leaves`, and behind them of those that only the condition asks.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], slices: Sequence[RowSlice], condition: Condition | None = None,
        ways: Strict | Recovery | None = None,
    ) -> None:  # fmt: skip
        self.file = file
        self._leaves = leaves
        self._condition = condition or None
        self._ways = ways or Strict()
        self._all = _with_asked(leaves, condition.leaves) if condition else leaves
        self.slices: Sequence[RowSlice | WantedRows] = slices
        groups = [rows.row_group for rows in slices]
        self.tables: ChunkTables = self._ways.tables(file.footer, self._all, groups, file.footer_start, file.files)

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The leaves that are wanted of the file."""
        return self._leaves

    @property
    def null_counts(self) -> list[int | None]:
        """Nulls of each wanted leaf in the row groups that are read; None where the statistics do not say."""
        return self.tables.null_counts()[: len(self._leaves)]

    @property
    def may_be_null(self) -> list[bool]:
        """Whether each wanted leaf may be null in the row groups that are read, as far as the footer tells."""
        created_by = self.file.footer.created_by
        counts = zip(self._leaves, self.null_counts, strict=True)
        return [may_have_nulls(leaf, count, created_by) for leaf, count in counts]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.slices))

    def plan(self) -> ReadPlan:
        """Plan what is decoded, or, of rows that have to satisfy a condition, what is left to look through."""
        slices = [rows for rows in self.slices if isinstance(rows, RowSlice) and len(rows)]
        return self._choice(()).plan(slices)

    def begin(self, crew: Crew, verify_crc: bool, local: ThreadScratch | None = None) -> None:
        """Get ready to find and decode.

        Parameters
        ----------
        crew : Crew
            The threads.
        verify_crc : bool
            Whether pages with a CRC are held against it.
        local : ThreadScratch, optional
            The threads' buffers, where they are shared with other files.
        """
        faults = faults_of(self.file.footer.created_by)
        self._context: Context = self._ways.context(
            self.file.source, self.tables.names, crew, verify_crc and faults.has_checksums,
            bit_packed=faults.bit_packed, local=local or ThreadScratch(), gap=self._gap,
        )  # fmt: skip
        self._ahead = Ahead(self._context, self.file)

    @property
    def _gap(self) -> int:
        """Over how many bytes chunks are read together."""
        return min(GAP_BYTES, self.file.coalescing.gap) if self.file.source.is_remote else GAP_BYTES

    def context_of(self, source: Source) -> Context:
        """Give the context of this read for the same columns in another source."""
        return replace(self._context, source=source)

    @property
    def likeness(self) -> Hashable:
        """What is the same of two files that can be read as one: their leaves, and how their pages are checked.

        None where they cannot: where rows are left out, or column chunks are elsewhere.
        """
        are_whole = self._condition is None and all(isinstance(rows, RowSlice) for rows in self.slices)
        if not are_whole or self.file.files is not None or not self.count:
            return None
        return tuple(self._leaves), self._context.verify_crc, self._context.bit_packed

    def close(self) -> None:
        """Give back what `begin` took."""
        self._ahead.close()
        self._context.close()

    @property
    def has_condition(self) -> bool:
        """Whether rows are chosen by what is in them."""
        return self._condition is not None

    def find(self, targets: Sequence[Target], limit: int | None = None) -> None:
        """Find the rows to decode, which `slices` are from then on.

        Parameters
        ----------
        targets : sequence of Target
            How the wanted leaves are decoded.
        limit : int or None
            At most so many rows, of those that satisfy the condition.
        """
        self.slices = self._ways.rows(self, targets, limit)

    def left(self, targets: Sequence[Target], limit: int | None) -> Sequence[RowSlice | WantedRows]:
        """Give those of the rows chosen by position that satisfy the condition; parameters as of `find`."""
        slices = [rows for rows in self.slices if isinstance(rows, RowSlice) and len(rows)]
        num_rows = self.file.footer.row_group_num_rows
        are_all = self._condition is None and (limit is None or limit >= self.count)
        if not slices or (are_all and all(len(rows) == num_rows[rows.row_group] for rows in slices)):
            return self.slices
        found = self._choice(targets).rows(slices, self._context, self._ahead, limit)
        return found or [RowSlice(slices[0].row_group, 0, 0, 0)]

    def _choice(self, targets: Sequence[Target]) -> RowChoice:
        from ..filtering.choice import RowChoice

        return RowChoice(self.file, self.tables, self._all, targets, self._condition)

    def decode(self, memory: Replaceable, wanted: Collection[int], first: int = 0) -> list[ColumnBuffer]:
        """Decode columns.

        Parameters
        ----------
        memory : Replaceable
            Where the leaves are decoded to.
        wanted : collection of int
            Which of them, by position.
        first : int
            The row of the memory that the first row becomes.

        Returns
        -------
        list of ColumnBuffer
            One for each leaf; those that are not wanted hold nothing.
        """
        slices = self.slices if not first else [replace(part, out=part.out + first) for part in self.slices]
        context, tables, leaves = self._context, self.tables, self._leaves
        found = {} if self._ahead.is_worth_it else self._ways.few(context, tables, leaves, memory, slices, wanted)
        if len(found) < len(wanted):
            maker = self._ways.maker(context, tables, leaves, memory, slices)  # type: ignore[arg-type]
            found |= decode_rounds(maker, memory, self._turns(slices), [at for at in wanted if at not in found])
        return [
            found.get(at) or ColumnBuffer(memory.values[at], memory.validity[at]) for at in range(len(self._leaves))
        ]

    def _turns(
        self, slices: Sequence[RowSlice | WantedRows]
    ) -> Callable[[], Iterator[Sequence[RowSlice | WantedRows]]]:
        """Give what divides the rows into those that are decoded together: all, or a row group when it is fetched."""
        if not self._ahead.is_worth_it:
            return lambda: iter([slices])
        columns = range(len(self._leaves))

        def turns() -> Iterator[Sequence[RowSlice | WantedRows]]:
            self._ahead.take_turns([ranges_of_rows(part, self.tables, columns) for part in slices])
            for turn, part in enumerate(slices):
                with self._ahead.turn(turn):
                    yield [part]

        return turns

    def virtual(self, name: str) -> np.ndarray:
        """Give a virtual column that is made of numbers.

        Parameters
        ----------
        name : str
            ``"row_group"`` or ``"row_number"``.

        Returns
        -------
        int64 array
            One item for each row.
        """
        values = np.empty(self.count, np.int64)
        counts: Any = self.file.footer.row_group_num_rows
        starts = np.cumsum(counts) - counts
        place = 0
        for rows in self.slices:
            numbers = rows.row_group if name == "row_group" else starts[rows.row_group] + rows.numbers()
            values[place : place + len(rows)] = numbers
            place += len(rows)
        return values


def _with_asked(leaves: Sequence[Leaf], asked: Sequence[Leaf]) -> Sequence[Leaf]:
    """Give the leaves that are wanted, and behind them those that are only asked."""
    shown = set(map(ordinal_of, leaves))
    if shown.issuperset(map(ordinal_of, asked)):
        return leaves
    return [*leaves, *(leaf for leaf in asked if leaf.index not in shown)]
