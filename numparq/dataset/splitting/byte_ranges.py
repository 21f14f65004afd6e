"""Files whose footers are read where their rows are: divided by bytes, and the row groups that are in such a range.

A row group is in the range that its mid-point is in, as Hadoop's readers and Impala have it: so each is in just one of
them, whatever the ranges are. Where it begins is told by its first column's pages, for `RowGroup.file_offset` is wrong
in files of some writers.
"""

from __future__ import annotations

import numpy as np

from ...opened import OpenedFile
from .parts import GroupRows

__all__ = ["groups_within", "ranges_of"]


def ranges_of(size: int, count: int) -> list[tuple[int, int | None]]:
    """Divide the bytes of a file into so many ranges; the last one is open."""
    edges = [size * part // count for part in range(count)]
    return list(zip(edges, [*edges[1:], None], strict=True))


def groups_within(file: OpenedFile, byte_range: tuple[int, int | None]) -> tuple[GroupRows, ...]:
    """Give the row groups of a file that are in a range.

    Parameters
    ----------
    file : OpenedFile
        The file.
    byte_range : (int, int or None)
        First byte, and the byte behind the last one.

    Returns
    -------
    tuple of GroupRows
        All of their rows; those without any are left out.
    """
    start, stop = byte_range
    points = _mid_points(file)
    within = (points >= start) if stop is None else (points >= start) & (points < stop)
    counts = file.footer.row_group_num_rows
    return tuple(GroupRows(at, 0, int(counts[at])) for at in np.flatnonzero(within & (counts > 0)).tolist())


def _mid_points(file: OpenedFile) -> np.ndarray:
    """Give the mid-point of each row group: positions that the file has, whatever its footer says."""
    groups, columns = range(file.num_row_groups), file.footer.num_leaves
    if not columns:
        return np.zeros(len(groups), np.int64)
    facts = file.footer.chunks.table(groups, range(columns))
    data, dictionary = facts["data_page_offset"][:, 0], facts["dictionary_page_offset"][:, 0]
    starts = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
    half = np.clip(facts["total_compressed_size"], 0, file.source.size).sum(axis=1) // 2
    return np.clip(starts, 0, file.source.size) + half
