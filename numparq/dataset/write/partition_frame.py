"""Partition a frame: rows grouped by partition values and shredded in batches."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from numparq.dataset.partitions.partitioning import format_hive_path
from numparq.dataset.partitions.text import check_partition_column, format_partition_values
from numparq.errors import SchemaError, error_context
from numparq.file.append import Metadata, adopt_columns
from numparq.file.fit_frame import fit_frame, fit_where_exact, frame_schema
from numparq.from_pandas.arrow_stream import arrow_key_values, arrow_to_frame, without_views
from numparq.from_pandas.frame import ShreddedFrame, check_frame, shred_column, shred_frame
from numparq.from_pandas.labels import unique_names
from numparq.from_pandas.user_schema import UserColumn, UserSchema, parse_schema
from numparq.util.arguments import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

PartitionValues = tuple[str | None, ...]

# Limits of one batch of reordered rows: bytes, not counting the contents of objects, and partitions.
_BYTES_AT_ONCE = 1 << 28
_PARTITIONS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class PartitionGrouping:
    """Rows of a frame, grouped by partition.

    Attributes
    ----------
    order : int64 or None
        Positions of all rows, partition by partition, in frame order within each; None if rows are in that order.
    bounds : int64, (partitions + 1,)
        Start of each partition in `order`, and the end of the last.
    values : list of tuple of (str or None)
        Value texts of each partition, by column.
    """

    order: np.ndarray | None
    bounds: np.ndarray
    values: list[PartitionValues]


class FramePartitioner:
    """Divides frames by their partition columns, given by label or by name in files.

    Attributes
    ----------
    names : tuple of str
        Names in directory names; known after the first frame.
    kinds : dict of str to str
        Arrow kinds of the values, where there were any.
    """

    def __init__(self, wanted: Sequence[Any]) -> None:
        if len(set(wanted)) < len(wanted):
            twice = next(name for name in wanted if list(wanted).count(name) > 1)
            raise SchemaError("a partition column is named twice", column=str(twice))
        self._wanted = list(wanted)
        self.kinds: dict[str, str] = {}
        self.names: tuple[str, ...] = ()

    def folder(self, values: Sequence[str | None]) -> str:
        """Return the directory of partition values, such as ``year=2024/month=1``."""
        return format_hive_path(self.names, values)

    def split(self, df: pd.DataFrame) -> tuple[list[pd.Series], pd.DataFrame]:
        """Return the partition columns of a frame, and the frame without them; nothing is copied."""
        names = unique_names(list(df.columns))
        places = [_label_position(df, names, wanted) for wanted in self._wanted]
        if len(set(places)) < len(places):
            raise SchemaError("a partition column is named twice", column=names[places[0]])
        self.names = tuple(names[place] for place in places)
        check_columns_remain(self.names, names)
        return [df.iloc[:, place] for place in places], _without(df, places)

    def group(self, columns: Sequence[pd.Series], num_rows: int, given: UserSchema) -> PartitionGrouping:
        """Group rows by the partition columns that `split` returned; ``given`` are the schema's types."""
        partition = np.zeros(num_rows, np.int64)
        combinations = np.zeros((1 if num_rows or not columns else 0, 0), np.int64)
        texts = []
        for name, column in zip(self.names, columns, strict=True):
            with error_context(column=name):
                codes, found = self._coded(name, column, given.columns.get(name))
            texts.append([*found, None])  # indexed by the null code -1
            partition, combinations = _combined(partition, combinations, codes, len(found))
        values = [tuple(text[code] for text, code in zip(texts, row, strict=True)) for row in combinations.tolist()]
        return group_by_partition(partition, values)

    def _coded(self, name: str, column: pd.Series, given: UserColumn | None) -> tuple[np.ndarray, list[str | None]]:
        """Return the code of each row's value (-1 is null), and the texts of the distinct values."""
        if column.dtype == object:
            check_partition_column(
                shred_column(name, column, given)
            )  # 1 and True are equal, but cannot be in one column
        codes, distinct = _factorized(column)
        values = shred_column(name, distinct, given)
        kind = values.field.type.kind
        if kind != "null" and self.kinds.setdefault(name, kind) != kind:
            raise SchemaError(f"partition values have type {kind}, but {self.kinds[name]} in earlier frames")
        of_text, texts = pd.factorize(np.array(format_partition_values(values, len(distinct)), dtype=object))
        return np.append(of_text, -1)[codes], list(texts)  # a value whose text is None counts as null


def check_columns_remain(partition_cols: Collection[str], names: Sequence[str] | None) -> None:
    """Raise SchemaError if all of the known columns are partition columns."""
    if partition_cols and names is not None and set(partition_cols) >= set(names):
        raise SchemaError(f"all columns are partition columns: {', '.join(names)}; keep at least one for the files")


