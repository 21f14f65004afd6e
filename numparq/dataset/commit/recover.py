"""Recover a dataset: complete interrupted commits and remove the files of abandoned writes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from numparq.errors import InvalidFileError
from numparq.io.file_lock import boot_id, try_lock

from .local_store import OPEN_DIRECTORY, finish_commit, list_records, remove_stage
from .record import (
    COMMITTED,
    JOB_PATTERN,
    PENDING,
    REMOVED_STAGE,
    STAGE_FOLDER_PATTERN,
    CommitRecord,
    job_of_record,
    record_name,
    stage_folder_name,
)
from .remote_store import RemoteStore

__all__ = ["Recovered", "complete_interrupted", "recover", "recover_remote", "remove_abandoned"]

_STAGE = re.compile(re.escape(stage_folder_name("", outlives=True)) + f"({JOB_PATTERN})")


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
    from numparq.io.filesystem import resolve_paths

    place = resolve_paths([path], storage_options, filesystem)
    (base,) = place.paths
    if place.filesystem is not None:
        return Recovered(*recover_remote(place.filesystem, base.rstrip("/"), abandoned=abandoned))
    from .local_store import exclusive_lock

    with exclusive_lock(base):
        completed = complete_interrupted(base)
        removed = remove_abandoned(base, of_other_systems=abandoned)
    return Recovered(completed, [name.partition("-")[2].partition("-")[2] for name in removed])


# --- what broke off ---------------------------------------------------------------------------------------------------


def complete_interrupted(base: str) -> list[str]:
    """Complete all commits that broke off; nobody else may be committing.

    Returns
    -------
    list of str
        Their jobs.
    """
    done = []
    for name in list_records(base):
        try:
            with open(os.path.join(base, name), "rb") as file:
                record = CommitRecord.decode(file.read(), os.path.join(base, name))
        except FileNotFoundError:
            continue
        _check_places(base, record)
        if record.folder:
            finish_commit(base, record)
            done.append(record.job)
    return done


def _check_places(base: str, record: CommitRecord) -> None:
    """Refuse a record that somebody else's link leads out of the dataset."""
    root = os.path.realpath(base)
    folders = {os.path.dirname(place) for part in (record.files, record.over, record.gone) for place in part}
    for folder in folders:
        if os.path.commonpath([root, os.path.realpath(os.path.join(base, folder))]) != root:
            raise InvalidFileError(
                "a commit that broke off concerns files that a link leads to, out of the dataset: complete it by hand",
                file=os.path.join(base, record_name(record.job)),
            )


def remove_abandoned(base: str, *, of_other_systems: bool = False) -> list[str]:
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
    kept = {name for name in map(job_of_record, os.listdir(base)) if name}
    removed = []
    for name in os.listdir(base):
        found = STAGE_FOLDER_PATTERN.fullmatch(name)
        if not found or any(name.endswith(job) for job in kept):
            continue
        ours = found[1] == boot_id()
        is_over = found[1] == REMOVED_STAGE  # whoever was removing it has died, or is just doing it
        if is_over or ((ours or of_other_systems) and _is_abandoned(os.path.join(base, name), ours)):
            remove_stage(base, name)
            removed.append(name)
    return removed


def _is_abandoned(folder: str, ours: bool) -> bool:
    try:
        descriptor = os.open(folder, OPEN_DIRECTORY)
    except OSError:
        return False
    try:
        locked = try_lock(descriptor)
        return locked is True or (locked is None and not ours)
    finally:
        os.close(descriptor)


def recover_remote(filesystem: Any, base: str, *, abandoned: bool) -> tuple[list[str], list[str]]:
    """Complete commits that broke off; give the writes that were completed, and those that were removed.

    Parameters
    ----------
    filesystem : fsspec or pyarrow file system
        Where the dataset is.
    base : str
        Its folder.
    abandoned : bool
        Whether writes that have not come to their commit are removed, too.
    """
    folder = RemoteStore(filesystem, base)
    completed, removed = [], []
    for path, record in folder.records().items():
        if record.state == COMMITTED:
            folder.complete(path, record)
            completed.append(record.job)
        elif record.state == PENDING and abandoned:
            folder.roll_back(path, record)
            removed.append(record.job)
    if abandoned:
        removed += _clear_stages(folder)
    return completed, removed


def _clear_stages(folder: RemoteStore) -> list[str]:
    """Remove what writes of several processes have left that did not come to their record; give those writes."""
    start = len(folder.path(""))
    tops = {entry.path[start:].partition("/")[0] for entry in folder.everything()}
    stages = {top: found[1] for top in tops if (found := _STAGE.fullmatch(top))}
    for top in stages:
        folder.clear(folder.path(top))
    return sorted(stages.values())
