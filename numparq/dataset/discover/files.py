"""Find the files of a dataset behind a directory, glob, list or URL, and their partitions."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from numparq.dataset.commit.consistent_listing import CommittedRemoteListing, list_consistently
from numparq.dataset.listing.files import (
    DataFile,
    DataFileList,
    DirectoryListing,
    FileEntry,
    PartitionIndex,
    data_file_from_entry,
)
from numparq.dataset.listing.local import list_local
from numparq.dataset.listing.patterns import COMMON_METADATA_FILE, METADATA_FILE, GlobPattern, has_wildcard
from numparq.dataset.listing.remote import RemoteLister
from numparq.dataset.partitions.partitioning import Partitioning, parse_partitioning
from numparq.errors import InvalidFileError, error_context
from numparq.io.filesystem import ResolvedPaths, resolve_paths
from numparq.typing import PathOrPaths, StorageOptions

__all__ = ["DatasetListing", "is_dataset_path", "list_files"]


@dataclass(frozen=True)
class DatasetListing:
    """Files of a dataset and their partitions.

    Attributes
    ----------
    files : DataFileList
        Files in row order: a directory's sorted by path, as pyarrow does; a list's in its own order.
    keys : tuple of str
        Partition keys.
    filesystem : fsspec or pyarrow file system, or None
        File system of the files; None for the local one.
    metadata_file, common_metadata_file : DataFile or None
        ``_metadata`` and ``_common_metadata``, if the dataset is a directory that has them.
    base : str
        Directory above all files; empty if several paths were given.
    hidden_paths : tuple of str
        Paths of hidden files and directories (with a final ``/``).
    is_single_file : bool
        Whether the path names one file.
    """

    files: DataFileList
    keys: tuple[str, ...] = ()
    filesystem: Any | None = None
    metadata_file: DataFile | None = None
    common_metadata_file: DataFile | None = None
    base: str = ""
    hidden_paths: tuple[str, ...] = ()
    is_single_file: bool = False


def list_files(
    path: PathOrPaths, *, partitioning: Any = "hive", storage_options: StorageOptions = None, filesystem: Any = None
) -> DatasetListing:
    """List the files of a path, directory, glob or URL, or of a list of these; hidden files are left out.

    Raises FileNotFoundError without any file, InvalidFileError for an empty directory or differing partition keys.
    """
    how = parse_partitioning(partitioning)
    several = isinstance(path, (list, tuple))
    paths: list[Any] = list(path) if isinstance(path, (list, tuple)) else [path]
    if not paths:
        raise ValueError("the list of files is empty")
    place = resolve_paths(paths, storage_options, filesystem)
    look = _LocalLister() if place.filesystem is None else CommittedRemoteListing(place.filesystem)
    parts = [_part(look, one) for one in place.paths] if not several else _parts(look, place.paths)
    if not several and parts[0].is_file:
        found = parts[0].found
        name_of = place.display_name if place.filesystem is None else lambda _: os.fsdecode(paths[0])
        only = DataFileList(found.paths, found.entries, PartitionIndex.from_values([()]), name_of)
        return DatasetListing(only, filesystem=place.filesystem, is_single_file=True)
    return _listing(parts, place, how, several)


def is_dataset_path(path: PathOrPaths, *, storage_options: StorageOptions = None, filesystem: Any = None) -> bool:
    """Whether a path stands for a dataset; False for one file, bytes, a file object, or if nothing is there.

    A local path costs a stat, a remote one a request; `DatasetListing.is_single_file` needs no extra request.
    """
    if isinstance(path, (list, tuple)):
        return True
    if not isinstance(path, (str, os.PathLike)):
        return False
    place = resolve_paths([path], storage_options, filesystem)
    (name,) = place.paths
    if place.filesystem is None:
        return os.path.isdir(name) or (has_wildcard(name) and not os.path.exists(name))
    if name.endswith("/") or os.fsdecode(path).endswith("/"):
        return True
    try:
        return RemoteLister(place.filesystem).stat(name) is None
    except FileNotFoundError:
        return has_wildcard(name)


# --- files of one path ------------------------------------------------------------------------------------------------


class _PathFiles(NamedTuple):
    """Files of one of the given paths; ``base`` is the directory above them."""

    base: str
    found: DirectoryListing
    is_file: bool = False
    is_directory: bool = False


class _LocalLister:
    """Local counterpart of `RemoteLister`."""

    def stat(self, path: str) -> FileEntry | None:
        status = os.stat(path)
        return None if stat.S_ISDIR(status.st_mode) else FileEntry(path, status.st_size)

    def stat_all(self, paths: Sequence[str]) -> list[FileEntry | None]:
        return [self.stat(path) for path in paths]

    def walk(self, base: str) -> DirectoryListing:
        return list_consistently(lambda: list_local(base), base)

    def glob(self, pattern: str) -> DirectoryListing:
        base, parts = GlobPattern.split_base(pattern)
        return list_local(base, parts) if os.path.isdir(base or ".") else DirectoryListing()


def _part(look: Any, path: str) -> _PathFiles:
    try:
        return _known_part(look, path, look.stat(path))
    except OSError:  # not only FileNotFoundError: a pattern may be an invalid file name
        if not has_wildcard(path):
            raise
        return _matched(look, path)


def _parts(look: Any, paths: list[str]) -> list[_PathFiles]:
    """List the files of each path; paths without wildcards are looked up concurrently."""
    plain = [path for path in paths if not has_wildcard(path)]
    known = dict(zip(plain, look.stat_all(plain), strict=True))
    return [_known_part(look, path, known[path]) if path in known else _part(look, path) for path in paths]


def _known_part(look: Any, path: str, entry: FileEntry | None) -> _PathFiles:
    if entry is not None:
        return _PathFiles(path.rpartition("/")[0], DirectoryListing.from_entries([entry]), is_file=True)
    base = path.rstrip("/") or path[:1]
    return _PathFiles(base, look.walk(base), is_directory=True)


def _matched(look: Any, pattern: str) -> _PathFiles:
    found = look.glob(pattern)
    if not found.paths:
        raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", pattern)
    return _PathFiles(GlobPattern.split_base(pattern)[0], found)


# --- files of all paths, and their partitions -------------------------------------------------------------------------


def _listing(parts: list[_PathFiles], place: ResolvedPaths, how: Partitioning, several: bool) -> DatasetListing:
    """Build the dataset's listing from the files of each path."""
    paths = [path for part in parts for path in part.found.paths]
    about = {path: entry for part in parts for path, entry in part.found.entries.items()}
    base = "" if several else parts[0].base
    hidden = [entry for part in parts for entry in part.found.hidden]
    noted = {}
    if parts[0].is_directory and not several:
        start = _start(base)
        noted = {entry.path[len(start) :]: entry for entry in hidden}
    metadata, common = (
        data_file_from_entry(noted[name], place.display_name(noted[name].path)) if name in noted else None
        for name in (METADATA_FILE, COMMON_METADATA_FILE)
    )
    if not paths and metadata is None and common is None:
        raise InvalidFileError("the directory has no Parquet files", file=place.display_name(place.paths[0]))
    keys, divided = _partitions(paths, _relative_to(parts, how, several), how)
    files = DataFileList(paths, about, divided, place.display_name)
    return DatasetListing(
        files, keys, place.filesystem, metadata, common, base, tuple(sorted(entry.path for entry in hidden))
    )


