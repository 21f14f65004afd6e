"""Runtime filters: join keys that arrive while a scan runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.bloom_filter import BloomFilter
from numparq.format.schema import Leaf, Schema

from .bind import bind, bind_bloom_filter
from .expression import ColumnName, Constant, Expression, col, comparison
from .normalize import all_of, any_of
from .resolve import ColumnResolver, resolve_column

__all__ = ["RuntimeFilter", "check_runtime_filters", "resolve_runtime_filter_leaf"]


def resolve_runtime_filter_leaf(columns: Schema | ColumnResolver, runtime_filter: RuntimeFilter) -> Leaf:
    """Find the column of a runtime filter, which may arrive when it is too late for an error.

    Parameters
    ----------
    columns : Schema or ColumnResolver
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
    found = resolve_column(columns, runtime_filter.column)
    if found.lists or not found.is_leaf:
        raise SchemaError(f"a runtime filter is for a column of simple values, not {runtime_filter.column!r}")
    return found.leaf


def check_runtime_filters(runtime_filters: Any) -> list[RuntimeFilter]:
    """Check the ``runtime_filters`` argument: one of them, or an iterable of them."""
    if not runtime_filters:
        return []

    found = list(runtime_filters) if isinstance(runtime_filters, Iterable) else [runtime_filters]
    for each in found:
        if not isinstance(each, RuntimeFilter):
            raise TypeError(f"runtime_filters is a list of numparq.RuntimeFilter, not of {type(each).__name__}")
    return found


class RuntimeFilter:
    """What the values of a column have to be, known beforehand or handed over while a read runs.

    A row passes if its value is one of the values, lies in the range, and may be in the Bloom filter, of whatever is
    given. Nulls never pass. A Bloom filter lets pass some that are not in it, and all values that it cannot be asked
    for: NaNs, and those of INT96, BOOLEAN, BYTE_ARRAY decimal and narrow integer columns, where equal values may be
    stored in several ways.

    Parameters
    ----------
    column : str or tuple of str
        The column, as in `numparq.col`; not one of lists.
    values : iterable, optional
        Literals, as `isin` takes them; nulls among them count for nothing, and none at all lets no row pass.
    low, high : object, optional
        Literals: the least value that passes, and the largest one. None for no limit.
    ranges : iterable of (object, object), optional
        Pairs of literals: a value passes that is, for one of them, not less than the first and less than the second.
    bloom_filter : BloomFilter, optional
        Of hashes of values in the column's PLAIN form (`numparq.format.bloom_filter.hash_values`).

    Attributes
    ----------
    column : str or tuple of str
        As given.

    Raises
    ------
    TypeError
        When a name, a literal or the filter is of another type than that.

    Notes
    -----
    Without anything but a column, it is handed over later, once, by `arrive`, from whatever thread. Until then, a read
    goes on without it, and what has been read by then is not filtered again.

    It can be pickled: a copy knows what had arrived by then.

    Examples
    --------
    >>> import numparq
    >>> keys = numparq.RuntimeFilter("key")
    >>> keys.has_arrived
    False
    >>> keys.arrive(values=[3, 1, 7])
    >>> keys
    <RuntimeFilter col('key').isin([3, 1, 7])>
    """

    __slots__ = ("_bound", "_given", "_lock", "column")

    def __init__(
        self,
        column: ColumnName,
        values: Iterable[Any] | None = None,
        *,
        low: Any = None,
        high: Any = None,
        ranges: Iterable[tuple[Any, Any]] | None = None,
        bloom_filter: BloomFilter | None = None,
    ) -> None:
        self.column = col(column).name
        self._lock = Lock()
        self._given: tuple[Expression, BloomFilter | None] | None = None
        self._bound: tuple[Schema | ColumnResolver, ArrowType | None, Expression] | None = None
        if any(given is not None for given in (values, low, high, ranges, bloom_filter)):
            self.arrive(values, low=low, high=high, ranges=ranges, bloom_filter=bloom_filter)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.column, self._given

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.column, self._given = state
        self._lock = Lock()
        self._bound = None

    @property
    def has_arrived(self) -> bool:
        """Whether it is known what has to pass."""
        return self._given is not None

    def arrive(
        self,
        values: Iterable[Any] | None = None,
        *,
        low: Any = None,
        high: Any = None,
        ranges: Iterable[tuple[Any, Any]] | None = None,
        bloom_filter: BloomFilter | None = None,
    ) -> None:
        """Hand over what passes; reads that are under way apply it from now on.

        Parameters
        ----------
        values, low, high, ranges, bloom_filter
            As of the class; at least one of them.

        Raises
        ------
        ValueError
            When it has arrived before, or nothing is given.
        TypeError
            When something is of a wrong type.
        """
        if bloom_filter is not None and not isinstance(bloom_filter, BloomFilter):
            raise TypeError(
                f"bloom_filter is a numparq.format.bloom_filter.BloomFilter, not {type(bloom_filter).__name__}"
            )
        parts: list[Expression] = [] if values is None else [col(self.column).isin(values)]
        limits = ((">=", low), ("<=", high))
        parts += [comparison(self.column, op, limit) for op, limit in limits if limit is not None]
        if ranges is not None:
            column = col(self.column)
            parts.append(any_of([(column >= first) & (column < behind) for first, behind in ranges]))
        if not parts and bloom_filter is None:
            raise ValueError("a runtime filter that arrives has values, a range or a Bloom filter")
        with self._lock:
            if self._given is not None:
                raise ValueError(f"the runtime filter on {self.column!r} has arrived before")
            self._given = all_of(parts), bloom_filter

    def bound(
        self, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType] | None = None
    ) -> Expression | None:
        """Bind it to the columns of a file.

        Parameters
        ----------
        schema : Schema or ColumnResolver
            The file's, or that of many files.
        origins : mapping of int to ArrowType, optional
            As in `numparq.expr.bind.bind`; those of the schema's file.

        Returns
        -------
        Expression or None
            As `numparq.expr.bind.bind` makes them, with a MemberTest for a Bloom filter; for one schema and type
            the same one each time. None while it has not arrived.

        Raises
        ------
        SchemaError
            When the file has no such column, it is nested or a list, or a literal cannot be compared with its values.
        """
        if self._given is None:
            return None
        # Files that share a schema may have other units, or another time zone, by their ARROW:schema.
        origin = None if origins is None else origins.get(resolve_column(schema, self.column).leaf.index)
        with self._lock:
            kept = self._bound
            if kept is not None and kept[0] is schema and kept[1] == origin:
                return kept[2]
            expression, bloom_filter = self._given
            parts = [bind(expression, schema, origins)]
            if bloom_filter is not None:
                parts.append(bind_bloom_filter(self.column, bloom_filter, schema, origins))
            bound = all_of(parts)
            self._bound = schema, origin, bound
            return bound

    def __repr__(self) -> str:
        if self._given is None:
            return f"<RuntimeFilter on {self.column!r}, not yet there>"
        expression, bloom_filter = self._given
        asked = [] if expression == Constant(True) else [repr(expression)]
        asked += [] if bloom_filter is None else [f"{col(self.column)!r} in {bloom_filter!r}"]
        return f"<RuntimeFilter {' & '.join(asked)}>"
