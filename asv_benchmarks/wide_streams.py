"""Reads of a file of 1,000 columns as one Arrow table, and in batches, by numparq and pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asv_benchmarks import tables
from asv_benchmarks.environment import THREADS
from asv_benchmarks.timing import Outcome, add_time, attempt, take_turns
from asv_benchmarks.workloads import DataFile

WIDE_LONG = DataFile("wide-long", tables.wide_long, 1_000, {"compression": "snappy"})
"""The file: one row group of 50,000 rows."""

LIMIT = 256 << 20
"""Bytes of memory of ``batches-in-limit``, which pyarrow does not have."""


@dataclass(frozen=True)
class WideReader:
    """A reader of the whole file; ``read(path)`` returns the number of rows."""

    name: str
    read: Callable[[Path], int]


def _numparq_batches(path: Path, memory_limit: int | None = None) -> int:
    import numparq

    with numparq.ParquetFile(path) as file:
        return sum(map(len, file.iter_batches(memory_limit=memory_limit, threads=THREADS)))


def _numparq_table(path: Path) -> int:
    import numparq

    with numparq.Dataset(path, threads=THREADS) as dataset:
        return int(dataset.to_arrow().num_rows)


def _pyarrow_batches(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(THREADS)
    with pq.ParquetFile(path) as file:
        return sum(len(batch.to_pandas()) for batch in file.iter_batches())


def _pyarrow_table(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(THREADS)
    return int(pq.read_table(path).num_rows)


WAYS: dict[str, tuple[WideReader, WideReader]] = {
    "to-arrow": (WideReader("numparq", _numparq_table), WideReader("pyarrow", _pyarrow_table)),
    "batches": (WideReader("numparq", _numparq_batches), WideReader("pyarrow", _pyarrow_batches)),
    "batches-in-limit": (
        WideReader("numparq", lambda path: _numparq_batches(path, LIMIT)),
        WideReader("pyarrow", _pyarrow_batches),
    ),
}
"""The readers of each way to read the file."""


def time_both(way: str, path: Path, repeat: int) -> dict[str, Outcome]:
    """Time both readers in turns, after one read each that is not counted."""
    readers = WAYS[way]
    outcomes = {reader.name: Outcome(failure=attempt(reader.read, path)[1]) for reader in readers}
    take_turns(readers, outcomes, lambda reader, outcome: add_time(outcome, reader.read, path), repeat, 0.0)
    return outcomes
