"""Predicate of a scan: filters bound to a file, joined by runtime filters as they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from numparq.expr.bind import FilterSchema, bind
from numparq.expr.bound import filter_leaves
from numparq.expr.expression import Expression
from numparq.expr.filters import as_expression
from numparq.expr.normalize import all_of
from numparq.expr.runtime_filter import check_runtime_filters, resolve_runtime_filter_leaf
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.typing import Filters, RuntimeFilters

if TYPE_CHECKING:
    from numparq.expr.runtime_filter import RuntimeFilter


class LeafArrowTypes:
    """Arrow types of a file's leaf columns by ``ARROW:schema`` and, for time zones, pandas' metadata, on demand."""

    def __init__(self, file: OpenFile) -> None:
        self._schema = file.schema
        self._hints = file.arrow_schema
        self._pandas = file.pandas_metadata
        self._known: dict[int, ArrowType | None] = {}

    def get(self, index: int) -> ArrowType | None:
        """Return the Arrow type of a leaf by its ordinal; None for nested leaves and without a hint."""
        if index not in self._known:
            leaf = self._schema.leaf(index)
            self._known[index] = None if leaf.is_nested else self._hint(leaf)
        return self._known[index]

    def _hint(self, leaf: Leaf) -> ArrowType | None:
        """Return the type of a flat leaf; instants have the time zone that a frame shows."""
        hint = self._hints.field_type(leaf.column)
        is_instant = leaf.logical is not None and leaf.logical.kind == "TIMESTAMP" and leaf.logical.utc
        zone = self._pandas.timezone(leaf.name) if is_instant and self._pandas is not None else None
        return replace(hint or ArrowType("timestamp"), timezone=zone) if zone else hint


def filter_schema(file: OpenFile) -> FilterSchema:
    """Return the columns of a file as filters name them; shared by all files with the same footer."""
    if file.is_alias:
        return FilterSchema(file.schema, LeafArrowTypes(file))  # type: ignore[arg-type]
    cache, key = file.footer.cache, ("filter schema", file.calendar)
    known: FilterSchema | None = cache.get(key)
    return known or cache.get_or_make(key, lambda: FilterSchema(file.schema, LeafArrowTypes(file)))  # type: ignore[arg-type]


def bind_filters(file: OpenFile, filters: Filters) -> Expression:
    """Bind the `filters` argument (an expression or DNF tuples) to the columns of a file.

    Raises SchemaError if a column does not exist, or a literal is not comparable with its values.
    """
    return bind(as_expression(filters), filter_schema(file))


class RuntimePredicate(Protocol):
    """Predicate that may arrive while a file is read."""

    @property
    def leaves(self) -> Sequence[Leaf]:
        """Leaf columns that the predicate may read."""

    def bind(self) -> Expression | None:
        """Return the predicate bound to the file, always the same object; None until it has arrived."""


class _BoundRuntimeFilter:
    """Runtime filter on a column of a file."""

    def __init__(self, file: OpenFile, runtime_filter: RuntimeFilter) -> None:
        self.leaves = [resolve_runtime_filter_leaf(file.schema, runtime_filter)]
        self._filter = runtime_filter
        self._schema = file.schema
        self._origins: Any = LeafArrowTypes(file)

    def bind(self) -> Expression | None:
        return self._filter._bind(self._schema, self._origins)


class ScanPredicate:
    """Predicate of a scan: filters and runtime filters as in `numparq.read_parquet`.

    Attributes
    ----------
    leaves : list of Leaf
        Filter columns, those of runtime filters included.
    has_runtime_filters : bool
        Whether the predicate may change during the scan.
    """

    def __init__(self, file: OpenFile, filters: Filters, runtime_filters: RuntimeFilters = ()) -> None:
        bound = None if filters is None else bind_filters(file, filters)
        self._set(
            bound,
            [_BoundRuntimeFilter(file, each) for each in check_runtime_filters(runtime_filters)]
            if runtime_filters
            else [],
        )

    @classmethod
    def from_bound(cls, bound: Expression | None, late: Sequence[RuntimePredicate] = ()) -> ScanPredicate:
        """Build a predicate from an expression that is already bound, and from runtime predicates."""
        made = cls.__new__(cls)
        made._set(bound, late)
        return made

    def _set(self, bound: Expression | None, late: Sequence[RuntimePredicate]) -> None:
        self._bound = bound
        self._runtime = late
        self.has_runtime_filters = bool(late)
        static = [] if bound is None else filter_leaves(bound)
        later = [leaf for each in late for leaf in each.leaves] if late else []
        self.leaves = list({leaf.index: leaf for leaf in (*static, *later)}.values()) if later else static
        self._latest: tuple[tuple[Expression, ...], Expression | None] = (), None

    def __bool__(self) -> bool:
        """Whether rows are filtered, now or by a runtime filter to come."""
        return self._bound is not None or bool(self._runtime)

    def __repr__(self) -> str:
        return repr(self.current())

    def current(self) -> Expression | None:
        """Return the bound predicate with the runtime filters that have arrived; None if empty.

        Returns the same object until another runtime filter arrives.
        """
        if not self._runtime:
            return self._bound
        bounds = [self._bound, *(each.bind() for each in self._runtime)]
        parts = tuple(part for part in bounds if part is not None)
        known, joined = self._latest
        if known != parts:
            joined = all_of(list(parts))
            self._latest = parts, joined
        return joined
