"""Index files: read each once, and make its row of a store; files that change meanwhile get none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.files import DataFile
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.errors import ParquetError, SchemaError, UnsupportedError
from numparq.expr.literals import locate_literal
from numparq.expr.sort_keys import key_domain
from numparq.format.key_values.spark import SPARKS_CALENDAR
from numparq.format.open_file import OpenFile
from numparq.util.progress import ProgressBar
from numparq.util.worker_pool import WorkerPool

from .cell_types import CellType, Conversion, cell_type
from .indexes.definitions import IndexDefinition
from .location import object_ids
from .own_metadata import ColumnsRecorder
from .rows import RowBuilder, StoreRow
from .summary.summarize import ColumnSummary

_BATCH = 64  # files that are opened together
_QUIET_SECONDS = 1.001  # a file that is changed twice within a second may have one id for both contents


@dataclass
class IndexedFiles:
    """Rows of files, and the files that have none.

    Attributes
    ----------
    rows : list of StoreRow
        One for each file that could be read.
    types : list of list of (CellType or None)
        For each row, the types of its cells; None if the file lacks the column.
    failures : list of (str, str)
        Names of the other files, with the reason.
    """

    rows: list[StoreRow] = field(default_factory=list)
    types: list[list[CellType | None]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)


class FileListing:
    """Files of a dataset as they are now.

    Attributes
    ----------
    ids : list of (str or None)
        Current id of each file.
    changed : int
        Latest change time of a local file, in nanoseconds; 0 on other file systems.
    """

    def __init__(self, listing: DatasetListing) -> None:
        self.listing = listing
        self.files: list[DataFile] = list(listing.files)
        self.ids, self._changes = object_ids(self.files, listing.filesystem)
        self.changed = max(self._changes, default=0)
        self._start = time.time()

    def wait(self) -> None:
        """Wait until no file is so new that a second write could have the same id."""
        newest = max((int(name.rpartition("#")[2]) / 1000 for name in self.ids if name is not None), default=0.0)
        newest = max(newest, self.changed / 10**9)
        left = newest + _QUIET_SECONDS - self._start
        if 0 < left <= 2 * _QUIET_SECONDS:  # a time in the future is no reason to wait
            time.sleep(left)
            self.ids, self._changes = object_ids(self.files, self.listing.filesystem)
            self.changed = max(self._changes, default=0)
            self._start = time.time()

    def positions_of(self, own_change: int | None) -> dict[str, int]:
        """Return the positions of files by id; those without a change after that of a part's files, if it is known."""
        return {
            name: position
            for position, (name, changed) in enumerate(zip(self.ids, self._changes, strict=True))
            if name is not None and not (own_change and changed > own_change)
        }

    def is_quiet(self, position: int) -> bool:
        """Whether a file has an id that no later write can have."""
        name = self.ids[position]
        newest = 0.0 if name is None else int(name.rpartition("#")[2]) / 1000
        return name is not None and newest + _QUIET_SECONDS - 0.001 <= self._start


