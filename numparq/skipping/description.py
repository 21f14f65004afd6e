"""The description of a store: version, dataset, files, parts and indexes, as text too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numparq.util.pluralize import pluralize

from .metadata import StoreIndex
from .part import StorePart, row_groups_of


@dataclass(frozen=True)
class StoreDescription:
    """Contents of a store.

    Attributes
    ----------
    folder : str
        Its folder.
    dataset : str
        URI of the dataset, or its table identifier if another program built the store.
    versions : list of int
        Versions of its parts.
    num_files, num_rows, num_bytes : int
        Files that it has rows of, its rows, and the size of its parts.
    indexes : list of StoreIndex
        The indexes.
    partition_columns : list of str
        Partition columns of the dataset.
    damaged : list of str
        Parts that cannot be read.
    """

    folder: str
    dataset: str
    versions: Sequence[int]
    num_files: int
    num_rows: int
    num_bytes: int
    indexes: Sequence[StoreIndex]
    partition_columns: Sequence[str]
    damaged: Sequence[str]

    def __str__(self) -> str:
        versions = ", ".join(map(str, sorted(set(self.versions)))) or "none"
        lines = [
            f"data-skipping store of {self.dataset}",
            f"  folder     {self.folder}",
            f"  version    {versions}",
            f"  files      {self.num_files:,} in {pluralize(len(self.versions), 'part')}",
            f"  size       {pluralize(self.num_bytes, 'byte')}",
        ]
        lines += [f"  partitions {', '.join(self.partition_columns)}"] if self.partition_columns else []
        for index in self.indexes:
            params = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in sorted(index.params.items()))
            key = f", key {index.key_label}" if index.key_label else ""
            lines.append(f"  index      {index}{f' ({params})' if params else ''}{key}")
        if 0 in self.versions:
            lines.append("  note       cells of version 0 cannot be read: build the store again")
        lines += [f"  damaged    {each}" for each in self.damaged]
        return "\n".join(lines)


def describe_parts(folder: str, parts: Sequence[StorePart], damaged: Sequence[str]) -> StoreDescription:
    """Return the description of opened parts."""
    names = [name for rows in row_groups_of([*parts]) for name in rows.object_names]
    dataset = next((part.own.dataset for part in parts if part.own is not None), "")
    identifier = next((part.schema.identifier for part in parts), "")
    indexes = {(each.name, each.columns): each for part in parts for each in part.schema.indexes}
    keys = dict.fromkeys(name for part in parts for name in part.schema.partitions)
    versions = [part.schema.version for part in parts]
    size = sum(part.file.source.size for part in parts)
    return StoreDescription(
        folder,
        dataset or identifier,
        versions,
        len({name for name in names if name is not None}),
        len(names),
        size,
        [*indexes.values()],
        [*keys],
        damaged,
    )
