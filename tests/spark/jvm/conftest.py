"""Spark session for the tests of this folder, and the files that data source tests read."""

from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from support.spark.settings import SETTINGS
from support.spark.source_table import ROWS


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory):
    """Return a folder in which the session's JVM finds compiled classes."""
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="session")
def spark(java_classes):
    """One session for all tests: a JVM of 1 GB, two threads, three attempts per task."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        **SETTINGS,
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
        "spark.python.daemon.module": "numparq.spark.daemon",
        "spark.driver.extraClassPath": str(java_classes),
    }
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def read_by_tasks(request, monkeypatch):
    """Disable driver reads, which small files would use, except in tests marked `driver_reads`."""
    if request.node.get_closest_marker("driver_reads") is None:
        from numparq.spark.scan import local_frame

        monkeypatch.setattr(local_frame, "MAX_STORED_BYTES", 0)


# --- files for the data source tests ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registered(spark):
    """Register the data source."""
    numparq.spark.register(spark)
    numparq.spark.register(spark)  # registering again is harmless


@pytest.fixture(scope="module")
def frame():
    """Return rows with nulls."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        {
            "row": np.arange(ROWS),
            "n": pd.array(rng.integers(-50, 50, ROWS), "Int32"),
            "x": rng.normal(size=ROWS),
            "s": rng.choice(["a", "bb", "ccc", ""], ROWS),
            "key": np.arange(ROWS) // 10,
        }
    )
    rows.loc[rows.row % 7 == 0, "n"] = pd.NA
    return rows


@pytest.fixture(scope="module")
def stored_folder(frame, tmp_path_factory):
    """Write the frame to three files with several row groups, many pages and page indexes."""
    folder = tmp_path_factory.mktemp("stored")
    for number in range(3):
        part = frame.iloc[number * 1000 : (number + 1) * 1000]
        numparq.to_parquet(part, folder / f"{number}.parquet", index=False, row_group_size=400, max_rows_per_page=50)
    return str(folder)
