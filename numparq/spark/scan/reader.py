"""Read a split in a task as record batches of Spark's schema; picklable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numparq.errors import ParquetError, SchemaError, UnsupportedError
from numparq.spark.schema.user_schema import FieldFinder, find_fields
from numparq.spark.tasks import begin_task

from .arrow_batches import RecordBatchBuilder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.reader import SplitReader
    from numparq.dataset.splits.split import Split


@dataclass(frozen=True)
class BatchReader:
    """Reader of splits as record batches of Spark's schema; small and picklable."""

    split_reader: SplitReader
    schema: StructType
    rows_per_batch: int | None = None
    nanoseconds: str = "exact"
    field_finder: FieldFinder = find_fields

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a split; none without rows.

        A ParquetError names file, row group, column and page as far as known.
        """
        begin_task()
        try:
            yield from self._read(split)
        except ParquetError as error:
            if "file" not in error.where:  # raised for several files together, or by a cast
                self._locate_error(error, split)
            raise

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        made = RecordBatchBuilder(self.schema, self.rows_per_batch, self.nanoseconds, self.field_finder)
        if not self.split_reader.names:
            yield from made.from_row_count(self.split_reader.count(split))
            return
        for table in self.split_reader.tables(split):
            try:
                yield from made.from_table(table)
            except ParquetError as error:
                if self.split_reader.has_keys:
                    _hide_values(error)
                raise

    def _locate_error(self, error: ParquetError, split: Split) -> None:
        """Add the file to an error, by reading the split's files one by one."""
        for part in split.parts:
            try:
                if len(split.parts) > 1:
                    for _ in self._read(split._replace(parts=(part,), num_rows=None)):
                        pass
                    continue
            except ParquetError as found:
                error.where.update(found.where)
            error.where.setdefault("file", part.file.name)
            return


def _hide_values(error: ParquetError) -> None:
    """Replace the message of a cast that may quote a value of an encrypted column, and drop its causes."""
    if isinstance(error, SchemaError):  # of types and nulls
        return
    advice = '; use nanoseconds="floor" to truncate timestamps' if isinstance(error, UnsupportedError) else ""
    error.message = (
        f"a value cannot be stored as Spark's type of its column{advice}; values of encrypted files are not shown"
    )
    error.args = (error.message,)
    error.__cause__ = error.__context__ = None
