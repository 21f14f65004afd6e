"""A profile as a job: list files, divide them into picklable tasks, merge partial profiles."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files_unless_empty
from numparq.dataset.listing.file_filter import ListingOptions
from numparq.dataset.listing.files import DataFile
from numparq.dataset.prune.pruners import select_files
from numparq.errors import ParquetError, SchemaError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.keys.part_keys import DatasetKeys
from numparq.keys.provider import as_key_source

from .build import build_profile
from .column import ProfileOptions
from .file import profile_file
from .partial_profile import PartialProfile, merge_profiles
from .profile import Profile

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_FILES_AT_ONCE = 16  # files opened together, concurrently if remote


def is_selected(leaf: Leaf, names: Collection[str | tuple[str, ...]], leaves: Sequence[Leaf]) -> bool:
    """Whether a leaf column is one of `names`, or within one.

    A text is the name of a top-level column of the file, or else a dotted path. `leaves` are all of the file's.
    """
    top = {other.path[0] for other in leaves}
    return any(leaf.path[0] == name if name in top else path_matches(leaf.path, name) for name in names)


def path_matches(path: tuple[str, ...], name: str | tuple[str, ...]) -> bool:
    """Whether a path begins with a name, a dotted path, or a path as a tuple."""
    if isinstance(name, tuple):
        return path[: len(name)] == name
    return path[0] == name or ".".join(path) == name or ".".join(path).startswith(name + ".")


@dataclass(frozen=True)
class ProfileTask:
    """Picklable part of a profile: some files, which any process can profile.

    `first` is the ordinal of the first file in the dataset; `filesystem` None is the local one. A file of zero bytes is
    no part of the dataset, unless it is one of `named_paths`.
    """

    first: int
    files: tuple[DataFile, ...]
    named_paths: frozenset[str]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    options: ProfileOptions
    strict: bool
    keys: DatasetKeys | None = None

    def run(self) -> PartialProfile:
        """Profile the files and merge the results.

        With `strict`, raise ParquetError or OSError if a file cannot be read.
        """
        parts = []
        for start in range(0, len(self.files), _FILES_AT_ONCE):
            places = range(start, min(start + _FILES_AT_ONCE, len(self.files)))
            for place, file in self._open_files(places):
                parts.append(file if isinstance(file, PartialProfile) else self._profile_file(place, file))
        return merge_profiles(parts)

    def _open_files(self, places: Sequence[int]) -> Iterator[tuple[int, OpenFile | PartialProfile]]:
        """Yield each file that is not empty, opened together if possible, else one by one, or its failed profile."""
        try:
            opened: Sequence[OpenFile | PartialProfile | None] = self._open_all(places)
        except (ParquetError, OSError):
            opened = list(map(self._open_one, places))
        for place, file in zip(places, opened, strict=True):
            if file is not None:
                yield place, file

    def _open_all(self, places: Sequence[int]) -> list[OpenFile | None]:
        files = [self.files[place] for place in places]
        listing = DatasetListing(files, filesystem=self.filesystem, named_paths=self.named_paths)  # type: ignore[arg-type]
        return open_files_unless_empty(listing, files, keys=self.keys)

    def _open_one(self, place: int) -> OpenFile | PartialProfile | None:
        try:
            return self._open_all([place])[0]
        except (ParquetError, OSError) as error:
            return self._record_failure(place, error)

    def _profile_file(self, place: int, file: OpenFile) -> PartialProfile:
        try:
            with closing(file):
                found = profile_file(
                    file, self.first + place, self.files[place].size, self._select_leaves, self.options
                )
        except (ParquetError, OSError) as error:
            return self._record_failure(place, error)
        if self.strict and found.troubles:
            raise ParquetError(found.troubles[0].message)
        return found

    def _record_failure(self, place: int, error: Exception) -> PartialProfile:
        if self.strict:
            raise error
        return PartialProfile.from_errors(self.first + place, self.files[place].name, [str(error)])

    def _select_leaves(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        return leaves if self.columns is None else [leaf for leaf in leaves if is_selected(leaf, self.columns, leaves)]


def profile_files(
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    *,
    data: bool | str = "auto",
    where: Any = None,
    partitioning: Any = "hive",
    table_format: str = "auto",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    strict: bool = False,
    verify_crc: bool = True,
    threads: int = 1,
    decryption: KeySource | str | None = None,
) -> Profile:
    """Profile a dataset: its contents, how it is stored, and how many bytes look-ups would read.

    Parameters
    ----------
    path : str, os.PathLike, or list of these
        As in `numparq.Dataset`.
    columns : sequence of str or tuple, optional
        Columns to profile, with their nested fields: top-level names, dotted paths, or paths as tuples. Default: all.
    data : {"auto", True, False}
        What to read besides footers and page indexes. ``"auto"`` reads the dictionaries of column chunks that are
        dictionary-encoded throughout, and the data of chunks that still leave something unknown; True reads the data of
        all chunks, False of none.
    where : expression, str, or list of tuples, optional
        Predicate on partition columns that selects files.
    partitioning, table_format, storage_options, filesystem
        As in `numparq.Dataset`.
    strict : bool, default False
        Whether to raise an error for a damaged file. By default damage is counted and reported in the profile.
    verify_crc : bool, default True
        Whether to verify page checksums where data is read.
    threads : int, default 1
        Number of threads that decode a column chunk.
    decryption : Decryption or str, optional
        Keys of encrypted files, or the name of their provider. Columns without a key are troubles of their files.

    Returns
    -------
    Profile

    Raises
    ------
    FileNotFoundError
        If nothing exists at the path.
    SchemaError
        If no file has a column of `columns`.
    ValueError
        If `where` uses other than partition columns, or `data` is not one of its choices.
    ParquetError
        With `strict`, if a file is damaged.

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
    job = ProfileJob.from_path(
        path,
        columns,
        data=data,
        where=where,
        partitioning=partitioning,
        table_format=table_format,
        storage_options=storage_options,
        filesystem=filesystem,
        strict=strict,
        verify_crc=verify_crc,
        threads=threads,
        decryption=decryption,
    )
    (work,) = job.split(1)
    return job.profile([work.run()])


