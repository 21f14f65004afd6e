"""Rows of one file of a scan, or of joined files: selected, fetched and decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.jobs.schedule import decode_columns
from numparq.column.nested.levels import LeafRows, NestedLeaf
from numparq.column.read import row_selection
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.output import ReplaceableMemory
from numparq.column.read.row_selection import SLICE_GROUP, SLICE_START, SLICE_STOP, RowSlices
from numparq.column.scratch import ThreadScratch
from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import INT96
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.format.writer_quirks import leaf_may_be_null, page_quirks
from numparq.kernels.tables import DAYS_MS, INT96_NS, INT96_US
from numparq.types.output_type import OutputType
from numparq.util.progress import ProgressBar, ProgressShare
from numparq.util.worker_pool import WorkerPool

from .error_policy import RaiseOnDamage
from .options import all_row_slices
from .prefetch import ScanPrefetcher, selection_byte_ranges
from .scan_file import ScanFile
from .source_types import UnfitValues, source_types

if TYPE_CHECKING:
    from numparq.plan.read_plan import ReadPlan

    from .joined_files import JoinedFile
    from .recovery.file_policy import SkipDamagedFile


class FileReader:
    """One read of a file, or of joined files: call `open`, `select`, `decode` and `close` in that order.

    Attributes
    ----------
    files : sequence of ScanFile
        The files.
    file : OpenFile
        The file; of several the joined one.
    selects_rows : bool
        Whether `select` is needed.
    leaves : sequence of Leaf
        Leaves to decode, those of `FileColumns`.
    selections : RowSlices
        Rows selected by position; after `select` those that satisfy the predicate.
    chunk_tables : ChunkTables
        Column chunks of the leaves, followed by those of the other filter leaves.
    output_types : list of OutputType
        Those of the leaves, once the read is open.
    context : ReadContext
        That of the read, once it is open.
    keeps_bytes : bool
        Whether the bytes of joined files stay in memory from the selection of rows to their decoding.
    unfit : sequence of UnfitValues
        Values that do not fit the type that they were cast to.
    """

    def __init__(self, files: Sequence[ScanFile], policy: RaiseOnDamage | SkipDamagedFile | None = None) -> None:
        scan_file = files[0]
        self.files = files
        self.columns = scan_file.columns
        self.leaves = leaves = self.columns.leaves
        self.file = scan_file.file
        self.joined: JoinedFile | None = None
        self.keeps_bytes = False
        self.unfit: Sequence[UnfitValues] = ()
        self.predicate = predicate = scan_file.predicate
        self.policy = policy or RaiseOnDamage()
        self.selects_rows = not scan_file.has_all_rows or self.policy.select is not None
        self._all_leaves = leaves if predicate is None else _add_filter_leaves(leaves, predicate.leaves)
        try:
            if len(files) == 1:
                file, slices = self.file, scan_file.selected_slices
                if slices is None:
                    slices = all_row_slices(file.footer)
            else:
                file, slices = self._join(files)
            self.selections: RowSlices = slices
            self._slices = slices
            self.chunk_tables: ChunkTables = self.policy.chunk_tables(
                file.footer, self._all_leaves, slices.row_groups, file.footer_start, file.multi_file_source
            )
        except ParquetError as error:
            self.add_file(error)
            raise

    def _join(self, files: Sequence[ScanFile]) -> tuple[OpenFile, RowSlices]:
        """Join the files; return the joined file and all its rows."""
        from .joined_files import JoinedFile, JoinedFilePolicy

        self.file = self.joined = joined = JoinedFile([one.file for one in files], self._all_leaves)
        self.policy = JoinedFilePolicy()
        return joined, all_row_slices(joined.footer)

    def add_file(self, error: ParquetError) -> None:
        """Add to an error the file that it is of."""
        if self.joined is not None:
            self.joined.locate(error)
        else:
            error.where.setdefault("file", self.file.source.name)

    def locate(self, error: ParquetError) -> None:
        """Add to an error of the read the file, and the sibling file of an external column chunk."""
        self.chunk_tables.add_chunk_file(error)
        self.add_file(error)

    # --- what is known before the read --------------------------------------------------------------------------------

    @property
    def null_counts(self) -> list[int | None]:
        """Null count of each leaf in the row groups read; None if unknown."""
        return self.chunk_tables.null_counts[: len(self.leaves)]

    @property
    def may_be_null(self) -> list[bool]:
        """Whether each leaf may be null in the row groups read, by the footer."""
        created_by = self.file.footer.created_by
        counts = zip(self.leaves, self.null_counts, strict=True)
        return [leaf_may_be_null(leaf, count, created_by) for leaf, count in counts]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.selections.num_rows

    @property
    def counts(self) -> list[int]:
        """Number of rows of each file."""
        if self.joined is None:
            return [self.num_rows]
        if self.selections is self._slices:
            return [stop - start for start, stop in pairwise(self.joined.first_rows)]
        return self.joined.count_rows(self.selections)

    @property
    def row_groups(self) -> list[int]:
        """Row group of each slice of the rows selected by position."""
        return self._slices.row_groups

    def plan(self) -> ReadPlan:
        """Plan the rows to decode; with a predicate, the rows that statistics and indexes leave to filter."""
        from numparq.scan.select_rows import RowSelectionBuilder

        builder = RowSelectionBuilder(self.file, self.chunk_tables, self._all_leaves, (), self.predicate)
        return builder.plan([rows for rows in self._slices if rows.start < rows.stop])

    def own_types(self, projected_types: list[OutputType]) -> list[OutputType]:
        """Return the output types of the leaves by those of the projected leaves."""
        if self.columns.is_identity:
            return projected_types
        own = [projected_types[leaf] for leaf in self.columns.positions]
        if self.columns.cast:
            own += source_types(self.file, self.columns, projected_types)
        return own

    # --- the read -----------------------------------------------------------------------------------------------------

    def open(
        self,
        output_types: list[OutputType],
        pool: WorkerPool,
        verify_crc: bool = True,
        local: ThreadScratch | None = None,
        progress: ProgressBar | None = None,
    ) -> None:
        """Open the read of the leaves as `output_types`. `local` shares thread scratch between files."""
        self.output_types = output_types
        quirks = page_quirks(self.file.footer.created_by)
        is_counted = progress is not None and progress.is_shown
        self._progress = ProgressShare(progress, self._num_chunk_bytes()) if progress and is_counted else None
        self.context = ReadContext(
            self.file.reader,
            self.chunk_tables.names,
            pool,
            verify_crc and quirks.has_checksums,
            bit_packed=quirks.bit_packed,
            local=local or ThreadScratch(),
            progress=self._progress,
            file=self.file if self.file.multi_file_source is None else None,
        )
        self._prefetcher = ScanPrefetcher(self.context, self.file) if self.file.source.is_remote else None

    def _num_chunk_bytes(self) -> int:
        """Return the bytes of all column chunks in the row groups read."""
        groups = sorted(set(self._slices.row_groups))
        table = self.file.footer.chunks.read_table(groups, [leaf.index for leaf in self._all_leaves])
        return int(np.maximum(table["total_compressed_size"], 0).sum())

    def close(self) -> None:
        """Drop what was prefetched, and count the file as read."""
        if self._progress is not None:
            self._progress.finish()
        if self._prefetcher is not None:
            self._prefetcher.close()

    def select(self, limit: int | None = None) -> None:
        """Set `selections` to the rows to decode, at most `limit` of those that satisfy the predicate."""
        slices, predicate = self._slices, self.predicate
        try:
            if self.policy.select is not None:
                self.selections = self.policy.select(self, self.output_types, limit)
                return
            count = slices.num_rows
            of_groups = self.file.footer.row_group_num_rows[slices.table[:, SLICE_GROUP]]
            are_all = predicate is None and (limit is None or limit >= count)
            if not count or (are_all and count == np.add.reduce(of_groups)):
                return
            from numparq.scan.select_rows import RowSelectionBuilder

            builder = RowSelectionBuilder(self.file, self.chunk_tables, self._all_leaves, self.output_types, predicate)
            rows = slices.table
            rows = rows[rows[:, SLICE_START] < rows[:, SLICE_STOP]]
            selections = builder.select(rows, self.context, self._prefetcher, limit)
            self.selections = (
                RowSlices.of_selections(selections) if selections else RowSlices.single(slices.row_groups[0], 0, 0)
            )
            if self.joined is not None and not self.keeps_bytes:
                self.joined.release()
        except ParquetError as error:
            self.locate(error)
            self.file.check_unchanged()
            raise

    def decode(self, memory: ReplaceableMemory, positions: Collection[int], first: int = 0) -> list[DecodedColumn]:
        """Decode the leaves at some positions; return one column for each leaf, empty if not decoded.

        The first row goes to row `first` of `memory`. Without rows, dictionaries are decoded for their categories.
        """
        if not self.selections.num_rows:
            positions = [at for at in positions if memory.targets[at].entry_type is not None]
        slices = self.selections.move(first) if first else self.selections
        try:
            # The policy's scheduler and chunk tables are of one kind.
            scheduler = self.policy.scheduler(self.context, self.chunk_tables, self.leaves, memory)  # type: ignore[arg-type]
            prefetcher = self._prefetcher
            rounds: Callable[[], Iterable[RowSlices]] = partial(iter, [slices])
            if prefetcher is not None:
                rounds = self._prefetched_rounds(prefetcher, slices)
            elif len(slices.table) > row_selection.WAVE:
                rounds = slices.waves
            columns = decode_columns(scheduler, memory, rounds, positions)
            for at, column in columns.items():
                leaf = self.leaves[at]
                if leaf.rebase is not None:
                    with error_context(column=leaf.name):
                        _rebase(leaf, column, memory.targets[at], slice(first, first + self.num_rows))
                if memory.targets[at].nested:
                    self._add_file_to_levels(column)
            self.file.check_unchanged()
        except ParquetError as error:
            self.locate(error)
            self.file.check_unchanged()
            raise
        for at in range(len(self.leaves)):
            if at not in columns:
                columns[at] = DecodedColumn(memory.values[at], memory.validity[at])
        return [*map(columns.__getitem__, range(len(self.leaves)))]

    def _add_file_to_levels(self, column: DecodedColumn) -> None:
        """Add to the arrays of a nested leaf the file that they are of, for errors."""
        for leaf in _decoded_leaves(column):
            if self.joined is not None:
                self.joined.locate_piece(leaf)
            else:
                leaf.file = self.file.source.name

    def _prefetched_rounds(self, prefetcher: ScanPrefetcher, slices: RowSlices) -> Callable[[], Iterable[RowSlices]]:
        """Return an iterator factory of the rows decoded together: one selection after the other, as it is fetched."""
        columns = range(len(self.leaves))

        def rounds() -> Iterator[RowSlices]:
            prefetcher.schedule([selection_byte_ranges(part, self.chunk_tables, columns) for part in slices.parts])
            for at in range(len(slices)):
                with prefetcher.batch(at):
                    yield slices[at : at + 1]

        return rounds

    def virtual_column(self, name: str) -> np.ndarray:
        """Return the virtual column "row_group" or "row_number" as int64, one value a row, counted in each file."""
        values = np.empty(self.num_rows, np.int64)
        counts: Any = self.file.footer.row_group_num_rows
        starts = np.cumsum(counts) - counts
        out = 0
        for rows in self.selections.parts:
            numbers = rows.row_group if name == "row_group" else starts[rows.row_group] + rows.row_indices()
            values[out : out + len(rows)] = numbers
            out += len(rows)
        if self.joined is not None:
            firsts = self.joined.first_groups if name == "row_group" else self.joined.first_rows
            values -= np.repeat(firsts[:-1], self.counts)
        return values


_UNITS = {DAYS_MS: "ms", INT96_NS: "ns", INT96_US: "us"}  # of converted days and instants


def _rebase(leaf: Leaf, column: DecodedColumn, output_type: OutputType, rows: slice) -> None:
    """Rebase decoded values in Spark's legacy calendar in place: all of a nested column, else those in some rows."""
    assert leaf.rebase is not None
    if leaf.physical == INT96 and output_type.conversion not in _UNITS:  # beyond all units: bytes
        return
    flat = [] if column.values is None else [column.values[rows]]
    for values in [*flat, *(part.values for part in _decoded_leaves(column))]:
        leaf.rebase.apply(values, _UNITS.get(output_type.conversion, ""))


