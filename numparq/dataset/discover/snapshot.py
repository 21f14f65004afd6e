"""Snapshot of a dataset: its listing, the files opened so far, and their merged schemas."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.dataset.listing.file_filter import ALL_FILES, FileFilter, ListingOptions
from numparq.dataset.listing.files import DataFile, DataFileList
from numparq.dataset.listing.local import file_version
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.schema_merge.column_mapping import field_key_function
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.dataset.schema_merge.schema_file import without_rows
from numparq.format.bound_keys import bind_keys
from numparq.format.key_values.spark import SparkCalendar
from numparq.format.open_file import OpenFile
from numparq.io.open import open_filesystem_source, open_local_source
from numparq.io.opened_path import OpenedPath
from numparq.io.replaced_files import find_replaced_file
from numparq.io.source import Source
from numparq.keys.part_keys import DatasetKeys

from .expected_parts import ExpectedParts, PartNames, fingerprint, part_names
from .files import EmptyDatasetError, list_files, list_source
from .open_files import open_files_unless_empty

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.dataset.prune.file_query import PrunedFiles
    from numparq.io.coalesce import Coalescing


class DatasetSnapshot:
    """Listing of a dataset with its opened files and merged schemas, all cached until `close`.

    Parameters are those of `Dataset`. Elsewhere a file is known by its ordinal in ``listing.files``.
    """

    calendar: SparkCalendar | None = None  # of its files, as of `OpenFile`; set before any is opened

    def __init__(
        self,
        opened_path: OpenedPath,
        partitioning: Any,
        categories: Collection[str] | None,
        schema: Any,
        resolve: str,
        coalescing: Coalescing | None,
        table_format: str,
        file_filter: FileFilter = ALL_FILES,
        decryption: KeySource | None = None,
        expected_parts: PartNames | None = None,
    ) -> None:
        field_key_function(resolve)  # raises ValueError for an unknown one
        self._given_schema = schema
        self.resolve = resolve
        self._opened_path = opened_path
        self.coalescing = coalescing
        self._opened: dict[int, OpenFile | None] = {}
        if hasattr(opened_path.path, "read_ranges"):  # a source, not a name
            self.listing = list_source(opened_path.path)
            own = None if decryption is None else bind_keys(decryption, None)
            self._opened[0] = OpenFile.from_source(opened_path.path, coalescing, None, own)
        else:
            self.listing = list_files(
                opened_path.path,
                partitioning=partitioning,
                options=ListingOptions(table_format, file_filter, may_be_empty=schema is not None),
                storage_options=opened_path.storage_options,
                filesystem=opened_path.filesystem,
            )
        self.expected = None if expected_parts is None else ExpectedParts(expected_parts)
        if self.expected is not None:
            self.expected.check_names(self.listing)
        self.keys: DatasetKeys | None = None
        if decryption is not None:
            base = self.listing.base if self.listing.is_directory else None
            base = base if file_filter.base_path is None else os.fsdecode(file_filter.base_path)
            self.keys = DatasetKeys.of_dataset(decryption, base, self.listing.filesystem is None)
        self.partitions = DatasetPartitions.from_listing(self.listing, partitioning, categories)
        self._metadata: OpenFile | None = None
        self._schemas: dict[tuple[int, ...], DatasetSchema] = {}

    @property
    def files(self) -> DataFileList:
        """All files of the listing."""
        return self.listing.files

    def single_source(self) -> Source | None:
        """Open the source of the only file; None for several files, and if partition columns are added to its own."""
        if len(self.files) != 1 or self.listing.keys:
            return None
        file = self.files[0]
        if self.listing.filesystem is None:
            try:
                return open_local_source(file.path)
            except FileNotFoundError:
                return open_local_source(find_replaced_file(file.name) or file.name)
        return open_filesystem_source(self.listing.filesystem, file.path, file.name, file.size, file.version)

    def open_files(self, ordinals: Sequence[int]) -> list[OpenFile]:
        """Return opened files by ordinal; open those that are not open yet.

        A file of zero bytes, unless given by name, is like another one without its rows, as to Spark.
        """
        closed = [at for at in ordinals if at not in self._opened]
        if closed:
            files = self.files.take(np.array(closed))
            self._opened.update(zip(closed, self._open(list(files)), strict=True))
        found = [self._opened[at] for at in ordinals]
        opened = [file for file in found if file is not None]
        if len(opened) == len(found):
            return opened
        stand_in = OpenFile(without_rows(opened[0] if opened else self._first_with_bytes()))
        stand_in.calendar = self.calendar
        return [file or stand_in for file in found]

    def _first_with_bytes(self) -> OpenFile:
        """Open the first file that has bytes; without one, return the given schema, or raise EmptyDatasetError."""
        for at in range(len(self.files)):
            if at not in self._opened:
                self._opened.update(zip([at], self._open([self.files[at]]), strict=True))
            file = self._opened[at]
            if file is not None:
                return file
        if self._given_schema is not None:
            return self.merge_schemas([]).schema_file
        raise EmptyDatasetError("all files of the directory have zero bytes", file=self.files[0].name)

    @property
    def metadata(self) -> OpenFile:
        """The ``_metadata`` file, or else ``_common_metadata``; one of them must exist."""
        if self._metadata is None:
            file = self.listing.metadata_file or self.listing.common_metadata_file
            assert file is not None
            (self._metadata,) = self._open([file])
            assert self._metadata is not None
        return self._metadata

    def _metadata_files(self) -> list[OpenFile]:
        """Return the file that stands for a dataset without files; none if its schema is given."""
        listing = self.listing
        return [self.metadata] if listing.metadata_file or listing.common_metadata_file else []

    def _open(self, files: Sequence[DataFile]) -> list[OpenFile | None]:
        """Open files; None for those of zero bytes."""
        opened = open_files_unless_empty(
            self.listing,
            files,
            coalescing=self.coalescing,
            calendar=self.calendar,
            keys=self.keys,
        )
        if self.expected is not None:
            self._check_versions(files, opened, self.expected)
        return opened

    def _check_versions(
        self, files: Sequence[DataFile], opened: Sequence[OpenFile | None], expected: ExpectedParts
    ) -> None:
        """Raise InvalidFileError, and close all files, if one is another version of its part."""
        try:
            for part, file in zip(files, opened, strict=True):
                if part not in (self.listing.metadata_file, self.listing.common_metadata_file):
                    expected.check_version(self.listing, part, file)
        except BaseException:
            for file in opened:
                if file is not None:
                    file.close()
            raise

    def parts(self) -> dict[str, str | None]:
        """Return the fingerprint of each part by its path in the dataset; None for one of zero bytes."""
        names = part_names(self.listing)
        self.open_files(range(len(names)))
        opened = [self._opened[at] for at in range(len(names))]
        return dict(zip(names, [None if file is None else fingerprint(file) for file in opened], strict=True))

    def identity(self) -> bytes:
        """Return a hash of the files' paths, sizes and versions, the same in any working directory."""
        import xxhash

        digest = xxhash.xxh3_128()
        is_local = self.listing.filesystem is None
        for file in self.files:
            path = self._opened_path.absolute(file.path) if is_local else file.path
            version = file_version(path) if is_local else file.version
            digest.update(repr((path, file.size, version)).encode(errors="surrogatepass"))
        return digest.digest()

    def schema_of(
        self,
        ordinals: Sequence[int],
        alike: Mapping[int, Sequence[int]] | None = None,
        pruned: Sequence[PrunedFiles] = (),
    ) -> DatasetSchema:
        """Return the merged schema of some files; for none, that of the first file or of ``_metadata``.

        If `alike` is given, only its files are opened, each of which stands for those whose columns are the same.
        Pruned files are merged too, by what stands for them.
        """
        if pruned:
            return self._merge_with_pruned(ordinals, alike, pruned)
        key = tuple(ordinals) or (0,)
        if key not in self._schemas:
            if alike is None:
                schema = self.merge_schemas(self.open_files(key) if self.files else self._metadata_files())
            else:
                schema = self._merge_alike(len(key), alike)
            self._schemas[key] = schema
        return self._schemas[key]

    def _merge_alike(self, num_files: int, alike: Mapping[int, Sequence[int]]) -> DatasetSchema:
        """Merge the schemas of files that stand for `num_files` files."""
        files = self.open_files([*alike])
        like = dict(zip(map(id, files), alike.values(), strict=True))
        return DatasetSchema.from_files(
            files,
            resolve=self.resolve,
            schema=self._given_schema,
            num_files=num_files,
            alike=lambda file: self.open_files(like[id(file)]),
        )

    def _merge_with_pruned(
        self, ordinals: Sequence[int], alike: Mapping[int, Sequence[int]] | None, pruned: Sequence[PrunedFiles]
    ) -> DatasetSchema:
        """Merge the schemas of files, and of files that pruners know without opening them, in their order."""
        firsts = [*(ordinals if alike is None else alike)]
        files = self.open_files(firsts)
        like = {} if alike is None else dict(zip(map(id, files), alike.values(), strict=True))
        for some in pruned:
            some.file.calendar = self.calendar
        ordered = [*zip(firsts, files, strict=True), *((some.ordinal, some.file) for some in pruned)]
        ordered.sort(key=lambda pair: pair[0])
        return DatasetSchema.from_files(
            [file for _, file in ordered],
            resolve=self.resolve,
            schema=self._given_schema,
            num_files=len(ordinals) + sum(some.num_files for some in pruned),
            alike=lambda file: self.open_files(like[id(file)]) if id(file) in like else [file],
        )

    def add_opened(self, files: Mapping[int, OpenFile]) -> None:
        """Add open files by ordinal, unless they are there."""
        self._opened = {**files, **self._opened}

    def unopened(self, ordinals: Sequence[int]) -> list[int]:
        """Return the files that are not open yet."""
        return [at for at in ordinals if at not in self._opened]

    def merge_schemas(self, files: Sequence[OpenFile]) -> DatasetSchema:
        """Merge the schemas of files by the dataset's ``schema`` and ``resolve`` options."""
        return DatasetSchema.from_files(files, resolve=self.resolve, schema=self._given_schema)

    def close(self) -> None:
        """Close all files."""
        for file in self._opened.values():
            if file is not None:
                file.source.close()
        if self._metadata is not None:
            self._metadata.close()
        self._opened, self._metadata = {}, None
