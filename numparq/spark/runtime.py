"""What the small side of a join says of the large one's key, asked of Spark and handed to the readers of splits.

Small sets of keys travel as values, larger ones as a range and a Bloom filter. The rows that are read may be more than
those that find a partner, and are never less: what two values that are equal to Spark are to numparq is looked at
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..arrow import pyarrow
from ..errors import UnsupportedError
from .descriptions import described
from .equality import is_compared_alike
from .keys import KeyColumn, as_compared, bounded, hashed, listed
from .types import is_collated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..runtime_filter import RuntimeFilter

__all__ = ["runtime_filters"]

# Up to so many keys are looked for one by one, up to so many more are collected for a Bloom filter.
MAX_VALUES = 2_000
MAX_COLLECTED = 5_000_000


def runtime_filters(
    spark: SparkSession,
    given: Any,
    columns: Callable[[list[Any]], Mapping[Any, KeyColumn]] | None = None,
) -> tuple[RuntimeFilter, ...]:
    """Make runtime filters of the keys of DataFrames; each of these is evaluated once, here.

    Parameters
    ----------
    spark : SparkSession
        Where.
    given : mapping, RuntimeFilter, or iterable of these, or None
        A mapping has, for a column of the table, a DataFrame with one column (or one of that name), or a pair of a
        DataFrame and its column, or a RuntimeFilter.
    columns : callable, optional
        Gives what is known of a list of columns. Without it their types are taken to be the keys', too many keys to
        look for them one by one only give a range, and instants nothing: it depends on how files store them.

    Returns
    -------
    tuple of RuntimeFilter
        What is in none of them has no partner in an inner join, or a left semi-join, by ``=``: nulls are left out.
        Nothing where a key is NaN, which is equal to itself in Spark, where one is nothing that Python can have (a
        year after 9999), or where Spark would cast keys or values to compare them, such that others become equal: a
        decimal to a double, a date to an instant.

    Raises
    ------
    TypeError, ValueError
        When something else is given, or it is not known which column of a DataFrame has the keys.
    UnsupportedError
        For keys that are equal by a collation, of which numparq knows nothing.
    """
    from ..runtime_filter import RuntimeFilter

    if given is None:
        return ()
    if isinstance(given, RuntimeFilter):
        return (given,)
    if not isinstance(given, Mapping):
        return tuple(made for each in _several(given) for made in runtime_filters(spark, each, columns))
    made: list[RuntimeFilter] = []
    asked = [column for column, of in given.items() if not isinstance(of, RuntimeFilter)]
    known = {} if columns is None or not asked else columns(asked)
    for column, of in given.items():
        if isinstance(of, RuntimeFilter):
            if of.column != column:
                raise ValueError(f"the runtime filter for {column!r} is one on {of.column!r}")
            made.append(of)
            continue
        frame, name = _side(column, of)
        types = known[column].types if column in known else []
        if all(is_compared_alike(frame.schema[name].dataType, of) for of in types):
            with described(spark, f"numparq: keys of a join, for {column!r}"):
                made += _of_keys(column, frame, name, known.get(column))
    return tuple(made)


def _several(given: Any) -> Iterable[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or hasattr(given, "schema"):
        raise TypeError(f'runtime filters are {{"key": DataFrame}} or RuntimeFilters, not {type(given).__name__}')
    return given


def _side(column: Any, of: Any) -> tuple[DataFrame, str]:
    """Give a DataFrame, and the column of it that has the keys."""
    frame, name = of if isinstance(of, tuple) and len(of) == 2 else (of, None)
    if not hasattr(frame, "select") or not hasattr(frame, "columns"):
        raise TypeError(f"the runtime filter for {column!r} is a DataFrame of Spark, not {type(frame).__name__}")
    if name is None:
        name = frame.columns[0] if len(frame.columns) == 1 else column
    if name not in frame.columns:
        raise ValueError(f"which of {', '.join(frame.columns)} has the keys for {column!r}? Give (DataFrame, name)")
    return frame, name


def _of_keys(column: Any, frame: DataFrame, name: str, known: KeyColumn | None) -> list[RuntimeFilter]:
    chosen = frame.select(frame[_quoted(name)].alias("key"))
    chosen = chosen.filter(chosen["key"].isNotNull())  # dropna would drop NaN as well
    if is_collated(chosen.schema["key"].dataType):
        raise UnsupportedError(f"the keys for {column!r} are compared by a collation; a runtime filter knows none")
    found = _collected(chosen)
    if found is None:
        bounds = as_compared(_bounds(chosen), known)
        return bounded(column, bounds, known) if bounds is not None and len(bounds) == 2 else []
    keys = as_compared(found, known)
    if keys is None:
        return []
    if len(keys) <= MAX_VALUES:
        return listed(column, keys, known)
    return [*bounded(column, keys, known), *_hashed(column, keys, known)]


def _collected(chosen: DataFrame) -> Any:
    """Give the distinct keys; None where they are too many, or too large for the driver."""
    try:
        keys = chosen.distinct().limit(MAX_COLLECTED + 1).toArrow()["key"]
    except Exception as error:
        if "maxResultSize" not in str(error):
            raise
        return None
    return keys if len(keys) <= MAX_COLLECTED else None


def _bounds(chosen: DataFrame) -> Any:
    """Give the least key and the largest one."""
    from pyspark.sql import functions

    bounds = chosen.agg(functions.min("key"), functions.max("key")).toArrow()
    return pyarrow().chunked_array([chunk for column in bounds.columns for chunk in column.chunks])


def _hashed(column: Any, keys: Any, known: KeyColumn | None) -> list[RuntimeFilter]:
    """Make a Bloom filter, where keys have one form in files."""
    from ..bloom_filter import BloomFilter, hash_values
    from ..runtime_filter import RuntimeFilter

    plain = None if known is None else hashed(known, keys)
    if known is None or known.leaf is None or plain is None:
        return []
    return [RuntimeFilter(column, bloom_filter=BloomFilter.build(hash_values(known.leaf, *plain)))]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
