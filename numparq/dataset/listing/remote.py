"""List directories of fsspec and pyarrow file systems with as few requests as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from numparq.io.remote_errors import explain_remote_errors
from numparq.io.remote_info import fetch_info, is_http
from numparq.io.remote_source import MAX_CONCURRENT_REQUESTS
from numparq.io.remote_version import info_version
from numparq.util.worker_pool import WorkerPool

from .files import DirectoryListing, FileEntry
from .patterns import GlobPattern, has_wildcard, is_hidden_path


class RemoteLister:
    """Lists files on an fsspec or pyarrow file system."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem
        self._lists = _ArrowLister(filesystem) if hasattr(filesystem, "open_input_file") else _FsspecLister(filesystem)

    def stat(self, path: str) -> FileEntry | None:
        """Return the entry of a file, by one request; None if the path is a directory.

        Raises FileNotFoundError if the path does not exist.
        """
        self._forget(path)
        with explain_remote_errors(path):
            return self._lists.stat(path)

    def is_pattern(self, path: str) -> bool:
        """Whether a path that no file has may be a glob; "?" begins the query of a URL."""
        return has_wildcard(path.replace("?", "") if is_http(self._filesystem) else path)

    def stat_all(self, paths: Sequence[str]) -> list[FileEntry | None]:
        """Return the entries of several paths, with concurrent requests."""
        found: list[FileEntry | None] = [None] * len(paths)

        def stat_one(place: int) -> None:
            found[place] = self.stat(paths[place])

        _side_by_side(partial(stat_one, place) for place in range(len(paths)))
        return found

    def existing_directories(self, paths: Sequence[str]) -> list[str]:
        """Return the paths at which there is a directory, with concurrent requests; none on HTTP servers."""
        found: dict[str, bool] = {}
        if is_http(self._filesystem):  # to fsspec, every URL is a file
            return []

        def check(path: str) -> None:
            try:
                with explain_remote_errors(path):
                    found[path] = self._lists.stat(path) is None
            except OSError:
                found[path] = False

        _side_by_side(partial(check, path) for path in paths)
        return [path for path in paths if found[path]]

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a directory, without its cached listing."""
        self._forget(folder)
        start = len(folder.rstrip("/")) + 1
        with explain_remote_errors(folder):
            found = self._lists.find(folder)
        return [name for entry in found if "/" not in (name := entry.path[start:])]

    def read(self, path: str) -> bytes:
        """Read a file."""
        with explain_remote_errors(path):
            if hasattr(self._filesystem, "open_input_file"):
                with self._filesystem.open_input_file(path) as file:
                    return bytes(file.read())
            return bytes(self._filesystem.cat_file(path))

    def spellings(self, folder: str) -> tuple[str, ...]:
        """Return the paths of a directory: one, as links are unknown here."""
        return (folder,)

    def walk(self, base: str) -> DirectoryListing:
        """List the files below a directory; subclasses hide uncommitted ones."""
        return self.list_all(base)

    def list_all(self, base: str) -> DirectoryListing:
        """List all files below a directory, including those of unfinished writes and those that a commit replaces."""
        self._forget(base)
        with explain_remote_errors(base):
            return _separate_hidden(self._lists.find(base), base)

    def _forget(self, path: str) -> None:
        """Drop fsspec's cached listing of a path: other processes may have written since."""
        if hasattr(self._filesystem, "invalidate_cache"):
            self._filesystem.invalidate_cache(path)

    def glob(self, pattern: str) -> DirectoryListing:
        """List the files that a pattern matches, and those in directories that it matches."""
        self._forget(GlobPattern.split_base(pattern)[0])
        with explain_remote_errors(pattern):
            entries, directories = self._lists.glob(pattern)
        inside: list[DirectoryListing] = [DirectoryListing()] * len(directories)

        def walk_one(place: int) -> None:
            inside[place] = self.walk(directories[place])

        _side_by_side(partial(walk_one, place) for place in range(len(directories)))
        return DirectoryListing.from_entries(chain(entries, *(part.files for part in inside)))


