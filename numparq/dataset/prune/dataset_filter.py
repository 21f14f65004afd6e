"""Bind a filter to a dataset's merged schema, then to the leaf columns of each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.partitions.predicate import (
    PartitionPredicate,
    evaluate_partition_predicates,
    wrap_partition_predicates,
)
from numparq.errors import SchemaError, error_context
from numparq.expr.bind import bind
from numparq.expr.bound import BloomPredicate, BoundPredicate, ContainsPredicate, NullPredicate, ValuePredicate
from numparq.expr.dnf import as_expression
from numparq.expr.expression import And, Constant, Expression, LiteralError, Or
from numparq.expr.normalize import all_of, any_of, simplify
from numparq.expr.runtime_filter import check_runtime_filters, resolve_runtime_filter_leaf
from numparq.expr.unwrap_cast import unwrap_cast
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.predicate import ScanPredicate
from numparq.util.bounded_cache import BoundedCache

from .filter_columns import DatasetFilterColumns, FileFilterColumn

if TYPE_CHECKING:
    from numparq.dataset.listing.files import DataFile
    from numparq.dataset.partitions.columns import DatasetPartitions
    from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
    from numparq.expr.runtime_filter import RuntimeFilter

__all__ = ["DatasetFilter"]

# What is known of a partition is kept for its next file; mostly they follow one another.
_MOST_KEPT = 64


class DatasetFilter:
    """Which rows of a dataset are wanted, told of each of its files.

    Literals are compared with the values that the dataset has, of its types: a file may have them in a narrower one, or
    lack the column, whose values are nulls then. A partition key has the same value in all rows of a file.

    Parameters
    ----------
    filters : Expression, list of tuples, or None
        As in `numparq.read_parquet`.
    dataset_schema : DatasetSchema
        Of all files.
    partitions : DatasetPartitions
        The partition keys; one wins over a column of that name.
    runtime_filters : RuntimeFilter, or iterable of these
        Those that reads will be told of, so that their columns are looked for before a file is read.

    Attributes
    ----------
    asked : Expression
        The filter, bound to the dataset.
    keys : list of str
        The partition keys that are asked.
    names : list of str
        The top-level columns that are asked; keys are none of them.

    Raises
    ------
    SchemaError
        When the dataset has no such column, or a literal cannot be compared with its values.
    """

    def __init__(
        self, filters: Any, dataset_schema: DatasetSchema, partitions: DatasetPartitions, runtime_filters: Any = ()
    ) -> None:
        self._partitions = partitions
        self._columns = DatasetFilterColumns(dataset_schema, partitions)
        self.asked: Expression = Constant(True)
        if filters is not None:
            bound = bind(as_expression(filters), self._columns, self._columns)  # type: ignore[arg-type]
            self.asked = self._wrapped(bound)
        for each in check_runtime_filters(runtime_filters):
            resolve_runtime_filter_leaf(self._columns, each)
        self.keys = [partitions.keys[item.key] for item in self._columns.items if item.key >= 0]
        self.names = list(dict.fromkeys(item.found.path[0] for item in self._columns.items if item.key < 0))
        self._placed: dict[tuple[FileFilterColumn | None, ...], Expression] = {}
        self._decided = BoundedCache(_MOST_KEPT)
        self._arrived: dict[RuntimeFilter, tuple[Expression, Expression]] = {}

    def __repr__(self) -> str:
        return f"<FileFilter {self.asked!r}>"

    def _wrapped(self, bound: Expression) -> Expression:
        return wrap_partition_predicates(bound, self._columns.items, self._partitions)

    def bound(self, file: OpenFile, data_file: DataFile) -> Expression:
        """Bind the filter, without runtime filters, to a file.

        Parameters
        ----------
        file : OpenFile
            The file.
        data_file : DataFile
            What the listing says of it.

        Returns
        -------
        Expression
            As `numparq.expr.bind.bind` makes them. For files that have the same columns, and no partition that is
            asked, it is the same object.

        Raises
        ------
        SchemaError
            When the file's values are none of the dataset's type.
        """
        places, values = self._columns.within(file), data_file.values
        return self._decided.get(
            (places, values), lambda: evaluate_partition_predicates(self._in_file(file, places), values)
        )

    def bind_file_columns(self, file: OpenFile) -> Expression:
        """Bind the filter to the columns of a file; tests of partition keys stay in it (`PartitionPredicate`)."""
        return self._in_file(file, self._columns.within(file))

    def _in_file(self, file: OpenFile, places: tuple[FileFilterColumn | None, ...]) -> Expression:
        known = self._placed.get(places)
        if known is None:
            with error_context(file=file.source.name):
                known = self._placed[places] = bind_to_file(self.asked, places)
        return known

    def bind_runtime_filters(self, file: OpenFile, runtime_filters: Any) -> list[Expression]:
        """Bind the runtime filters that have arrived as `in_file` does the filter."""
        filters = check_runtime_filters(runtime_filters)
        for each in filters:
            resolve_runtime_filter_leaf(self._columns, each)
        bounds = [bound for each in filters if (bound := self.arrived(each)) is not None]
        with error_context(file=file.source.name):
            return [bind_to_file(bound, self._columns.within(file)) for bound in bounds]

    def condition(self, file: OpenFile, data_file: DataFile, runtime_filters: Any = ()) -> ScanPredicate | None:
        """Make the condition for a read of a file.

        Parameters
        ----------
        file, data_file
            As in `bound`.
        runtime_filters : RuntimeFilter, or iterable of these
            As in `numparq.read_parquet`: they may arrive while the file is read.

        Returns
        -------
        ScanPredicate or None
            None where all rows of the file satisfy it, and no runtime filter can change that. Where none do, its
            `now` is ``Constant(False)``.

        Raises
        ------
        SchemaError
            As in `bound`, or when the dataset has no such column as a runtime filter is for.
        """
        filters = check_runtime_filters(runtime_filters)
        places = [resolve_runtime_filter_leaf(self._columns, each).index for each in filters]
        within = self._columns.within(file)
        late = [
            DatasetRuntimePredicate(self, each, within, place, data_file)
            for each, place in zip(filters, places, strict=True)
        ]
        bound = self.bound(file, data_file)
        if bound != Constant(True):
            return ScanPredicate.of(bound, late)
        return ScanPredicate.of(None, late) if late else None

    def arrived(self, runtime_filter: RuntimeFilter) -> Expression | None:
        """Bind a runtime filter to the dataset; the same object each time, and None while it has not arrived."""
        bound = runtime_filter.bound(self._columns, self._columns)  # type: ignore[arg-type]
        if bound is None:
            return None
        known = self._arrived.get(runtime_filter)
        if known is None or known[0] is not bound:
            known = self._arrived[runtime_filter] = bound, self._wrapped(bound)
        return known[1]


class DatasetRuntimePredicate:
    """A runtime filter on a column of a dataset, as one of its files has it.

    Of a partition key, and of a column that the file lacks, all rows have the same value: from the moment the filter
    arrives, it lets all rows of the file pass or none.

    Parameters
    ----------
    file_filter : DatasetFilter
        What binds it.
    runtime_filter : RuntimeFilter
        The filter.
    places : tuple of FileFilterColumn or None
        Where in the file what is asked is.
    place : int
        Which of them the filter is about.
    data_file : DataFile
        What the listing says of the file.
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
        self._file = data_file
        self._known: tuple[Expression, Expression] | None = None

    def bound(self) -> Expression | None:
        """Give it bound to the file's leaves; None while it has not arrived."""
        bound = self._of.arrived(self._filter)
        if bound is None:
            return None
        if self._known is None or self._known[0] is not bound:
            with error_context(file=self._file.name):
                self._known = bound, evaluate_partition_predicates(bind_to_file(bound, self._places), self._file.values)
        return self._known[1]


