"""The table of files read in batches: each twenty times the memory that numparq may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asv_benchmarks import tables
from asv_benchmarks.files import ensure
from asv_benchmarks.queries.files import POINTS, NumparqFile
from asv_benchmarks.workloads import MILLION, DataFile

TIMES_THE_LIMIT = 20
LEAST_LIMIT = 16 << 20
"""Bytes; a file at a small scale would leave no room for a page."""

SMALL = 0.01
"""Share of the file that a process reads first, so that everything is loaded."""

_PLAIN: dict[str, object] = {"use_dictionary": False, "compression": "none", "row_group_size": MILLION}


@dataclass(frozen=True)
class BatchedFile:
    """A file to read in batches, and its ``name`` in the tables."""

    name: str
    file: DataFile

    def task(self, folder: Path, scale: float) -> BatchTask:
        """Write the file if missing; return its task."""
        path = ensure(self.file, folder, scale)
        return BatchTask(path, max(LEAST_LIMIT, path.stat().st_size // TIMES_THE_LIMIT))

    def small(self, folder: Path, scale: float) -> BatchTask:
        """Write a small file of the same kind; return its task with the same limit."""
        return BatchTask(ensure(self.file, folder, scale * SMALL), self.task(folder, scale).limit)


@dataclass(frozen=True)
class BatchTask:
    """An existing file, and numparq's memory limit in bytes."""

    path: Path
    limit: int


BATCHED: dict[str, BatchedFile] = {
    batched.name: batched
    for batched in (
        BatchedFile("numbers", DataFile("numbers-20", tables.numbers, 20 * MILLION, _PLAIN)),
        BatchedFile("points", NumparqFile("points-30", tables.points, 30 * MILLION, POINTS.options)),
    )
}
"""All by name; each row group of either takes as much as the limit, or more."""
