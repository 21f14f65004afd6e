"""Data source stream reader: batches of new files, each file once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
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

from numparq.dataset.discover.files import DatasetListing, list_files
from numparq.dataset.listing.file_filter import ListingOptions, stat_files
from numparq.dataset.listing.files import FileEntry
from numparq.dataset.listing.local import LocalLister
from numparq.dataset.listing.patterns import has_wildcard
from numparq.dataset.listing.remote import RemoteLister
from numparq.errors import SchemaError
from numparq.io.filesystem import resolve_paths
from numparq.spark.worker_errors import sentence_first

from .read_options import StreamLimits, parse_stream_options
from .stream_offset import StreamFile, StreamOffset, limit_batch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from numparq.spark.scan.request import ReadRequest

_TRIES = 3
# Files that Hadoop is copying to their place.
_COPYING = "._COPYING_"

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


class StreamFiles:
    """Lists the committed files of a source; names are relative to a folder, or else paths."""

    def __init__(self, request: ReadRequest) -> None:
        self._request = request
        paths = [request.path] if isinstance(request.path, (str, os.PathLike)) else list(request.path)
        names = resolve_paths(paths, request.storage_options, request.filesystem).paths
        self._has_pattern = any(map(has_wildcard, names))
        is_folder = len(names) == 1 and not self._has_pattern
        self._start = names[0].rstrip("/") + "/" if is_folder else ""

    def find(self) -> list[StreamFile]:
        """List the files; none for a pattern that no file matches.

        Raises FileNotFoundError for a missing folder, ValueError for one file, UnsupportedError for a table of another
        system.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._list()
            except FileNotFoundError:  # a file was removed since the listing
                if not tries_left:
                    raise
        raise AssertionError

    def _list(self) -> list[StreamFile]:
        request = self._request
        try:
            listing = list_files(
                request.path,
                partitioning=None,
                options=ListingOptions(request.table_format, request.file_filter, may_be_empty=True),
                storage_options=request.storage_options,
                filesystem=request.filesystem,
            )
        except FileNotFoundError:
            if not self._has_pattern:
                raise
            return []
        if listing.is_single_file:
            raise ValueError(f"a stream reads a folder or a pattern, but {request.path!r} is a file")
        entries = [entry for entry in _entries(listing) if not entry.path.endswith(_COPYING)]
        lister = LocalLister() if listing.filesystem is None else RemoteLister(listing.filesystem)
        stats = stat_files(entries, lister)
        return [
            StreamFile(entry.path.removeprefix(self._start), modified, size)
            for entry, (modified, size) in zip(entries, stats, strict=True)
        ]

    def request_of(self, names: Iterable[str]) -> ReadRequest:
        """Return the request of some files, all of which must exist."""
        paths = frozenset(self._start + name for name in names)
        return replace(self._request, file_filter=replace(self._request.file_filter, paths=paths))


def _entries(listing: DatasetListing) -> list[FileEntry]:
    """Return the entries of a listing's files by their committed paths."""
    if listing.filesystem is None:  # a local file may still be at a staged path
        return [FileEntry(file.name, staged_path=file.path) for file in listing.files]
    return [FileEntry(file.path, file.size, file.version, file.modified) for file in listing.files]
