"""The folder that queries read has the expected files; the simulated object store lists it in realistic requests."""

from collections import Counter
from pathlib import Path

import pytest

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")

from asv_benchmarks import object_store, peers  # noqa: E402
from asv_benchmarks.object_store import ObjectStore, round_trips  # noqa: E402
from asv_benchmarks.queries import goals, required_bytes  # noqa: E402
from asv_benchmarks.queries.folders import FOLDER, ONE_PARTITION, in_any_file, wanted_files  # noqa: E402
from asv_benchmarks.queries.queries import QUERIES  # noqa: E402
from asv_benchmarks.queries.task import IoCounts, QueryOutcome  # noqa: E402

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq

SCALE = 0.01


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def folder(data):
    return QUERIES["partition"].task(data, SCALE).path


def test_files_and_schemas_of_the_folder(folder):
    files = sorted(folder.rglob("*.parquet"))
    assert (len(files), len({file.parent for file in files})) == (300, 100)
    schemas = Counter(tuple(pq.read_schema(file).names) for file in files)
    assert sorted(map(len, schemas)) == [4, 5, 6]
    assert set(schemas.values()) == {100}
    assert len(pq.read_schema(files[0]).names) == 4
    assert {pq.read_metadata(file).num_rows for file in files[::50]} == {100}


def test_tasks_of_folder_queries(data, folder):
    united, partition = (QUERIES[name].task(data, SCALE) for name in ("partition-united", "partition"))
    assert united.unites
    assert not partition.unites
    assert united.columns == in_any_file(partition.columns[:4])
    assert partition.columns == ["id", "value", "kind", "at", "year", "region"]
    assert [file.parent for file in wanted_files(united)] == [folder / "year=2020" / "region=r3"] * 3
    assert required_bytes.num_files(united) == 3
    assert required_bytes.for_files(united, 0).most == sum(file.stat().st_size for file in wanted_files(united))
    assert not wanted_files(QUERIES["whole-folder"].task(data, SCALE))
    assert partition.terms == ONE_PARTITION


def test_folder_is_created_once(data, folder, monkeypatch):
    monkeypatch.setattr(type(FOLDER), "write", None)
    assert QUERIES["whole-folder"].task(data, SCALE).path == folder
    assert [path.name for path in data.iterdir()] == ["folder-v1-x0.01"]


def test_failed_creation_leaves_nothing(tmp_path, monkeypatch):
    def broken(recipe, scale, path):
        path.mkdir()
        (path / "one").touch()
        raise OSError("no space")

    monkeypatch.setattr(type(FOLDER), "write", broken)
    with pytest.raises(OSError, match="no space"):
        QUERIES["whole-folder"].task(tmp_path, SCALE)
    assert list(tmp_path.iterdir()) == []


def test_object_store_listing_requests(folder, monkeypatch):
    monkeypatch.setattr(object_store, "KEYS_LISTED", 120)
    store = ObjectStore(latency=0.001, bandwidth=1e9)
    found = store.find(f"slowstore://{folder}", detail=True)
    assert list(found) == sorted(str(file) for file in folder.rglob("*.parquet"))
    assert (len(store.requests), round_trips(store.requests)) == (3, 3)  # 300 keys
    name, info = next(iter(found.items()))
    assert info["size"] == Path(name).stat().st_size
    assert info["type"] == "file"
    with_directories = store.find(str(folder), withdirs=True)
    assert len(with_directories) == 300 + 100 + 10 + 1
    assert len(store.requests) == 6
    assert [Path(name).name for name in store.ls(str(folder), detail=False)][::9] == ["year=2015", "year=2024"]
    assert {info["type"] for info in store.ls(str(folder))} == {"directory"}
    assert len(store.requests) == 8
    years = store.find(str(folder), maxdepth=1, withdirs=True)
    assert {Path(name).parent for name in years[1:]} == {folder}
    assert store.glob(f"{folder}/year=2020/*/part-000.parquet")[0].endswith("region=r0/part-000.parquet")
    assert store.find(name) == [name] == store.ls(name, detail=False)


def test_requests_goal(data):
    task = QUERIES["partition-store"].task(data, SCALE)
    goal = goals.Requests(2, required_bytes.num_files)
    assert goal.judge(task, QueryOutcome({}, asked=IoCounts(1, 5, 0, 3))) == goals.Verdict("5 for 3 files", True)
    assert goal.judge(task, QueryOutcome({}, asked=IoCounts(1, 6, 0, 3))).holds is False
    assert goal.judge(task, QueryOutcome({})) == goals.UNKNOWN


def test_folder_query_from_the_command_line(data, folder, capsys, monkeypatch):
    monkeypatch.setattr(ObjectStore.__init__, "__defaults__", (0.001, 1e9))
    common = ["--scale", str(SCALE), "--data", str(data), "--repeat", "1", "--peers", "pyarrow"]
    assert peers.main(["--queries", "--only", "partition-store", *common]) == 0
    shown = capsys.readouterr().out
    assert "asked of the object store" in shown
    assert "5 for 3 files" in shown
    rows = {line.split("|")[2].strip(): line for line in shown.splitlines() if "| partition-store |" in line}
    assert {"numparq", "pyarrow", "dataset"} <= rows.keys()
