"""Benchmarks of data-skipping stores, each once on tiny data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.benchmarks import needs_numparq

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq
ROOT = Path(__file__).resolve().parents[2]
CODE = """if True:
    import inspect
    from benchmarks import skipping
    for kind in (skipping.SmallFiles, skipping.ManyEntries):
        for name in kind.params:
            instance = kind()
            instance.setup(name)
            for method, call in inspect.getmembers(instance, inspect.ismethod):
                if method.startswith(("time_", "track_")):
                    result = call(name)
                    print(kind.__name__, name, method, result if isinstance(result, int) else "")
            instance.teardown(name)
"""


@needs_numparq
def test_each_benchmark_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMPARQ_BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("NUMPARQ_BENCH_SCALE", "0.001")
    run = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT / "asv_benchmarks", capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    left = [line for line in run.stdout.splitlines() if "track_files_left" in line]
    assert left[:2] == ["ManyEntries value list track_files_left 1", "ManyEntries min max track_files_left 1"]
