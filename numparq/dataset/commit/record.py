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
from numparq.io.replaced_files import REPLACED_FOLDER_PATTERN

PENDING, COMMITTED = "pending", "committed"
_FORMAT, _VERSION = "numparq commit", 1
JOB_PATTERN = r"\d{8}T\d{12}-[0-9a-f]{6}"
_NAME = re.compile(rf"_numparq_commit-({JOB_PATTERN})\.json")
_FOLDER = re.compile(rf"\.numparq-\w+-{JOB_PATTERN}")
_MOST_BYTES = 1 << 28
_PARTS = ("job", "state", "folder", "files", "over", "gone", "alone", "kept", "marks")
KEY_MATERIAL_PREFIX = "_KEY_MATERIAL_FOR_"  # of the name of a data file, in that of its key material
_MARK = re.compile(r"_numparq_stream-[A-Za-z0-9_-]{1,100}\.json")

STAGE_FOLDER_PATTERN = re.compile(rf"\.numparq-(\w+)-{JOB_PATTERN}")
# Take the place of the boot id (8 hexadecimal digits, or "x") in the name of a stage.
SHARED_STAGE, REMOVED_STAGE = "shared", "over"


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Commit record: the manifest of one write, stored as JSON under these attribute names.

    Attributes
    ----------
    job : str
        Id of the write.
    state : {"pending", "committed"}
        While pending, files that carry the job's name do not count.
    folder : str
        Directory in the dataset that holds the staged files; empty if files are written in place.
    files : dict of str to str
        Added files: path in the dataset to name in `folder`.
    over : dict of str to str
        The same for files that may replace one of the same path.
    gone : dict of str to (str or None)
        Removed files: path to version; a file of another version stays.
    alone : bool
        Whether no other such write may run at the same time.
    kept : str
        Directory in the dataset that removed files are moved to; empty if they are deleted.
    marks : dict of str to str
        Contents of the marks of streams (`numparq.dataset.commit.stream_batch`), by file name in the dataset.
    """

    job: str
    state: str
    folder: str = ""
    files: dict[str, str] = field(default_factory=dict)
    over: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str | None] = field(default_factory=dict)
    alone: bool = False
    kept: str = ""
    marks: dict[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Encode the record as JSON."""
        parts = {key: getattr(self, key) for key in _PARTS}
        return json.dumps({"format": _FORMAT, "version": _VERSION, **parts}, indent=0).encode()

    @classmethod
    def decode(cls, data: bytes, name: str) -> CommitRecord:
        """Decode a record; ``name`` is its path.

        Raises InvalidFileError if it is no valid record, or names a path outside the dataset.
        """
        try:
            found = json.loads(data) if len(data) <= _MOST_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise InvalidFileError("the commit record is damaged", file=name)
        if found.get("version") != _VERSION:
            raise InvalidFileError(
                f"the commit record has version {found.get('version')!r}, not {_VERSION}; use a later numparq",
                file=name,
            )
        found = {"kept": "", "marks": {}} | found
        record = cls(*(found.get(key) for key in _PARTS))  # type: ignore[arg-type]
        if not record._is_sound(name):
            raise InvalidFileError("the commit record names files that are not in the dataset", file=name)
        return record

    def _is_sound(self, name: str) -> bool:
        places = (self.files, self.over, self.gone)
        return (
            self.job == job_of_record(name)
            and isinstance(self.alone, bool)
            and self.state in (PENDING, COMMITTED)
            and isinstance(self.folder, str)
            and isinstance(self.kept, str)
            and (not self.kept or bool(REPLACED_FOLDER_PATTERN.fullmatch(self.kept)))
            and all(isinstance(part, dict) and all(map(is_path_inside, part)) for part in places)
            and all(isinstance(value, str) and value.isdigit() for part in places[:2] for value in part.values())
            and all(value is None or isinstance(value, str) for value in self.gone.values())
            and isinstance(self.marks, dict)
            and all(_MARK.fullmatch(name) and isinstance(text, str) for name, text in self.marks.items())
            and (bool(_FOLDER.fullmatch(self.folder)) if self.folder else not self.files and not self.over)
        )


def record_name(job: str) -> str:
    """Return the file name of a job's commit record."""
    return f"_numparq_commit-{job}.json"


def job_file_prefix(job: str) -> str:
    """Return the prefix of the names of a job's data files."""
    return f"part-{job}-"


def is_key_material(name: str) -> bool:
    """Whether a path is that of key material of a data file."""
    return name.rpartition("/")[2].startswith(KEY_MATERIAL_PREFIX)


def job_of_record(name: str) -> str | None:
    """Return the job whose commit record a path is, by its file name; None for any other file."""
    found = _NAME.fullmatch(name.rpartition("/")[2])
    return found[1] if found else None


def is_path_inside(name: Any) -> bool:
    """Whether a path is a plain relative one that stays below its directory."""
    return "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """Changes of a commit besides added files.

    Attributes
    ----------
    gone : list of str
        Paths of removed files.
    over : dict of str to bytes
        Contents of new or replaced files, by path in the dataset.
    marks : dict of str to str
        As of `CommitRecord`.
    """

    gone: list[str] = field(default_factory=list)
    over: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)


def stage_folder_name(job: str, outlives: bool = False) -> str:
    """Return the name of a job's stage, with the id of this boot, whose locks show whether the writer lives.

    A job that outlives its process gets a fixed word instead, so that no other write takes it for abandoned.
    """
    return f".numparq-{SHARED_STAGE if outlives else boot_id()}-{job}"


def new_job_id() -> str:
    """Return a unique job id; ids sort by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"


def data_file_name(job: str, number: int, task: str = "") -> str:
    """Return the name of a job's data file; within a partition, names sort in row order."""
    return f"{job_file_prefix(job)}{task and task + '-'}{number:07}.parquet"
