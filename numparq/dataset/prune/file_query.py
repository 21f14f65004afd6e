"""The query that file pruners are built for, and what they know of the files that they rule out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numparq.format.open_file import OpenFile
from numparq.format.schema import Schema
from numparq.format.writer_quirks import leaf_may_be_null
from numparq.scan.file_columns import FileColumns
from numparq.scan.unread_files import UnreadFiles
from numparq.typing import FileSystem, Filters, RuntimeFilters

if TYPE_CHECKING:
    from numparq.dataset.partitions.columns import DatasetPartitions

    from .pruners import FilePruner


@dataclass(frozen=True)
class FileQuery:
    """A query of a dataset, as pruners need it.

    Attributes
    ----------
    filters, runtime_filters
        As in `numparq.read_parquet`.
    partitions : DatasetPartitions
        Partition columns, which hide columns of the same name.
    filesystem : fsspec or pyarrow file system, or None
        File system of the files; None for the local one.
    resolve : str
        How columns of different files are matched.
    """

    filters: Filters
    runtime_filters: RuntimeFilters
    partitions: DatasetPartitions
    filesystem: FileSystem
    resolve: str


class KnowingPruner(Protocol):
    """Protocol of pruners that know the columns of the files that they rule out."""

    def pruned_files(self, may_match: np.ndarray) -> list[PrunedFiles]:
        """Return what is known of the files that are not among `may_match`; nothing, if not of all."""

    def names_are_unique(self, schema: Schema) -> bool:
        """Whether each column that the filter names is one column, in the schema of the files that are left."""


class QueryPruner(Protocol):
    """Protocol of objects that build a file pruner for each query, such as a data-skipping store."""

    def for_query(self, query: FileQuery) -> FilePruner | None:
        """Return the pruner of a query; None if it cannot help."""


def check_query_pruner(skipping: QueryPruner) -> QueryPruner:
    """Return the `skipping` argument; TypeError unless it has a method ``for_query``."""
    if not hasattr(skipping, "for_query"):
        raise TypeError(f"skipping must be a numparq.skipping.Store, not {type(skipping).__name__}")
    return skipping


@dataclass(frozen=True)
class PrunedFiles:
    """Files with the same columns that a pruner rules out: their columns and nulls decide the result's dtypes.

    Attributes
    ----------
    file : OpenFile
        A file without rows that has their columns.
    ordinal : int
        Ordinal of the first of them among the files that the pruner was called with.
    num_files : int
        Number of them.
    has_rows : bool
        Whether any of them has rows.
    null_counts : sequence of (int or None)
        By leaf ordinal, of all files with rows: 0 without nulls, 1 with nulls, None if a footer does not say.
    """

    file: OpenFile
    ordinal: int
    num_files: int
    has_rows: bool
    null_counts: Sequence[int | None]

    def unread_files(self, columns: FileColumns) -> UnreadFiles:
        """Return what a scan needs to know of files that it does not read."""
        counts = [self.null_counts[leaf.index] for leaf in columns.leaves]
        created_by = self.file.footer.created_by
        may_be_null = [
            leaf_may_be_null(leaf, count, created_by) for leaf, count in zip(columns.leaves, counts, strict=True)
        ]
        return UnreadFiles(columns, int(self.has_rows), counts, may_be_null)
