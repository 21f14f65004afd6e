"""Build runtime filters from the keys of the small side of a join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numparq.errors import UnsupportedError
from numparq.spark.schema.comparison import compares_exactly, is_collated
from numparq.spark.tasks import describe_jobs
from numparq.util.optional import import_pyarrow

from .join_keys import JoinKeyColumn, cast_keys, plain_keys, range_filters, value_filters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from numparq.expr.runtime_filter import RuntimeFilter

# Maximum number of keys compared one by one, and of keys collected for a Bloom filter.
MAX_VALUES = 2_000
MAX_COLLECTED = 5_000_000


def build_runtime_filters(
    spark: SparkSession,
    given: Any,
    columns: Callable[[list[Any]], Mapping[Any, JoinKeyColumn]] | None = None,
) -> tuple[RuntimeFilter, ...]:
    """Build runtime filters from the keys of DataFrames, each evaluated once, on the driver; arguments as in `read`.

    Valid for inner and left semi joins by ``=``. `columns` describes the table's columns; filters are weaker without.
    """
    from numparq.expr.runtime_filter import RuntimeFilter

    if given is None:
        return ()
    if isinstance(given, RuntimeFilter):
        return (given,)
    if not isinstance(given, Mapping):
        return tuple(made for each in _check_iterable(given) for made in build_runtime_filters(spark, each, columns))
    made: list[RuntimeFilter] = []
    asked = [column for column, of in given.items() if not isinstance(of, RuntimeFilter)]
    known = {} if columns is None or not asked else columns(asked)
    for column, of in given.items():
        if isinstance(of, RuntimeFilter):
            if of.column != column:
                raise ValueError(f"the runtime filter for column {column!r} is on column {of.column!r}")
            made.append(of)
            continue
        frame, name = _key_side(column, of)
        types = known[column].types if column in known else []
        # No filter if Spark compares after a lossy cast (decimal to double, date to instant): more keys become equal.
        if all(compares_exactly(frame.schema[name].dataType, of) for of in types):
            with describe_jobs(spark, f"numparq: keys of a join, for {column!r}"):
                made += _filters_for_keys(column, frame, name, known.get(column))
    return tuple(made)


def _check_iterable(given: Any) -> Iterable[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or hasattr(given, "schema"):
        raise TypeError(f'runtime filters must be {{"key": DataFrame}} or RuntimeFilters, not {type(given).__name__}')
    return given


def _key_side(column: Any, of: Any) -> tuple[DataFrame, str]:
    """Return the DataFrame and its key column."""
    frame, name = of if isinstance(of, tuple) and len(of) == 2 else (of, None)
    if not hasattr(frame, "select") or not hasattr(frame, "columns"):
        raise TypeError(f"the runtime filter for {column!r} must be a Spark DataFrame, not {type(frame).__name__}")
    if name is None:
        name = frame.columns[0] if len(frame.columns) == 1 else column
    if name not in frame.columns:
        raise ValueError(
            f"the keys for {column!r} can be any of {', '.join(frame.columns)}; choose one with (DataFrame, name)"
        )
    return frame, name


def _filters_for_keys(
    column: Any, frame: DataFrame, name: str, key_column: JoinKeyColumn | None
) -> list[RuntimeFilter]:
    chosen = frame.select(frame[_quoted(name)].alias("key"))
    chosen = chosen.filter(chosen["key"].isNotNull())  # dropna would drop NaN as well
    if is_collated(chosen.schema["key"].dataType):
        raise UnsupportedError(f"the keys for {column!r} have a collation, which runtime filters do not support")
    found = _collect_keys(chosen)
    if found is None:
        bounds = cast_keys(_collect_bounds(chosen), key_column)
        return range_filters(column, bounds, key_column) if bounds is not None and len(bounds) == 2 else []
    keys = cast_keys(found, key_column)
    if keys is None:
        return []
    if len(keys) <= MAX_VALUES:
        return value_filters(column, keys, key_column)
    return [*range_filters(column, keys, key_column), *_bloom_filters(column, keys, key_column)]


def _collect_keys(chosen: DataFrame) -> Any:
    """Return the distinct keys; None if they are too many, or too large for the driver."""
    try:
        keys = chosen.distinct().limit(MAX_COLLECTED + 1).toArrow()["key"]
    except Exception as error:
        if "maxResultSize" not in str(error):
            raise
        return None
    return keys if len(keys) <= MAX_COLLECTED else None


def _collect_bounds(chosen: DataFrame) -> Any:
    """Return the smallest and the largest key."""
    from pyspark.sql import functions

    bounds = chosen.agg(functions.min("key"), functions.max("key")).toArrow()
    return import_pyarrow().chunked_array([chunk for column in bounds.columns for chunk in column.chunks])


def _bloom_filters(column: Any, keys: Any, key_column: JoinKeyColumn | None) -> list[RuntimeFilter]:
    """Build a Bloom filter, if keys have a single form in files."""
    from numparq.expr.runtime_filter import RuntimeFilter
    from numparq.format.bloom_filter import BloomFilter, hash_values

    plain = None if key_column is None else plain_keys(key_column, keys)
    if key_column is None or key_column.leaf is None or plain is None:
        return []
    return [RuntimeFilter(column, bloom_filter=BloomFilter.build(hash_values(key_column.leaf, *plain)))]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
