"""A profile as a job: list files, divide them into picklable tasks, merge partial profiles."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.listing.files import DataFile
from numparq.dataset.prune.pruners import select_files
from numparq.errors import ParquetError, SchemaError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf

from .build import build_profile
from .column import ProfileOptions
from .file import profile_file
from .partial_profile import PartialProfile, merge_profiles
from .profile import Profile

__all__ = ["ProfileJob", "ProfileTask", "is_selected", "path_matches", "profile_files"]

_FILES_AT_ONCE = 16  # files that are opened together, side by side where they are remote


def is_selected(leaf: Leaf, names: Collection[str | tuple[str, ...]], leaves: Sequence[Leaf]) -> bool:
    """Tell whether a leaf is a column that is asked for, or in one.

    Parameters
    ----------
    leaf : Leaf
        One of a file's.
    names : collection of str or tuple
        What is asked for. A text is a top-level column of exactly that name, or else a dotted path.
    leaves : sequence of Leaf
        All of the file's.
    """
    top = {other.path[0] for other in leaves}
    return any(leaf.path[0] == name if name in top else path_matches(leaf.path, name) for name in names)


def path_matches(path: tuple[str, ...], name: str | tuple[str, ...]) -> bool:
    """Tell whether a path begins with a name, or with a path, which may be dotted."""
    if isinstance(name, tuple):
        return path[: len(name)] == name
    return path[0] == name or ".".join(path) == name or ".".join(path).startswith(name + ".")


@dataclass(frozen=True)
class ProfileTask:
    """Some of the files of a profile, which any process can find out about; picklable, as what comes out is.

    Parameters
    ----------
    first : int
        Which of the dataset's files the first of them is.
    files : tuple of DataFile
        The files.
    filesystem : fsspec or pyarrow file system, or None
        Where they are; None for the local one.
    columns : tuple of (str or tuple of str), or None
        As in `profile_files`.
    how : ProfileOptions
        What is read of each file.
    strict : bool
        Whether a damaged file is an error.
    """

    first: int
    files: tuple[DataFile, ...]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    how: ProfileOptions
    strict: bool

    def part(self) -> PartialProfile:
        """Find out about the files.

        Returns
        -------
        PartialProfile
            What adds up with those of other files.

        Raises
        ------
        ParquetError, OSError
            With `strict`, when a file cannot be read.
        """
        parts = []
        for start in range(0, len(self.files), _FILES_AT_ONCE):
            places = range(start, min(start + _FILES_AT_ONCE, len(self.files)))
            for place, file in self._opened(places):
                parts.append(file if isinstance(file, PartialProfile) else self._profile_file(place, file))
        return merge_profiles(parts)

    def _opened(self, places: Sequence[int]) -> Iterator[tuple[int, OpenFile | PartialProfile]]:
        """Open files: all together, or, where one of them cannot be opened, each by itself."""
        try:
            opened: Sequence[OpenFile | None] = self._open(places)
        except (ParquetError, OSError):
            opened = [None] * len(places)
        for place, file in zip(places, opened, strict=True):
            yield place, self._open_one(place) if file is None else file

    def _open(self, places: Sequence[int]) -> list[OpenFile]:
        files = [self.files[place] for place in places]
        return open_files(DatasetListing(files, filesystem=self.filesystem), files)  # type: ignore[arg-type]

    def _open_one(self, place: int) -> OpenFile | PartialProfile:
        try:
            return self._open([place])[0]
        except (ParquetError, OSError) as error:
            return self._record_failure(place, error)

    def _profile_file(self, place: int, file: OpenFile) -> PartialProfile:
        try:
            with closing(file):
                found = profile_file(file, self.first + place, self.files[place].size, self._select_leaves, self.how)
        except (ParquetError, OSError) as error:
            return self._record_failure(place, error)
        if self.strict and found.troubles:
            raise ParquetError(found.troubles[0].message)
        return found

    def _record_failure(self, place: int, error: Exception) -> PartialProfile:
        if self.strict:
            raise error
        return PartialProfile.failed(self.first + place, self.files[place].name, [str(error)])

    def _select_leaves(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        return leaves if self.columns is None else [leaf for leaf in leaves if is_selected(leaf, self.columns, leaves)]


def profile_files(
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    *,
    data: bool | str = "auto",
    where: Any = None,
    partitioning: Any = "hive",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    strict: bool = False,
    verify_crc: bool = True,
    threads: int = 1,
) -> Profile:
    """Find out what is in the files of a dataset, how it is stored, and how well files could be skipped.

    Parameters
    ----------
    path : str, os.PathLike, or list of these
        As in `numparq.Dataset`.
    columns : sequence of str or tuple, optional
        Only these, and what is in them: a top-level column, a dotted path, or a path as a tuple.
    data : {"auto", True, False}
        What may be read besides footers and page indexes: with ``"auto"``, the dictionaries of columns that are
        encoded by one throughout, and the data of those column chunks of which something else is still open; with
        True the data of all; with False nothing.
    where : expression, list of tuples, or str, optional
        Which partitions; it asks only partition columns.
    partitioning, storage_options, filesystem
        As in `numparq.Dataset`.
    strict : bool
        Whether a damaged file is an error; else it is counted and told of, and the others make the profile.
    verify_crc : bool
        Whether pages with a CRC are held against it, where data is read.
    threads : int
        How many decode a column chunk.

    Returns
    -------
    Profile

    Raises
    ------
    FileNotFoundError
        When there is nothing at the path.
    SchemaError
        When no file has a column of `columns`.
    ValueError
        When `where` asks anything but partition columns, or `data` is none of these.
    ParquetError
        With `strict`, when a file is damaged.

    Examples
    --------
    >>> import pandas, tempfile, numparq
    >>> from numparq.tools.profile.job import profile_files
    >>> frame = pandas.DataFrame({"n": [3, 1, 2, 2], "s": ["a", "b", None, "b"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numparq.to_parquet(frame, folder + "/one.parquet")
    ...     found = profile_files(folder)
    >>> found["s"].nulls, found["s"].distinct, found["n"].min, found["n"].max
    (1, 2, 1, 3)
    """
    job = ProfileJob.of(
        path,
        columns,
        data=data,
        where=where,
        partitioning=partitioning,
        storage_options=storage_options,
        filesystem=filesystem,
        strict=strict,
        verify_crc=verify_crc,
        threads=threads,
    )
    (work,) = job.divided(1)
    return job.profile([work.part()])


@dataclass(frozen=True)
class ProfileJob:
    """A profile to be made: the files are listed, and may be divided among processes.

    Parameters
    ----------
    path : str
        What was given, in words.
    files : sequence of DataFile
        The files.
    keys : tuple of str
        The partition columns that are wanted.
    places : tuple of int
        Their places in `DataFile.values`.
    filesystem, columns, how, strict
        As of `ProfileTask`.
    """

    path: str
    files: Sequence[DataFile]
    keys: tuple[str, ...]
    places: tuple[int, ...]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    how: ProfileOptions
    strict: bool

    @classmethod
    def of(
        cls,
        path: Any,
        columns: Sequence[str | tuple[str, ...]] | None = None,
        *,
        data: bool | str = "auto",
        where: Any = None,
        partitioning: Any = "hive",
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        strict: bool = False,
        verify_crc: bool = True,
        threads: int = 1,
    ) -> ProfileJob:
        """List the files; parameters and errors as of `profile_files`."""
        if data not in (True, False, "auto"):
            raise ValueError(f"data is True, False or 'auto', not {data!r}")
        if isinstance(columns, str):
            raise TypeError("columns is a sequence of names, not one name")
        listing = list_files(path, partitioning=partitioning, storage_options=storage_options, filesystem=filesystem)
        files = listing.files if where is None else select_files(listing, partitioning, where)
        wanted = None if columns is None else tuple(columns)
        keys = tuple(key for key in listing.keys if wanted is None or key in wanted)
        places = tuple(map(listing.keys.index, keys))
        how = ProfileOptions(data, verify_crc, threads)
        return cls(_describe_path(path), files, keys, places, listing.filesystem, wanted, how, strict)

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return len(self.files)

    def divided(self, parts: int) -> list[ProfileTask]:
        """Divide the files, neighbours together, among at most so many processes.

        Parameters
        ----------
        parts : int
            At least 1.

        Returns
        -------
        list of FilesWork
            At least one; none of several is without files.
        """
        count = max(min(parts, self.num_files), 1)
        edges = [self.num_files * at // count for at in range(count + 1)]
        return [
            ProfileTask(start, self._absolute_paths(start, stop), self.filesystem, self.columns, self.how, self.strict)
            for start, stop in pairwise(edges)
        ]

    def _absolute_paths(self, start: int, stop: int) -> tuple[DataFile, ...]:
        """Give files by paths that a process with another working folder finds, too."""
        files = self.files[start:stop]
        if self.filesystem is not None:
            return tuple(files)
        return tuple(file._replace(path=os.path.abspath(file.path)) for file in files)

    def profile(self, parts: Sequence[PartialProfile]) -> Profile:
        """Make the profile of all that has been found out.

        Parameters
        ----------
        parts : sequence of PartialProfile
            Those of all files, in any order.

        Returns
        -------
        Profile

        Raises
        ------
        SchemaError
            When no file has a column that was asked for.
        """
        part = merge_profiles(parts)
        self._check(part)
        values = {}
        for at in part.files:
            known = self.files[at].values
            values[at] = tuple(known[place] for place in self.places)
        return build_profile(self.path, self.num_files, part, self.keys, values)

    def _check(self, part: PartialProfile) -> None:
        if not part.files:
            return  # all files are damaged: which the profile says
        for name in self.columns or ():
            if name not in self.keys and not any(path_matches(path, name) for path in part.columns):
                shown = name if isinstance(name, str) else ".".join(name)
                raise SchemaError("no file has the column", column=shown)


def _describe_path(path: Any) -> str:
    if isinstance(path, (list, tuple)):
        return f"{len(path):,} paths" if len(path) != 1 else _describe_path(path[0])
    return str(path)
