"""Plan splits: row ranges from footers and indexes, or byte ranges from file sizes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.listing.files import DataFile
from numparq.dataset.listing.remote import RemoteLister
from numparq.dataset.prune.pruners import FilePruner
from numparq.dataset.scan.query import DatasetQuery
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS
from numparq.plan.chunk_pages import ChunkPages
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.prune.index_reader import OFFSET_INDEX, IndexLocations, PageIndexReader
from numparq.scan.file_reader import FileReader
from numparq.scan.options import ScanOptions
from numparq.scan.scan_file import ScanFile
from numparq.util.pluralize import pluralize
from numparq.util.worker_pool import WorkerPool

from .open_files import stamp_file, stamp_local_file
from .split import RowGroupRange, Split, SplitPart, divide_bytes

# Opening a file costs as much as reading OPEN_COST_BYTES; counted as at most 1 / OPEN_COST_SHARE of a split.
OPEN_COST_BYTES, OPEN_COST_SHARE = 256 << 10, 16

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
            limit = f"there are {pluralize(count, 'file')} and plan_files={self._plan_files}"
            raise ValueError(f"row_groups and row_range need all footers, but {limit}")
        some = min(SAMPLED_FILES, count)
        return [self.candidates[at * (count - 1) // max(some - 1, 1)] for at in range(some)]

    def _may_prune_unopened(self) -> bool:
        return not self.is_sampled and super()._may_prune_unopened()

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
    pieces = [
        (place, part._replace(fingerprint=_expected_fingerprint(snapshot, file)), num_bytes)
        for place, file in enumerate(files)
        for part, num_bytes in _byte_pieces(file, share, capacity)
    ]
    runs = pack_pieces([place for place, _, _ in pieces], [size for _, _, size in pieces], split_bytes, min_splits)
    return [_byte_split(pieces[run.start : run.stop]) for run in runs]


def _expected_fingerprint(snapshot: DatasetSnapshot, file: DataFile) -> str | None:
    return None if snapshot.expected is None else snapshot.expected.fingerprint_of(snapshot.listing, file)


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
    part = SplitPart(stamp_file(file, scan_file.file), None, digest=scan_file.file.footer.content_digest)
    rows = query.scan.file_reader(scan_file)
    if not scan_file.predicate:
        return PlannedFile(part, scan_file.file, list(rows.leaves), _whole_row_groups(rows, scan_file), rows.plan, True)
    plan = rows.plan()
    shown = {leaf.index for leaf in rows.leaves}
    leaves = [*rows.leaves, *(leaf for leaf in scan_file.predicate.leaves if leaf.index not in shown)]
    slices = {rows.row_group: rows for rows in scan_file.slices}
    groups = [_planned_rows(group, slices[group.ordinal].start, slices[group.ordinal].stop) for group in plan.left]
    return PlannedFile(part, scan_file.file, leaves, groups, lambda: plan, False)


def _whole_row_groups(rows: FileReader, scan_file: ScanFile) -> list[PlannedRows]:
    """Return the rows selected of each row group, with the bytes of its column chunks."""
    slices = [part for part in scan_file.slices if len(part)]
    starts, ends = rows.chunk_tables.byte_ranges([part.row_group for part in slices])
    sizes = (ends - starts).sum(axis=1).tolist()
    return [
        PlannedRows(RowGroupRange(part.row_group, part.start, part.stop), len(part), size)
        for part, size in zip(slices, sizes, strict=True)
    ]


def _planned_rows(group: RowGroupPlan, start: int, stop: int) -> PlannedRows:
    """Return the rows of a plan as a range that includes pruned rows: the reader tests them if an index is wrong."""
    return PlannedRows(RowGroupRange(group.ordinal, start, stop), group.rows.count, group.num_bytes)


def _row_pieces(place: int, file: PlannedFile, capacity: int) -> Iterator[SplitPiece]:
    """Yield the selected rows of a file, with large row groups divided."""
    for at, group in enumerate(file.groups):
        if group.num_bytes <= capacity:
            yield SplitPiece(place, *group)
            continue
        parts = divide_row_group(file.opened, file.leaves, file.plan().left[at], capacity)
        edges = [group.rows.start, *(int(part.rows.starts[0]) for part in parts[1:]), group.rows.stop]
        for part, (start, stop) in zip(parts, pairwise(edges), strict=True):
            yield SplitPiece(place, *_planned_rows(part, start, stop))


def _row_split(files: Sequence[PlannedFile], pieces: Sequence[SplitPiece]) -> Split:
    """Build a split of consecutive pieces."""
    groups: dict[int, list[RowGroupRange]] = {}
    for piece in pieces:
        groups.setdefault(piece.place, []).append(piece.rows)
    parts = [files[at].part._replace(groups=tuple(rows)) for at, rows in groups.items()]
    is_exact = all(files[at].is_exact for at in groups)
    num_rows = sum(piece.num_rows for piece in pieces) if is_exact else None
    return Split(tuple(parts), num_rows, sum(piece.num_bytes for piece in pieces))


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
