"""Join keys as a column stores and compares them: literals, ranges, Bloom filter hashes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numparq.expr.runtime_filter import RuntimeFilter
from numparq.expr.sort_keys import key_domain
from numparq.format.physical_type import BYTE_ARRAY, INT32, INT64, INT96
from numparq.util.optional import import_pyarrow

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from numparq.format.arrow_type import ArrowType
    from numparq.format.schema import Leaf

__all__ = ["JoinKeyColumn", "cast_keys", "plain_keys", "range_filters", "value_filters"]

# So many values that are ranges each are asked for as such.
_MAX_RANGES = 100
_MICROSECOND = datetime.timedelta(microseconds=1)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JoinKeyColumn(NamedTuple):
    """What is known of the column that keys are for.

    Attributes
    ----------
    types : list of pyspark.sql.types.DataType
        The type that its values have to Spark, and that of a schema of the caller's.
    leaf : Leaf or None
        The column of files; None of a partition column.
    origin : ArrowType or None
        Its type by the files' Arrow schema.
    """

    types: list[DataType]
    leaf: Leaf | None = None
    origin: ArrowType | None = None

    @property
    def is_int96(self) -> bool:
        """Whether it has instants of which numparq knows no zone."""
        return self.leaf is not None and self.leaf.physical == INT96

    @property
    def kind(self) -> str:
        """What a filter takes its values for; nothing of a partition column, whose type is that of Spark's."""
        return "" if self.leaf is None else key_domain(self.leaf, self.origin).type.kind

    @property
    def unit(self) -> str:
        """The unit of moments and durations."""
        return "" if self.leaf is None else key_domain(self.leaf, self.origin).type.unit

    @property
    def has_nanoseconds(self) -> bool:
        """Whether there are moments within the microseconds that Spark knows, one of which they are to it."""
        return self.kind == "timestamp" and self.unit == "ns"


def cast_keys(keys: Any, key_column: JoinKeyColumn | None) -> Any:
    """Give keys as a filter compares a column with them.

    Parameters
    ----------
    keys : pyarrow.ChunkedArray
        As Spark gives them, without nulls.
    key_column : JoinKeyColumn or None
        The column; None where nothing is known of it.

    Returns
    -------
    pyarrow.ChunkedArray or None
        None where there can be no filter: a key is NaN, which is equal to itself to Spark.
    """
    pa = import_pyarrow()
    if pa.types.is_floating(keys.type) and pa.compute.any(pa.compute.is_nan(keys)).as_py():
        return None
    if pa.types.is_timestamp(keys.type) and keys.type.tz is not None:
        if key_column is None:
            return None
        keys = keys.cast(pa.timestamp("us", "UTC"))
        return keys.cast(pa.timestamp("us")) if key_column.is_int96 else keys
    if key_column is not None and key_column.has_nanoseconds and pa.types.is_date(keys.type):
        return keys.cast(pa.timestamp("us"))
    if key_column is not None and key_column.kind == "uuid":  # other texts have no partner
        is_one = [_UUID.fullmatch(text) is not None for text in keys.to_pylist()]
        return keys.filter(pa.array(is_one, pa.bool_()))
    return keys


def value_filters(column: Any, keys: Any, key_column: JoinKeyColumn | None) -> list[RuntimeFilter]:
    """Make filters of keys that are looked for one by one.

    Parameters
    ----------
    column : str or tuple of str
        The column.
    keys : pyarrow.ChunkedArray
        As `cast_keys` gives them.
    key_column : JoinKeyColumn or None
        The column.

    Returns
    -------
    list of RuntimeFilter
        Without any where a key is none that Python can have.
    """
    if key_column is not None and key_column.has_nanoseconds and len(keys):
        if len(keys) > _MAX_RANGES:
            return range_filters(column, keys, key_column)
        return _build_filter(
            lambda: RuntimeFilter(column, ranges=[_microsecond(key) for key in _literals(keys, key_column)])
        )
    return _build_filter(lambda: RuntimeFilter(column, values=_literals(keys, key_column)))


def range_filters(column: Any, keys: Any, key_column: JoinKeyColumn | None) -> list[RuntimeFilter]:
    """Make filters of the least key and the largest one, as `value_filters` does; there is one key at least."""
    bounds = import_pyarrow().compute.min_max(keys)

    def made() -> RuntimeFilter:
        low, high = _literals([bounds["min"], bounds["max"]], key_column)
        if key_column is not None and key_column.has_nanoseconds:
            high = _microsecond(high)[1]
        return RuntimeFilter(column, low=low, high=high)

    return _build_filter(made)


def _build_filter(make: Callable[[], RuntimeFilter]) -> list[RuntimeFilter]:
    try:
        return [make()]
    except (ValueError, OverflowError):  # a year after 9999, a text that is no UTF-8
        return []


def _literals(keys: Iterable[Any], key_column: JoinKeyColumn | None) -> list[Any]:
    """Give keys as the literals of a filter; ValueError or OverflowError for one that Python cannot have."""
    keys = list(keys)
    if key_column is not None and key_column.kind == "duration":  # a number to Spark
        return _durations([key.as_py() for key in keys], key_column.unit)
    if keys and import_pyarrow().types.is_time(keys[0].type):  # whose nanoseconds Python would leave out
        return _durations([key.value for key in keys], keys[0].type.unit)
    return [key.as_py() for key in keys]


def _durations(numbers: list[int], unit: str) -> list[Any]:
    made: Any = np.array(numbers, "i8").view(f"m8[{unit}]")
    if np.isnat(made).any():
        raise ValueError("the least number is no duration")
    return list(made)


def _microsecond(moment: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime]:
    return moment, moment + _MICROSECOND


# --- Bloom filters ----------------------------------------------------------------------------------------------------


def plain_keys(key_column: JoinKeyColumn, keys: Any) -> tuple[Any, ...] | None:
    """Give keys in the PLAIN encoding of a column, as `numparq.format.bloom_filter.hash_values` takes them.

    Parameters
    ----------
    key_column : JoinKeyColumn
        The column.
    keys : pyarrow.ChunkedArray
        As `cast_keys` gives them.

    Returns
    -------
    tuple of array or None
        None for partition columns, and for types that may be stored in several ways.
    """
    if key_column.leaf is None:
        return None
    kind = key_column.leaf.logical.kind if key_column.leaf.logical is not None else None
    rule = _PLAIN.get((key_column.leaf.physical, kind))
    whole = keys.combine_chunks()
    if rule is None or isinstance(whole, import_pyarrow().ChunkedArray):  # more texts than one array can have
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
    return (narrow[narrow == wide],)  # others have no partner


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
