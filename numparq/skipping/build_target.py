"""The dataset that a store is built of: its listing, identifier and default indexes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.discover.open_files import open_files
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.errors import ParquetError
from numparq.format.key_values.spark import SPARKS_CALENDAR
from numparq.io.filesystem import resolve_paths
from numparq.typing import FileSystem, PathLike

from .cell_types import cell_type
from .indexes.definitions import IndexDefinition, MinMax
from .location import bucket_of, object_path
from .own_metadata import OwnMetadata
from .refresh import StoreUpdate


class DatasetTarget:
    """A dataset to index.

    Attributes
    ----------
    listing : DatasetListing
        Its files.
    identifier : str
        Its table identifier.
    """

    def __init__(self, dataset: PathLike, opening: dict[str, Any]) -> None:
        resolved = resolve_paths([dataset], opening["storage_options"], opening["filesystem"])
        self.listing: DatasetListing = list_files(dataset, **opening)
        if not self.listing.is_directory:
            raise ValueError(f"a data-skipping store is of a directory, not of {os.fspath(dataset)!r}")
        filesystem, base = self.listing.filesystem, self.listing.base.rstrip("/")
        self.identifier = object_path(base, filesystem).rstrip("/") or "/"
        uri = self.identifier if filesystem is None else resolved.display_name(base)
        self._own = OwnMetadata(uri, bucket_of(base, filesystem))

    @property
    def partitions(self) -> DatasetPartitions:
        """Its partition columns."""
        return DatasetPartitions.from_listing(self.listing)

    def check_outside(self, folder: str) -> None:
        """Raise ValueError if a folder is inside of the dataset, which would list it."""
        if self.listing.filesystem is None and f"{os.path.abspath(folder)}/".startswith(f"{self.identifier}/"):
            raise ValueError(f"the store's folder {folder!r} must not be inside of the dataset")

    def default_indexes(self) -> list[IndexDefinition]:
        """Return MinMax of each flat column of the first file that has an order, partition columns left out."""
        (file,) = open_files(self.listing, [self.listing.files[0]], calendar=SPARKS_CALENDAR)
        names: dict[str, list[str]] = {}
        try:
            for leaf in map(file.schema.leaf, range(file.schema.num_leaves)):
                if not leaf.is_nested and "." not in leaf.name and leaf.name not in self.listing.keys:
                    try:
                        cell_type(leaf)
                    except ParquetError:
                        continue
                    names.setdefault(leaf.name.lower(), []).append(leaf.name)
        finally:
            file.close()
        return [MinMax(spellings[0]) for spellings in names.values() if len(spellings) == 1]

    def update(
        self,
        folder: str,
        opening: dict[str, Any],
        definitions: Sequence[IndexDefinition],
        threads: int | None,
        progress: bool,
    ) -> StoreUpdate:
        """Return the update of a store of this dataset."""
        return StoreUpdate(folder, opening, self._own, self.identifier, definitions, threads, progress)


def remove_file(filesystem: FileSystem, path: str) -> None:
    """Remove a file of a store."""
    if filesystem is None:
        os.remove(path)
    elif hasattr(filesystem, "rm_file"):
        filesystem.rm_file(path)
    else:
        filesystem.delete_file(path)
