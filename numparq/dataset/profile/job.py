"""The profile of a dataset as work that can be divided: any process finds out about some of the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...errors import SchemaError
from ..chosen_partitions import files_where
from ..data_files import DataFile
from ..files import list_files
from .choosing import is_named
from .column import Reading
from .final import profile_of
from .part import Part, merged
from .result import Profile
from .work import FilesWork

__all__ = ["ProfileJob", "profile_files"]


def profile_files(
    path: Any, columns: Sequence[str | tuple[str, ...]] | None = None, *, data: bool | str = "auto", where: Any = None,
    partitioning: Any = "hive", storage_options: dict[str, Any] | None = None, filesystem: Any = None,
    strict: bool = False, verify_crc: bool = True, threads: int = 1,
) -> Profile:  # fmt: skip
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
    >>> from numparq.dataset.profile import profile_files
    >>> frame = pandas.DataFrame({"n": [3, 1, 2, 2], "s": ["a", "b", None, "b"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numparq.to_parquet(frame, folder + "/one.parquet")
    ...     found = profile_files(folder)
    >>> found["s"].nulls, found["s"].distinct, found["n"].min, found["n"].max
    (1, 2, 1, 3)
    """
    job = ProfileJob.of(
        path, columns, data=data, where=where, partitioning=partitioning, storage_options=storage_options,
        filesystem=filesystem, strict=strict, verify_crc=verify_crc, threads=threads,
    )  # fmt: skip
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
        As of `FilesWork`.
    """

    path: str
    files: Sequence[DataFile]
    keys: tuple[str, ...]
    places: tuple[int, ...]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    how: Reading
    strict: bool

    @classmethod
    def of(
        cls, path: Any, columns: Sequence[str | tuple[str, ...]] | None = None, *, data: bool | str = "auto",
        where: Any = None, partitioning: Any = "hive", storage_options: dict[str, Any] | None = None,
        filesystem: Any = None, strict: bool = False, verify_crc: bool = True, threads: int = 1,
    ) -> ProfileJob:  # fmt: skip
        """List the files; parameters and errors as of `profile_files`."""
        if data not in (True, False, "auto"):
            raise ValueError(f"data is True, False or 'auto', not {data!r}")
        if isinstance(columns, str):
            raise TypeError("columns is a sequence of names, not one name")
        listing = list_files(path, partitioning=partitioning, storage_options=storage_options, filesystem=filesystem)
        files = listing.files if where is None else files_where(listing, partitioning, where)
        wanted = None if columns is None else tuple(columns)
        keys = tuple(key for key in listing.keys if wanted is None or key in wanted)
        places = tuple(map(listing.keys.index, keys))
        how = Reading(data, verify_crc, threads)
        return cls(_words(path), files, keys, places, listing.filesystem, wanted, how, strict)

    @property
    def num_files(self) -> int:
        """How many files there are."""
        return len(self.files)

    def divided(self, parts: int) -> list[FilesWork]:
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
            FilesWork(start, self._from_anywhere(start, stop), self.filesystem, self.columns, self.how, self.strict)
            for start, stop in pairwise(edges)
        ]

    def _from_anywhere(self, start: int, stop: int) -> tuple[DataFile, ...]:
        """Give files by paths that a process with another working folder finds, too."""
        files = self.files[start:stop]
        if self.filesystem is not None:
            return tuple(files)
        return tuple(file._replace(path=os.path.abspath(file.path)) for file in files)

    def profile(self, parts: Sequence[Part]) -> Profile:
        """Make the profile of all that has been found out.

        Parameters
        ----------
        parts : sequence of Part
            Those of all files, in any order.

        Returns
        -------
        Profile

        Raises
        ------
        SchemaError
            When no file has a column that was asked for.
        """
        part = merged(parts)
        self._check(part)
        values = {}
        for at in part.files:
            known = self.files[at].values
            values[at] = tuple(known[place] for place in self.places)
        return profile_of(self.path, self.num_files, part, self.keys, values)

    def _check(self, part: Part) -> None:
        if not part.files:
            return  # all files are damaged: which the profile says
        for name in self.columns or ():
            if name not in self.keys and not any(is_named(path, name) for path in part.columns):
                shown = name if isinstance(name, str) else ".".join(name)
                raise SchemaError("no file has the column", column=shown)


def _words(path: Any) -> str:
    if isinstance(path, (list, tuple)):
        return f"{len(path):,} paths" if len(path) != 1 else _words(path[0])
    return str(path)
