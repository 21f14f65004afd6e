"""Calls of Python functions in a warm read, pandas' own included: ceilings that may only fall.

One call of each read keeps the tracebacks of errors short.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CEILINGS = {
    "column": 139,
    "all columns": 266,
    "filter": 300,
    "range": 347,
    "isin": 404,
    "look-up": 414,
    "row range": 214,
    "200 row groups": 152,
    "100 small files": 4083,  # 23 of them for each folder above, where tables of other systems are looked for
}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    command = [sys.executable, "-m", "support.differential.call_counts", str(tmp_path_factory.mktemp("calls"))]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CEILINGS)
def test_calls_of_a_warm_read(counts, name):
    assert counts[name] <= CEILINGS[name]
