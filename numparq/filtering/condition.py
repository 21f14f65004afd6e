"""What the rows of a read have to satisfy: a filter, and runtime filters as they arrive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..opened import OpenedFile
from ..predicate import as_expression
from ..predicate.bind import bind
from ..predicate.bound import leaves_of
from ..predicate.columns import find
from ..predicate.expression import Expression
from ..predicate.normal import all_of
from ..schema import Leaf

if TYPE_CHECKING:
    from ..runtime_filter import RuntimeFilter

__all__ = ["Condition", "bound_to"]


class _Origins:
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
    return bind(as_expression(filters), file.schema, _Origins(file))  # type: ignore[arg-type]


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
        self._file = file
        self._origins: Any = _Origins(file)
        self._bound = None if filters is None else bound_to(file, filters)
        self._runtime: list[RuntimeFilter] = _listed(runtime_filters)
        self._later = [_leaf_of(file, each) for each in self._runtime]
        self._latest: tuple[tuple[Expression, ...], Expression | None] = (), None

    def __bool__(self) -> bool:
        """Whether there is any, or may be."""
        return self._bound is not None or bool(self._runtime)

    def __repr__(self) -> str:
        return repr(self.now())

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves that are asked, or may be."""
        asked = [] if self._bound is None else leaves_of(self._bound)
        return list({leaf.index: leaf for leaf in (*asked, *self._later)}.values())

    def now(self) -> Expression | None:
        """Give the filter, and the runtime filters that have arrived, as one bound expression; None without any.

        It is the same object until another one arrives.
        """
        if not self._runtime:
            return self._bound
        bounds = [self._bound, *(each.bound(self._file.schema, self._origins) for each in self._runtime)]
        parts = tuple(part for part in bounds if part is not None)
        known, joined = self._latest
        if known != parts:
            joined = all_of(list(parts))
            self._latest = parts, joined
        return joined


def _leaf_of(file: OpenedFile, runtime_filter: RuntimeFilter) -> Leaf:
    """Find the column of a runtime filter, which may arrive when it is too late for an error."""
    found = find(file.schema, runtime_filter.column)
    if found.lists or not found.is_leaf:
        raise SchemaError(f"a runtime filter is for a column of simple values, not {runtime_filter.column!r}")
    return found.leaf


def _listed(runtime_filters: Any) -> list[RuntimeFilter]:
    if not runtime_filters:
        return []
    from ..runtime_filter import RuntimeFilter

    found = list(runtime_filters) if isinstance(runtime_filters, Iterable) else [runtime_filters]
    for each in found:
        if not isinstance(each, RuntimeFilter):
            raise TypeError(f"runtime_filters is a list of numparq.RuntimeFilter, not of {type(each).__name__}")
    return found
