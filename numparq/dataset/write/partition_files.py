"""Files of partitions: rows appended, a new file begun at each limit, partitions side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from numparq.dataset.commit.record import data_file_name
from numparq.dataset.commit.stage import Job, Stage
from numparq.file.writer import ParquetWriter
from numparq.file.writer_context import WriterContext
from numparq.from_pandas.frame import ShreddedFrame
from numparq.io.sink import Sink
from numparq.keys.part_keys import encryption_of_part
from numparq.keys.provider import as_encryption_keys
from numparq.util.worker_pool import WorkerPool

from .partition_frame import PartitionRows

_FULL = 0.9  # share of the maximum bytes from which on a file is full
_LEAST_ROWS = 1024  # rows written before the size of a row is known

_MOST_OPEN = 128  # files that stay open between frames


WriterFactory = Callable[[Any, str], ParquetWriter]  # of a sink, and the path in the dataset


def writer_factory(job: Job | Stage, context: WriterContext, options: Mapping[str, Any]) -> WriterFactory:
    """Return the function that makes the writers of a job's files; encrypted parts have an AAD prefix each."""
    encryption = as_encryption_keys(options.get("encryption"))

    def make_writer(sink: object, name: str) -> ParquetWriter:
        keys = encryption_of_part(encryption, job.base, name, job.is_local)
        return ParquetWriter(cast("Any", sink), _context=context, **{**options, "encryption": keys})

    return make_writer


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Maximum rows and approximate maximum bytes of a file; None is no limit."""

    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete file, by its path in the dataset.

    ``footer`` is its encoded FileMetaData if footers are kept, ``fingerprint`` a hash of an encrypted file's footer.
    """

    name: str
    num_rows: int
    num_bytes: int
    footer: bytes = b""
    fingerprint: str | None = None


class RollingFileWriter:
    """Writes the files of one partition, one after another; the last may be open.

    ``name_of`` returns the path of the file with a number; ``writer_of`` makes a `ParquetWriter` on the sink of a path.
    """

    def __init__(
        self,
        name_of: Callable[[int], str],
        open_sink: Callable[[str], Sink],
        writer_of: WriterFactory,
        limits: FileLimits,
        keep_footers: bool,
    ) -> None:
        self._name_of, self._open_sink, self._writer_of = name_of, open_sink, writer_of
        self._limits, self._keep_footers = limits, keep_footers
        self._writer: ParquetWriter | None = None
        self._bytes_per_row = 0.0  # of the last complete file
        self.written: list[WrittenFile] = []

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._writer is not None

    @property
    def open_bytes(self) -> int:
        """Bytes written to the open file so far."""
        return self._writer.num_bytes if self._writer else 0

    def write(self, taken: ShreddedFrame) -> None:
        """Write rows, and begin a new file at each limit."""
        start = 0
        while start < taken.num_rows or (not taken.num_rows and self._writer is None and not self.written):
            writer = self._open()
            stop = min(start + self._room(writer, taken.num_rows - start), taken.num_rows)
            writer._write_shredded(taken.slice(start, stop))
            start = stop
            if self._is_full(writer):
                self.close()
            if not taken.num_rows:
                break

    def _open(self) -> ParquetWriter:
        if self._writer is None:
            name = self._name_of(len(self.written))
            sink = self._open_sink(name)
            try:
                self._writer = self._writer_of(sink, name)
            except BaseException:
                sink.abort()
                raise
        return self._writer

    def _room(self, writer: ParquetWriter, wanted: int) -> int:
        """Return how many rows to write before the size of the open file is checked again."""
        rows = wanted
        if self._limits.rows is not None:
            rows = min(rows, self._limits.rows - writer.num_rows)
        if self._limits.bytes is not None:
            per_row = writer.num_bytes / writer.num_rows if writer.num_rows else self._bytes_per_row
            left = self._limits.bytes - writer.num_bytes
            rows = min(rows, max(int(left / per_row), 1) if per_row else _LEAST_ROWS)
        return rows

    def _is_full(self, writer: ParquetWriter) -> bool:
        rows, size = self._limits.rows, self._limits.bytes
        if rows is not None and writer.num_rows >= rows:
            return True
        return size is not None and writer.num_bytes >= _FULL * size

    def close(self) -> None:
        """Complete the open file, if there is one."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        writer.close()
        self._bytes_per_row = writer.num_bytes / max(writer.num_rows, 1)
        footer = writer._footer if self._keep_footers else b""
        name = self._name_of(len(self.written))
        self.written.append(WrittenFile(name, writer.num_rows, writer.num_bytes, footer, writer._footer_digest))

    def abort(self) -> None:
        """Discard the open file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abort()


@dataclass(frozen=True)
class PartitionFiles:
    """How the files of one write are named, opened and limited; `writer_of` makes the writer of a directory."""

    job: str
    create_file: Callable[[str], Sink]
    make_writer: WriterFactory
    limits: FileLimits
    task: str = ""
    keep_footers: bool = False

    def writer_of(self, folder: str) -> RollingFileWriter:
        """Return the writer of the files in a directory of the dataset."""
        start = f"{folder}/" if folder else ""
        return RollingFileWriter(
            lambda number: start + data_file_name(self.job, number, self.task),
            self.create_file,
            self.make_writer,
            self.limits,
            self.keep_footers,
        )


class PartitionedFileWriter:
    """Writes the files of all partitions, several at once on a worker pool.

    ``part_of`` makes the writer of a directory; ``folder_of`` returns the directory of partition values.
    """

    def __init__(
        self,
        part_of: Callable[[str], RollingFileWriter],
        folder_of: Callable[[Sequence[str | None]], str],
        crew: WorkerPool,
    ) -> None:
        self._part_of, self._folder_of, self._crew = part_of, folder_of, crew
        self._parts: dict[Any, RollingFileWriter] = {}

    def write(self, stretches: list[PartitionRows]) -> None:
        """Write rows of several partitions in parallel, those with most rows first."""
        jobs: list[tuple[int, Callable[[], None]]] = []
        open_now = sum(part.is_open for part in self._parts.values())
        for stretch in stretches:
            part = self._part(self._folder_of(stretch.values) if stretch.folder is None else stretch.folder)
            stays_open = part.is_open or open_now < _MOST_OPEN
            open_now += stays_open and not part.is_open
            jobs.append((stretch.shredded.num_rows, partial(_write, part, stretch.shredded, stays_open)))
        jobs.sort(key=lambda job: -job[0])
        self._crew.run([job for _, job in jobs])

    def _part(self, folder: str) -> RollingFileWriter:
        if folder not in self._parts:
            self._parts[folder] = self._part_of(folder)
        return self._parts[folder]

    def close(self) -> None:
        """Complete all files."""
        self._crew.run([part.close for part in self._parts.values() if part.is_open])

    @property
    def written(self) -> list[WrittenFile]:
        """Files that are complete."""
        return [written for part in self._parts.values() for written in part.written]

    @property
    def open_bytes(self) -> int:
        """Bytes written to the open files so far."""
        return sum(part.open_bytes for part in self._parts.values())

    def abort(self) -> None:
        """Discard the open files."""
        for part in self._parts.values():
            part.abort()


def _write(part: RollingFileWriter, taken: ShreddedFrame, stays_open: bool) -> None:
    part.write(taken)
    if not stays_open:
        part.close()
