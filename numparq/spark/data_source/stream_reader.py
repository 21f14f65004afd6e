"""Data source stream reader: batches of new files, each file once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from numparq.errors import SchemaError
from numparq.spark.worker_errors import sentence_first

from .read_options import StreamLimits, parse_stream_options
from .stream_files import StreamFiles
from .stream_offset import StreamOffset, limit_batch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["NumparqStreamReader"]

# Names of a batch's files are in its offset, of about 100 bytes each.
_DEFAULT_MAX_FILES = 1000


class NumparqStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream of files: Spark keeps its offsets, in the checkpoint, and it keeps nothing else.

    Spark loses the errors of its constructor: options are parsed by the first call that needs them.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, is_inferred: bool) -> None:
        self._options, self._schema, self._is_inferred = options, schema, is_inferred
        self._target: frozenset[str] | None = None  # files there when an AvailableNow query began

    @cached_property
    def _source(self) -> tuple[StreamFiles, StreamLimits]:
        """Files and limits, by the options; ValueError if these are invalid, SchemaError without a schema."""
        with sentence_first():
            request, limits = parse_stream_options(self._options)
            if self._is_inferred:
                raise SchemaError(
                    "a stream needs a schema, as later files may have other columns: "
                    "spark.readStream.schema(numparq.spark.read(spark, path).schema)"
                )
            return StreamFiles(request), limits

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset of a new query, which has read nothing."""
        assert self._source  # raises if the options are invalid
        return StreamOffset().encode()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        max_files, max_bytes, _ = self._source[1]
        return ReadMaxFiles(max_files or _DEFAULT_MAX_FILES) if max_bytes is None else ReadMaxBytes(max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the files that are there: later ones are left to the next query."""
        with sentence_first():
            self._target = frozenset(file.name for file in self._source[0].find())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the offset after the next batch; `start` itself without new files."""
        with sentence_first():
            source, limits = self._source
            offset = StreamOffset.decode(start)
            files = source.find()
            unread = offset.unread(file for file in files if self._target is None or file.name in self._target)
            if not unread:
                return start
            count = limit_batch(unread, *_parse_limit(limit))
            return offset.advance(unread, count, limits.max_age, time.time_ns() // 1000).encode()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return a partition for each split of the files of a batch."""
        if start == end:
            return []
        from numparq.spark.scan.plan import SparkScan

        with sentence_first():
            scan = SparkScan.plan(self._source[0].request_of(StreamOffset.decode(end).files), self._schema)
        return [InputPartition((scan.batch_reader, split)) for split in scan.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a split."""
        batch_reader, split = partition.value
        with sentence_first():
            yield from batch_reader.read(split)


def _parse_limit(limit: ReadLimit) -> tuple[int | None, int | None]:
    """Return the maximum files and bytes of a limit that Spark passes."""
    if isinstance(limit, ReadMaxFiles):
        return limit.max_files, None
    if isinstance(limit, ReadMaxBytes):
        return None, limit.max_bytes
    if isinstance(limit, ReadAllAvailable):
        return None, None
    raise ValueError(f"a stream of files has no limit of {limit!r}")
