"""Join keys as a column stores and compares them: literals, ranges, Bloom filter hashes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numparq.expr.runtime_filter import RuntimeFilter
from numparq.expr.sort_keys import key_domain
from numparq.format.physical_type import BYTE_ARRAY, INT32, INT64
from numparq.util.optional import import_pyarrow

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from numparq.format.arrow_type import ArrowType
    from numparq.format.schema import Leaf

# Maximum number of ranges in a filter; beyond it, a single range.
_MAX_RANGES = 100
_MICROSECOND = datetime.timedelta(microseconds=1)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JoinKeyColumn(NamedTuple):
    """Column that join keys are compared with: Spark's type and that of the user's schema, and the leaf in the files.

    `leaf` is None for a partition column; `origin` is the leaf's type in the Arrow schema.
    """

    types: list[DataType]
    leaf: Leaf | None = None
    origin: ArrowType | None = None

    @property
    def kind(self) -> str:
        """Kind of the values in a filter; empty for a partition column."""
        return "" if self.leaf is None else key_domain(self.leaf, self.origin).type.kind

    @property
    def unit(self) -> str:
        """Unit of timestamps and durations."""
        return "" if self.leaf is None else key_domain(self.leaf, self.origin).type.unit

    @property
    def has_nanoseconds(self) -> bool:
        """Whether the column has nanosecond timestamps, many of which are one microsecond to Spark."""
        return self.kind == "timestamp" and self.unit == "ns"


def cast_keys(keys: Any, key_column: JoinKeyColumn | None) -> Any:
    """Cast Spark's non-null keys to what a filter compares the column with (`key_column` None: unknown).

    Returns None if a filter is impossible: a NaN key equals itself in Spark.
    """
    pa = import_pyarrow()
    if pa.types.is_floating(keys.type) and pa.compute.any(pa.compute.is_nan(keys)).as_py():
        return None
    if pa.types.is_timestamp(keys.type) and keys.type.tz is not None:
        if key_column is None:
            return None
        return keys.cast(pa.timestamp("us", "UTC"))
    if key_column is not None and key_column.has_nanoseconds and pa.types.is_date(keys.type):
        return keys.cast(pa.timestamp("us"))
    if key_column is not None and key_column.kind == "uuid":  # other text matches nothing
        is_one = [_UUID.fullmatch(text) is not None for text in keys.to_pylist()]
        return keys.filter(pa.array(is_one, pa.bool_()))
    return keys


def value_filters(column: Any, keys: Any, key_column: JoinKeyColumn | None) -> list[RuntimeFilter]:
    """Build a filter of the key values; empty if Python cannot represent a key."""
    if key_column is not None and key_column.has_nanoseconds and len(keys):
        if len(keys) > _MAX_RANGES:
            return range_filters(column, keys, key_column)
        return _build_filter(
            lambda: RuntimeFilter(column, ranges=[_microsecond(key) for key in _literals(keys, key_column)])
        )
    return _build_filter(lambda: RuntimeFilter(column, values=_literals(keys, key_column)))


def range_filters(column: Any, keys: Any, key_column: JoinKeyColumn | None) -> list[RuntimeFilter]:
    """Build a filter of the smallest and the largest key, of at least one."""
    bounds = import_pyarrow().compute.min_max(keys)

    def build() -> RuntimeFilter:
        low, high = _literals([bounds["min"], bounds["max"]], key_column)
        if key_column is not None and key_column.has_nanoseconds:
            high = _microsecond(high)[1]
        return RuntimeFilter(column, low=low, high=high)

    return _build_filter(build)


def _build_filter(make: Callable[[], RuntimeFilter]) -> list[RuntimeFilter]:
    try:
        return [make()]
    except (ValueError, OverflowError):  # a year after 9999, text that is not UTF-8
        return []


def _literals(keys: Iterable[Any], key_column: JoinKeyColumn | None) -> list[Any]:
    """Return keys as literals; ValueError or OverflowError if Python cannot represent one."""
    keys = list(keys)
    if key_column is not None and key_column.kind == "duration":  # an integer to Spark
        return _durations([key.as_py() for key in keys], key_column.unit)
    if keys and import_pyarrow().types.is_time(keys[0].type):  # Python's time would drop the nanoseconds
        return _durations([key.value for key in keys], keys[0].type.unit)
    return [key.as_py() for key in keys]


def _durations(numbers: list[int], unit: str) -> list[Any]:
    made: Any = np.array(numbers, "i8").view(f"m8[{unit}]")
    if np.isnat(made).any():
        raise ValueError("the smallest integer is not a duration")
    return list(made)


def _microsecond(moment: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime]:
    return moment, moment + _MICROSECOND


# --- Bloom filters ----------------------------------------------------------------------------------------------------


def plain_keys(key_column: JoinKeyColumn, keys: Any) -> tuple[Any, ...] | None:
    """Return keys as PLAIN values for `bloom_filter.hash_values`.

    None for partition columns, and for types with several stored forms.
    """
    if key_column.leaf is None:
        return None
    kind = key_column.leaf.logical.kind if key_column.leaf.logical is not None else None
    rule = _PLAIN.get((key_column.leaf.physical, kind))
    whole = keys.combine_chunks()
    if rule is None or isinstance(whole, import_pyarrow().ChunkedArray):  # too many bytes for one array
        return None
    return rule(key_column.leaf, whole)


def _integers(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = import_pyarrow()
    width = 4 if leaf.physical == INT32 else 8
    if leaf.logical is not None and (not leaf.logical.signed or leaf.logical.bit_width != width * 8):
        return None
    if not pa.types.is_signed_integer(keys.type):
        return None
    wide = keys.to_numpy().astype(np.int64)
    narrow = wide.astype(f"<i{width}")
    return (narrow[narrow == wide],)  # other values match nothing


def _days(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = import_pyarrow()
    return (keys.view(pa.int32()).to_numpy(),) if pa.types.is_date32(keys.type) else None


def _texts(leaf: Leaf, keys: Any) -> tuple[Any, ...] | None:
    pa = import_pyarrow()
    is_text = pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)
    is_bytes = pa.types.is_binary(keys.type) or pa.types.is_large_binary(keys.type)
    if not (is_bytes if leaf.logical is None else is_text):
        return None
    wide = keys.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    return np.frombuffer(wide.buffers()[2], np.uint8), offsets[:-1], offsets[1:]


_PLAIN: dict[tuple[int, str | None], Callable[[Leaf, Any], tuple[Any, ...] | None]] = {
    (INT32, None): _integers,
    (INT32, "INTEGER"): _integers,
    (INT32, "DATE"): _days,
    (INT64, None): _integers,
    (INT64, "INTEGER"): _integers,
    (BYTE_ARRAY, None): _texts,
    (BYTE_ARRAY, "STRING"): _texts,
}
