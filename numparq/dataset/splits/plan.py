"""Plan splits: row ranges from footers and indexes, or byte ranges from file sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.listing.files import DataFile
from numparq.dataset.listing.remote import RemoteLister
from numparq.dataset.prune.pruners import FilePruner
from numparq.dataset.scan.dataset_scan import FileSelection
from numparq.dataset.scan.query import DatasetQuery
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS
from numparq.plan.read_plan import RowGroupPlan
from numparq.scan.options import ScanOptions
from numparq.util.worker_pool import WorkerPool

from .divide import divide_row_group, pack_pieces
from .open_files import footer_digest, stamp_file, stamp_local_file
from .split import RowGroupRange, Split, SplitPart, divide_bytes

__all__ = ["SplitQuery", "plan_byte_splits", "plan_row_splits"]

# So many files tell the schema where there are too many to open all of them.
SAMPLED_FILES = 64


class SplitQuery(DatasetQuery):
    """A query of a dataset, to be divided.

    Parameters
    ----------
    contents, pruners, columns, choices
        As of `DatasetQuery`.
    plan_files : int or None
        Of more files than that, footers are not read, but those of a few.

    Attributes
    ----------
    kept : list of int
        The files that may have wanted rows, as far as is known without opening them.
    is_sampled : bool
        Whether `wanted` are but some of them.
    """

    def __init__(
        self,
        contents: DatasetSnapshot,
        pruners: Sequence[FilePruner],
        columns: Any,
        choices: ScanOptions,
        plan_files: int | None,
    ) -> None:
        self._plan_files = plan_files
        self.kept: list[int] = []
        self.is_sampled = False
        super().__init__(contents, pruners, columns, choices)

    def left(self) -> list[FileSelection]:
        """Give the files that the statistics of their footers leave: of the others no plan need be made."""
        return self._prune_by_statistics()

    def _kept(self) -> list[int]:
        self.kept = super()._kept()
        count = len(self.kept)
        self.is_sampled = self._plan_files is not None and count > self._plan_files
        if not self.is_sampled:
            return self.kept
        some = min(SAMPLED_FILES, count)
        return [self.kept[at * (count - 1) // max(some - 1, 1)] for at in range(some)]

    def _table(self, ordinals: Sequence[int], columns: Any) -> Any:
        if not self.is_sampled:
            return super()._table(ordinals, columns)
        return self._bound(self._contents.schema_of(ordinals), columns)  # which are not looked for in all files


def plan_byte_splits(contents: DatasetSnapshot, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide the files of a query by their sizes.

    Parameters
    ----------
    contents : DatasetSnapshot
        The files.
    query : SplitQuery
        The query, some of whose files are open: they tell which share of the bytes is asked for.
    split_bytes, min_splits
        As of `numparq.dataset.splits.plan.plan_row_splits`.

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
    pieces = [(place, *piece) for place, file in enumerate(files) for piece in _byte_pieces(file, share, capacity)]
    runs = pack_pieces([place for place, _, _ in pieces], [size for _, _, size in pieces], split_bytes, min_splits)
    return [_byte_split(pieces[run.start : run.stop]) for run in runs]


def _looked_at(files: Sequence[DataFile], filesystem: Any) -> list[DataFile]:
    """Find out how large files are, and by what they are known again, where the listing has not told."""
    if filesystem is None:
        return [_local(file) for file in files]
    unknown = [file.path for file in files if file.size is None]
    entries = dict(zip(unknown, RemoteLister(filesystem).look_at_all(unknown), strict=True)) if unknown else {}
    found = ((file, entries.get(file.path)) for file in files)
    return [file if entry is None else file._replace(size=entry.size, version=entry.version) for file, entry in found]


def _local(file: DataFile) -> DataFile:
    status = os.stat(file.path)
    return stamp_local_file(file, status.st_size, status.st_mtime_ns)


def _share(query: SplitQuery) -> float:
    """Give the share of a file's bytes that is asked for, by the files that are open."""
    asked = everything = 0
    for wanted in query.wanted:
        rows = query.read.known(wanted).rows
        starts, ends = rows.tables.places([part.row_group for part in wanted.slices])
        asked += int((ends - starts).sum())
        everything += wanted.file.source.size
    return min(asked / everything, 1.0) if everything else 1.0


