"""Partition a frame: rows grouped by partition values and shredded in batches."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.dataset.partitions.text import check_partition_column, format_partition_values
from numparq.errors import SchemaError, error_context
from numparq.from_pandas.frame import ShreddedFrame, field_of_column, shred_column, shred_frame
from numparq.from_pandas.labels import unique_names
from numparq.from_pandas.user_schema import UserColumn, UserSchema, parse_schema

__all__ = [
    "FramePartitioner",
    "PartitionGrouping",
    "PartitionRows",
    "PartitionedFrame",
    "check_columns_remain",
    "group_by_partition",
    "partition_frame",
]

PartitionValues = tuple[str | None, ...]

# Rows are put in the order of their partitions so many bytes at a time, as wide as they are without what objects hold.
_BYTES_AT_ONCE = 1 << 28
_PARTITIONS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class PartitionGrouping:
    """Which rows belong to which partition.

    Parameters
    ----------
    order : int64 or None
        The positions of all rows, partition after partition, in each as in the frame. None where they are so already.
    bounds : int64
        Where in `order` each partition begins, and, as the last one, where the last ends.
    values : list of tuple of (str or None)
        The text of the values of each partition, by column.
    """

    order: np.ndarray | None
    bounds: np.ndarray
    values: list[PartitionValues]


class FramePartitioner:
    """The columns of a frame by which it is divided.

    Parameters
    ----------
    wanted : sequence of labels
        Their labels in frames, or their names in files.

    Attributes
    ----------
    names : tuple of str
        What they are called in the names of folders; known once a frame was seen.
    kinds : dict of str to str
        Of what kinds of types their values are, as far as there were any.
    """

    def __init__(self, wanted: Sequence[Any]) -> None:
        if len(set(wanted)) < len(wanted):
            twice = next(name for name in wanted if list(wanted).count(name) > 1)
            raise SchemaError("a partition column is named twice", column=str(twice))
        self._wanted = list(wanted)
        self.kinds: dict[str, str] = {}
        self.names: tuple[str, ...] = ()

    def split(self, df: pd.DataFrame) -> tuple[list[pd.Series], pd.DataFrame]:
        """Give the partition columns of a frame, and the frame without them; nothing is copied."""
        names = unique_names(list(df.columns))
        places = [_place(df, names, wanted) for wanted in self._wanted]
        if len(set(places)) < len(places):
            raise SchemaError("a partition column is named twice", column=names[places[0]])
        self.names = tuple(names[place] for place in places)
        check_columns_remain(self.names, names)
        return [df.iloc[:, place] for place in places], _without(df, places)

    def divide(self, columns: Sequence[pd.Series], num_rows: int, given: UserSchema) -> PartitionGrouping:
        """Divide rows by the values of the partition columns.

        Parameters
        ----------
        columns : sequence of pandas.Series
            As `split` gives them.
        num_rows : int
            Rows of the frame.
        given : UserSchema
            The types that columns are to have.

        Returns
        -------
        PartitionGrouping
        """
        partition = np.zeros(num_rows, np.int64)
        combinations = np.zeros((1 if num_rows or not columns else 0, 0), np.int64)
        texts = []
        for name, column in zip(self.names, columns, strict=True):
            with error_context(column=name):
                codes, found = self._coded(name, column, given.columns.get(name))
            texts.append([*found, None])  # the code of nulls is -1
            partition, combinations = _combined(partition, combinations, codes, len(found))
        values = [tuple(text[code] for text, code in zip(texts, row, strict=True)) for row in combinations.tolist()]
        return group_by_partition(partition, values)

    def _coded(self, name: str, column: pd.Series, given: UserColumn | None) -> tuple[np.ndarray, list[str | None]]:
        """Give for each row which of some values it has, -1 for none, and the text of these."""
        if column.dtype == object:
            check_partition_column(
                shred_column(name, column, given)
            )  # 1 and True are equal, but no values of one column
        codes, distinct = _factorized(column)
        values = shred_column(name, distinct, given)
        kind = field_of_column(values).type.kind
        if kind != "null" and self.kinds.setdefault(name, kind) != kind:
            raise SchemaError(f"values are of the type {kind} here, and {self.kinds[name]} in the frames before")
        of_text, texts = pd.factorize(np.array(format_partition_values(values, len(distinct)), dtype=object))
        return np.append(of_text, -1)[codes], list(texts)  # what is written as a null is one, too


def check_columns_remain(partition_cols: Collection[str], names: Sequence[str] | None) -> None:
    """Raise SchemaError when files would be without columns, where these are known."""
    if partition_cols and names is not None and set(partition_cols) >= set(names):
        raise SchemaError(f"all columns are partition columns: {', '.join(names)}; none is left for the files")


def group_by_partition(partition: np.ndarray, values: list[PartitionValues]) -> PartitionGrouping:
    """Put rows in the order of their partitions.

    Parameters
    ----------
    partition : int64
        Of each row.
    values : list
        As in `PartitionGrouping`.
    """
    counts = np.bincount(partition, minlength=len(values))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if len(partition) and (np.diff(partition) < 0).any():
        small = partition.astype(np.uint16) if len(values) <= 1 << 16 else partition  # which sorts in linear time
        return PartitionGrouping(np.argsort(small, kind="stable"), bounds, values)
    return PartitionGrouping(None, bounds, values)


def _place(df: pd.DataFrame, names: list[str], wanted: Any) -> int:
    places = [place for place, label in enumerate(df.columns) if _same(label, wanted)]
    if not places:
        places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) == 1:
        return places[0]
    if places:
        raise SchemaError("the frame has several columns of this label", column=str(wanted))
    advice = ": it is of the index; reset_index makes a column of it" if wanted in df.index.names else ""
    raise SchemaError(f"the frame has no such column to partition by{advice}", column=str(wanted))


def _same(label: Any, wanted: Any) -> bool:
    return type(label) is type(wanted) and bool(label == wanted)


def _without(df: pd.DataFrame, places: list[int]) -> pd.DataFrame:
    """Leave columns out; by position, since labels may be there twice, and by `del`, which copies nothing."""
    rest, labels = df.copy(deep=False), df.columns
    rest.columns = range(df.shape[1])
    for place in places:
        del rest[place]
    rest.columns = labels.delete(places)
    return rest


def _factorized(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """Number the values of a column as they come, -1 for nulls, and give those that there are."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "f":  # 0.0 and -0.0 are equal, and not the same
        values = column.to_numpy()
        codes, bits = pd.factorize(np.ascontiguousarray(values).view(f"i{dtype.itemsize}"))
        distinct = bits.view(dtype)
        return np.where(np.isnan(values), -1, codes), pd.Series(distinct)
    codes, found = pd.factorize(column.array)
    return codes.astype(np.int64, copy=False), pd.Series(found, dtype=dtype)


