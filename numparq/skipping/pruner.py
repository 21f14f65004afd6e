"""The file pruner that a store makes for a query: which listed files may match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from numparq.dataset.discover.files import DatasetListing
from numparq.dataset.listing.files import DataFile, PartitionIndex
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.partitions.predicate import PartitionPredicate, wrap_partition_predicates
from numparq.dataset.prune.file_query import FileQuery, PrunedFiles
from numparq.dataset.prune.filter_columns import PartitionKeyColumns, partition_key_ordinal
from numparq.dataset.prune.pruners import PartitionPruner
from numparq.errors import SchemaError
from numparq.expr.bind import bind
from numparq.expr.expression import Constant, Expression
from numparq.expr.filters import as_expression
from numparq.expr.normalize import all_of, normalize
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.schema import Schema
from numparq.typing import Filters
from numparq.util.pluralize import pluralize

from .clause import NO_REASON, Clause, column_key, filter_names
from .indexes.index import unwrap_test
from .location import bucket_of, object_ids
from .part import PartRows, StorePart, row_groups_of
from .selection import StoreSelection


def query_expression(query: FileQuery) -> Expression:
    """Return the filter of a query in normal form, with the runtime filters that have arrived."""
    parts = [] if query.filters is None else [normalize(as_expression(query.filters))]
    for each in check_runtime_filters(query.runtime_filters):
        condition = each.condition
        parts += [] if condition is None else [normalize(condition)]
    return all_of(parts)


class StorePruner:
    """Prunes files by a store: those whose current id is in it, and all of whose rows say that none of theirs match.

    Attributes
    ----------
    is_known : bool array
        Files that the store knows as they are now, of those that `keep` was called with.
    counts : dict of str to int
        Number of files by what ruled them out.
    """

    name = "skipping"

    def __init__(self, list_parts: Callable[[], list[StorePart]], query: FileQuery) -> None:
        self._list_parts = list_parts
        self._query = query
        self._expression = query_expression(query)
        self._keys = PartitionKeyColumns(query.partitions)
        self._reasons: list[str] = []
        self.counts: dict[str, int] = {}
        self._row_of: dict[int, tuple[PartRows, int]] = {}
        self.is_known = np.zeros(0, np.bool_)

    @property
    def keeps_all(self) -> bool:
        """Whether all files may match, because nothing is filtered."""
        return self._expression == Constant(True)

    @property
    def reason(self) -> str:
        """Indexes that ruled files out, with the numbers of these."""
        return ", ".join(f"{reason}: {pluralize(count, 'file')}" for reason, count in self.counts.items())

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Return which files may have matching rows; see `FilePruner`."""
        filesystem = self._query.filesystem
        ids, changes = object_ids(files, filesystem)
        position_of = {name: position for position, name in enumerate(ids) if name is not None}
        changed = np.array(changes, np.int64)
        known, may = np.zeros(len(files), np.bool_), np.zeros(len(files), np.bool_)
        why = np.full(len(files), NO_REASON, np.int64)
        self._row_of.clear()
        for rows in row_groups_of(self._list_parts()):
            own = rows.part.own
            if own is not None and len(files) and own.bucket != bucket_of(files[0].path, filesystem):
                continue
            here = np.array([position_of.get(name, -1) for name in rows.object_names], np.int64)  # type: ignore[arg-type]
            if not (here >= 0).any():
                continue
            answers, reasons = Clause(self._expression, self._reasons).evaluate(
                rows, _Partitions(self, files, here).answer
            )
            if own is not None and own.changed:  # a file with a later change is another one, whatever its id
                answers = answers | (changed[here] > own.changed)
            is_here = here >= 0
            known[here[is_here]] = True
            may[here[is_here & answers]] = True
            why[here[is_here & ~answers]] = reasons[is_here & ~answers]
            self._row_of.update((position, (rows, row)) for row, position in enumerate(here.tolist()) if position >= 0)
        may_match = ~known | may
        self.is_known = known
        self.counts = dict(
            Counter(self._reasons[at] if at >= 0 else "several rows" for at in why[~may_match].tolist()).most_common()
        )
        return may_match

    def pruned_files(self, may_match: np.ndarray) -> list[PrunedFiles]:
        """Return what is known of the columns of the files that `keep` ruled out; nothing, if not of all."""
        by_part: dict[int, tuple[PartRows, list[int], list[int]]] = {}
        for position in np.flatnonzero(~may_match).tolist():
            rows, row = self._row_of[position]
            part = by_part.setdefault(id(rows.part), (rows, [], []))
            part[1].append(rows.first_row + row)
            part[2].append(position)
        pruned: list[PrunedFiles] = []
        for rows, numbers, positions in by_part.values():
            own = rows.part.own
            columns = None if own is None else own.pruned_files(np.array(numbers), np.array(positions))
            if columns is None:
                return []
            pruned += columns
        return pruned

    def names_are_unique(self, schema: Schema) -> bool:
        """Whether each column that the filter names is one column: indexes ignore case, and mean paths by dots."""
        for name in filter_names(self._expression):
            key = column_key(name)
            top = key.partition(".")[0]
            tops = [each for each in schema.columns if each.lower() in (top, key)]
            if len(tops) > 1:
                return False
            if top != key and tops:
                leaves = map(schema.leaf, schema.column_leaves(schema.positions[tops[0]]))
                if sum(leaf.name.lower() == key for leaf in leaves) > 1:
                    return False
        return True

    def partition_answers(self, test: Expression, files: Sequence[DataFile]) -> np.ndarray | None:
        """Return for which files a predicate holds; None if it is on no partition column."""
        partitions = self._query.partitions
        names = unwrap_test(test)[0].names
        ordinals = [partition_key_ordinal(name, partitions) for name in names]
        if max(ordinals) < 0:
            return None
        if min(ordinals) < 0 or len(names) > 1:
            return np.ones(len(files), np.bool_)
        try:
            bound = wrap_partition_predicates(bind(test, self._keys, self._keys), self._keys.items, partitions)  # type: ignore[arg-type]
        except SchemaError:
            return np.ones(len(files), np.bool_)
        if isinstance(bound, Constant):
            return np.full(len(files), bound.value)
        assert isinstance(bound, PartitionPredicate)
        values, codes = PartitionIndex.from_files(files)
        answers: np.ndarray = bound.evaluate([each[bound.key] for each in values])[codes]
        return answers


