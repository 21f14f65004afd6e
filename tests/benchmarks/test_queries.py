"""Query benchmarks against peers: each runs once on tiny data; bytes and round trips are counted correctly."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")
ROOT = Path(__file__).resolve().parents[2]

from asv_benchmarks import compare_reads, peers  # noqa: E402
from asv_benchmarks.object_store import ObjectStore, Request, round_trips  # noqa: E402
from asv_benchmarks.queries import compare as query_modes  # noqa: E402
from asv_benchmarks.queries import goals, predicates, required_bytes  # noqa: E402
from asv_benchmarks.queries.memory import measure  # noqa: E402
from asv_benchmarks.queries.predicates import Among, At, Term  # noqa: E402
from asv_benchmarks.queries.queries import QUERIES  # noqa: E402
from asv_benchmarks.queries.readers import KINDS, load_query_reader, load_query_readers  # noqa: E402
from asv_benchmarks.queries.task import IoCounts, QueryOutcome, Task  # noqa: E402
from asv_benchmarks.queries.timing import count_io, difference, readers_for, time_in_turns  # noqa: E402
from asv_benchmarks.ratios import Best, best_peer  # noqa: E402
from asv_benchmarks.report import console  # noqa: E402
from asv_benchmarks.timing import Outcome  # noqa: E402

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq

SCALE = 0.001
THREADS = 2
PEERS = ("pyarrow", "polars", "duckdb")


def filters_are_supported():
    import numparq

    try:
        data = numparq.to_parquet(pd.DataFrame({"a": [1, 2]}))
        return len(numparq.read_parquet(data, filters=[("a", "==", 1)])) == 1
    except numparq.UnsupportedError:
        return False


needs_filters = pytest.mark.skipif(not filters_are_supported(), reason="read_parquet has no filters yet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def contenders():
    return load_query_readers(PEERS, THREADS)[0]


def stand_in():
    """Return pyarrow's reader under numparq's name."""
    return replace(load_query_reader("pyarrow", THREADS), name="numparq")


def fast(task):
    """Return the task with an object store without latency."""
    return task if task.store is None else replace(task, store=ObjectStore(latency=0.0, bandwidth=1e12))


@pytest.mark.parametrize("name", QUERIES)
def test_query_readers_agree(folder, contenders, name):
    query = QUERIES[name]
    others = [contender for contender in contenders if contender.name != "numparq"]
    answers = time_in_turns(readers_for([stand_in(), *others], query), fast(query.task(folder, 0.01)), THREADS, 1, 0.0)
    supports_query = not (query.remote or query.unites)
    assert ({"numparq", "pyarrow", "dataset", *query.besides} <= answers.outcomes.keys()) == (not query.unites)
    assert ("polars" in answers.outcomes) == ("polars" in {one.name for one in others} and supports_query)
    for name in answers.outcomes.keys() & {
        "numparq",
        "pyarrow",
        "dataset",
        "read-all",
    }:  # failures of other peers are not ours
        assert answers.outcomes[name].failure is None
    assert {outcome.difference for outcome in answers.outcomes.values()} == {None}
    assert all(len(outcome.times) == 1 for outcome in answers.outcomes.values() if not outcome.failure)


@needs_filters
@pytest.mark.parametrize("name", QUERIES)
def test_numparq_agrees_with_a_peer(folder, name):
    task = fast(QUERIES[name].task(folder, 0.01))
    if task.unites:
        pytest.importorskip("duckdb")
    peer = load_query_reader("duckdb" if task.unites else "pyarrow", THREADS)
    answers = time_in_turns([load_query_reader("numparq", THREADS), peer], task, THREADS, 1, 0.0)
    own = answers.outcomes["numparq"]
    assert (own.failure, own.difference, answers.failure, answers.outcomes[peer.name].failure) == (None,) * 4
    if task.is_folder and task.store is None:
        assert answers.asked is None
    else:
        assert answers.asked.bytes > 0


@needs_filters
@pytest.mark.parametrize("name", ["point", "range-1", "absent-bloom", "point-store", "partition-store"])
def test_numparq_reads_only_required_bytes(folder, name):
    """200,000 rows in ten row groups; checks only goals that do not depend on the machine."""
    query = QUERIES[name]
    task = fast(query.task(folder, 0.01 if query.file.is_folder else 0.02))
    answers = QueryOutcome({}, asked=count_io(task, THREADS))
    strict = [goal for goal in query.goals if goal.is_strict]
    assert strict
    for goal in strict:
        assert goal.judge(task, answers).holds, goal.judge(task, answers).measured


SHARES = {
    "point": 1 / 200_000,
    "range-1": 0.01,
    "absent-bloom": 0.0,
    "scattered-0.003": 0.00003,
    "scattered-1": 0.01,
    "half": 0.5,
    "startswith-1": 0.01,
    "isin-100": 0.001,
    "city": 1 / 120,
}


@pytest.mark.parametrize("name", SHARES)
def test_query_selectivity(folder, name):
    task = QUERIES[name].task(folder, 0.02)
    rows = pq.ParquetFile(task.path).metadata.num_rows
    expected_rows = SHARES[name] * rows
    assert len(load_query_reader("pyarrow", THREADS).run(task)) == pytest.approx(
        expected_rows, rel=0.1, abs=3 * expected_rows**0.5
    )


def test_layout_of_query_files(folder):
    points = pq.ParquetFile(QUERIES["point"].task(folder, 0.02).path).metadata
    assert (points.num_rows, points.num_row_groups) == (200_000, 10)
    assert points.row_group(0).column(0).has_offset_index
    name = pq.read_table(QUERIES["point"].task(folder, 0.02).path, columns=["name"])["name"]
    assert {len(text) for text in name.slice(0, 1_000).to_pylist()} == {12}
    wide = pq.ParquetFile(QUERIES["wide-three-20"].task(folder, 0.02).path).metadata
    assert (wide.num_columns, wide.num_row_groups) == (200, 20)


@pytest.mark.parametrize("name", ["point", "absent-bloom"])
def test_query_files_are_created_once(folder, name):
    path = QUERIES[name].task(folder, SCALE).path
    before = path.stat().st_mtime_ns
    assert QUERIES[name].task(folder, SCALE).path.stat().st_mtime_ns == before
    assert "-v" in path.name


FRAME = pd.DataFrame({"n": [1, 2, 3, 4], "s": ["ab", "b'", "abc", "c"]})
CONDITIONS = [
    ((Term("n", "==", 3),), [3]),
    ((Term("n", ">=", 2), Term("n", "<", 4)), [2, 3]),
    ((Term("n", "in", [1, 4, 9]),), [1, 4]),
    ((Term("s", "startswith", "ab"),), [1, 3]),
    ((Term("s", "==", "b'"),), [2]),
    ((), [1, 2, 3, 4]),
]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("terms", "expected"), CONDITIONS)
def test_terms_mean_the_same_to_every_reader(tmp_path, name, terms, expected):
    if (name == "numparq" and not filters_are_supported()) or (name == "read-all" and not terms):
        pytest.skip("numparq cannot")
    pytest.importorskip(KINDS[name].reader)
    FRAME.to_parquet(tmp_path / "frame.parquet")
    task = Task(tmp_path / "frame.parquet", ["n"], terms)
    if name == "read-all":
        task = replace(task, columns=None)
    assert sorted(load_query_reader(name, THREADS).run(task)["n"]) == expected


def test_literals_from_file_quantiles(tmp_path):
    pq.write_table(pa.table({"a": [10, 20, 30, 40, 50]}), tmp_path / "a.parquet", row_group_size=2)
    values = [At(share, plus).of(tmp_path / "a.parquet", "a") for share, plus in ((0.0, 0), (0.5, 1), (0.99, 0))]
    assert values == [10, 31, 50]
    assert Term("a", "<", At(0.3)).on(tmp_path / "a.parquet") == Term("a", "<", 20)
    listed = Among(100).of(tmp_path / "a.parquet", "a")
    assert len({*listed} & {10, 20, 30, 40, 50}) == len(listed) == 2
    assert Term("a", "in", Among(2)).on(tmp_path / "a.parquet") == Term("a", "in", listed)
    assert predicates.for_sql([Term("a", "in", [1, "x"])]) == " WHERE \"a\" IN (1, 'x')"


def test_difference_ignores_row_order_only():
    frame = pd.DataFrame({"id": [2, 1], "s": ["b", "a"]})
    assert difference(frame, frame.iloc[::-1].astype({"s": object})) is None
    assert difference(frame, frame.head(1)) == "2 rows instead of 1"
    assert difference(frame, frame.assign(s=["a", "b"])) == "other values in column s"
    assert "instead of" in difference(frame[["id"]], frame)


def test_wrong_and_failing_query_readers_are_reported(folder):
    task = QUERIES["range-1"].task(folder, SCALE)
    honest = load_query_reader("pyarrow", THREADS)

    def failing(task):
        raise NotImplementedError("no filters")

    wrong_reader = replace(honest, name="polars", run=lambda task: honest.run(task).assign(value=0.0))
    answers = time_in_turns([replace(honest, name="numparq", run=failing), honest, wrong_reader], task, THREADS, 1, 0.0)
    assert answers.outcomes["numparq"].failure == "NotImplementedError: no filters"
    assert answers.outcomes["polars"].difference == "other values in column value"
    assert answers.asked is None


def chunks_of(path, names):
    metadata = pq.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if chunk.path_in_schema in names:
                yield chunk


@pytest.mark.parametrize("columns", [None, ["value"]])
def test_required_bytes_of_all_rows(folder, columns):
    task = replace(QUERIES["point"].task(folder, 0.01), terms=(Term("key", ">=", 0),), columns=columns)
    chunks = chunks_of(task.path, {"key", "value", "name"} if columns is None else {"key", "value"})
    expected = sum(chunk.total_compressed_size for chunk in chunks)
    assert required_bytes.for_sorted_key(task, 0) == required_bytes.Bounds(expected, expected)
    whole = task.path.stat().st_size
    assert required_bytes.for_sorted_key(task, whole) == required_bytes.Bounds(whole, whole + expected)


def test_required_bytes_of_a_point(folder):
    """By hand: one page of 64 KiB per column, ten row groups with several pages each, and small indexes."""
    task = QUERIES["point"].task(folder, 0.02)
    chunks = list(chunks_of(task.path, {"key", "value", "name"}))
    found = required_bytes.for_sorted_key(task, 0)
    assert found.least == found.most
    assert 64_000 < found.most < 3 * 66_000 + 2_000 < sum(chunk.total_compressed_size for chunk in chunks) / 10


def test_required_bytes_of_an_absent_key(folder):
    task = QUERIES["absent-bloom"].task(folder, 0.02)
    found = required_bytes.for_absent_key(task, 1_000)
    assert 1_000 + 10 * (32 + 8) < found.least == found.most < 1_000 + 10 * (32 + 32)


def test_verdicts_of_goals():
    task = Task(Path("nowhere"), None, ())
    outcomes = {
        "numparq": Outcome([1.0]),
        "polars": Outcome([3.0]),
        "duckdb": Outcome([2.0]),
        "x": Outcome(failure="no"),
    }
    answers = QueryOutcome(outcomes, 1, IoCounts(100, 5, 60, 4))
    assert best_peer(outcomes, "numparq", outcomes.keys() - {"numparq"}) == Best("duckdb", 2.0)
    assert best_peer(outcomes, "x", ["polars"]) is None
    faster = goals.Faster(2.5, ("polars", "duckdb", "x"))
    assert faster.judge(task, answers) == goals.Verdict("2.00 (duckdb)", False)
    assert goals.Faster(3.0, ("polars",)).judge(task, answers).holds
    assert not goals.Judged(faster, faster.judge(task, answers)).fails_the_run
    for least, most, holds in ((100, 100, True), (101, 200, False), (50, 99, False)):
        bounds = required_bytes.Bounds(least, most)
        only = goals.ReadsOnly(lambda task, tail, bounds=bounds: bounds)
        assert only.judge(task, answers).holds == holds
        assert goals.Judged(only, only.judge(task, answers)).fails_the_run == (not holds)
    assert goals.RoundTrips(4).judge(task, answers).holds
    assert goals.RoundTrips(3).judge(task, answers).holds is False
    assert goals.RoundTrips(3).judge(task, QueryOutcome(outcomes)) == goals.UNKNOWN


def test_overlapping_requests_are_one_round_trip():
    at = [(0, 2), (1, 3), (2, 4), (3.5, 5), (4, 6)]
    assert round_trips([Request(begin, end, 0) for begin, end in at]) == 3
    assert round_trips([]) == 0


def test_object_store_requests(tmp_path):
    path = tmp_path / "some"
    path.write_bytes(bytes(range(200)))
    store = ObjectStore(latency=0.001, bandwidth=1e9)
    assert store.size(str(path)) == 200
    assert store.cat_file(f"slowstore://{path}", 10, 20) == bytes(range(10, 20))
    assert store.cat_file(str(path), -3) == bytes(range(197, 200))
    assert store.cat_ranges([str(path)] * 3, [0, 5, 9], 10) == [bytes(range(start, 10)) for start in (0, 5, 9)]
    assert sorted(request.bytes for request in store.requests) == [0, 1, 3, 5, 10, 10]
    assert round_trips(store.requests) == 4  # concurrent requests are one round trip
    with store.open(str(path)) as file:
        assert file.seek(190) == 190
        assert file.read() == bytes(range(190, 200))
    assert round_trips(store.requests) == 6


def test_queries_from_the_command_line(folder, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out.json"
    monkeypatch.setattr(
        query_modes, "load_query_readers", lambda names, threads: ([stand_in(), load_query_reader("pyarrow", 2)], {})
    )
    common = ["--queries", "--scale", str(SCALE), "--data", str(folder), "--repeat", "1", "--json", str(out)]
    peers.main([*common, "--only", "point,city"])
    shown = capsys.readouterr().out
    assert "best peer / numparq: at least 8.00" in shown
    assert "MB read in requests" in shown
    content = json.loads(out.read_text())
    assert content["mode"] == "queries"
    assert content["results"]["city"]["num_rows"] > 0
    assert content["results"]["point"]["outcomes"]["numparq"]["times"]
    assert "best peer / numparq: at least 8.00" in content["results"]["point"]["goals"]
    assert peers.main(["--queries", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(QUERIES)
    with pytest.raises(SystemExit):
        peers.main(["--queries", "--startup"])
    with pytest.raises(SystemExit):
        peers.main(["--queries", "--write"])


def test_failing_numparq_fails_the_run(folder, monkeypatch, capsys):
    def failing(task):
        raise NotImplementedError("no filters")

    broken = replace(stand_in(), run=failing)
    monkeypatch.setattr(
        query_modes, "load_query_readers", lambda names, threads: ([broken], {"duckdb": "not installed"})
    )
    settings = compare_reads.Settings(
        workloads=(),
        peers=(),
        folder=folder,
        scale=SCALE,
        threads=THREADS,
        repeat=1,
        check=True,
        json=None,
        queries=(QUERIES["point"],),
    )
    assert not query_modes.compare_queries(console(), settings)
    shown = capsys.readouterr().out
    assert "numparq failed on point: NotImplementedError: no filters" in shown
    assert "duckdb: left out, not installed" in shown


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured through Linux' /proc")
def test_memory_of_one_query(folder, tmp_path, capsys):
    peak = measure("half", "pyarrow", folder, 0.01, THREADS)
    assert peak.failure is None
    assert peak.frame > 24_000 * 8 * 3
    out = tmp_path / "out.json"
    common = ["--scale", str(SCALE), "--data", str(folder), "--json", str(out)]
    assert peers.main(["--queries", "--memory", "--only", "wide-three-20", "--peers", "pyarrow", *common]) == 0
    assert "over MB" in capsys.readouterr().out
    assert json.loads(out.read_text())["results"]["wide-three-20"].keys() == {"numparq", "pyarrow", "dataset"}


@needs_filters
@pytest.mark.parametrize("name", ["wide-three-20", "point", "partition"])
def test_asv_classes_run(folder, name):
    code = """if True:
        import inspect, sys
        from benchmarks import query
        for kind in (query.Query, query.CompareQueries):
            instance = kind()
            instance.setup(sys.argv[1])
            for method, call in inspect.getmembers(instance, inspect.ismethod):
                if method.startswith(("time_", "peakmem_", "track_")):
                    print(method, call(sys.argv[1]))
    """
    settings = {"NUMPARQ_BENCH_DATA": str(folder), "NUMPARQ_BENCH_SCALE": str(SCALE), "NUMPARQ_BENCH_REPEAT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, name],
        cwd=ROOT / "asv_benchmarks",
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    tracked = [line.split()[1] for line in done.stdout.splitlines() if "track_" in line]
    assert np.isfinite([float(figure) for figure in tracked if figure != "None"]).all()
    assert tracked.count("None") == (2 if name == "partition" else 0)
    assert "track_requests" in done.stdout
    assert "track_best_peer_over_numparq" in done.stdout
