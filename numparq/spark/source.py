"""``spark.read.format("numparq")``: numparq as a data source of Spark.

The only module here that imports pyspark as it is imported: Spark's classes are what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

    from .reader import BatchReader, SparkTable
    from .request import ReadRequest

__all__ = ["NumparqDataSource", "NumparqReader"]


class NumparqDataSource(DataSource):
    """Parquet files as a table of Spark, read and written by numparq.

    Parameters
    ----------
    options : mapping of str to str
        Those of `numparq.spark.options.OPTIONS` for reading, those of `numparq.spark.writer` for writing.

    Notes
    -----
    The files are listed, and their footers read, once for each ``load``: when it is called, or, with a schema of the
    caller's, when the first query of it runs. Whatever is done with the DataFrame then, it stands for those
    files. Filters of queries are not taken over from Spark, which mixes up those of different queries of one
    DataFrame: the option ``filter`` has them.
    """

    allows_pushdown = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._table: SparkTable | None = None

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "numparq"

    def schema(self) -> StructType:
        """Plan the read; give the columns that it has."""
        self._table = self._planned(None)
        return self._table.batches.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Give what reads the splits.

        Parameters
        ----------
        schema : StructType
            What Spark expects: that of `schema`, or the caller's.
        """
        return NumparqReader(self._table_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Give what writes rows.

        Parameters
        ----------
        schema : StructType
            Of the rows.
        overwrite : bool
            Whether they replace what is there.
        """
        from .writer import make_writer

        return make_writer(dict(self.options), schema, overwrite)

    def _table_of(self, schema: StructType) -> SparkTable:
        """Give the table, planned before unless the schema is the caller's."""
        if self._table is None or self._table.batches.schema != schema:
            return self._planned(schema)
        return self._table

    def _planned(self, schema: StructType | None) -> SparkTable:
        from .options import planned_by
        from .reader import SparkTable

        self._request()  # which fails where the options alone are wrong
        return planned_by(self.options, lambda request: SparkTable.of(request, schema))

    def _request(self) -> ReadRequest:
        from .options import request_of

        request = request_of(self.options)
        if request.pushdown and not self.allows_pushdown:
            raise ValueError(
                "the option 'pushdown' needs numparq.spark.register(spark, pushdown=True), which finds out whether "
                "this version of Spark tells the filters of one query from those of another"
            )
        return request


class _SplitPartition(InputPartition):
    """A split, as Spark's partition of the input."""


class NumparqReader(DataSourceReader):
    """Reads the splits of a table for Spark.

    Parameters
    ----------
    table : SparkTable
        The table; the splits go into the partitions, and the rest to each task.
    """

    def __init__(self, table: SparkTable) -> None:
        self._splits = table.splits
        self._batches = table.batches

    def __getstate__(self) -> BatchReader:
        return self._batches

    def __setstate__(self, state: BatchReader) -> None:
        self._splits, self._batches = [], state

    def partitions(self) -> list[InputPartition]:
        """Give a partition for each split."""
        return [_SplitPartition(split) for split in self._splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a split as record batches; Spark makes one partition, of nothing, where there are no splits."""
        if partition.value is not None:
            yield from self._batches.batches(partition.value)
