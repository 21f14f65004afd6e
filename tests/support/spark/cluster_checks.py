"""Checks for every kind of cluster, as a program: ``python cluster_checks.py MASTER FOLDER``."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from kill_processes import Killer, executor, worker
from settings import SETTINGS

import numparq
from numparq import col

ROWS, FILES = 40_000, 6
CHECKS: dict[str, Callable[[Any, Path], None]] = {}


def check(function: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    CHECKS[function.__name__] = function
    return function


def frame_of(number: int) -> pd.DataFrame:
    rng = np.random.default_rng(number)
    ids = np.arange(number * ROWS, (number + 1) * ROWS)
    return pd.DataFrame(
        {
            "id": ids,
            "key": rng.integers(0, 1000, ROWS),
            "value": rng.normal(size=ROWS),
            "text": rng.choice(np.array(["a", "bc", "", "déf"]), ROWS),
            "maybe": pd.array(rng.integers(0, 9, ROWS), "Int32").astype("Int32"),
            "at": np.datetime64("2024-01-01", "us") + rng.integers(0, 10**12, ROWS).astype("m8[us]"),
        }
    )


def table(folder: Path) -> str:
    """Return the folder of a table of several files, written on first use."""
    path = folder / "table"
    if not path.exists():
        path.mkdir()
        for number in range(FILES):
            frame = frame_of(number)
            frame.loc[frame["key"] % 7 == 0, "maybe"] = pd.NA
            numparq.to_parquet(frame, path / f"part-{number}.parquet", row_group_size=ROWS // 4)
    return str(path)


def tables_equal(one: Any, other: Any) -> None:
    """Check that two Spark tables have equal rows in any order."""
    assert one.schema == other.schema, f"{one.schema} is not {other.schema}"
    assert one.exceptAll(other).count() == 0
    assert other.exceptAll(one).count() == 0


def slow_batches(seconds: float) -> Callable[[Any], Any]:
    """Return a mapInArrow function that delays each batch."""

    def through(batches: Any) -> Any:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    return through


def assert_no_leftovers(folder: str) -> None:
    left = [name for name in os.listdir(folder) if name.startswith((".", "_")) and name != "_SUCCESS"]
    assert not left, left


# --- reading ----------------------------------------------------------------------------------------------------------


@check
def two_executors(spark: Any, folder: Path) -> None:
    """Check that tasks on a cluster run under two daemons."""

    def daemon(frame: pd.DataFrame) -> pd.DataFrame:
        time.sleep(0.5)
        return pd.DataFrame({"daemon": [os.getppid()]})

    found = numparq.spark.map_pandas(spark, table(folder), daemon, "daemon bigint", split_bytes=1).collect()
    daemons = {row["daemon"] for row in found}
    assert len(daemons) == (1 if spark.sparkContext.master.startswith("local[") else 2), daemons


@check
def same_rows_as_spark(spark: Any, folder: Path) -> None:
    path = table(folder)
    native = spark.read.parquet(path)
    tables_equal(numparq.spark.read(spark, path), native)
    tables_equal(spark.read.format("numparq").option("splitBytes", "20000").load(path), native)
    tables_equal(
        numparq.spark.read(spark, path, columns=["id", "text"], filters=col("key").between(10, 30)),
        native.where("key between 10 and 30").select("id", "text"),
    )


@check
def one_frame_has_one_meaning(spark: Any, folder: Path) -> None:
    """Check that filters pushed down for one query do not affect the next."""
    df = spark.read.format("numparq").load(table(folder))
    assert df.filter("id = 3").count() == 1
    assert df.count() == ROWS * FILES
    df.createOrReplaceTempView("leaking")
    assert spark.sql("select * from leaking where key = 5").count() < ROWS
    assert spark.sql("select * from leaking").count() == ROWS * FILES
    assert df.filter("id < 10").union(df.filter("id >= 10")).count() == ROWS * FILES
    assert df.filter("id < 10").join(df, "id").count() == 10


@check
def a_small_side_filters(spark: Any, folder: Path) -> None:
    few = spark.createDataFrame([(5,), (77,), (100_000,), (-1,)], "id bigint")
    df = numparq.spark.read(spark, table(folder), runtime_filters={"id": few})
    assert sorted(row["id"] for row in df.join(few, "id").collect()) == [5, 77, 100_000]
    assert df.count() == 3


@check
def aggregates(spark: Any, folder: Path) -> None:
    def partial(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"rows": [len(frame)], "ids": [frame["id"].sum()]})

    row = (
        numparq.spark.map_pandas(spark, table(folder), partial, "rows bigint, ids bigint")
        .selectExpr("sum(rows) as rows", "sum(ids) as ids")
        .first()
    )
    n = ROWS * FILES
    assert (row["rows"], row["ids"]) == (n, n * (n - 1) // 2)


def read_with_a_kill(spark: Any, folder: Path, whom: Callable[[int], int | None]) -> None:
    path = table(folder)
    df = numparq.spark.read(spark, path, split_bytes=100_000, rows_per_batch=2_000)
    with Killer(path, whom) as killer:
        found = df.mapInArrow(slow_batches(0.02), df.schema).selectExpr("count(*) as n", "sum(id) as ids").first()
    n = ROWS * FILES
    assert killer.killed, "nobody was caught reading"
    assert (found["n"], found["ids"]) == (n, n * (n - 1) // 2), found


@check
def a_reading_task_is_killed(spark: Any, folder: Path) -> None:
    read_with_a_kill(spark, folder, worker)


@check
def an_executor_is_killed_reading(spark: Any, folder: Path) -> None:
    if not spark.sparkContext.master.startswith("local["):
        read_with_a_kill(spark, folder, executor)


@check
def a_damaged_page_is_named(spark: Any, folder: Path) -> None:
    path = folder / "damaged.parquet"
    numparq.to_parquet(frame_of(0), path, compression="none", use_dictionary=False)
    with numparq.ParquetFile(path) as file:
        chunk = file.metadata.row_groups[0].columns[2].meta_data
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)
    try:
        numparq.spark.read(spark, str(path)).selectExpr("sum(value)").collect()
    except Exception as error:
        message = str(error)
    else:
        raise AssertionError("the damage went unnoticed")
    for part in ("damaged.parquet", "row group 0", "value", "page"):
        assert part in message, message


# --- writing ----------------------------------------------------------------------------------------------------------


def write_with_a_kill(spark: Any, folder: Path, whom: Callable[[int], int | None], name: str, mode: str) -> None:
    path = str(folder / name)
    df = spark.read.parquet(table(folder)).repartition(4)
    if mode == "overwrite":
        df.limit(10).write.format("numparq").mode("append").save(path)
    slow = df.mapInArrow(slow_batches(0.05), df.schema)
    with Killer(f"{path}/.numparq", whom) as killer:  # of small row groups the files are there long before their ends
        slow.write.format("numparq").option("rowGroupSize", 5000).mode(mode).save(path)
    assert killer.killed, "nobody was caught writing"
    assert_no_leftovers(path)
    tables_equal(spark.read.parquet(path), df)
    assert numparq.Dataset(path).count_rows() == ROWS * FILES


@check
def a_writing_task_is_killed(spark: Any, folder: Path) -> None:
    write_with_a_kill(spark, folder, worker, "killed-task", "append")


@check
def an_executor_is_killed_writing(spark: Any, folder: Path) -> None:
    if not spark.sparkContext.master.startswith("local["):
        write_with_a_kill(spark, folder, executor, "killed-executor", "overwrite")


@check
def a_write_that_fails_leaves_what_was(spark: Any, folder: Path) -> None:
    path = str(folder / "failing")
    df = spark.read.parquet(table(folder))
    df.limit(10).write.format("numparq").mode("append").save(path)
    before = sorted(os.listdir(path))

    def fails(batches: Any) -> Any:
        yield from batches
        raise RuntimeError("on purpose")

    try:
        df.mapInArrow(fails, df.schema).write.format("numparq").mode("overwrite").save(path)
    except Exception as error:
        assert "on purpose" in str(error)
    else:
        raise AssertionError("it was to fail")
    left = sorted(os.listdir(path))
    assert left == before, [left, before]
    assert spark.read.parquet(path).count() == 10


@check
def spark_reads_what_was_written(spark: Any, folder: Path) -> None:
    path = str(folder / "written")
    df = spark.read.parquet(table(folder))
    df.write.format("numparq").mode("append").save(path)
    tables_equal(spark.read.parquet(path), df)
    tables_equal(spark.read.parquet(path).where("key = 5"), df.where("key = 5"))  # by statistics, pushed down
    tables_equal(numparq.spark.read(spark, path, filters=col("key") == 5), df.where("key = 5"))


def main(master: str, folder: Path) -> None:
    from pyspark.sql import SparkSession

    settings = {
        **SETTINGS,
        "spark.executor.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.cores": "1",
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.builder.master(master).appName("checks of numparq")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = numparq.spark.configure(builder).getOrCreate()
    numparq.spark.register(spark)
    for name, function in CHECKS.items():
        started = time.monotonic()
        try:
            function(spark, folder)
            failure = None
        except Exception:
            failure = traceback.format_exc()
        outcome = {"check": name, "failure": failure, "seconds": round(time.monotonic() - started, 1)}
        print(json.dumps(outcome), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
