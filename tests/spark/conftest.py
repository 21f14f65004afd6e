"""The session of Spark that the tests here use."""

from __future__ import annotations

import os
import shutil
import sys

import pytest


@pytest.fixture(scope="session")
def spark():
    """One session for all, in a Java machine of 1 GB with two threads, which tries each task three times."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1", "spark.sql.timeType.enabled": "true", "spark.log.level": "OFF",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000", "spark.ui.showConsoleProgress": "false",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def rows_read_by_tasks(request, monkeypatch):
    """Have tasks read what the driver would read itself, for it is little, but where a test is about that."""
    if request.node.get_closest_marker("driver_reads") is None:
        from numparq.spark import few_rows

        monkeypatch.setattr(few_rows, "MOST_BYTES", 0)