@dataclass(frozen=True)
class ProfileJob:
    """Profile of a dataset as a job: the files are listed and can be divided among processes.

    Attributes
    ----------
    path : str
        Path as text, or the number of paths.
    files : sequence of DataFile
        Files to profile.
    keys : tuple of str
        Selected partition columns.
    key_positions : tuple of int
        Position of each partition column in `DataFile.values`.
    named_paths : frozenset of str
        Files given by name, which must not be empty.
    filesystem : fsspec or pyarrow file system, or None
        File system of the files; None for the local one.
    columns : tuple of (str or tuple of str), or None
        As in `profile_files`.
    options : ProfileOptions
        What to read of each file.
    strict : bool
        Whether to raise an error for a damaged file.
    dataset_keys : DatasetKeys or None
        Keys of encrypted files.
    """

    path: str
    files: Sequence[DataFile]
    keys: tuple[str, ...]
    key_positions: tuple[int, ...]
    named_paths: frozenset[str]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    options: ProfileOptions
    strict: bool
    dataset_keys: DatasetKeys | None = None

    @classmethod
    def from_path(
        cls,
        path: Any,
        columns: Sequence[str | tuple[str, ...]] | None = None,
        *,
        data: bool | str = "auto",
        where: Any = None,
        partitioning: Any = "hive",
        table_format: str = "auto",
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        strict: bool = False,
        verify_crc: bool = True,
        threads: int = 1,
        decryption: KeySource | str | None = None,
    ) -> ProfileJob:
        """List the files of a dataset; parameters and errors as in `profile_files`."""
        if data not in (True, False, "auto"):
            raise ValueError(f"data must be True, False or 'auto', not {data!r}")
        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names, not one name, {columns!r}")
        listing = list_files(
            path,
            partitioning=partitioning,
            options=ListingOptions(table_format),
            storage_options=storage_options,
            filesystem=filesystem,
        )
        files = listing.files if where is None else select_files(listing, partitioning, where)
        wanted = None if columns is None else tuple(columns)
        keys = tuple(key for key in listing.keys if wanted is None or key in wanted)
        places = tuple(map(listing.keys.index, keys))
        how = ProfileOptions(data, verify_crc, threads)
        named = frozenset(file.path for file in files) if listing.is_single_file else listing.named_paths
        source, dataset_keys = as_key_source(decryption), None
        if source is not None:
            base = listing.base if listing.is_directory else None
            dataset_keys = DatasetKeys.of_dataset(source, base, listing.filesystem is None)
        return cls(
            _describe_path(path), files, keys, places, named, listing.filesystem, wanted, how, strict, dataset_keys
        )

    @property
    def num_files(self) -> int:
        """Number of files."""
        return len(self.files)

    def split(self, parts: int) -> list[ProfileTask]:
        """Divide the files into tasks of neighbouring files.

        Parameters
        ----------
        parts : int
            Maximum number of tasks, at least 1.

        Returns
        -------
        list of ProfileTask
            At least one; with several, none is without files.
        """
        count = max(min(parts, self.num_files), 1)
        edges = [self.num_files * at // count for at in range(count + 1)]
        return [self._task(start, stop) for start, stop in pairwise(edges)]

    def _task(self, start: int, stop: int) -> ProfileTask:
        """Return a task with absolute paths, which a process with another working directory finds."""
        files = tuple(self.files[start:stop])
        absolute = files
        if self.filesystem is None:
            absolute = tuple(file._replace(path=os.path.abspath(file.path)) for file in files)
        named = frozenset(to.path for file, to in zip(files, absolute, strict=True) if file.path in self.named_paths)
        return ProfileTask(
            start, absolute, named, self.filesystem, self.columns, self.options, self.strict, self.dataset_keys
        )

    def profile(self, parts: Sequence[PartialProfile]) -> Profile:
        """Build the profile of the dataset.

        Parameters
        ----------
        parts : sequence of PartialProfile
            Partial profiles of all files, in any order.

        Returns
        -------
        Profile

        Raises
        ------
        SchemaError
            If no file has a column of `columns`.
        """
        part = merge_profiles(parts)
        self._check(part)
        values = {}
        for at in part.files:
            known = self.files[at].values
            values[at] = tuple(known[place] for place in self.key_positions)
        return build_profile(self.path, len({*part.files, *part.troubled}), part, self.keys, values)

    def _check(self, part: PartialProfile) -> None:
        if not part.files:
            return  # all files are damaged; the profile reports it
        for name in self.columns or ():
            if name not in self.keys and not any(path_matches(path, name) for path in part.columns):
                shown = name if isinstance(name, str) else ".".join(name)
                raise SchemaError("no file has the column", column=shown)


def _describe_path(path: Any) -> str:
    if isinstance(path, (list, tuple)):
        return f"{len(path):,} paths" if len(path) != 1 else _describe_path(path[0])
    return str(path)
