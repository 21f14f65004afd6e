"""Rows through Spark's own range partitioning and sort: packed where they are read, written where they arrive."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from ..dataset.clustering import Clustering
from ..dataset.rewriting import Piece
from ..dataset.splits import SplitReader
from ..dataset.writing import SharedJob
from ..dataset.writing.task_writer import TaskMessage
from ..errors import SchemaError
from .descriptions import described
from .failures import failures_told
from .optimize_carrier import Carrier
from .optimize_tasks import RolledWriter
from .session import begin_task
from .tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Packing", "sort_and_write"]

_FOLDER = "folder"
_BATCH_ROWS = 1 << 16
_MESSAGE = pa.schema([("message", pa.binary())])

# Types that do not sort as they are carried -> what does.
_SORTABLE: dict[Any, Callable[[Any], Any]] = {
    pa.uint8(): lambda array: array.cast(pa.int16()),
    pa.uint16(): lambda array: array.cast(pa.int32()),
    pa.uint32(): lambda array: array.cast(pa.int64()),
    pa.uint64(): lambda array: _flipped(array),
    pa.float16(): lambda array: array.cast(pa.float32()),
}


def _flipped(array: Any) -> Any:
    """Give uint64 values as int64 ones in the same order."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    words = array.fill_null(0).to_numpy(zero_copy_only=False) ^ np.uint64(1 << 63)
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(words.view(np.int64), mask=mask)


class Packing:
    """Rows as they travel: the number of their folder, what they are sorted by, and all of their columns.

    Parameters
    ----------
    schema : pyarrow.Schema
        Their columns.
    folders : sequence of str
        The folders.
    sort_by : sequence of str
        Columns that they are sorted by: nulls first, NaN last.
    clustering : Clustering or None
        What they are sorted by instead, out of the columns `cluster_by`.
    cluster_by : sequence of str
        As above.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of what travels.
    order : list of str
        The columns of it that it is sorted by.

    Raises
    ------
    SchemaError
        When Spark cannot sort by a column.
    """

    def __init__(
        self, schema: pa.Schema, folders: Sequence[str], sort_by: Sequence[str] = (),
        clustering: Clustering | None = None, cluster_by: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._carrier = Carrier(schema)
        self.folders = list(folders)
        self._numbers = {folder: number for number, folder in enumerate(folders)}
        self._keys: list[tuple[str, Callable[[Any], Any]]] = []  # of columns that travel once more, to sort by
        self._clustering, self._cluster_by = clustering, tuple(cluster_by)
        self.order = [_FOLDER]
        fields = [(_FOLDER, pa.int32())]
        if clustering is not None:
            fields.append(("place", pa.int64()))
            self.order.append("place")
        for name in sort_by:
            self.order.append(self._key(name, fields))
        self.schema = pa.schema([*fields, *self._carrier.carried])

    def _key(self, name: str, fields: list[tuple[str, Any]]) -> str:
        place = self._carrier.schema.get_field_index(name)
        arrow_type = self._carrier.schema.field(place).type
        if t.is_nested(arrow_type) or t.is_decimal256(arrow_type) or t.is_null(arrow_type):
            raise SchemaError(f"rows cannot be sorted by values of the type {arrow_type}", column=name)
        make = _SORTABLE.get(arrow_type)
        if make is None:
            return self._carrier.carried.field(place).name
        self._keys.append((name, make))
        made = f"k{len(self._keys)}"
        fields.append((made, make(pa.array([], arrow_type)).type))
        return made

    def pack(self, table: pa.Table, folder: str) -> Iterator[pa.RecordBatch]:
        """Give rows of a folder as they travel."""
        columns: list[Any] = [pa.array(np.full(table.num_rows, self._numbers[folder], np.int32))]
        if self._clustering is not None:
            columns.append(pa.array(self._clustering.places([table.column(name) for name in self._cluster_by])))
        columns += [make(_values(table.column(name))) for name, make in self._keys]
        columns += self._carrier.pack(table)
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches(_BATCH_ROWS)

    def unpack(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """Give what has travelled, folder by folder; it comes in their order."""
        numbers = batch.column(0).to_numpy()
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        table = self._carrier.unpack(batch.columns[len(self.schema) - len(self._carrier.carried) :])
        start = 0
        for end in ends:
            if end > start:
                yield self.folders[int(numbers[start])], table.slice(start, end - start)
            start = end


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if t.is_dictionary(column.type) else column


class _Read:
    """What the tasks of the first stage do."""

    def __init__(self, reader: SplitReader, packing: Packing) -> None:
        self._reader, self._packing = reader, packing

    def __call__(self, number: int, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            for table in self._reader.tables(piece.split):
                yield from self._packing.pack(table, piece.folder)


class _Write:
    """What the tasks of the second stage do; each is a task of the write, by the number of its partition."""

    def __init__(self, job: SharedJob, packing: Packing, file_bytes: int) -> None:
        self._job, self._packing, self._file_bytes = job, packing, file_bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        begin_task()
        context = TaskContext.get()
        assert context is not None
        with self._job.task(f"{context.partitionId():07}") as writer:
            rolled = RolledWriter(writer, self._file_bytes)
            for batch in batches:
                for folder, table in self._packing.unpack(batch):
                    rolled.write(table, folder)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(writer.message)], pa.binary())], schema=_MESSAGE)


def sort_and_write(
    spark: SparkSession, job: SharedJob, reader: SplitReader, packing: Packing, tasks: Sequence[Sequence[Piece]],
    num_partitions: int, file_bytes: int, description: str,
) -> list[TaskMessage]:  # fmt: skip
    """Have Spark divide rows by ranges, sort them, and give them to tasks that write.

    Parameters
    ----------
    spark : SparkSession
        Where.
    job : SharedJob
        The write.
    reader : SplitReader
        Of the table.
    packing : Packing
        How rows travel, and what they are sorted by.
    tasks : sequence of sequence of Piece
        What is read, by tasks.
    num_partitions : int
        How many ranges there are to be.
    file_bytes : int
        As of `RolledWriter`.
    description : str
        What Spark says that runs.

    Returns
    -------
    list of TaskMessage
        One of each range.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    with described(spark, description), failures_told():
        rows = in_tasks(spark, tasks, _Read(reader, packing), from_arrow_schema(packing.schema))
        ranges = rows.repartitionByRange(num_partitions, *packing.order).sortWithinPartitions(*packing.order)
        found = ranges.mapInArrow(_Write(job, packing, file_bytes), "message binary").collect()
    return [pickle.loads(row["message"]) for row in found]
