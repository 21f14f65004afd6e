"""Find the files of a dataset behind a directory, glob, list or URL, and their partitions."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from numparq.dataset.commit.consistent_listing import CommittedRemoteListing, list_consistently
from numparq.dataset.listing.file_filter import ALL_FILES, ListingOptions
from numparq.dataset.listing.files import (
    DataFile,
    DataFileList,
    DirectoryListing,
    FileEntry,
    PartitionIndex,
    data_file_from_entry,
)
from numparq.dataset.listing.local import LocalLister, list_local
from numparq.dataset.listing.patterns import (
    COMMON_METADATA_FILE,
    METADATA_FILE,
    GlobPattern,
    expand_braces,
    has_wildcard,
)
from numparq.dataset.listing.remote import RemoteLister
from numparq.dataset.listing.table_formats import TableFileSelector
from numparq.dataset.partitions.partitioning import Partitioning, parse_partitioning
from numparq.errors import InvalidFileError, error_context
from numparq.io.filesystem import ResolvedPaths, resolve_paths
from numparq.io.source import Source
from numparq.typing import PathOrPaths, StorageOptions


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
    is_single_file, is_directory : bool
        Whether the path names one file, or one directory.
    named_paths : frozenset of str
        Files that were given by name, not found in a directory or by a pattern.
    """

    files: DataFileList
    keys: tuple[str, ...] = ()
    filesystem: Any | None = None
    metadata_file: DataFile | None = None
    common_metadata_file: DataFile | None = None
    base: str = ""
    is_single_file: bool = False
    is_directory: bool = False
    named_paths: frozenset[str] = frozenset()


class EmptyDatasetError(InvalidFileError):
    """A directory has no Parquet files, so that nothing tells its columns."""


_ALL_FILES = ListingOptions()


def list_source(source: Source) -> DatasetListing:
    """List the only file of a source that is open, such as bytes in memory."""
    name = source.name
    only = DataFileList([name], {}, PartitionIndex.from_values([()]), lambda _: name)
    return DatasetListing(only, is_single_file=True, named_paths=frozenset([name]))


def list_files(
    path: PathOrPaths,
    *,
    partitioning: Any = "hive",
    options: ListingOptions = _ALL_FILES,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
) -> DatasetListing:
    """List the files of a path, directory, glob or URL, or of a list of these; hidden files are left out.

    Raises FileNotFoundError without any file, InvalidFileError for differing partition keys, EmptyDatasetError for a
    directory without files unless `options` allow that, and UnsupportedError for a table of another system. A path that
    names one file is read whatever it belongs to.
    """
    how = parse_partitioning(partitioning)
    several = isinstance(path, (list, tuple))
    paths: list[Any] = list(path) if isinstance(path, (list, tuple)) else [path]
    if not paths:
        raise ValueError("the list of files is empty")
    place = resolve_paths(paths, storage_options, filesystem)
    look = _LocalLister() if place.filesystem is None else CommittedRemoteListing(place.filesystem)
    try:
        parts = [_part(look, one) for one in place.paths] if not several else _parts(look, place.paths)
    except OSError as error:
        given = dict(zip(place.paths, map(os.fsdecode, paths), strict=True))
        if place.filesystem is not None:  # a local path is named as resolved, ~ expanded
            error.filename = given.get(error.filename, error.filename)
        raise
    chosen = options.file_filter
    if not several and parts[0].is_file and chosen == ALL_FILES:
        found = parts[0].found
        name_of = place.display_name if place.filesystem is None else lambda _: os.fsdecode(paths[0])
        only = DataFileList(found.paths, found.entries, PartitionIndex.from_values([()]), name_of)
        return DatasetListing(only, filesystem=place.filesystem, is_single_file=True)
    data = TableFileSelector(look, options.table_format)
    parts = [part._replace(found=data.select(part.found, part.base if part.is_directory else None)) for part in parts]
    parts = [part._replace(found=chosen.select(part.found, look)) for part in parts]
    chosen.check_complete(path for part in parts for path in part.found.paths)
    start = _relative_to(parts, how, several)
    if chosen.base_path is not None:
        start = _checked_start(resolve_paths([chosen.base_path], storage_options, filesystem).paths[0], parts)
    listing = _listing(parts, place, how, start, several)
    if chosen.paths is not None:
        listing = replace(listing, named_paths=chosen.paths)
    if not (options.may_be_empty or listing.files or listing.metadata_file or listing.common_metadata_file):
        which = "" if chosen == ALL_FILES else " that the options for names and times select"
        raise EmptyDatasetError(f"the directory has no Parquet files{which}", file=place.display_name(place.paths[0]))
    return listing


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
    look = RemoteLister(place.filesystem)
    try:
        return look.stat(name) is None
    except FileNotFoundError:
        return look.is_pattern(name)


