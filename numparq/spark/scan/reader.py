"""Read a split in a task as record batches of Spark's schema; picklable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numparq.errors import ParquetError
from numparq.spark.schema.user_schema import FieldFinder, find_fields
from numparq.spark.tasks import begin_task

from .arrow_batches import RecordBatchBuilder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split

__all__ = ["BatchReader"]


@dataclass(frozen=True)
class BatchReader:
    """Reads splits as record batches of Spark's schema; can be pickled, and is small.

    Attributes
    ----------
    reader : SplitReader
        Reads the splits.
    schema : pyspark.sql.types.StructType
        What Spark expects.
    rows_per_batch : int or None
        Rows of a batch at most.
    nanoseconds : {"exact", "floor"}
        As of `RecordBatchBuilder`.
    places : callable
        As of `RecordBatchBuilder`.
    """

    reader: SplitReader
    schema: StructType
    rows_per_batch: int | None = None
    nanoseconds: str = "exact"
    places: FieldFinder = find_fields

    def batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Read a split.

        Parameters
        ----------
        split : Split
            One of the table.

        Yields
        ------
        pyarrow.RecordBatch
            Of the schema that Spark wants, each of them; none where there are no rows.

        Raises
        ------
        ParquetError
            With file, row group, column and page in its message, as far as they are known.
        """
        begin_task()
        try:
            yield from self._batches(split)
        except ParquetError as error:
            if "file" not in error.where:  # of a column that several files have together, or that Spark cannot have
                self._find(error, split)
            raise

    def _batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        made = RecordBatchBuilder(self.schema, self.rows_per_batch, self.nanoseconds, self.places)
        if not self.reader.names:
            yield from made.from_row_count(self.reader.count(split))
            return
        for table in self.reader.tables(split):
            yield from made.of(table)

    def _find(self, error: ParquetError, split: Split) -> None:
        """Find out in which file of a split it is, by reading one after the other."""
        for part in split.parts:
            try:
                if len(split.parts) > 1:
                    for _ in self._batches(split._replace(parts=(part,), num_rows=None)):
                        pass
                    continue
            except ParquetError as found:
                error.where.update(found.where)
            error.where.setdefault("file", part.file.name)
            return