def _byte_pieces(file: DataFile, share: float, capacity: int) -> Iterator[tuple[SplitPart, int]]:
    """Divide a file, and give what is asked of each part."""
    num_bytes = int((file.size or 0) * share)
    ranges = divide_bytes(file.size or 0, max(-(-num_bytes // capacity), 1))
    for byte_range in ranges:
        yield SplitPart(file, None, byte_range), num_bytes // len(ranges)


def _byte_split(pieces: Sequence[tuple[int, SplitPart, int]]) -> Split:
    """Make a split; ranges of one file that lie behind one another are one."""
    parts = []
    for _, several in groupby(pieces, key=lambda piece: piece[0]):  # by its place: a file may be named twice
        same = [part for _, part, _ in several]
        assert same[0].byte_range is not None
        assert same[-1].byte_range is not None
        parts.append(same[0]._replace(byte_range=(same[0].byte_range[0], same[-1].byte_range[1])))
    return Split(tuple(parts), None, sum(num_bytes for _, _, num_bytes in pieces))


class PlannedFile(NamedTuple):
    """A file, and what is wanted of it.

    Attributes
    ----------
    part : SplitPart
        The file, with no rows yet.
    opened : OpenFile
        The file, open.
    leaves : list of Leaf
        The columns that are read, or asked by the filter.
    groups : list of RowGroupPlan
        What is left of its row groups.
    is_exact : bool
        Whether all these rows are wanted.
    """

    part: SplitPart
    opened: OpenFile
    leaves: list[Leaf]
    groups: list[RowGroupPlan]
    is_exact: bool


class SplitPiece(NamedTuple):
    """Rows of a row group, to be in one split.

    Attributes
    ----------
    place : int
        Which of the planned files it is of.
    rows : RowGroupRange
        The rows.
    num_rows, num_bytes : int
        Of those that may be wanted.
    """

    place: int
    rows: RowGroupRange
    num_rows: int
    num_bytes: int


def plan_row_splits(contents: DatasetSnapshot, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide what a query wants of files that are open.

    Parameters
    ----------
    contents : DatasetSnapshot
        The files.
    query : SplitQuery
        The query.
    split_bytes : int
        Bytes of a split, of the columns asked for.
    min_splits : int
        So many there are to be at least, if rows can be divided so.

    Returns
    -------
    list of Split
        In the order of rows; none where nothing is left.
    """
    files = [file for file in _planned(contents, query) if file.groups]
    total = sum(group.num_bytes for file in files for group in file.groups)
    capacity = max(min(split_bytes, total // min_splits), 1)
    pieces = [piece for place, file in enumerate(files) for piece in _row_pieces(place, file, capacity)]
    places, sizes = [piece.place for piece in pieces], [piece.num_bytes for piece in pieces]
    runs = pack_pieces(places, sizes, split_bytes, min_splits)
    return [_row_split(files, pieces[run.start : run.stop]) for run in runs]


def _planned(contents: DatasetSnapshot, query: SplitQuery) -> list[PlannedFile]:
    """Plan the files that may have wanted rows, side by side where requests take their time."""
    left = query.left()
    found: dict[int, PlannedFile] = {}

    def plan(wanted: FileSelection) -> None:
        found[wanted.ordinal] = _planned_file(contents.files[wanted.ordinal], query, wanted)

    is_remote = any(wanted.file.source.is_remote for wanted in left)
    with WorkerPool(min(MAX_CONCURRENT_REQUESTS, len(left)) if is_remote else 1) as crew:
        crew.run([partial(plan, wanted) for wanted in left])
    return [found[wanted.ordinal] for wanted in left]


def _planned_file(file: DataFile, query: SplitQuery, wanted: FileSelection) -> PlannedFile:
    rows = query.read.known(wanted).rows
    plan = rows.plan()
    shown = {leaf.index for leaf in rows.leaves}
    asked = wanted.condition.leaves if wanted.condition else []
    leaves = [*rows.leaves, *(leaf for leaf in asked if leaf.index not in shown)]
    part = SplitPart(stamp_file(file, wanted.file), None, digest=footer_digest(wanted.file))
    return PlannedFile(part, wanted.file, leaves, list(plan.left), not wanted.condition)


def _row_pieces(place: int, file: PlannedFile, capacity: int) -> Iterator[SplitPiece]:
    """Give what is wanted of a file, row groups divided that are too large."""
    for whole in file.groups:
        for group in divide_row_group(file.opened, file.leaves, whole, capacity):
            rows = RowGroupRange(group.ordinal, int(group.rows.starts[0]), int(group.rows.stop))
            yield SplitPiece(place, rows, group.rows.count, group.num_bytes)


def _row_split(files: Sequence[PlannedFile], pieces: Sequence[SplitPiece]) -> Split:
    """Make the split of some pieces, which lie behind one another."""
    groups: dict[int, list[RowGroupRange]] = {}
    for piece in pieces:
        groups.setdefault(piece.place, []).append(piece.rows)
    parts = [files[at].part._replace(groups=tuple(rows)) for at, rows in groups.items()]
    is_exact = all(files[at].is_exact for at in groups)
    num_rows = sum(piece.num_rows for piece in pieces) if is_exact else None
    return Split(tuple(parts), num_rows, sum(piece.num_bytes for piece in pieces))
