"""Row groups that are too large for a split, divided between pages of their largest column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...opened import OpenedFile
from ...plan.pages import ChunkPages
from ...plan.read_plan import ReadPlan, with_pages
from ...plan.row_group_plan import RowGroupPlan
from ...pruning.indexes import OFFSET_INDEX, Indexes
from ...pruning.places import Places
from ...schema import Leaf

__all__ = ["divided"]


def divided(file: OpenedFile, leaves: Sequence[Leaf], group: RowGroupPlan, capacity: int) -> list[RowGroupPlan]:
    """Divide the rows of a row group into stretches of about as many bytes as a split may have.

    Parameters
    ----------
    file : OpenedFile
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


def _located(file: OpenedFile, leaves: Sequence[Leaf], group: RowGroupPlan) -> RowGroupPlan:
    """Take up the offset indexes of chunks that have not been asked for theirs."""
    missing = [(place, leaf.index) for place, leaf in enumerate(leaves) if not group.chunks[place].is_indexed]
    if not missing:
        return group
    indexes = Indexes(file, leaves, Places(file))
    indexes.load({OFFSET_INDEX: [(group.ordinal, leaf) for _, leaf in missing]})
    found = {
        (group.ordinal, place): pages
        for place, leaf in missing
        if (pages := indexes.pages(group.chunks[place], group.ordinal, leaf)) is not None
    }
    plan = ReadPlan(tuple(leaf.name for leaf in leaves), (group,))
    return with_pages(plan, found).row_groups[0]


def _cuts(chunk: ChunkPages, group: RowGroupPlan, count: int) -> list[int]:
    """Give rows between pages of a chunk that divide its wanted bytes into so many equal parts, as far as they can."""
    pages = chunk.needed(group.rows)
    ends = np.cumsum(chunk.sizes[pages])
    wanted = np.arange(1, count) * (ends[-1] / count)
    behind = np.minimum(np.searchsorted(ends, wanted), len(pages) - 1)  # the pages that the cuts are in
    rows = np.unique(chunk.row_stops[pages[behind]])
    first, last = int(group.rows.starts[0]), int(group.rows.stop)
    return [row for row in rows.tolist() if first < row < last]