# --- one file ---------------------------------------------------------------------------------------------------------


def bind_to_file(bound: Expression, places: Sequence[FileFilterColumn | None]) -> Expression:
    """Bind to the leaves of a file what is bound to the dataset."""
    if isinstance(bound, (Constant, PartitionPredicate)):
        return bound
    if isinstance(bound, (And, Or)):
        parts = [bind_to_file(part, places) for part in bound.parts]
        return all_of(parts) if isinstance(bound, And) else any_of(parts)
    assert isinstance(bound, BoundPredicate)
    place = places[bound.leaf.index]
    if place is None:  # nulls, of which only one thing is known
        return Constant(isinstance(bound, NullPredicate) and not bound.negated)
    try:
        return _PLACED[type(bound)](bound, place)
    except LiteralError as error:
        message = f"{bound!r} cannot be asked of the column here: {error}"
        raise SchemaError(message, column=place.leaf.name) from None


def _null(test: NullPredicate, place: FileFilterColumn) -> Expression:
    return NullPredicate(place.leaf, place.level, test.negated, test.text) if place.level else Constant(test.negated)


def _value(test: ValuePredicate, place: FileFilterColumn) -> Expression:
    return simplify(unwrap_cast(test, place.leaf, place.domain))


def _element(test: ContainsPredicate, place: FileFilterColumn) -> Expression:
    if place.domain.kind == "none":
        element = replace(test.test, leaf=place.leaf, domain=place.domain, ranges=(), nan=False, pattern=None)
    else:
        element = unwrap_cast(test.test, place.leaf, place.domain)
    return simplify(ContainsPredicate(place.leaf, place.level, element, test.negated, test.text))


def _member(test: BloomPredicate, place: FileFilterColumn) -> Expression:
    """Ask a Bloom filter, unless the file stores values in another form than was hashed: it cannot tell then."""
    if test.domain == place.domain and test.leaf.physical == place.leaf.physical:
        return BloomPredicate(place.leaf, place.domain, test.filter, test.text)
    return NullPredicate(place.leaf, place.level, True, test.text) if place.level else Constant(True)


_PLACED: dict[type, Any] = {
    NullPredicate: _null,
    ValuePredicate: _value,
    ContainsPredicate: _element,
    BloomPredicate: _member,
}
