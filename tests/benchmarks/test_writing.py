"""Benchmarks of writes: each frame is written once on tiny data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asv_benchmarks import memory, peers, write_memory
from asv_benchmarks.files import ensure
from asv_benchmarks.frames import FRAMES, FrameToWrite
from asv_benchmarks.workloads import WORKLOADS
from asv_benchmarks.write_timing import race_writers
from asv_benchmarks.writers import Writer, load_writer, synced
from support.benchmarks import SCALE, THREADS, encodings, frame_of, made, raced

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_is_written(settings, writers, name):
    outcomes = raced(writers, settings, name)
    assert outcomes.keys() == {writer.name for writer in writers}
    for own in outcomes.keys() & {"numparq", "pyarrow"}:  # failures of other peers are not ours
        assert outcomes[own].failure is None
        assert outcomes[own].difference is None
        assert len(outcomes[own].times) == 1
        assert outcomes[own].size > 0
    assert not list(settings.folder.glob("written-*"))


def test_wrong_written_file_is_reported(settings):
    honest = load_writer("pyarrow", THREADS)
    wrong = lambda frame: frame.assign(id=frame["id"] + 1)  # noqa: E731
    wrong_writer = Writer("numparq", "0", lambda frame, *others: honest.write(wrong(frame), *others))
    short = Writer("short", "0", lambda frame, *others: honest.write(frame.head(3), *others))
    kind = FrameToWrite("small", WORKLOADS["small"].file)
    frame = kind.load(made(settings, "small")[0])
    outcomes = race_writers([wrong_writer, short], kind, frame, settings.folder, repeat=1, min_seconds=0.0)
    assert "id" in outcomes["numparq"].difference
    assert outcomes["short"].failure == "wrote 3 rows of 2 columns"


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_writers_use_the_codec(settings, writers, tmp_path, codec):
    _, frame = frame_of(settings, "numbers")
    for writer in writers:
        synced(writer).write(frame, tmp_path / "frame.parquet", codec)
        assert {found for found, _ in encodings(tmp_path / "frame.parquet")} == {codec.upper()}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured through Linux' /proc")
def test_memory_of_one_write(settings):
    kind, frame = frame_of(settings, "nullable-10")
    source = ensure(kind.file, settings.folder, settings.scale)
    peak = write_memory.measure_write("pyarrow", kind, source, settings.folder, THREADS)
    assert peak.failure is None
    assert peak.rows == len(frame)
    assert peak.frame == peak.row_group == memory.frame_bytes(frame)
    assert peak.over > 0
    assert peak.size > 0
    assert write_memory.measure_write("nonsense", kind, source, settings.folder, THREADS).failure


def test_writing_from_the_command_line(settings, tmp_path, capsys):
    out = tmp_path / "out.json"
    common = ["--write", "--only", "numbers", "--scale", str(SCALE), "--peers", "pyarrow", "--data"]
    common += [str(settings.folder), "--json", str(out), "--repeat", "1"]
    assert peers.main(common) == 0
    assert "sizes of the files" in capsys.readouterr().out
    assert json.loads(out.read_text())["results"]["numbers"]["pyarrow"]["size"] > 0
    assert peers.main([*common, "--memory"]) == 0
    assert "row group MB" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        peers.main(["--write", "--startup"])
    with pytest.raises(SystemExit):
        peers.main(["--write", "--only", "wide-three"])
