"""Splits of files that have not been opened, for there are too many: whole files, or byte ranges of large ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ..contents import Contents
from ..files import DataFile
from ..remote_listing import RemoteListing
from .byte_ranges import ranges_of
from .opening import as_found
from .packing import packed
from .parts import Split, SplitPart
from .query import SplitQuery

__all__ = ["listed_splits"]


def listed_splits(contents: Contents, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide the files of a query by their sizes.

    Parameters
    ----------
    contents : Contents
        The files.
    query : SplitQuery
        The query, some of whose files are open: they tell which share of the bytes is asked for.
    split_bytes, min_splits
        As of `numparq.dataset.splitting.planning.planned_splits`.

    Returns
    -------
    list of Split
        In the order of rows.

    Raises
    ------
    FileNotFoundError
        When one of the files is gone since it was listed.
    """
    files = _looked_at([contents.files[at] for at in query.kept], contents.listing.filesystem)
    share = _share(query)
    total = sum(int((file.size or 0) * share) for file in files)
    capacity = max(min(split_bytes, total // min_splits), 1)
    pieces = [(place, *piece) for place, file in enumerate(files) for piece in _pieces(file, share, capacity)]
    runs = packed([place for place, _, _ in pieces], [size for _, _, size in pieces], split_bytes, min_splits)
    return [_split(pieces[run.start : run.stop]) for run in runs]


def _looked_at(files: Sequence[DataFile], filesystem: Any) -> list[DataFile]:
    """Find out how large files are, and by what they are known again, where the listing has not told."""
    if filesystem is None:
        return [_local(file) for file in files]
    unknown = [file.path for file in files if file.size is None]
    entries = dict(zip(unknown, RemoteListing(filesystem).look_at_all(unknown), strict=True)) if unknown else {}
    found = ((file, entries.get(file.path)) for file in files)
    return [file if entry is None else file._replace(size=entry.size, version=entry.version) for file, entry in found]


def _local(file: DataFile) -> DataFile:
    status = os.stat(file.path)
    return as_found(file, status.st_size, status.st_mtime_ns)


def _share(query: SplitQuery) -> float:
    """Give the share of a file's bytes that is asked for, by the files that are open."""
    asked = everything = 0
    for wanted in query.wanted:
        rows = query.read.known(wanted).rows
        starts, ends = rows.tables.places([part.row_group for part in wanted.slices])
        asked += int((ends - starts).sum())
        everything += wanted.file.source.size
    return min(asked / everything, 1.0) if everything else 1.0


def _pieces(file: DataFile, share: float, capacity: int) -> Iterator[tuple[SplitPart, int]]:
    """Divide a file, and give what is asked of each part."""
    num_bytes = int((file.size or 0) * share)
    ranges = ranges_of(file.size or 0, max(-(-num_bytes // capacity), 1))
    for byte_range in ranges:
        yield SplitPart(file, None, byte_range), num_bytes // len(ranges)


def _split(pieces: Sequence[tuple[int, SplitPart, int]]) -> Split:
    """Make a split; ranges of one file that lie behind one another are one."""
    parts = []
    for _, several in groupby(pieces, key=lambda piece: piece[0]):  # by its place: a file may be named twice
        same = [part for _, part, _ in several]
        assert same[0].byte_range is not None and same[-1].byte_range is not None
        parts.append(same[0]._replace(byte_range=(same[0].byte_range[0], same[-1].byte_range[1])))
    return Split(tuple(parts), None, sum(num_bytes for _, _, num_bytes in pieces))
