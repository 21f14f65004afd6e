"""Local files that follow one another, joined: read as the row groups of one file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np

from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.chunk_table import ChunkTables
from numparq.errors import ParquetError
from numparq.format.footer.column_chunks import ColumnChunks
from numparq.format.footer.file_metadata import Footer
from numparq.format.module_reader import ModuleReader
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf, leaf_ordinal
from numparq.io.local_source import BytesSource
from numparq.io.small_files import SmallFileSource
from numparq.io.source import ByteRanges, CountingSource, Source
from numparq.util.bounded_cache import BoundedCache

from .error_policy import RaiseOnDamage
from .scan_file import ScanFile

if TYPE_CHECKING:
    from numparq.io.multi_file_source import MultiFileSource

# So many bytes of files are joined.
MAX_JOINED_BYTES = 64 << 20
_MAX_CACHED = 64


def divide_into_runs(files: Sequence[ScanFile], may_join: bool) -> list[list[ScanFile]]:
    """Divide files into runs that are read as one: local files of the same columns and writer, of all rows."""
    runs: list[list[ScanFile]] = []
    last: object = None
    num_bytes = 0
    for scan_file in files:
        key: object = None
        file, source, columns = scan_file.file, scan_file.file.source, scan_file.columns
        if may_join and not columns.cast and not source.is_remote and scan_file.has_all_rows:
            buffer = id(source.buffer) if isinstance(source, SmallFileSource) else None
            if file.multi_file_source is None:
                key = columns, file.footer.created_by, buffer
        num_bytes += source.size
        if key is not None and key == last and num_bytes <= MAX_JOINED_BYTES:
            runs[-1].append(scan_file)
        else:
            runs.append([scan_file])
            last, num_bytes = key, source.size
    return runs


class JoinedFile(OpenFile):
    """Local files as one file, as far as its rows are read: its row groups are theirs, in order.

    They have the columns of `leaves` in common, and their writer.

    Attributes
    ----------
    files : sequence of OpenFile
        The files.
    first_groups, first_rows : list of int
        Number of the first row group, and of the first row, of each file.
    """

    def __init__(self, files: Sequence[OpenFile], leaves: Sequence[Leaf]) -> None:
        self.files = files
        sources = [file.source for file in files]
        small = [source for source in sources if isinstance(source, SmallFileSource)]
        if len(small) == len(sources):
            self.source, starts = BytesSource(small[0].buffer), [source.start for source in small]
        else:
            self.source = joined = _JoinedSource(sources)
            starts = joined.starts
        self.reader = ModuleReader(self.source)
        self.multi_file_source = None
        self.footer = footer = _JoinedFooter(files, starts, leaves)
        self.footer_start = self.source.size
        self.first_groups, self.first_rows = footer.first_groups, footer.first_rows

    def check_unchanged(self) -> None:
        """Raise InvalidFileError if one of the files has changed since it was opened."""
        for file in self.files:
            if isinstance(file.source, SmallFileSource) and file.source.stamp() == file.stamp:
                continue  # as `check_unchanged` does
            file.check_unchanged()

    def locate(self, error: ParquetError) -> None:
        """Add to an error the file that it is of."""
        number = error.where.get("row_group")
        if isinstance(number, int):
            owner = int(self.footer.owners[number])  # type: ignore[attr-defined]
            error.where["row_group"] = number - self.first_groups[owner]
            error.where["file"] = self.files[owner].source.name

    def locate_piece(self, piece: NestedLeaf) -> None:
        """Add to a piece of a nested column the file that it is of."""
        owner = int(self.footer.owners[piece.row_group])  # type: ignore[attr-defined]
        piece.row_group -= self.first_groups[owner]
        piece.file = self.files[owner].source.name


class _JoinedFooter(Footer):
    """Footers of files as one, as far as some leaves need it; positions count in a file.

    Attributes
    ----------
    owners : int64 array
        The file of each row group.
    data_bounds : int64 array, (row groups, 2)
        Where the file of each begins in the joined bytes, and where the file's data end, counted in the file.
    """

    def __init__(self, files: Sequence[OpenFile], starts: Sequence[int], leaves: Sequence[Leaf]) -> None:
        footers = [file.footer for file in files]
        counts = [len(footer.row_group_num_rows) for footer in footers]
        self.row_group_num_rows = np.concatenate([footer.row_group_num_rows for footer in footers])
        self.created_by = footers[0].created_by
        self.chunks = cast(ColumnChunks, _JoinedChunks(files, leaves))
        self.cache = BoundedCache(_MAX_CACHED)
        self.owners = np.arange(len(files)).repeat(counts)
        self.data_bounds = np.array([starts, [file.footer_start for file in files]], np.int64).T[self.owners]
        self.first_groups = [0, *accumulate(counts)]
        rows = [0, *self.row_group_num_rows.cumsum().tolist()]
        self.first_rows = [rows[group] for group in self.first_groups]


class _JoinedChunks:
    """Column chunks of some leaves of several files."""

    def __init__(self, files: Sequence[OpenFile], leaves: Sequence[Leaf]) -> None:
        ordinals = list(dict.fromkeys(map(leaf_ordinal, leaves)))
        self._position = {ordinal: at for at, ordinal in enumerate(ordinals)}
        key = tuple(ordinals)
        self._footers = [file.footer for file in files]
        words = []
        for file in files:
            try:
                words.append(_read(file.footer, key))
            except ParquetError as error:
                error.where.setdefault("file", file.source.name)
                raise
        self._words = np.concatenate(words)

    def read_table(self, row_groups: Sequence[int], columns: Sequence[int]) -> dict[str, np.ndarray]:
        """Return all fields and flags of some chunks, as `ColumnChunks` does."""
        positions = [self._position[column] for column in columns]
        return ColumnChunks.fields_of(self._words[np.asarray(row_groups, np.intp)[:, None], positions])

    def read_texts(self, field: str, row_groups: Sequence[int], columns: Sequence[int]) -> list[str]:
        """Read a string field of chunks, as `ColumnChunks` does."""
        firsts = [0, *accumulate(len(footer.row_group_num_rows) for footer in self._footers)]
        values = []
        for group, column in zip(row_groups, columns, strict=True):
            owner = bisect_right(firsts, group) - 1
            values += self._footers[owner].chunks.read_texts(field, [group - firsts[owner]], [column])
        return values


def _read(footer: Footer, columns: tuple[int, ...]) -> np.ndarray:
    """Return the records of some columns' chunks: (row groups, columns, words)."""
    groups = np.arange(len(footer.row_group_num_rows))[:, None]
    return footer.cache.get_or_make(("chunks", columns), lambda: footer.chunks.read(groups, columns))


class JoinedFilePolicy(RaiseOnDamage):
    """Policy for a `JoinedFile`: each chunk lies in the data of its own file."""

    @staticmethod
    def chunk_tables(
        footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> ChunkTables:
        """Build the chunk tables."""
        assert isinstance(footer, _JoinedFooter)
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