# --- files of one path ------------------------------------------------------------------------------------------------


# Errors of a pattern that is looked up as a name.
_NO_SUCH_NAME = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP)


class _PathFiles(NamedTuple):
    """Files of one of the given paths; ``base`` is the directory above them."""

    base: str
    found: DirectoryListing
    is_file: bool = False
    is_directory: bool = False


class _LocalLister(LocalLister):
    """Lists local files with each commit whole or not at all."""

    def walk(self, base: str) -> DirectoryListing:
        return list_consistently(lambda: list_local(base), base)

    def glob(self, pattern: str) -> DirectoryListing:
        base, parts = GlobPattern.split_base(pattern)
        return list_local(base, parts) if os.path.isdir(base or ".") else DirectoryListing()


def _part(look: Any, path: str) -> _PathFiles:
    try:
        return _known_part(look, path, look.stat(path))
    except OSError as error:
        if not look.is_pattern(path) or error.errno not in _NO_SUCH_NAME:
            raise
        return _matched(look, path)


def _parts(look: Any, paths: list[str]) -> list[_PathFiles]:
    """List the files of each path; paths without wildcards are looked up concurrently."""
    plain = [path for path in paths if not look.is_pattern(path)]
    known = dict(zip(plain, look.stat_all(plain), strict=True))
    return [_known_part(look, path, known[path]) if path in known else _part(look, path) for path in paths]


def _known_part(look: Any, path: str, entry: FileEntry | None) -> _PathFiles:
    if entry is not None:
        return _PathFiles(path.rpartition("/")[0], DirectoryListing.from_entries([entry]), is_file=True)
    base = path.rstrip("/") or path[:1]
    return _PathFiles(base, look.walk(base), is_directory=True)


def _matched(look: Any, pattern: str) -> _PathFiles:
    parts = [part for one in expand_braces(pattern) for part in _matched_by(look, one) if part.found.paths]
    if not parts:
        with suppress(FileNotFoundError, NotADirectoryError):  # fsspec finds nothing where a listing fails
            look.stat(GlobPattern.split_base(pattern)[0] if has_wildcard(pattern) else pattern)
        raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", pattern)
    found = DirectoryListing(
        sorted({path for part in parts for path in part.found.paths}),
        {path: entry for part in parts for path, entry in part.found.entries.items()},
        [entry for part in parts for entry in part.found.hidden],
    )
    return _PathFiles(_common_base(parts), found)


def _matched_by(look: Any, pattern: str) -> list[_PathFiles]:
    """Return the files that a pattern without braces matches."""
    try:
        if has_wildcard(pattern):
            return [_PathFiles(GlobPattern.split_base(pattern)[0], look.glob(pattern))]
        return [_known_part(look, pattern, look.stat(pattern))]
    except (FileNotFoundError, NotADirectoryError):
        return []


# --- files of all paths, and their partitions -------------------------------------------------------------------------


def _listing(
    parts: list[_PathFiles], place: ResolvedPaths, how: Partitioning, start: str, several: bool
) -> DatasetListing:
    """Build the dataset's listing from the files of each path; partitions are the directories below ``start``."""
    paths = [path for part in parts for path in part.found.paths]
    about = {path: entry for part in parts for path, entry in part.found.entries.items()}
    base = "" if several else parts[0].base
    noted = {}
    is_directory = parts[0].is_directory and not several
    if is_directory:
        noted = {entry.path[len(_start(base)) :]: entry for entry in parts[0].found.hidden}
    metadata, common = (
        data_file_from_entry(noted[name], place.display_name(noted[name].path)) if name in noted else None
        for name in (METADATA_FILE, COMMON_METADATA_FILE)
    )
    keys, divided = _partitions(paths, start, how)
    files = DataFileList(paths, about, divided, place.display_name)
    named = frozenset(path for part in parts if part.is_file for path in part.found.paths)
    return DatasetListing(
        files, keys, place.filesystem, metadata, common, base, is_directory=is_directory, named_paths=named
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
    return _start(_common_base(parts))


def _checked_start(base: str, parts: list[_PathFiles]) -> str:
    """Return the prefix of all paths below the caller's directory above all partitions."""
    start = _start(base.rstrip("/") or base[:1])
    for part in parts:
        if not _start(part.base).startswith(start):
            raise ValueError(f"the base path {base!r} is not above {part.base!r}")
    return start


def _common_base(parts: list[_PathFiles]) -> str:
    """Return the directory above several paths."""
    common = parts[0].base.split("/")
    for part in parts[1:]:
        same = [one == other for one, other in zip(common, part.base.split("/"), strict=False)]
        common = common[: same.index(False) if False in same else len(same)]
    return "/".join(common) or ("/" if parts[0].base[:1] == "/" else "")


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
