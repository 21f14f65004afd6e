"""The files of a dataset: thousands of them, of which most are only ever asked which partition they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from .entries import Entry

__all__ = ["DataFile", "DataFiles", "Divided", "data_file"]

Values = tuple[str | None, ...]


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
        The partition that it is in: a text, percent-decoded, for each of `Listing.keys`; None for the null partition.
    modified : float or None
        When it was modified, in seconds since 1970, where the listing tells; of local files it does not.
    """

    path: str
    name: str
    size: int | None = None
    version: str | None = None
    values: Values = ()
    modified: float | None = None


def data_file(entry: Entry, name: str, values: Values = ()) -> DataFile:
    """Make a file of what a listing found."""
    path, size, version, modified, lies_at = entry
    return DataFile(lies_at or path, name, size, version, values, modified)


class Divided(NamedTuple):
    """Which partition each of many files is in.

    Attributes
    ----------
    partitions : sequence of tuple of (str or None)
        The values of each partition, in the order of their first files; there may be some that no file is in.
    which : intp array, (files,)
        For each file, the ordinal of its partition.
    """

    partitions: Sequence[Values]
    which: np.ndarray

    @classmethod
    def of(cls, values: Iterable[Values]) -> Divided:
        """Number the partitions that files are in, by the values of each file."""
        numbers: dict[Values, int] = {}
        which = np.array([numbers.setdefault(each, len(numbers)) for each in values], np.intp)
        return cls(list(numbers), which)

    @classmethod
    def of_files(cls, files: Sequence[DataFile]) -> Divided:
        """The same, of files."""
        return files.divided if isinstance(files, DataFiles) else cls.of(file.values for file in files)

    def first_in(self, partition: int) -> int:
        """Give the ordinal of the first file in a partition that has any."""
        return int((self.which == partition).argmax())


class DataFiles(Sequence[DataFile]):
    """Files of a dataset, each made when it is asked for.

    Parameters
    ----------
    paths : sequence of str
        As the listing has them.
    about : mapping of str to Entry
        What is known besides, by path; of most local files, nothing.
    divided : Divided
        Their partitions.
    name_of : callable
        Gives what a path is called in messages.
    """

    def __init__(
        self, paths: Sequence[str], about: Mapping[str, Entry], divided: Divided, name_of: Callable[[str], str]
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
    def __getitem__(self, at: slice) -> DataFiles: ...

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

    def taken(self, places: np.ndarray) -> DataFiles:
        """Give some of them, by their ordinals."""
        paths = [self._paths[at] for at in places.tolist()]
        return DataFiles(paths, self._about, self.divided._replace(which=self.divided.which[places]), self._name_of)

    def _made(self, path: str, partition: int) -> DataFile:
        entry = self._about.get(path) or Entry(path)
        return data_file(entry, self._name_of(path), self.divided.partitions[partition])
