"""Files of a listing: file system entries, and a dataset's data files with their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np

__all__ = ["DataFile", "DataFileList", "DirectoryListing", "FileEntry", "PartitionIndex", "data_file_from_entry"]

PartitionValues = tuple[str | None, ...]


class FileEntry(NamedTuple):
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
    staged_path : str
        Where it is, while a commit has not put it in its place yet; empty for a file that is where its path says.
    """

    path: str
    size: int | None = None
    version: str | None = None
    modified: float | None = None
    staged_path: str = ""


@dataclass
class DirectoryListing:
    """What lies below a directory, or is matched by a pattern.

    Attributes
    ----------
    paths : list of str
        Of the files that may be data, sorted.
    about : dict of str to FileEntry
        The entries of those files, by path, of which more than that is known.
    hidden : list of FileEntry
        Files and directories (with a ``/`` behind) that are left out for their names; what is in such a directory is
        left out along with it.
    """

    paths: list[str] = field(default_factory=list)
    about: dict[str, FileEntry] = field(default_factory=dict)
    hidden: list[FileEntry] = field(default_factory=list)

    @classmethod
    def of(cls, files: Iterable[FileEntry], hidden: Iterable[FileEntry] = ()) -> DirectoryListing:
        """Make it of the entries of files, in any order, each once."""
        about = {entry.path: entry for entry in files}
        return cls(sorted(about), about, list(hidden))  # as pyarrow does: so the rows of a dataset have one order

    @property
    def files(self) -> list[FileEntry]:
        """Entries of all files, sorted by path."""
        return [self.about.get(path) or FileEntry(path) for path in self.paths]


class DataFile(NamedTuple):
    """A file of a dataset.

    Attributes
    ----------
    path : str
        As its file system, or the local one, opens it.
    name : str
        What it is called in messages, and in the column ``"file"`` of ``include``.
    size : int or None
        Bytes, where the listing tells.
    version : str or None
        What changes along with the file (an ETag, or when it was modified), where the listing tells.
    values : tuple of (str or None)
        The partition that it is in: a text, percent-decoded, for each of `DatasetListing.keys`; None for the null
        partition.
    modified : float or None
        When it was modified, in seconds since 1970, where the listing tells; of local files it does not.
    """

    path: str
    name: str
    size: int | None = None
    version: str | None = None
    values: PartitionValues = ()
    modified: float | None = None


def data_file_from_entry(entry: FileEntry, name: str, values: PartitionValues = ()) -> DataFile:
    """Make a file of what a listing found."""
    path, size, version, modified, lies_at = entry
    return DataFile(lies_at or path, name, size, version, values, modified)


class PartitionIndex(NamedTuple):
    """Which partition each of many files is in.

    Attributes
    ----------
    partitions : sequence of tuple of (str or None)
        The values of each partition, in the order of their first files; there may be some that no file is in.
    which : intp array, (files,)
        For each file, the ordinal of its partition.
    """

    partitions: Sequence[PartitionValues]
    which: np.ndarray

    @classmethod
    def of(cls, values: Iterable[PartitionValues]) -> PartitionIndex:
        """Number the partitions that files are in, by the values of each file."""
        numbers: dict[PartitionValues, int] = {}
        which = np.array([numbers.setdefault(each, len(numbers)) for each in values], np.intp)
        return cls(list(numbers), which)

    @classmethod
    def from_files(cls, files: Sequence[DataFile]) -> PartitionIndex:
        """The same, of files."""
        return files.divided if isinstance(files, DataFileList) else cls.of(file.values for file in files)

    def first_file(self, partition: int) -> int:
        """Give the ordinal of the first file in a partition that has any."""
        return int((self.which == partition).argmax())


class DataFileList(Sequence[DataFile]):
    """Files of a dataset, each made when it is asked for.

    Parameters
    ----------
    paths : sequence of str
        As the listing has them.
    about : mapping of str to FileEntry
        What is known besides, by path; of most local files, nothing.
    divided : PartitionIndex
        Their partitions.
    name_of : callable
        Gives what a path is called in messages.
    """

    def __init__(
        self,
        paths: Sequence[str],
        about: Mapping[str, FileEntry],
        divided: PartitionIndex,
        name_of: Callable[[str], str],
    ) -> None:
        self.divided = divided
        self._paths = paths
        self._about = about
        self._name_of = name_of

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, at: int) -> DataFile: ...

    @overload
    def __getitem__(self, at: slice) -> DataFileList: ...

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.taken(np.arange(len(self))[at])
        return self._made(self._paths[at], self.divided.which[at])

    def __iter__(self) -> Iterator[DataFile]:
        return map(self._made, self._paths, self.divided.which.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} files in {len(self.divided.partitions)} partitions>"

    def taken(self, places: np.ndarray) -> DataFileList:
        """Give some of them, by their ordinals."""
        paths = [self._paths[at] for at in places.tolist()]
        return DataFileList(paths, self._about, self.divided._replace(which=self.divided.which[places]), self._name_of)

    def _made(self, path: str, partition: int) -> DataFile:
        entry = self._about.get(path) or FileEntry(path)
        return data_file_from_entry(entry, self._name_of(path), self.divided.partitions[partition])
