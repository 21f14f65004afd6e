"""Commit in a local directory: locks, durable renames, and a record that decides."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from numparq.dataset.listing.local import file_version
from numparq.io.local_sink import sync_folder
from numparq.io.replaced_files import keep_file
from numparq.util.worker_pool import WorkerPool

from .record import REMOVED_STAGE, STAGE_FOLDER_PATTERN, CommitRecord, job_of_record, record_name

_TRIES = 10
_AT_ONCE = 16
OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def remove_stage(base: str, name: str) -> None:
    """Remove a stage, by its name in the dataset's directory, while tasks may still create files in it.

    It is renamed first, so that no task finds it. If this process dies meanwhile, any write may remove the new name.
    """
    paths = [os.path.join(base, name)]
    found = STAGE_FOLDER_PATTERN.fullmatch(name)
    if found and found[1] != REMOVED_STAGE:
        paths.append(os.path.join(base, f".numparq-{REMOVED_STAGE}{name[found.end(1) :]}"))
        with contextlib.suppress(OSError):  # Windows, where a file in it is open; or it is missing
            os.rename(*paths)
    for _ in range(_TRIES):  # a task that found it before may create a file
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
        if not any(map(os.path.lexists, paths)):
            return


@contextmanager
def exclusive_lock(base: str) -> Iterator[None]:
    """Exclude all other commits to a dataset, where the system has locks."""
    try:
        import fcntl

        descriptor = os.open(base, OPEN_DIRECTORY)
    except (ImportError, OSError):  # Windows
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def list_records(base: str) -> list[str]:
    """List the names of the commit records in a dataset's directory."""
    return sorted(name for name in os.listdir(base) if job_of_record(name))


# --- commits ----------------------------------------------------------------------------------------------------------


def commit(base: str, record: CommitRecord) -> None:
    """Write a commit record, then apply it; its staged files are complete and on the disk.

    If a new file cannot be moved to its path, the commit is rolled back.
    """
    made = _make_folders(base, record)
    try:
        _write_record(base, record)
        for place, name in record.files.items():
            os.rename(os.path.join(base, record.folder, name), os.path.join(base, place))
    except BaseException:
        _roll_back(base, record, made)
        raise
    try:
        finish_commit(base, record)
    except BaseException as error:  # it has taken effect: Ctrl-C is too late
        finish_commit(base, record)
        if not isinstance(error, Exception):
            raise


def finish_commit(base: str, record: CommitRecord) -> None:
    """Complete an interrupted commit by its record, and remove the record."""
    _make_folders(base, record)
    for place, name in {**record.files, **record.over}.items():
        with contextlib.suppress(FileNotFoundError):  # it has been moved already
            os.replace(os.path.join(base, record.folder, name), os.path.join(base, place))
    for place, version in record.gone.items():
        path = os.path.join(base, place)
        if version is None or file_version(path) == version:
            with contextlib.suppress(FileNotFoundError):
                keep_file(base, place, record.kept) if record.kept else os.unlink(path)
    for name, text in record.marks.items():
        _write_durably(os.path.join(base, f".{name}"), os.path.join(base, name), text.encode())
    folders = _folders(base, record) | {os.path.dirname(os.path.join(base, place)) for place in record.gone}
    sync_folders({*folders, base})
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(base, record_name(record.job)))
    if record.folder:
        remove_stage(base, record.folder)


def sync_files(paths: Iterable[str]) -> None:
    """Write files to the disk (fsync), in parallel."""
    _run_in_parallel(_sync_file, paths)


def sync_folders(paths: Iterable[str]) -> None:
    """Write the entries of directories to the disk, in parallel."""
    _run_in_parallel(_sync_folder, paths)


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        sync_folder(path)


def _run_in_parallel(do: Callable[[str], None], paths: Iterable[str]) -> None:
    """Call a function for each path in parallel: most of the time goes to waiting for the disk."""
    jobs = [partial(do, path) for path in sorted(paths)]
    with WorkerPool(max(1, min(_AT_ONCE, len(jobs)))) as crew:
        crew.run(jobs)


def _folders(base: str, record: CommitRecord) -> set[str]:
    """Return the directories of the new files."""
    return {os.path.dirname(os.path.join(base, place)) for place in record.files}


def _make_folders(base: str, record: CommitRecord) -> list[str]:
    """Create the directories of the new files; return those that did not exist, outer ones first."""
    made: list[str] = []
    try:
        for folder in sorted(_folders(base, record)):
            make_directory(folder, made)
    except BaseException:
        remove_directories(made)
        raise
    return made


def make_directory(path: str, made: list[str]) -> None:
    """Create a directory and its parents; append to `made` those that did not exist."""
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


def remove_directories(made: Iterable[str]) -> None:
    """Remove those directories that are empty, inner ones first."""
    for folder in reversed(list(made)):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _write_record(base: str, record: CommitRecord) -> None:
    _write_durably(
        os.path.join(base, record.folder, "record"), os.path.join(base, record_name(record.job)), record.encode()
    )
    sync_folder(base)


def _write_durably(temporary: str, target: str, data: bytes) -> None:
    """Write a file under a temporary name, sync it, and rename it."""
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(os.path.dirname(temporary))
    os.replace(temporary, target)


def _roll_back(base: str, record: CommitRecord, made: list[str]) -> None:
    """Move files back to the stage, and then remove the record: until then it makes all of them visible."""
    for place, name in record.files.items():
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(base, place), os.path.join(base, record.folder, name))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(base, record_name(record.job)))
    remove_directories(made)
