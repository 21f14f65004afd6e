"""Read files in units: rows decoded at once within a memory limit, at pages that an index or their headers locate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numparq.column.jobs.task import DecodeTask
from numparq.column.projection import POSITION_COLUMN, check_include
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.row_selection import RowSlice, RowSlices
from numparq.column.scratch import UNLIMITED, ScratchShare, ThreadScratch
from numparq.errors import LimitError, ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.page_index import OffsetIndex
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.kernels.tables import C_NUM_VALUES, C_QUIRKS, C_ROW_START, C_ROW_STOP, PREFIX_CARRYOVER
from numparq.plan.chunk_pages import ChunkPages
from numparq.prune.index_reader import OFFSET_INDEX, IndexKey, IndexLocations, PageIndexReader, index_bytes
from numparq.scan.memory import MemoryEstimate, filled_row_bytes, release_free_memory, virtual_row_bytes
from numparq.scan.options import ScanOptions
from numparq.scan.scan import DecodedRows, Scan
from numparq.scan.scan_file import ScanFile
from numparq.types.output_type import OutputType
from numparq.util.arguments import check_row_count
from numparq.util.worker_pool import WorkerPool

from .range_labels import RangeLabels, drop_range_index
from .units import MIN_UNIT_ROWS, BatchSize, MemoryShares, UnitPlan, add_filter_columns

if TYPE_CHECKING:
    import pandas as pd

    from numparq.column.jobs.nested_sink import RowCountSink

    from .arrow_tables import ArrowTableBuilder, ExplodedTableBuilder


# Bytes of a value in a column that the file does not store: a partition column, or one that it lacks.
_COMPUTED_BYTES = 16

_Unit = TypeVar("_Unit")


class UnitReader:
    """The rows of files in units, all of the same types.

    Parameters
    ----------
    build_scan : callable
        Returns the scan for options.
    options : ScanOptions
        Options of the read; ``nrows`` counts rows that satisfy the filters.
    sizes : BatchSize
        Requested size of units and batches.

    Attributes
    ----------
    batch_rows : int
        Maximum rows of a batch.
    has_exact_batches : bool
        Whether each batch has exactly `batch_rows` rows, rather than at most that many.
    reads_ahead : bool
        Whether a unit may be read while the previous one is in use.
    labels : RangeLabels
        For rows without an index.
    """

    def __init__(self, build_scan: Callable[[ScanOptions], Scan], options: ScanOptions, sizes: BatchSize) -> None:
        self._build_scan = build_scan
        self._options = options
        self._sizes = sizes
        self._is_taken = False
        self._scan = build_scan(replace(options, memory_limit=None))
        self._files = self._scan.selected
        is_filtered = options.filters is not None or bool(options.runtime_filters)
        self._limit = check_row_count(options.nrows, "nrows") if is_filtered and options.nrows is not None else None
        is_known = not is_filtered and options.explode is None
        rows = sum(one.slices.num_rows for one in self._files) if is_known else None
        self.labels = RangeLabels.from_metadata(self._scan.projection.metadata, rows)
        drop_range_index(self._scan.projection)
        self._scan.locate_pages = self._locate_pages
        self._inflation: float | None = None  # ratio of actual to estimated bytes of the last unit's rows
        self._divide_memory()

    def _divide_memory(self) -> None:
        """Estimate the rows of each file, and divide the memory limit."""
        as_objects, projection = self._options.dtype_backend != "pyarrow", self._scan.projection
        self._estimates = []
        for scan_file in self._files:
            reader = self._scan.file_reader(scan_file)
            own_types = reader.own_types(self._scan.output_types)
            leaves, types = add_filter_columns(reader.leaves, own_types, scan_file.predicate)
            computed = len(projection.leaves) - len(reader.leaves)
            filled = filled_row_bytes(reader.columns, self._scan.output_types, as_objects)
            virtual = virtual_row_bytes(projection.virtual, scan_file.file.source.name)
            extra = max(computed * _COMPUTED_BYTES, filled) + virtual
            groups = scan_file.slices.row_groups
            costs = MemoryEstimate(scan_file.file, leaves, types, groups, as_objects, extra)
            self._estimates.append((leaves, types, costs))
        total = sum(
            costs.slice_bytes(one.slices) for one, (_, _, costs) in zip(self._files, self._estimates, strict=True)
        )
        costs_of_files = [costs for _, _, costs in self._estimates]
        self._shares = shares = MemoryShares(costs_of_files, total, self._sizes, self._options.threads)
        self.batch_rows, self.has_exact_batches, self.reads_ahead = (
            shares.batch_rows,
            shares.has_exact_batches,
            shares.reads_ahead,
        )
        self._scan.set_shares(shares.threads, shares.scratch_share)

    def _units(self, convert: Callable[[DecodedRows], _Unit]) -> Iterator[_Unit]:
        """Decode and convert one unit after the other; at least one, though it may be without rows."""
        left, is_empty = self._limit, True
        for files, estimate, dictionaries in self._plan_units():
            release_free_memory()
            num_rows, num_bytes, unit = self._scan.read_unit(files, left, convert)
            planned = sum(one.slices.num_rows for one in files)
            if estimate and num_rows >= MIN_UNIT_ROWS:
                self._inflation = max(1.0, (num_bytes - dictionaries) / (estimate * num_rows / planned))
            if num_rows:
                is_empty = False
                yield unit
            if left is not None:
                left -= num_rows
                if left <= 0:
                    break
            del unit
        if is_empty:
            yield self._empty_unit(convert)

    def _empty_unit(self, convert: Callable[[DecodedRows], _Unit]) -> _Unit:
        """Return a unit without rows, with the categories of the first file."""
        files = self._scan.files[0].without_rows() if self._scan.files else []
        return self._scan.read_unit(files, None, convert)[2]

    def _plan_units(self) -> Iterator[tuple[list[ScanFile], float, float]]:
        """Yield the files, or rows of them, that are a unit, and estimated bytes: of their rows, and dictionaries."""
        unit: list[ScanFile] = []
        size = estimate = dictionaries = 0.0
        for scan_file, (leaves, types, costs) in zip(self._files, self._estimates, strict=True):
            pages = self._page_locator(scan_file, leaves, types)
            plan = UnitPlan(scan_file.slices, costs, self._shares, pages.unsplittable_columns)
            plan.inflation = self._inflation or plan.inflation
            left = scan_file.slices.num_rows
            for slices in _with_file(plan.units(), scan_file.file):
                more = plan.estimate_bytes(slices)
                if unit and size + more > self._shares.unit_bytes:
                    yield unit, estimate, dictionaries
                    unit, size, estimate, dictionaries = [], 0.0, 0.0, 0.0
                    plan.inflation = self._inflation or plan.inflation
                is_whole = list(slices) == list(scan_file.slices)
                unit.append(scan_file if is_whole else scan_file.with_slices(slices))
                size += more
                estimate += costs.rows_bytes(slices)
                dictionaries += sum(costs.dictionary_bytes(group) for group in {rows.row_group for rows in slices})
                left -= sum(map(len, slices))
                if left:  # the next rows are planned by what these have taken
                    yield unit, estimate, dictionaries
                    unit, size, estimate, dictionaries = [], 0.0, 0.0, 0.0
                    plan.inflation = self._inflation or plan.inflation
        if unit:
            yield unit, estimate, dictionaries

    def _page_locator(self, scan_file: ScanFile, leaves: Sequence[Leaf], types: Sequence[OutputType]) -> PageLocator:
        kind = TolerantPageLocator if self._options.on_error == "skip" else PageLocator
        return kind(scan_file.file, leaves, types, self._options.verify_crc, self._shares.scratch_share)

    def _locate_pages(self, files: Sequence[ScanFile]) -> None:
        """Locate the pages of partly selected row groups by their headers, where page indexes are ignored."""
        estimates = {id(one.file): estimate for one, estimate in zip(self._files, self._estimates, strict=True)}
        for one in files:
            leaves, types, _ = estimates[id(one.file)]
            pages = self._page_locator(one, leaves, types)
            counts = one.file.footer.row_group_num_rows
            for rows in one.slices:
                if len(rows) < counts[rows.row_group]:
                    pages.unsplittable_columns(rows.row_group)

    def take(self) -> UnitReader:
        """Return an unread reader of the same rows: this one at the first call."""
        if self._is_taken:
            return UnitReader(self._build_scan, self._options, self._sizes)
        self._is_taken = True
        return self

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of each unit as a frame, with a RangeIndex from 0 if it has no other; at least one frame."""
        yield from self._units(self._scan.to_frame)

    # --- Arrow -------------------------------------------------------------------------------------------------------

    def to_arrow(self) -> UnitReader:
        """Return an unread reader of the same rows as Arrow tables."""
        if self._options.dtype_backend == "pyarrow":
            return self.take()
        return UnitReader(self._build_scan, replace(self._options, dtype_backend="pyarrow"), self._sizes)

    @cached_property
    def _exploded(self) -> ExplodedTableBuilder:
        from .arrow_tables import ExplodedTableBuilder

        metadata = self._scan.projection.metadata
        empty = self._empty_unit(self._scan.to_frame)
        virtual = check_include(self._options.include, (POSITION_COLUMN,))
        return ExplodedTableBuilder(empty, virtual, metadata.index_fields if metadata else ())

    @cached_property
    def _arrow(self) -> ArrowTableBuilder:
        from .arrow_tables import ArrowTableBuilder

        return ArrowTableBuilder.of_scan(self._scan)

    @property
    def schema(self) -> Any:
        """The schema of the tables (pyarrow.Schema)."""
        return self._arrow.schema if self._options.explode is None else self._exploded.schema

    def tables(self) -> Iterator[Any]:
        """Yield the rows of each unit as a pyarrow.Table."""
        if self._options.explode is not None:
            exploded = self._exploded
            yield from self._units(lambda rows: exploded.to_table(self._scan.to_frame(rows)))
            return
        yield from self._units(self._arrow.to_table)


