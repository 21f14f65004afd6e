"""Filters that are known only while a read runs: what one side of a join says of the other one's key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from .arrow_schema import ArrowType
from .bloom_filter import BloomFilter
from .predicate.bind import bind, bind_member
from .predicate.columns import Columns, find
from .predicate.expression import Constant, Expression, Name, col, compared
from .predicate.normal import all_of, any_of
from .schema import Schema

__all__ = ["RuntimeFilter"]


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
        Of hashes of values in the column's PLAIN form (`numparq.bloom_filter.hash_values`).

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
        column: Name,
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
        self._bound: tuple[Schema | Columns, ArrowType | None, Expression] | None = None
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
            raise TypeError(f"bloom_filter is a numparq.bloom_filter.BloomFilter, not {type(bloom_filter).__name__}")
        parts: list[Expression] = [] if values is None else [col(self.column).isin(values)]
        limits = ((">=", low), ("<=", high))
        parts += [compared(self.column, op, limit) for op, limit in limits if limit is not None]
        if ranges is not None:
            column = col(self.column)
            parts.append(any_of([(column >= first) & (column < behind) for first, behind in ranges]))
        if not parts and bloom_filter is None:
            raise ValueError("a runtime filter that arrives has values, a range or a Bloom filter")
        with self._lock:
            if self._given is not None:
                raise ValueError(f"the runtime filter on {self.column!r} has arrived before")
            self._given = all_of(parts), bloom_filter

    def bound(self, schema: Schema | Columns, origins: Mapping[int, ArrowType] | None = None) -> Expression | None:
        """Bind it to the columns of a file.

        Parameters
        ----------
        schema : Schema or Columns
            The file's, or that of many files.
        origins : mapping of int to ArrowType, optional
            As in `numparq.predicate.bind.bind`; those of the schema's file.

        Returns
        -------
        Expression or None
            As `numparq.predicate.bind.bind` makes them, with a MemberTest for a Bloom filter; for one schema and type
            the same one each time. None while it has not arrived.

        Raises
        ------
        SchemaError
            When the file has no such column, it is nested or a list, or a literal cannot be compared with its values.
        """
        if self._given is None:
            return None
        # Files that share a schema may have other units, or another time zone, by their ARROW:schema.
        origin = None if origins is None else origins.get(find(schema, self.column).leaf.index)
        with self._lock:
            kept = self._bound
            if kept is not None and kept[0] is schema and kept[1] == origin:
                return kept[2]
            expression, bloom_filter = self._given
            parts = [bind(expression, schema, origins)]
            if bloom_filter is not None:
                parts.append(bind_member(self.column, bloom_filter, schema, origins))
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
