"""Rows of one file: selected, fetched and decoded into the scan's memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.jobs.schedule import decode_columns
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.output import ReplaceableMemory
from numparq.column.read.row_selection import SLICE_GROUP, RowSlice, RowSlices
from numparq.column.scratch import ThreadScratch
from numparq.errors import error_context
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import INT96
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.format.writer_quirks import NULL_COUNT, page_quirks, untrusted_statistics
from numparq.kernels.tables import DAYS_MS, INT96_NS, INT96_US
from numparq.types.output_type import OutputType
from numparq.util.progress import ProgressBar, ProgressShare
from numparq.util.worker_pool import WorkerPool

from .error_policy import RaiseOnDamage
from .prefetch import ScanPrefetcher, selection_byte_ranges

if TYPE_CHECKING:
    from numparq.plan.read_plan import ReadPlan

    from .predicate import ScanPredicate
    from .recovery.file_policy import SkipDamagedFile
    from .select_rows import RowSelectionBuilder

__all__ = ["FileRowReader", "leaf_may_be_null", "leaves_may_be_null"]


def leaf_may_be_null(leaf: Leaf, null_count: int | None, created_by: str | None) -> bool:
    """Whether a leaf column may hold a null, given its null count (None: unknown) and the writer.

    False for REQUIRED leaves, and where a trusted writer counts none.
    """
    if not leaf.max_definition_level:
        return False
    return null_count != 0 or NULL_COUNT in untrusted_statistics(created_by, leaf)


def leaves_may_be_null(file: OpenFile, leaves: Sequence[Leaf]) -> list[bool]:
    """Return for each leaf whether it may hold a null in any row group of a file."""
    counts = file.footer.chunks.read_table(range(file.num_row_groups), [leaf.index for leaf in leaves])["null_count"]
    none = (counts == 0).all(axis=0).tolist()
    created_by = file.footer.created_by
    return [
        leaf_may_be_null(leaf, 0 if are_none else None, created_by) for leaf, are_none in zip(leaves, none, strict=True)
    ]


class FileRowReader:
    """Rows of one file: call `open`, `select`, `decode` and `close` in that order.

    Attributes
    ----------
    selections : RowSlices
        Rows selected by position; after `select` those that satisfy the predicate.
    chunk_tables : ChunkTables
        Column chunks of the projected leaves, followed by those of the other filter leaves.
    context : ReadContext
        That of the read, once it is open.
    """

    def __init__(
        self,
        file: OpenFile,
        leaves: Sequence[Leaf],
        slices: Sequence[RowSlice],
        predicate: ScanPredicate | None = None,
        policy: RaiseOnDamage | SkipDamagedFile | None = None,
    ) -> None:
        self.file = file
        self._leaves = leaves
        self.predicate = condition = predicate or None
        self.policy = policy or RaiseOnDamage()
        self._all_leaves = leaves if condition is None else _add_filter_leaves(leaves, condition.leaves)
        self._slices = slices if isinstance(slices, RowSlices) else RowSlices.of(slices)
        self.selections: RowSlices = self._slices
        self.chunk_tables: ChunkTables = self.policy.chunk_tables(
            file.footer, self._all_leaves, self._slices.row_groups, file.footer_start, file.multi_file_source
        )

    @property
    def leaves(self) -> Sequence[Leaf]:
        """Projected leaves."""
        return self._leaves

    @property
    def null_counts(self) -> list[int | None]:
        """Null count of each projected leaf in the row groups read; None if unknown."""
        return self.chunk_tables.null_counts[: len(self._leaves)]

    @property
    def may_be_null(self) -> list[bool]:
        """Whether each projected leaf may be null in the row groups read, by the footer."""
        created_by = self.file.footer.created_by
        counts = zip(self._leaves, self.null_counts, strict=True)
        return [leaf_may_be_null(leaf, count, created_by) for leaf, count in counts]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.selections.num_rows

    def plan(self) -> ReadPlan:
        """Plan the rows to decode; with a predicate, the rows that statistics and indexes leave to filter."""
        return self._selection_builder(()).plan([rows for rows in self._slices if rows.start < rows.stop])

    def open(
        self,
        pool: WorkerPool,
        verify_crc: bool,
        local: ThreadScratch | None = None,
        progress: ProgressBar | None = None,
    ) -> None:
        """Open the read: build its context and its prefetcher. `local` shares thread scratch between files."""
        faults = page_quirks(self.file.footer.created_by)
        is_counted = progress is not None and progress.is_shown
        self._progress = ProgressShare(progress, self._num_chunk_bytes()) if progress and is_counted else None
        self.context: ReadContext = self.policy.context(
            self.file.reader,
            self.chunk_tables.names,
            pool,
            verify_crc and faults.has_checksums,
            bit_packed=faults.bit_packed,
            local=local or ThreadScratch(),
            progress=self._progress,
            file=self.file if self.file.multi_file_source is None else None,
        )
        self._ahead = ScanPrefetcher(self.context, self.file)

    @property
    def row_groups(self) -> list[int]:
        """Row group of each slice of the rows selected by position."""
        return self._slices.row_groups

    def slice_table(self, first: int) -> np.ndarray:
        """Return the rows selected by position as a table of `RowSlices`, the first at output row `first`."""
        table: np.ndarray = self._slices.table + np.array([0, 0, 0, first])
        return table

    @property
    def has_whole_row_groups(self) -> bool:
        """Whether rows are read as they are: not filtered, of this file, and damage raises."""
        are_selected = self.predicate is not None or self.selections.selections is not None
        is_plain = isinstance(self.policy, RaiseOnDamage) and self.file.multi_file_source is None
        return is_plain and not are_selected and self.num_rows > 0

    def _num_chunk_bytes(self) -> int:
        """Return the bytes of all column chunks in the row groups read."""
        groups = sorted(set(self._slices.row_groups))
        table = self.file.footer.chunks.read_table(groups, [leaf.index for leaf in self._all_leaves])
        return int(np.maximum(table["total_compressed_size"], 0).sum())

    def finish_progress(self) -> None:
        """Count the file as read."""
        if self._progress is not None:
            self._progress.finish()

    def close(self) -> None:
        """Close the prefetcher and the context."""
        if self._progress is not None:
            self._progress.finish()
        if self._ahead.is_remote:
            self._ahead.close()
        self.context.local.close()

    def select(self, output_types: Sequence[OutputType], limit: int | None = None) -> None:
        """Set `selections` to the rows to decode, at most `limit` of those that satisfy the predicate."""
        select = self.policy.select
        self.selections = select(self, output_types, limit) if select else self.filter_slices(output_types, limit)

    def filter_slices(self, output_types: Sequence[OutputType], limit: int | None) -> RowSlices:
        """Return the rows that satisfy the predicate, at most `limit`."""
        slices, count = self._slices, self._slices.num_rows
        of_groups = self.file.footer.row_group_num_rows[slices.table[:, SLICE_GROUP]]
        are_all = self.predicate is None and (limit is None or limit >= count)
        if not count or (are_all and count == np.add.reduce(of_groups)):
            return slices
        builder = self._selection_builder(output_types)
        found = builder.select([rows for rows in slices if rows.start < rows.stop], self.context, self._ahead, limit)
        return RowSlices.of_selections(found) if found else RowSlices.single(slices.row_groups[0], 0, 0)

    def _selection_builder(self, output_types: Sequence[OutputType]) -> RowSelectionBuilder:
        from numparq.scan.select_rows import RowSelectionBuilder

        return RowSelectionBuilder(self.file, self.chunk_tables, self._all_leaves, output_types, self.predicate)

    def decode(self, memory: ReplaceableMemory, wanted: Collection[int], first: int = 0) -> list[DecodedColumn]:
        """Decode the leaves at the positions `wanted`; return one column for each leaf, empty if not decoded.

        The first row goes to row `first` of `memory`.
        """
        slices = self.selections.move(first) if first else self.selections
        context, tables, leaves = self.context, self.chunk_tables, self._leaves
        maker = self.policy.job_maker(context, tables, leaves, memory, slices)  # type: ignore[arg-type]
        rounds = self._prefetched_rounds(slices) if self._ahead.is_remote else partial(iter, [slices])
        found = decode_columns(maker, memory, rounds, wanted)
        for at, column in found.items():
            if leaves[at].rebase is not None:
                with error_context(column=leaves[at].name):
                    _rebase(leaves[at], column, memory.targets[at], slice(first, first + self.num_rows))
        for at in range(len(leaves)):
            if at not in found:
                found[at] = DecodedColumn(memory.values[at], memory.validity[at])
        return [*map(found.__getitem__, range(len(leaves)))]

    def _prefetched_rounds(self, slices: RowSlices) -> Callable[[], Iterable[RowSlices]]:
        """Return an iterator factory of the rows decoded together: one selection after the other, as it is fetched."""
        columns = range(len(self._leaves))

        def turns() -> Iterator[RowSlices]:
            self._ahead.schedule([selection_byte_ranges(part, self.chunk_tables, columns) for part in slices.parts])
            for turn in range(len(slices)):
                with self._ahead.batch(turn):
                    yield slices[turn : turn + 1]

        return turns

    def virtual_column(self, name: str) -> np.ndarray:
        """Return the virtual column "row_group" or "row_number" as int64, one value a row."""
        values = np.empty(self.num_rows, np.int64)
        counts: Any = self.file.footer.row_group_num_rows
        starts = np.cumsum(counts) - counts
        place = 0
        for rows in self.selections.parts:
            numbers = rows.row_group if name == "row_group" else starts[rows.row_group] + rows.row_indices()
            values[place : place + len(rows)] = numbers
            place += len(rows)
        return values


_UNITS = {DAYS_MS: "ms", INT96_NS: "ns", INT96_US: "us"}  # of converted days and instants


def _rebase(leaf: Leaf, column: DecodedColumn, target: OutputType, rows: slice) -> None:
    """Rebase decoded values in Spark's legacy calendar in place: all of a nested column, else those in some rows."""
    assert leaf.rebase is not None
    if leaf.physical == INT96 and target.conversion not in _UNITS:  # beyond all units: bytes
        return
    for values in [part.values for part in column.arrays] if column.values is None else [column.values[rows]]:
        leaf.rebase.apply(values, _UNITS.get(target.conversion, ""))


def _add_filter_leaves(leaves: Sequence[Leaf], asked: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the projected leaves, followed by the other filter leaves."""
    shown = set(map(leaf_ordinal, leaves))
    if shown.issuperset(map(leaf_ordinal, asked)):
        return leaves
    return [*leaves, *(leaf for leaf in asked if leaf.index not in shown)]
