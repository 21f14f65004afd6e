"""Plan a query of a dataset: prune files, merge schemas, select rows and bind the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from numparq.column.read.row_selection import SLICE_GROUP, SLICE_OUT, RowSlices
from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.listing.files import DataFile, PartitionValues
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.prune.file_query import FileQuery, KnowingPruner, PrunedFiles, QueryPruner
from numparq.dataset.prune.metadata_file import build_metadata_file_pruner
from numparq.dataset.prune.pruners import FilePruner, PartitionPruner, StatisticsPruner, apply_pruner
from numparq.dataset.prune.unopened_files import UnopenedFiles
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.errors import SchemaError
from numparq.expr.bound import describe
from numparq.format.open_file import OpenFile
from numparq.format.unparsed_file import UnparsedFile
from numparq.plan.dataset_plan import DatasetPlan, FileCut
from numparq.scan.options import ScanOptions, all_row_slices, select_row_slices
from numparq.scan.scan import Scan
from numparq.scan.scan_file import ScanFile

from .projected_columns import DatasetColumns, project_columns

if TYPE_CHECKING:
    from numparq.scan.predicate import ScanPredicate
    from numparq.scan.recovery.skip_damaged import SkipDamaged
    from numparq.scan.unread_files import UnreadFiles

_NO_ROWS = np.empty(0, np.int64)


class DatasetQuery:
    """A query of a dataset, planned when it is made.

    Attributes
    ----------
    scan : Scan
        Scan of the selected files.
    projection : DatasetColumns
        Projected columns.
    schema : DatasetSchema
        Merged schema of all files left after pruning without opening them.
    """

    def __init__(
        self,
        snapshot: DatasetSnapshot,
        pruners: Sequence[FilePruner | QueryPruner],
        columns: Any,
        options: ScanOptions,
        skip: SkipDamaged | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._pruners = pruners
        self._options = options
        self._cuts: list[tuple[str, Sequence[int]]] = []
        self._pruned: list[PrunedFiles] = []
        self._unopened_pruners: list[KnowingPruner] = []
        ordinals = self._prune_files()
        unopened, schema, projection, filters = self._merge(ordinals, columns, skip)
        if self._needs_all_files(schema, projection):
            self._pruners = [pruner for pruner in pruners if not hasattr(pruner, "for_query")]
            self._pruned, self._cuts, self._unopened_pruners = [], [], []
            ordinals = self._prune_files()
            unopened, schema, projection, filters = self._merge(ordinals, columns, skip)
        matching = None
        if unopened is not None and not projection.has_categories:
            matching = self._open_matching(unopened, schema, projection, filters)
        files, unread = matching or (self._select_rows(ordinals, filters, snapshot.open_files(ordinals)), [])
        if matching is None:
            self._map_files(projection, schema, files)
        unread += self._pruned_as_unread()
        selected = [file for file in files if file.predicate is None or not file.matches_nothing]
        if len(selected) == len(files):
            selected = files
        else:
            self._cut("filter columns that the file lacks", [file.ordinal for file in files if file.matches_nothing])
        self.schema, self.projection = schema, projection
        self.scan = Scan(projection, files, options, skip, selected)  # of all files: dtypes must not depend on literals
        self.scan.add_unread(unread)
        self._filter = filters

    def _needs_all_files(self, schema: DatasetSchema, projection: DatasetColumns) -> bool:
        """Whether files that were pruned unopened have a say: categories are of all files, or names are ambiguous."""
        pruners = self._unopened_pruners
        if pruners and projection.has_categories:
            return True
        return not all(pruner.names_are_unique(schema.schema) for pruner in pruners)

    def _merge(
        self, ordinals: Sequence[int], columns: Any, skip: SkipDamaged | None
    ) -> tuple[UnopenedFiles | None, DatasetSchema, DatasetColumns, DatasetFilter]:
        """Merge the schemas of the files that are left, by their footers as a table if these can be read so."""
        unopened = None
        if skip is None and self._may_prune_unopened():
            unopened = UnopenedFiles.of(self._snapshot, ordinals)
        self._alike = None if unopened is None else unopened.alike
        return unopened, *self._merge_and_bind(ordinals, columns)

    def plan(self) -> DatasetPlan:
        """Return the plan: what prunes files, and the read plans of the others."""
        left = self._prune_by_statistics()
        cuts = [FileCut(reason, len(ordinals), self._num_bytes(ordinals)) for reason, ordinals in self._cuts]
        return DatasetPlan(len(self._snapshot.files), tuple(cuts), tuple(self.scan.plans(left)))

    def _num_bytes(self, ordinals: Sequence[int]) -> int:
        """Return the total size of files in bytes; unknown sizes count as 0."""
        return sum(self._snapshot.files[at].size or 0 for at in ordinals)

    def _cut(self, reason: str, ordinals: Sequence[int]) -> None:
        if ordinals:
            known = dict(self._cuts)
            known[reason] = [*known.get(reason, ()), *ordinals]
            self._cuts = [*known.items()]

    # --- files --------------------------------------------------------------------------------------------------------

    def _prune_files(self) -> list[int]:
        """Prune files before any is opened; return the ordinals of the others."""
        files = self._snapshot.files
        kept = np.arange(len(files))
        if self._options.row_range is not None or self._options.row_groups is not None:  # they count over all files
            return kept.tolist()
        for build_pruner in self._file_pruners():
            left = files.take(kept)
            pruner = build_pruner(left)
            if pruner is None:
                continue
            mask = apply_pruner(pruner, left)
            reason = getattr(pruner, "reason", "")
            self._cut(f"{pruner.name} ({reason})" if reason else pruner.name, kept[~mask].tolist())
            if hasattr(pruner, "pruned_files") and not mask.all():
                self._unopened_pruners.append(cast(KnowingPruner, pruner))
                pruned = pruner.pruned_files(mask)
                self._pruned += [replace(some, ordinal=int(kept[some.ordinal])) for some in pruned]
            kept = kept[mask]
        return kept.tolist()

    def _file_pruners(self) -> list[Callable[[Sequence[DataFile]], FilePruner | None]]:
        """Return the factories of pruners, cheapest first; each takes the files that are left."""
        options = self._options

        def by_partition(files: Sequence[DataFile]) -> FilePruner | None:
            pruner = PartitionPruner(options.filters, self._snapshot.partitions, options.runtime_filters)
            return None if pruner.keeps_all else pruner

        snapshot = self._snapshot
        query = FileQuery(
            options.filters,
            options.runtime_filters,
            snapshot.partitions,
            snapshot.listing.filesystem,
            snapshot.resolve,
        )

        def of_query(files: Sequence[DataFile], pruner: FilePruner | QueryPruner) -> FilePruner | None:
            return pruner.for_query(query) if hasattr(pruner, "for_query") else pruner

        return [by_partition, *(partial(of_query, pruner=each) for each in self._pruners), self._metadata_file_pruner]

    def _metadata_file_pruner(self, files: Sequence[DataFile]) -> FilePruner | None:
        """Build the pruner of the ``_metadata`` file, if it can help."""
        snapshot, options = self._snapshot, self._options
        if snapshot.keys is not None:  # nothing authenticates a `_metadata` file of encrypted files
            return None

        def opened(some: Sequence[DataFile]) -> list[OpenFile]:
            if list(some) == [snapshot.listing.metadata_file]:
                return [snapshot.metadata]
            ordinals = {file.path: at for at, file in enumerate(snapshot.files)}
            return snapshot.open_files([ordinals[file.path] for file in some])

        return build_metadata_file_pruner(
            snapshot.listing,
            files,
            options.filters,
            snapshot.partitions,
            options.runtime_filters,
            open_files=opened,
            merge_schemas=snapshot.merge_schemas,
        )

    def _prune_by_statistics(self) -> Sequence[ScanFile]:
        """Prune files by their row group statistics, for the plan alone.

        A scan also gets the pruned files: it plans each by row groups, and Categoricals have all files' categories.
        """
        selected = self.scan.selected
        if not any(file.predicate for file in selected):
            return selected
        listed = [self._snapshot.files[file.ordinal] for file in selected]
        opened = {entry.path: file.file for entry, file in zip(listed, selected, strict=True)}
        pruner = StatisticsPruner(self._filter, opened, self._options.runtime_filters)
        answers = list(zip(selected, apply_pruner(pruner, listed).tolist(), strict=True))
        self._cut(f"{pruner.name} ({pruner.reason})", [file.ordinal for file, is_kept in answers if not is_kept])
        return [file for file, is_kept in answers if is_kept]

    def _may_prune_unopened(self) -> bool:
        """Whether all footers can be read as a table: not if rows are counted over all files, nor of encrypted ones."""
        options = self._options
        counts_rows = options.row_range is not None or options.row_groups is not None
        if self._snapshot.keys is not None or self._snapshot.expected is not None:
            return False
        return not counts_rows and (options.filters is not None or options.nrows is None)

    def _open_matching(
        self, unopened: UnopenedFiles, schema: DatasetSchema, projection: DatasetColumns, filters: DatasetFilter
    ) -> tuple[list[ScanFile], list[UnreadFiles]] | None:
        """Open the files that may match, and map their columns and those of the others; None: all must be opened."""
        left, pruned = unopened.prune(filters)
        files = self._select_rows(left, filters, unopened.open(left))
        if not unopened.are_unchanged(files):
            return None
        firsts = unopened.firsts(pruned)
        self._map_files(projection, schema, [*files, *firsts.values()])
        unread = unopened.unread_files(pruned, firsts)
        if unread is not None:
            self._cut(f"{StatisticsPruner.name} ({describe(filters.predicate)})", unopened.ordinals_of(pruned.values()))
            return files, unread
        return None

    # --- columns and rows ---------------------------------------------------------------------------------------------

    def _merge_and_bind(
        self, ordinals: Sequence[int], columns: Any
    ) -> tuple[DatasetSchema, DatasetColumns, DatasetFilter]:
        """Merge the schemas, select the columns and bind the filter; retry with all files if the pruned ones fail."""
        try:
            return self._bound(self._snapshot.schema_of(ordinals, self._alike, self._pruned), columns)
        except SchemaError:
            if len(ordinals) == len(self._snapshot.files):
                raise
            return self._bound(self._snapshot.schema_of(range(len(self._snapshot.files))), columns)

    def _bound(self, schema: DatasetSchema, columns: Any) -> tuple[DatasetSchema, DatasetColumns, DatasetFilter]:
        options, partitions = self._options, self._snapshot.partitions
        filters = DatasetFilter(options.filters, schema, partitions, options.runtime_filters)
        return schema, project_columns(schema, partitions, columns, options), filters

    def _map_files(self, projection: DatasetColumns, schema: DatasetSchema, files: Sequence[ScanFile]) -> None:
        """Map the columns of files, and of those that pruners know without opening them."""
        self._unopened = [ScanFile(some.file, some.ordinal) for some in self._pruned]
        projection.map_files(schema, [*files, *self._unopened])

    def _pruned_as_unread(self) -> list[UnreadFiles]:
        """Return what decides dtypes in the files that pruners know without opening them."""
        pairs = zip(self._pruned, self._unopened, strict=True)
        return [some.unread_files(file.columns) for some, file in pairs if some.has_rows]

    def _select_rows(
        self, ordinals: Sequence[int], filters: DatasetFilter, files: Sequence[OpenFile]
    ) -> list[ScanFile]:
        """Select rows by position, counted over all files, and bind the filter to each file."""
        options = self._options
        is_filtered = options.filters is not None or bool(options.runtime_filters)
        selected, predicates = [], {}
        shared: dict[tuple[int, PartitionValues], ScanPredicate | None] = {}
        for position, slices in _row_slices_of_files(files, options, None if is_filtered else options.nrows):
            at, file = ordinals[position], files[position]
            if is_filtered and at not in predicates:
                data_file = self._snapshot.files[at]
                key = id(file.model or file), data_file.values
                if options.runtime_filters or key not in shared:
                    shared[key] = filters.scan_predicate(file, data_file, options.runtime_filters)
                predicates[at] = shared[key]
            if slices is not None or (file.has_rows if isinstance(file, UnparsedFile) else _has_rows(file)):
                selected.append(ScanFile(file, at, slices, predicates.get(at)))
        if not selected and files:
            return ScanFile(files[0], ordinals[0]).without_rows()
        return selected


def _has_rows(file: OpenFile) -> bool:
    return bool(np.add.reduce(file.footer.row_group_num_rows))


def _row_slices_of_files(
    files: Sequence[OpenFile], options: ScanOptions, limit: int | None
) -> Iterable[tuple[int, RowSlices | None]]:
    """Return the position of a file and its row slices (None: all rows), in the order of the rows.

    Output positions start at 0 in each. `row_groups` and `row_range` count over all files, so that a file may come more
    than once, or not at all.
    """
    if options.row_groups is None and options.row_range is None and limit is None:
        return zip(range(len(files)), repeat(None))
    counts = [file.footer.row_group_num_rows for file in files]
    firsts = np.cumsum([0, *map(len, counts)])
    rows = select_row_slices(np.concatenate([_NO_ROWS, *counts]), options.row_groups, options.row_range, limit)
    owners = firsts.searchsorted(rows.table[:, SLICE_GROUP], "right") - 1
    cuts = np.flatnonzero(np.diff(owners)) + 1
    slices: list[tuple[int, RowSlices | None]] = []
    for part, first in zip(np.split(rows.table, cuts), [0, *cuts.tolist()], strict=True):
        if len(part):
            position = int(owners[first])
            part = part - [firsts[position], 0, 0, part[0, SLICE_OUT]]
            is_whole = np.array_equal(part, all_row_slices(files[position].footer).table)
            slices.append((position, None if is_whole else RowSlices(part)))
    return slices
