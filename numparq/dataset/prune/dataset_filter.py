"""Bind a filter to a dataset's merged schema, then to the leaf columns of each file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.partitions.predicate import (
    PartitionComparison,
    PartitionPredicate,
    evaluate_partition_predicates,
    wrap_partition_predicates,
)
from numparq.errors import SchemaError, error_context
from numparq.expr.bind import bind
from numparq.expr.bound import (
    BloomPredicate,
    BoundPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
)
from numparq.expr.expression import And, Constant, Expression, LiteralError, Or
from numparq.expr.filters import as_expression
from numparq.expr.key_ranges import NO_KEYS
from numparq.expr.normalize import all_of, any_of, simplify
from numparq.expr.runtime_filter import check_runtime_filters, resolve_runtime_filter_leaf
from numparq.expr.unwrap_cast import unwrap_cast
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.predicate import ScanPredicate
from numparq.typing import Filters, RuntimeFilters
from numparq.util.bounded_cache import BoundedCache

from .filter_columns import DatasetFilterColumns, FileFilterColumn, StoredFilterColumns

if TYPE_CHECKING:
    from numparq.dataset.listing.files import DataFile
    from numparq.dataset.partitions.columns import DatasetPartitions
    from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
    from numparq.expr.runtime_filter import RuntimeFilter

# Bounded cache of predicates by partition; files of one partition mostly follow one another.
_MOST_KEPT = 64


class DatasetFilter:
    """A filter bound to a dataset's merged schema, to be bound to each file.

    Literals are compared as the dataset's types; a file may store a narrower type, or lack the column (nulls). A
    partition key has one value in all rows of a file, and hides a column of the same name.
    Raises SchemaError if a column is missing, or a literal cannot be compared with its values.

    Attributes
    ----------
    predicate : Expression
        The filter, bound to the dataset.
    keys : list of str
        Partition keys that the filter and the runtime filters read.
    names : list of str
        Top-level columns that they read, without partition keys.
    """

    def __init__(
        self,
        filters: Filters,
        dataset_schema: DatasetSchema,
        partitions: DatasetPartitions,
        runtime_filters: RuntimeFilters = (),
    ) -> None:
        self._partitions = partitions
        self._columns = DatasetFilterColumns(dataset_schema, partitions)
        self._filter = None if filters is None else as_expression(filters)
        self.predicate = self._bound(self._columns)
        for each in check_runtime_filters(runtime_filters):
            resolve_runtime_filter_leaf(self._columns, each)
        self.keys = [partitions.keys[item.key] for item in self._columns.items if item.key >= 0]
        self.names = list(dict.fromkeys(item.resolved.path[0] for item in self._columns.items if item.key < 0))
        self._placed: dict[tuple[FileFilterColumn | None, ...], Expression] = {}
        self._decided = BoundedCache(_MOST_KEPT)
        self._arrived: dict[tuple[RuntimeFilter, DatasetFilterColumns | StoredFilterColumns], Expression] = {}

    def __repr__(self) -> str:
        return f"<DatasetFilter {self.predicate!r}>"

    def _bound(self, columns: DatasetFilterColumns | StoredFilterColumns) -> Expression:
        if self._filter is None:
            return Constant(True)
        return self._wrapped(bind(self._filter, columns, columns))  # type: ignore[arg-type]

    def _wrapped(self, bound: Expression) -> Expression:
        return wrap_partition_predicates(bound, self._columns.items, self._partitions)

    def bind_file(self, file: OpenFile, data_file: DataFile) -> Expression:
        """Bind the filter, without runtime filters, to a file and its partition values; equal ones share the result.

        Raises SchemaError if a literal cannot be compared with the file's values.
        """
        places, values = self._columns.in_file(file), data_file.values
        return self._decided.get_or_make(
            (places, values), lambda: evaluate_partition_predicates(self._in_file(file, places), values)
        )

    def bind_file_columns(self, file: OpenFile) -> Expression:
        """Bind the filter to the columns of a file; predicates on partition keys remain (`PartitionPredicate`)."""
        return self._in_file(file, self._columns.in_file(file))

    def _in_file(self, file: OpenFile, places: tuple[FileFilterColumn | None, ...]) -> Expression:
        known = self._placed.get(places)
        if known is None:
            with error_context(file=file.source.name):
                columns = self._columns.as_stored(places)
                bound = self.predicate if columns is self._columns else self._bound(columns)
                known = self._placed[places] = bind_to_file(bound, places)
        return known

    def bind_runtime_filters(self, file: OpenFile, runtime_filters: Any) -> list[Expression]:
        """Bind the runtime filters that have arrived, as `bind_file_columns` binds the filter."""
        filters = check_runtime_filters(runtime_filters)
        for each in filters:
            resolve_runtime_filter_leaf(self._columns, each)
        places = self._columns.in_file(file)
        columns = self._columns.as_stored(places)
        bounds = [bound for each in filters if (bound := self.bind_runtime_filter(each, columns)) is not None]
        with error_context(file=file.source.name):
            return [bind_to_file(bound, places) for bound in bounds]

    def scan_predicate(self, file: OpenFile, data_file: DataFile, runtime_filters: Any = ()) -> ScanPredicate | None:
        """Build the scan predicate of a file, with runtime filters that may arrive while it is read.

        Returns None if all rows match for certain; if none match, `ScanPredicate.current` is ``Constant(False)``.
        """
        filters = check_runtime_filters(runtime_filters)
        places = [resolve_runtime_filter_leaf(self._columns, each).index for each in filters]
        within = self._columns.in_file(file)
        late = [
            DatasetRuntimePredicate(self, each, within, place, data_file)
            for each, place in zip(filters, places, strict=True)
        ]
        bound = self.bind_file(file, data_file)
        if bound != Constant(True):
            return ScanPredicate.from_bound(bound, late)
        return ScanPredicate.from_bound(None, late) if late else None

    def as_stored(self, places: Sequence[FileFilterColumn | None]) -> DatasetFilterColumns | StoredFilterColumns:
        """Return the filter columns to bind to for a file; see `DatasetFilterColumns.as_stored`."""
        return self._columns.as_stored(places)

    def bind_runtime_filter(
        self, runtime_filter: RuntimeFilter, columns: DatasetFilterColumns | StoredFilterColumns
    ) -> Expression | None:
        """Bind a runtime filter to columns from `as_stored`: the same object each time, None until it arrives."""
        key = runtime_filter, columns
        if key not in self._arrived:
            bound = runtime_filter._bind(columns, columns)  # type: ignore[arg-type]
            if bound is None:
                return None
            self._arrived[key] = self._wrapped(bound)
        return self._arrived[key]


class DatasetRuntimePredicate:
    """A runtime filter on a dataset's column, bound to one file; ``place`` is its ordinal in ``places``.

    On a partition key, or a column that the file lacks, it matches all rows of the file or none.
    """

    def __init__(
        self,
        file_filter: DatasetFilter,
        runtime_filter: RuntimeFilter,
        places: Sequence[FileFilterColumn | None],
        place: int,
        data_file: DataFile,
    ) -> None:
        found = places[place]
        self.leaves: list[Leaf] = [] if found is None else [found.leaf]
        self._of = file_filter
        self._filter = runtime_filter
        self._places = places
        self._columns = file_filter.as_stored(places)
        self._file = data_file
        self._known: tuple[Expression, Expression] | None = None

    def bind(self) -> Expression | None:
        """Return the filter bound to the file's leaf columns; None until it arrives."""
        bound = self._of.bind_runtime_filter(self._filter, self._columns)
        if bound is None:
            return None
        if self._known is None or self._known[0] is not bound:
            with error_context(file=self._file.name):
                self._known = bound, evaluate_partition_predicates(bind_to_file(bound, self._places), self._file.values)
        return self._known[1]


