"""Divide large row groups at page boundaries, and pack pieces into splits of about equal size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.read_plan import ReadPlan, RowGroupPlan, with_offset_indexes
from numparq.prune.index_locations import OFFSET_INDEX, IndexLocations
from numparq.prune.index_reader import PageIndexReader

__all__ = ["divide_row_group", "pack_pieces"]

# To open a file takes as long as to read so many bytes; it counts for nothing that would fill small splits.
OPEN_COST_BYTES, OPEN_COST_SHARE = 256 << 10, 16


def divide_row_group(file: OpenFile, leaves: Sequence[Leaf], group: RowGroupPlan, capacity: int) -> list[RowGroupPlan]:
    """Divide the rows of a row group into stretches of about as many bytes as a split may have.

    Parameters
    ----------
    file : OpenFile
        The file.
    leaves : sequence of Leaf
        The columns of the plan.
    group : RowGroupPlan
        What is wanted.
    capacity : int
        Bytes of a split.

    Returns
    -------
    list of RowGroupPlan
        In the order of rows, each with some. The row group itself, where it fits, or where not all of its columns have
        an offset index: rows in the midst of such a column cannot be read without those before them.
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
    """Take up the offset indexes of chunks that have not been asked for theirs."""
    missing = [(place, leaf.index) for place, leaf in enumerate(leaves) if not group.chunks[place].is_indexed]
    if not missing:
        return group
    indexes = PageIndexReader(file, leaves, IndexLocations(file))
    indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for _, leaf in missing]})
    found = {
        (group.ordinal, place): pages
        for place, leaf in missing
        if (pages := indexes.pages(group.chunks[place], group.ordinal, leaf)) is not None
    }
    plan = ReadPlan(tuple(leaf.name for leaf in leaves), (group,))
    return with_offset_indexes(plan, found).row_groups[0]


def _cuts(chunk: ChunkPages, group: RowGroupPlan, count: int) -> list[int]:
    """Give rows between pages of a chunk that divide its wanted bytes into so many equal parts, as far as they can."""
    pages = chunk.needed(group.rows)
    ends = np.cumsum(chunk.sizes[pages])
    wanted = np.arange(1, count) * (ends[-1] / count)
    behind = np.minimum(np.searchsorted(ends, wanted), len(pages) - 1)  # the pages that the cuts are in
    rows = np.unique(chunk.row_stops[pages[behind]])
    first, last = int(group.rows.starts[0]), int(group.rows.stop)
    return [row for row in rows.tolist() if first < row < last]


def pack_pieces(files: Sequence[int], sizes: Sequence[int], most: int, fewest: int = 1) -> list[range]:
    """Divide pieces, which stay in their order, into runs.

    Parameters
    ----------
    files : sequence of int
        The file that each piece is of, the first one being 0, the others behind it; they never fall.
    sizes : sequence of int
        The bytes of each piece, 0 or more.
    most : int
        Of a run. A piece that is larger is a run by itself.
    fewest : int
        So many runs there are to be, if there are as many pieces.

    Returns
    -------
    list of range
        As few as that allows; and of those, such that the largest is as small as possible.
    """
    if not len(sizes):
        return []
    # A run from one piece to another takes what lies between the start of the first one and the end of the last: with
    # pieces on a line, of one file over each other by what it takes to open that.
    opening = min(OPEN_COST_BYTES, most // OPEN_COST_SHARE)
    ends = np.cumsum(np.asarray(sizes, np.int64)) + opening * (np.asarray(files, np.int64) + 1)
    starts = ends - np.asarray(sizes, np.int64) - opening
    count = max(len(_runs(starts, ends, most)), min(fewest, len(ends)))
    low, high = 0, int(ends[-1])
    while low < high:  # for the least capacity that makes no more runs
        middle = (low + high) // 2
        if len(_runs(starts, ends, middle)) <= count:
            high = middle
        else:
            low = middle + 1
    runs = _runs(starts, ends, low)
    return runs if len(runs) == count else _runs(starts, ends, low - 1)


def _runs(starts: np.ndarray, ends: np.ndarray, capacity: int) -> list[range]:
    """Fill one run after the other."""
    runs, start = [], 0
    while start < len(ends):
        fits = int(np.searchsorted(ends, starts[start] + capacity, side="right"))
        runs.append(range(start, max(fits, start + 1)))
        start = runs[-1].stop
    return runs
