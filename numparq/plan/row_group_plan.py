"""What is read of one row group: rows, and so pages of each column, and so byte ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .pages import ChunkPages
from .row_ranges import RowRanges

__all__ = ["DICTIONARY", "REQUEST_FIELDS", "R_COLUMN", "R_PAGE", "R_ROW_GROUP", "R_START", "R_STOP", "RowGroupPlan"]

# Columns of `ReadPlan.requests`; R_PAGE is the ordinal of a data page, or DICTIONARY.
R_START, R_STOP, R_ROW_GROUP, R_COLUMN, R_PAGE = range(5)
REQUEST_FIELDS = 5
DICTIONARY = -1


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """What is read of a row group.

    Parameters
    ----------
    ordinal : int
        Its place in the file.
    num_rows : int
        Rows that it has.
    rows : RowRanges
        Those that are wanted; none of a row group that is skipped.
    chunks : tuple of ChunkPages
        The column chunks, in the order of the plan's columns.
    """

    ordinal: int
    num_rows: int
    rows: RowRanges
    chunks: tuple[ChunkPages, ...]

    def __post_init__(self) -> None:
        count = self.num_rows
        if self.rows.stop > count or [chunk for chunk in self.chunks if chunk.num_rows != count]:
            raise ValueError(f"row group {self.ordinal} has {self.num_rows:,} rows; its ranges or pages say otherwise")

    def with_rows(self, rows: RowRanges) -> RowGroupPlan:
        """Give the same with other rows."""
        return RowGroupPlan(self.ordinal, self.num_rows, rows, self.chunks)

    def with_chunks(self, chunks: tuple[ChunkPages, ...]) -> RowGroupPlan:
        """Give the same with other pages of its chunks."""
        return RowGroupPlan(self.ordinal, self.num_rows, self.rows, chunks)

    @property
    def num_bytes(self) -> int:
        """How many bytes of its chunks are needed."""
        return sum(chunk.num_bytes(self.rows) for chunk in self.chunks) if self.rows else 0

    @property
    def num_chunk_bytes(self) -> int:
        """How many bytes its chunks have."""
        return sum(chunk.end - chunk.start for chunk in self.chunks)

    def needed(self, column: int) -> np.ndarray:
        """Give the ordinals of the data pages of a column that hold wanted rows, int64."""
        return self.chunks[column].needed(self.rows)

    def requests(self) -> np.ndarray:
        """Give the byte ranges that are needed, as `ReadPlan.requests` does."""
        whole, tables = [], []
        for column, chunk in enumerate(self.chunks if self.rows else ()):
            if chunk.start == chunk.end:
                continue
            if chunk.is_indexed:
                tables.append(self._page_requests(column, chunk))
            else:
                whole.append((chunk.start, chunk.end, self.ordinal, column, 0))
        tables.append(np.array(whole, np.int64).reshape(-1, REQUEST_FIELDS))
        found = np.concatenate(tables)
        return found[np.argsort(found[:, R_COLUMN], kind="stable")]

    def _page_requests(self, column: int, chunk: ChunkPages) -> np.ndarray:
        pages = chunk.needed(self.rows)
        ranges = chunk.byte_ranges(pages)
        table = np.empty((len(ranges), REQUEST_FIELDS), np.int64)
        table[:, : R_STOP + 1] = ranges
        table[:, R_ROW_GROUP], table[:, R_COLUMN], table[:, R_PAGE] = self.ordinal, column, DICTIONARY
        table[len(ranges) - len(pages) :, R_PAGE] = pages
        return table
