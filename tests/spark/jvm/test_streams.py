"""Streams: ``readStream`` and ``writeStream`` of ``format("numparq")``, each file and each batch exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "a bigint"


class Folders:
    """Folders of a query: its source, its checkpoint and its sink."""

    def __init__(self, root: Path) -> None:
        self.source, self.checkpoint, self.sink = (str(root / name) for name in ("in", "checkpoint", "out"))
        Path(self.source).mkdir(parents=True)

    def add(self, number: int, **columns: Any) -> None:
        """Add a file of ten rows that was modified in minute `number`."""
        path = f"{self.source}/{number}.parquet"
        frame = pd.DataFrame({"a": range(10 * number, 10 * number + 10)} | columns)
        numparq.to_parquet(frame, path, index=False)
        os.utime(path, (60 * number, 60 * number))

    @property
    def rows(self) -> list[int]:
        return sorted(numparq.read_parquet(self.sink)["a"])

    @property
    def leftovers(self) -> list[str]:
        names = sorted(str(path.relative_to(self.sink)) for path in Path(self.sink).rglob("*"))
        return [name for name in names if not name.startswith(("part-", "_numparq_stream-"))]

    def forget_last_commit(self) -> None:
        """Make Spark repeat the last batch, as after a crash between the sink's commit and Spark's own record."""
        folder = Path(self.checkpoint) / "commits"
        last = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        (folder / str(last)).unlink()
        (folder / f".{last}.crc").unlink()


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def source(spark: Any, folders: Folders, schema: str = SCHEMA, **options: str) -> Any:
    return spark.readStream.format("numparq").schema(schema).options(**options).load(folders.source)


def run(frame: Any, folders: Folders, mode: str = "append", **options: str) -> list[int]:
    """Run a query on what is there; return the rows of each batch.

    Spark gives the process of a source ten seconds to start, which a busy machine may not keep: the query starts again.
    """
    writer = frame.writeStream.format("numparq").outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", folders.checkpoint).option("path", folders.sink)
    found: dict[int, int] = {}
    for tries_left in (4, 3, 2, 1, 0):
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except Exception as error:
            if "worker failed to connect back" not in str(error) or not tries_left:
                raise
        found |= {each["batchId"]: each["numInputRows"] for each in query.recentProgress if each["numInputRows"]}
        if query.exception() is None:
            break
    return list(found.values())


def test_each_file_appears_once(spark, registered, folders):
    for number in range(5):
        folders.add(number)
    assert run(source(spark, folders, maxFilesPerTrigger="2"), folders) == [20, 20, 10]
    assert folders.rows == list(range(50))
    assert run(source(spark, folders), folders) == []
    folders.add(7)
    folders.add(6)
    assert run(source(spark, folders), folders) == [20]
    assert folders.rows == [*range(50), *range(60, 80)]
    assert folders.leftovers == []
    assert sorted(row.a for row in spark.read.parquet(folders.sink).collect()) == folders.rows


def test_repeated_batch_is_not_written_twice(spark, registered, folders):
    for number in range(3):
        folders.add(number)
    run(source(spark, folders, maxFilesPerTrigger="2"), folders)
    for number in (3, 4):
        folders.forget_last_commit()
        folders.add(number)
        assert sum(run(source(spark, folders), folders)) >= 20, "the last batch, and the new one"
        assert folders.rows == list(range(10 * number + 10))
    assert folders.leftovers == []


def test_running_query_sees_files_that_appear(spark, registered, folders):
    frame = source(spark, folders).writeStream.format("numparq").option("checkpointLocation", folders.checkpoint)
    query = frame.trigger(processingTime="200 milliseconds").start(folders.sink)
    try:
        for number in range(3):
            folders.add(number)
            query.processAllAvailable()
            assert folders.rows == list(range(10 * number + 10))
    finally:
        query.stop()


def test_retried_tasks_write_their_rows_once(spark, registered, folders, tmp_path):
    marker = str(tmp_path / "failed")

    def fail_once(batches):
        for batch in batches:
            yield batch
            if not os.path.exists(marker):
                open(marker, "w").close()
                raise RuntimeError("once")

    for number in range(2):
        folders.add(number)
    run(source(spark, folders).mapInPandas(fail_once, SCHEMA), folders)
    assert os.path.exists(marker)
    assert folders.rows == list(range(20))
    assert folders.leftovers == []


def test_failed_batch_is_repeated(spark, registered, folders, tmp_path):
    marker = str(tmp_path / "mended")

    def fail(batches):
        for batch in batches:
            yield batch
            if batch["a"].max() >= 10 and not os.path.exists(marker):
                raise RuntimeError("on purpose")

    for number in range(2):
        folders.add(number)
    with pytest.raises(Exception, match="on purpose"):
        run(source(spark, folders, maxFilesPerTrigger="1").mapInPandas(fail, SCHEMA), folders)
    assert folders.rows == list(range(10))
    open(marker, "w").close()
    run(source(spark, folders, maxFilesPerTrigger="1").mapInPandas(fail, SCHEMA), folders)
    assert folders.rows == list(range(20))
    assert folders.leftovers == []


def test_complete_mode_replaces_all_rows(spark, registered, folders):
    for number in range(3):
        folders.add(number)
        counts = source(spark, folders).selectExpr("a % 3 as a").groupBy("a").count()
        run(counts, folders, mode="complete")
        found = numparq.read_parquet(folders.sink)
        assert found["count"].sum() == 10 * number + 10
        assert sorted(found["a"]) == [0, 1, 2]
    folders.forget_last_commit()
    run(counts, folders, mode="complete")
    assert numparq.read_parquet(folders.sink)["count"].sum() == 30


def test_partitions_and_options_of_both_sides(spark, registered, folders):
    folders.add(0, p=["x", "y"] * 5)
    schema = "a bigint, p string"
    run(source(spark, folders, schema, filter="a > 3"), folders, partitionColumns="p", compression="zstd")
    found = numparq.read_parquet(folders.sink)
    assert sorted(found["a"]) == [4, 5, 6, 7, 8, 9]
    assert sorted(name for name in os.listdir(folders.sink) if name.startswith("p=")) == ["p=x", "p=y"]
    again = spark.readStream.format("numparq").schema(schema).load(folders.sink)
    second = Folders(Path(folders.source).parent / "second")
    assert run(again, second) == [6]
    assert numparq.read_parquet(second.sink)["p"].value_counts().to_dict() == {"x": 3, "y": 3}


def test_rows_are_those_of_sparks_own_stream(spark, registered, folders, tmp_path):
    """Types, nested columns and partitions; the sink of each is the other's source."""
    frame = spark.range(100).selectExpr(
        "id as a", "cast(id as decimal(20, 2)) d", "timestamp_micros(id) t", "named_struct('x', id, 'y', array(id)) s"
    )
    frame.selectExpr("*", "cast(a % 3 as string) p").write.partitionBy("p").parquet(folders.source, mode="append")
    schema = spark.read.parquet(folders.source).schema
    found = []
    for reads, writes in (("numparq", "parquet"), ("parquet", "numparq"), ("numparq", "numparq")):
        sink, checkpoint = str(tmp_path / f"{reads}-{writes}"), str(tmp_path / f"checkpoint-{reads}-{writes}")
        stream = spark.readStream.format(reads).schema(schema).load(folders.source)
        query = stream.writeStream.format(writes).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start(sink).awaitTermination()
        found.append(sorted(map(repr, spark.read.schema(schema).parquet(sink).collect())))
        second = spark.readStream.format("numparq").schema(schema).load(sink).writeStream.format("numparq")
        second = second.option("checkpointLocation", f"{checkpoint}-2").trigger(availableNow=True).start(f"{sink}-2")
        second.awaitTermination()
        found.append(sorted(map(repr, spark.read.schema(schema).parquet(f"{sink}-2").collect())))
    assert len(found[0]) == 100
    assert all(rows == found[0] for rows in found)


