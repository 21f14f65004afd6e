"""Recover a dataset: complete interrupted commits and remove the files of abandoned writes."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from numparq.dataset.listing.local import list_local
from numparq.dataset.listing.table_formats import check_plain_folder
from numparq.errors import InvalidFileError
from numparq.io.file_lock import boot_id, try_lock
from numparq.io.replaced_files import remove_expired_files
from numparq.typing import PathLike, StorageOptions
from numparq.util.regular_file import open_regular

from .local_store import OPEN_DIRECTORY, finish_commit, list_records, remove_stage
from .record import (
    COMMITTED,
    KEY_MATERIAL_PREFIX,
    PENDING,
    REMOVED_STAGE,
    STAGE_FOLDER_PATTERN,
    CommitRecord,
    job_file_prefix,
    job_of_record,
    record_name,
)
from .remote_store import RemoteStore


@dataclass(frozen=True)
class Recovered:
    """Writes that `recover` completed or removed.

    Attributes
    ----------
    completed : list of str
        Ids of writes whose interrupted commit was completed.
    removed : list of str
        Ids of abandoned writes whose files were removed: they had not reached their commit.
    """

    completed: list[str]
    removed: list[str]


def recover(
    path: PathLike,
    *,
    abandoned: bool = False,
    table_format: str = "auto",
    storage_options: StorageOptions = None,
    filesystem: Any = None,
) -> Recovered:
    """Complete the interrupted commits of a dataset, and remove the files of abandoned writes.

    Replaced files whose time (`keep_replaced`) has passed are removed too. The next local write to the dataset does
    the same, with ``abandoned=False``.

    Parameters
    ----------
    path : str or os.PathLike
        Directory of the dataset.
    abandoned : bool, default False
        Also remove files of writes whose state no lock shows: from another machine, from before a restart, or in an
        object store. Set it only if you know that these writes have ended.
    table_format, storage_options, filesystem
        As in `numparq.to_parquet`.

    Returns
    -------
    Recovered
        Ids of the completed and of the removed writes.
    """
    from numparq.io.filesystem import resolve_paths

    place = resolve_paths([path], storage_options, filesystem)
    (base,) = place.paths
    check_plain_folder(place, table_format)
    if place.filesystem is not None:
        return Recovered(*recover_remote(place.filesystem, base.rstrip("/"), abandoned=abandoned))
    from .local_store import exclusive_lock

    with exclusive_lock(base):
        completed = complete_interrupted(base)
        removed = remove_abandoned(base, of_other_systems=abandoned)
        remove_expired_files(base)
    return Recovered(completed, [_job_of_stage(name) for name in removed])


# --- local and remote recovery ----------------------------------------------------------------------------------------


def complete_interrupted(base: str) -> list[str]:
    """Complete all interrupted commits, and return their jobs; the caller holds the exclusive lock."""
    done = []
    for name in list_records(base):
        try:
            with open(os.path.join(base, name), "rb", opener=open_regular) as file:
                record = CommitRecord.decode(file.read(), os.path.join(base, name))
        except FileNotFoundError:
            continue
        _check_paths(base, record)
        if record.folder:
            finish_commit(base, record)
            done.append(record.job)
    return done


def _check_paths(base: str, record: CommitRecord) -> None:
    """Raise InvalidFileError if a link leads paths of a record out of the dataset."""
    root = os.path.realpath(base)
    folders = {os.path.dirname(place) for part in (record.files, record.over, record.gone) for place in part}
    for folder in folders:
        if os.path.commonpath([root, os.path.realpath(os.path.join(base, folder))]) != root:
            raise InvalidFileError(
                "an interrupted commit concerns files outside the dataset, behind a link; complete it by hand",
                file=os.path.join(base, record_name(record.job)),
            )


def remove_abandoned(base: str, *, of_other_systems: bool = False) -> list[str]:
    """Remove the stages of dead writes, and return their names; the caller holds the exclusive lock.

    ``of_other_systems`` includes stages of other machines or earlier boots, whose locks this system may not see.
    """
    kept = {name for name in map(job_of_record, os.listdir(base)) if name}
    removed = []
    for name in os.listdir(base):
        found = STAGE_FOLDER_PATTERN.fullmatch(name)
        if not found or any(name.endswith(job) for job in kept):
            continue
        ours = found[1] == boot_id()
        is_over = found[1] == REMOVED_STAGE  # its removal was interrupted, or is going on
        if is_over or ((ours or of_other_systems) and _is_abandoned(os.path.join(base, name), ours)):
            remove_stage(base, name)
            removed.append(name)
    if removed:
        _remove_key_material(base, [_job_of_stage(name) for name in removed])
    return removed


def _job_of_stage(name: str) -> str:
    return name.partition("-")[2].partition("-")[2]


def _remove_key_material(base: str, jobs: list[str]) -> None:
    """Remove the key material of data files that dead writes did not commit."""
    starts = tuple(KEY_MATERIAL_PREFIX + job_file_prefix(job) for job in jobs)
    for entry in list_local(base).hidden:
        folder, _, name = entry.path.rpartition("/")
        name = name.lstrip(".")  # the temporary name of an incomplete one begins with a dot
        data_file = name.removeprefix(KEY_MATERIAL_PREFIX).removesuffix(".json")
        if name.startswith(starts) and not os.path.lexists(f"{folder}/{data_file}"):
            with suppress(OSError):
                os.unlink(entry.path)


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
    """Complete interrupted commits of a remote dataset; return the jobs completed and those removed.

    With ``abandoned``, also remove writes that have not reached their commit.
    """
    folder = RemoteStore(filesystem, base)
    completed, removed = [], []
    for path, record in folder.records().items():
        if record.state == COMMITTED:
            folder.finish_commit(path, record)
            completed.append(record.job)
        elif record.state == PENDING and abandoned:
            folder.roll_back(path, record)
            removed.append(record.job)
    if abandoned:
        removed += folder.clear_stages(lambda job: True)
    return completed, removed
