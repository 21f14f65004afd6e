"""Spark data source "numparq": `spark.read.format("numparq")`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from numparq.errors import UnsupportedError
from numparq.spark.worker_errors import sentence_first

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType

    from numparq.spark.scan.plan import SparkScan
    from numparq.spark.scan.reader import BatchReader
    from numparq.spark.scan.request import ReadRequest


class NumparqDataSource(DataSource):
    """Data source "numparq": Parquet files as a Spark table.

    Files are listed once for each ``load``: when it is called or, with the caller's schema, at its first query.
    """

    allows_pushdown = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._planned_scan: SparkScan | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "numparq"

    def schema(self) -> StructType:
        """Plan the read; return its schema."""
        with sentence_first():
            self._planned_scan = self._plan(None)
        return self._planned_scan.batch_reader.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the splits, for the inferred schema or the caller's."""
        with sentence_first():
            return NumparqReader(self._scan_for(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of rows of `schema`."""
        from .writer import make_writer

        with sentence_first():
            return make_writer(dict(self.options), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream of files with the caller's schema."""
        _check_streams()
        from .stream_reader import NumparqStreamReader

        return NumparqStreamReader(dict(self.options), schema, is_inferred=self._planned_scan is not None)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream of rows of `schema`."""
        with sentence_first():
            _check_streams()
            from .stream_writer import NumparqStreamWriter

            return NumparqStreamWriter(dict(self.options), schema, overwrite)

    def _scan_for(self, schema: StructType) -> SparkScan:
        """Return the planned scan; plan again for another schema."""
        if self._planned_scan is None or self._planned_scan.batch_reader.schema != schema:
            return self._plan(schema)
        return self._planned_scan

    def _plan(self, schema: StructType | None) -> SparkScan:
        from numparq.spark.scan.plan import SparkScan

        from .read_options import plan_with_options

        self._request()  # raises if the options alone are invalid
        return plan_with_options(self.options, lambda request: SparkScan.plan(request, schema))

    def _request(self) -> ReadRequest:
        from .read_options import parse_read_options

        request = parse_read_options(self.options)
        if request.pushdown and not self.allows_pushdown:
            raise ValueError(
                "the option 'pushdown' needs numparq.spark.register(spark, pushdown=True), which checks that this "
                "version of Spark keeps the filters of queries apart"
            )
        return request


def _check_streams() -> None:
    """Raise UnsupportedError if PySpark does not pass a stream's position to its reader."""
    if find_spec("pyspark.sql.streaming.datasource") is None:
        raise UnsupportedError("streams need PySpark 4.2 or newer; use spark.read and df.write")


class _SplitPartition(InputPartition):
    """Split as an input partition of Spark."""


class NumparqReader(DataSourceReader):
    """Reader of a scan's splits; splits travel in the partitions, and the rest is pickled with each task."""

    def __init__(self, table: SparkScan) -> None:
        self._splits = table.splits
        self._batch_reader = table.batch_reader

    def __getstate__(self) -> BatchReader:
        return self._batch_reader

    def __setstate__(self, state: BatchReader) -> None:
        self._splits, self._batch_reader = [], state

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each split."""
        return [_SplitPartition(split) for split in self._splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a split; without splits, Spark passes one empty partition."""
        if partition.value is not None:
            with sentence_first():
                yield from self._batch_reader.read(partition.value)
