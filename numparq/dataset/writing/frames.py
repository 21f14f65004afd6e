"""A frame on its way to many files: taken apart without its partition columns, some rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ...errors import SchemaError
from ...shred import TakenApart, take_apart
from ...shred.given import GivenSchema, given_schema
from .division import Division, PartitionColumns, Values

__all__ = ["DividedFrame", "Stretch", "divided_frame"]

# Rows are put in the order of their partitions so many bytes at a time, as wide as they are without what objects hold.
_BYTES_AT_ONCE = 1 << 28
_PARTITIONS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows of one partition.

    Parameters
    ----------
    values : tuple of (str or None)
        The partition.
    taken : TakenApart
        The rows.
    folder : str, optional
        The folder of the dataset, where that is not named by the values.
    """

    values: Values
    taken: TakenApart
    folder: str | None = None


class DividedFrame:
    """A frame divided into partitions.

    Parameters
    ----------
    rest : pandas.DataFrame
        Its columns but for those of the partitions.
    division : Division
        Which rows belong to which.
    index : bool or None
        As in `take_apart`.
    given : GivenSchema
        The types that columns are to have.
    keys : sequence of str
        The names of the partition columns.

    Attributes
    ----------
    whole : TakenApart
        All rows of all partitions, in the order of the frame: what types and metadata follow from.
    """

    def __init__(
        self, rest: pd.DataFrame, division: Division, index: bool | None, given: GivenSchema, keys: Sequence[str]
    ) -> None:
        self._rest, self._division, self._index, self._keys = rest, division, index, keys
        self.whole = _without_range(take_apart(rest, index, given, keys))
        # Some of the rows, looked at by themselves, could be of other types.
        self._given = GivenSchema({**given.columns, **self.whole.given().columns}, given.complete)

    def batches(self) -> Iterator[list[Stretch]]:
        """Give the rows, partition after partition, as many at once as memory is meant for.

        Yields
        ------
        list of Stretch
        """
        order, bounds, values = self._division.order, self._division.bounds.tolist(), self._division.values
        for first, last, start, stop in _cut(bounds, self._rows_at_once()):
            taken = self.whole.rows(start, stop) if order is None else self._taken(order[start:stop])
            yield [
                Stretch(values[number], taken.rows(max(bounds[number], start) - start,
                                                   min(bounds[number + 1], stop) - start))
                for number in range(first, last)
            ]  # fmt: skip

    def _rows_at_once(self) -> int:
        width = int(self._rest.memory_usage(deep=False).sum()) // max(len(self._rest), 1)
        return max(_BYTES_AT_ONCE // max(width, 1), 1)

    def _taken(self, rows: Any) -> TakenApart:
        """Take some rows apart, into the columns that all of them have."""
        some = self._rest.take(rows)
        if self._index is None and isinstance(self._rest.index, pd.RangeIndex):
            some.index = pd.RangeIndex(len(rows))
        taken = take_apart(some, self._index, self._given, self._keys)
        for column, known in zip(taken.columns, self.whole.columns, strict=True):
            if column.node != known.node:
                raise SchemaError("some rows of the column are of another type than all together",
                                  column=column.node.name)  # fmt: skip
        return replace(self.whole, columns=taken.columns, num_rows=len(rows))


def divided_frame(df: pd.DataFrame, partition_columns: PartitionColumns, index: bool | None,
                  schema: Any) -> DividedFrame:  # fmt: skip
    """Divide a frame by the values of its partition columns.

    Parameters
    ----------
    df : pandas.DataFrame
        The frame; it must not change while it is written.
    partition_columns : PartitionColumns
        By what.
    index : bool or None
        Whether the index is written. With None it is, but for a RangeIndex without a name: files hold rows from all
        over the frame, of which no range tells where they were.
    schema
        As in `numparq.to_parquet`; what it says of partition columns says what text their values become.
    """
    given = given_schema(schema)
    columns, rest = partition_columns.split(df)
    division = partition_columns.divide(columns, len(df), given)
    others = {name: column for name, column in given.columns.items() if name not in partition_columns.names}
    named_range = index is None and isinstance(df.index, pd.RangeIndex) and df.index.name is not None
    kept = True if named_range else index
    return DividedFrame(rest, division, kept, GivenSchema(others, given.complete), partition_columns.names)


def _without_range(taken: TakenApart) -> TakenApart:
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
