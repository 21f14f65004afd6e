"""Plan splits: row ranges from footers and indexes, or byte ranges from file sizes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.listing.files import DataFile
from numparq.dataset.listing.remote import RemoteLister
from numparq.dataset.prune.pruners import FilePruner
from numparq.dataset.scan.query import DatasetQuery
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS
from numparq.plan.read_plan import ReadPlan, RowGroupPlan
from numparq.scan.file_reader import FileReader
from numparq.scan.options import ScanOptions
from numparq.scan.scan_file import ScanFile
from numparq.util.worker_pool import WorkerPool

from .divide import divide_row_group, pack_pieces
from .open_files import footer_digest, stamp_file, stamp_local_file
from .split import RowGroupRange, Split, SplitPart, divide_bytes

__all__ = ["SplitQuery", "plan_byte_splits", "plan_row_splits"]

# Number of files sampled for the schema if there are too many to open.
SAMPLED_FILES = 64


class SplitQuery(DatasetQuery):
    """A query of a dataset, to be divided; above ``plan_files`` files, only a sample of the footers is read.

    Attributes
    ----------
    candidates : list of int
        Ordinals of the files left after pruning without opening them.
    is_sampled : bool
        Whether `wanted` holds only a sample of them.
    """

    def __init__(
        self,
        snapshot: DatasetSnapshot,
        pruners: Sequence[FilePruner],
        columns: Any,
        options: ScanOptions,
        plan_files: int | None,
    ) -> None:
        groups = options.row_groups
        if groups is not None and any(first >= second for first, second in pairwise(groups)):
            raise ValueError(f"row_groups must be in ascending order, each once, not {groups!r}")
        self._plan_files = plan_files
        self.candidates: list[int] = []
        self.is_sampled = False
        super().__init__(snapshot, pruners, columns, options)

    def unpruned_files(self) -> Sequence[ScanFile]:
        """Return the selected files that footer statistics do not prune; only these are planned."""
        return self._prune_by_statistics()

    def _prune_files(self) -> list[int]:
        self.candidates = super()._prune_files()
        count = len(self.candidates)
        self.is_sampled = self._plan_files is not None and count > self._plan_files
        if not self.is_sampled:
            return self.candidates
        if self._options.row_groups is not None or self._options.row_range is not None:
            limit = f"there are {count:,} files and plan_files={self._plan_files}"
            raise ValueError(f"row_groups and row_range need all footers, but {limit}")
        some = min(SAMPLED_FILES, count)
        return [self.candidates[at * (count - 1) // max(some - 1, 1)] for at in range(some)]

    def _merge_and_bind(self, ordinals: Sequence[int], columns: Any) -> Any:
        if not self.is_sampled:
            return super()._merge_and_bind(ordinals, columns)
        return self._bound(self._snapshot.schema_of(ordinals), columns)  # without retrying with all files


def plan_byte_splits(snapshot: DatasetSnapshot, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide the files of a sampled query by size, in row order.

    The open files show which share of the bytes is read. Raises FileNotFoundError if a file is gone.
    """
    sized = _with_sizes([snapshot.files[at] for at in query.candidates], snapshot.listing.filesystem)
    files = [file for file in sized if file.size or file.path in snapshot.listing.named_paths]
    share = _share(query)
    total = sum(int((file.size or 0) * share) for file in files)
    capacity = max(min(split_bytes, total // min_splits), 1)
    pieces = [(place, *piece) for place, file in enumerate(files) for piece in _byte_pieces(file, share, capacity)]
    runs = pack_pieces([place for place, _, _ in pieces], [size for _, _, size in pieces], split_bytes, min_splits)
    return [_byte_split(pieces[run.start : run.stop]) for run in runs]


def _with_sizes(files: Sequence[DataFile], filesystem: Any) -> list[DataFile]:
    """Return files with sizes and versions, requested where the listing has none."""
    if filesystem is None:
        return [_local(file) for file in files]
    unknown = [file.path for file in files if file.size is None]
    entries = dict(zip(unknown, RemoteLister(filesystem).stat_all(unknown), strict=True)) if unknown else {}
    sized = ((file, entries.get(file.path)) for file in files)
    return [file if entry is None else file._replace(size=entry.size, version=entry.version) for file, entry in sized]


def _local(file: DataFile) -> DataFile:
    status = os.stat(file.path)
    return stamp_local_file(file, status.st_size, status.st_mtime_ns)


def _share(query: SplitQuery) -> float:
    """Return the share of file bytes that the query reads, by the open files."""
    selected_bytes = all_bytes = 0
    for scan_file in query.scan.selected:
        rows = query.scan.file_reader(scan_file)
        starts, ends = rows.chunk_tables.byte_ranges([part.row_group for part in scan_file.slices])
        selected_bytes += int((ends - starts).sum())
        all_bytes += scan_file.file.source.size
    return min(selected_bytes / all_bytes, 1.0) if all_bytes else 1.0


def _byte_pieces(file: DataFile, share: float, capacity: int) -> Iterator[tuple[SplitPart, int]]:
    """Divide a file into byte ranges; yield each with the number of bytes that the query reads of it."""
    num_bytes = int((file.size or 0) * share)
    ranges = divide_bytes(file.size or 0, max(-(-num_bytes // capacity), 1))
    for byte_range in ranges:
        yield SplitPart(file, None, byte_range), num_bytes // len(ranges)


def _byte_split(pieces: Sequence[tuple[int, SplitPart, int]]) -> Split:
    """Build a split; adjacent ranges of one file are merged."""
    parts = []
    for _, several in groupby(pieces, key=lambda piece: piece[0]):  # by position: a file may be listed twice
        same = [part for _, part, _ in several]
        assert same[0].byte_range is not None
        assert same[-1].byte_range is not None
        parts.append(same[0]._replace(byte_range=(same[0].byte_range[0], same[-1].byte_range[1])))
    return Split(tuple(parts), None, sum(num_bytes for _, _, num_bytes in pieces))


class PlannedRows(NamedTuple):
    """Rows of one row group; `num_rows` and `num_bytes` count those that may match."""

    rows: RowGroupRange
    num_rows: int
    num_bytes: int


class PlannedFile(NamedTuple):
    """A planned file.

    Attributes
    ----------
    part : SplitPart
        The file, without rows yet.
    leaves : list of Leaf
        Leaf columns that are projected or filtered by.
    groups : list of PlannedRows
        Row groups left after pruning.
    plan : callable
        Returns the read plan of these row groups, in the same order.
    is_exact : bool
        Whether all their rows match, as there is no filter.
    """

    part: SplitPart
    opened: OpenFile
    leaves: list[Leaf]
    groups: list[PlannedRows]
    plan: Callable[[], ReadPlan]
    is_exact: bool


class SplitPiece(NamedTuple):
    """Rows of one row group that go to one split; ``place`` is the index of the planned file."""

    place: int
    rows: RowGroupRange
    num_rows: int
    num_bytes: int


def plan_row_splits(snapshot: DatasetSnapshot, query: SplitQuery, split_bytes: int, min_splits: int) -> list[Split]:
    """Divide the rows of open files into splits of at most about ``split_bytes`` of the columns read, in row order.

    Returns at least ``min_splits`` if rows can be divided so, and none if nothing is left to read.
    """
    files = [file for file in _planned(snapshot, query) if file.groups]
    total = sum(group.num_bytes for file in files for group in file.groups)
    capacity = max(min(split_bytes, total // min_splits), 1)
    pieces = [piece for place, file in enumerate(files) for piece in _row_pieces(place, file, capacity)]
    places, sizes = [piece.place for piece in pieces], [piece.num_bytes for piece in pieces]
    runs = pack_pieces(places, sizes, split_bytes, min_splits)
    return [_row_split(files, pieces[run.start : run.stop]) for run in runs]


def _planned(snapshot: DatasetSnapshot, query: SplitQuery) -> list[PlannedFile]:
    """Plan the files that may have matching rows; remote ones concurrently."""
    left = query.unpruned_files()
    planned: dict[int, PlannedFile] = {}

    def plan(scan_file: ScanFile) -> None:
        planned[scan_file.ordinal] = _planned_file(snapshot.files[scan_file.ordinal], query, scan_file)

    is_remote = any(scan_file.file.source.is_remote for scan_file in left)
    with WorkerPool(min(MAX_CONCURRENT_REQUESTS, len(left)) if is_remote else 1) as pool:
        pool.run([partial(plan, scan_file) for scan_file in left])
    return [planned[scan_file.ordinal] for scan_file in left]


def _planned_file(file: DataFile, query: SplitQuery, scan_file: ScanFile) -> PlannedFile:
    part = SplitPart(stamp_file(file, scan_file.file), None, digest=footer_digest(scan_file.file))
    rows = query.scan.file_reader(scan_file)
    if not scan_file.predicate:
        return PlannedFile(part, scan_file.file, list(rows.leaves), _whole_row_groups(rows, scan_file), rows.plan, True)
    plan = rows.plan()
    shown = {leaf.index for leaf in rows.leaves}
    leaves = [*rows.leaves, *(leaf for leaf in scan_file.predicate.leaves if leaf.index not in shown)]
    return PlannedFile(part, scan_file.file, leaves, [_planned_rows(group) for group in plan.left], lambda: plan, False)


def _whole_row_groups(rows: FileReader, scan_file: ScanFile) -> list[PlannedRows]:
    """Return the rows selected of each row group, with the bytes of its column chunks."""
    slices = [part for part in scan_file.slices if len(part)]
    starts, ends = rows.chunk_tables.byte_ranges([part.row_group for part in slices])
    sizes = (ends - starts).sum(axis=1).tolist()
    return [
        PlannedRows(RowGroupRange(part.row_group, part.start, part.stop), len(part), size)
        for part, size in zip(slices, sizes, strict=True)
    ]


def _planned_rows(group: RowGroupPlan) -> PlannedRows:
    rows = RowGroupRange(group.ordinal, int(group.rows.starts[0]), int(group.rows.stop))
    return PlannedRows(rows, group.rows.count, group.num_bytes)


def _row_pieces(place: int, file: PlannedFile, capacity: int) -> Iterator[SplitPiece]:
    """Yield the selected rows of a file, with large row groups divided."""
    for at, group in enumerate(file.groups):
        if group.num_bytes <= capacity:
            yield SplitPiece(place, *group)
            continue
        for part in divide_row_group(file.opened, file.leaves, file.plan().left[at], capacity):
            yield SplitPiece(place, *_planned_rows(part))


def _row_split(files: Sequence[PlannedFile], pieces: Sequence[SplitPiece]) -> Split:
    """Build a split of consecutive pieces."""
    groups: dict[int, list[RowGroupRange]] = {}
    for piece in pieces:
        groups.setdefault(piece.place, []).append(piece.rows)
    parts = [files[at].part._replace(groups=tuple(rows)) for at, rows in groups.items()]
    is_exact = all(files[at].is_exact for at in groups)
    num_rows = sum(piece.num_rows for piece in pieces) if is_exact else None
    return Split(tuple(parts), num_rows, sum(piece.num_bytes for piece in pieces))
