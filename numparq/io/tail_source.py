"""Source with the end of the file in memory: the footer, and mostly the page indexes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numparq.util.fork_safe_lock import fork_safe_lock

from .source import ByteRanges, Source, allocate_with_slack, check_byte_ranges, read_missing_ranges


class TailSource:
    """A source that holds the last `length` bytes of another in memory, read by one request at the first access.

    `data` is these bytes if already in memory, followed by SLACK readable ones; it becomes read-only.
    """

    def __init__(self, source: Source, length: int, data: np.ndarray | None = None) -> None:
        self._source = source
        self.name = source.name
        self.size = source.size
        self.is_remote = source.is_remote
        self._start = source.size - length
        self._bytes = data
        if data is not None:
            data.flags.writeable = False
        # Threads may read a local file's tail twice, which costs less than the lock of each file.
        self._reading = fork_safe_lock() if source.is_remote else None
        # Returns what changes when the file does; None if unknown.
        self.stamp: Callable[[], object] = getattr(source, "stamp", lambda: None)
        self.current_stamp: Callable[[], object] = getattr(source, "current_stamp", self.stamp)
        self.stamp_as_read: object = getattr(source, "stamp_as_read", None)
        self.file_identity: Callable[[], object] = getattr(source, "file_identity", lambda: None)

    @property
    def num_requests(self) -> int:
        """Number of reads of the inner source so far."""
        return self._source.num_requests

    @property
    def num_bytes(self) -> int:
        """Number of bytes read from the inner source so far."""
        return self._source.num_bytes

    @property
    def tail(self) -> np.ndarray:
        """Bytes at the end of the file (uint8, read-only)."""
        return self._tail()[: self.size - self._start]

    def _tail(self) -> np.ndarray:
        """Return the tail and the readable bytes after it, read at the first call."""
        data = self._bytes
        if data is None and self._reading is None:
            data = allocate_with_slack(self.size - self._start)
            self._source.read_into(self._start, data[: self.size - self._start])
            data.flags.writeable = False
            self._bytes = data
        elif data is None:
            with self._reading:  # type: ignore[union-attr]
                data = self._bytes
                if data is None:
                    (data,) = self._source.read_ranges([(self._start, self.size)])
                    data.flags.writeable = False
                    self._bytes = data
        return data

    def contains(self, start: int, stop: int) -> bool:
        """Whether bytes `start` to `stop` (exclusive) exist."""
        return self._source.contains(start, stop)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Return a view of the tail, or of what the inner source has in memory."""
        if position < self._start or length < 0 or position + length > self.size:
            return self._source.view(position, length, slack)
        tail = self._tail() if self._bytes is None else self._bytes
        within = position - self._start
        if within + length + slack > len(tail):
            return None
        return tail[within : within + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with the bytes from a position."""
        if position < self._start:
            self._source.read_into(position, out)
            return
        kept = self._tail_view(position, position + len(out))
        if kept is None:
            self._source.read_into(position, out)
        else:
            out[:] = kept[: len(out)]

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges; requests only those not wholly in the tail."""
        ranges = [*ranges]
        for _, stop in ranges:
            if stop > self._start:
                break
        else:
            return self._source.read_ranges(ranges)
        wanted = check_byte_ranges(ranges, self)
        return read_missing_ranges([self._tail_view(start, stop) for start, stop in wanted], wanted, self._source)

    def _tail_view(self, start: int, stop: int) -> np.ndarray | None:
        """Return a view from these bytes to the end of the tail and its slack; None if they are not all in the tail."""
        if not self._start <= start <= stop <= self.size:
            return None
        tail = self._tail()
        return tail[start - self._start : stop - self._start + len(tail) - (self.size - self._start)]

    def close(self) -> None:
        """Close the inner source and release the tail."""
        self._source.close()
        self._bytes = None
