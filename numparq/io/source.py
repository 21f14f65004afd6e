"""Source protocol: bytes at positions, and byte ranges checked against its size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.kernels.tables import SLACK
from numparq.util.fork_safe_lock import fork_safe_lock
from numparq.util.pluralize import agree_noun, pluralize

ByteRanges = Iterable[tuple[int, int]]

_counting = fork_safe_lock()  # one for all sources: it is held for two additions


def check_byte_ranges(ranges: ByteRanges, source: Source) -> list[tuple[int, int]]:
    """Return byte ranges as Python ints; raise InvalidFileError if one exceeds the source."""
    checked = []
    for start, stop in ranges:
        if not source.contains(start, stop):
            raise truncated_file_error(source, start, stop - start)
        checked.append((int(start), int(stop)))
    return checked


def read_missing_ranges(
    pieces: list[np.ndarray | None], ranges: list[tuple[int, int]], source: Source
) -> list[np.ndarray]:
    """Read the byte ranges whose entry in `pieces` is None by one call, and fill these in (in place)."""
    missing = [place for place, piece in enumerate(pieces) if piece is None]
    fetched = source.read_ranges([ranges[place] for place in missing]) if missing else []
    for place, piece in zip(missing, fetched, strict=True):
        pieces[place] = piece
    return [piece for piece in pieces if piece is not None]


def allocate_with_slack(length: int) -> np.ndarray:
    """Return an uninitialised uint8 array of `length` + SLACK bytes; raise LimitError if memory does not suffice."""
    try:
        return np.empty(length + SLACK, np.uint8)
    except MemoryError:
        raise LimitError(f"not enough memory for {pluralize(length, 'byte')} of the file") from None


def truncated_file_error(source: Source, position: int, length: int) -> InvalidFileError:
    """Return the error for bytes requested beyond the end of a file."""
    return InvalidFileError(
        f"bytes {position} to {position + length} are beyond the file's {source.size} "
        f"{agree_noun(source.size, 'byte')}: the file is truncated, "
        "or an offset in it is wrong",
        file=source.name,
    )


class Source(Protocol):
    """Bytes of a fixed size, readable at any position by several threads at once; `name` is for messages."""

    name: str
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether requests have a latency worth saving; False for local files, bytes and file objects."""

    @property
    def num_requests(self) -> int:
        """Number of reads so far."""

    @property
    def num_bytes(self) -> int:
        """Number of bytes read so far."""

    def contains(self, start: int, end: int) -> bool:
        """Whether bytes `start` to `end` (exclusive) exist."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` (uint8) with the bytes from `position`; raise InvalidFileError if there are too few."""

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of `length` bytes at `position`, followed by `slack` readable ones; None if not in memory."""

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges in any order, concurrently where faster; each array has SLACK readable bytes after it.

        Raises InvalidFileError before any read if a range exceeds the file, LimitError if memory does not suffice.
        """

    def close(self) -> None:
        """Release the file that `open_source` opened."""


class CountingSource:
    """Base of sources: thread-safe counts of requests and bytes."""

    size: int
    num_requests = num_bytes = 0

    def _count(self, num_bytes: int, requests: int = 1) -> None:
        with _counting:
            self.num_requests += requests
            self.num_bytes += num_bytes

    def contains(self, start: int, end: int) -> bool:
        """Whether bytes `start` to `end` (exclusive) exist."""
        return 0 <= start <= end <= self.size


class ReadLoopSource(CountingSource):
    """Base of sources whose reads may return fewer bytes and are repeated."""

    name: str
    is_remote = False

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return None: nothing is in memory."""
        return None

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Read until `out` is full."""
        if position < 0 or position + len(out) > self.size:
            raise truncated_file_error(self, position, len(out))
        left = memoryview(out.data)
        while left:
            count = self._read_some(position, left)
            if not count:
                raise truncated_file_error(self, position, len(left))
            self._count(count)
            position += count
            left = left[count:]

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges one after the other."""
        pieces = []
        for start, stop in check_byte_ranges(ranges, self):
            pieces.append(allocate_with_slack(stop - start))
            self.read_into(start, pieces[-1][: stop - start])
        return pieces

    def _read_some(self, position: int, out: memoryview) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing; sources that hold a file close it."""


def read_bytes(source: Source, position: int, length: int) -> bytes:
    """Read `length` bytes at a position; raise InvalidFileError if there are too few."""
    data = np.empty(length, np.uint8)
    source.read_into(position, data)
    return data.tobytes()
