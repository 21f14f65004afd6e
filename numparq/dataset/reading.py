"""Many files into one frame: rows found file by file, memory taken once for all of them, each decoded into its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..column.buffer import ColumnBuffer, DictionaryPiece
from ..column.chunks import RowSlice
from ..column.scratch import ThreadScratch
from ..errors import InvalidFileError, LimitError, ParquetError, located
from ..frame import Layout, allocate
from ..frame.categories import ordered_as
from ..frame.strings import text_of
from ..memory_budget import check
from ..predicate.expression import Constant
from ..reading.choices import Choices
from ..schema import Leaf
from ..targets import Target
from ..threads import Crew, thread_count
from .columns import TableColumns
from .conversion import converted
from .joined import JoinedParts, joined
from .parts import FilePart, NullsFound
from .resolution import DatasetSchema, Match

if TYPE_CHECKING:
    from ..filtering.condition import Condition
    from ..opened import OpenedFile
    from ..plan.read_plan import ReadPlan

__all__ = ["TableRead", "TableRows", "WantedFile"]

# Files on an object store that are read side by side: what they wait for is mostly answers.
SIDE_BY_SIDE = 16


class WantedFile:
    """A file of a dataset that a read wants rows of.

    Parameters
    ----------
    file : OpenedFile
        The file.
    ordinal : int
        Which of the files it is, as the partitions count them.
    slices : sequence of RowSlice
        The rows chosen by position, counted from 0.
    condition : Condition or None
        What they have to satisfy.
    """

    def __init__(
        self, file: OpenedFile, ordinal: int, slices: Sequence[RowSlice], condition: Condition | None = None
    ) -> None:
        self.file = file
        self.ordinal = ordinal
        self.slices = slices
        self.condition = condition

    @property
    def is_nothing(self) -> bool:
        """Whether it is known that no row satisfies the condition."""
        return self.condition is not None and self.condition.now() == Constant(False)


class TableRows(NamedTuple):
    """Rows of many files, decoded.

    Attributes
    ----------
    num_rows : int
        How many.
    layout : Layout
        The memory of the table's leaves.
    buffers : list of ColumnBuffer
        What these were decoded to.
    virtual : dict of str to array
        The virtual columns.
    made : dict of int to array
        Columns that were made otherwise, by the position of their first leaf.
    """

    num_rows: int
    layout: Layout
    buffers: list[ColumnBuffer]
    virtual: dict[str, Any]
    made: dict[int, Any]


class TableRead:
    """A read of many files.

    Parameters
    ----------
    schema : DatasetSchema
        That of all files.
    table : TableColumns
        The columns of the read.
    files : sequence of WantedFile
        All that any part of the read may be of: they settle the dtypes.
    choices : Choices
        What else is asked for.
    """

    def __init__(
        self, schema: DatasetSchema, table: TableColumns, files: Sequence[WantedFile], choices: Choices
    ) -> None:
        self.table = table
        self._choices = choices
        columns = [table.selected[at] for at in table.stored]
        self._matches: dict[int, dict[int, Match]] = {}
        for wanted in files:
            found = schema.matches(wanted.file, columns)
            self._matches[wanted.ordinal] = dict(zip(table.stored, found, strict=True))
        self._apart = {
            at
            for matches in self._matches.values()
            for at, match in matches.items()
            if not match.is_same and not (match.column is None and isinstance(table.selected[at], Leaf))
        }
        self._ready: dict[WantedFile, FilePart] = {}
        self._may_be_null = self._nulls_of(files)
        self.targets = self._settled()

    def _nulls_of(self, files: Sequence[WantedFile]) -> list[bool]:
        """Say of each leaf whether it may be null in a file."""
        found = [False] * len(self.table.leaves)
        for wanted in files:
            part = self._ready[wanted] = self._made(wanted)
            for place, answer in part.may_be_null().items():
                found[place] = found[place] or answer
        return found

    def _settled(self) -> list[Target]:
        """Choose how each leaf is decoded; where statistics promise no nulls, with a way on if they lie."""
        if all(self._may_be_null):
            return self.table.settled_targets(self._may_be_null)
        otherwise = self.table.settled_targets([True] * len(self._may_be_null))
        targets = self.table.settled_targets(self._may_be_null)
        return [
            target if target == other or target.nested else replace(target, on_null=other)
            for target, other in zip(targets, otherwise, strict=True)
        ]

    def set_threads(self, threads: int) -> None:
        """Have no more than so many threads decode."""
        self._choices = replace(self._choices, threads=threads)

    def known(self, wanted: WantedFile) -> FilePart:
        """Give the part of a file, its targets settled, to look at: what its rows take, say."""
        part = self._ready.get(wanted) or self._made(wanted)
        part.settle(self.targets)
        return part

    def _part(self, wanted: WantedFile) -> FilePart:
        """Give the part of a file, to be used once: what was made to settle the dtypes serves the first read."""
        return self._ready.pop(wanted, None) or self._made(wanted)

    def _made(self, wanted: WantedFile) -> FilePart:
        matches = self._matches[wanted.ordinal]
        with located(file=wanted.file.source.name):
            return FilePart(
                wanted.file, wanted.ordinal, self.table, matches, self._apart, wanted.slices, wanted.condition,
                self._choices,
            )  # fmt: skip

    def frame(self, files: Sequence[WantedFile], limit: int | None = None) -> pd.DataFrame:
        """Read rows.

        Parameters
        ----------
        files : sequence of WantedFile
            Whose; some of those that the read was made for.
        limit : int or None
            At most so many rows, of those that satisfy their conditions.

        Returns
        -------
        pandas.DataFrame
        """
        while True:
            try:
                return self._frame([self._part(wanted) for wanted in files], limit)
            except NullsFound as found:  # statistics that lie
                assert not self._may_be_null[found.place], "each column can be found once only"
                self._may_be_null[found.place] = True
                self.targets = self._settled()

    def count(self, files: Sequence[WantedFile]) -> int:
        """Count the rows that `frame` would give, without decoding more than what their conditions ask."""
        parts = [self._part(wanted) for wanted in files]
        with self._begun(parts) as each:
            each(parts, lambda part: part.find(None))
            return sum(part.rows.count for part in parts)

    def plans(self, files: Sequence[WantedFile]) -> list[tuple[str, ReadPlan]]:
        """Plan each file's part: its name, and what is decoded, or looked through for rows that satisfy a condition."""
        return [(wanted.file.source.name, self._part(wanted).rows.plan()) for wanted in files]

    def _frame(self, parts: list[FilePart], limit: int | None) -> pd.DataFrame:
        return self.framed(self._decoded(parts, limit))

    def framed(self, rows: TableRows) -> pd.DataFrame:
        """Make the frame of rows that are decoded."""
        return self.table.frame(rows.layout, rows.buffers, list(rows.virtual.items()), rows.made)

    def decoded(self, files: Sequence[WantedFile], limit: int | None = None) -> TableRows:
        """Decode rows, as one part of all: parameters as of `frame`.

        Raises
        ------
        InvalidFileError
            Where there are nulls though the statistics say that there are none: other parts have another dtype.
        """
        try:
            return self._decoded([self._part(wanted) for wanted in files], limit)
        except NullsFound as found:
            name = self.table.names[found.place]
            message = "the column has nulls, though the statistics say that it has none"
            raise InvalidFileError(message, column=name) from None

    def _decoded(self, parts: list[FilePart], limit: int | None) -> TableRows:
        table = self.table
        try:
            with self._begun(parts) as each:
                parts = self._found(parts, each, limit)
                self._check_memory(parts)
                counts = [part.rows.count for part in parts]
                layout = allocate(self.targets, sum(counts), table.separate)
                starts = dict(zip(map(id, parts), np.cumsum([0, *counts]).tolist(), strict=False))
                decoded: dict[int, Any] = {}

                def decode(part: FilePart | JoinedParts) -> None:
                    if isinstance(part, FilePart):
                        decoded[id(part)] = part.decode(layout, starts[id(part)])
                        return
                    found = part.decode(layout, [starts[id(one)] for one in part.parts])
                    decoded.update({id(one): (own, {}) for one, own in zip(part.parts, found, strict=True)})

                each(joined(parts), decode)
        except ParquetError:  # a LimitError is a MemoryError, too
            raise
        except MemoryError as error:
            raise LimitError(f"there is not enough memory to read {len(parts):,} files into one frame") from error
        in_order = [decoded[id(part)] for part in parts]
        buffers = _joined(layout, [shared for shared, _ in in_order])
        _settle_orders(layout, [shared for shared, _ in in_order])
        table.count_nulls(buffers, [int(may) or None for may in self._may_be_null])
        made = self._made_alone(parts, [alone for _, alone in in_order])
        made |= table.partition_arrays([part.ordinal for part in parts], counts)
        return TableRows(sum(counts), layout, buffers, dict(self._virtual(parts, counts)), made)

    def _check_memory(self, parts: Sequence[FilePart]) -> None:
        """Refuse rows that take more memory than is allowed."""
        limit = self._choices.memory_limit
        if limit is not None:
            check([(part.costs(), part.rows.slices) for part in parts], thread_count(self._choices.threads), limit)

    @contextmanager
    def _begun(self, parts: Sequence[FilePart]) -> Iterator[Callable[[Iterable[Any], Any], None]]:
        """Get all parts ready; gives what does something for each of them, side by side where they are remote."""
        local = ThreadScratch()
        with ExitStack() as stack:
            crew = stack.enter_context(Crew(thread_count(self._choices.threads)))
            are_remote = len(parts) > 1 and any(part.file.source.is_remote for part in parts)
            outer = stack.enter_context(Crew(min(SIDE_BY_SIDE, len(parts)))) if are_remote else None
            for part in parts:
                part.begin(self.targets, crew, local)
                stack.enter_context(closing(part.rows))

            def each(wanted: Iterable[Any], do: Callable[[Any], None]) -> None:
                if outer is not None:
                    outer.run([lambda part=part: do(part) for part in wanted])  # type: ignore[misc]
                    return
                for part in wanted:
                    do(part)

            yield each

    @staticmethod
    def _found(parts: list[FilePart], each: Callable[..., None], limit: int | None) -> list[FilePart]:
        """Find the rows of all parts; with a limit, of as many as it takes."""
        if limit is None:
            each(parts, lambda part: part.find(None))
            return parts
        found: list[FilePart] = []
        for part in parts:
            if limit <= 0:
                break
            part.find(limit)
            limit -= part.rows.count
            found.append(part)
        return found

    def _made_alone(self, parts: Sequence[FilePart], alone: Sequence[dict[int, Any]]) -> dict[int, Any]:
        """Put together the columns that each file has made for itself, as the dtype that they have in the table."""
        if not self._apart:
            return {}
        dtypes = self.table.dtypes(self.targets)
        made = {}
        for at in sorted(self._apart):
            arrays = [
                converted(
                    arrays.get(at), self._matches[part.ordinal][at].column, self.table.selected[at], dtypes[at],
                    num_rows=part.rows.count, file=part.name,
                )
                for part, arrays in zip(parts, alone, strict=True)
            ]  # fmt: skip
            if not arrays:  # no file has a row
                arrays = [converted(None, None, self.table.selected[at], dtypes[at], num_rows=0)]
            made[self.table.places[at].start] = _concatenated(arrays)
        return made

    def _virtual(self, parts: Sequence[FilePart], counts: Sequence[int]) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        made: list[tuple[str, Any]] = []
        for name in self.table.virtual:
            if name == "file":
                files = text_of([part.name for part in parts])
                made.append((name, files.take(np.repeat(np.arange(len(parts)), counts))))
            else:
                arrays = [part.rows.virtual(name) for part in parts]
                made.append((name, np.concatenate(arrays) if arrays else np.empty(0, np.int64)))
        return made