def group_by_partition(partition: np.ndarray, values: list[PartitionValues]) -> PartitionGrouping:
    """Group rows by the ordinal of their partition (int64); ``values`` are those of `PartitionGrouping`."""
    counts = np.bincount(partition, minlength=len(values))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if len(partition) and (np.diff(partition) < 0).any():
        small = partition.astype(np.uint16) if len(values) <= 1 << 16 else partition  # radix sort: linear time
        return PartitionGrouping(np.argsort(small, kind="stable"), bounds, values)
    return PartitionGrouping(None, bounds, values)


def _label_position(df: pd.DataFrame, names: list[str], wanted: Any) -> int:
    places = [place for place, label in enumerate(df.columns) if _same(label, wanted)]
    if not places:
        places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        raise SchemaError("the frame has several columns with this label", column=str(wanted))
    advice = ", but an index level of this name; reset_index makes it a column" if wanted in df.index.names else ""
    hint = advice or did_you_mean(wanted, names)
    raise SchemaError(f"the frame has no such column to partition by{hint}", column=str(wanted))


def _same(label: Any, wanted: Any) -> bool:
    return type(label) is type(wanted) and bool(label == wanted)


def _without(df: pd.DataFrame, places: list[int]) -> pd.DataFrame:
    """Drop columns by position, since labels may repeat, and by `del`, which copies nothing."""
    rest, labels = df.copy(deep=False), df.columns
    rest.columns = range(df.shape[1])
    for place in places:
        del rest[place]
    rest.columns = labels.delete(places)
    return rest


