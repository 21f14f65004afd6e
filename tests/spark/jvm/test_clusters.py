"""The same checks on threads, executors and a standalone master with two workers: rows, kills, errors, a zip file."""

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

from support.zipped_package import python_without_numparq, zip_package

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECKS = Path(__file__).resolve().parents[2] / "support" / "spark" / "cluster_checks.py"
ZIPPED_JOB = CHECKS.with_name("zipped_job.py")
MASTERS = {"threads": "local[2,3]", "executors": "local-cluster[2,1,1024]", "standalone": None}
# Names of the functions marked as checks, parsed because an import would import pyspark.
NAMES = [
    node.name
    for node in ast.parse(CHECKS.read_text()).body
    if isinstance(node, ast.FunctionDef) and [ast.unparse(one) for one in node.decorator_list] == ["check"]
]


@pytest.fixture(scope="module", autouse=True)
def environment():
    """Return the environment of a program that starts a Spark of its own."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("there is no Java")
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    variables.pop("PYSPARK_GATEWAY_PORT", None)
    return variables


@pytest.fixture(scope="module", params=MASTERS)
def outcomes(request, environment, tmp_path_factory):
    """Run all checks on one kind of cluster; return the failure of each by name."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("whom to kill is found through Linux' /proc")
    from support.spark.standalone_cluster import standalone

    folder = tmp_path_factory.mktemp(request.param)
    master = MASTERS[request.param]
    with nullcontext(master) if master else standalone(folder / "spark") as url:
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


def test_numparq_comes_as_a_zip_file(environment, tmp_path):
    """numparq is installed neither on the driver nor on the executors, which get it by ``--py-files``."""
    from support.spark.standalone_cluster import standalone

    archive, python = str(zip_package(tmp_path)), str(python_without_numparq(tmp_path))
    zipped = {**environment, "PYTHONPATH": archive, "PYSPARK_PYTHON": python}
    with standalone(tmp_path / "spark") as url:
        program = [python, str(ZIPPED_JOB), url, str(tmp_path / "rows"), archive]
        done = subprocess.run(program, env=zipped, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
