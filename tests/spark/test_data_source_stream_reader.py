"""Stream reader without a JVM: which files make a batch, options, and replays."""

from __future__ import annotations

import datetime
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="pyspark is missing, or too old for streams")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructType

import numparq
from numparq.dataset.write.shared_job import SharedJob
from numparq.errors import SchemaError, UnsupportedError
from numparq.spark.data_source.read_options import STREAM_OPTIONS, parse_read_options
from numparq.spark.data_source.stream_reader import NumparqStreamReader

pytestmark = pytest.mark.pyspark

SCHEMA = StructType().add("a", LongType())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files 0 to 4, of which file n has the row n and was modified in minute n."""
    for number in range(5):
        add(tmp_path / f"{number}.parquet", number)
    return tmp_path


def add(path: Path, number: int, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    numparq.to_parquet(pd.DataFrame({"a": [number]} | columns), path, index=False)
    os.utime(path, (60 * number, 60 * number))


class Query:
    """Calls a reader as Spark does; `restart` continues from the checkpoint."""

    def __init__(self, path: object, schema: StructType = SCHEMA, **options: str) -> None:
        self.arguments = {"path": str(path)} | options, schema
        self.restart()
        self.offset = json.dumps(self.reader.initialOffset())

    def restart(self) -> None:
        options, schema = self.arguments
        self.reader = NumparqStreamReader(dict(options), schema, is_inferred=False)

    def plan(self) -> str:
        limit = self.reader.getDefaultReadLimit()
        return json.dumps(self.reader.latestOffset(json.loads(self.offset), limit))

    def rows(self, end: str, column: str = "a") -> list[Any]:
        partitions = self.reader.partitions(json.loads(self.offset), json.loads(end))
        return [row for part in partitions for batch in self.reader.read(part) for row in batch[column].to_pylist()]

    def batch(self, column: str = "a") -> list[Any]:
        end = self.plan()
        found = self.rows(end, column)
        self.offset = end
        return sorted(found)


def test_each_file_is_read_once(folder):
    query = Query(folder)
    assert query.batch() == [0, 1, 2, 3, 4]
    assert query.plan() == query.offset
    assert query.batch() == []
    add(folder / "x" / "late.parquet", 2)
    add(folder / "new.parquet", 9)
    query.restart()
    assert query.batch() == [2, 9]
    assert query.batch() == []


def test_batches_have_at_most_some_files(folder):
    query = Query(folder, maxFilesPerTrigger="2")
    assert [query.batch() for _ in range(4)] == [[0, 1], [2, 3], [4], []]
    size = (folder / "0.parquet").stat().st_size
    query = Query(folder, maxBytesPerTrigger=str(3 * size))
    assert [query.batch() for _ in range(3)] == [[0, 1, 2], [3, 4], []]
    query = Query(folder, maxBytesPerTrigger="1")
    assert [query.batch() for _ in range(6)] == [[0], [1], [2], [3], [4], []]


def test_limits_that_spark_passes(folder):
    query = Query(folder, maxFilesPerTrigger="2")
    assert query.reader.getDefaultReadLimit() == ReadMaxFiles(2)
    assert Query(folder).reader.getDefaultReadLimit() == ReadMaxFiles(1000)
    assert Query(folder, maxBytesPerTrigger="64m").reader.getDefaultReadLimit() == ReadMaxBytes(1 << 26)
    start = json.loads(query.offset)
    assert len(query.reader.latestOffset(start, ReadAllAvailable())["files"]) == 5
    with pytest.raises(ValueError, match="has no limit of ReadMaxRows"):
        query.reader.latestOffset(start, ReadMaxRows(3))


def test_replayed_batch_has_the_same_files(folder):
    query = Query(folder, maxFilesPerTrigger="3")
    end = query.plan()
    add(folder / "late.parquet", 0)
    query.restart()
    assert sorted(query.rows(end)) == [0, 1, 2]
    query.offset = end
    assert query.batch() == [0, 3, 4]


def test_replay_without_one_of_its_files_is_an_error(folder):
    query = Query(folder)
    end = query.plan()
    (folder / "3.parquet").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        query.rows(end)
    assert caught.value.filename == str(folder / "3.parquet")


def test_file_truncated_after_its_batch_was_planned_is_an_error(folder):
    query = Query(folder)
    end = query.plan()
    (folder / "3.parquet").write_bytes(b"")
    with pytest.raises(numparq.ParquetError, match=r"3\.parquet"):
        query.rows(end)


def test_files_that_are_being_written_are_not_taken(folder):
    for name in (".6.parquet", "_6.parquet", "6.parquet._COPYING_", "_temporary/0/6.parquet", ".x/6.parquet"):
        add(folder / name, 6)
    (folder / "7.parquet").write_bytes(b"")
    job = SharedJob.begin(folder)
    with job.task("0") as writer:
        writer.write(pd.DataFrame({"a": [8]}))
    query = Query(folder)
    assert query.batch() == [0, 1, 2, 3, 4]
    job.commit([writer.message])
    add(folder / "7.parquet", 7)
    assert query.batch() == [7, 8]


def test_available_now_leaves_later_files(folder):
    query = Query(folder, maxFilesPerTrigger="2")
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == [0, 1]
    add(folder / "5.parquet", 5)
    assert [query.batch() for _ in range(3)] == [[2, 3], [4], []]
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == [5]


def test_partitions_and_missing_columns(tmp_path):
    schema = StructType().add("p", StringType()).add("a", LongType()).add("b", LongType())
    query = Query(tmp_path, schema)
    assert query.batch() == []
    add(tmp_path / "p=x" / "1.parquet", 1)
    assert query.batch("p") == ["x"]
    add(tmp_path / "p=y" / "2.parquet", 2, b=[7])
    assert query.batch("b") == [7]
    add(tmp_path / "p=y" / "3.parquet", 3)
    assert query.batch("b") == [None]


def test_types_that_do_not_fit_are_errors(folder):
    add(folder / "5.parquet", 5, a=["text"])
    with pytest.raises(SchemaError, match="column 'a'"):
        Query(folder).batch()


def test_patterns_and_several_paths(tmp_path):
    for query in (Query(tmp_path / "*" / "in"), Query(tmp_path / "{x,y}" / "in")):
        assert query.batch() == []
    (tmp_path / "z").mkdir()
    queries = [
        Query(tmp_path / "*" / "in"),
        Query(tmp_path / "{x,y}" / "in"),
        Query(tmp_path / "x", paths=json.dumps([str(tmp_path / "z")])),
    ]
    add(tmp_path / "x" / "in" / "1.parquet", 1)
    assert [query.batch() for query in queries] == [[1]] * 3
    add(tmp_path / "y" / "in" / "2.parquet", 2)
    add(tmp_path / "z" / "3.parquet", 3)
    assert [query.batch() for query in queries] == [[2], [2], [3]]


def test_moved_source_continues(folder, tmp_path_factory):
    query = Query(folder)
    query.batch()
    moved = tmp_path_factory.mktemp("moved") / "in"
    folder.rename(moved)
    add(moved / "5.parquet", 5)
    query.arguments = {"path": f"file://{moved}/"}, SCHEMA
    query.restart()
    assert query.batch() == [5]


@pytest.fixture
def remote_folder(folder):
    """The same files in fsspec's memory file system."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for number in range(5):
        memory.pipe_file(f"/numparq-stream/{number}.parquet", (folder / f"{number}.parquet").read_bytes())
    yield memory
    memory.rm("/numparq-stream", recursive=True)


