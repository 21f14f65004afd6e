"""What a listing finds: files, by the path that their file system opens them by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Entry", "Found"]


class Entry(NamedTuple):
    """A file that a listing found.

    Attributes
    ----------
    path : str
        With ``/`` between its parts.
    size : int or None
        Bytes, where the listing tells.
    version : str or None
        What changes along with the file (an ETag, or when it was modified), where the listing tells.
    modified : float or None
        When it was modified, in seconds since 1970, where the listing tells.
    lies_at : str
        Where it is, while a commit has not put it in its place yet; empty for a file that is where its path says.
    """

    path: str
    size: int | None = None
    version: str | None = None
    modified: float | None = None
    lies_at: str = ""


@dataclass
class Found:
    """What lies below a directory, or is matched by a pattern.

    Attributes
    ----------
    paths : list of str
        Of the files that may be data, sorted.
    about : dict of str to Entry
        The entries of those files, by path, of which more than that is known.
    hidden : list of Entry
        Files and directories (with a ``/`` behind) that are left out for their names; what is in such a directory is
        left out along with it.
    """

    paths: list[str] = field(default_factory=list)
    about: dict[str, Entry] = field(default_factory=dict)
    hidden: list[Entry] = field(default_factory=list)

    @classmethod
    def of(cls, files: Iterable[Entry], hidden: Iterable[Entry] = ()) -> Found:
        """Make it of the entries of files, in any order, each once."""
        about = {entry.path: entry for entry in files}
        return cls(sorted(about), about, list(hidden))  # as pyarrow does: so the rows of a dataset have one order

    @property
    def files(self) -> list[Entry]:
        """Entries of all files, sorted by path."""
        return [self.about.get(path) or Entry(path) for path in self.paths]
