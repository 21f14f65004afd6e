"""`numparq.spark.configure`: the settings it adds, and the user's settings it keeps. Starts no Java."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")

from pyspark import SparkContext
from pyspark.sql import SparkSession

from numparq.spark import configure

pytestmark = pytest.mark.pyspark

OURS = {
    "spark.python.daemon.module": "numparq.spark.daemon",
    "spark.executorEnv.NUMPARQ_THREADS": "1",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
}
CACHE = "spark.executorEnv.NUMPARQ_CACHE_DIR"


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """Clear Spark settings before each test and restore them afterwards."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "NUMPARQ_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_jvm", None)


def options(builder):
    return dict(builder._options)


def test_configure_settings():
    builder = SparkSession.builder.master("local[2]")
    assert configure(builder) is builder
    assert options(builder) == {"spark.master": "local[2]", **OURS}
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_cache_directory_of_driver_or_argument(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMPARQ_CACHE_DIR", "/shared/kernels")
    assert options(configure(SparkSession.builder))[CACHE] == "/shared/kernels"
    assert options(configure(SparkSession.builder, cache_dir=tmp_path))[CACHE] == str(tmp_path)


def test_python_argument():
    configure(SparkSession.builder, python="./environment/bin/python")
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"


def test_builder_settings_take_precedence():
    own = dict.fromkeys(OURS, "mine") | {"spark.pyspark.python": "/their/python", CACHE: "/their/cache"}
    builder = SparkSession.builder
    for name, value in own.items():
        builder.config(name, value)
    assert options(configure(builder, cache_dir="/mine")) == own
    assert os.environ["PYSPARK_PYTHON"] == "/their/python"


def test_settings_of_files_and_environment_take_precedence(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n\nspark.python.daemon.module   their.daemon\nspark.executorEnv.NUMPARQ_THREADS=4\nalone\n"
    )
    arguments = "--master yarn --conf 'spark.executorEnv.NUMBA_NUM_THREADS=3' --conf=a.b=1 pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    monkeypatch.setenv("PYSPARK_PYTHON", "/their/python")
    assert options(configure(SparkSession.builder)) == {}
    assert os.environ["PYSPARK_PYTHON"] == "/their/python"


def test_spark_connect_sessions_are_unchanged(monkeypatch):
    remote = SparkSession.builder.remote("sc://somewhere")
    assert options(configure(remote)) == {"spark.remote": "sc://somewhere"}
    monkeypatch.setenv("SPARK_REMOTE", "sc://somewhere")
    assert options(configure(SparkSession.builder)) == {}
    assert "PYSPARK_PYTHON" not in os.environ


def test_importing_numparq_spark_does_not_import_pyspark():
    code = "import sys, numparq.spark, numparq.spark.daemon; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_failed_spark_start_prints_one_line(monkeypatch, capsys, tmp_path):
    sql = pytest.importorskip("pyspark.sql")
    from numparq.cli import main

    def fails(builder):
        raise RuntimeError("no such master\nat java.lang.Thread")

    monkeypatch.setattr(sql.SparkSession.Builder, "getOrCreate", fails)
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    assert main(["spark", "optimize", str(tmp_path), "--master", "nonsense"]) == 1
    assert capsys.readouterr().err == "numparq: Spark did not start: no such master\n"
