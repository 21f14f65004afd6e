"""Source with the end of the file in memory: the footer, and mostly the page indexes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .source import ByteRanges, Source, check_byte_ranges, read_missing_ranges

__all__ = ["TailSource"]


class TailSource:
    """A source in front of another: what lies within the end of the file costs no request.

    Parameters
    ----------
    source : Source
        The file; closed along with this.
    length : int
        Bytes at its end that are read at once, by one request, when one of them is first asked for.
    data : uint8 array, optional
        These bytes, where they are in memory already, with SLACK readable ones behind them.
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
        self._reading = threading.Lock()
        # Gives what changes when the file does; None where that cannot be told.
        self.stamp: Callable[[], object] = getattr(source, "stamp", lambda: None)

    @property
    def num_requests(self) -> int:
        """Reads so far of the source behind."""
        return self._source.num_requests

    @property
    def num_bytes(self) -> int:
        """The bytes that they brought."""
        return self._source.num_bytes

    @property
    def tail(self) -> np.ndarray:
        """The bytes at the end (uint8, read-only)."""
        return self._tail()[: self.size - self._start]

    def _tail(self) -> np.ndarray:
        """Give the bytes at the end and the readable ones behind them; reads them the first time."""
        with self._reading:
            if self._bytes is None:
                self._bytes = self._source.read_ranges([(self._start, self.size)])[0]
                self._bytes.flags.writeable = False
            return self._bytes

    def has(self, start: int, stop: int) -> bool:
        """Whether there are such bytes."""
        return self._source.has(start, stop)

    def view(self, position: int, length: int, slack: int) -> np.ndarray | None:
        """Give bytes of the end, or what the source behind has in memory."""
        if position < self._start or length < 0 or position + length > self.size:
            return self._source.view(position, length, slack)
        tail, within = self._tail(), position - self._start
        if within + length + slack > len(tail):
            return None
        return tail[within : within + length + slack]

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` with the bytes from a position."""
        kept = self._kept(position, position + len(out))
        if kept is None:
            self._source.read_into(position, out)
        else:
            out[:] = kept[: len(out)]

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read byte ranges; only those that do not lie within the end are asked for."""
        ranges = [*ranges]
        for _, stop in ranges:
            if stop > self._start:
                break
        else:
            return self._source.read_ranges(ranges)
        wanted = check_byte_ranges(ranges, self)
        return read_missing_ranges([self._kept(start, stop) for start, stop in wanted], wanted, self._source)

    def _kept(self, start: int, stop: int) -> np.ndarray | None:
        """Give bytes of the end, and readable ones behind them; None where they do not lie within."""
        if not self._start <= start <= stop <= self.size:
            return None
        tail = self._tail()
        return tail[start - self._start : stop - self._start + len(tail) - (self.size - self._start)]

    def close(self) -> None:
        """Close the source behind; the end of the file is let go of."""
        self._source.close()
        self._bytes = None
