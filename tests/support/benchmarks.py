"""Scale, threads and helpers for the benchmark tests."""

from __future__ import annotations

import pytest

from asv_benchmarks.files import columns_of, ensure
from asv_benchmarks.frames import FRAMES
from asv_benchmarks.readers import load_all
from asv_benchmarks.workloads import WORKLOADS
from asv_benchmarks.write_timing import race_writers

pq = pytest.importorskip("pyarrow.parquet")
SCALE = 0.001
THREADS = 2
NUMPARQ_READY = "numparq" in {reader.name for reader in load_all(["numparq"], THREADS)[0]}
needs_numparq = pytest.mark.skipif(not NUMPARQ_READY, reason="numparq.read_parquet is not there yet")


def made(settings, name):
    workload = WORKLOADS[name]
    path = ensure(workload.file, settings.folder, settings.scale)
    return path, columns_of(workload, path)


def encodings(path):
    """Return (codec, has dictionary page) of each column in the first row group."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return {(chunk.compression, chunk.dictionary_page_offset is not None) for chunk in chunks}


def frame_of(settings, name):
    kind = FRAMES[name]
    return kind, kind.load(ensure(kind.file, settings.folder, settings.scale))


def raced(writers, settings, name):
    kind, frame = frame_of(settings, name)
    return race_writers(writers, kind, frame, settings.folder, repeat=1, min_seconds=0.0)
