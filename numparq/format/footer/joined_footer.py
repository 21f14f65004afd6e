"""Footers of files with the same columns as one: row groups of all, column chunks of some leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numparq.util.bounded_cache import BoundedCache

from .column_chunks import ColumnChunks
from .file_metadata import Footer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_MAX_CACHED = 64


class JoinedFooter(Footer):
    """Footers as one, as far as some leaves need it; positions of chunks count in a file.

    Parameters
    ----------
    prototype : Footer
        One of the footers; all have its writer, and its orders of these leaves.
    row_group_num_rows : int64 array
        Rows of each row group.
    chunks : JoinedChunks
        Column chunks of the leaves.
    """

    def __init__(self, prototype: Footer, row_group_num_rows: np.ndarray, chunks: JoinedChunks) -> None:
        self.created_by = prototype.created_by
        self.column_orders = prototype.column_orders
        self.row_group_num_rows = row_group_num_rows
        self.chunks = chunks
        self.cache = BoundedCache(_MAX_CACHED)


class JoinedChunks(ColumnChunks):
    """Column chunks of some leaves of several files.

    Parameters
    ----------
    data : uint8 array
        FileMetaData of all files.
    starts : int64 array, (row groups, leaves)
        Offset of each ColumnChunk struct.
    ends : int64 array, (row groups,)
        Where the FileMetaData with each row group end.
    leaf_ordinals : sequence of int
        Ordinals of the leaves.
    """

    def __init__(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, leaf_ordinals: Sequence[int]) -> None:
        super().__init__(data, len(data), starts)
        self._leaf_ordinals, self._stops = leaf_ordinals, ends
        self._position = np.zeros(max(leaf_ordinals, default=-1) + 1, np.intp)
        self._position[leaf_ordinals] = range(len(leaf_ordinals))

    def _ordinals(self, row_groups: ArrayLike, columns: ArrayLike) -> np.ndarray:
        return super()._ordinals(row_groups, self._position[np.asarray(columns, np.intp)])

    def _position_of(self, ordinal: int) -> tuple[int, int]:
        group, position = super()._position_of(ordinal)
        return group, self._leaf_ordinals[position]

    def _ends_of(self, ordinals: np.ndarray) -> np.ndarray:
        ends: np.ndarray = self._stops[ordinals // self._num_columns]
        return ends


def join_footers(footers: Sequence[Footer], leaf_ordinals: Sequence[int]) -> JoinedFooter:
    """Join footers of one writer that have some leaves, and their orders, in common."""
    stops = np.cumsum([footer.length for footer in footers])
    row_group_num_rows = np.concatenate([footer.row_group_num_rows for footer in footers])
    owners = np.arange(len(footers)).repeat([len(footer.row_group_num_rows) for footer in footers])
    firsts = stops - [footer.length for footer in footers]
    starts = np.concatenate([footer.chunks.starts[:, leaf_ordinals] for footer in footers])
    data = np.concatenate([footer.data[: footer.length] for footer in footers])
    starts = np.where(starts < 0, starts, starts + firsts[owners, None])
    return JoinedFooter(footers[0], row_group_num_rows, JoinedChunks(data, starts, stops[owners], leaf_ordinals))
