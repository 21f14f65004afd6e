"""Spark data source "numparq": `spark.read.format("numparq")`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

    from numparq.spark.scan.plan import SparkScan
    from numparq.spark.scan.reader import BatchReader
    from numparq.spark.scan.request import ReadRequest

__all__ = ["NumparqDataSource", "NumparqReader"]


class NumparqDataSource(DataSource):
    """Parquet files as a table of Spark, read and written by numparq.

    Parameters
    ----------
    options : mapping of str to str
        Those of `numparq.spark.data_source.read_options.READ_OPTIONS` for reading, those of
        `numparq.spark.data_source.writer` for writing.

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
        self._table: SparkScan | None = None

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "numparq"

    def schema(self) -> StructType:
        """Plan the read; give the columns that it has."""
        self._table = self._plan(None)
        return self._table.batches.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Give what reads the splits.

        Parameters
        ----------
        schema : StructType
            What Spark expects: that of `schema`, or the caller's.
        """
        return NumparqReader(self._scan_for(schema))

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

    def _scan_for(self, schema: StructType) -> SparkScan:
        """Give the table, planned before unless the schema is the caller's."""
        if self._table is None or self._table.batches.schema != schema:
            return self._plan(schema)
        return self._table

    def _plan(self, schema: StructType | None) -> SparkScan:
        from numparq.spark.scan.plan import SparkScan

        from .read_options import plan_with_options

        self._request()  # which fails where the options alone are wrong
        return plan_with_options(self.options, lambda request: SparkScan.of(request, schema))

    def _request(self) -> ReadRequest:
        from .read_options import parse_read_options

        request = parse_read_options(self.options)
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
    table : SparkScan
        The table; the splits go into the partitions, and the rest to each task.
    """

    def __init__(self, table: SparkScan) -> None:
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
