"""Splits as data: row ranges or byte ranges of files, and the row groups of a byte range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numparq.dataset.listing.files import DataFile
from numparq.format.open_file import OpenFile

__all__ = ["RowGroupRange", "Split", "SplitPart", "divide_bytes", "row_groups_in_range"]


class RowGroupRange(NamedTuple):
    """Rows of a row group.

    Attributes
    ----------
    row_group : int
        Its ordinal in the file.
    start, stop : int
        The rows, counted within it. Of those between them, some may be known not to be wanted: the reader finds out
        the same from the file's indexes.
    """

    row_group: int
    start: int
    stop: int


class SplitPart(NamedTuple):
    """What a split has of one file.

    Attributes
    ----------
    file : DataFile
        Path, name, partition values; `size` and `version` are those that the file had when it was planned, of a local
        one the time of its last change in nanoseconds.
    groups : tuple of RowGroupRange, or None
        The rows. None where the footer was not read: then those of `byte_range`.
    byte_range : (int, int or None), or None
        First byte, and the byte behind the last one (None: to the end): row groups whose mid-points are in it.
    digest : bytes or None
        Of the footer that was read, by which the file is known again.
    """

    file: DataFile
    groups: tuple[RowGroupRange, ...] | None
    byte_range: tuple[int, int | None] | None = None
    digest: bytes | None = None


class Split(NamedTuple):
    """What one process reads.

    Attributes
    ----------
    parts : tuple of SplitPart
        One for each file, in the order of their rows. Without any, there are no rows.
    num_rows : int or None
        Rows that it gives; None where a filter, or a footer that was not read, leaves that open.
    num_bytes : int
        Of the columns asked for, as they are stored; estimated where footers were not read.
    """

    parts: tuple[SplitPart, ...] = ()
    num_rows: int | None = 0
    num_bytes: int = 0

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [part.file.name for part in self.parts]

    def __repr__(self) -> str:
        rows = "" if self.num_rows is None else f"{self.num_rows:,} rows, "
        return f"<Split: {rows}{self.num_bytes:,} bytes of {', '.join(self.files) or 'nothing'}>"


def divide_bytes(size: int, count: int) -> list[tuple[int, int | None]]:
    """Divide the bytes of a file into so many ranges; the last one is open."""
    edges = [size * part // count for part in range(count)]
    return list(zip(edges, [*edges[1:], None], strict=True))


def row_groups_in_range(file: OpenFile, byte_range: tuple[int, int | None]) -> tuple[RowGroupRange, ...]:
    """Give the row groups of a file that are in a range.

    Parameters
    ----------
    file : OpenFile
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
    return tuple(RowGroupRange(at, 0, int(counts[at])) for at in np.flatnonzero(within & (counts > 0)).tolist())


def _mid_points(file: OpenFile) -> np.ndarray:
    """Give the mid-point of each row group: positions that the file has, whatever its footer says."""
    groups, columns = range(file.num_row_groups), file.footer.num_leaves
    if not columns:
        return np.zeros(len(groups), np.int64)
    facts = file.footer.chunks.table(groups, range(columns))
    data, dictionary = facts["data_page_offset"][:, 0], facts["dictionary_page_offset"][:, 0]
    starts = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
    half = np.clip(facts["total_compressed_size"], 0, file.source.size).sum(axis=1) // 2
    return np.clip(starts, 0, file.source.size) + half
