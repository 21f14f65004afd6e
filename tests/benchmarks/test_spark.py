"""Spark benchmarks run once on tiny data, in a process of their own because their session has other settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not (ROOT / "asv_benchmarks").is_dir(), reason="asv_benchmarks is not part of this distribution")
def test_spark_queries_agree(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    pytest.importorskip("rich")
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "asv_benchmarks.peers", "--spark", "--scale", "0.001", "--repeat", "1"]
    command += ["--data", str(tmp_path / "data"), "--json", str(out)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    results = json.loads(out.read_text())["results"]
    assert {name: sorted(ways) for name, ways in results.items()} == {
        "aggregate": ["large batches", "native", "numparq"],
        "sums": ["native", "numparq"],
        "count": ["data source", "native", "numparq"],
        "count-sql": ["native", "numparq"],
        "write": ["native", "numparq"],
        "look-up": ["data source", "native", "numparq"],
        "look-up-bloom": ["data source", "native", "numparq"],
    }
    assert all(one["times"] and not one["difference"] for ways in results.values() for one in ways.values())
