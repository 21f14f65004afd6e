"""A filter of a dataset, bound once to its columns, and then to the leaves of each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import SchemaError, located
from ..filtering.condition import Condition, column_of, listed
from ..opened import OpenedFile
from ..predicate import as_expression
from ..predicate.bind import bind, simplified
from ..predicate.bound import ElementTest, Leafy, MemberTest, NullTest, ValueTest
from ..predicate.expression import And, Constant, Expression, Or
from ..predicate.normal import all_of, any_of
from ..predicate.translate import translated
from ..predicate.unfit import Unfit
from ..remembered import Kept
from ..schema import Leaf
from .asked import AskedColumns, InFile
from .partition_tests import PartitionTest, decided, with_partition_tests

if TYPE_CHECKING:
    from ..runtime_filter import RuntimeFilter
    from .files import DataFile
    from .partitions import Partitions
    from .resolution import DatasetSchema

__all__ = ["FileFilter"]

# What is known of a partition is kept for its next file; mostly they follow one another.
_MOST_KEPT = 64


class FileFilter:
    """Which rows of a dataset are wanted, told of each of its files.

    Literals are compared with the values that the dataset has, of its types: a file may have them in a narrower one, or
    lack the column, whose values are nulls then. A partition key has the same value in all rows of a file.

    Parameters
    ----------
    filters : Expression, list of tuples, or None
        As in `numparq.read_parquet`.
    dataset_schema : DatasetSchema
        Of all files.
    partitions : Partitions
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
        self, filters: Any, dataset_schema: DatasetSchema, partitions: Partitions, runtime_filters: Any = ()
    ) -> None:
        self._partitions = partitions
        self._columns = AskedColumns(dataset_schema, partitions)
        self.asked: Expression = Constant(True)
        if filters is not None:
            bound = bind(as_expression(filters), self._columns, self._columns)  # type: ignore[arg-type]
            self.asked = self._wrapped(bound)
        for each in listed(runtime_filters):
            column_of(self._columns, each)
        self.keys = [partitions.keys[item.key] for item in self._columns.items if item.key >= 0]
        self.names = list(dict.fromkeys(item.found.path[0] for item in self._columns.items if item.key < 0))
        self._placed: dict[tuple[InFile | None, ...], Expression] = {}
        self._decided = Kept(_MOST_KEPT)
        self._arrived: dict[RuntimeFilter, tuple[Expression, Expression]] = {}

    def __repr__(self) -> str:
        return f"<FileFilter {self.asked!r}>"

    def _wrapped(self, bound: Expression) -> Expression:
        return with_partition_tests(bound, self._columns.items, self._partitions)

    def bound(self, file: OpenedFile, data_file: DataFile) -> Expression:
        """Bind the filter, without runtime filters, to a file.

        Parameters
        ----------
        file : OpenedFile
            The file.
        data_file : DataFile
            What the listing says of it.

        Returns
        -------
        Expression
            As `numparq.predicate.bind.bind` makes them. For files that have the same columns, and no partition that is
            asked, it is the same object.

        Raises
        ------
        SchemaError
            When the file's values are none of the dataset's type.
        """
        places, values = self._columns.within(file), data_file.values
        return self._decided.get((places, values), lambda: decided(self._in_file(file, places), values))

    def in_file(self, file: OpenedFile) -> Expression:
        """Bind the filter to the columns of a file; tests of partition keys stay in it (`PartitionTest`)."""
        return self._in_file(file, self._columns.within(file))

    def _in_file(self, file: OpenedFile, places: tuple[InFile | None, ...]) -> Expression:
        known = self._placed.get(places)
        if known is None:
            with located(file=file.source.name):
                known = self._placed[places] = placed(self.asked, places)
        return known

    def arrived_in(self, file: OpenedFile, runtime_filters: Any) -> list[Expression]:
        """Bind the runtime filters that have arrived as `in_file` does the filter."""
        filters = listed(runtime_filters)
        for each in filters:
            column_of(self._columns, each)
        bounds = [bound for each in filters if (bound := self.arrived(each)) is not None]
        with located(file=file.source.name):
            return [placed(bound, self._columns.within(file)) for bound in bounds]

    def condition(self, file: OpenedFile, data_file: DataFile, runtime_filters: Any = ()) -> Condition | None:
        """Make the condition for a read of a file.

        Parameters
        ----------
        file, data_file
            As in `bound`.
        runtime_filters : RuntimeFilter, or iterable of these
            As in `numparq.read_parquet`: they may arrive while the file is read.

        Returns
        -------
        Condition or None
            None where all rows of the file satisfy it, and no runtime filter can change that. Where none do, its
            `now` is ``Constant(False)``.

        Raises
        ------
        SchemaError
            As in `bound`, or when the dataset has no such column as a runtime filter is for.
        """
        filters = listed(runtime_filters)
        places = [column_of(self._columns, each).index for each in filters]
        within = self._columns.within(file)
        late = [LateTest(self, each, within, place, data_file) for each, place in zip(filters, places, strict=True)]
        bound = self.bound(file, data_file)
        if bound != Constant(True):
            return Condition.of(bound, late)
        return Condition.of(None, late) if late else None

    def arrived(self, runtime_filter: RuntimeFilter) -> Expression | None:
        """Bind a runtime filter to the dataset; the same object each time, and None while it has not arrived."""
        bound = runtime_filter.bound(self._columns, self._columns)  # type: ignore[arg-type]
        if bound is None:
            return None
        known = self._arrived.get(runtime_filter)
        if known is None or known[0] is not bound:
            known = self._arrived[runtime_filter] = bound, self._wrapped(bound)
        return known[1]