def _combined(
    partition: np.ndarray, combinations: np.ndarray, codes: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divide partitions by one more column; they are numbered as they come."""
    # Both factors are at most the number of rows, so that the product fits.
    joint, found = pd.factorize(partition * (count + 1) + (codes + 1))
    before, code = np.divmod(np.asarray(found, np.int64), count + 1)
    return joint, np.concatenate([combinations[before], code[:, None] - 1], axis=1)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Rows of one partition.

    Parameters
    ----------
    values : tuple of (str or None)
        The partition.
    taken : ShreddedFrame
        The rows.
    folder : str, optional
        The folder of the dataset, where that is not named by the values.
    """

    values: PartitionValues
    taken: ShreddedFrame
    folder: str | None = None


class PartitionedFrame:
    """A frame divided into partitions.

    Parameters
    ----------
    rest : pandas.DataFrame
        Its columns but for those of the partitions.
    division : PartitionGrouping
        Which rows belong to which.
    index : bool or None
        As in `shred_frame`.
    given : UserSchema
        The types that columns are to have.
    keys : sequence of str
        The names of the partition columns.

    Attributes
    ----------
    whole : ShreddedFrame
        All rows of all partitions, in the order of the frame: what types and metadata follow from.
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
        # Some of the rows, looked at by themselves, could be of other types.
        self._given = UserSchema({**given.columns, **self.whole.given().columns}, given.complete)

    def batches(self) -> Iterator[list[PartitionRows]]:
        """Give the rows, partition after partition, as many at once as memory is meant for.

        Yields
        ------
        list of Stretch
        """
        order, bounds, values = self._division.order, self._division.bounds.tolist(), self._division.values
        for first, last, start, stop in _cut(bounds, self._rows_at_once()):
            taken = self.whole.rows(start, stop) if order is None else self._taken(order[start:stop])
            yield [
                PartitionRows(
                    values[number],
                    taken.rows(max(bounds[number], start) - start, min(bounds[number + 1], stop) - start),
                )
                for number in range(first, last)
            ]

    def _rows_at_once(self) -> int:
        width = int(self._rest.memory_usage(deep=False).sum()) // max(len(self._rest), 1)
        return max(_BYTES_AT_ONCE // max(width, 1), 1)

    def _taken(self, rows: Any) -> ShreddedFrame:
        """Take some rows apart, into the columns that all of them have."""
        some = self._rest.take(rows)
        if self._index is None and isinstance(self._rest.index, pd.RangeIndex):
            some.index = pd.RangeIndex(len(rows))
        taken = shred_frame(some, self._index, self._given, self._keys)
        for column, known in zip(taken.columns, self.whole.columns, strict=True):
            if column.node != known.node:
                raise SchemaError(
                    "some rows of the column are of another type than all together", column=column.node.name
                )
        return replace(self.whole, columns=taken.columns, num_rows=len(rows))


def partition_frame(
    df: pd.DataFrame, partition_columns: FramePartitioner, index: bool | None, schema: Any
) -> PartitionedFrame:
    """Divide a frame by the values of its partition columns.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame; it must not change while it is written.
    partition_columns : FramePartitioner
        By what.
    index : bool or None
        Whether the index is written. With None it is, but for a RangeIndex without a name: files hold rows from all
        over the frame, of which no range tells where they were.
    schema
        As in `numparq.to_parquet`; what it says of partition columns says what text their values become.
    """
    given = parse_schema(schema)
    columns, rest = partition_columns.split(df)
    division = partition_columns.divide(columns, len(df), given)
    others = {name: column for name, column in given.columns.items() if name not in partition_columns.names}
    named_range = index is None and isinstance(df.index, pd.RangeIndex) and df.index.name is not None
    kept = True if named_range else index
    return PartitionedFrame(rest, division, kept, UserSchema(others, given.complete), partition_columns.names)


def _without_range(taken: ShreddedFrame) -> ShreddedFrame:
    """Leave out what the metadata say of a range that is the index: each file has some of its rows only."""
    document = json.loads(taken.key_value_metadata["pandas"])
    kept = [level for level in document["index_columns"] if not isinstance(level, dict)]
    if kept == document["index_columns"]:
        return taken
    changed = json.dumps({**document, "index_columns": kept})
    return replace(taken, key_value_metadata={**taken.key_value_metadata, "pandas": changed})


def _cut(bounds: list[int], rows_at_once: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut partitions into batches: ordinals of the first and behind the last, and the rows that belong to it.

    A partition with more rows than are meant to be together is divided.
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
