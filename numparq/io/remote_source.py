"""Sources on fsspec and pyarrow file systems, with concurrent requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from numparq.errors import InvalidFileError, UnsupportedError
from numparq.util.pluralize import agree_verb, pluralize
from numparq.util.worker_pool import WorkerPool

from .filesystem import protocols
from .remote_errors import causes, explain_remote_error, explain_remote_errors, http_status
from .remote_info import fetch_info
from .remote_version import RemoteStamp, has_version, info_version, replaced_file_error
from .source import ByteRanges, ReadLoopSource, Source, allocate_with_slack, check_byte_ranges, truncated_file_error

# Concurrent requests where the file system makes them one by one. Object stores serve 50 to 100 MB/s per connection:
# 16 fill a fast network and do not burden a small machine.
MAX_CONCURRENT_REQUESTS = 16
# fsspec file systems with one connection or cursor for all readers.
_SERIAL_PROTOCOLS = frozenset(("ftp", "libarchive", "tar"))
_SERIAL_LOCKS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_NO_LOCK: AbstractContextManager[object] = nullcontext()


class RemoteSource(ReadLoopSource):
    """A file read by requests with a latency.

    A request returns all of its bytes or fails. It is not retried here: the file system does that where it helps.
    `stamp_as_read` is the stamp of the file when it was opened or listed.
    """

    is_remote = True

    def __init__(self, name: str, size: int, version: str | None) -> None:
        self.name = name
        self.size = size
        self.stamp_as_read = RemoteStamp(size, version)
        self._num_checked = 1  # requests after which the file was unchanged: the bytes of one are of one version
        self._pool: WorkerPool | None = None
        self._making_crew = threading.Lock()
        self._closed = False

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` by one request."""
        self._check_open()
        if position < 0 or position + len(out) > self.size:
            raise truncated_file_error(self, position, len(out))
        if len(out):
            self._fill(position, out, self._request(position, position + len(out)))

    def read_ranges(self, ranges: ByteRanges) -> list[np.ndarray]:
        """Read all byte ranges by concurrent requests."""
        self._check_open()
        wanted = check_byte_ranges(ranges, self)
        pieces = [allocate_with_slack(stop - start) for start, stop in wanted]
        asked = [place for place, (start, stop) in enumerate(wanted) if start < stop]
        if len(asked) == 1:
            start, stop = wanted[asked[0]]
            self._fill(start, pieces[asked[0]][: stop - start], self._request(start, stop))
        elif asked:
            targets = [pieces[place][: wanted[place][1] - wanted[place][0]] for place in asked]
            self._read_many([wanted[place] for place in asked], targets)
        return pieces

    def stamp(self) -> RemoteStamp:
        """Return the present stamp; asks the file system only if bytes were read since it was last asked."""
        num_requests = self.num_requests
        if num_requests <= self._num_checked:
            return self.stamp_as_read
        found = self.current_stamp()
        if found == self.stamp_as_read:
            self._num_checked = num_requests
        return found

    def current_stamp(self) -> RemoteStamp:
        """Return the present stamp, by a request; that of the opened file if it is gone, since nothing replaced it."""
        try:
            return self._request_stamp()
        except FileNotFoundError:
            return self.stamp_as_read

    def _request_stamp(self) -> RemoteStamp:
        """Return the present stamp; `stamp_as_read` if nothing says that the file is another one."""
        raise NotImplementedError

    def _request(self, start: int, stop: int) -> bytes:
        """Request bytes `start` to `stop` (exclusive)."""
        raise NotImplementedError

    def _read_many(self, ranges: Sequence[tuple[int, int]], targets: Sequence[np.ndarray]) -> None:
        """Read several byte ranges into `targets` by threads."""

        def job(start: int, stop: int, out: np.ndarray) -> None:
            self._fill(start, out, self._request(start, stop))

        with self._making_crew:
            self._pool = self._pool or WorkerPool(MAX_CONCURRENT_REQUESTS)
        jobs: list[Callable[[], None]] = [
            partial(job, start, stop, out) for (start, stop), out in zip(ranges, targets, strict=True)
        ]
        self._pool.run(jobs)

    def _fill(self, start: int, out: np.ndarray, data: bytes) -> None:
        """Copy a response into `out` after checking that it has the requested length."""
        self._count(len(data))
        if len(data) < len(out):
            raise self._short_file_error(
                f"{pluralize(len(out), 'byte')} from byte {start:,} {agree_verb(len(out), 'were')} requested, "
                f"but {len(data):,} {agree_verb(len(data), 'were')} returned"
            )
        if len(data) > len(out):
            raise UnsupportedError(
                f"{pluralize(len(out), 'byte')} from byte {start:,} {agree_verb(len(out), 'were')} requested, "
                f"but {len(data):,} {agree_verb(len(data), 'were')} returned: the server "
                "does not support byte ranges; download the file",
                file=self.name,
            )
        out[:] = np.frombuffer(data, np.uint8)

    def _short_file_error(self, finding: str) -> InvalidFileError:
        """Return the error for a file that has fewer bytes than when it was opened."""
        if self.current_stamp() != self.stamp_as_read:
            return replaced_file_error(self.name)
        reason = "the file was truncated since it was opened, or the file system returns incomplete reads"
        return InvalidFileError(f"{finding}: {reason}", file=self.name)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.name} is closed: nothing more can be read")

    def close(self) -> None:
        """Close the source; waits for requests under way."""
        self._closed = True
        if self._pool is not None:
            self._pool.__exit__()


