"""Snapshot of a dataset: its listing, the files opened so far, and their merged schemas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from numparq.dataset.listing.files import DataFile, DataFileList
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.open_file import OpenFile
from numparq.io.open import open_filesystem_source, open_local_source
from numparq.io.source import Source
from numparq.typing import PathOrPaths, StorageOptions

from .files import list_files
from .open_files import open_files

if TYPE_CHECKING:
    from numparq.io.coalesce import Coalescing

__all__ = ["DatasetSnapshot"]


class DatasetSnapshot:
    """Listing of a dataset with its opened files and merged schemas, all cached until `close`.

    Parameters are those of `Dataset`. Elsewhere a file is known by its ordinal in ``listing.files``.
    """

    def __init__(
        self,
        path: PathOrPaths,
        partitioning: Any,
        categories: Collection[str] | None,
        schema: Any,
        resolve: str,
        storage_options: StorageOptions,
        filesystem: Any,
        coalescing: Coalescing | None,
    ) -> None:
        self._given_schema = schema
        self._resolve = resolve
        self._storage_options = storage_options
        self._coalescing = coalescing
        self.listing = list_files(
            path, partitioning=partitioning, storage_options=storage_options, filesystem=filesystem
        )
        self.partitions = DatasetPartitions.from_listing(self.listing, partitioning, categories)
        self._opened: dict[int, OpenFile] = {}
        self._metadata: OpenFile | None = None
        self._schemas: dict[tuple[int, ...], DatasetSchema] = {}

    @property
    def files(self) -> DataFileList:
        """All files of the listing."""
        return self.listing.files

    def single_source(self) -> Source | None:
        """Open the source of the only file if the path names one file; None otherwise."""
        if not self.listing.is_single_file:
            return None
        file = self.files[0]
        if self.listing.filesystem is None:
            return open_local_source(file.path)
        return open_filesystem_source(self.listing.filesystem, file.path, file.name, file.size)

    def open_files(self, ordinals: Sequence[int]) -> list[OpenFile]:
        """Return opened files by ordinal; open those that are not open yet."""
        closed = [at for at in ordinals if at not in self._opened]
        if closed:
            self._opened.update(zip(closed, self._open([self.files[at] for at in closed]), strict=True))
        return [self._opened[at] for at in ordinals]

    @property
    def metadata(self) -> OpenFile:
        """The ``_metadata`` file, or else ``_common_metadata``; one of them must exist."""
        if self._metadata is None:
            file = self.listing.metadata_file or self.listing.common_metadata_file
            assert file is not None
            (self._metadata,) = self._open([file])
        return self._metadata

    def _open(self, files: Sequence[DataFile]) -> list[OpenFile]:
        return open_files(self.listing, files, storage_options=self._storage_options, coalescing=self._coalescing)

    def schema_of(self, ordinals: Sequence[int]) -> DatasetSchema:
        """Return the merged schema of some files; for none, that of the first file or of ``_metadata``."""
        key = tuple(ordinals) or (0,)
        if key not in self._schemas:
            files = self.open_files(key) if self.files else [self.metadata]
            self._schemas[key] = self.merge_schemas(files)
        return self._schemas[key]

    def merge_schemas(self, files: Sequence[OpenFile]) -> DatasetSchema:
        """Merge the schemas of files by the dataset's ``schema`` and ``resolve`` options."""
        return DatasetSchema.from_files(files, resolve=self._resolve, schema=self._given_schema)

    def close(self) -> None:
        """Close all files."""
        for file in self._opened.values():
            file.close()
        if self._metadata is not None:
            self._metadata.close()
        self._opened, self._metadata = {}, None