def _joined(layout: Layout, parts: Sequence[dict[int, ColumnBuffer]]) -> list[ColumnBuffer]:
    """Put together what the files have decoded of each leaf."""
    made = []
    for place in range(len(layout.targets)):
        buffer = ColumnBuffer(layout.values[place], layout.validity[place])
        for part in parts:
            if place in part:
                buffer.null_count += part[place].null_count
                buffer.pieces.extend(part[place].pieces)
        made.append(buffer)
    return made


def _settle_orders(layout: Layout, parts: Sequence[dict[int, ColumnBuffer]]) -> None:
    """Let Categoricals be ordered only where the files agree on the order."""
    for place, target in enumerate(layout.targets):
        if target.storage == "dictionary":
            pieces = [part[place].pieces[0] for part in parts if place in part and part[place].pieces]
            firsts = [piece.dictionary for piece in pieces if isinstance(piece, DictionaryPiece)]
            layout.targets[place] = ordered_as(target, firsts)


def _concatenated(arrays: Sequence[Any]) -> Any:
    """Put arrays of one dtype behind one another."""
    if len(arrays) == 1:
        return arrays[0]
    if isinstance(arrays[0].dtype, pd.CategoricalDtype):
        one_order = all(array.dtype == arrays[0].dtype for array in arrays)
        return pd.api.types.union_categoricals(arrays, ignore_order=not one_order)
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    return pd.concat([pd.Series(array, copy=False) for array in arrays], ignore_index=True).array