class FsspecSource(RemoteSource):
    """A file of an fsspec file system.

    Requests run concurrently in the file system or in threads, except on those that serve one at a time.
    """

    def __init__(
        self, filesystem: Any, path: str, name: str, size: int | None = None, version: str | None = None
    ) -> None:
        if size is None:
            size, version = _file_stamp(filesystem, path, name)
        super().__init__(name, size, version)
        self._filesystem = filesystem
        self._path = path
        self._has_batch_requests = _has_own_cat_ranges(filesystem)
        in_turns = not _SERIAL_PROTOCOLS.isdisjoint(protocols(filesystem))
        # One lock for all files of the file system.
        self._lock: AbstractContextManager[object] = (
            _SERIAL_LOCKS.setdefault(filesystem, threading.Lock()) if in_turns else _NO_LOCK
        )

    def _request_stamp(self) -> RemoteStamp:
        with explain_remote_errors(self.name):
            if hasattr(self._filesystem, "invalidate_cache"):
                self._filesystem.invalidate_cache(self._path)
            info = fetch_info(self._filesystem, self._path)
        size, version = info.get("size"), self.stamp_as_read.version
        if size in (self.size, None) and has_version(info, version):
            return self.stamp_as_read
        return RemoteStamp(size, info_version(info))

    def _request(self, start: int, stop: int) -> bytes:
        try:
            with self._lock:
                data: bytes = self._filesystem.cat_file(self._path, start=start, end=stop)
        except Exception as error:
            self._explain(error)
            raise
        return data

    def _explain(self, error: Exception) -> None:
        """Raise the cause of a failed request, if it is another exception than this one."""
        if any(http_status(cause) == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE for cause in causes(error)):
            raise self._short_file_error("the server has no such bytes") from error
        explained = explain_remote_error(error, self.name)
        if explained is not error:
            raise explained from error

    def _read_many(self, ranges: Sequence[tuple[int, int]], targets: Sequence[np.ndarray]) -> None:
        if not self._has_batch_requests:
            super()._read_many(ranges, targets)
            return
        self._read_across([(self, start, stop) for start, stop in ranges], targets)

    @staticmethod
    def _read_across(wanted: Sequence[tuple[FsspecSource, int, int]], targets: Sequence[np.ndarray]) -> None:
        """Read ranges of files on one file system by a single `cat_ranges` call, which makes concurrent requests."""
        starts, stops = [start for _, start, _ in wanted], [stop for *_, stop in wanted]
        paths = [source._path for source, *_ in wanted]
        with explain_remote_errors(wanted[0][0].name):
            answers = wanted[0][0]._filesystem.cat_ranges(paths, starts, stops, on_error="return")
        for (source, start, _), out, answer in zip(wanted, targets, answers, strict=True):
            if isinstance(answer, BaseException):
                if isinstance(answer, Exception):
                    source._explain(answer)
                raise answer
            source._fill(start, out, answer)


def read_ranges_of_files(wanted: Sequence[tuple[Source, int, int]]) -> list[np.ndarray]:
    """Read one byte range (source, start, exclusive end) of each file concurrently; all are on one file system.

    Each array is followed by SLACK readable bytes; InvalidFileError for a range outside its file or a short response.
    """
    checked = [(source, *check_byte_ranges([(start, stop)], source)[0]) for source, start, stop in wanted]
    asked = [place for place, (_, start, stop) in enumerate(checked) if start < stop]
    first = checked[asked[0]][0] if asked else None
    pieces = [allocate_with_slack(stop - start) for _, start, stop in checked]
    if isinstance(first, FsspecSource) and first._has_batch_requests:
        targets = [pieces[place][: checked[place][2] - checked[place][1]] for place in asked]
        FsspecSource._read_across([checked[place] for place in asked], targets)  # type: ignore[misc]
        return pieces

    def read(place: int) -> None:
        source, start, stop = checked[place]
        source.read_into(start, pieces[place][: stop - start])

    with WorkerPool(max(1, min(MAX_CONCURRENT_REQUESTS, len(asked)))) as crew:
        crew.run(partial(read, place) for place in asked)
    return pieces


def _file_stamp(filesystem: Any, path: str, name: str) -> tuple[int, str | None]:
    """Return the size and version of a file, by a request."""
    with explain_remote_errors(name):
        info = fetch_info(filesystem, path)
    if info.get("type") == "directory":
        raise UnsupportedError(
            "path is a directory; numparq.read_parquet and numparq.Dataset read all of its files", file=name
        )
    size = info.get("size")
    if not isinstance(size, int):
        raise UnsupportedError("the file system does not report the file's size; download the file", file=name)
    return size, info_version(info)


def _has_own_cat_ranges(filesystem: Any) -> bool:
    """Whether a file system overrides fsspec's `cat_ranges`, which reads one range after the other."""
    from fsspec.spec import AbstractFileSystem

    return getattr(filesystem.cat_ranges, "__func__", None) is not AbstractFileSystem.cat_ranges


class ArrowSource(RemoteSource):
    """A file of a pyarrow file system."""

    def __init__(self, filesystem: Any, path: str, name: str) -> None:
        self._filesystem, self._path = filesystem, path
        self._file = filesystem.open_input_file(path)
        super().__init__(name, self._file.size(), self._version(self._file))

    def _version(self, file: Any) -> str | None:
        """Return the ETag that an object store sends with an open file, or else the modification time, by a look-up."""
        metadata = file.metadata()
        found = metadata.get("ETag") or metadata.get("Last-Modified")
        if found is None:
            found = self._filesystem.get_file_info(self._path).mtime_ns
        return None if found is None else str(found)

    def _request_stamp(self) -> RemoteStamp:
        with self._filesystem.open_input_file(self._path) as file:
            return RemoteStamp(file.size(), self._version(file))

    def _request(self, start: int, stop: int) -> bytes:
        data: bytes = self._file.read_at(stop - start, start)
        return data

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._file.close()
