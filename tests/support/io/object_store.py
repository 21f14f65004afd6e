"""An in-memory object store as an fsspec filesystem that counts requests and simulates latency."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

__all__ = ["ObjectStore", "SequentialObjectStore"]


class ObjectStore(MemoryFileSystem):
    """Files in memory, each store with its own. Many ranges asked for by `cat_ranges` are answered side by side.

    ``store.pipe("/a.parquet", data)`` puts a file there, and ``read_parquet("/a.parquet", filesystem=store)`` reads it.
    Only what is read by `cat_file` and `cat_ranges` counts, and not what is read through `open`.

    Parameters
    ----------
    latency : float
        Seconds until a request's first byte.
    bandwidth : float
        Bytes a second, which all requests share: one is sent behind the other.

    Attributes
    ----------
    requests : list of (int, int)
        First byte, and the byte behind the last, as they were asked for.
    num_bytes : int
        Those sent.
    most_at_once : int
        The largest number of requests under way at the same time.
    round_trips : int
        Waves of requests: the length of the longest chain in which each request began after the one before it had
        been answered. Those that are under way together are never two of them.
    infos : int
        How often a file's size was asked for. Neither a request nor a round trip, but it takes its latency as well.
    """

    protocol = "objects"
    cachable = False

    def __init__(self, latency: float = 0.0, bandwidth: float = float("inf"), **options: Any) -> None:
        super().__init__(**options)
        self.store: dict = {}
        self.pseudo_dirs = [""]
        self.latency = latency
        self.bandwidth = bandwidth
        self._lock = threading.Lock()
        self._free_at = 0.0  # when the wire has sent all that it was given
        self.reset()

    def reset(self) -> None:
        """Reset the counters."""
        self.requests: list[tuple[int, int]] = []
        self.num_bytes = self.round_trips = self.most_at_once = self.infos = 0
        self._under_way = self._answered = 0  # requests; the round trips of those that were answered

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return super()._strip_protocol(path.rpartition("://")[2] if isinstance(path, str) else path)

    def info(self, path: str, **options: Any) -> dict:
        with self._lock:
            self.infos += 1
        time.sleep(self.latency)
        return super().info(path, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        with self._asked([(start or 0, end or -1)]):
            data = self._answer(path, start, end)
            self._send(len(data))
            return data

    def cat_ranges(
        self,
        paths: list[str],
        starts: list[int],
        ends: list[int],
        max_gap: Any = None,
        on_error: str = "return",
        **options: Any,
    ) -> list:
        with self._asked(list(zip(starts, ends, strict=True))):
            answers: list = []
            for path, start, end in zip(paths, starts, ends, strict=True):
                try:
                    answers.append(self._answer(path, start, end))
                except Exception as error:
                    if on_error != "return":
                        raise
                    answers.append(error)
            self._send(sum(len(answer) for answer in answers if isinstance(answer, bytes)))
            return answers

    def _answer(self, path: str, start: int | None, end: int | None) -> bytes:
        """Return the bytes of a range; tests override it to return others."""
        return super().cat_file(path, start, end)

    @contextmanager
    def _asked(self, ranges: list[tuple[int, int]]) -> Iterator[None]:
        with self._lock:
            self.requests += ranges
            self._under_way += len(ranges)
            self.most_at_once = max(self.most_at_once, self._under_way)
            round_trip = self._answered + 1
            self.round_trips = max(self.round_trips, round_trip)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= len(ranges)
                self._answered = max(self._answered, round_trip)

    def _send(self, num_bytes: int) -> None:
        """Wait while the answer is sent."""
        now = time.monotonic()
        with self._lock:
            self.num_bytes += num_bytes
            self._free_at = max(self._free_at, now + self.latency) + num_bytes / self.bandwidth
            done = self._free_at
        time.sleep(max(done - now, 0))


class SequentialObjectStore(ObjectStore):
    """A store whose `cat_ranges` is fsspec's default, one request per range in sequence."""

    cat_ranges = AbstractFileSystem.cat_ranges