# --- one file ---------------------------------------------------------------------------------------------------------


def bind_to_file(bound: Expression, places: Sequence[FileFilterColumn | None]) -> Expression:
    """Bind an expression that is bound to the dataset to the leaf columns of a file."""
    if isinstance(bound, (Constant, PartitionPredicate)):
        return bound
    if isinstance(bound, (And, Or)):
        parts = [bind_to_file(part, places) for part in bound.parts]
        return all_of(parts) if isinstance(bound, And) else any_of(parts)
    if isinstance(bound, (PartitionComparison, ComparisonPredicate)):
        return _comparison(bound, places)
    assert isinstance(bound, BoundPredicate)
    place = places[bound.leaf.index]
    if place is None:  # all values are null: only IS NULL matches
        return Constant(isinstance(bound, NullPredicate) and not bound.negated)
    try:
        return _PLACED[type(bound)](bound, place)
    except LiteralError as error:
        message = f"{bound!r} cannot be evaluated on the column of this file: {error}"
        raise SchemaError(message, column=place.leaf.name) from None


def _comparison(
    bound: PartitionComparison | ComparisonPredicate, places: Sequence[FileFilterColumn | None]
) -> Expression:
    """Bind a comparison of two columns: its columns in files, which are compared as the file stores them."""
    test, keys = (bound.predicate, bound.keys) if isinstance(bound, PartitionComparison) else (bound, (-1, -1))
    for key, leaf, names in zip(keys, test.leaves, (("leaf", "domain"), ("other", "other_domain")), strict=True):
        if key < 0:
            place = places[leaf.index]
            if place is None:
                return Constant(False)
            test = replace(test, **dict(zip(names, (place.leaf, place.domain), strict=True)))  # type: ignore[arg-type]
    return PartitionComparison(test, keys, bound.partitions) if isinstance(bound, PartitionComparison) else test


def _null(test: NullPredicate, place: FileFilterColumn) -> Expression:
    return (
        NullPredicate(place.leaf, place.definition_level, test.negated, test.text)
        if place.definition_level
        else Constant(test.negated)
    )


def _value(test: ValuePredicate, place: FileFilterColumn) -> Expression:
    return simplify(unwrap_cast(test, place.leaf, place.domain))


def _element(test: ContainsPredicate, place: FileFilterColumn) -> Expression:
    if place.domain.kind == "none":
        element = replace(
            test.predicate, leaf=place.leaf, domain=place.domain, ranges=NO_KEYS, matches_nan=False, pattern=None
        )
    else:
        element = unwrap_cast(test.predicate, place.leaf, place.domain)
    return simplify(ContainsPredicate(place.leaf, place.definition_level, element, test.negated, test.text))


def _member(test: BloomPredicate, place: FileFilterColumn) -> Expression:
    """Bind a Bloom filter predicate; match all values if the file stores them in another form than was hashed."""
    if test.domain == place.domain and test.leaf.physical == place.leaf.physical:
        return BloomPredicate(place.leaf, place.domain, test.bloom_filter, test.text)
    return (
        NullPredicate(place.leaf, place.definition_level, True, test.text) if place.definition_level else Constant(True)
    )


_PLACED: dict[type[Expression], Callable[[Any, FileFilterColumn], Expression]] = {
    NullPredicate: _null,
    ValuePredicate: _value,
    ContainsPredicate: _element,
    BloomPredicate: _member,
}
