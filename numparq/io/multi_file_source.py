"""One source for a file and its external column chunk files, at positions far apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.util.fork_safe_lock import fork_safe_lock
from numparq.util.pluralize import pluralize

from .local_source import FileSource
from .sibling_files import SiblingFiles
from .source import ByteRanges, Source, check_byte_ranges

# The file with ordinal n begins at n * STRIDE; the first, with ordinal 0, is the one that names the others.
FILE_STRIDE = 1 << 44
MAX_FILES = 1 << 18
# Open files that are not being read.
MAX_OPEN_SIBLINGS = 64


@dataclass
class _SiblingFile:
    """A sibling file: its path, its size and identity when first opened, and its source while it is open."""

    path: str
    size: int
    identity: tuple[int, int]
    source: FileSource | None
    users: int = 0


class MultiFileSource:
    """A source of several files, opened when first needed, with at most MAX_OPEN_SIBLINGS idle files left open.

    `first` is the file that names the others; closing this source closes it too.
    """

    def __init__(self, first: Source, siblings: SiblingFiles) -> None:
        self._first = first
        self._beside = siblings
        self.name = first.name
        self.size = first.size
        self.is_remote = first.is_remote
        self._files: list[_SiblingFile] = []
        self._ordinals: dict[str, int] = {}
        self._open: dict[int, None] = {}  # ordinals, least recently used first
        self._lock = fork_safe_lock()
        self._closed = [0, 0]  # requests and bytes of files closed since

    @property
    def num_requests(self) -> int:
        """Number of reads of all files so far."""
        return self._first.num_requests + self._closed[0] + sum(source.num_requests for source in self._sources())

    @property
    def num_bytes(self) -> int:
        """Number of bytes read from all files so far."""
        return self._first.num_bytes + self._closed[1] + sum(source.num_bytes for source in self._sources())

    def _sources(self) -> list[FileSource]:
        return [file.source for file in list(self._files) if file.source is not None]

    def add_file(self, path: str) -> tuple[int, int]:
        """Return the position of a sibling file's first byte in this source, and the file's size, opening it if new.

        Raises a ParquetError if it cannot be opened or leads out of the directory, LimitError beyond MAX_FILES files.
        """
        with self._lock:
            if path not in self._ordinals:
                self._add(path)
            ordinal = self._ordinals[path]
            return ordinal * FILE_STRIDE, self._files[ordinal - 1].size

    def _add(self, path: str) -> None:
        if len(self._files) >= MAX_FILES:
            raise LimitError(f"the file refers to more than {MAX_FILES:,} sibling files")
        source = self._beside.open(path)
        if source.size > FILE_STRIDE // 2:
            source.close()
            raise LimitError(
                f"sibling file {path!r} has {pluralize(source.size, 'byte')}; the limit is {FILE_STRIDE // 2:,}"
            )
        self._files.append(_SiblingFile(path, source.size, source.identity, source))
        ordinal = self._ordinals[path] = len(self._files)
        self._open[ordinal] = None
        self._close_some()

    def contains(self, start: int, stop: int) -> bool:
        """Whether bytes `start` to `stop` (exclusive) exist, all in one file."""
        ordinal = start // FILE_STRIDE
        if not ordinal:
            return self._first.contains(start, stop)
        if not 0 < ordinal <= len(self._files):
            return False
        return start <= stop <= ordinal * FILE_STRIDE + self._files[ordinal - 1].size

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of bytes in memory, which only the first file may have; else None."""
        return self._first.view(position, length, slack) if position < FILE_STRIDE else None

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with the bytes from a position, all of one file."""
        ordinal, within = divmod(position, FILE_STRIDE)
        if not ordinal:
            self._first.read_into(position, out)
            return
        with self._opened(ordinal) as source:
            source.read_into(within, out)

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges, each within one file; one call for each file."""
        wanted = check_byte_ranges(ranges, self)
        by_file: dict[int, list[int]] = {}
        for place, (start, _) in enumerate(wanted):
            by_file.setdefault(start // FILE_STRIDE, []).append(place)
        found: dict[int, np.ndarray] = {}
        for ordinal, places in by_file.items():
            within = [(wanted[place][0] % FILE_STRIDE, wanted[place][1] - ordinal * FILE_STRIDE) for place in places]
            found.update(zip(places, self._read_ranges_of(ordinal, within), strict=True))
        return [found[place] for place in range(len(wanted))]

    def _read_ranges_of(self, ordinal: int, ranges: list[tuple[int, int]]) -> list[np.ndarray]:
        if not ordinal:
            return self._first.read_ranges(ranges)
        with self._opened(ordinal) as source:
            return source.read_ranges(ranges)

    @contextmanager
    def _opened(self, ordinal: int) -> Iterator[FileSource]:
        """Yield the source of a sibling file, which is not closed meanwhile."""
        file = self._files[ordinal - 1]
        with self._lock:
            if file.source is None:
                file.source = self._reopen(file)
            source = file.source
            file.users += 1
            self._open.pop(ordinal, None)
            self._open[ordinal] = None
            self._close_some()
        try:
            yield source
        finally:
            with self._lock:
                file.users -= 1

    def _reopen(self, file: _SiblingFile) -> FileSource:
        """Open a sibling file again; raise InvalidFileError if its size or identity changed."""
        source = self._beside.open(file.path)
        if (source.size, source.identity) == (file.size, file.identity):
            return source
        source.close()
        raise InvalidFileError(f"sibling file {file.path!r} was replaced while it was read")

    def _close_some(self) -> None:
        """Close the least recently used idle files while more than MAX_OPEN_SIBLINGS are open."""
        for ordinal in list(self._open):
            if len(self._open) <= MAX_OPEN_SIBLINGS:
                return
            if not self._files[ordinal - 1].users:
                self._close(ordinal)

    def _close(self, ordinal: int) -> None:
        file = self._files[ordinal - 1]
        del self._open[ordinal]
        assert file.source is not None
        self._closed[0] += file.source.num_requests
        self._closed[1] += file.source.num_bytes
        file.source.close()
        file.source = None

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for ordinal in list(self._open):
                self._close(ordinal)
        self._first.close()
