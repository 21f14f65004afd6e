"""Buffer rows until they fill a row group, and sort them if asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd

from numparq.errors import SchemaError

_SAMPLE_ROWS = 1024
_MOST_NARROW_BYTES = 1 << 30  # half of what 32-bit offsets can address

SortKey = tuple[str, bool, bool]  # name, descending, nulls first


class RowGroupLimits:
    """Maximum rows and approximate maximum bytes, in memory, of a row group."""

    def __init__(self, rows: int, bytes: int) -> None:
        self.rows, self.bytes = rows, bytes

    def rows_for(self, num_rows: int, num_bytes: int) -> int:
        """Return the rows of a row group, given that ``num_rows`` rows have ``num_bytes`` bytes."""
        return max(min(self.rows, num_rows * self.bytes // max(num_bytes, 1)), 1)


class RowGroupBuffer:
    """Buffer of frames or Arrow tables of one type; ``holds_all`` keeps all rows until `flush`."""

    def __init__(self, limits: RowGroupLimits, holds_all: bool = False) -> None:
        self._limits = limits
        self._holds_all = holds_all
        self._pieces: list[Any] = []
        self._num_rows = self._num_bytes = 0

    def accepts(self, rows: Any) -> bool:
        """Whether rows can be concatenated to the buffered ones."""
        if not self._pieces:
            return True
        last = self._pieces[-1]
        return bool(_kind_of(rows).fits(last, rows)) if _kind_of(rows) is _kind_of(last) else False

    def add(self, rows: Any) -> Iterator[Any]:
        """Buffer rows that fit, and yield row groups that are full, as frames or Arrow tables like the rows."""
        if len(rows) or not self._pieces:
            self._put(rows)
        if not self._holds_all:
            yield from self._full()

    def _put(self, rows: Any) -> None:
        self._pieces.append(rows)
        self._num_rows += len(rows)
        self._num_bytes += _kind_of(rows).num_bytes(rows)

    def _full(self) -> Iterator[Any]:
        if self._num_rows < self._limits.rows and self._num_bytes < self._limits.bytes:
            return
        together, step = self._take_buffered()
        start = 0
        while len(together) - start >= step:
            yield _slice(together, start, step)
            start += step
        if start < len(together):
            self._put(_slice(together, start, len(together) - start))

    def flush(self, order: Any = None) -> Iterator[Any]:
        """Yield all buffered rows by row group; ``order`` is a function that returns the positions of sorted rows."""
        if not self._pieces:
            return
        together, step = self._take_buffered()
        if order is not None and is_arrow_table(together):
            together = _with_room(together)
        positions = None if order is None else order(together)
        for start in range(0, max(len(together), 1), step):
            if positions is None:
                yield _slice(together, start, step)
            else:
                yield together.take(positions[start : start + step])

    def _take_buffered(self) -> tuple[Any, int]:
        pieces, self._pieces = self._pieces, []
        step = self._limits.rows_for(self._num_rows, self._num_bytes)
        self._num_rows = self._num_bytes = 0
        return (pieces[0] if len(pieces) == 1 else _kind_of(pieces[0]).joined(pieces)), step


def is_arrow_table(rows: Any) -> bool:
    """Whether rows are Arrow data, and not a frame."""
    return type(rows).__module__.startswith("pyarrow")


def _with_room(table: Any) -> Any:
    """Cast text and binary of large tables to 64-bit offsets: `take` gathers a column into one array."""
    import pyarrow as pa

    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    if table.nbytes < _MOST_NARROW_BYTES:
        return table
    return table.cast(pa.schema([field.with_type(wide.get(field.type, field.type)) for field in table.schema]))


def _slice(rows: Any, start: int, count: int) -> Any:
    return rows.slice(start, count) if is_arrow_table(rows) else rows.iloc[start : start + count]


class _RowsAdapter(Protocol):
    """Operations on rows of one kind: frames or Arrow tables."""

    @staticmethod
    def fits(before: Any, rows: Any) -> bool: ...
    @staticmethod
    def num_bytes(rows: Any) -> int: ...
    @staticmethod
    def joined(pieces: list[Any]) -> Any: ...


class _ArrowRows:
    @staticmethod
    def fits(before: Any, rows: Any) -> bool:
        return bool(before.schema.equals(rows.schema))

    @staticmethod
    def num_bytes(rows: Any) -> int:
        return int(rows.nbytes)

    @staticmethod
    def joined(pieces: list[Any]) -> Any:
        import pyarrow as pa

        return pa.concat_tables(pieces)


class _FrameRows:
    @staticmethod
    def fits(before: Any, rows: Any) -> bool:
        if not (before.columns.equals(rows.columns) and list(before.dtypes) == list(rows.dtypes)):
            return False
        return _is_nameless_range(before.index) and _is_nameless_range(rows.index) and before.attrs == rows.attrs

    @staticmethod
    def num_bytes(rows: Any) -> int:
        count = int(rows.memory_usage(index=False, deep=False).sum())
        objects = rows.loc[:, list(map(pd.api.types.is_object_dtype, rows.dtypes))]
        if objects.shape[1] and len(rows):
            sample = objects.iloc[:: max(len(rows) // _SAMPLE_ROWS, 1)]
            deep = int(sample.memory_usage(index=False, deep=True).sum())
            count += deep * len(rows) // len(sample)
        return count

    @staticmethod
    def joined(pieces: list[Any]) -> Any:
        return pd.concat(pieces, ignore_index=True)


def _is_nameless_range(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.name is None


def _kind_of(rows: Any) -> type[_RowsAdapter]:
    return _ArrowRows if is_arrow_table(rows) else _FrameRows


def parse_sort_keys(given: Sequence[Any]) -> list[SortKey]:
    """Parse sort keys: names, or tuples of (name, descending, nulls first)."""
    keys = []
    for item in given:
        name, *rest = (item,) if isinstance(item, str) else item
        keys.append((str(name), bool(rest and rest[0]), bool(len(rest) > 1 and rest[1])))
    return keys


def sort_order(keys: list[SortKey], rows: Any) -> np.ndarray:
    """Return the positions of rows in sort order; the sort is stable, and NaN is above all numbers, as in Spark.

    Raises SchemaError if a column is missing or its values have no order.
    """
    import pyarrow as pa

    missing = [name for name, _, _ in keys if name not in (rows.column_names if is_arrow_table(rows) else rows.columns)]
    if missing:
        raise SchemaError("rows cannot be sorted by a missing column", column=missing[0])
    names = [name for name, _, _ in keys]
    table = rows if is_arrow_table(rows) else pa.Table.from_pandas(rows[names], preserve_index=False)
    order = None
    for key in reversed(keys):  # stable sorts, the least significant key first
        column = table[key[0]] if order is None else table[key[0]].take(order)
        placed = _sort_indices(column, key)
        order = placed if order is None else order.take(placed)
    return np.asarray(order)


def _sort_indices(column: Any, key: SortKey) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    name, descending, nulls_first = key
    sort = partial(
        pc.array_sort_indices,
        order="descending" if descending else "ascending",
        null_placement="at_start" if nulls_first else "at_end",
    )
    values = column.combine_chunks()
    try:
        order = sort(values)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaError(f"rows cannot be sorted by values of type {column.type}", column=name) from error
    return _with_nan_highest(values, np.asarray(order), key) if pa.types.is_floating(values.type) else order


def _with_nan_highest(values: Any, order: np.ndarray, key: SortKey) -> Any:
    """Move NaN above all numbers, as Spark does: Arrow sorts it next to the nulls, at either end."""
    import pyarrow as pa

    _, descending, nulls_first = key
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    is_nan = np.isnan(values.to_numpy(zero_copy_only=False)) & is_there
    if not is_nan.any():
        return pa.array(order)
    rank = np.where(is_nan, -1 if descending else 1, 0)
    rank[~is_there] = -2 if nulls_first else 2
    return pa.array(order[np.argsort(rank[order], kind="stable")])