def test_remote_files(remote_folder, folder, monkeypatch):
    monkeypatch.setattr("numparq.dataset.listing.remote._TIMES", ("created",))
    remote_folder.pipe_file("/numparq-stream/empty.parquet", b"")
    for minute, file in enumerate(remote_folder.store.values()):
        file.created = datetime.datetime.fromtimestamp(60 * minute, datetime.UTC)
    query = Query("memory://numparq-stream", maxFilesPerTrigger="3")
    assert [query.batch() for _ in range(3)] == [[0, 1, 2], [3, 4], []]
    remote_folder.pipe_file("/numparq-stream/x/5.parquet", (folder / "4.parquet").read_bytes())
    query.restart()
    assert query.batch() == [4]
    assert json.loads(query.offset)["files"] == ["x/5.parquet"]


def test_file_systems_without_modification_times_are_refused(remote_folder):
    with pytest.raises(UnsupportedError, match="does not tell when the file was modified"):
        Query("memory://numparq-stream").batch()


def test_tables_of_other_systems_are_refused(folder):
    (folder / "_delta_log").mkdir()
    with pytest.raises(UnsupportedError, match="the path belongs to a Delta Lake table"):
        Query(folder).batch()
    assert Query(folder, tableFormat="parquet").batch() == [0, 1, 2, 3, 4]


