"""Row counts of ``numparq.spark.read``: from footers, or from the filter columns alone."""

from __future__ import annotations

import shutil

import pytest

import numparq
from support.spark.source_table import ROWS, load_numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("registered")]


def test_count_opens_no_file_after_planning(spark, stored_folder, tmp_path, monkeypatch):
    folder = shutil.copytree(stored_folder, tmp_path / "copy")
    frame = numparq.spark.read(spark, folder)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", None)
        patch.setattr("numparq.spark.scan.split_frame.map_tasks", None)
        assert frame.count() == ROWS
    nothing = numparq.spark.read(spark, folder, [])
    source = load_numparq(spark, str(folder), columns="")
    shutil.rmtree(folder)
    assert nothing.count() == source.count() == ROWS
    with pytest.raises(FileNotFoundError, match="was removed since"):
        frame.count()
    assert source.rdd.getNumPartitions() == 1
    nothing.createOrReplaceTempView("nothing")
    assert spark.sql("select count(*) from nothing").collect() == [(ROWS,)]
    assert len(nothing.collect()[0]) == len(source.collect()[0]) == 0


def test_count_with_filters_equals_spark(spark, stored_folder):
    expected = spark.read.parquet(stored_folder).filter("n > 10").count()
    found = numparq.spark.read(spark, stored_folder, filters="n > 10")
    assert found.count() == expected == len(found.collect()) > 0
    assert numparq.spark.read(spark, stored_folder, ["s"], "key > 100000").count() == 0


def test_count_fills_the_cache(spark, stored_folder, tmp_path):
    folder = shutil.copytree(stored_folder, tmp_path / "copy")
    frame = numparq.spark.read(spark, folder, ["row"]).cache()
    assert frame.count() == ROWS
    shutil.rmtree(folder)
    assert frame.agg({"row": "sum"}).collect() == [(sum(range(ROWS)),)]
    frame.unpersist()
