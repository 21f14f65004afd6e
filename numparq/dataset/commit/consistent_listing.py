"""List a dataset so that each commit is visible whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numparq.dataset.listing.files import DirectoryListing, FileEntry
from numparq.dataset.listing.remote import RemoteLister

from .record import PENDING, CommitRecord, job_file_prefix, job_of_record

__all__ = ["list_consistently"]

ListFiles = Callable[[], DirectoryListing]

_TRIES = 60
_PAUSE = 0.001  # seconds, twice as many each time, up to the next
_LONGEST_PAUSE = 0.05


# --- reading ----------------------------------------------------------------------------------------------------------


def list_consistently(walk: ListFiles, base: str, filesystem: Any = None) -> DirectoryListing:
    """List a dataset's folder, or one of its partitions', such that commits are in it whole or not at all.

    Parameters
    ----------
    walk : callable
        Lists it.
    base : str
        The folder.
    filesystem : fsspec or pyarrow file system, optional
        Where it is; by default the local one.

    Returns
    -------
    DirectoryListing
        Files have the paths that they are to have; where one lies elsewhere as yet, `FileEntry.staged_path` says so.
        Files that
        are replaced, and those of writes that are not complete, are left out.

    Raises
    ------
    InvalidFileError
        When a record is damaged, or is of a later version.
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
            # Without a lock, somebody may have begun and ended a commit meanwhile, unless there was one all the time.
            if is_quiet or (before == records and (before or is_quiet is None)):
                try:
                    return _apply_records(found, base, {path: _read_local(path) for path in records}, os.path.exists)
                except FileNotFoundError:  # it has ended since
                    pass
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return found


class CommittedRemoteListing(RemoteLister):
    """What a file system that is not local has, as commits have left it."""

    def walk(self, base: str) -> DirectoryListing:
        """List all files below a directory, by one listing, with each commit whole or not at all."""
        return list_consistently(lambda: self.list_all(base), base, self._filesystem)


def _roots(base: str) -> list[str]:
    """Give the folders whose records may concern what is below one: itself, and, of a partition, those above it."""
    roots = [base or "."]
    path = os.path.abspath(base)
    while "=" in os.path.basename(path):
        path = os.path.dirname(path)
        roots.append(path)
    return roots


@contextmanager
def _exclude_commits(roots: list[str], wait: bool) -> Iterator[bool | None]:
    """Keep commits out for a while: whether that worked; None where the system has no locks."""
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
        except OSError:  # the walk says what is wrong; above a partition, it need not be readable
            continue
        start = root if root.endswith("/") else root + "/"
        found |= {start + name for name in names if job_of_record(name)}
    return found


def _listed_records(found: DirectoryListing, base: str, roots: list[str]) -> set[str]:
    """Give the records among what was listed, and those in the folders above."""
    start = base if not base or base.endswith("/") else base + "/"
    names = (entry.path[len(start) :] for entry in found.hidden if entry.path.startswith(start))
    below = roots[0] if roots[0].endswith("/") else roots[0] + "/"
    return {below + name for name in names if "/" not in name and job_of_record(name)} | _local_records(roots[1:])


def _read_local(path: str) -> CommitRecord:
    with open(path, "rb") as file:
        return CommitRecord.decode(file.read(), path)


def _read_remote(filesystem: Any, path: str) -> CommitRecord | None:
    """Read a record; None where it is not there any more."""
    try:
        if hasattr(filesystem, "open_input_file"):
            with filesystem.open_input_file(path) as file:
                return CommitRecord.decode(file.read(), path)
        return CommitRecord.decode(filesystem.cat_file(path), path)
    except FileNotFoundError:
        return None


def _apply_records(
    found: DirectoryListing,
    base: str,
    records: dict[str, CommitRecord | None],
    exists: Callable[[str], bool] | None = None,
) -> DirectoryListing:
    """Let records say what there is.

    Parameters
    ----------
    found : DirectoryListing
        What was listed.
    base : str
        Of which folder.
    records : dict of str to CommitRecord
        By their paths.
    exists : callable, optional
        Whether there is a file; not needed where no file waits to be put in its place.
    """
    for path, record in records.items():
        if record is None:
            continue
        if record.state == PENDING:
            start = job_file_prefix(record.job)
            paths = [path for path in found.paths if not _name(path).startswith(start)]
            found = DirectoryListing(paths, found.about, found.hidden)
        else:
            found = _apply_commit(found, base, _folder(path), record, exists)
    return found


def _apply_commit(
    found: DirectoryListing, base: str, root: str, record: CommitRecord, exists: Callable[[str], bool] | None
) -> DirectoryListing:
    """Put in what comes by a commit, and leave out what goes."""
    inside = _RecordPaths(base, root)
    files = {entry.path: entry for entry in found.files}
    hidden = {entry.path: entry for entry in found.hidden}
    for place, version in record.gone.items():
        path = inside.path(place)
        entry = None if path is None else files.get(path) or hidden.get(path)
        now = _version(entry.path) if entry and exists is not None else entry and entry.version
        if entry and (version is None or now in (version, None)):
            files.pop(entry.path, None)
            hidden.pop(entry.path, None)
    for comes, known in ((record.files, files), (record.over, hidden)):
        for place, name in comes.items():
            path, lies_at = inside.path(place), f"{root}/{record.folder}/{name}"
            if path is not None and exists is not None and exists(lies_at):
                known[path] = FileEntry(path, staged_path=lies_at)
            elif path is not None:  # it has its place since the listing
                known.setdefault(path, FileEntry(path))
    return DirectoryListing.of(files.values(), hidden.values())


class _RecordPaths:
    """Paths as a listing has them, of places in a dataset that the listing is of a part of."""

    def __init__(self, base: str, root: str) -> None:
        self._start = base if not base or base.endswith("/") else base + "/"
        whole = not base or os.path.normpath(base) == os.path.normpath(root)
        self._below = "" if whole else os.path.relpath(os.path.abspath(base), os.path.abspath(root)) + "/"

    def path(self, place: str) -> str | None:
        """Give the path; None for what is not in the part."""
        return self._start + place[len(self._below) :] if place.startswith(self._below) else None


def _version(path: str) -> str | None:
    from numparq.dataset.listing.local import file_version

    return file_version(path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
