"""What the small side of a join says of the large one's key, asked of Spark and handed to the readers of splits.

Small sets of keys travel as values, larger ones as a range and a Bloom filter. The rows that are read may be more than
those that find a partner, and are never less: what two values that are equal to Spark are to numparq is looked at
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrow import pyarrow
from ..errors import SchemaError, UnsupportedError
from .descriptions import described
from .equality import is_compared_alike
from .types import is_collated, is_int96

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from ..runtime_filter import RuntimeFilter
    from ..schema import Leaf, Schema

__all__ = ["runtime_filters"]

# Up to so many keys are looked for one by one, up to so many more are collected for a Bloom filter.
MAX_VALUES = 2_000
MAX_COLLECTED = 5_000_000


def runtime_filters(
    spark: SparkSession,
    given: Any,
    schema: Callable[[], Schema] | None = None,
    types: Callable[[list[Any]], Mapping[Any, list[DataType]]] | None = None,
) -> tuple[RuntimeFilter, ...]:
    """Make runtime filters of the keys of DataFrames; each of these is evaluated once, here.

    Parameters
    ----------
    spark : SparkSession
        Where.
    given : mapping, RuntimeFilter, or iterable of these, or None
        A mapping has, for a column of the table, a DataFrame with one column (or one of that name), or a pair of a
        DataFrame and its column, or a RuntimeFilter.
    schema : callable, optional
        Gives the columns of the files. It is called where there are too many keys to look for them one by one: how they
        are hashed depends on how the files store them. Without it, those only give a range, and instants nothing:
        how they are compared depends on it, too.
    types : callable, optional
        Gives, of a list of columns, those of which Spark's types are known: those that are stored and those that a
        query sees. By default they are taken to be the keys'.

    Returns
    -------
    tuple of RuntimeFilter
        What is in none of them has no partner in an inner join, or a left semi-join, by ``=``: nulls are left out.
        Nothing where a key is NaN, which is equal to itself in Spark, or where Spark would cast keys or values to
        compare them, such that others become equal: a decimal to a double, a date to an instant.

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
        return tuple(made for each in _listed(given) for made in runtime_filters(spark, each, schema, types))
    made: list[RuntimeFilter] = []
    asked = [column for column, of in given.items() if not isinstance(of, RuntimeFilter)]
    known = {} if types is None or not asked else types(asked)
    for column, of in given.items():
        if isinstance(of, RuntimeFilter):
            if of.column != column:
                raise ValueError(f"the runtime filter for {column!r} is one on {of.column!r}")
            made.append(of)
            continue
        frame, name = _side(column, of)
        if all(is_compared_alike(frame.schema[name].dataType, of) for of in known.get(column, ())):
            with described(spark, f"numparq: keys of a join, for {column!r}"):
                made += _of_keys(column, frame, name, schema)
    return tuple(made)


def _listed(given: Any) -> Iterable[Any]:
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


def _of_keys(column: Any, frame: DataFrame, name: str, schema: Callable[[], Schema] | None) -> list[RuntimeFilter]:
    from pyspark.sql import functions

    from ..runtime_filter import RuntimeFilter

    chosen = frame.select(frame[_quoted(name)].alias("key"))
    chosen = chosen.filter(chosen["key"].isNotNull())  # dropna would drop NaN as well
    if is_collated(chosen.schema["key"].dataType):
        raise UnsupportedError(f"the keys for {column!r} are compared by a collation; a runtime filter knows none")
    keys = chosen.distinct().limit(MAX_COLLECTED + 1).toArrow()["key"]
    keys = _as_compared(column, keys, schema)
    if keys is None or _has_nan(keys):
        return []
    if len(keys) <= MAX_VALUES:
        return [RuntimeFilter(column, values=keys.to_pylist())]
    if len(keys) <= MAX_COLLECTED:
        compute = pyarrow().compute
        bounded = RuntimeFilter(column, low=compute.min(keys).as_py(), high=compute.max(keys).as_py())
        hashed = None if schema is None else _bloom_filter(column, keys, schema())
        return [bounded] if hashed is None else [bounded, hashed]
    bounds = chosen.agg(functions.min("key"), functions.max("key")).toArrow()
    low, high = (_as_compared(column, each, schema)[0].as_py() for each in bounds.columns)
    return [RuntimeFilter(column, low=low, high=high)] if high == high else []  # NaN is the largest


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _as_compared(column: Any, keys: Any, schema: Callable[[], Schema] | None) -> Any:
    """Give keys as the column is compared: instants without a zone for INT96; None where it is not known which."""
    pa = pyarrow()
    if not pa.types.is_timestamp(keys.type) or keys.type.tz is None:
        return keys
    if schema is None:
        return None
    return keys.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if is_int96(schema(), column) else keys


def _has_nan(keys: Any) -> bool:
    pa = pyarrow()
    return pa.types.is_floating(keys.type) and bool(pa.compute.any(pa.compute.is_nan(keys)).as_py())


# --- Bloom filters ----------------------------------------------------------------------------------------------------


def _bloom_filter(column: Any, keys: Any, schema: Schema) -> RuntimeFilter | None:
    """Make a Bloom filter of keys as a table stores them; None for types that may be stored in several ways."""
    from ..bloom_filter import BloomFilter, hash_values
    from ..predicate.columns import find
    from ..runtime_filter import RuntimeFilter

    try:
        leaf = find(schema, column).leaf
    except SchemaError:
        return None  # a partition column, say
    whole = keys.combine_chunks()
    plain = _plain(leaf, whole.chunk(0) if hasattr(whole, "chunk") else whole)
    if plain is None:
        return None
    hashes = hash_values(leaf, *plain)
    return RuntimeFilter(column, bloom_filter=BloomFilter.build(hashes))


def _plain(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    """Give keys in the PLAIN encoding of a column, as `hash_values` takes them."""
    kind = leaf.logical.kind if leaf.logical is not None else None
    rule = _PLAIN.get((leaf.physical, kind))
    return None if rule is None else rule(leaf, keys)


def _integers(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = pyarrow()
    width = 4 if leaf.physical == _INT32 else 8
    if leaf.logical is not None and (not leaf.logical.signed or leaf.logical.bit_width != width * 8):
        return None
    if not pa.types.is_signed_integer(keys.type):
        return None
    wide = keys.to_numpy().astype(np.int64)
    narrow = wide.astype(f"<i{width}")
    return (narrow[narrow == wide],)  # others have no partner


def _days(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = pyarrow()
    return (keys.view(pa.int32()).to_numpy(),) if pa.types.is_date32(keys.type) else None


def _texts(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = pyarrow()
    is_text = pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)
    is_bytes = pa.types.is_binary(keys.type) or pa.types.is_large_binary(keys.type)
    if not (is_bytes if leaf.logical is None else is_text):
        return None
    wide = keys.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    return np.frombuffer(wide.buffers()[2], np.uint8), offsets[:-1], offsets[1:]


_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_PLAIN: dict[tuple[int, str | None], Callable[[Leaf, Any], tuple[Any, ...] | None]] = {
    (_INT32, None): _integers, (_INT32, "INTEGER"): _integers, (_INT32, "DATE"): _days,
    (_INT64, None): _integers, (_INT64, "INTEGER"): _integers,
    (_BYTE_ARRAY, None): _texts, (_BYTE_ARRAY, "STRING"): _texts,
}  # fmt: skip
