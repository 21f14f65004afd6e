"""Files of a listing: file system entries, and a dataset's data files with their partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np

from numparq.util.pluralize import agree_noun

PartitionValues = tuple[str | None, ...]


class FileEntry(NamedTuple):
    """A file in a listing; what the listing does not report is None.

    Attributes
    ----------
    path : str
        Path, separated by ``/``.
    size : int or None
        Size in bytes.
    version : str or None
        Token that changes with the content: an ETag, or else the modification time.
    modified : float or None
        Modification time, in seconds since 1970.
    staged_path : str
        Current path of a committed file that has not been moved to `path` yet; empty otherwise.
    """

    path: str
    size: int | None = None
    version: str | None = None
    modified: float | None = None
    staged_path: str = ""


@dataclass
class DirectoryListing:
    """Files below a directory, or files that a pattern matches.

    Attributes
    ----------
    paths : list of str
        Sorted paths of the files that may hold data.
    entries : dict of str to FileEntry
        Entries by path, of the files of which more than the path is known.
    hidden : list of FileEntry
        Hidden files and directories (path ends with ``/``); the contents of hidden directories are not listed.
    """

    paths: list[str] = field(default_factory=list)
    entries: dict[str, FileEntry] = field(default_factory=dict)
    hidden: list[FileEntry] = field(default_factory=list)

    @classmethod
    def from_entries(cls, files: Iterable[FileEntry], hidden: Iterable[FileEntry] = ()) -> DirectoryListing:
        """Build a listing from distinct entries in any order."""
        about = {entry.path: entry for entry in files}
        return cls(sorted(about), about, list(hidden))  # sorted as pyarrow does: one row order

    @property
    def files(self) -> list[FileEntry]:
        """Entries of all files, sorted by path."""
        return [self.entries.get(path) or FileEntry(path) for path in self.paths]


class DataFile(NamedTuple):
    """A file of a dataset; what the listing does not report is None.

    Attributes
    ----------
    path : str
        Path for the dataset's file system, or for the local one.
    name : str
        Name in messages, and in the ``"file"`` column of ``include``.
    size : int or None
        Size in bytes.
    version : str or None
        Token that changes with the content: an ETag, or else the modification time.
    values : tuple of (str or None)
        Partition values: percent-decoded text for each partition key of the dataset; None for the null partition.
    modified : float or None
        Modification time, in seconds since 1970; None for local files.
    """

    path: str
    name: str
    size: int | None = None
    version: str | None = None
    values: PartitionValues = ()
    modified: float | None = None

    def committed_path(self, is_local: bool) -> str:
        """Return the path in the dataset, which that of a local file is not while its commit has it staged."""
        is_by_path = not is_local or (os.path.isabs(self.path) and not os.path.isabs(self.name))
        return self.path if is_by_path else self.name


def data_file_from_entry(entry: FileEntry, name: str, values: PartitionValues = ()) -> DataFile:
    """Build a data file from a listing's entry, opened at its staged path if it has one."""
    path, size, version, modified, lies_at = entry
    return DataFile(lies_at or path, name, size, version, values, modified)


class PartitionIndex(NamedTuple):
    """The partition of each of many files.

    Attributes
    ----------
    partitions : sequence of tuple of (str or None)
        Values of each partition, in order of their first files; some may have no file.
    codes : intp array, (files,)
        For each file, the ordinal of its partition.
    """

    partitions: Sequence[PartitionValues]
    codes: np.ndarray

    @classmethod
    def from_values(cls, values: Iterable[PartitionValues]) -> PartitionIndex:
        """Build the index from the partition values of each file."""
        numbers: dict[PartitionValues, int] = {}
        which = np.array([numbers.setdefault(each, len(numbers)) for each in values], np.intp)
        return cls(list(numbers), which)

    @classmethod
    def from_files(cls, files: Sequence[DataFile]) -> PartitionIndex:
        """Build the index from data files, or return the one that a `DataFileList` already has."""
        return (
            files.partition_index if isinstance(files, DataFileList) else cls.from_values(file.values for file in files)
        )

    def first_file(self, partition: int) -> int:
        """Return the ordinal of the first file of a partition that has files."""
        return int((self.codes == partition).argmax())


class DataFileList(Sequence[DataFile]):
    """Lazy sequence of data files: each `DataFile` is built on access.

    ``about`` maps a path to its `FileEntry`; most local files have none. ``name_of`` returns a path's name in messages.
    """

    def __init__(
        self,
        paths: Sequence[str],
        about: Mapping[str, FileEntry],
        divided: PartitionIndex,
        name_of: Callable[[str], str],
    ) -> None:
        self.partition_index = divided
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
            return self.take(np.arange(len(self))[at])
        return self._build_file(self._paths[at], self.partition_index.codes[at])

    def __iter__(self) -> Iterator[DataFile]:
        return map(self._build_file, self._paths, self.partition_index.codes.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = len(self.partition_index.partitions)
        return f"<{len(self)} {agree_noun(len(self), 'file')} in {count} {agree_noun(count, 'partition')}>"

    def take(self, places: np.ndarray) -> DataFileList:
        """Return the files with the given ordinals."""
        paths = [self._paths[at] for at in places.tolist()]
        return DataFileList(
            paths, self._about, self.partition_index._replace(codes=self.partition_index.codes[places]), self._name_of
        )

    def _build_file(self, path: str, partition: int) -> DataFile:
        entry, values = self._about.get(path), self.partition_index.partitions[partition]
        if entry is None:
            return DataFile(path, self._name_of(path), values=values)
        return data_file_from_entry(entry, self._name_of(path), values)