def _decoded_leaves(column: DecodedColumn) -> list[NestedLeaf]:
    """Return the levels and values of a nested leaf that were decoded."""
    pieces: list[LeafRows] = column.arrays
    return [leaf for piece in pieces for leaf in piece.decoded]


def _add_filter_leaves(leaves: Sequence[Leaf], filter_leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the projected leaves, followed by the other filter leaves."""
    shown = set(map(leaf_ordinal, leaves))
    if shown.issuperset(map(leaf_ordinal, filter_leaves)):
        return leaves
    together = [*leaves]
    for leaf in filter_leaves:
        if leaf.index not in shown:
            together.append(leaf)
    return together


def virtual_columns(names: Sequence[str], readers: Sequence[FileReader]) -> list[tuple[str, Any]]:
    """Build the virtual columns of decoded rows."""
    from numparq.to_pandas.strings import default_string_array

    columns: list[tuple[str, Any]] = []
    counts = [count for reader in readers for count in reader.counts]
    for name in names:
        if name == "file":
            files = default_string_array([one.file.source.name for reader in readers for one in reader.files])
            columns.append((name, files.take(np.arange(len(counts)).repeat(counts))))
        else:
            arrays = [reader.virtual_column(name) for reader in readers]
            columns.append((name, np.concatenate(arrays) if arrays else np.empty(0, np.int64)))
    return columns
