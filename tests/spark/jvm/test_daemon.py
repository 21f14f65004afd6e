"""A session configured for numparq: workers start warm, and the data source registers itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECKS = Path(__file__).resolve().parents[2] / "support" / "spark" / "daemon_checks.py"
TOP_LEVEL = Path(numparq.__file__).parent / "spark" / "toplevel"


@pytest.fixture(scope="module")
def daemon_report(tmp_path_factory):
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java")
    if not Path("/proc/self/task").exists():
        pytest.skip("who is whose parent is found through Linux' /proc")
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    above = [str(TOP_LEVEL)] if TOP_LEVEL.exists() else []  # otherwise it is installed
    settings = {"PYTHONPATH": os.pathsep.join([*above, *known])}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")} | settings
    folder = tmp_path_factory.mktemp("daemon")
    done = subprocess.run(
        [sys.executable, str(CHECKS), str(folder)], env=environment, capture_output=True, text=True, timeout=500
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stdout[-1000:] + done.stderr[-4000:]
    return json.loads(lines[-1])


def test_workers_are_forked_from_our_daemon(daemon_report):
    workers = daemon_report["workers"]
    assert len({worker["pid"] for worker in workers}) == 2
    for worker in workers:
        assert worker["parent"][-2] == "pyspark.worker"
        assert worker["python"] == sys.executable
        assert any(word.endswith("daemon.py") and "numparq" in word for word in worker["parent"]) or (
            "numparq.spark.daemon" in worker["parent"]
        )


def test_daemon_has_one_thread(daemon_report):
    assert [worker["threads of parent"] for worker in daemon_report["workers"]] == [1, 1]


def test_modules_and_kernels_load_before_the_first_task(daemon_report):
    assert len(daemon_report["workers"]) == 2
    for worker in daemon_report["workers"]:
        assert {"pandas", "numparq.api.read", "numparq.api.write", "numparq.spark.jobs.pandas_jobs"} <= set(
            worker["loaded"]
        )
        assert "numparq.dataset.splits.table" in worker["loaded"]
        assert worker["kernels"] == "object"
        assert "numba" not in worker["loaded"]


def test_settings_reach_the_workers(daemon_report):
    assert len(daemon_report["workers"]) == 2
    for worker in daemon_report["workers"]:
        assert worker["threads"] == 1
        assert worker["numba threads"] == "1"
        assert worker["own"] == "kept"
        assert worker["cache"] == os.environ.get("NUMPARQ_CACHE_DIR")


def test_workers_have_different_random_seeds(daemon_report):
    one, other = (worker["drawn"] for worker in daemon_report["workers"])
    assert one != other


def test_data_source_registers_itself(daemon_report):
    assert daemon_report["read"] == [[1, 2, 3], [1, 2, 3]]