def test_wrong_options_are_named(spark, registered, folders):
    folders.add(0)
    with pytest.raises(Exception, match=r"ValueError: the option 'latestFirst' must be false, since files are read in"):
        run(source(spark, folders, latestFirst="true"), folders)
    with pytest.raises(Exception, match=r"ValueError: the option 'ifExists' is for df\.write; a stream appends"):
        run(source(spark, folders), folders, ifExists="error")


def test_schema_is_required(spark, registered, folders):
    folders.add(0)
    with pytest.raises(Exception, match=r"SchemaError: a stream needs a schema, as later files may have other columns"):
        run(spark.readStream.format("numparq").load(folders.source), folders)


def test_tables_of_other_systems_are_refused(spark, registered, folders):
    folders.add(0)
    (Path(folders.source) / "_delta_log").mkdir()
    with pytest.raises(Exception, match="the path belongs to a Delta Lake table"):
        run(source(spark, folders), folders)
    (Path(folders.source) / "_delta_log").rmdir()
    (Path(folders.sink) / "_delta_log").mkdir(parents=True)
    with pytest.raises(Exception, match="the folder belongs to a Delta Lake table"):
        run(source(spark, folders), folders)


def test_damaged_file_is_named(spark, registered, folders):
    folders.add(0)
    path = Path(folders.source, "1.parquet")
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(Exception, match=r"InvalidFileError: .*1\.parquet"):
        run(source(spark, folders), folders)
    folders.add(1)
    run(source(spark, folders), folders)
    assert folders.rows == list(range(20))


# --- killed queries ---------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import numparq, numparq.spark

root = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.config("spark.driver.memory", "1g").getOrCreate()
numparq.spark.register(spark)
stream = spark.readStream.format("numparq").schema("a bigint").option("maxFilesPerTrigger", "1").load(f"{root}/in")
writer = stream.writeStream.format("numparq").option("checkpointLocation", f"{root}/checkpoint")
writer.trigger(availableNow=True).start(f"{root}/out").awaitTermination()
"""


def test_killed_queries_lose_and_repeat_nothing(tmp_path):
    folders = Folders(tmp_path)
    for number in range(8):
        folders.add(number)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    for batches in (1, 3, 5):  # kill the query some time after its nth batch was committed
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 240
        while len(list(Path(folders.sink).glob("part-*"))) < batches and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.3 * batches)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert folders.rows in [list(range(10 * number)) for number in range(batches, 9)]
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, check=True, capture_output=True)
    assert folders.rows == list(range(80))
    assert folders.leftovers == []
