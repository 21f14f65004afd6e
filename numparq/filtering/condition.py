"""What the rows of a read have to satisfy: a filter, and runtime filters as they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..opened import OpenedFile
from ..predicate import as_expression
from ..predicate.bind import bind
from ..predicate.bound import leaves_of
from ..predicate.columns import Columns, find
from ..predicate.expression import Expression
from ..predicate.normal import all_of
from ..schema import Leaf, Schema

if TYPE_CHECKING:
    from ..runtime_filter import RuntimeFilter

__all__ = ["Condition", "Late", "Origins", "bound_to", "column_of", "listed"]


class Origins:
    """The types that the file's ``ARROW:schema`` gives its leaves, looked up when they are asked for."""

    def __init__(self, file: OpenedFile) -> None:
        self._file = file

    def get(self, index: int) -> ArrowType | None:
        """Give that of a leaf, by its ordinal; None where the schema has none."""
        leaf = self._file.schema.leaf(index)
        return None if leaf.is_nested else self._file.arrow_schema.type_of(leaf.column)


def bound_to(file: OpenedFile, filters: Any) -> Expression:
    """Bind what a user gave as ``filters=`` to the columns of a file.

    Parameters
    ----------
    file : OpenedFile
        The file.
    filters : Expression, or list of tuples
        As `numparq.predicate.as_expression` takes them.

    Returns
    -------
    Expression

    Raises
    ------
    SchemaError
        When the file has no such column, or a literal cannot be compared with its values.
    """
    return bind(as_expression(filters), file.schema, Origins(file))  # type: ignore[arg-type]


class Late(Protocol):
    """What may arrive while a file is read, and what it asks then."""

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The leaves that it may ask."""

    def bound(self) -> Expression | None:
        """Give it bound to the file, for one that has arrived the same each time; None until then."""


class _OfFile:
    """A runtime filter on a column of a file."""

    def __init__(self, file: OpenedFile, runtime_filter: RuntimeFilter) -> None:
        self.leaves = [column_of(file.schema, runtime_filter)]
        self._filter = runtime_filter
        self._schema = file.schema
        self._origins: Any = Origins(file)

    def bound(self) -> Expression | None:
        return self._filter.bound(self._schema, self._origins)


class Condition:
    """What rows have to satisfy.

    Parameters
    ----------
    file : OpenedFile
        The file.
    filters : Expression, list of tuples, or None
        As in `numparq.read_parquet`.
    runtime_filters : RuntimeFilter, or iterable of these
        As in `numparq.read_parquet`.
    """

    def __init__(self, file: OpenedFile, filters: Any, runtime_filters: Any = ()) -> None:
        bound = None if filters is None else bound_to(file, filters)
        self._set(bound, [_OfFile(file, each) for each in listed(runtime_filters)] if runtime_filters else [])

    @classmethod
    def of(cls, bound: Expression | None, late: Sequence[Late] = ()) -> Condition:
        """Make one of what has been bound to a file's leaves before.

        Parameters
        ----------
        bound : Expression or None
            As `numparq.predicate.bind.bind` makes them.
        late : sequence of Late
            What may arrive.
        """
        made = cls.__new__(cls)
        made._set(bound, late)
        return made

    def _set(self, bound: Expression | None, late: Sequence[Late]) -> None:
        self._bound = bound
        self._late = late
        self._latest: tuple[tuple[Expression, ...], Expression | None] = (), None

    def __bool__(self) -> bool:
        """Whether there is any, or may be."""
        return self._bound is not None or bool(self._late)

    def __repr__(self) -> str:
        return repr(self.now())

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves that are asked, or may be."""
        asked = [] if self._bound is None else leaves_of(self._bound)
        if not self._late:
            return asked
        later = [leaf for each in self._late for leaf in each.leaves]
        return list({leaf.index: leaf for leaf in (*asked, *later)}.values())

    @property
    def settled(self) -> Expression | None:
        """The filter, where no runtime filter may join it; else None."""
        return None if self._late else self._bound

    def now(self) -> Expression | None:
        """Give the filter, and the runtime filters that have arrived, as one bound expression; None without any.

        It is the same object until another one arrives.
        """
        if not self._late:
            return self._bound
        bounds = [self._bound, *(each.bound() for each in self._late)]
        parts = tuple(part for part in bounds if part is not None)
        known, joined = self._latest
        if known != parts:
            joined = all_of(list(parts))
            self._latest = parts, joined
        return joined


def column_of(columns: Schema | Columns, runtime_filter: RuntimeFilter) -> Leaf:
    """Find the column of a runtime filter, which may arrive when it is too late for an error.

    Parameters
    ----------
    columns : Schema or Columns
        Where it is looked for.
    runtime_filter : RuntimeFilter
        Whether it has arrived or not.

    Returns
    -------
    Leaf

    Raises
    ------
    SchemaError
        When there is no such column, or it has not one simple value a row.
    """
    found = find(columns, runtime_filter.column)
    if found.lists or not found.is_leaf:
        raise SchemaError(f"a runtime filter is for a column of simple values, not {runtime_filter.column!r}")
    return found.leaf


def listed(runtime_filters: Any) -> list[RuntimeFilter]:
    """Check the ``runtime_filters`` argument: one of them, or an iterable of them."""
    if not runtime_filters:
        return []
    from ..runtime_filter import RuntimeFilter

    found = list(runtime_filters) if isinstance(runtime_filters, Iterable) else [runtime_filters]
    for each in found:
        if not isinstance(each, RuntimeFilter):
            raise TypeError(f"runtime_filters is a list of numparq.RuntimeFilter, not of {type(each).__name__}")
    return found