class _Partitions:
    """Answers predicates on partition columns for rows of a part, by their files."""

    def __init__(self, pruner: StorePruner, files: Sequence[DataFile], positions: np.ndarray) -> None:
        self._pruner, self._files, self._positions = pruner, files, positions

    def answer(self, test: Expression) -> np.ndarray | None:
        """Return for which rows a predicate may hold; None if it is on no partition column."""
        answers = self._pruner.partition_answers(test, self._files)
        return None if answers is None else (self._positions < 0) | answers[self._positions]


def select_listed(
    list_parts: Callable[[], list[StorePart]], listing: DatasetListing, filters: Filters
) -> StoreSelection:
    """Return what the parts of a store say of a filter, for the files of a listing as they are now."""
    partitions = DatasetPartitions.from_listing(listing)
    inside = PartitionPruner(filters, partitions).keep(listing.files)
    files = listing.files.take(np.flatnonzero(inside))
    pruner = StorePruner(list_parts, FileQuery(filters, (), partitions, listing.filesystem, "name"))
    may_match = pruner.keep(files)
    names = [file.name for file in files]

    def chosen(mask: np.ndarray) -> list[str]:
        return [names[at] for at in np.flatnonzero(mask).tolist()]

    outside = [file.name for file in listing.files.take(np.flatnonzero(~inside))]
    matching = chosen(may_match & pruner.is_known)
    return StoreSelection(matching, chosen(~may_match), outside, chosen(~pruner.is_known), pruner.counts)
