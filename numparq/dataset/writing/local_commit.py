"""The steps of a commit in a local folder, and what is done about those that broke off.

The record is what counts: a file of its own, written under another name, brought to the disk and renamed. Before it
nothing has happened; with it, readers see the new files where they lie, and not those that go. What follows only makes
true what it says, in an order in which it may end anywhere, and can be done over.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from ...errors import InvalidFileError
from ...io.local_sink import boot_token, sync_folder, try_lock
from ...threads import Crew
from ..commit_record import JOB, Record, job_of, record_name

__all__ = ["complete", "complete_all", "exclusive", "folder_of_job", "perform", "records_of", "remove_job_folder",
           "sweep", "sync_files", "version_of"]  # fmt: skip

_JOB_FOLDER = re.compile(rf"\.numparq-(\w+)-{JOB}")
# Where others have the token of a boot, which is 8 digits, or "x".
_SHARED, _OVER = "shared", "over"
_TRIES = 10
_AT_ONCE = 16
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def folder_of_job(job: str, outlives: bool = False) -> str:
    """Name the folder that a job writes in.

    Parameters
    ----------
    job : str
        The job.
    outlives : bool
        Whether it goes on without the process that begins it. If not, the name is of this run of this system, whose
        locks tell whether that process lives; else of none, so that no other write takes it for that of a dead one.
    """
    return f".numparq-{_SHARED if outlives else boot_token()}-{job}"


def remove_job_folder(base: str, name: str) -> None:
    """Remove the folder of a job, and what is in it, while tasks of the job may still be creating files there.

    It is renamed first, so that no task finds it any more; and whoever comes across the new name may remove the rest,
    should this process die meanwhile.

    Parameters
    ----------
    base : str
        The dataset's folder.
    name : str
        What the folder is called in it; it need not be there.
    """
    paths = [os.path.join(base, name)]
    found = _JOB_FOLDER.fullmatch(name)
    if found and found[1] != _OVER:
        paths.append(os.path.join(base, f".numparq-{_OVER}{name[found.end(1) :]}"))
        with contextlib.suppress(OSError):  # as on Windows, where a file in it is open; or it was renamed before
            os.rename(*paths)
    for _ in range(_TRIES):  # who had found it before it was renamed may have created one more file
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
        if not any(map(os.path.lexists, paths)):
            return


@contextmanager
def exclusive(base: str) -> Iterator[None]:
    """Keep all other commits to a dataset out, where the system has locks."""
    try:
        import fcntl

        descriptor = os.open(base, _DIRECTORY)
    except (ImportError, OSError):  # Windows
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def version_of(path: str) -> str | None:
    """Say what a file is now; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return f"{found.st_size}-{found.st_mtime_ns}"


def records_of(base: str) -> list[str]:
    """List the names of the records in a dataset's folder."""
    return sorted(name for name in os.listdir(base) if job_of(name))


# --- making it true ---------------------------------------------------------------------------------------------------


def perform(base: str, record: Record) -> None:
    """Commit: write the record, and make true what it says.

    When a new file cannot be given its place, all of it is taken back.

    Parameters
    ----------
    base : str
        The dataset's folder.
    record : Record
        Whose files lie, complete and on the disk, in its folder.
    """
    made = _make_folders(base, record)
    try:
        _write_record(base, record)
        for place, name in record.files.items():
            os.rename(os.path.join(base, record.folder, name), os.path.join(base, place))
    except BaseException:
        _take_back(base, record, made)
        raise
    try:
        complete(base, record)
    except BaseException as error:  # it is in force: Ctrl-C comes too late
        complete(base, record)
        if not isinstance(error, Exception):
            raise


def complete(base: str, record: Record) -> None:
    """Make true what a record says, wherever that broke off, and remove it."""
    _make_folders(base, record)
    for place, name in {**record.files, **record.over}.items():
        with contextlib.suppress(FileNotFoundError):  # it has its place already
            os.replace(os.path.join(base, record.folder, name), os.path.join(base, place))
    for place, version in record.gone.items():
        path = os.path.join(base, place)
        if version is None or version_of(path) == version:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    folders = _folders(base, record) | {os.path.dirname(os.path.join(base, place)) for place in record.gone}
    _side_by_side(_sync_folder, {*folders, base})
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(base, record_name(record.job)))
    if record.folder:
        remove_job_folder(base, record.folder)