def _side_by_side(jobs: Iterable[Callable[[], None]]) -> None:
    jobs = list(jobs)
    with WorkerPool(max(1, min(MAX_CONCURRENT_REQUESTS, len(jobs)))) as crew:
        crew.run(jobs)


def _separate_hidden(entries: Iterable[FileEntry], base: str) -> DirectoryListing:
    """Build a listing that keeps hidden entries apart."""
    files: list[FileEntry] = []
    hidden: list[FileEntry] = []
    start = len(base.rstrip("/")) + 1
    for entry in entries:
        (hidden if is_hidden_path(entry.path[start:]) else files).append(entry)
    return DirectoryListing.from_entries(files, hidden)


class _FsspecLister:
    """Requests to an fsspec file system."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def stat(self, path: str) -> FileEntry | None:
        info = fetch_info(self._filesystem, path)
        return None if info.get("type") == "directory" else _fsspec_entry(path, info)

    def find(self, base: str) -> list[FileEntry]:
        return _files_of(self._filesystem.find(base, detail=True))

    def glob(self, pattern: str) -> tuple[list[FileEntry], list[str]]:
        matched = self._filesystem.glob(pattern, detail=True)
        base, parts = GlobPattern.split_base(pattern)
        start = len(base.rstrip("/")) + 1
        directories = []
        if not pattern.rstrip("/").endswith("**"):
            directories = [path for path, info in matched.items() if info.get("type") == "directory"]
        entries = [entry for entry in _files_of(matched) if parts.matches(entry.path[start:])]
        return entries, [path for path in directories if parts.matches(path[start:].rstrip("/") + "/file")]


def _files_of(infos: dict[str, dict[str, Any]]) -> list[FileEntry]:
    """Build the entries of files from fsspec's infos, without the directory markers of object stores."""
    return [
        _fsspec_entry(path, info)
        for path, info in infos.items()
        if info.get("type") != "directory" and not path.endswith("/")
    ]


def _fsspec_entry(path: str, info: dict[str, Any]) -> FileEntry:
    size = info.get("size")
    modified = next((seconds for key in _TIMES if (seconds := _seconds(info.get(key))) is not None), None)
    return FileEntry(path, size if isinstance(size, int) else None, info_version(info), modified)


def _seconds(time: Any) -> float | None:
    """Return a time in seconds since 1970; None for text and for datetimes without a time zone."""
    if isinstance(time, datetime):
        return time.timestamp() if time.tzinfo is not None else None
    return float(time) if isinstance(time, (int, float)) and not isinstance(time, bool) else None


_TIMES = ("LastModified", "last_modified", "mtime", "modified")


class _ArrowLister:
    """Requests to a pyarrow file system."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def stat(self, path: str) -> FileEntry | None:
        from pyarrow.fs import FileType

        info = self._filesystem.get_file_info(path)
        if info.type == FileType.NotFound:
            raise FileNotFoundError(path)
        return None if info.type == FileType.Directory else _arrow_entry(info)

    def find(self, base: str) -> list[FileEntry]:
        from pyarrow.fs import FileSelector

        infos = self._filesystem.get_file_info(FileSelector(base, recursive=True))
        return [_arrow_entry(info) for info in infos if info.is_file]

    def glob(self, pattern: str) -> tuple[list[FileEntry], list[str]]:
        base, parts = GlobPattern.split_base(pattern)
        start = len(base.rstrip("/")) + 1 if base else 0
        return [entry for entry in self.find(base) if parts.matches(entry.path[start:])], []


def _arrow_entry(info: Any) -> FileEntry:
    if info.mtime_ns is None:
        return FileEntry(info.path, info.size)
    return FileEntry(info.path, info.size, str(info.mtime_ns), info.mtime_ns / 10**9)
