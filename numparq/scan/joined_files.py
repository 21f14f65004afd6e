"""Local files that follow one another, joined: read as the row groups of one file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.row_selection import RowSlices
from numparq.errors import ParquetError
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.joined_footer import JoinedFooter, join_footers
from numparq.format.module_reader import ModuleReader
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.format.unparsed_file import UnparsedFile
from numparq.io.local_source import BytesSource
from numparq.io.small_files import MAX_BUFFER_BYTES, SmallFileSource, SmallFilesSource, UnloadedFileSource
from numparq.io.source import ByteRanges, CountingSource, Source
from numparq.util.byte_budget_cache import CachedFile

from .error_policy import RaiseOnDamage
from .scan_file import ScanFile

if TYPE_CHECKING:
    from numparq.io.multi_file_source import MultiFileSource

    from .predicate import ScanPredicate

# So many bytes of files are joined.
MAX_JOINED_BYTES = 64 << 20


def divide_into_runs(files: Sequence[ScanFile]) -> list[list[ScanFile]]:
    """Divide files into runs that are read as one: local files of the same columns, predicate and writer.

    A filtered file is joined if it is in memory: what is kept of others between reads, as their page indexes, is kept
    by file.
    """
    runs: list[list[ScanFile]] = []
    last: object = None
    num_bytes = 0
    for scan_file in files:
        key: object = None
        file, columns = scan_file.file, scan_file.columns
        source = file.source
        may_join = not columns.cast and not source.is_remote and file.multi_file_source is None and not file.has_keys
        if may_join and scan_file.selected_slices is None:
            buffer = id(source.buffer) if isinstance(source, SmallFileSource) else None
            table = id(file.table) if isinstance(file, UnparsedFile) else None
            key = columns, (file.model or file).footer.created_by, buffer, table
            if scan_file.predicate is not None:
                key = (*key, *_predicate_key(file, scan_file.predicate)) if buffer is not None else None
        num_bytes += source.size
        most = MAX_JOINED_BYTES
        if isinstance(source, UnloadedFileSource):
            most = min(most, MAX_BUFFER_BYTES)
        if key is not None and key == last and num_bytes <= most:
            runs[-1].append(scan_file)
        else:
            runs.append([scan_file])
            last, num_bytes = key, source.size
    return runs


def _predicate_key(file: OpenFile, predicate: ScanPredicate) -> tuple[object, ...]:
    """Return what joined files have in common besides, if they are filtered; runtime filters are of one file."""
    bound = predicate if predicate.has_runtime_filters else predicate.current()
    return id(bound), (file.model or file).footer.column_order_masks, id(file.model)


class JoinedFile(OpenFile):
    """Local files as one file, as far as its rows are read: its row groups are theirs, in order.

    They have the columns of `leaves` in common, their orders, and their writer.

    Attributes
    ----------
    files : sequence of OpenFile
        The files.
    owners : int64 array
        The file of each row group.
    first_groups, first_rows : list of int
        Number of the first row group, and of the first row, of each file.
    """

    def __init__(self, files: Sequence[OpenFile], leaves: Sequence[Leaf]) -> None:
        self.files = files
        sources = [file.source for file in files]
        small = [source for source in sources if isinstance(source, SmallFileSource)]
        unloaded = [source for source in sources if isinstance(source, UnloadedFileSource)]
        if len(unloaded) == len(sources):
            self.source = loaded = SmallFilesSource(unloaded)
            starts = loaded.starts
        elif len(small) == len(sources):
            self.source, starts = BytesSource(small[0].buffer), [source.start for source in small]
        else:
            self.source = joined = _JoinedSource(sources)
            starts = joined.starts
        self.reader = ModuleReader(self.source)
        self.multi_file_source = None
        self.bloom_filters, self.entry = {}, CachedFile()
        self.footer, self.owners = _join_footers(files, [*dict.fromkeys(map(leaf_ordinal, leaves))])
        counts = np.bincount(self.owners, minlength=len(files)).tolist()
        self._data_bounds = np.array([starts, [file.footer_start for file in files]], np.int64)
        self.footer.data_bounds = self._data_bounds.T[self.owners]
        self.footer_start = self.source.size
        self.first_groups = [0, *accumulate(counts)]
        rows = [0, *self.footer.row_group_num_rows.cumsum().tolist()]
        self.first_rows = [rows[group] for group in self.first_groups]

    def release(self) -> None:
        """Drop the bytes of files that can be read again."""
        if isinstance(self.source, SmallFilesSource):
            self.source.release()

    def check_unchanged(self) -> None:
        """Raise InvalidFileError if one of the files has changed since it was opened."""
        if isinstance(self.source, SmallFilesSource):
            return  # each read of a file checks it
        for file in self.files:
            if isinstance(file.source, SmallFileSource) and file.source.stamp() == file.stamp:
                continue  # as `check_unchanged` does
            file.check_unchanged()

    def count_rows(self, slices: RowSlices) -> list[int]:
        """Return the number of selected rows of each file."""
        counts = np.zeros(len(self.files), np.int64)
        np.add.at(counts, self.owners[slices.row_groups], [len(part) for part in slices.parts])
        return counts.tolist()

    def data_end(self, position: int) -> int:
        """Return the end of the data of the file that has the byte at a position."""
        begin, end = self._data_bounds[:, max(int(np.searchsorted(self._data_bounds[0], position, "right")) - 1, 0)]
        return int(begin + end)

    def locate(self, error: ParquetError) -> None:
        """Add to an error the file that it is of."""
        number = error.where.get("row_group")
        if isinstance(number, int):
            owner = int(self.owners[number])
            error.where["row_group"] = number - self.first_groups[owner]
            error.where["file"] = self.files[owner].source.name

    def locate_piece(self, piece: NestedLeaf) -> None:
        """Add to a piece of a nested column the file that it is of."""
        owner = int(self.owners[piece.row_group])
        piece.row_group -= self.first_groups[owner]
        piece.file = self.files[owner].source.name


def _join_footers(files: Sequence[OpenFile], leaf_ordinals: Sequence[int]) -> tuple[JoinedFooter, np.ndarray]:
    """Join the footers of files; return the position of each row group's file, too."""
    known = [file for file in files if isinstance(file, UnparsedFile)]
    if len(known) == len(files) and len({id(file.table) for file in known}) == 1:  # positions are of one table
        positions = np.array([file.position for file in known])
        footer = known[0].table.join(known[0].model.footer, positions, leaf_ordinals)
        if footer is not None:
            return footer, known[0].table.rows_of(positions)[1]
    counts = [len(file.footer.row_group_num_rows) for file in files]
    return join_footers([file.footer for file in files], leaf_ordinals), np.arange(len(files)).repeat(counts)