class FileIndexer:
    """Indexes files of a listing."""

    def __init__(
        self, listing: FileListing, definitions: Sequence[IndexDefinition], partitions: PartitionValuesOfFiles
    ) -> None:
        self._listing = listing
        self._builder = RowBuilder(definitions)
        self._partitions = partitions
        self._recorder = ColumnsRecorder()

    def index(self, positions: Sequence[int], threads: int, progress: bool) -> IndexedFiles:
        """Index the files at some positions of the listing, in parallel."""
        batches = [positions[start : start + _BATCH] for start in range(0, len(positions), _BATCH)]
        results: list[IndexedFiles] = [IndexedFiles() for _ in batches]
        with ProgressBar(progress) as bar, WorkerPool(max(1, min(threads, len(batches)))) as pool:
            bar.add_total(len(positions))
            jobs: list[Callable[[], None]] = [
                partial(self._index_batch, batch, into, bar) for batch, into in zip(batches, results, strict=True)
            ]
            pool.run(jobs)
        return IndexedFiles(
            [row for each in results for row in each.rows],
            [types for each in results for types in each.types],
            [failure for each in results for failure in each.failures],
        )

    def _index_batch(self, positions: Sequence[int], into: IndexedFiles, bar: ProgressBar) -> None:
        files = [self._listing.files[at] for at in positions]
        try:
            opened: list[OpenFile | ParquetError | OSError] = [*self._open(files)]
        except (ParquetError, OSError):
            opened = [self._open_one(file) for file in files]
        readable = [file for file in opened if isinstance(file, OpenFile)]
        summaries = iter(self._builder.summarize(readable))
        rows = []
        for position, file in zip(positions, opened, strict=True):
            try:
                summary = next(summaries) if isinstance(file, OpenFile) else file
                rows.append((position, self._row(position, file, summary)))
            except (ParquetError, OSError) as error:
                into.failures.append((self._listing.files[position].name, str(error)))
            finally:
                if isinstance(file, OpenFile):
                    file.close()
        self._add_unchanged(rows, into)
        bar.advance(len(positions))

    def _open(self, files: Sequence[DataFile]) -> list[OpenFile]:
        return open_files(self._listing.listing, files, calendar=SPARKS_CALENDAR)

    def _open_one(self, file: DataFile) -> OpenFile | ParquetError | OSError:
        try:
            return self._open([file])[0]
        except (ParquetError, OSError) as error:
            return error

    def _row(
        self,
        position: int,
        file: OpenFile | ParquetError | OSError,
        summaries: dict[int, ColumnSummary] | ParquetError | OSError,
    ) -> tuple[StoreRow, list[CellType | None]]:
        if not isinstance(file, OpenFile):
            raise file
        name = self._listing.ids[position]
        if name is None or not self._listing.is_quiet(position):
            raise UnsupportedError("its time of modification is not known, or too recent", file=file.source.name)
        cells, types = self._builder.build(file, summaries)
        columns = self._recorder.record(file)
        if self._listing.listing.filesystem is not None:
            file.check_unchanged()
        return StoreRow(name, self._partitions.values(position), cells, columns), types

    def _add_unchanged(
        self, rows: Sequence[tuple[int, tuple[StoreRow, list[CellType | None]]]], into: IndexedFiles
    ) -> None:
        """Add the rows of files whose ids and change times are as they were listed."""
        files = [self._listing.files[position] for position, _ in rows]
        ids, changes = object_ids(files, self._listing.listing.filesystem)
        for (position, (row, types)), name, changed in zip(rows, ids, changes, strict=True):
            if name != row.object_name or changed > self._listing.changed:
                into.failures.append((self._listing.files[position].name, "it changed while it was read"))
                continue
            into.rows.append(row)
            into.types.append(types)


class PartitionValuesOfFiles:
    """Partition columns of a listing as a store has them.

    Attributes
    ----------
    types : dict of str to CellType
        Types of the partition columns that a store can have.
    """

    def __init__(self, listing: DatasetListing, partitions: DatasetPartitions) -> None:
        self._files = listing.files
        self._partitions = partitions
        self.types: dict[str, CellType] = {}
        self._conversions: dict[str, Conversion] = {}
        for key in partitions.keys:
            try:
                self.types[key], self._conversions[key] = cell_type(partitions.leaf(key))
            except ParquetError:
                continue

    def values(self, position: int) -> dict[str, bytes | None]:
        """Return the PLAIN partition values of a file."""
        raws = dict(zip(self._partitions.keys, self._files[position].values, strict=True))
        return {key: self._plain(key, raws[key]) for key in self.types}

    def _plain(self, key: str, raw: str | None) -> bytes | None:
        value = self._partitions.value(key, raw)
        if value is None:
            return None
        domain = key_domain(self._partitions.leaf(key))
        position = locate_literal(value, domain)
        plain = None if position is None else self._conversions[key](domain.plain_value(position.left))
        if plain is None:
            raise SchemaError(f"the partition value {raw!r} cannot be kept in a store", column=key)
        return plain