class LateTest:
    """A runtime filter on a column of a dataset, as one of its files has it.

    Of a partition key, and of a column that the file lacks, all rows have the same value: from the moment the filter
    arrives, it lets all rows of the file pass or none.

    Parameters
    ----------
    file_filter : FileFilter
        What binds it.
    runtime_filter : RuntimeFilter
        The filter.
    places : tuple of InFile or None
        Where in the file what is asked is.
    place : int
        Which of them the filter is about.
    data_file : DataFile
        What the listing says of the file.
    """

    def __init__(
        self, file_filter: FileFilter, runtime_filter: RuntimeFilter, places: Sequence[InFile | None], place: int,
        data_file: DataFile,
    ) -> None:  # fmt: skip
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
            with located(file=self._file.name):
                self._known = bound, decided(placed(bound, self._places), self._file.values)
        return self._known[1]


# --- one file ---------------------------------------------------------------------------------------------------------


def placed(bound: Expression, places: Sequence[InFile | None]) -> Expression:
    """Bind to the leaves of a file what is bound to the dataset."""
    if isinstance(bound, (Constant, PartitionTest)):
        return bound
    if isinstance(bound, (And, Or)):
        parts = [placed(part, places) for part in bound.parts]
        return all_of(parts) if isinstance(bound, And) else any_of(parts)
    assert isinstance(bound, Leafy)
    place = places[bound.leaf.index]
    if place is None:  # nulls, of which only one thing is known
        return Constant(isinstance(bound, NullTest) and not bound.negated)
    try:
        return _PLACED[type(bound)](bound, place)
    except Unfit as error:
        message = f"{bound!r} cannot be asked of the column here: {error}"
        raise SchemaError(message, column=place.leaf.name) from None


def _null(test: NullTest, place: InFile) -> Expression:
    return NullTest(place.leaf, place.level, test.negated, test.text) if place.level else Constant(test.negated)


def _value(test: ValueTest, place: InFile) -> Expression:
    return simplified(translated(test, place.leaf, place.domain))


def _element(test: ElementTest, place: InFile) -> Expression:
    if place.domain.kind == "none":
        element = replace(test.test, leaf=place.leaf, domain=place.domain, ranges=(), nan=False, pattern=None)
    else:
        element = translated(test.test, place.leaf, place.domain)
    return simplified(ElementTest(place.leaf, place.level, element, test.negated, test.text))


def _member(test: MemberTest, place: InFile) -> Expression:
    """Ask a Bloom filter, unless the file stores values in another form than was hashed: it cannot tell then."""
    if test.domain == place.domain and test.leaf.physical == place.leaf.physical:
        return MemberTest(place.leaf, place.domain, test.filter, test.text)
    return NullTest(place.leaf, place.level, True, test.text) if place.level else Constant(True)


_PLACED: dict[type, Any] = {NullTest: _null, ValueTest: _value, ElementTest: _element, MemberTest: _member}
