"""Prune files by a `_metadata` file, trusting it only for files older than itself."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.dataset.partitions.predicate import PartitionComparison, PartitionPredicate
from numparq.errors import ParquetError
from numparq.expr.bound import combine_results, describe
from numparq.expr.expression import Expression
from numparq.expr.normalize import all_of
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.prune.match import predicate_may_match
from numparq.prune.statistics import row_group_statistics

from .dataset_filter import DatasetFilter

if TYPE_CHECKING:
    from numparq.dataset.discover.files import DatasetListing
    from numparq.dataset.listing.files import DataFile
    from numparq.dataset.partitions.columns import DatasetPartitions
    from numparq.dataset.schema_merge.dataset_schema import DatasetSchema

_LEAST_FOOTER = 12  # bytes after the last chunk: one length, two magic numbers


class MetadataFileGroups:
    """Row groups of a ``_metadata`` file by data file, as far as it can be trusted."""

    def __init__(self, metadata: OpenFile, listing: DatasetListing) -> None:
        self.metadata = metadata
        self._listing = listing
        base = listing.base
        self._start = base if not base or base.endswith("/") else base + "/"

    def row_groups_of(self, files: Sequence[DataFile]) -> list[list[int]]:
        """Return each file's row groups, as ordinals in the ``_metadata`` file.

        A file has none if the ``_metadata`` file cannot be trusted for it.
        """
        found = [self._groups.get(self._relative(file), []) for file in files]
        written = _modified(self._listing.metadata_file, self._listing)
        if written is None:
            return [[] for _ in files]
        return [
            groups if groups and self._is_trusted(file, groups, written) else []
            for file, groups in zip(files, found, strict=True)
        ]

    def _relative(self, file: DataFile) -> str:
        return file.path[len(self._start) :] if file.path.startswith(self._start) else ""

    def _is_trusted(self, file: DataFile, groups: list[int], written: float) -> bool:
        """Whether a file is older than the ``_metadata`` file, and long enough for its row groups there."""
        size, modified = file.size, file.modified
        if self._listing.filesystem is None:
            try:
                found = os.stat(file.path)
            except OSError:
                return False
            size, modified = found.st_size, found.st_mtime_ns / 10**9
        # Equal times do not count: the file may have been rewritten within the clock's resolution.
        if modified is None or not modified < written:
            return False
        return size is None or int(self._ends[groups].max()) <= size - _LEAST_FOOTER

    @cached_property
    def _groups(self) -> dict[str, list[int]]:
        """Row groups by file path; files whose row groups span several files are left out."""
        count, columns = self.metadata.num_row_groups, self.metadata.schema.num_leaves
        found: dict[str, list[int]] = {}
        if not columns:
            return found
        try:
            paths = [self.file_paths(column) for column in sorted({0, columns - 1})]
        except ParquetError:
            return found
        for group in range(count):
            found.setdefault(paths[0][group], []).append(group)
        for several in paths[1:]:
            for first, other in zip(paths[0], several, strict=True):
                if first != other:
                    found.pop(first, None)
                    found.pop(other, None)
        found.pop("", None)
        return found

    def file_paths(self, column: int) -> list[str]:
        """Return for each row group the relative path of the file with a column's chunk; "" if there is none."""
        count = self.metadata.num_row_groups
        texts = self.metadata.footer.chunks.read_texts("file_path", range(count), [column] * count)
        distinct = {text: _normal(text) for text in set(texts)}
        return [distinct[text] for text in texts]

    @cached_property
    def _ends(self) -> np.ndarray:
        """End (exclusive) of each row group's last column chunk in its file."""
        groups, last = range(self.metadata.num_row_groups), self.metadata.schema.num_leaves - 1
        try:
            facts = self.metadata.footer.chunks.read_table(groups, [last])
        except ParquetError:
            return np.full(len(groups), np.iinfo(np.int64).max)
        data, dictionary = facts["data_page_offset"], facts["dictionary_page_offset"]
        starts = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
        ends: np.ndarray = starts + facts["total_compressed_size"]
        return ends[:, 0]


def _normal(path: str) -> str:
    """Normalize a relative path; return "" for one that leads out of the directory."""
    made = posixpath.normpath(path) if path else ""
    return "" if made.startswith(("/", "..")) or made == "." else made


def _modified(file: DataFile | None, listing: DatasetListing) -> float | None:
    if file is None or listing.filesystem is not None:
        return None if file is None else file.modified
    try:
        return os.stat(file.path).st_mtime_ns / 10**9
    except OSError:
        return None


def build_metadata_file_pruner(
    listing: DatasetListing,
    files: Sequence[DataFile],
    filters: Any,
    partitions: DatasetPartitions,
    runtime_filters: Any = (),
    *,
    open_files: Callable[[Sequence[DataFile]], list[OpenFile]],
    merge_schemas: Callable[[list[OpenFile]], DatasetSchema],
) -> MetadataFilePruner | None:
    """Build the pruner of a listing's ``_metadata`` file; None if it is missing, useless, damaged or does not fit.

    Opens ``_metadata`` and only the files that it does not describe; ``merge_schemas`` merges schemas of open files.
    """
    if listing.metadata_file is None or (filters is None and not check_runtime_filters(runtime_filters)):
        return None
    try:
        (metadata,) = open_files([listing.metadata_file])
        named = MetadataFileGroups(metadata, listing)
        groups = named.row_groups_of(files)
        if not any(groups):
            return None
        others = open_files([file for file, known in zip(files, groups, strict=True) if not known])
        made = DatasetFilter(filters, merge_schemas([metadata, *others]), partitions, runtime_filters)
        return MetadataFilePruner(made, named, runtime_filters)
    except ParquetError:
        return None


class MetadataFilePruner:
    """Prunes unopened files by the statistics in a ``_metadata`` file, and by runtime filters that have arrived."""

    name = "_metadata"

    def __init__(self, file_filter: DatasetFilter, named: MetadataFileGroups, runtime_filters: Any = ()) -> None:
        self._filter = file_filter
        self._named = named
        self._runtime = runtime_filters
        self.reason = describe(file_filter.predicate)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Return which files may have matching rows; see `FilePruner`."""
        metadata = self._named.metadata
        asked = all_of(
            [self._filter.bind_file_columns(metadata), *self._filter.bind_runtime_filters(metadata, self._runtime)]
        )
        groups = self._named.row_groups_of(files)
        owners = np.repeat(np.arange(len(files)), [len(several) for several in groups])
        kept = np.array([not several for several in groups], np.bool_)
        kept[owners[self._may(asked, files, [group for several in groups for group in several], owners)]] = True
        return kept

    def _may(self, asked: Expression, files: Sequence[DataFile], groups: list[int], owners: np.ndarray) -> np.ndarray:
        """Return which row groups may have matching rows; ``owners`` holds the file ordinal of each."""
        metadata = self._named.metadata
        here = np.array(self._named.file_paths(0), object)[groups] if groups else np.empty(0, object)

        def answer(test: Any) -> np.ndarray:
            if isinstance(test, PartitionPredicate):
                kept: np.ndarray = test.evaluate([file.values[test.key] for file in files])[owners]
                return kept
            if isinstance(test, PartitionComparison):  # each file has values of its own
                return np.ones(len(groups), np.bool_)
            statistics = [row_group_statistics(metadata.footer, leaf, groups) for leaf in test.leaves]
            may_match = predicate_may_match(test, *statistics)
            for leaf in test.leaves:
                may_match |= np.array(self._named.file_paths(leaf.index), object)[groups] != here
            return may_match

        return combine_results(asked, answer, lambda value: np.full(len(groups), value))
