"""pandas' own tests of its Parquet functions, with numparq in place of the pyarrow engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("pyarrow", reason="pandas' tests of the pyarrow engine need pyarrow itself")

pytestmark = pytest.mark.slow
TESTS = Path(__file__).resolve().parents[1]
MODULE = Path(pd.__file__).parent / "tests" / "io" / "test_parquet.py"

from support.pandas_suite.expected import FAILURES, SKIPS  # noqa: E402


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, list[str]]:
    """Return the outcome of each test in pandas' module, with its message."""
    if not MODULE.exists():
        pytest.skip("pandas is installed without its tests")
    folder = tmp_path_factory.mktemp("suite")
    paths = [str(TESTS), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"OUTCOMES": str(folder / "outcomes"), "PYTHONPATH": os.pathsep.join(paths)}
    options = ["-p", "support.pandas_suite.plugin", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=short"]
    command = [sys.executable, "-m", "pytest", "-q", *options, f"--basetemp={folder / 'files'}", str(MODULE)]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return json.loads((folder / "outcomes").read_text())


def test_all_but_known_failures_pass(outcomes):
    failed = {name: text for name, (outcome, text) in outcomes.items() if outcome == "failed" and name not in FAILURES}
    assert not failed, f"{len(failed)} more fail, such as {next(iter(failed.items()))}"
    assert sum(outcome == "passed" for outcome, _ in outcomes.values()) >= 70


@pytest.mark.parametrize("name", FAILURES)
def test_known_failures_still_fail(outcomes, name):
    if name not in outcomes and pd.__version__ < "3.1":
        pytest.skip("this pandas does not have the test yet")
    outcome, text = outcomes[name]
    if outcome == "skipped":
        pytest.skip(text)
    assert outcome == "failed"


@pytest.mark.parametrize("name", FAILURES)
def test_documentation_lists_known_failures(name):
    page = TESTS.parent / "docs" / "pandas.md"
    if not page.exists():
        pytest.skip("no documentation beside the tests")
    assert f"`{name.partition('::')[2].partition('[')[0]}`" in page.read_text()


def test_skips_have_known_reasons(outcomes):
    skipped = {name: text for name, (outcome, text) in outcomes.items() if outcome == "skipped"}
    assert not {name: text for name, text in skipped.items() if not any(reason in text for reason in SKIPS)}
