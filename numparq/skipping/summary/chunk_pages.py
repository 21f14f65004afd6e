"""Page indexes of a file by column chunk: number of pages, their order, bytes read by a look-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages as Pages
from numparq.prune.index_reader import COLUMN_INDEX, OFFSET_INDEX, IndexLocations, PageIndexReader
from numparq.prune.lookup_model import PrunableContainers, expected_point_reads
from numparq.prune.statistics import column_order, page_statistics

from .bounds import KeyBounds, trusted_key_bounds
from .value_kind import value_kind

_POINTS = 32
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

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf]) -> None:
        self._file = file
        self._indexes = PageIndexReader(file, leaves, IndexLocations(file))
        chunks = [(group, leaf.index) for leaf in leaves for group in range(file.num_row_groups)]
        self._indexed = {
            kind: set(self._indexes.chunks_with_index(kind, chunks)) for kind in (COLUMN_INDEX, OFFSET_INDEX)
        }
        self._indexes.load({kind: sorted(indexed) for kind, indexed in self._indexed.items()})

    def count_indexes(self, kind: str, leaf: Leaf) -> int:
        """Count the chunks of a leaf column that have an index, COLUMN_INDEX or OFFSET_INDEX."""
        return sum(index == leaf.index for _, index in self._indexed[kind])

    def summarize(self, group: int, leaf: Leaf, num_rows: int) -> ChunkPageSummary:
        """Summarize the pages of the chunk of a leaf column in a row group of `num_rows` rows."""
        fields = self._file.footer.chunks.read_table([group], [leaf.index])
        names = ("data_page_offset", "dictionary_page_offset", "total_compressed_size")
        data, dictionary, size = (int(fields[name][0, 0]) for name in names)
        start = dictionary if _MAGIC_BYTES <= dictionary < data else data
        whole = Pages.unindexed(start, start + max(size, 0), num_rows)
        pages, index = (
            self._indexes.chunk_pages(whole, group, leaf.index),
            self._indexes.column_index(group, leaf.index),
        )
        if pages is None:
            return ChunkPageSummary()
        count, rows = pages.num_pages, np.diff(pages.first_rows, append=num_rows)
        if index is None or len(index.null_pages) != count or count == 1:
            return ChunkPageSummary(count)
        footer = self._file.footer
        statistics = page_statistics(index, rows, leaf, column_order(footer, leaf), footer.created_by)
        as_stored = replace(statistics, is_exact=np.ones(count, np.bool_))  # equal bounds are one value, for a model
        bounds = trusted_key_bounds(as_stored, leaf, value_kind(leaf))
        present = np.where(statistics.is_all_null(leaf), 0, np.maximum(rows, 1))
        costs, ones = np.stack([pages.sizes, np.ones(count)], axis=1).astype(np.float64), np.ones((count, 2))
        nothing = np.zeros(count, np.int64)
        containers = PrunableContainers(*bounds, present.astype(np.float64), costs, ones, nothing, nothing)
        byte_share, page_share = expected_point_reads(containers, _POINTS)
        return ChunkPageSummary(count, byte_share, page_share, bounds_order(bounds, present > 0))


def bounds_order(bounds: KeyBounds, selected: np.ndarray) -> int | None:
    """Return the order of the selected containers (bool) by their bounds, as `ChunkPageSummary.order`."""
    lows, highs = bounds.lows[selected], bounds.highs[selected]
    if len(lows) < 2 or not bounds.known[selected].all():
        return None
    if (highs[:-1] <= lows[1:]).all():
        return _ASCENDING
    return _DESCENDING if (lows[:-1] >= highs[1:]).all() else _NEITHER
