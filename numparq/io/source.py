"""Source protocol: bytes at positions, and byte ranges checked against its size."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from numparq.errors import InvalidFileError, LimitError
from numparq.kernels.tables import SLACK

__all__ = [
    "ByteRanges",
    "ReadLoopSource",
    "Source",
    "allocate_with_slack",
    "check_byte_ranges",
    "read_bytes",
    "read_missing_ranges",
    "truncated_file_error",
]

ByteRanges = Iterable[tuple[int, int]]


def check_byte_ranges(ranges: ByteRanges, source: Source) -> list[tuple[int, int]]:
    """Check that byte ranges lie within a source, before anything is done for them; gives them as Python's ints.

    Parameters
    ----------
    ranges : iterable of (int, int)
        First byte, and the byte behind the last.
    source : Source
        What has to have them.

    Returns
    -------
    list of (int, int)

    Raises
    ------
    InvalidFileError
        When one does not.
    """
    checked = []
    for start, stop in ranges:
        if not source.has(start, stop):
            raise truncated_file_error(source, start, stop - start)
        checked.append((int(start), int(stop)))
    return checked


def read_missing_ranges(
    pieces: list[np.ndarray | None], ranges: list[tuple[int, int]], source: Source
) -> list[np.ndarray]:
    """Read what is missing of byte ranges, all at once.

    Parameters
    ----------
    pieces : list of uint8 array or None
        What is at hand of each range, as `Source.read_ranges` gives it; filled up.
    ranges : list of (int, int)
        The ranges.
    source : Source
        What has the others.

    Returns
    -------
    list of uint8 array
    """
    missing = [place for place, piece in enumerate(pieces) if piece is None]
    fetched = source.read_ranges([ranges[place] for place in missing]) if missing else []
    for place, piece in zip(missing, fetched, strict=True):
        pieces[place] = piece
    return [piece for piece in pieces if piece is not None]


def allocate_with_slack(length: int) -> np.ndarray:
    """Give a uint8 array for so many bytes, with SLACK behind; LimitError where memory does not suffice."""
    try:
        return np.empty(length + SLACK, np.uint8)
    except MemoryError:
        raise LimitError(f"there is not enough memory for {length:,} bytes of the file") from None


def truncated_file_error(source: Source, position: int, length: int) -> InvalidFileError:
    """Make an error that says what was wanted, and what there is."""
    return InvalidFileError(
        f"bytes {position} to {position + length} are wanted, but there are only {source.size}: the file is cut off, "
        "or an offset in it is wrong",
        file=source.name,
    )


class Source(Protocol):
    """Something of a fixed size that can be read at any position, by several threads at once.

    Attributes
    ----------
    name : str
        What to call it in messages.
    size : int
        Bytes.
    is_remote : bool
        Whether a request has a latency that is worth saving; False for local files, bytes and file objects.
    num_requests, num_bytes : int
        Reads so far, and the bytes that they brought.
    """

    name: str
    size: int

    @property
    def is_remote(self) -> bool:
        """Whether a request has a latency that is worth saving."""

    @property
    def num_requests(self) -> int:
        """Reads so far."""

    @property
    def num_bytes(self) -> int:
        """The bytes that they brought."""

    def has(self, start: int, end: int) -> bool:
        """Whether there are such bytes: a first one, and the one behind the last."""

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` (uint8) with the bytes from `position`; InvalidFileError where there are too few."""

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes that are in memory already, with `slack` readable ones behind them, or None."""

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read several byte ranges, side by side where that takes less time.

        Parameters
        ----------
        ranges : iterable of (int, int)
            First byte, and the byte behind the last; in any order, none begins behind its end. An int64 array of two
            columns will do.

        Returns
        -------
        list of uint8 array
            One for each, of its bytes and SLACK readable ones behind them; it may be read-only.

        Raises
        ------
        InvalidFileError
            When one lies outside of the file; nothing is read then.
        LimitError
            When memory does not suffice.
        """

    def close(self) -> None:
        """Give back what `open_source` opened."""


class CountingSource:
    """Counts of requests and bytes, which stay right where several threads read at once."""

    size: int

    def __init__(self) -> None:
        self.num_requests = self.num_bytes = 0
        self._counting = threading.Lock()

    def _count(self, num_bytes: int, requests: int = 1) -> None:
        with self._counting:
            self.num_requests += requests
            self.num_bytes += num_bytes

    def has(self, start: int, end: int) -> bool:
        """Whether there are such bytes."""
        return 0 <= start <= end <= self.size


class ReadLoopSource(CountingSource):
    """What reads have in common: repeated until all is there, counted."""

    name: str
    is_remote = False

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give None: nothing is in memory."""
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
        """Read one after the other."""
        pieces = []
        for start, stop in check_byte_ranges(ranges, self):
            pieces.append(allocate_with_slack(stop - start))
            self.read_into(start, pieces[-1][: stop - start])
        return pieces

    def _read_some(self, position: int, out: memoryview) -> int:
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


def read_bytes(source: Source, position: int, length: int) -> bytes:
    """Read bytes of a file; InvalidFileError where they are not all there."""
    data = np.empty(length, np.uint8)
    source.read_into(position, data)
    return data.tobytes()
