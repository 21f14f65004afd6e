"""Benchmarks of reads: each workload runs once on tiny data; files match their names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from asv_benchmarks import compare_reads, compare_writes, lookups, memory, page_sizes, peers, ratios, startup
from asv_benchmarks.counting_file import CountingFile
from asv_benchmarks.files import ensure
from asv_benchmarks.readers import Reader, load, load_all
from asv_benchmarks.report import console
from asv_benchmarks.timing import Outcome, time_in_turns
from asv_benchmarks.workloads import WORKLOADS, DataFile, select_workloads
from asv_benchmarks.writers import load_writer
from support.benchmarks import NUMPARQ_READY, SCALE, THREADS, encodings, frame_of, made, needs_numparq

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq

pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_runs(settings, readers, name):
    path, columns = made(settings, name)
    dates = WORKLOADS[name].dates
    expected = load("pyarrow", THREADS).with_dates(dates).read(path, columns)
    assert dates == "objects" or set(expected.dtypes.astype(str)) == {"datetime64[ms]"}
    chosen = [reader.with_dates(dates) for reader in readers]
    outcomes = time_in_turns(chosen, path, columns, repeat=1, expected=expected, min_seconds=0.0)
    assert outcomes.keys() == {reader.name for reader in readers}
    for own in outcomes.keys() & {"numparq", "pyarrow"}:  # failures of other peers are not ours
        assert outcomes[own].failure is None
        assert outcomes[own].difference is None
        assert len(outcomes[own].times) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain-none", {("UNCOMPRESSED", False)}),
        ("plain-snappy", {("SNAPPY", False)}),
        ("plain-zstd", {("ZSTD", False)}),
        ("dictionary-numbers", {("SNAPPY", True)}),
        ("strings-few", {("SNAPPY", True)}),
        ("strings-distinct", {("SNAPPY", False)}),
        ("lineitem-zstd", {("ZSTD", True)}),
        ("pages-8k", {("SNAPPY", False)}),
    ],
)
def test_codec_and_encoding_of_workload_files(settings, name, expected):
    assert encodings(made(settings, name)[0]) == expected


@pytest.mark.parametrize(("name", "share"), [("nulls-1", 0.01), ("nulls-10", 0.1), ("nulls-50", 0.5)])
def test_share_of_nulls(settings, name, share):
    frame = pd.read_parquet(made(settings, name)[0], engine="pyarrow")
    assert frame["cents"].isna().mean() == pytest.approx(share, abs=0.02)
    assert frame["price"].isna().mean() == pytest.approx(share, abs=0.2)


def test_wide_file_has_ten_row_groups(settings):
    path, columns = made(settings, "wide-three")
    metadata = pq.ParquetFile(path).metadata
    assert (metadata.num_row_groups, metadata.num_rows, len(set(columns))) == (10, 2_000, 3)


def test_distinct_strings_workload_is_unique(settings):
    frame = pd.read_parquet(made(settings, "strings-distinct")[0], engine="pyarrow")
    assert frame["account"].is_unique


def test_workload_files_are_created_once(tmp_path):
    calls = []

    def table(rng, size):
        calls.append(size)
        return WORKLOADS["small"].file.table(rng, size)

    file = DataFile("counted", table, 1_000)
    assert ensure(file, tmp_path, 0.5) == ensure(file, tmp_path, 0.5)
    assert calls == [500]
    assert ensure(file, tmp_path, 0.001) != ensure(file, tmp_path, 0.5)
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"] * 2


def test_workload_tables_are_reproducible():
    file = WORKLOADS["lineitem-snappy"].file
    assert file.make(SCALE).equals(file.make(SCALE))


def failing(path, columns):
    raise NotImplementedError("no such thing")


def test_failing_reader_does_not_stop_others(settings):
    path, columns = made(settings, "small")
    good = load("pyarrow", THREADS)
    outcomes = time_in_turns([Reader("bad", "0", failing), good], path, columns, repeat=2, min_seconds=0.0)
    assert outcomes["bad"].failure == "NotImplementedError: no such thing"
    assert len(outcomes["pyarrow"].times) == 2


def test_wrong_frame_is_reported(settings):
    path, columns = made(settings, "small")
    expected = load("pyarrow", THREADS).read(path, columns)
    wrong_reader = Reader("numparq", "0", lambda path, columns: expected.assign(id=expected["id"] + 1))
    outcomes = time_in_turns([wrong_reader], path, columns, repeat=1, expected=expected, min_seconds=0.0)
    assert "id" in outcomes["numparq"].difference


def test_missing_readers_are_named():
    found, missing = load_all(["pyarrow"], THREADS)
    assert [reader.name for reader in found] == ["pyarrow"]
    assert missing == {}
    if not NUMPARQ_READY:
        assert load_all(["numparq"], THREADS)[1].keys() == {"numparq"}


def test_ratio_summary():
    results = {
        "a": {"x": Outcome([2.0, 1.0]), "y": Outcome([4.0])},
        "b": {"x": Outcome([2.0]), "y": Outcome([1.0, 9.0])},
        "c": {"x": Outcome([2.0]), "y": Outcome([1.0], failure="broken")},
    }
    summary = ratios.summarise(results, "x", "y")
    assert summary == ratios.Summary(mean=pytest.approx(2**0.5), compared=2, slower=("b",))
    assert ratios.geometric_mean([]) is None


def test_unknown_names_are_refused():
    assert [workload.name for workload in select_workloads("small, dates", WORKLOADS)] == ["small", "dates"]
    with pytest.raises(ValueError, match="no workload named nonsense"):
        select_workloads("nonsense", WORKLOADS)
    with pytest.raises(SystemExit):
        peers.main(["--peers", "nonsense"])


def test_command_line_writes_json(tmp_path, capsys):
    out = tmp_path / "out.json"
    arguments = ["--only", "small", "--scale", str(SCALE), "--repeat", "1", "--peers", "pyarrow"]
    status = peers.main([*arguments, "--data", str(tmp_path), "--json", str(out)])
    assert status == 0
    assert "geometric mean" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert content["mode"] == "times"
    assert content["results"]["small"]["pyarrow"]["times"]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured through Linux' /proc")
def test_memory_of_one_read(settings):
    path, columns = made(settings, "strings-few")
    task = memory.ReadTask(str(path), columns, str(made(settings, "small")[0]), THREADS)
    peak = memory.measure("pyarrow", task)
    frame = pd.read_parquet(path, engine="pyarrow")
    assert peak.failure is None
    assert peak.frame == memory.frame_bytes(frame) > 0
    assert peak.peak > 0
    assert memory.measure("nonsense", task).failure


def test_frame_bytes_count_an_object_once():
    text = "x" * 1_000
    frame = pd.DataFrame({"a": pd.Series([text] * 50, dtype=object)})
    assert memory.frame_bytes(frame) == 50 * 8 + sys.getsizeof(text) + frame.index.memory_usage()


def test_counting_file_counts_bytes_and_requests(tmp_path):
    path = tmp_path / "some"
    path.write_bytes(bytes(range(100)))
    with CountingFile(path) as file:
        file.seek(-10, 2)
        assert file.read(4) == bytes(range(90, 94))
        assert (file.bytes, file.requests, file.size, file.tell()) == (4, 1, 100, 94)


def test_startup_of_a_failing_process(monkeypatch, tmp_path):
    monkeypatch.setattr(startup, "PROGRAMS", {"good": "pass", "bad": "raise SystemExit('broken')"})
    outcomes = startup.small_file(tmp_path, repeat=2)
    assert len(outcomes["good"].times) == 2
    assert outcomes["bad"].failure == "broken"
    assert outcomes["bad"].best is None


@needs_numparq
def test_memory_mode(settings, capsys):
    few = compare_reads.Settings(**{**vars(settings), "workloads": (WORKLOADS["wide-three"],), "peers": ("pyarrow",)})
    assert compare_reads.compare_memory(console(), few)
    assert "wide-three" in capsys.readouterr().out


def test_page_sizes_from_the_command_line(settings, tmp_path, capsys):
    out = tmp_path / "out.json"
    arguments = ["--only", "defaults; pages of 1,000 rows", "--scale", str(SCALE), "--repeat", "1"]
    assert page_sizes.main([*arguments, "--data", str(settings.folder), "--json", str(out)]) == 0
    assert "by index KB" in capsys.readouterr().out
    default, small = json.loads(out.read_text())["results"].values()
    assert small["asked"]["by_index"] < default["asked"]["by_index"] < default["size"]
    assert {len(times) for times in default["seconds"].values()} == {1}


def test_lookup_bytes_of_single_page_chunks(settings, tmp_path):
    kind, frame = frame_of(settings, "lineitem-snappy")
    frame = frame[:500]  # of more rows a page of the default size does not hold all
    path = tmp_path / "frame.parquet"
    load_writer("numparq", THREADS).write(frame, path, kind.codec)
    data = path.read_bytes()
    expected = 8 + int.from_bytes(data[-8:-4], "little")
    group = pq.ParquetFile(path).metadata.row_group(0)
    for chunk in (group.column(i) for i in range(group.num_columns)):
        if chunk.path_in_schema in lookups.COLUMNS:  # a chunk of one page is read whole
            expected += chunk.total_compressed_size
    found = lookups.bytes_by_index(path, lookups.spread(frame))
    assert 0 < found - expected < 3 * 40  # the offset indexes


def test_ratio_of_written_sizes():
    outcomes = {"numparq": compare_writes.Written(size=50), "pyarrow": compare_writes.Written(size=40)}
    assert compare_writes.size_ratio(outcomes, "numparq") == 1.25
    assert compare_writes.size_ratio(outcomes, "polars") is None
