"""Sizes that Spark's planner sees, by which it chooses what a join broadcasts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.spark import tasks

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 1_000_000
FEW = pd.DataFrame({"k": [1, 7], "name": ["one", "seven"]})


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Write a million rows that compress well, and two rows."""
    folder = tmp_path_factory.mktemp("sizes")
    large = pd.DataFrame({"k": np.arange(ROWS) % 1000, "v": np.arange(ROWS)})
    numparq.to_parquet(large, folder / "large.parquet", row_group_size=200_000, sorting_columns=["v"])
    numparq.to_parquet(FEW, folder / "few.parquet")
    return str(folder / "large.parquet"), str(folder / "few.parquet")


def planned_bytes(df):
    return df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()


def broadcast_plan(df):
    """Return the physical plan, as planned before anything runs."""
    return df._jdf.queryExecution().executedPlan().toString()


def key_only(frame):
    return frame[["k"]]


def test_a_read_and_map_pandas_have_the_size_of_their_rows(spark, paths):
    large, few = paths
    per_row = 8 + 8 + 8  # Spark's own estimate of two bigint
    assert per_row * ROWS <= planned_bytes(numparq.spark.read(spark, large)) < per_row * ROWS * 1.01
    assert 16 * ROWS <= planned_bytes(numparq.spark.map_pandas(spark, large, key_only, "k bigint")) < 16 * ROWS * 1.01
    assert planned_bytes(numparq.spark.read(spark, few)) < 10_000
    pruned = numparq.spark.read(spark, large, filters="v < 1000")
    assert planned_bytes(pruned) <= per_row * 200_000 * 1.01
    unread = numparq.spark.read(spark, [large, few], ["k"], plan_files=1)  # its footers are read by tasks
    assert planned_bytes(unread) > 10_000


def test_nothing_is_small(spark, paths):
    none = numparq.spark.read(spark, paths[0], filters="v < 0")
    assert planned_bytes(none) < 10_000
    assert none.collect() == []
    assert none.schema == numparq.spark.read(spark, paths[0]).schema


@pytest.mark.parametrize("of", ["read", "map_pandas"])
def test_a_join_broadcasts_the_small_side_only(spark, paths, of):
    def frame(path, schema):
        if of == "read":
            return numparq.spark.read(spark, path)
        return numparq.spark.map_pandas(spark, path, lambda frame: frame, schema)

    large, few = frame(paths[0], "k bigint, v bigint"), frame(paths[1], "k bigint, name string")
    joined = large.join(few, "k")
    assert "BroadcastHashJoin" in broadcast_plan(joined)
    assert "BuildRight" in broadcast_plan(joined)
    assert joined.count() == 2 * ROWS // 1000
    both = large.join(large.withColumnRenamed("v", "w"), "k")
    assert "BroadcastHashJoin" not in broadcast_plan(both)
    assert large.join(few, "k", "left_anti").count() == ROWS - 2 * ROWS // 1000
    assert large.union(large).filter("v = 3").count() == 2


def test_a_broadcast_can_be_asked_of_the_data_source(spark, registered, paths):
    large, few = (spark.read.format("numparq").load(path) for path in paths)
    assert "BroadcastHashJoin" not in broadcast_plan(large.join(few, "k"))
    hinted = large.join(few.hint("broadcast"), "k")
    assert "BroadcastHashJoin" in broadcast_plan(hinted)
    assert hinted.count() == 2 * ROWS // 1000


def test_another_spark_has_small_numbers(spark, paths, monkeypatch):
    def fails(*arguments):
        raise AttributeError("no JVM")

    monkeypatch.setattr(tasks, "_range_of_size", fails)
    monkeypatch.setattr(tasks, "_default_bytes", lambda *arguments: 0)
    assert numparq.spark.read(spark, paths[1]).count() == 2