def sync_files(paths: Iterable[str]) -> None:
    """Bring files to the disk."""
    _side_by_side(_sync_file, paths)


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        sync_folder(path)


def _side_by_side(do: Callable[[str], None], paths: Iterable[str]) -> None:
    """Do what waits for the disk, which takes many such things at once."""
    jobs = [partial(do, path) for path in sorted(paths)]
    with Crew(max(1, min(_AT_ONCE, len(jobs)))) as crew:
        crew.run(jobs)


def _folders(base: str, record: Record) -> set[str]:
    """Give the folders that new files get their places in."""
    return {os.path.dirname(os.path.join(base, place)) for place in record.files}


def _make_folders(base: str, record: Record) -> list[str]:
    """Make them, and give those that were made, outer ones first."""
    made: list[str] = []
    try:
        for folder in sorted(_folders(base, record)):
            make_folder(folder, made)
    except BaseException:
        remove_folders(made)
        raise
    return made


def make_folder(path: str, made: list[str]) -> None:
    """Make a folder and those above it; append to `made` what was not there."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above or "."
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
            made.append(folder)


def remove_folders(made: Iterable[str]) -> None:
    """Remove folders that are empty, inner ones first."""
    for folder in reversed(list(made)):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _write_record(base: str, record: Record) -> None:
    target = os.path.join(base, record_name(record.job))
    temporary = os.path.join(base, record.folder, "record")
    with open(temporary, "wb") as file:
        file.write(record.encode())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(os.path.join(base, record.folder))
    os.replace(temporary, target)
    sync_folder(base)


def _take_back(base: str, record: Record, made: list[str]) -> None:
    """Take files from their places; the record goes last, for with it they are all there, wherever they lie."""
    for place, name in record.files.items():
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(base, place), os.path.join(base, record.folder, name))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(base, record_name(record.job)))
    remove_folders(made)


# --- what broke off ---------------------------------------------------------------------------------------------------


def complete_all(base: str) -> list[str]:
    """Complete all commits that broke off; nobody else may be committing.

    Returns
    -------
    list of str
        Their jobs.
    """
    done = []
    for name in records_of(base):
        try:
            with open(os.path.join(base, name), "rb") as file:
                record = Record.decode(file.read(), os.path.join(base, name))
        except FileNotFoundError:
            continue
        _check_places(base, record)
        if record.folder:
            complete(base, record)
            done.append(record.job)
    return done


def _check_places(base: str, record: Record) -> None:
    """Refuse a record that somebody else's link leads out of the dataset."""
    root = os.path.realpath(base)
    folders = {os.path.dirname(place) for part in (record.files, record.over, record.gone) for place in part}
    for folder in folders:
        if os.path.commonpath([root, os.path.realpath(os.path.join(base, folder))]) != root:
            raise InvalidFileError(
                "a commit that broke off concerns files that a link leads to, out of the dataset: complete it by hand",
                file=os.path.join(base, record_name(record.job)),
            )


def sweep(base: str, *, of_other_systems: bool = False) -> list[str]:
    """Remove what writes that did not get to their commit have left; nobody else may be committing.

    Parameters
    ----------
    base : str
        The dataset's folder.
    of_other_systems : bool
        Also of another machine, or of before a restart, whose locks this system may not see.

    Returns
    -------
    list of str
        The folders removed.
    """
    kept = {name for name in map(job_of, os.listdir(base)) if name}
    removed = []
    for name in os.listdir(base):
        found = _JOB_FOLDER.fullmatch(name)
        if not found or any(name.endswith(job) for job in kept):
            continue
        ours = found[1] == boot_token()
        is_over = found[1] == _OVER  # whoever was removing it has died, or is just doing it
        if is_over or ((ours or of_other_systems) and _is_nobodys(os.path.join(base, name), ours)):
            remove_job_folder(base, name)
            removed.append(name)
    return removed


def _is_nobodys(folder: str, ours: bool) -> bool:
    try:
        descriptor = os.open(folder, _DIRECTORY)
    except OSError:
        return False
    try:
        locked = try_lock(descriptor)
        return locked is True or (locked is None and not ours)
    finally:
        os.close(descriptor)
