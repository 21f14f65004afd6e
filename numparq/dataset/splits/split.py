"""Splits as data: row ranges or byte ranges of files, and the row groups of a byte range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numparq.dataset.listing.files import DataFile
from numparq.format.open_file import OpenFile
from numparq.util.pluralize import pluralize


class RowGroupRange(NamedTuple):
    """Rows ``start`` to ``stop`` (exclusive) of a row group, by its ordinal in the file.

    Some of them may be pruned: the reader learns that from the file's page indexes again, or reads them all if an index
    turns out to be wrong.
    """

    row_group: int
    start: int
    stop: int


class SplitPart(NamedTuple):
    """Part of a split in one file.

    Attributes
    ----------
    file : DataFile
        The file with the size and version it had when planned; a local file's version is its modification time in
        nanoseconds.
    groups : tuple of RowGroupRange, or None
        Rows to read; None if the footer was not read and `byte_range` counts.
    byte_range : (int, int or None), or None
        Start and exclusive end (None: end of file); selects the row groups whose mid-point lies in it.
    digest : bytes or None
        Digest of the footer, if it was read when planned.
    """

    file: DataFile
    groups: tuple[RowGroupRange, ...] | None
    byte_range: tuple[int, int | None] | None = None
    digest: bytes | None = None


class Split(NamedTuple):
    """Rows that one process reads.

    Attributes
    ----------
    parts : tuple of SplitPart
        One part for each file, in row order; empty if there are no rows.
    num_rows : int or None
        Number of rows; None if it depends on a filter or on footers that were not read.
    num_bytes : int
        Stored bytes of the columns read; estimated if footers were not read.
    """

    parts: tuple[SplitPart, ...] = ()
    num_rows: int | None = 0
    num_bytes: int = 0

    @property
    def files(self) -> list[str]:
        """Names of the files."""
        return [part.file.name for part in self.parts]

    def __repr__(self) -> str:
        rows = "" if self.num_rows is None else f"{pluralize(self.num_rows, 'row')}, "
        return f"<Split: {rows}{pluralize(self.num_bytes, 'byte')} of {', '.join(self.files) or 'nothing'}>"


def divide_bytes(size: int, count: int) -> list[tuple[int, int | None]]:
    """Divide a file's bytes into ``count`` ranges; the last has no end."""
    edges = [size * part // count for part in range(count)]
    return list(zip(edges, [*edges[1:], None], strict=True))


def row_groups_in_range(file: OpenFile, byte_range: tuple[int, int | None]) -> tuple[RowGroupRange, ...]:
    """Return the row groups whose mid-point is in a byte range (exclusive end), without empty ones."""
    start, stop = byte_range
    points = _mid_points(file)
    within = (points >= start) if stop is None else (points >= start) & (points < stop)
    counts = file.footer.row_group_num_rows
    return tuple(RowGroupRange(at, 0, int(counts[at])) for at in np.flatnonzero(within & (counts > 0)).tolist())


def _mid_points(file: OpenFile) -> np.ndarray:
    """Return the mid-point of each row group, in bytes; corrupt footers still yield positions near the file."""
    groups, columns = range(file.num_row_groups), file.footer.num_leaves
    if not columns:
        return np.zeros(len(groups), np.int64)
    facts = file.footer.chunks.read_table(groups, range(columns))
    data, dictionary = facts["data_page_offset"][:, 0], facts["dictionary_page_offset"][:, 0]
    starts = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
    half = np.clip(facts["total_compressed_size"], 0, file.source.size).sum(axis=1) // 2
    mid_points: np.ndarray = np.clip(starts, 0, file.source.size) + half
    return mid_points
