"""The same checks on threads, separate executors and a standalone master with two workers: rows, kills, errors."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECKS = Path(__file__).resolve().parents[2] / "support" / "spark" / "cluster_checks.py"
MASTERS = {"threads": "local[2,3]", "executors": "local-cluster[2,1,1024]", "standalone": None}
# Names of the functions marked as checks, parsed because an import would import pyspark.
NAMES = [
    node.name
    for node in ast.parse(CHECKS.read_text()).body
    if isinstance(node, ast.FunctionDef) and [ast.unparse(one) for one in node.decorator_list] == ["check"]
]


@pytest.fixture(scope="module", params=MASTERS)
def outcomes(request, tmp_path_factory):
    """Run all checks on one kind of cluster; return the failure of each by name."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java")
    if not Path("/proc/self/maps").exists():
        pytest.skip("whom to kill is found through Linux' /proc")
    from support.spark.standalone_cluster import standalone

    folder = tmp_path_factory.mktemp(request.param)
    master = MASTERS[request.param]
    with nullcontext(master) if master else standalone(folder / "spark") as url:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        environment.pop("PYSPARK_GATEWAY_PORT", None)
        done = subprocess.run(
            [sys.executable, str(CHECKS), url, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    assert found, done.stdout[-2000:] + done.stderr[-4000:]
    return {one["check"]: one["failure"] for one in found}


@pytest.mark.parametrize("name", NAMES)
def test_cluster_check(outcomes, name):
    assert name in outcomes, "Spark ended before"
    assert outcomes[name] is None, outcomes[name]
