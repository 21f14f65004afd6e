"""Divide large row groups at page boundaries, and pack pieces into splits of about equal size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.prune.index_locations import OFFSET_INDEX, IndexLocations
from numparq.prune.index_reader import PageIndexReader

__all__ = ["divide_row_group", "pack_pieces"]

# Opening a file costs as much as reading OPEN_COST_BYTES; counted as at most 1 / OPEN_COST_SHARE of a split.
OPEN_COST_BYTES, OPEN_COST_SHARE = 256 << 10, 16


def divide_row_group(file: OpenFile, leaves: Sequence[Leaf], group: RowGroupPlan, capacity: int) -> list[RowGroupPlan]:
    """Divide the selected rows of a row group into ranges of about ``capacity`` bytes of its columns.

    Returns it whole if it fits, or if a column chunk has no offset index to read from its middle.
    """
    if group.num_bytes <= capacity or group.rows.count < 2:
        return [group]
    located = _located(file, leaves, group)
    chunks = [chunk for chunk in located.chunks if chunk.start < chunk.end]
    if not chunks or not all(chunk.is_indexed for chunk in chunks):
        return [group]
    largest = max(chunks, key=lambda chunk: chunk.num_bytes(located.rows))
    first, last = int(located.rows.starts[0]), int(located.rows.stop)
    edges = [first, *_cuts(largest, located, -(-located.num_bytes // capacity)), last]
    parts = [located.rows.clip(start, stop) for start, stop in pairwise(edges)]
    return [located.with_rows(rows) for rows in parts if rows]


def _located(file: OpenFile, leaves: Sequence[Leaf], group: RowGroupPlan) -> RowGroupPlan:
    """Read the offset indexes of chunks that have not been located yet."""
    missing = [(place, leaf.index) for place, leaf in enumerate(leaves) if not group.chunks[place].is_indexed]
    if not missing:
        return group
    indexes = PageIndexReader(file, leaves, IndexLocations(file))
    indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for _, leaf in missing]})
    plan = PlanBuilder([leaf.name for leaf in leaves], [group])
    plan.set_pages(
        {
            (group.ordinal, place): pages
            for place, leaf in missing
            if (pages := indexes.chunk_pages(group.chunks[place], group.ordinal, leaf)) is not None
        }
    )
    return plan.groups[group.ordinal]


def _cuts(chunk: ChunkPages, group: RowGroupPlan, count: int) -> list[int]:
    """Return the rows, at page boundaries of a chunk, that divide its selected bytes into ``count`` similar parts."""
    pages = chunk.pages_with_rows(group.rows)
    ends = np.cumsum(chunk.sizes[pages])
    wanted = np.arange(1, count) * (ends[-1] / count)
    behind = np.minimum(np.searchsorted(ends, wanted), len(pages) - 1)  # page that holds each cut
    rows = np.unique(chunk.row_stops[pages[behind]])
    first, last = int(group.rows.starts[0]), int(group.rows.stop)
    return [row for row in rows.tolist() if first < row < last]


def pack_pieces(files: Sequence[int], sizes: Sequence[int], most: int, fewest: int = 1) -> list[range]:
    """Pack pieces in order into as few runs of at most ``most`` bytes as possible, but at least ``fewest``.

    ``files`` are file ordinals, ascending from 0. The largest run is as small as the number of runs allows.
    """
    if not len(sizes):
        return []
    # Pieces lie on a line, and each includes the cost of opening its file: pieces of one file overlap by that cost.
    # A run costs the distance from the start of its first piece to the end of its last.
    opening = min(OPEN_COST_BYTES, most // OPEN_COST_SHARE)
    ends = np.cumsum(np.asarray(sizes, np.int64)) + opening * (np.asarray(files, np.int64) + 1)
    starts = ends - np.asarray(sizes, np.int64) - opening
    count = max(len(_runs(starts, ends, most)), min(fewest, len(ends)))
    low, high = 0, int(ends[-1])
    while low < high:  # binary search for the least capacity with at most `count` runs
        middle = (low + high) // 2
        if len(_runs(starts, ends, middle)) <= count:
            high = middle
        else:
            low = middle + 1
    runs = _runs(starts, ends, low)
    return runs if len(runs) == count else _runs(starts, ends, low - 1)


def _runs(starts: np.ndarray, ends: np.ndarray, capacity: int) -> list[range]:
    """Fill runs greedily, one after another."""
    runs, start = [], 0
    while start < len(ends):
        fits = int(np.searchsorted(ends, starts[start] + capacity, side="right"))
        runs.append(range(start, max(fits, start + 1)))
        start = runs[-1].stop
    return runs
