"""A profile as a job: list files, divide them into picklable tasks, merge partial profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
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
from numparq.skipping.summary.chunk_values import ReadOptions
from numparq.skipping.summary.column_climb import SummaryNeeds

from .build import build_profile
from .column import ChunkDigest
from .file import profile_file
from .partial_profile import PartialProfile, merge_profiles
from .profile import Profile

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_FILES_AT_ONCE = 16  # files opened together, concurrently if remote


def path_matches(path: tuple[str, ...], name: str | tuple[str, ...]) -> bool:
    """Whether a path begins with a name, a dotted path, or a path as a tuple."""
    if isinstance(name, tuple):
        return path[: len(name)] == name
    return path[0] == name or ".".join(path) == name or ".".join(path).startswith(name + ".")


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
    return job.profile([job.run()])


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
    needs : SummaryNeeds
        What to read of each file.
    strict : bool
        Whether to raise an error for a damaged file.
    dataset_keys : DatasetKeys or None
        Keys of encrypted files.
    first : int
        Ordinal of the first file in the dataset, of a job that is a part of another.
    """

    path: str
    files: Sequence[DataFile]
    keys: tuple[str, ...]
    key_positions: tuple[int, ...]
    named_paths: frozenset[str]
    filesystem: Any
    columns: tuple[str | tuple[str, ...], ...] | None
    needs: SummaryNeeds
    strict: bool
    dataset_keys: DatasetKeys | None = None
    first: int = 0

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
        names = None if columns is None else tuple(columns)
        keys = tuple(key for key in listing.keys if names is None or key in names)
        positions = tuple(map(listing.keys.index, keys))
        read_options = ReadOptions(verify_crc, threads)
        needs = SummaryNeeds(distinct=ChunkDigest.from_values, data=data, options=read_options)
        named = frozenset(file.path for file in files) if listing.is_single_file else listing.named_paths
        source, dataset_keys = as_key_source(decryption), None
        if source is not None:
            base = listing.base if listing.is_directory else None
            dataset_keys = DatasetKeys.of_dataset(source, base, listing.filesystem is None)
        path = _describe_path(path)
        return cls(path, files, keys, positions, named, listing.filesystem, names, needs, strict, dataset_keys)

    @property
    def num_files(self) -> int:
        """Number of files."""
        return len(self.files)

    def split(self, parts: int) -> list[ProfileJob]:
        """Divide into jobs of neighbouring files, which any process can run.

        Parameters
        ----------
        parts : int
            Maximum number of jobs, at least 1.

        Returns
        -------
        list of ProfileJob
            At least one; with several, none is without files. Paths are absolute.
        """
        count = max(min(parts, self.num_files), 1)
        edges = [self.num_files * at // count for at in range(count + 1)]
        return [self._part(start, stop) for start, stop in pairwise(edges)]

    def _part(self, start: int, stop: int) -> ProfileJob:
        files = tuple(self.files[start:stop])
        absolute = files
        if self.filesystem is None:
            absolute = tuple(file._replace(path=os.path.abspath(file.path)) for file in files)
        named = frozenset(to.path for file, to in zip(files, absolute, strict=True) if file.path in self.named_paths)
        return replace(self, files=absolute, named_paths=named, first=self.first + start)

    def run(self) -> PartialProfile:
        """Profile the files in this process.

        Returns
        -------
        PartialProfile
            Partial profiles of all files, added up.

        Raises
        ------
        ParquetError or OSError
            With `strict`, if a file cannot be read.
        """
        batches = range(0, self.num_files, _FILES_AT_ONCE)
        positions = (range(start, min(start + _FILES_AT_ONCE, self.num_files)) for start in batches)
        return merge_profiles([part for some in positions for part in self._profile_files(some)])

    def _profile_files(self, positions: Sequence[int]) -> Iterator[PartialProfile]:
        """Yield the profiles of files that are opened together, or one by one if that fails, or of their errors."""
        try:
            files = self._open(positions)
        except (ParquetError, OSError) as error:
            if len(positions) == 1:
                yield self._from_error(positions[0], error)
            else:
                for position in positions:
                    yield from self._profile_files([position])
            return
        for position, file in zip(positions, files, strict=True):
            if file is not None:
                yield self._profile_file(position, file)

    def _open(self, positions: Sequence[int]) -> list[OpenFile | None]:
        """Open some files together; None for an empty file that is not part of the dataset."""
        files = [self.files[position] for position in positions]
        listing = DatasetListing(files, filesystem=self.filesystem, named_paths=self.named_paths)  # type: ignore[arg-type]
        return open_files_unless_empty(listing, files, keys=self.dataset_keys)

    def _profile_file(self, position: int, file: OpenFile) -> PartialProfile:
        size = self.files[position].size
        try:
            with closing(file):
                profile = profile_file(file, self.first + position, size, self._select_leaves, self.needs)
        except (ParquetError, OSError) as error:
            return self._from_error(position, error)
        if self.strict and profile.troubles:
            raise ParquetError(profile.troubles[0].message)
        return profile

    def _from_error(self, position: int, error: Exception) -> PartialProfile:
        if self.strict:
            raise error
        return PartialProfile.from_errors(self.first + position, self.files[position].name, [str(error)])

    def _select_leaves(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        """Return the leaf columns that are named, or within a named column; `leaves` are all of the file's."""
        if self.columns is None:
            return leaves
        top = {leaf.path[0] for leaf in leaves}
        return [
            leaf
            for leaf in leaves
            if any(leaf.path[0] == name if name in top else path_matches(leaf.path, name) for name in self.columns)
        ]

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
        merged = merge_profiles(parts)
        self._check_columns(merged)
        values = {
            ordinal: tuple(self.files[ordinal].values[position] for position in self.key_positions)
            for ordinal in merged.files
        }
        return build_profile(self.path, len({*merged.files, *merged.troubled}), merged, self.keys, values)

    def _check_columns(self, merged: PartialProfile) -> None:
        if not merged.files:
            return  # all files are damaged; the profile reports it
        for name in self.columns or ():
            if name not in self.keys and not any(path_matches(path, name) for path in merged.columns):
                raise SchemaError("no file has the column", column=name if isinstance(name, str) else ".".join(name))


def _describe_path(path: Any) -> str:
    if isinstance(path, (list, tuple)):
        return f"{len(path):,} paths" if len(path) != 1 else _describe_path(path[0])
    return str(path)
