"""Spark's streaming sinks: read by their log, and not written by anything but their query."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import numparq
import numparq.spark

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMPACT = "spark.sql.streaming.fileSink.log.compactInterval"


@pytest.fixture(scope="module")
def sink(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A sink of four batches, its log compacted on the way, and an orphan of a failed task."""
    root = tmp_path_factory.mktemp("a stream")
    (root / "in").mkdir()
    spark.conf.set(COMPACT, "2")
    try:
        for batch in range(4):
            frame = pd.DataFrame({"a": range(10 * batch, 10 * batch + 10)})
            frame["p"] = [f"x y{value % 2}" for value in frame["a"]]
            numparq.to_parquet(frame, root / f"in/{batch}.parquet", index=False)
            stream = spark.readStream.schema("a bigint, p string").parquet(str(root / "in"))
            query = stream.writeStream.partitionBy("p").option("checkpointLocation", str(root / "checkpoint"))
            query.trigger(availableNow=True).start(str(root / "out")).awaitTermination()
    finally:
        spark.conf.unset(COMPACT)
    assert sorted(path.name for path in (root / "out/_spark_metadata").glob("*.compact")) == ["1.compact", "3.compact"]
    numparq.to_parquet(pd.DataFrame({"a": [-1]}), root / "out/p=x y0/orphan.parquet", table_format="parquet")
    return root / "out"


def test_sink_is_read_by_its_log(spark, registered, sink):
    assert sorted(row.a for row in spark.read.parquet(str(sink)).collect()) == list(range(40))
    found = numparq.read_parquet(sink)
    assert sorted(found["a"]) == list(range(40))
    assert sorted(found["p"].unique()) == ["x y0", "x y1"]
    assert sorted(numparq.read_parquet(sink / "p=x y0")["a"]) == list(range(0, 40, 2))
    for read in (spark.read.format("numparq").load(str(sink)), numparq.spark.read(spark, sink)):
        assert sorted(row.a for row in read.collect()) == list(range(40))
    plain = spark.read.format("numparq").option("tableFormat", "parquet").load(str(sink))
    assert sorted(row.a for row in plain.collect()) == [-1, *range(40)]
    assert numparq.spark.profile(spark, sink).num_rows == 40


def test_sink_is_not_written(spark, registered, sink, tmp_path):
    before = sorted(sink.rglob("*"))
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="the folder belongs to a streaming sink of Spark"):
            spark.range(3).write.format("numparq").mode(mode).save(str(sink))
    with pytest.raises(numparq.UnsupportedError, match="the folder belongs to a streaming sink of Spark"):
        numparq.spark.optimize(spark, sink, force=True)
    assert sorted(sink.rglob("*")) == before
    report = numparq.spark.optimize(spark, sink, out=tmp_path / "out")
    assert report.after.rows == 40
