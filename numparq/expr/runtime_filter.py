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
from .column import col, comparison
from .expression import ColumnName, Constant, Expression
from .normalize import all_of, any_of
from .resolve import ColumnResolver, resolve_column


def resolve_runtime_filter_leaf(columns: Schema | ColumnResolver, runtime_filter: RuntimeFilter) -> Leaf:
    """Return the leaf of a runtime filter's column, checked before it arrives: later is too late for an error.

    Raises SchemaError for an unknown column, or one without a single simple value a row.
    """
    found = resolve_column(columns, runtime_filter.column)
    if found.list_depth or not found.is_leaf:
        raise SchemaError(f"a runtime filter needs a column of simple values; {runtime_filter.column!r} is nested")
    return found.leaf


def check_runtime_filters(runtime_filters: Any) -> list[RuntimeFilter]:
    """Return the `runtime_filters` argument, one filter or an iterable of them, as a list."""
    if not runtime_filters:
        return []

    found = list(runtime_filters) if isinstance(runtime_filters, Iterable) else [runtime_filters]
    for each in found:
        if not isinstance(each, RuntimeFilter):
            raise TypeError(f"runtime_filters must be a list of numparq.RuntimeFilter, not of {type(each).__name__}")
    return found


class RuntimeFilter:
    """Values that a column must have, given at once or while a read runs.

    A row passes if its value is one of `values`, lies in the range and may be in the Bloom filter, as far as these are
    given. Nulls never pass. A Bloom filter passes some values that are not in it. It passes all NaNs, and all values of
    INT96, BOOLEAN, BYTE_ARRAY decimal and narrow integer columns and those in Spark's legacy calendar, where equal
    values may be stored differently.

    Parameters
    ----------
    column : str or tuple of str
        The column, as in `numparq.col`; not in a list.
    values : iterable, optional
        Literals, as for `isin`. Nulls among them are ignored; an empty iterable passes no row.
    low, high : object, optional
        Smallest and largest value that pass. None: no limit.
    ranges : iterable of (object, object), optional
        Half-open ranges, of which a value must lie in one: first value included, second one excluded.
    bloom_filter : BloomFilter, optional
        Built from hashes of PLAIN values (`numparq.format.bloom_filter.hash_values`).

    Attributes
    ----------
    column : str or tuple of str
        As given.

    Raises
    ------
    TypeError
        If a name, a literal or the Bloom filter has a wrong type.

    Notes
    -----
    A filter with only a column is set later, once, by `arrive`, from any thread. Reads do not wait for it, and do not
    filter again the rows that they read before.

    Filters can be pickled; a copy keeps what had arrived by then.

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
        values: Iterable[object] | None = None,
        *,
        low: object = None,
        high: object = None,
        ranges: Iterable[tuple[object, object]] | None = None,
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
        """Whether the values are known."""
        return self._given is not None

    @property
    def condition(self) -> Expression | None:
        """Condition that rows have to satisfy, without the Bloom filter; None before the filter has arrived."""
        return None if self._given is None else self._given[0]

    def arrive(
        self,
        values: Iterable[object] | None = None,
        *,
        low: object = None,
        high: object = None,
        ranges: Iterable[tuple[object, object]] | None = None,
        bloom_filter: BloomFilter | None = None,
    ) -> None:
        """Set the values that pass; running reads apply them from now on.

        Parameters
        ----------
        values, low, high, ranges, bloom_filter
            As for the class; at least one of them.

        Raises
        ------
        ValueError
            If the filter has arrived before, or nothing is given.
        TypeError
            If something has a wrong type.
        """
        if bloom_filter is not None and not isinstance(bloom_filter, BloomFilter):
            raise TypeError(
                f"bloom_filter must be a numparq.format.bloom_filter.BloomFilter, not {type(bloom_filter).__name__}"
            )
        parts: list[Expression] = [] if values is None else [col(self.column).isin(values)]
        limits = ((">=", low), ("<=", high))
        parts += [comparison(self.column, op, limit) for op, limit in limits if limit is not None]
        if ranges is not None:
            column = col(self.column)
            parts.append(any_of([(column >= first) & (column < behind) for first, behind in ranges]))
        if not parts and bloom_filter is None:
            raise ValueError("arrive() needs values, low, high, ranges or bloom_filter")
        with self._lock:
            if self._given is not None:
                raise ValueError(f"the runtime filter on {self.column!r} has already arrived")
            self._given = all_of(parts), bloom_filter

    def _bind(
        self, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType] | None = None
    ) -> Expression | None:
        """Bind the filter to the columns of a file.

        Parameters
        ----------
        schema : Schema or ColumnResolver
            Schema of the file, or of many files.
        origins : mapping of int to ArrowType, optional
            Types by the file's ``ARROW:schema``, by ordinals of leaves.

        Returns
        -------
        Expression or None
            The bound expression, cached for the latest schema and type. None before the filter has arrived.

        Raises
        ------
        SchemaError
            If there is no such column, it is nested or a list, or a literal cannot be compared with its values.
        """
        if self._given is None:
            return None
        # Files with the same schema may differ in units or time zone by their ARROW:schema.
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
            return f"<RuntimeFilter on {self.column!r}, not yet arrived>"
        expression, bloom_filter = self._given
        asked = [] if expression == Constant(True) else [repr(expression)]
        asked += [] if bloom_filter is None else [f"{col(self.column)!r} in {bloom_filter!r}"]
        return f"<RuntimeFilter {' & '.join(asked)}>"