def _with_file(units: Iterator[list[RowSlice]], file: OpenFile) -> Iterator[list[RowSlice]]:
    """Yield the units of a file, unless it has changed, with its name in errors."""
    while True:
        with error_context(file=file.source.name):
            if not file.source.is_remote:  # otherwise the read of each unit asks the file system
                file.check_unchanged()
            try:
                unit = next(units, None)
            except ParquetError:
                file.check_unchanged()
                raise
        if unit is None:
            return
        yield unit


class PageLocator:
    """Finds the pages of chunks, by their offset indexes or their headers.

    Parameters
    ----------
    file : OpenFile
        The file; what is found is kept in ``file.indexes``, where planning looks for it.
    leaves : sequence of Leaf
        The columns.
    output_types : sequence of OutputType
        How each is decoded.
    verify_crc : bool
        Whether to verify page checksums before levels are counted.
    scratch_share : ScratchShare
        Scratch buffers that it may use.
    """

    def __init__(
        self,
        file: OpenFile,
        leaves: Sequence[Leaf],
        output_types: Sequence[OutputType],
        verify_crc: bool,
        scratch_share: ScratchShare = UNLIMITED,
    ) -> None:
        self._file = file
        self._quirks = page_quirks(file.footer.created_by)
        self._verify_crc = verify_crc and self._quirks.has_checksums
        self._scratch_share = scratch_share
        self._leaves = leaves
        self._output_types = output_types
        self._places = IndexLocations.for_file(file)
        self._indexes = PageIndexReader(file, leaves, self._places)

    def unsplittable_columns(self, row_group: int) -> list[str]:
        """Find the pages of all chunks of a row group; return the names of columns whose rows cannot be read alone.

        These are repeated ones, where a page begins in the midst of a row.

        Raises
        ------
        ParquetError
            For pages that are damaged.
        """
        tables = self._chunk_tables(row_group)
        self._indexes.load({OFFSET_INDEX: [(row_group, leaf.index) for leaf in self._leaves]})
        chunks = tables.chunks_as_pages([row_group])[0]
        self._indexes.walk_headers(
            (row_group, leaf.index, chunk) for leaf, chunk in zip(self._leaves, chunks, strict=True)
        )
        whole = []
        for position, (leaf, chunk) in enumerate(zip(self._leaves, chunks, strict=True)):
            if self._indexes.chunk_pages(chunk, row_group, leaf.index) is not None or chunk.start == chunk.end:
                continue
            with error_context(row_group=row_group, column=leaf.name):
                pages = self._locate_by_walk(tables, position, chunk, row_group)
            if pages is None and leaf.max_repetition_level:
                whole.append(leaf.name)
        return whole

    def _chunk_tables(self, row_group: int) -> ChunkTables:
        file = self._file
        return ChunkTables(file.footer, self._leaves, [row_group], file.footer_start, file.multi_file_source)

    def _locate_by_walk(
        self, tables: ChunkTables, position: int, chunk: ChunkPages, row_group: int
    ) -> ChunkPages | None:
        """Locate a chunk's pages by their headers; None if pages cannot be read without those before them."""
        slices = RowSlices.single(row_group, 0, chunk.num_rows)
        table = tables.chunk_table([position], [self._output_types[position]], slices)
        if table[0, C_QUIRKS] & PREFIX_CARRYOVER:
            return None
        leaf = self._leaves[position]
        sink = self._walk_pages(leaf, table, chunk.num_rows, row_group)
        locations = sink.locations
        if locations is None:
            return None
        end = int(locations[-1, :2].sum()) if len(locations) else chunk.start
        try:
            pages = ChunkPages(chunk.start, end, chunk.num_rows, locations)
        except ParquetError:  # pages without a row, or what else no index has: the chunk is read as ever
            return None
        if end != chunk.end:
            return None
        index = IndexKey(OFFSET_INDEX, row_group, leaf.index)
        located = OffsetIndex(pages.locations, sink.needs_dictionary)
        self._file.entry.put({index: located}, index_bytes(located))
        return pages

    def _walk_pages(self, leaf: Leaf, table: np.ndarray, num_rows: int, row_group: int) -> RowCountSink:
        """Locate the data pages, and count the rows of each.

        Page headers of a leaf in a list have only the values: its rows are counted by its levels, of verified pages.
        """
        from numparq.column.jobs.nested_sink import RowCountSink

        table[0, C_ROW_START], table[0, C_ROW_STOP] = 0, table[0, C_NUM_VALUES]
        reader, quirks, local = self._file.reader, self._quirks, ThreadScratch(self._scratch_share)
        verify_crc = self._verify_crc and leaf.max_repetition_level > 0
        sink = RowCountSink(leaf, num_rows)
        with (
            WorkerPool(1) as pool,
            closing(ReadContext(reader, [leaf.name], pool, verify_crc, local, quirks.bit_packed)) as context,
        ):
            DecodeTask(context, [row_group], [0], ScannedPages(reader, table), sink)()
        return sink


class TolerantPageLocator(PageLocator):
    """Finds the pages of chunks for a read that skips damage: damaged chunks do not keep others from being split."""

    def _chunk_tables(self, row_group: int) -> ChunkTables:
        from numparq.scan.recovery.footer_checks import TolerantChunkTables

        file = self._file
        return TolerantChunkTables(
            file.footer, self._leaves, [row_group], file.footer_start, file.multi_file_source, {}
        )

    def _locate_by_walk(
        self, tables: ChunkTables, position: int, chunk: ChunkPages, row_group: int
    ) -> ChunkPages | None:
        """Locate a chunk's pages by their headers; a damaged chunk counts as one page, which each unit walks."""
        try:
            return super()._locate_by_walk(tables, position, chunk, row_group)
        except LimitError:
            raise
        except ParquetError:
            return chunk