def _start(base: str) -> str:
    """Return the prefix of all paths below a directory: empty, or ending with "/"."""
    return base if not base or base.endswith("/") else base + "/"


def _relative_to(parts: list[_PathFiles], how: Partitioning, several: bool) -> str:
    """Return the prefix to remove from paths before directory names are parsed as partitions.

    This is a given directory; for other paths, nothing (Hive names) or the common parent (positional names).
    """
    if parts[0].is_directory and not several:
        return _start(parts[0].base)
    if how.kind == "hive":
        return ""
    common = parts[0].base.split("/")
    for part in parts[1:]:
        same = [one == other for one, other in zip(common, part.base.split("/"), strict=False)]
        common = common[: same.index(False) if False in same else len(same)]
    return _start("/".join(common) or ("/" if parts[0].base[:1] == "/" else ""))


def _partitions(paths: list[str], start: str, how: Partitioning) -> tuple[tuple[str, ...], PartitionIndex]:
    """Return the partition keys, and the partition of each file by the names of its directories."""
    if how.kind == "none" or not paths:
        return (), PartitionIndex.from_values([()] * len(paths))
    directories = [path.rpartition("/")[0] for path in paths]
    examples = dict(zip(reversed(directories), reversed(paths), strict=True))  # first file of each directory
    found: dict[str, dict[str, str | None]] = {}
    for directory in dict.fromkeys(directories):
        with error_context(file=examples[directory]):
            found[directory] = how.parse_path((directory + "/")[len(start) :].rstrip("/"))
    first = directories[0]
    keys = how.names if how.kind == "positions" else tuple(found[first])
    wanted = set(keys)
    for directory, pairs in found.items():
        if pairs.keys() != wanted:
            raise _disagreement(keys, tuple(pairs), examples[first], examples[directory], how)
    partitions, which = PartitionIndex.from_values(tuple([pairs[key] for key in keys]) for pairs in found.values())
    numbers = dict(zip(found, which.tolist(), strict=True))
    return keys, PartitionIndex(
        partitions, np.fromiter(map(numbers.__getitem__, directories), np.intp, len(directories))
    )


def _disagreement(
    keys: tuple[str, ...], others: tuple[str, ...], first: str, path: str, how: Partitioning
) -> InvalidFileError:
    if how.kind == "positions":
        wanted = ", ".join(map(repr, keys))
        return InvalidFileError(f"the path has too few directories for the partition columns {wanted}", file=path)
    one, another = (" and ".join(map(repr, names)) or "no keys" for names in (keys, others))
    return InvalidFileError(
        f"the file is partitioned by {another}, but {first!r} by {one}; "
        "partitioning=None reads the files without these columns",
        file=path,
    )
