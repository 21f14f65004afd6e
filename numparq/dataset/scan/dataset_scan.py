"""Read many files into one frame: find rows, allocate once, decode each file in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn, DictionaryArray
from numparq.column.read.row_selection import RowSlice
from numparq.column.scratch import ThreadScratch
from numparq.dataset.cast.columns import cast_column
from numparq.dataset.schema_merge.column_mapping import MappedColumn
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.errors import InvalidFileError, LimitError, ParquetError, error_context
from numparq.expr.expression import Constant
from numparq.format.schema import Leaf
from numparq.scan.memory import check_memory_limit
from numparq.scan.options import ScanOptions
from numparq.to_pandas.dictionary import keep_order_if_common
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.to_pandas.strings import default_string_array
from numparq.types.output_type import OutputType
from numparq.util.arguments import thread_count
from numparq.util.worker_pool import WorkerPool

from .file_batch import FileBatchReader, batch_small_files
from .file_reader import DatasetFileReader, UnexpectedNulls
from .projected_columns import DatasetColumns

if TYPE_CHECKING:
    from numparq.format.open_file import OpenFile
    from numparq.plan.read_plan import ReadPlan
    from numparq.scan.predicate import ScanPredicate

__all__ = ["DatasetScan", "DecodedRows", "FileSelection"]

# Files on an object store that are read side by side: what they wait for is mostly answers.
SIDE_BY_SIDE = 16


class FileSelection:
    """A file of a dataset that a read wants rows of.

    Parameters
    ----------
    file : OpenFile
        The file.
    ordinal : int
        Which of the files it is, as the partitions count them.
    slices : sequence of RowSlice
        The rows chosen by position, counted from 0.
    predicate : ScanPredicate or None
        What they have to satisfy.
    """

    def __init__(
        self, file: OpenFile, ordinal: int, slices: Sequence[RowSlice], condition: ScanPredicate | None = None
    ) -> None:
        self.file = file
        self.ordinal = ordinal
        self.slices = slices
        self.predicate = condition

    @property
    def matches_nothing(self) -> bool:
        """Whether it is known that no row satisfies the condition."""
        return self.predicate is not None and self.predicate.current() == Constant(False)


class DecodedRows(NamedTuple):
    """Rows of many files, decoded.

    Attributes
    ----------
    num_rows : int
        How many.
    layout : BlockLayout
        The memory of the table's leaves.
    buffers : list of DecodedColumn
        What these were decoded to.
    virtual : dict of str to array
        The virtual columns.
    made_columns : dict of int to array
        Columns that were made otherwise, by the position of their first leaf.
    """

    num_rows: int
    layout: BlockLayout
    buffers: list[DecodedColumn]
    virtual: dict[str, Any]
    made_columns: dict[int, Any]


class DatasetScan:
    """A read of many files.

    Parameters
    ----------
    schema : DatasetSchema
        That of all files.
    table : DatasetColumns
        The columns of the read.
    files : sequence of FileSelection
        All that any part of the read may be of: they settle the dtypes.
    choices : ScanOptions
        What else is asked for.
    """

    def __init__(
        self, schema: DatasetSchema, table: DatasetColumns, files: Sequence[FileSelection], choices: ScanOptions
    ) -> None:
        self.table = table
        self._choices = choices
        columns = [table.selected[at] for at in table.stored_positions]
        self._matches: dict[int, dict[int, MappedColumn]] = {}
        for wanted in files:
            found = schema.map_columns(wanted.file, columns)
            self._matches[wanted.ordinal] = dict(zip(table.stored_positions, found, strict=True))
        self._apart = {
            at
            for matches in self._matches.values()
            for at, match in matches.items()
            if not match.is_same and not (match.column is None and isinstance(table.selected[at], Leaf))
        }
        self._ready: dict[FileSelection, DatasetFileReader] = {}
        self._may_be_null = self._nullability(files)
        self.output_types = self._settled()

    def _nullability(self, files: Sequence[FileSelection]) -> list[bool]:
        """Say of each leaf whether it may be null in a file."""
        found = [False] * len(self.table.leaves)
        for wanted in files:
            part = self._ready[wanted] = self._made(wanted)
            for place, answer in part.may_be_null().items():
                found[place] = found[place] or answer
        return found

    def _settled(self) -> list[OutputType]:
        """Choose how each leaf is decoded; where statistics promise no nulls, with a way on if they lie."""
        if all(self._may_be_null):
            return self.table.schema_only_types(self._may_be_null)
        otherwise = self.table.schema_only_types([True] * len(self._may_be_null))
        targets = self.table.schema_only_types(self._may_be_null)
        return [
            target if target == other or target.nested else replace(target, on_null=other)
            for target, other in zip(targets, otherwise, strict=True)
        ]

    def set_threads(self, threads: int) -> None:
        """Have no more than so many threads decode."""
        self._choices = replace(self._choices, threads=threads)

    def file_reader(self, wanted: FileSelection) -> DatasetFileReader:
        """Give the part of a file, its targets settled, to look at: what its rows take, say."""
        part = self._ready.get(wanted) or self._made(wanted)
        part.set_output_types(self.output_types)
        return part

    def _part(self, wanted: FileSelection) -> DatasetFileReader:
        """Give the part of a file, to be used once: what was made to settle the dtypes serves the first read."""
        return self._ready.pop(wanted, None) or self._made(wanted)

    def _made(self, wanted: FileSelection) -> DatasetFileReader:
        matches = self._matches[wanted.ordinal]
        with error_context(file=wanted.file.source.name):
            return DatasetFileReader(
                wanted.file,
                wanted.ordinal,
                self.table,
                matches,
                self._apart,
                wanted.slices,
                wanted.predicate,
                self._choices,
            )

    def read(self, files: Sequence[FileSelection], limit: int | None = None) -> pd.DataFrame:
        """Read rows.

        Parameters
        ----------
        files : sequence of FileSelection
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
            except UnexpectedNulls as found:  # statistics that lie
                assert not self._may_be_null[found.leaf], "each column can be found once only"
                self._may_be_null[found.leaf] = True
                self.output_types = self._settled()

    def count(self, files: Sequence[FileSelection]) -> int:
        """Count the rows that `read` would give, without decoding more than what their conditions ask."""
        parts = [self._part(wanted) for wanted in files]
        with self._begun(parts) as each:
            each(parts, lambda part: part.select(None))
            return sum(part.rows.num_rows for part in parts)

    def plans(self, files: Sequence[FileSelection]) -> list[tuple[str, ReadPlan]]:
        """Plan each file's part: its name, and what is decoded, or looked through for rows that satisfy a condition."""
        return [(wanted.file.source.name, self._part(wanted).rows.plan()) for wanted in files]

    def _frame(self, parts: list[DatasetFileReader], limit: int | None) -> pd.DataFrame:
        return self.to_frame(self._decoded(parts, limit))

    def to_frame(self, rows: DecodedRows) -> pd.DataFrame:
        """Make the frame of rows that are decoded."""
        return self.table.to_frame(rows.layout, rows.buffers, list(rows.virtual.items()), rows.made_columns)

    def decode(self, files: Sequence[FileSelection], limit: int | None = None) -> DecodedRows:
        """Decode rows, as one part of all: parameters as of `read`.

        Raises
        ------
        InvalidFileError
            Where there are nulls though the statistics say that there are none: other parts have another dtype.
        """
        try:
            return self._decoded([self._part(wanted) for wanted in files], limit)
        except UnexpectedNulls as found:
            name = self.table.names[found.leaf]
            message = "the column has nulls, but its statistics declare none"
            raise InvalidFileError(message, column=name) from None

    def _decoded(self, parts: list[DatasetFileReader], limit: int | None) -> DecodedRows:
        table = self.table
        try:
            with self._begun(parts) as each:
                parts = self._found(parts, each, limit)
                self._check_memory(parts)
                counts = [part.rows.num_rows for part in parts]
                layout = allocate_blocks(self.output_types, sum(counts), table.index_leaves)
                starts = dict(zip(map(id, parts), np.cumsum([0, *counts]).tolist(), strict=False))
                decoded: dict[int, Any] = {}

                def decode(part: DatasetFileReader | FileBatchReader) -> None:
                    if isinstance(part, DatasetFileReader):
                        decoded[id(part)] = part.decode(layout, starts[id(part)])
                        return
                    found = part.decode(layout, [starts[id(one)] for one in part.parts])
                    decoded.update({id(one): (own, {}) for one, own in zip(part.parts, found, strict=True)})

                each(batch_small_files(parts), decode)
        except ParquetError:  # a LimitError is a MemoryError, too
            raise
        except MemoryError as error:
            raise LimitError(
                f"not enough memory to read {len(parts):,} files into one frame; use numparq.Dataset.iter_batches"
            ) from error
        in_order = [decoded[id(part)] for part in parts]
        buffers = _joined(layout, [shared for shared, _ in in_order])
        _settle_orders(layout, [shared for shared, _ in in_order])
        table.restore_null_counts(buffers, [int(may) or None for may in self._may_be_null])
        made = self._made_alone(parts, [alone for _, alone in in_order])
        made |= table.partition_arrays([part.ordinal for part in parts], counts)
        return DecodedRows(sum(counts), layout, buffers, dict(self._virtual(parts, counts)), made)

    def _check_memory(self, parts: Sequence[DatasetFileReader]) -> None:
        """Refuse rows that take more memory than is allowed."""
        limit = self._choices.memory_limit
        if limit is not None:
            check_memory_limit(
                [(part.memory_estimate(), part.rows.selections) for part in parts],
                thread_count(self._choices.threads),
                limit,
            )

    @contextmanager
    def _begun(self, parts: Sequence[DatasetFileReader]) -> Iterator[Callable[[Iterable[Any], Any], None]]:
        """Get all parts ready; gives what does something for each of them, side by side where they are remote."""
        local = ThreadScratch()
        with ExitStack() as stack:
            crew = stack.enter_context(WorkerPool(thread_count(self._choices.threads)))
            are_remote = len(parts) > 1 and any(part.file.source.is_remote for part in parts)
            outer = stack.enter_context(WorkerPool(min(SIDE_BY_SIDE, len(parts)))) if are_remote else None
            for part in parts:
                part.open(self.output_types, crew, local)
                stack.enter_context(closing(part.rows))

            def each(wanted: Iterable[Any], do: Callable[[Any], None]) -> None:
                if outer is not None:
                    outer.run([lambda part=part: do(part) for part in wanted])  # type: ignore[misc]
                    return
                for part in wanted:
                    do(part)

            yield each

    @staticmethod
    def _found(parts: list[DatasetFileReader], each: Callable[..., None], limit: int | None) -> list[DatasetFileReader]:
        """Find the rows of all parts; with a limit, of as many as it takes."""
        if limit is None:
            each(parts, lambda part: part.select(None))
            return parts
        found: list[DatasetFileReader] = []
        for part in parts:
            if limit <= 0:
                break
            part.select(limit)
            limit -= part.rows.num_rows
            found.append(part)
        return found

    def _made_alone(self, parts: Sequence[DatasetFileReader], alone: Sequence[dict[int, Any]]) -> dict[int, Any]:
        """Put together the columns that each file has made for itself, as the dtype that they have in the table."""
        if not self._apart:
            return {}
        dtypes = self.table.dtypes(self.output_types)
        made = {}
        for at in sorted(self._apart):
            arrays = [
                cast_column(
                    arrays.get(at),
                    self._matches[part.ordinal][at].column,
                    self.table.selected[at],
                    dtypes[at],
                    num_rows=part.rows.num_rows,
                    file=part.name,
                )
                for part, arrays in zip(parts, alone, strict=True)
            ]
            if not arrays:  # no file has a row
                arrays = [cast_column(None, None, self.table.selected[at], dtypes[at], num_rows=0)]
            made[self.table.leaf_slices[at].start] = _concatenated(arrays)
        return made

    def _virtual(self, parts: Sequence[DatasetFileReader], counts: Sequence[int]) -> list[tuple[str, Any]]:
        """Make the virtual columns asked for."""
        made: list[tuple[str, Any]] = []
        for name in self.table.virtual:
            if name == "file":
                files = default_string_array([part.name for part in parts])
                made.append((name, files.take(np.repeat(np.arange(len(parts)), counts))))
            else:
                arrays = [part.rows.virtual_column(name) for part in parts]
                made.append((name, np.concatenate(arrays) if arrays else np.empty(0, np.int64)))
        return made


def _joined(layout: BlockLayout, parts: Sequence[dict[int, DecodedColumn]]) -> list[DecodedColumn]:
    """Put together what the files have decoded of each leaf."""
    made = []
    for place in range(len(layout.targets)):
        buffer = DecodedColumn(layout.values[place], layout.validity[place])
        for part in parts:
            if place in part:
                buffer.null_count += part[place].null_count
                buffer.arrays.extend(part[place].arrays)
        made.append(buffer)
    return made


def _settle_orders(layout: BlockLayout, parts: Sequence[dict[int, DecodedColumn]]) -> None:
    """Let Categoricals be ordered only where the files agree on the order."""
    for place, target in enumerate(layout.targets):
        if target.storage == "dictionary":
            pieces = [part[place].arrays[0] for part in parts if place in part and part[place].arrays]
            firsts = [piece.dictionary for piece in pieces if isinstance(piece, DictionaryArray)]
            layout.targets[place] = keep_order_if_common(target, firsts)


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
