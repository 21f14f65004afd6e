"""What a dataset has found so far: its files, those of them that are open, and their schemas as one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..io.remote_source import open_on
from ..io.source import Source, open_local
from ..opened import OpenedFile
from .data_files import DataFile, DataFiles
from .files import list_files
from .opening import open_files
from .partitions import Partitions
from .resolution import DatasetSchema

if TYPE_CHECKING:
    from ..plan.byte_ranges import Coalescing

__all__ = ["Contents"]


class Contents:
    """The files of a dataset, each opened when it is first asked for.

    Parameters
    ----------
    path, partitioning, categories, schema, resolve, storage_options, filesystem, coalescing
        As in `Dataset`.

    Attributes
    ----------
    listing : Listing
        The files, in the order of their rows; elsewhere, their ordinals stand for them.
    partitions : Partitions
        The partition columns.
    """

    def __init__(
        self, path: Any, partitioning: Any, categories: Collection[str] | None, schema: Any, resolve: str,
        storage_options: dict[str, Any] | None, filesystem: Any, coalescing: Coalescing | None,
    ) -> None:  # fmt: skip
        self._given_schema = schema
        self._resolve = resolve
        self._storage_options = storage_options
        self._coalescing = coalescing
        self.listing = list_files(
            path, partitioning=partitioning, storage_options=storage_options, filesystem=filesystem
        )
        self.partitions = Partitions.of(self.listing, partitioning, categories)
        self._opened: dict[int, OpenedFile] = {}
        self._metadata: OpenedFile | None = None
        self._schemas: dict[tuple[int, ...], DatasetSchema] = {}

    @property
    def files(self) -> DataFiles:
        """All files."""
        return self.listing.files

    def only_source(self) -> Source | None:
        """Give the file itself, where the path stands for one and not for a table; None where it stands for many."""
        if not self.listing.is_one:
            return None
        file = self.files[0]
        if self.listing.filesystem is None:
            return open_local(file.path)
        return open_on(self.listing.filesystem, file.path, file.name, file.size)

    def opened(self, ordinals: Sequence[int]) -> list[OpenedFile]:
        """Give files, opened, but for those that are open."""
        closed = [at for at in ordinals if at not in self._opened]
        if closed:
            self._opened.update(zip(closed, self._open([self.files[at] for at in closed]), strict=True))
        return [self._opened[at] for at in ordinals]

    @property
    def metadata(self) -> OpenedFile:
        """The file ``_metadata``, or else ``_common_metadata``; there has to be one."""
        if self._metadata is None:
            file = self.listing.metadata_file or self.listing.common_metadata_file
            assert file is not None
            (self._metadata,) = self._open([file])
        return self._metadata

    def _open(self, files: Sequence[DataFile]) -> list[OpenedFile]:
        return open_files(self.listing, files, storage_options=self._storage_options, coalescing=self._coalescing)

    def schema_of(self, ordinals: Sequence[int]) -> DatasetSchema:
        """Give the schema of some files as one; where there are none, that of any, or of ``_metadata``."""
        key = tuple(ordinals) or (0,)
        if key not in self._schemas:
            files = self.opened(key) if self.files else [self.metadata]
            self._schemas[key] = self.united(files)
        return self._schemas[key]

    def united(self, files: Sequence[OpenedFile]) -> DatasetSchema:
        """Unite the schemas of files, as the dataset is to do it."""
        return DatasetSchema.of(files, resolve=self._resolve, schema=self._given_schema)

    def close(self) -> None:
        """Close all files."""
        for file in self._opened.values():
            file.close()
        if self._metadata is not None:
            self._metadata.close()
        self._opened, self._metadata = {}, None
