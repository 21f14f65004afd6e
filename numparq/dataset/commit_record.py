"""What a write says of itself in the folder of a dataset while it comes into force.

A record is a small JSON file ``_numparq_commit-<job>.json`` at the top of the dataset; readers that do not know it
leave it out for its underscore. That it is there, whole, says what files the dataset has: those that come, wherever
they are still lying, and not those that go.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidFileError

__all__ = ["COMMITTED", "JOB", "PENDING", "Record", "file_prefix", "is_within", "job_of", "record_name"]

PENDING, COMMITTED = "pending", "committed"
_FORMAT, _VERSION = "numparq commit", 1
JOB = r"\d{8}T\d{12}-[0-9a-f]{6}"
_NAME = re.compile(rf"_numparq_commit-({JOB})\.json")
_FOLDER = re.compile(rf"\.numparq-\w+-{JOB}")
_MOST_BYTES = 1 << 28
_PARTS = ("job", "state", "folder", "files", "over", "gone", "alone")


@dataclass(frozen=True, slots=True)
class Record:
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
    def decode(cls, data: bytes, name: str) -> Record:
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
            self.job == job_of(name)
            and isinstance(self.alone, bool)
            and self.state in (PENDING, COMMITTED)
            and isinstance(self.folder, str)
            and all(isinstance(part, dict) and all(map(is_within, part)) for part in places)
            and all(isinstance(value, str) and value.isdigit() for part in places[:2] for value in part.values())
            and all(value is None or isinstance(value, str) for value in self.gone.values())
            and (bool(_FOLDER.fullmatch(self.folder)) if self.folder else not self.files and not self.over)
        )


def record_name(job: str) -> str:
    """Name the record of a job."""
    return f"_numparq_commit-{job}.json"


def file_prefix(job: str) -> str:
    """Give what the names of all data files of a job begin with."""
    return f"part-{job}-"


def job_of(name: str) -> str | None:
    """Give the job whose record a file is, by its name without folders; None for any other file."""
    found = _NAME.fullmatch(name.rpartition("/")[2])
    return found[1] if found else None


def is_within(name: Any) -> bool:
    """Whether a path is a plain one below the folder."""
    return "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))
