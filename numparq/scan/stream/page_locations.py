"""Page locations of column chunks without an offset index, from a walk over page headers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from numparq.column.jobs.task import DecodeTask
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.row_selection import RowSlices
from numparq.column.scratch import UNLIMITED, ScratchShare, ThreadScratch
from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.format.page_index import OffsetIndex
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import page_quirks
from numparq.kernels.tables import (
    C_NUM_VALUES,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    PREFIX_CARRYOVER,
)
from numparq.plan.chunk_pages import ChunkPages
from numparq.prune.index_reader import OFFSET_INDEX, IndexKey, IndexLocations, PageIndexReader
from numparq.types.output_type import OutputType
from numparq.util.worker_pool import WorkerPool


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
        tables = ChunkTables(
            self._file.footer, self._leaves, [row_group], self._file.footer_start, self._file.multi_file_source
        )
        starts, ends = (bounds[0].tolist() for bounds in tables.byte_ranges([row_group]))
        num_rows = tables.num_rows(row_group)
        self._indexes.load({OFFSET_INDEX: [(row_group, leaf.index) for leaf in self._leaves]})
        whole = []
        for place, leaf in enumerate(self._leaves):
            chunk = ChunkPages.unindexed(starts[place], ends[place], num_rows)
            if self._indexes.chunk_pages(chunk, row_group, leaf.index) is not None or starts[place] == ends[place]:
                continue
            with error_context(row_group=row_group, column=leaf.name):
                pages = self._locate_by_walk(tables, place, chunk, row_group)
            if pages is None and leaf.max_repetition_level:
                whole.append(leaf.name)
        return whole

    def _locate_by_walk(self, tables: ChunkTables, place: int, chunk: ChunkPages, row_group: int) -> ChunkPages | None:
        """Locate a chunk's pages by their headers; None if pages cannot be read without those before them."""
        slices = RowSlices.single(row_group, 0, chunk.num_rows)
        table = tables.chunk_table([place], [self._output_types[place]], slices)
        if table[0, C_QUIRKS] & PREFIX_CARRYOVER:
            return None
        leaf = self._leaves[place]
        locations = self._locate_pages(leaf, table, chunk.num_rows, row_group)
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
        self._file.entry.put({index: OffsetIndex(pages.locations)}, pages.locations.nbytes)
        return pages

    def _locate_pages(self, leaf: Leaf, table: np.ndarray, num_rows: int, row_group: int) -> np.ndarray | None:
        """Return position, size and first row of each data page: int64 (pages, 3).

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
        return sink.locations