class JoinedFilePolicy(RaiseOnDamage):
    """Policy for a `JoinedFile`: each chunk lies in the data of its own file."""

    @staticmethod
    def chunk_tables(
        footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> ChunkTables:
        """Build the chunk tables."""
        assert footer.data_bounds is not None
        return ChunkTables(footer, leaves, row_groups, footer.data_bounds)


class _JoinedSource(CountingSource):
    """The bytes of files one after the other; a range of bytes is of one file.

    Attributes
    ----------
    starts : list of int
        Position of the first byte of each file.
    """

    is_remote = False

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__()
        self._sources = sources
        self.name = sources[0].name
        self.starts = list(accumulate((source.size for source in sources[:-1]), initial=0))
        self.size = self.starts[-1] + sources[-1].size

    def _owner(self, position: int) -> tuple[Source, int]:
        """Return the file with the byte at a position, and the position there."""
        owner = max(bisect_right(self.starts, position) - 1, 0)
        return self._sources[owner], position - self.starts[owner]

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of what a file has in memory."""
        source, start = self._owner(position)
        return source.view(start, length, slack)

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with the bytes from a position."""
        source, start = self._owner(position)
        source.read_into(start, out)

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges."""
        values = []
        for start, stop in ranges:
            source, first = self._owner(start)
            values += source.read_ranges([(first, first + stop - start)])
        return values

    def close(self) -> None:
        """Do nothing: the files stay open."""