def test_streaming_sink_is_read_by_its_log(folder):
    (folder / "_spark_metadata").mkdir()
    for batch in range(2):
        entry = {"path": f"file://{folder}/{batch}.parquet", "size": 1, "isDir": False, "action": "add"}
        (folder / "_spark_metadata" / str(batch)).write_text("v1\n" + json.dumps(entry))
    query = Query(folder)
    assert query.batch() == [0, 1]
    entry["path"] = f"file://{folder}/4.parquet"
    (folder / "_spark_metadata" / "2").write_text("v1\n" + json.dumps(entry))
    assert query.batch() == [4]


def test_missing_folders_and_single_files_are_errors(folder):
    with pytest.raises(FileNotFoundError):
        Query(folder / "none").batch()
    with pytest.raises(ValueError, match=r"a stream reads a folder or a pattern, but .*0\.parquet' is a file"):
        Query(folder / "0.parquet").batch()


def test_schema_is_required():
    with pytest.raises(SchemaError, match=r"a stream needs a schema, .*spark\.readStream\.schema\("):
        NumparqStreamReader({"path": "data"}, SCHEMA, is_inferred=True).initialOffset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxFilesPerTrigger": "0"}, "the option 'maxFilesPerTrigger' must be a whole number of at least 1, not '0'"),
        ({"maxBytesPerTrigger": "x"}, "the option 'maxBytesPerTrigger' must be a number of bytes"),
        (
            {"maxFilesPerTrigger": "1", "maxbytespertrigger": "1"},
            "'maxFilesPerTrigger' and 'maxBytesPerTrigger' exclude",
        ),
        ({"maxFileAge": "7 weeks"}, "the option 'maxFileAge' must be a duration such as 7d, 12h, 30m or 10s"),
        ({"latestFirst": "true"}, "'latestFirst' must be false, since files are read in the order"),
        ({"fileNameOnly": "true"}, "'fileNameOnly' must be false, since files are known by their paths"),
        ({"cleanSource": "delete"}, "'cleanSource' must be off, since a stream leaves the files"),
        ({"sourceArchiveDir": "x"}, "'sourceArchiveDir' must be "),
        ({"pushdown": "true"}, "'pushdown' is for spark.read; use 'filter' in a stream"),
        ({"maxFiles": "1"}, "numparq has no option 'maxfiles' for reading"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Query("data", **options)


def test_options_of_a_load_and_defaults_are_taken(folder):
    given = {"latestFirst": "false", "fileNameOnly": "False", "cleanSource": "OFF", "maxCachedFiles": "10"}
    query = Query(folder, discardCachedInputRatio="0.2", filter="a > 1", pathGlobFilter="[0-3]*", **given)
    assert query.batch() == [2, 3]


def test_old_files_are_not_read(folder):
    query = Query(folder, maxFileAge="1h")
    query.batch()
    add(folder / "old.parquet", 4 - 61)
    add(folder / "young.parquet", 4 - 59)
    assert query.batch() == [4 - 59]


@pytest.mark.parametrize("name", [option.name for option in STREAM_OPTIONS])
def test_options_of_streams_need_one(name):
    with pytest.raises(ValueError, match=f"the option '{name}' needs spark.readStream"):
        parse_read_options({"path": "data", name.lower(): "1"})


@pytest.fixture
def provider(tmp_path_factory, monkeypatch):
    """Return the name of a new module of providers."""
    folder = tmp_path_factory.mktemp("providers")
    name = f"keys_of_{folder.name}"
    (folder / f"{name}.py").write_text(
        "import numparq\n"
        "def reading():\n    return numparq.Decryption(b'marker: footer k')\n"
        "def writing():\n    return numparq.Encryption(b'marker: footer k')\n"
    )
    monkeypatch.syspath_prepend(folder)
    return name


def test_encrypted_files_are_read_by_the_name_of_a_provider(tmp_path, provider):
    pytest.importorskip("cryptography")
    for number in range(3):
        numparq.to_parquet(
            pd.DataFrame({"a": [number]}), tmp_path / f"{number}.parquet", encryption=f"{provider}:writing"
        )
    query = Query(tmp_path, decryption=f"{provider}:reading")
    pickled = pickle.dumps(query.reader.partitions(json.loads(query.offset), json.loads(query.plan())))
    assert provider.encode() in pickled
    assert b"marker" not in pickled
    assert query.batch() == [0, 1, 2]
