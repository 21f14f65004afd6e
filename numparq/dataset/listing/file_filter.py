"""Listing options: which files of a directory are a dataset's, and where their partitions begin."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING

from numparq.errors import UnsupportedError

from .files import DirectoryListing, FileEntry
from .local import LocalLister
from .patterns import expand_braces

if TYPE_CHECKING:
    from .sink_log import Lister


@dataclass(frozen=True)
class FileFilter:
    """Files by name and modification time, as Spark's file sources select them.

    Attributes
    ----------
    base_path : str or None
        Directory below which directory names are partitions, by default the path that is read.
    name_pattern : str or None
        Glob pattern of file names, without directories.
    modified_after, modified_before : int or None
        Exclusive bounds of the modification time, in microseconds since 1970; times count in whole milliseconds.
    paths : frozenset of str or None
        Paths of the files, each of which must exist.
    """

    base_path: str | None = None
    name_pattern: str | None = None
    modified_after: int | None = None
    modified_before: int | None = None
    paths: frozenset[str] | None = None

    def select(self, found: DirectoryListing, lister: Lister) -> DirectoryListing:
        """Return the files of a listing that pass."""
        paths = found.paths if self.paths is None else [path for path in found.paths if path in self.paths]
        if self.name_pattern is not None:
            patterns = [re.compile(translate(pattern)).match for pattern in expand_braces(self.name_pattern)]
            paths = [path for path in paths if any(matches(path.rpartition("/")[2]) for matches in patterns)]
        if self.modified_after is not None or self.modified_before is not None:
            entries = [found.entries.get(path) or FileEntry(path) for path in paths]
            stats = stat_files(entries, lister)
            paths = [entry.path for entry, (at, _) in zip(entries, stats, strict=True) if self._is_in(at)]
        return DirectoryListing(paths, found.entries, found.hidden)

    def check_complete(self, paths: Iterable[str]) -> None:
        """Raise FileNotFoundError unless all files that must exist are among these paths."""
        for path in sorted((self.paths or frozenset()).difference(paths)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _is_in(self, modified: int) -> bool:
        return (self.modified_after is None or modified > self.modified_after) and (
            self.modified_before is None or modified < self.modified_before
        )


ALL_FILES = FileFilter()


@dataclass(frozen=True)
class ListingOptions:
    """Options of a listing: `table_format` as in `numparq.Dataset`; whether a directory without files is no error."""

    table_format: str = "auto"
    file_filter: FileFilter = ALL_FILES
    may_be_empty: bool = False


def stat_files(entries: Sequence[FileEntry], lister: Lister) -> list[tuple[int, int]]:
    """Return (modification time, size), looked up where the listing has none.

    Times are in microseconds, of whole milliseconds.
    """
    if isinstance(lister, LocalLister):
        stats = (os.stat(entry.staged_path or entry.path) for entry in entries)
        return [(status.st_mtime_ns // 10**6 * 1000, status.st_size) for status in stats]
    unknown = [entry.path for entry in entries if entry.modified is None or entry.size is None]
    known = dict(zip(unknown, lister.stat_all(unknown), strict=True))
    return [_known_stat(known.get(entry.path) or entry) for entry in entries]


def _known_stat(entry: FileEntry) -> tuple[int, int]:
    if entry.modified is None:
        raise UnsupportedError("the file system does not tell when the file was modified", file=entry.path)
    return round(entry.modified * 1e6) // 1000 * 1000, entry.size or 0
