"""Benchmarks of batched reads and partitioned writes against peers: each runs once on tiny data."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

pq = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).resolve().parents[2]

from asv_benchmarks import compare_reads, peers  # noqa: E402
from asv_benchmarks.batches import compare as batch_modes  # noqa: E402
from asv_benchmarks.batches import readers as batching  # noqa: E402
from asv_benchmarks.batches.files import BATCHED, LEAST_LIMIT, TIMES_THE_LIMIT  # noqa: E402
from asv_benchmarks.batches.memory import BatchPeak, measure  # noqa: E402
from asv_benchmarks.batches.timing import time_in_turns  # noqa: E402
from asv_benchmarks.files import ensure  # noqa: E402
from asv_benchmarks.partitions import writers as partitioning  # noqa: E402
from asv_benchmarks.partitions.frames import PARTITIONED  # noqa: E402
from asv_benchmarks.partitions.timing import race_writers  # noqa: E402
from asv_benchmarks.report import console  # noqa: E402

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq

SCALE = 0.005
THREADS = 2
PEERS = ("pyarrow", "polars", "duckdb")
needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured through Linux' /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


def roomy(task):
    """Return the task with a memory limit that suffices at any scale."""
    return replace(task, limit=64 << 20)


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BATCHED)
def test_batch_readers_yield_the_same_rows(folder, name):
    contenders, _ = batching.load_batch_readers(PEERS, THREADS)
    task = roomy(BATCHED[name].task(folder, SCALE))
    outcomes = time_in_turns(contenders, task, 1, 0.0)
    assert {"numparq", "pyarrow", "dataset"} <= outcomes.keys()
    for who in outcomes.keys() & {"numparq", "pyarrow", "dataset"}:  # failures of other peers are not ours
        assert (outcomes[who].failure, outcomes[who].difference, len(outcomes[who].times)) == (None, None, 1)
    assert contenders[0].drain(task) == pq.read_metadata(task.path).num_rows


def test_batch_memory_limits(folder):
    task, small = BATCHED["points"].task(folder, SCALE), BATCHED["points"].small(folder, SCALE)
    assert task.limit == small.limit == LEAST_LIMIT
    assert pq.read_metadata(small.path).num_rows == 1_500
    assert 20_000_000 * 20 // TIMES_THE_LIMIT > LEAST_LIMIT  # at full size the limit depends on the file
    assert BatchPeak(10, 10).within_limit
    assert not BatchPeak(11, 10).within_limit


def test_wrong_batches_are_reported(folder):
    task = roomy(BATCHED["points"].task(folder, SCALE))
    honest = batching.load_batch_reader("pyarrow", THREADS)

    def fewer(task):
        yield from list(honest.frames(task))[1:]

    def other(task):
        for frame in honest.frames(task):
            yield frame.assign(value=0.0)

    def failing(task):
        yield from ()
        raise NotImplementedError("no batches")

    wrong_readers = {"numparq": other, "polars": failing, "dataset": fewer}
    # The reference is the first peer that returned rows: "dataset".
    found = time_in_turns(
        [replace(honest, name=name, frames=frames) for name, frames in wrong_readers.items()] + [honest], task, 1, 0.0
    )
    assert found["polars"].failure == "NotImplementedError: no batches"
    assert found["pyarrow"].difference == "150,000 rows instead of 84,464"
    assert found["numparq"].difference == "150,000 rows instead of 84,464"
    pair = [replace(honest, name="numparq", frames=other), honest]
    assert time_in_turns(pair, task, 1, 0.0)["numparq"].difference == "other values"


@needs_proc
def test_peak_memory_of_batches(folder):
    peak = measure("points", "pyarrow", folder, SCALE, THREADS)
    assert (peak.failure, peak.rows, peak.limit) == (None, 150_000, LEAST_LIMIT)
    assert peak.peak > 150_000 * 8
    assert measure("points", "nobody", folder, SCALE, THREADS).failure


@needs_proc
def test_peak_beyond_the_limit_fails_the_run(folder, monkeypatch, capsys):
    peak = BatchPeak(peak=11, limit=10, rows=1)
    monkeypatch.setattr(batch_modes, "measure", lambda *arguments: peak)
    monkeypatch.setattr(
        batch_modes,
        "load_batch_readers",
        lambda names, threads: ([replace(batching.load_batch_reader("pyarrow", 2), name="numparq")], {}),
    )
    batched = replace(BATCHED["points"], file=replace(BATCHED["points"].file, size=1_000))
    settings = compare_reads.Settings(
        workloads=(),
        peers=(),
        folder=folder,
        scale=1.0,
        threads=THREADS,
        repeat=1,
        check=True,
        json=None,
        batched=(batched,),
    )
    assert not batch_modes.compare_batch_memory(console(), settings)
    assert "NO" in capsys.readouterr().out
    peak = BatchPeak(peak=10, limit=10, rows=1)
    assert batch_modes.compare_batch_memory(console(), settings)


def test_batches_from_the_command_line(folder, tmp_path, capsys):
    out = tmp_path / "out.json"
    common = ["--batches", "--scale", str(SCALE), "--data", str(folder), "--repeat", "1", "--json", str(out)]
    peers.main([*common, "--only", "points", "--peers", "pyarrow"])
    assert "20 times the memory" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["mode"] == "batches"
    assert content["results"]["points"]["pyarrow"]["times"]
    assert peers.main(["--batches", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(BATCHED)


# --- partitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTITIONED)
def test_partition_writers_write_the_frame(folder, name):
    kind = PARTITIONED[name]
    frame = kind.load(ensure(kind.file, folder, SCALE))
    assert len(frame.groupby(list(kind.keys))) == 100
    writers, missing = partitioning.load_writers(["numparq", *PEERS, "fastparquet"], THREADS)
    assert missing["fastparquet"] == "not asked for partitions"
    outcomes = race_writers(writers, kind, frame, folder, 1, 0.0)
    for who in outcomes.keys() & {"numparq", "pyarrow"}:
        one = outcomes[who]
        assert (one.failure, one.difference, one.files, len(one.times)) == (None, None, 100, 1)
        assert one.size > len(frame) * 8
    assert not [path for path in folder.iterdir() if path.name.startswith("parts-")]


def test_wrong_partitions_are_reported(folder):
    kind = PARTITIONED["events"]
    frame = kind.load(ensure(kind.file, folder, SCALE))
    honest = partitioning.load_writer("pyarrow", THREADS)
    wrong_writer = replace(
        honest, name="numparq", write=lambda frame, *others: honest.write(frame.head(1_000), *others)
    )
    synced = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", synced.append)
        outcomes = race_writers([wrong_writer, partitioning.synced(honest)], kind, frame, folder, 0, 0.0)
    assert outcomes["numparq"].difference == f"1000 rows instead of {len(frame)}"
    assert outcomes["pyarrow"].difference is None
    assert len(synced) == 100


def test_partitions_from_the_command_line(folder, tmp_path, capsys):
    out = tmp_path / "out.json"
    common = ["--partitions", "--scale", str(SCALE), "--data", str(folder), "--repeat", "1", "--json", str(out)]
    assert peers.main([*common, "--only", "events", "--peers", "pyarrow", "--sync"]) == 0
    assert "files written" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["results"]["events"]["numparq"]["files"] == 100
    assert content["settings"]["sync"]
    with pytest.raises(SystemExit):
        peers.main(["--partitions", "--memory"])


@needs_proc
def test_asv_classes_run(folder):
    code = """if True:
        import inspect
        from benchmarks import batches, partitions, wide_streams
        for kind, name in (
            (batches.Batches, "points"),
            (partitions.WritePartitions, "events"),
            (wide_streams.WideStreams, "to-arrow"),
            (wide_streams.WideStreams, "batches"),
            (wide_streams.WideStreams, "batches-in-limit"),
        ):
            instance = kind()
            instance.setup(name)
            for method, call in inspect.getmembers(instance, inspect.ismethod):
                if method.startswith(("time_", "track_")):
                    print(method, call(name))
    """
    settings = {"NUMPARQ_BENCH_DATA": str(folder), "NUMPARQ_BENCH_SCALE": str(SCALE), "NUMPARQ_BENCH_REPEAT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "asv_benchmarks",
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    figures = pd.Series(dict(line.split() for line in done.stdout.splitlines() if "track_" in line)).astype(float)
    assert {"track_peak", "track_limit", "track_bytes_written", "track_pyarrow_over_numparq"} == set(figures.index)
    assert (figures > 0).all()
