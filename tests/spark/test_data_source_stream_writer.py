"""Stream writer without a JVM: batches of tasks with a context of their own, options."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="pyspark is missing, or too old for streams")

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructType

import numparq
from numparq.errors import SchemaError, UnsupportedError
from numparq.spark.data_source.stream_writer import NumparqStreamWriter

pytestmark = pytest.mark.pyspark

SCHEMA = StructType().add("a", LongType())
QUERY = "1e5f48e9-4ac9-4f98-8a1a-1ae06b6d5da8"


class Task:
    """What a task knows: its partition, and the properties of its query."""

    def __init__(self, batch: int, partition: int) -> None:
        self._properties = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch)}
        self.partitionId = lambda: partition

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the rows 10 * batch + partition of some partitions as Spark does: a new writer for each step."""

    def tasks(batch: int, partitions: int, **options: str) -> list[Any]:
        messages = []
        for partition in range(partitions):
            monkeypatch.setattr(TaskContext, "get", lambda partition=partition: Task(batch, partition))
            copy = pickle.loads(pickle.dumps(writer(tmp_path, **options)))
            rows = pa.RecordBatch.from_pydict({"a": [10 * batch + partition]})
            messages.append(pickle.loads(pickle.dumps(copy.write(iter([rows])))))
        return messages

    return tasks


def writer(path: Path, overwrite: bool = False, **options: str) -> NumparqStreamWriter:
    given = {"path": str(path), "checkpointLocation": "checkpoint"} | options
    return NumparqStreamWriter(given, SCHEMA, overwrite)


def rows(path: Path) -> list[int]:
    return sorted(numparq.read_parquet(path)["a"])


def test_repeated_batches_are_dropped(tmp_path, write):
    for batch in (0, 0, 1, 0, 1, 2):
        writer(tmp_path).commit([*write(batch, 2), None], batch)
    assert rows(tmp_path) == [0, 1, 10, 11, 20, 21]
    assert len(list(tmp_path.glob("_numparq_stream-*"))) == 1
    assert not list(tmp_path.glob(".*"))
    assert not (tmp_path / "_SUCCESS").exists()


def test_complete_mode_replaces_all_rows(tmp_path, write):
    for batch in (0, 1, 1):
        writer(tmp_path, overwrite=True).commit(write(batch, 2), batch)
    assert rows(tmp_path) == [10, 11]


def test_aborted_batches_leave_nothing(tmp_path, write):
    writer(tmp_path).commit(write(0, 1), 0)
    writer(tmp_path).abort([*write(1, 1), None], 1)
    assert not list(tmp_path.glob(".*"))
    write(1, 2)
    writer(tmp_path).abort([None, None], 1)
    writer(tmp_path).commit(write(1, 1), 1)
    assert rows(tmp_path) == [0, 10]
    assert not list(tmp_path.glob(".*"))


def test_batches_without_tasks_change_nothing(tmp_path):
    writer(tmp_path / "out").commit([], 0)
    writer(tmp_path / "out").abort([None], 0)
    assert not (tmp_path / "out").exists()


def test_success_is_marked_on_request(tmp_path, write):
    options = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "true"}
    writer(tmp_path, **options).commit(write(0, 1, **options), 0)
    assert (tmp_path / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ifExists": "append"}, "the option 'ifExists' is for df.write; a stream appends, or replaces all rows"),
        ({"partitionOverwriteMode": "static"}, "the option 'partitionOverwriteMode' is for df.write"),
        ({"compresion": "zstd"}, "numparq has no option 'compresion' for writing"),
        ({"partitionColumns": "b"}, "the partition column does not exist"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises((ValueError, SchemaError), match=message):
        writer(tmp_path, **options)


def test_tables_of_other_systems_are_refused(tmp_path, write):
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(UnsupportedError, match="the folder belongs to a Delta Lake table"):
        write(0, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["_delta_log"]


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


def test_batches_are_encrypted_by_the_name_of_a_provider(tmp_path, write, provider):
    pytest.importorskip("cryptography")
    options = {"encryption": f"{provider}:writing"}
    for batch in (0, 1, 1):
        writer(tmp_path, **options).commit(write(batch, 2, **options), batch)
    read = numparq.read_parquet(tmp_path, decryption=f"{provider}:reading")
    assert sorted(read["a"]) == [0, 1, 10, 11]
    assert all(path.read_bytes()[-4:] == b"PARE" for path in tmp_path.glob("*.parquet"))
