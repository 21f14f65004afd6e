"""Page indexes of a file by column chunk: number of pages, their order, bytes read by a look-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages as Pages
from numparq.prune.index_reader import COLUMN_INDEX, OFFSET_INDEX, IndexLocations, PageIndexReader
from numparq.prune.statistics import column_order, page_statistics

from .bounds import KeyBounds, trusted_key_bounds
from .chunk_metadata import ChunkMetadataTable
from .lookup_model import PrunableContainers, expected_point_reads
from .value_kind import value_kind

_POINTS = 64
_MAGIC_BYTES = 4
_ASCENDING, _DESCENDING, _NEITHER = 1, -1, 0


class ChunkPageSummary(NamedTuple):
    """Pages of a column chunk.

    Attributes
    ----------
    num_pages : int
        Number of data pages; 0 without a trusted offset index.
    byte_share, page_share : float
        Share of the chunk's bytes and pages that a look-up of one of its values reads.
    order : int or None
        1 if the bounds of pages ascend, -1 if they descend, 0 if neither; None if unknown or with fewer than two pages.
    """

    num_pages: int = 0
    byte_share: float = 1.0
    page_share: float = 1.0
    order: int | None = None


class FilePageIndexes:
    """Page indexes of some leaf columns of a file, fetched together."""

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], chunk_metadata: ChunkMetadataTable) -> None:
        self._file = file
        self._facts = chunk_metadata
        self._indexes = PageIndexReader(file, leaves, IndexLocations(file))
        chunks = [(group, leaf.index) for leaf in leaves for group in range(file.num_row_groups)]
        self._there = {
            what: set(self._indexes.chunks_with_index(what, chunks)) for what in (COLUMN_INDEX, OFFSET_INDEX)
        }
        self._indexes.load({what: sorted(several) for what, several in self._there.items()})

    def count_indexes(self, what: str, leaf: Leaf) -> int:
        """Count the chunks of a leaf column that have the index `what` (COLUMN_INDEX or OFFSET_INDEX)."""
        return sum(index == leaf.index for _, index in self._there[what])

    def summarize(self, group: int, leaf: Leaf, num_rows: int) -> ChunkPageSummary:
        """Summarize the pages of the chunk of a leaf column in a row group of `num_rows` rows."""
        pages = self._indexes.chunk_pages(self._unindexed_pages(group, leaf, num_rows), group, leaf.index)
        if pages is None:
            return ChunkPageSummary()
        count, sizes, rows = pages.num_pages, pages.sizes, np.diff(pages.first_rows, append=num_rows)
        index = self._indexes.column_index(group, leaf.index)
        if index is None or len(index.null_pages) != count:
            return ChunkPageSummary(count)
        if count == 1:
            return ChunkPageSummary(1)
        runs = page_statistics(index, rows, leaf, column_order(self._file.footer, leaf), self._file.footer.created_by)
        bounds = trusted_key_bounds(runs, leaf, value_kind(leaf), key_domain(leaf))
        present = np.where(runs.is_all_null(leaf), 0, np.maximum(rows, 1))
        share, page_share = _lookup_shares(bounds, present, sizes)
        return ChunkPageSummary(count, share, page_share, _page_order(bounds, present))

    def _unindexed_pages(self, group: int, leaf: Leaf, num_rows: int) -> Pages:
        """Return a chunk as one page, its dictionary page included."""
        data, dictionary, size = (
            int(self._facts[name][group, leaf.index]) for name in ("data_page", "dictionary_page", "compressed")
        )
        start = dictionary if _MAGIC_BYTES <= dictionary < data else data
        return Pages.unindexed(start, start + max(size, 0), num_rows)


def _lookup_shares(bounds: KeyBounds, rows: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """Return the shares of bytes and of pages that a look-up reads."""
    count = len(rows)
    costs = np.stack([sizes.astype(np.float64), np.ones(count)], axis=1)
    runs = PrunableContainers(
        bounds.lows,
        bounds.highs,
        bounds.known,
        rows.astype(np.float64),
        costs,
        np.ones_like(costs),
        np.ones(count),
        np.zeros(count, np.int64),
    )
    share, page_share = expected_point_reads(runs, _POINTS)
    return share, page_share


def _page_order(bounds: KeyBounds, rows: np.ndarray) -> int | None:
    """Return the order of pages with values; None if any of them has no bounds."""
    if not bounds.known[rows > 0].all():
        return None
    return bounds_order(bounds.lows[rows > 0], bounds.highs[rows > 0])


def bounds_order(lows: np.ndarray, highs: np.ndarray) -> int | None:
    """Return the order of containers by their bounds, as `ChunkPageSummary.order`."""
    if len(lows) < 2:
        return None
    if (highs[:-1] <= lows[1:]).all():
        return _ASCENDING
    return _DESCENDING if (lows[:-1] >= highs[1:]).all() else _NEITHER
