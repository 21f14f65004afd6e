"""Page indexes of a file by column chunk: number of pages, their order, bytes read by a look-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages as Pages
from numparq.prune.index_locations import COLUMN_INDEX, OFFSET_INDEX, IndexLocations
from numparq.prune.index_reader import PageIndexReader
from numparq.prune.statistics import column_order, page_statistics

from .bounds import KeyBounds, trusted_key_bounds
from .chunk_metadata import ChunkMetadataTable
from .lookup_model import PrunableContainers, expected_point_reads
from .value_kind import value_kind

__all__ = ["ChunkPageSummary", "FilePageIndexes"]

_POINTS = 64
_MAGIC_BYTES = 4
_ASCENDING, _DESCENDING, _NEITHER = 1, -1, 0


class ChunkPageSummary(NamedTuple):
    """The pages of a column chunk.

    Attributes
    ----------
    number : int
        How many there are; 0 where there is no offset index, or none that can be believed.
    share, page_share : float
        Of the bytes, and of the pages, what is read of the chunk by a look-up of a value that is in it.
    order : int or None
        1 where the pages follow each other upwards by their bounds, -1 downwards, 0 neither; None where that is not
        known, or there are less than two.
    """

    number: int = 0
    share: float = 1.0
    page_share: float = 1.0
    order: int | None = None


class FilePageIndexes:
    """The page indexes of a file, as far as some columns have them; they are fetched together.

    Parameters
    ----------
    file : OpenFile
        The file.
    leaves : sequence of Leaf
        The columns.
    chunk_metadata : ChunkMetadataTable
        What the footer says of all chunks.
    """

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], chunk_metadata: ChunkMetadataTable) -> None:
        self._file = file
        self._facts = chunk_metadata
        self._indexes = PageIndexReader(file, leaves, IndexLocations(file))
        chunks = [(group, leaf.index) for leaf in leaves for group in range(file.num_row_groups)]
        self._there = {what: set(self._indexes.there(what, chunks)) for what in (COLUMN_INDEX, OFFSET_INDEX)}
        self._indexes.load({what: sorted(several) for what, several in self._there.items()})

    def count(self, what: str, leaf: Leaf) -> int:
        """Count the chunks of a column that have an index, COLUMN_INDEX or OFFSET_INDEX, that can be believed."""
        return sum(index == leaf.index for _, index in self._there[what])

    def of(self, group: int, leaf: Leaf, num_rows: int) -> ChunkPageSummary:
        """Say what is known of the pages of a chunk.

        Parameters
        ----------
        group : int
            The ordinal of its row group.
        leaf : Leaf
            The column.
        num_rows : int
            Rows of the row group.
        """
        pages = self._indexes.pages(self._unindexed_pages(group, leaf, num_rows), group, leaf.index)
        if pages is None:
            return ChunkPageSummary()
        count, sizes, rows = pages.num_pages, pages.sizes, np.diff(pages.first_rows, append=num_rows)
        index = self._indexes.column_index(group, leaf.index)
        if index is None or len(index.null_pages) != count:
            return ChunkPageSummary(count)
        if count == 1:
            return ChunkPageSummary(1)
        runs = page_statistics(index, rows, leaf, column_order(self._file, leaf), self._file.footer.created_by)
        bounds = trusted_key_bounds(runs, leaf, value_kind(leaf), key_domain(leaf))
        present = np.where(runs.is_all_null(leaf), 0, np.maximum(rows, 1))
        share, page_share = _lookup_shares(bounds, present, sizes)
        return ChunkPageSummary(count, share, page_share, _page_order(bounds, present))

    def _unindexed_pages(self, group: int, leaf: Leaf, num_rows: int) -> Pages:
        """Give a chunk as one page, its dictionary included."""
        data, dictionary, size = (
            int(self._facts[name][group, leaf.index]) for name in ("data_page", "dictionary_page", "compressed")
        )
        start = dictionary if _MAGIC_BYTES <= dictionary < data else data
        return Pages.whole(start, start + max(size, 0), num_rows)


def _lookup_shares(bounds: KeyBounds, rows: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """Give the shares of bytes and of pages that a look-up reads."""
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
    """Say how pages with values follow each other."""
    if not bounds.known[rows > 0].all():
        return None
    return bounds_order(bounds.lows[rows > 0], bounds.highs[rows > 0])


def bounds_order(lows: np.ndarray, highs: np.ndarray) -> int | None:
    """Say how runs follow each other by their bounds, as `ChunkPageSummary.order` does."""
    if len(lows) < 2:
        return None
    if (highs[:-1] <= lows[1:]).all():
        return _ASCENDING
    return _DESCENDING if (lows[:-1] >= highs[1:]).all() else _NEITHER