def _factorized(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """Return the code of each value (-1 is null) and the distinct values, both in order of appearance."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f":  # by bits: 0.0 and -0.0 are equal, but have different texts
        values = column.to_numpy()
        codes, bits = pd.factorize(np.ascontiguousarray(values).view(f"i{dtype.itemsize}"))
        distinct = bits.view(dtype)
        return np.where(np.isnan(values), -1, codes), pd.Series(distinct)
    codes, found = pd.factorize(column.array)
    return codes.astype(np.int64, copy=False), pd.Series(found, dtype=dtype)


def _combined(
    partition: np.ndarray, combinations: np.ndarray, codes: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divide partitions by one more column; renumber them in order of appearance."""
    # Both factors are at most about the number of rows, so the product fits int64.
    joint, found = pd.factorize(partition * (count + 1) + (codes + 1))
    before, code = np.divmod(np.asarray(found, np.int64), count + 1)
    return joint, np.concatenate([combinations[before], code[:, None] - 1], axis=1)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Rows of one partition; ``folder`` is their directory if it does not follow from the values."""

    values: PartitionValues
    shredded: ShreddedFrame
    folder: str | None = None


class PartitionedFrame:
    """A frame divided into partitions; ``rest`` is the frame without its partition columns.

    Attributes
    ----------
    whole : ShreddedFrame
        All rows in frame order; types and metadata of all files follow from it.
    """

    def __init__(
        self,
        rest: pd.DataFrame,
        division: PartitionGrouping,
        index: bool | None,
        given: UserSchema,
        keys: Sequence[str],
    ) -> None:
        self._rest, self._division, self._index, self._keys = rest, division, index, keys
        self.whole = _without_range(shred_frame(rest, index, given, keys))
        # A subset of the rows could infer other types than the whole frame.
        self._given = UserSchema({**given.columns, **self.whole.inferred_schema().columns}, given.is_complete)
        self._known = frame_schema(self.whole)

    @property
    def partitions(self) -> list[PartitionValues]:
        """The partitions that get rows."""
        return self._division.values

    def fit_where_exact(self, columns: Sequence[UserColumn], metadata: Metadata) -> None:
        """Cast columns to the types of an existing file where these hold all values, with its pandas metadata."""
        before, self.whole = self.whole.columns, fit_where_exact(self.whole, columns)
        changed = {new.node.name for old, new in zip(before, self.whole.columns, strict=True) if new is not old}
        if changed:
            pandas = adopt_columns(self.whole.key_value_metadata, metadata, changed)
            self.whole = replace(self.whole, key_value_metadata=pandas)

    def fit(self, known: Sequence[UserColumn] | None) -> list[UserColumn]:
        """Fit the columns to known ones, if there are any; return them, with the frame's types where these are open."""
        self._known = frame_schema(self.whole)
        if known is not None:
            self.whole, self._known = fit_frame(self.whole, known)
        return self._known

    def batches(self) -> Iterator[list[PartitionRows]]:
        """Yield the rows partition by partition, in batches of limited memory."""
        order, bounds, values = self._division.order, self._division.bounds.tolist(), self._division.values
        for first, last, start, stop in _cut(bounds, self._rows_at_once()):
            taken = self.whole.slice(start, stop) if order is None else self._shred_rows(order[start:stop])
            yield [
                PartitionRows(
                    values[number],
                    taken.slice(max(bounds[number], start) - start, min(bounds[number + 1], stop) - start),
                )
                for number in range(first, last)
            ]

    def _rows_at_once(self) -> int:
        width = int(self._rest.memory_usage(deep=False).sum()) // max(len(self._rest), 1)
        return max(_BYTES_AT_ONCE // max(width, 1), 1)

    def _shred_rows(self, rows: Any) -> ShreddedFrame:
        """Shred some rows into the column types of the whole frame; raise SchemaError if they do not fit."""
        some = self._rest.take(rows)
        if self._index is None and isinstance(self._rest.index, pd.RangeIndex):
            some.index = pd.RangeIndex(len(rows))
        taken, known = fit_frame(shred_frame(some, self._index, self._given, self._keys), self._known)
        for column, whole in zip(known, self._known, strict=True):
            if column.node != whole.node:
                raise SchemaError(
                    "some rows of the column have another type than the whole column", column=column.node.name
                )
        return replace(self.whole, columns=taken.columns, arrays=taken.arrays, num_rows=len(rows), first_row=0)


def partition_frame(
    df: pd.DataFrame, partition_columns: FramePartitioner, index: bool | None, schema: Any
) -> PartitionedFrame:
    """Divide a frame by its partition columns; it must not change while it is written.

    With ``index=None``, a RangeIndex without a name is dropped: files hold scattered rows, which no range describes.
    """
    check_frame(df)
    given = parse_schema(schema)
    columns, rest = partition_columns.split(df)
    division = partition_columns.group(columns, len(df), given)
    others = {name: column for name, column in given.columns.items() if name not in partition_columns.names}
    named_range = index is None and isinstance(df.index, pd.RangeIndex) and df.index.name is not None
    kept = True if named_range else index
    return PartitionedFrame(rest, division, kept, UserSchema(others, given.is_complete), partition_columns.names)


def partition_table(table: pa.Table, partition_columns: FramePartitioner, schema: object) -> PartitionedFrame:
    """Divide an Arrow table by its partition columns, as `partition_frame` does a frame."""
    is_own, stored = schema is None, without_views(table)
    frame = partition_frame(arrow_to_frame(stored), partition_columns, False, stored.schema if is_own else schema)
    rest = table.select([name for name in table.column_names if name not in partition_columns.names])
    frame.whole = _without_range(arrow_key_values(frame.whole, rest.schema, is_own=is_own))
    return frame


def shred_without_rows(
    data: pd.DataFrame | pa.Table, keys: Sequence[str], index: bool | None, schema: object
) -> ShreddedFrame:
    """Shred the columns of a frame or Arrow table without rows, the partition columns `keys` last."""
    is_frame = isinstance(data, pd.DataFrame)
    names = unique_names(list(data.columns)) if is_frame else data.column_names
    order = sorted(range(len(names)), key=lambda place: keys.index(names[place]) if names[place] in keys else -1)
    if is_frame:
        return partition_frame(data.iloc[:0, order], FramePartitioner(()), index, schema).whole
    return partition_table(data.slice(0, 0).select(order), FramePartitioner(()), schema).whole


def _without_range(taken: ShreddedFrame) -> ShreddedFrame:
    """Remove a RangeIndex from the pandas metadata: each file holds only some of its rows."""
    if "pandas" not in taken.key_value_metadata:  # Arrow data
        return taken
    document = json.loads(taken.key_value_metadata["pandas"])
    kept = [level for level in document["index_columns"] if not isinstance(level, dict)]
    if kept == document["index_columns"]:
        return taken
    changed = json.dumps({**document, "index_columns": kept})
    return replace(taken, key_value_metadata={**taken.key_value_metadata, "pandas": changed})


def _cut(bounds: list[int], rows_at_once: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield batches: first partition, end partition, first row, end row (ends exclusive).

    A partition with more rows than fit a batch is divided.
    """
    number, start, count = 0, 0, len(bounds) - 1
    while number < count:
        stop = min(start + rows_at_once, bounds[-1])
        last = number + 1
        while last < count and bounds[last] < stop and last - number < _PARTITIONS_AT_ONCE:
            last += 1
        stop = min(stop, bounds[last])
        yield number, last, start, stop
        number, start = (last if stop == bounds[last] else last - 1), stop
