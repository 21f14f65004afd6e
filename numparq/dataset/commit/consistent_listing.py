"""List a dataset so that each commit is visible whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.remote import RemoteLister
from numparq.util.regular_file import open_regular

from .record import PENDING, CommitRecord, job_file_prefix, job_of_record

ListFiles = Callable[[], DirectoryListing]

_TRIES = 60
_PAUSE = 0.001  # seconds; doubled with each try, up to _LONGEST_PAUSE
_LONGEST_PAUSE = 0.05


def list_consistently(walk: ListFiles, base: str, filesystem: Any = None) -> DirectoryListing:
    """List a dataset's directory or one of its partitions, with each commit visible whole or not at all.

    Files have their committed paths. Raises InvalidFileError if a commit record is damaged or of a later version.
    """
    if filesystem is not None:
        found = walk()
        names = [
            entry.path
            for entry in found.hidden
            if job_of_record(entry.path) and _folder(entry.path) == base.rstrip("/")
        ]
        return _apply_records(found, base, {name: _read_remote(filesystem, name) for name in names})
    roots = _roots(base)
    pause = _PAUSE
    for tries_left in range(_TRIES, -1, -1):
        with _exclude_commits(roots, wait=not tries_left) as is_quiet:
            before = _local_records(roots) if not is_quiet else set()
            found = walk()
            records = _local_records(roots) if not is_quiet else _listed_records(found, base, roots)
            # Without a lock, a whole commit may have passed during the walk, unless its record was there throughout.
            if is_quiet or (before == records and (before or is_quiet is None)):
                try:
                    return _apply_records(found, base, {path: _read_local(path) for path in records}, os.path.exists)
                except FileNotFoundError:  # the commit has finished, and its record is gone
                    pass
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return found


class CommittedRemoteListing(RemoteLister):
    """Lists files of a remote file system with each commit whole or not at all."""

    def walk(self, base: str) -> DirectoryListing:
        """List the committed files below a directory, by one listing and a read of each commit record."""
        return list_consistently(lambda: self.list_all(base), base, self._filesystem)


def _roots(base: str) -> list[str]:
    """Return the directories whose commit records may concern a directory: itself, and those above a partition."""
    roots = [base or "."]
    path = os.path.abspath(base)
    while "=" in os.path.basename(path):
        path = os.path.dirname(path)
        roots.append(path)
    return roots


@contextmanager
def _exclude_commits(roots: list[str], wait: bool) -> Iterator[bool | None]:
    """Hold shared locks that keep commits out; yield whether that worked, None if the system has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield None
        return
    how = fcntl.LOCK_SH if wait else fcntl.LOCK_SH | fcntl.LOCK_NB
    descriptors: list[int] = []
    worked: bool | None = True
    try:
        for root in roots:
            try:
                descriptors.append(os.open(root, os.O_RDONLY | os.O_CLOEXEC))
                fcntl.flock(descriptors[-1], how)
            except BlockingIOError:
                worked = False
                break
            except OSError:
                worked = None
        yield worked
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _local_records(roots: list[str]) -> set[str]:
    found = set()
    for root in roots:
        try:
            names = os.listdir(root)
        except OSError:  # the walk raises it; directories above a partition need not be readable
            continue
        start = root if root.endswith("/") else root + "/"
        found |= {start + name for name in names if job_of_record(name)}
    return found


def _listed_records(found: DirectoryListing, base: str, roots: list[str]) -> set[str]:
    """Return the paths of commit records in the listing, and in the directories above."""
    start = base if not base or base.endswith("/") else base + "/"
    names = (entry.path[len(start) :] for entry in found.hidden if entry.path.startswith(start))
    below = roots[0] if roots[0].endswith("/") else roots[0] + "/"
    return {below + name for name in names if "/" not in name and job_of_record(name)} | _local_records(roots[1:])


def _read_local(path: str) -> CommitRecord:
    with open(path, "rb", opener=open_regular) as file:
        return CommitRecord.decode(file.read(), path)


def _read_remote(filesystem: Any, path: str) -> CommitRecord | None:
    """Read a commit record; return None if it is gone."""
    try:
        return CommitRecord.decode(RemoteLister(filesystem).read(path), path)
    except FileNotFoundError:
        return None


def _apply_records(
    found: DirectoryListing,
    base: str,
    records: dict[str, CommitRecord | None],
    exists: Callable[[str], bool] | None = None,
) -> DirectoryListing:
    """Apply commit records, by path, to a listing of ``base``; ``exists`` is None if no file is ever staged."""
    for path, record in records.items():
        if record is None:
            continue
        if record.state == PENDING:
            start = job_file_prefix(record.job)
            paths = [path for path in found.paths if not _name(path).startswith(start)]
            found = DirectoryListing(paths, found.entries, found.hidden)
        else:
            found = _apply_commit(found, base, _folder(path), record, exists)
    return found


def _apply_commit(
    found: DirectoryListing, base: str, root: str, record: CommitRecord, exists: Callable[[str], bool] | None
) -> DirectoryListing:
    """Add the files of a commit to a listing, and remove those that it replaces or deletes."""
    path_of = _record_paths(base, root)
    files = {entry.path: entry for entry in found.files}
    hidden = {entry.path: entry for entry in found.hidden}
    for place, version in record.gone.items():
        path = path_of(place)
        entry = None if path is None else files.get(path) or hidden.get(path)
        now = _version(entry.path) if entry and exists is not None else entry and entry.version
        if entry and (version is None or now in (version, None)):
            files.pop(entry.path, None)
            hidden.pop(entry.path, None)
    for comes, known in ((record.files, files), (record.over, hidden)):
        for place, name in comes.items():
            path, lies_at = path_of(place), f"{root}/{record.folder}/{name}"
            if path is not None and exists is not None and exists(lies_at):
                known[path] = FileEntry(path, staged_path=lies_at)
            elif path is not None:  # moved there since the listing
                known.setdefault(path, FileEntry(path))
    return DirectoryListing.from_entries(files.values(), hidden.values())


def _record_paths(base: str, root: str) -> Callable[[str], str | None]:
    """Return the map from paths of a commit record, relative to the dataset, to paths of a listing below ``base``.

    It returns None for paths outside the listed directory.
    """
    start = base if not base or base.endswith("/") else base + "/"
    whole = not base or os.path.normpath(base) == os.path.normpath(root)
    below = "" if whole else os.path.relpath(os.path.abspath(base), os.path.abspath(root)) + "/"
    return lambda place: start + place[len(below) :] if place.startswith(below) else None


def _version(path: str) -> str | None:
    from numparq.dataset.listing.local import file_version

    return file_version(path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
