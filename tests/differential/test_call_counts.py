"""Calls of Python functions in a warm read, pandas' own included: ceilings that may only fall."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CEILINGS = {
    "column": 142,
    "all columns": 278,
    "filter": 320,
    "range": 367,
    "isin": 431,
    "look-up": 442,
    "row range": 224,
    "200 row groups": 156,
    "100 small files": 4258,
}


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    command = [sys.executable, "-m", "support.differential.call_counts", str(tmp_path_factory.mktemp("calls"))]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CEILINGS)
def test_calls_of_a_warm_read(counts, name):
    assert counts[name] <= CEILINGS[name]
