"""Batched readers of numparq and its peers behind one signature, with equal thread counts.

Only numparq takes a memory limit and sizes batches by it; peers read batches of 65,536 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from asv_benchmarks.batches.files import BatchTask
from asv_benchmarks.readers import available, load

Frames = Callable[[BatchTask], Iterator[pd.DataFrame]]
"""``frames(task)``: all rows of the file, in its order."""

ROWS = 65_536
BUFFER = 1 << 20


def _numparq(threads: int) -> Frames:
    import numparq

    def frames(task: BatchTask) -> Iterator[pd.DataFrame]:
        with numparq.ParquetFile(task.path) as file:
            yield from file.iter_batches(memory_limit=task.limit, threads=threads)

    return frames


def _pyarrow(threads: int) -> Frames:
    import pyarrow.parquet as pq

    def frames(task: BatchTask) -> Iterator[pd.DataFrame]:
        with pq.ParquetFile(task.path) as file:
            for batch in file.iter_batches(ROWS):
                yield batch.to_pandas()

    return frames


def _lean(threads: int) -> Frames:
    import pyarrow.parquet as pq

    def frames(task: BatchTask) -> Iterator[pd.DataFrame]:
        with pq.ParquetFile(task.path, pre_buffer=False, buffer_size=BUFFER) as file:
            for batch in file.iter_batches(ROWS):
                yield batch.to_pandas()

    return frames


def _dataset(threads: int) -> Frames:
    import pyarrow.dataset as ds

    def frames(task: BatchTask) -> Iterator[pd.DataFrame]:
        for batch in ds.dataset(task.path, format="parquet").to_batches(batch_size=ROWS):
            yield batch.to_pandas()

    return frames


def _polars(threads: int) -> Frames:
    import polars as pl

    def frames(task: BatchTask) -> Iterator[pd.DataFrame]:
        for batch in pl.scan_parquet(task.path).collect_batches(chunk_size=ROWS):
            yield batch.to_pandas()

    return frames


@dataclass(frozen=True)
class BatchReaderKind:
    """A kind of batched reader: its library (a name of `readers`) and its factory."""

    reader: str
    make: Callable[[int], Frames]


KINDS: dict[str, BatchReaderKind] = {
    "numparq": BatchReaderKind("numparq", _numparq),
    "pyarrow": BatchReaderKind("pyarrow", _pyarrow),
    "lean": BatchReaderKind("pyarrow", _lean),
    "dataset": BatchReaderKind("pyarrow", _dataset),
    "polars": BatchReaderKind("polars", _polars),
}
"""By name.

``pyarrow`` is `pyarrow.parquet.ParquetFile.iter_batches`, ``lean`` the same without reading ahead, and ``dataset``
`pyarrow.dataset`.
"""


@dataclass(frozen=True)
class BatchReader:
    """A loaded batched reader."""

    name: str
    version: str
    frames: Frames

    def drain(self, task: BatchTask) -> int:
        """Read all batches, releasing each before the next; return the number of rows."""
        return sum(map(len, self.frames(task)))

    def checksum(self, task: BatchTask) -> pd.DataFrame:
        """Return the sum of row hashes, which does not depend on reader or batches."""
        rows, total = 0, 0
        for frame in self.frames(task):
            rows += len(frame)
            total += int(pd.util.hash_pandas_object(frame, index=False).sum())
        return pd.DataFrame({"rows": [rows], "checksum": [total % 2**64]})


def load_batch_reader(name: str, threads: int) -> BatchReader:
    """Import one and hold it to `threads` threads.

    Raises
    ------
    ReaderUnavailable
        When it cannot be imported or limited.
    """
    kind = KINDS[name]
    return BatchReader(name, load(kind.reader, threads).version, kind.make(threads))


def load_batch_readers(peers: Sequence[str], threads: int) -> tuple[list[BatchReader], dict[str, str]]:
    """Load the readers of numparq and of the peers; return reasons for those missing."""
    wanted = [name for name, kind in KINDS.items() if kind.reader in ("numparq", *peers)]
    return available(wanted, threads, load_batch_reader)
