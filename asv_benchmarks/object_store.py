"""A simulated object store: an fsspec filesystem over local files with latency and shared bandwidth."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

LATENCY = 0.05
BANDWIDTH = 100e6
CONNECTIONS = 64
KEYS_LISTED = 1_000
"""Keys that a request for a listing tells at most; the next one begins where it ended."""


@dataclass(frozen=True)
class Request:
    """A request: begin and end in seconds of `time.perf_counter`, and its bytes."""

    begin: float
    end: float
    bytes: int


def round_trips(requests: Sequence[Request]) -> int:
    """Return the length of the longest chain of sequential requests."""
    trips, free_at = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.end):
        if request.begin >= free_at:
            trips, free_at = trips + 1, request.end
    return trips


class ObjectStore(AbstractFileSystem):
    """Local files, by absolute paths, as if they were far away.

    Parameters
    ----------
    latency : float
        Seconds that every request takes, that for a file's size included.
    bandwidth : float
        Bytes per second of all requests together.

    Attributes
    ----------
    requests : list of Request
        All since it was made, or since the list was cleared.
    """

    protocol = "slowstore"
    cachable = False

    def __init__(self, latency: float = LATENCY, bandwidth: float = BANDWIDTH) -> None:
        super().__init__()
        self.latency = latency
        self.bandwidth = bandwidth
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._pool = ThreadPoolExecutor(CONNECTIONS)

    def _pass_time(self, begin: float, num_bytes: int) -> None:
        """Wait for a request made at `begin`: latency, queue for the bandwidth, transfer."""
        with self._lock:
            self._free_at = end = max(begin + self.latency, self._free_at) + num_bytes / self.bandwidth
        time.sleep(max(0.0, end - time.perf_counter()))
        self.requests.append(Request(begin, time.perf_counter(), num_bytes))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Return a file's size; takes one request."""
        self._pass_time(time.perf_counter(), 0)
        return _info(Path(self._strip_protocol(path)))

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """List a directory; the base class implements `glob` and `walk` with this and `find`."""
        local = Path(self._strip_protocol(path))
        found = [local] if local.is_file() else sorted(local.iterdir())
        self._pass_listing(len(found))
        return [_info(one) if detail else str(one) for one in found]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **options: Any
    ) -> Any:
        """List all keys with a prefix; directories follow from keys, as in real object stores."""
        local = Path(self._strip_protocol(path))
        files = [local] if local.is_file() else sorted(one for one in local.rglob("*") if one.is_file())
        self._pass_listing(len(files))
        found = set(files)
        if withdirs:
            found |= {parent for file in files for parent in file.parents if parent.is_relative_to(local)}
        depth = len(local.parts) + (maxdepth or len(local.parts) + 1_000)
        infos = {str(one): _info(one) for one in sorted(found) if len(one.parts) <= depth}
        return infos if detail else list(infos)

    def _pass_listing(self, num_keys: int) -> None:
        """Wait for the sequential requests of a listing; their bytes are not counted."""
        for _ in range(max(1, -(-num_keys // KEYS_LISTED))):
            self._pass_time(time.perf_counter(), 0)

    def modified(self, path: str) -> datetime:
        """Return the modification time of a file."""
        self._pass_time(time.perf_counter(), 0)
        return datetime.fromtimestamp(Path(self._strip_protocol(path)).stat().st_mtime, UTC)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Return a byte range; negative positions count from the end, as in HTTP."""
        return self._get(time.perf_counter(), path, start, end)

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **options: Any,
    ) -> list[Any]:
        """Return many ranges concurrently, as asynchronous filesystems do."""
        count = len(paths)
        firsts, lasts = ([given] * count if isinstance(given, int | None) else given for given in (starts, ends))
        return list(self._pool.map(self._get, [time.perf_counter()] * count, paths, firsts, lasts))

    def _get(self, begin: float, path: str, start: int | None, end: int | None) -> bytes:
        with Path(self._strip_protocol(path)).open("rb") as file:
            first, last, _ = slice(start, end).indices(file.seek(0, 2))
            file.seek(first)
            data = file.read(max(0, last - first))
        self._pass_time(begin, len(data))
        return data

    def _open(self, path: str, mode: str = "rb", **options: Any) -> StoredFile:
        return StoredFile(self, path, mode, **options)

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(path).removeprefix(f"{cls.protocol}://")


def _info(local: Path) -> dict[str, Any]:
    status, is_file = local.stat(), local.is_file()
    return {
        "name": str(local),
        "size": status.st_size if is_file else 0,
        "type": "file" if is_file else "directory",
        "mtime": status.st_mtime,
    }


class StoredFile(AbstractBufferedFile):
    """A file with fsspec's read-ahead, the default of real object stores."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)
