"""What a dataset's folder holds, seen through commits that are under way or broke off, and how those are completed.

A record (`numparq.dataset.commit_record`) that is there says what counts. A local listing is made while no commit is
under way on this system, or while one and the same record is there from its beginning to its end; so whoever lists
sees all of a commit, or nothing of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .commit_record import PENDING, Record, file_prefix, job_of
from .entries import Entry, Found

__all__ = ["Recovered", "recover", "settled_walk"]

Walk = Callable[[], Found]

_TRIES = 60
_PAUSE = 0.001  # seconds, twice as many each time, up to the next
_LONGEST_PAUSE = 0.05


# --- reading ----------------------------------------------------------------------------------------------------------


def settled_walk(walk: Walk, base: str, filesystem: Any = None) -> Found:
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
    Found
        Files have the paths that they are to have; where one lies elsewhere as yet, `Entry.lies_at` says so. Files that
        are replaced, and those of writes that are not complete, are left out.

    Raises
    ------
    InvalidFileError
        When a record is damaged, or is of a later version.
    """
    if filesystem is not None:
        found = walk()
        names = [entry.path for entry in found.hidden if job_of(entry.path) and _folder(entry.path) == base.rstrip("/")]
        return _seen_through(found, base, {name: _read_remote(filesystem, name) for name in names})
    roots = _roots(base)
    pause = _PAUSE
    for tries_left in range(_TRIES, -1, -1):
        with _quiet(roots, wait=not tries_left) as is_quiet:
            before = _local_records(roots) if not is_quiet else set()
            found = walk()
            records = _local_records(roots) if not is_quiet else _listed_records(found, base, roots)
            # Without a lock, somebody may have begun and ended a commit meanwhile, unless there was one all the time.
            if is_quiet or (before == records and (before or is_quiet is None)):
                try:
                    return _seen_through(found, base, {path: _read_local(path) for path in records}, os.path.exists)
                except FileNotFoundError:  # it has ended since
                    pass
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return found


def _roots(base: str) -> list[str]:
    """Give the folders whose records may concern what is below one: itself, and, of a partition, those above it."""
    roots = [base or "."]
    path = os.path.abspath(base)
    while "=" in os.path.basename(path):
        path = os.path.dirname(path)
        roots.append(path)
    return roots


@contextmanager
def _quiet(roots: list[str], wait: bool) -> Iterator[bool | None]:
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
        found |= {start + name for name in names if job_of(name)}
    return found


def _listed_records(found: Found, base: str, roots: list[str]) -> set[str]:
    """Give the records among what was listed, and those in the folders above."""
    start = base if not base or base.endswith("/") else base + "/"
    names = (entry.path[len(start) :] for entry in found.hidden if entry.path.startswith(start))
    below = roots[0] if roots[0].endswith("/") else roots[0] + "/"
    return {below + name for name in names if "/" not in name and job_of(name)} | _local_records(roots[1:])


def _read_local(path: str) -> Record:
    with open(path, "rb") as file:
        return Record.decode(file.read(), path)


def _read_remote(filesystem: Any, path: str) -> Record | None:
    """Read a record; None where it is not there any more."""
    try:
        if hasattr(filesystem, "open_input_file"):
            with filesystem.open_input_file(path) as file:
                return Record.decode(file.read(), path)
        return Record.decode(filesystem.cat_file(path), path)
    except FileNotFoundError:
        return None


def _seen_through(
    found: Found, base: str, records: dict[str, Record | None], exists: Callable[[str], bool] | None = None
) -> Found:
    """Let records say what there is.

    Parameters
    ----------
    found : Found
        What was listed.
    base : str
        Of which folder.
    records : dict of str to Record
        By their paths.
    exists : callable, optional
        Whether there is a file; not needed where no file waits to be put in its place.
    """
    for path, record in records.items():
        if record is None:
            continue
        if record.state == PENDING:
            start = file_prefix(record.job)
            paths = [path for path in found.paths if not _name(path).startswith(start)]
            found = Found(paths, found.about, found.hidden)
        else:
            found = _with(found, base, _folder(path), record, exists)
    return found


def _with(found: Found, base: str, root: str, record: Record, exists: Callable[[str], bool] | None) -> Found:
    """Put in what comes by a commit, and leave out what goes."""
    inside = _Places(base, root)
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
                known[path] = Entry(path, lies_at=lies_at)
            elif path is not None:  # it has its place since the listing
                known.setdefault(path, Entry(path))
    return Found.of(files.values(), hidden.values())


class _Places:
    """Paths as a listing has them, of places in a dataset that the listing is of a part of."""

    def __init__(self, base: str, root: str) -> None:
        self._start = base if not base or base.endswith("/") else base + "/"
        whole = not base or os.path.normpath(base) == os.path.normpath(root)
        self._below = "" if whole else os.path.relpath(os.path.abspath(base), os.path.abspath(root)) + "/"

    def path(self, place: str) -> str | None:
        """Give the path; None for what is not in the part."""
        return self._start + place[len(self._below) :] if place.startswith(self._below) else None


def _version(path: str) -> str | None:
    from .writing.local_commit import version_of

    return version_of(path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# --- recovery ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recovered:
    """What was done about writes that broke off.

    Parameters
    ----------
    completed : list of str
        Writes whose commit was completed.
    removed : list of str
        Writes whose files were removed, for they had not come to their commit.
    """

    completed: list[str]
    removed: list[str]


def recover(
    path: str | os.PathLike[str],
    *,
    abandoned: bool = False,
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
) -> Recovered:
    """Complete commits to a dataset that broke off, and remove what other writes that broke off have left.

    Parameters
    ----------
    path : str or os.PathLike
        The dataset's folder.
    abandoned : bool
        Also remove what was left where no lock tells whether it is still being written: by another machine, before a
        restart, in an object store. Only you can know.
    storage_options, filesystem
        As in `numparq.to_parquet`.

    Returns
    -------
    Recovered

    Notes
    -----
    The next local write to the dataset does the same, without `abandoned`.
    """
    from .places import place_of

    place = place_of([path], storage_options, filesystem)
    (base,) = place.paths
    if place.filesystem is not None:
        from .writing.remote_commit import recover_remote

        return Recovered(*recover_remote(place.filesystem, base.rstrip("/"), abandoned=abandoned))
    from .writing.local_commit import complete_all, exclusive, sweep

    with exclusive(base):
        completed = complete_all(base)
        removed = sweep(base, of_other_systems=abandoned)
    return Recovered(completed, [name.partition("-")[2].partition("-")[2] for name in removed])
