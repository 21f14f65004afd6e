"""asv discovers the benchmarks; each class runs once on tiny data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from asv_benchmarks.workloads import WORKLOADS
from support.benchmarks import SCALE, needs_numparq

pytestmark = pytest.mark.slow  # of the benchmarks, not of numparq
ROOT = Path(__file__).resolve().parents[2]


def test_asv_discovers_the_benchmarks():
    """asv imports them with only the configuration's folder on the path."""
    code = "from benchmarks import against_pyarrow, read, write; print(len(read.Read.params))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "asv_benchmarks", capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(WORKLOADS)


@needs_numparq
@pytest.mark.parametrize("name", ["small", "wide-three"])
def test_asv_classes_run(monkeypatch, settings, name):
    monkeypatch.setenv("NUMPARQ_BENCH_DATA", str(settings.folder))
    monkeypatch.setenv("NUMPARQ_BENCH_SCALE", str(SCALE))
    monkeypatch.setenv("NUMPARQ_BENCH_REPEAT", "1")
    code = """if True:
        import inspect, sys
        from benchmarks import against_pyarrow, read
        for kind in (read.Read, against_pyarrow.Compare):
            instance = kind()
            instance.setup(sys.argv[1])
            for method, call in inspect.getmembers(instance, inspect.ismethod):
                if method.startswith(("time_", "peakmem_", "track_")):
                    print(method, call(sys.argv[1]))
    """
    subprocess.run([sys.executable, "-c", code, name], cwd=ROOT / "asv_benchmarks", check=True)


@pytest.mark.parametrize("name", ["lineitem-zstd"])
def test_asv_write_classes_run(monkeypatch, settings, name):
    monkeypatch.setenv("NUMPARQ_BENCH_DATA", str(settings.folder))
    monkeypatch.setenv("NUMPARQ_BENCH_SCALE", str(SCALE))
    monkeypatch.setenv("NUMPARQ_BENCH_REPEAT", "1")
    code = """if True:
        import inspect, sys
        from benchmarks import write
        for kind in (write.Write, write.CompareWriting):
            instance = kind()
            instance.setup(sys.argv[1])
            for method, call in inspect.getmembers(instance, inspect.ismethod):
                if method.startswith(("time_", "peakmem_", "track_")):
                    print(method, call(sys.argv[1]))
            getattr(instance, "teardown", print)(sys.argv[1])
    """
    subprocess.run([sys.executable, "-c", code, name], cwd=ROOT / "asv_benchmarks", check=True)
    assert not list(settings.folder.glob("written-*"))


@pytest.mark.parametrize("mode", ["plain", "two-columns", "ctr"])
def test_asv_classes_of_encryption_run(monkeypatch, mode):
    monkeypatch.setenv("NUMPARQ_BENCH_SCALE", str(SCALE))
    monkeypatch.setenv("NUMPARQ_BENCH_REPEAT", "1")
    code = """if True:
        import inspect, sys
        from benchmarks.encryption import Encryption
        instance = Encryption()
        instance.setup(sys.argv[1])
        for method, call in inspect.getmembers(instance, inspect.ismethod):
            if method.startswith(("time_", "track_")):
                print(method, call(sys.argv[1]))
    """
    subprocess.run([sys.executable, "-c", code, mode], cwd=ROOT / "asv_benchmarks", check=True)
