"""The part of a read plan for one row group: its selected rows, pages and byte ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.util.pluralize import pluralize

from .chunk_pages import DICTIONARY_PAGE_ORDINAL, ChunkPages
from .row_ranges import RowRanges
from .whole_chunks import WholeChunks

# Columns of `ReadPlan.byte_ranges`; R_PAGE is the ordinal of a data page, or DICTIONARY_PAGE_ORDINAL.
R_START, R_STOP, R_ROW_GROUP, R_COLUMN, R_PAGE = range(5)
BYTE_RANGE_FIELDS = 5


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """The part of a read plan for one row group.

    Parameters
    ----------
    ordinal : int
        Position of the row group in the file.
    num_rows : int
        Rows of the row group.
    rows : RowRanges
        Selected rows; empty for a pruned row group.
    chunks : tuple of ChunkPages, or WholeChunks
        Column chunks, in the order of the plan's columns.
    """

    ordinal: int
    num_rows: int
    rows: RowRanges
    chunks: tuple[ChunkPages, ...] | WholeChunks

    def check_rows(self) -> None:
        """Raise ValueError unless the row ranges and the pages are of `num_rows` rows."""
        fits = self.rows.stop <= self.num_rows
        for chunk in self.chunks:
            fits = fits and chunk.num_rows == self.num_rows
        if not fits:
            raise ValueError(
                f"row group {self.ordinal} has {pluralize(self.num_rows, 'row')}, but its row ranges or pages "
                "have other rows"
            )

    def with_rows(self, rows: RowRanges) -> RowGroupPlan:
        """Return a copy with other row ranges."""
        return RowGroupPlan(self.ordinal, self.num_rows, rows, self.chunks)

    @property
    def num_bytes(self) -> int:
        """Bytes to read for the selected rows, over all columns."""
        if not self.rows:
            return 0
        is_whole = type(self.chunks) is WholeChunks
        return self.num_chunk_bytes if is_whole else sum(chunk.num_bytes(self.rows) for chunk in self.chunks)

    @property
    def num_chunk_bytes(self) -> int:
        """Size of the column chunks in bytes."""
        chunks = self.chunks
        return chunks.num_bytes if type(chunks) is WholeChunks else sum(one.end - one.start for one in chunks)

    def pages_with_rows(self, column: int) -> np.ndarray:
        """Return the ordinals (int64) of a column's data pages that hold selected rows."""
        return self.chunks[column].pages_with_rows(self.rows)

    def byte_ranges(self) -> np.ndarray:
        """Return the byte ranges to read, in the form of `ReadPlan.byte_ranges`."""
        whole, tables = [], []
        for column, chunk in enumerate(self.chunks if self.rows else ()):
            if chunk.start == chunk.end:
                continue
            if chunk.is_indexed:
                tables.append(self._page_requests(column, chunk))
            else:
                whole.append((chunk.start, chunk.end, self.ordinal, column, 0))
        tables.append(np.array(whole, np.int64).reshape(-1, BYTE_RANGE_FIELDS))
        found = np.concatenate(tables)
        return found[np.argsort(found[:, R_COLUMN], kind="stable")]

    def _page_requests(self, column: int, chunk: ChunkPages) -> np.ndarray:
        pages = chunk.pages_with_rows(self.rows)
        ranges = chunk.byte_ranges(pages)
        table = np.empty((len(ranges), BYTE_RANGE_FIELDS), np.int64)
        table[:, : R_STOP + 1] = ranges
        table[:, R_ROW_GROUP], table[:, R_COLUMN], table[:, R_PAGE] = self.ordinal, column, DICTIONARY_PAGE_ORDINAL
        table[len(ranges) - len(pages) :, R_PAGE] = pages
        return table
