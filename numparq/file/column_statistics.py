"""Statistics of column chunks (parquet.thrift, Statistics) with bounds as the values that a read returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.column.projection import select_column
from numparq.errors import ParquetError, SchemaError
from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.thrift.layout import thrift_layout
from numparq.kernels.enums import BOOLEAN, DOUBLE, FLOAT, INT32, INT64, INT96
from numparq.kernels.tables import NARROW
from numparq.prune.statistics import ContainerStatistics, row_group_statistics, valid_counts
from numparq.to_pandas.columns import to_array
from numparq.to_pandas.dictionary import from_byte_strings
from numparq.types.choose import choose_output_type
from numparq.typing import ColumnName

_JULIAN_EPOCH = 2_440_588  # 1970-01-01 as a Julian day
_NS_OF_DAY = 86_400 * 10**9
# Within a day of the years 1 to 9999, a zone may move the local time out of them.
_FIRST_DATETIME, _LAST_DATETIME = np.datetime64("0001-01-02"), np.datetime64("9999-12-31")


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of a column in one row group; None stands for what the file does not say, or cannot be trusted.

    Attributes
    ----------
    min, max : object
        Bounds of the values, typed as `numparq.read_parquet` returns values: int, float, str, bytes, Timestamp,
        Timedelta, date, Decimal; `numpy.datetime64` in UTC for zoned timestamps outside of the years 1 to 9999. None as
        well if the type has no order, or all values are null.
    is_min_exact, is_max_exact : bool or None
        Whether the bound is a value of the column; else it may be truncated.
    null_count, nan_count, distinct_count : int or None
        Numbers of values.
    num_values : int or None
        Number of values, nulls included.
    """

    min: Any = None
    max: Any = None
    is_min_exact: bool | None = None
    is_max_exact: bool | None = None
    null_count: int | None = None
    nan_count: int | None = None
    distinct_count: int | None = None
    num_values: int | None = None


def column_statistics(file: OpenFile, column: ColumnName) -> list[ColumnStatistics]:
    """Return the trusted statistics of a column, one for each row group; SchemaError without such a leaf column."""
    leaf = _single_leaf(file, column)
    row_groups = range(file.num_row_groups)
    trusted = row_group_statistics(file.footer, leaf, row_groups)
    extra = _flags_and_distinct_counts(file, leaf)
    containers = [_without_moved_bounds(leaf, trusted.container(at)) for at in row_groups]
    lows = _typed_values(file, leaf, [each.min_value for each in containers])
    highs = _typed_values(file, leaf, [each.max_value for each in containers])
    return [
        ColumnStatistics(
            low,
            high,
            None if low is None else flags[0],
            None if high is None else flags[1],
            each.null_count,
            each.nan_count,
            flags[2],
            each.num_values,
        )
        for each, low, high, flags in zip(containers, lows, highs, extra, strict=True)
    ]


def _without_moved_bounds(leaf: Leaf, container: ContainerStatistics) -> ContainerStatistics:
    """Drop bounds of which reading moves a value: Spark's legacy calendar does not keep the order of all."""
    low = container.min_value
    if leaf.rebase is None or not _is_sound(low, leaf) or key_domain(leaf).key(low) >= leaf.rebase.end:
        return container
    return container._replace(min_value=None, max_value=None)


def _single_leaf(file: OpenFile, name: ColumnName) -> Leaf:
    column = select_column(file.schema, name)
    if isinstance(column, Leaf):
        return column
    if len(column.leaves) != 1:
        paths = ", ".join(repr(leaf.name) for leaf in column.leaves)
        raise SchemaError(f"column {name!r} has several leaf columns; name one of them: {paths}")
    return column.leaves[0]


def _flags_and_distinct_counts(file: OpenFile, leaf: Leaf) -> list[tuple[bool, bool, int | None]]:
    """Return for each row group whether the bounds are exact, and the distinct count."""
    names = ("is_min_value_exact", "is_max_value_exact", "distinct_count")
    layout = thrift_layout("ColumnChunk", "meta_data.num_values", "meta_data.statistics")
    count = file.num_row_groups
    try:
        words = file.footer.chunks.read_words(layout, range(count), [leaf.index] * count)
    except ParquetError:
        return [(False, False, None)] * count
    low, high, distinct = (words[:, layout.slot(f"meta_data.statistics.{name}")] for name in names)
    if leaf.physical == BYTE_ARRAY:  # writers that truncate without a flag exist
        low, high = low == 1, high == 1
    distinct = valid_counts(distinct, words[:, layout.slot("meta_data.num_values")])
    return [
        (bool(is_min), bool(is_max), None if number < 0 else number)
        for is_min, is_max, number in zip(low.tolist(), high.tolist(), distinct.tolist(), strict=True)
    ]


_WIDTHS = {BOOLEAN: 1, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}


def _is_sound(bound: bytes | None, leaf: Leaf) -> TypeGuard[bytes]:
    """Whether a bound has the length of a value of its type."""
    width = _WIDTHS.get(leaf.physical, leaf.type_length)
    return bound is not None and (width is None or len(bound) == width)


def _typed_values(file: OpenFile, leaf: Leaf, bounds: Sequence[bytes | None]) -> list[Any]:
    """Return PLAIN values as a read returns them; None for missing ones, NaN, and text that is not UTF-8."""
    sound = [bound for bound in bounds if _is_sound(bound, leaf)]
    typed = iter(_from_plain(file, leaf, sound))
    return [next(typed) if _is_sound(bound, leaf) else None for bound in bounds]


def _from_plain(file: OpenFile, leaf: Leaf, values: list[bytes]) -> list[Any]:
    if leaf.physical == INT96:
        return [_int96_timestamp(value) for value in values]
    hint = None if leaf.is_nested else file.arrow_schema.field_type(leaf.column)
    hint = None if hint is None else replace(hint, dictionary=None)
    target = choose_output_type(replace(leaf, max_definition_level=0), hint)
    if target.utf8:
        return [_text(value) for value in values]
    if target.storage == "binary":
        column = DecodedColumn(arrays=[from_byte_strings(values)])
    elif target.storage == "fixed" and target.dtype is not None:
        stored = np.dtype("<i4") if target.conversion == NARROW else target.dtype
        plain = np.frombuffer(bytearray(b"".join(values)), stored)
        column = DecodedColumn(plain.astype(target.dtype, copy=False))
    else:
        return [None] * len(values)
    items = _items(pd.Series(to_array(target, column, len(values)), copy=False))
    return [None if value is pd.NaT or value != value else value for value in items]


def _items(values: pd.Series) -> list[Any]:
    """Return the values; zoned timestamps of years that `datetime` lacks, which pandas cannot show, in UTC."""
    if not isinstance(values.dtype, pd.DatetimeTZDtype):
        return list(values.tolist())
    moments = values.dt.tz_convert(None).to_numpy()
    is_far = (moments < _FIRST_DATETIME) | (moments > _LAST_DATETIME)
    near = values.where(~is_far).tolist()
    return [moment if far else value for moment, far, value in zip(moments, is_far.tolist(), near, strict=True)]


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:  # cut within a character
        return None


def _int96_timestamp(value: bytes) -> pd.Timestamp | None:
    nanoseconds, day = (
        int.from_bytes(value[:8], "little", signed=True),
        int.from_bytes(value[8:], "little", signed=True),
    )
    moment = (day - _JULIAN_EPOCH) * _NS_OF_DAY + nanoseconds
    if abs(moment) < 1 << 63:
        return pd.Timestamp(moment)
    return pd.Timestamp(np.datetime64(moment // 1000, "us")) if abs(moment // 1000) < 1 << 63 else None
