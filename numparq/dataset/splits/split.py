"""Splits as data: row ranges or byte ranges of files, and the row groups of a byte range."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numparq.dataset.listing.files import DataFile
from numparq.format.open_file import OpenFile
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.layout import thrift_layout
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
    fingerprint : str or None
        Fingerprint that the file must have, if it was not opened when planned (`ExpectedParts`).
    """

    file: DataFile
    groups: tuple[RowGroupRange, ...] | None
    byte_range: tuple[int, int | None] | None = None
    digest: bytes | None = None
    fingerprint: str | None = None


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
    if not file.footer.num_leaves:
        return np.zeros(file.num_row_groups, np.int64)
    starts, sizes = _encrypted_extents(file) or _chunk_extents(file)
    mid_points: np.ndarray = np.clip(starts, 0, file.source.size) + np.clip(sizes, 0, file.source.size) // 2
    return mid_points


def _chunk_extents(file: OpenFile) -> tuple[np.ndarray, np.ndarray]:
    """Return start and size of each row group, by its column chunks: the first one with metadata in all row groups."""
    facts = file.footer.chunks.read_table(range(file.num_row_groups), range(file.footer.num_leaves))
    first = int(np.argmax((facts["data_page_offset"] >= 0).all(axis=0)))
    data, dictionary = facts["data_page_offset"][:, first], facts["dictionary_page_offset"][:, first]
    starts = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
    return starts, np.clip(facts["total_compressed_size"], 0, file.source.size).sum(axis=1)


def _encrypted_extents(file: OpenFile) -> tuple[np.ndarray, np.ndarray] | None:
    """Return start and size of each row group of an encrypted file; None if its row groups do not have them.

    All processes have to agree, whichever columns they have keys of.
    """
    footer = file.footer
    if footer.keys is None:
        return None
    layout = thrift_layout("FileMetaData", "row_groups.file_offset", "row_groups.total_compressed_size")
    groups = root_record(layout, read_record(footer.data, footer.length, layout), footer.data).row_groups or ()
    extents = [(group.file_offset or 0, group.total_compressed_size or 0) for group in groups]
    if not extents or not all(start > 0 and size > 0 for start, size in extents):
        return None
    starts, sizes = np.array(extents, np.int64).T
    return starts, sizes
