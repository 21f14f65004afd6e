"""Commit records: the JSON manifest of one write, and the names of its job, stage and files."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from numparq.errors import InvalidFileError
from numparq.io.file_lock import boot_id

__all__ = [
    "COMMITTED",
    "JOB_PATTERN",
    "PENDING",
    "CommitChanges",
    "CommitRecord",
    "data_file_name",
    "is_path_inside",
    "job_file_prefix",
    "job_of_record",
    "new_job_id",
    "record_name",
    "stage_folder_name",
]

PENDING, COMMITTED = "pending", "committed"
_FORMAT, _VERSION = "numparq commit", 1
JOB_PATTERN = r"\d{8}T\d{12}-[0-9a-f]{6}"
_NAME = re.compile(rf"_numparq_commit-({JOB_PATTERN})\.json")
_FOLDER = re.compile(rf"\.numparq-\w+-{JOB_PATTERN}")
_MOST_BYTES = 1 << 28
_PARTS = ("job", "state", "folder", "files", "over", "gone", "alone")

STAGE_FOLDER_PATTERN = re.compile(rf"\.numparq-(\w+)-{JOB_PATTERN}")
# Where others have the token of a boot, which is 8 digits, or "x".
SHARED_STAGE, REMOVED_STAGE = "shared", "over"


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What comes into force together.

    Parameters
    ----------
    job : str
        The write.
    state : {"pending", "committed"}
        Whether it holds. While it is pending, files whose names are those of the job do not count.
    folder : str
        A folder in that of the dataset where files lie until they are put in their places; empty where they are there
        from the beginning.
    files : dict of str to str
        By the places of files that come, the names that they have in `folder`.
    over : dict of str to str
        The same for files that replace one of the same name.
    gone : dict of str to (str or None)
        The places of files that go, with what `version_of` says of each: a file that is another one stays.
    alone : bool
        Whether no other such write may be under way.
    """

    job: str
    state: str
    folder: str = ""
    files: dict[str, str] = field(default_factory=dict)
    over: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str | None] = field(default_factory=dict)
    alone: bool = False

    def encode(self) -> bytes:
        """Give the content of the file."""
        parts = {key: getattr(self, key) for key in _PARTS}
        return json.dumps({"format": _FORMAT, "version": _VERSION, **parts}, indent=0).encode()

    @classmethod
    def decode(cls, data: bytes, name: str) -> CommitRecord:
        """Read it.

        Parameters
        ----------
        data : bytes
            The content of the file.
        name : str
            Its name.

        Raises
        ------
        InvalidFileError
            When it is no such record, or names what does not lie in the dataset.
        """
        try:
            found = json.loads(data) if len(data) <= _MOST_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise InvalidFileError("the record of a commit is damaged", file=name)
        if found.get("version") != _VERSION:
            raise InvalidFileError("the record of a commit is of a later version of numparq", file=name)
        record = cls(*(found.get(key) for key in _PARTS))  # type: ignore[arg-type]
        if not record._is_sound(name):
            raise InvalidFileError("the record of a commit names what does not belong to the dataset", file=name)
        return record

    def _is_sound(self, name: str) -> bool:
        places = (self.files, self.over, self.gone)
        return (
            self.job == job_of_record(name)
            and isinstance(self.alone, bool)
            and self.state in (PENDING, COMMITTED)
            and isinstance(self.folder, str)
            and all(isinstance(part, dict) and all(map(is_path_inside, part)) for part in places)
            and all(isinstance(value, str) and value.isdigit() for part in places[:2] for value in part.values())
            and all(value is None or isinstance(value, str) for value in self.gone.values())
            and (bool(_FOLDER.fullmatch(self.folder)) if self.folder else not self.files and not self.over)
        )


def record_name(job: str) -> str:
    """Name the record of a job."""
    return f"_numparq_commit-{job}.json"


def job_file_prefix(job: str) -> str:
    """Give what the names of all data files of a job begin with."""
    return f"part-{job}-"


def job_of_record(name: str) -> str | None:
    """Give the job whose record a file is, by its name without folders; None for any other file."""
    found = _NAME.fullmatch(name.rpartition("/")[2])
    return found[1] if found else None


def is_path_inside(name: Any) -> bool:
    """Whether a path is a plain one below the folder."""
    return "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What a commit does besides adding files.

    Parameters
    ----------
    gone : list of str
        Paths of files that go.
    over : dict of str to bytes
        Files that are new, or replace those of the same name: places in the dataset, and contents.
    """

    gone: list[str] = field(default_factory=list)
    over: dict[str, bytes] = field(default_factory=dict)


def stage_folder_name(job: str, outlives: bool = False) -> str:
    """Name the folder that a job writes in.

    Parameters
    ----------
    job : str
        The job.
    outlives : bool
        Whether it goes on without the process that begins it. If not, the name is of this run of this system, whose
        locks tell whether that process lives; else of none, so that no other write takes it for that of a dead one.
    """
    return f".numparq-{SHARED_STAGE if outlives else boot_id()}-{job}"


def new_job_id() -> str:
    """Give a name for a write that no other has; those of later writes come later in their order."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"


def data_file_name(job: str, number: int, task: str = "") -> str:
    """Name a file of a write, or of a task of it; within a partition, names are in the order of the rows."""
    return f"{job_file_prefix(job)}{task and task + '-'}{number:07}.parquet"
