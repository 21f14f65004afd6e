"""The daemon that forks Spark's workers: warmed up, single-threaded, silent on stdout."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Spark has no daemon where there is no fork")

# Forks as Spark's daemon does, and prints what its children report.
WARM = """
import json, os, random, sys
import numparq
path = sys.argv[1]
from numparq.spark import daemon
daemon.warm()
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1

def child(do):
    reading, writing = os.pipe()
    if not os.fork():
        os.write(writing, json.dumps(do()).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        found = json.loads(file.read())
    os.wait()
    return found

def read():
    before = set(sys.modules)
    frame = numparq.read_parquet(path, threads=1)
    some = numparq.read_parquet(path, filters=[("n", ">", 4)], threads=1)
    from numparq.kernels.kernel_groups import kernels
    more = [name for name in sys.modules if name not in before and name.startswith("numparq")]
    return [len(frame), len(some), kernels.mode, more, "numba" in sys.modules]

def drawn():
    import numpy
    return [float(numpy.random.rand()), random.random()]

def forked_again():
    import numpy
    numpy.random.seed(3)
    return [child(drawn)[0], child(drawn)[0]]

print(json.dumps({"threads": threads, "read": [child(read), child(read)], "drawn": [child(drawn), child(drawn)],
                  "again": child(forked_again)}))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Write a file, and fill the kernel cache by reading it."""
    import pandas as pd

    import numparq

    path = tmp_path_factory.mktemp("warm") / "a.parquet"
    numparq.to_parquet(pd.DataFrame({"n": range(10), "s": list("abcdefghij")}), path)
    numparq.read_parquet(path, filters=[("n", ">", 4)])
    return path


def run(code, *arguments, **settings):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}  # as Spark sets it
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def daemon_report(file):
    import json

    return json.loads(run(WARM, file).stdout)


def test_no_thread_runs_before_the_fork(daemon_report):
    assert daemon_report["threads"] == 1


def test_workers_import_nothing_more_to_read(daemon_report):
    """The first read imports no numparq module and loads no kernel."""
    from numparq.kernels.kernel_groups import kernels

    kernels.load()
    assert daemon_report["read"] == [[10, 5, kernels.mode, [], False]] * 2


def test_workers_have_different_random_seeds(daemon_report):
    (first, first_random), (second, second_random) = daemon_report["drawn"]
    assert first != second
    assert first_random != second_random


def test_user_seed_survives_forks_of_a_worker(daemon_report):
    """A seed set by the user holds in processes forked by the worker, as without numparq."""
    assert daemon_report["again"][0] == daemon_report["again"][1]


def test_warm_up_prints_nothing_to_stdout():
    code = """
import subprocess, sys
from numparq.spark import daemon
with daemon._redirect_stdout():
    print("printed")
    subprocess.run([sys.executable, "-c", "print('by a child')"])
print("heard", flush=True)
"""
    done = run(code)
    assert done.stdout == "heard\n"
    assert "printed" in done.stderr
    assert "by a child" in done.stderr


@pytest.mark.parametrize("fault", ["ImportError('no such symbol')", "RuntimeError('anything')"])
def test_failed_warm_up_is_left_to_the_workers(tmp_path, fault):
    (tmp_path / "pyspark_of_a_kind.py").write_text(f"raise {fault}")
    code = """
import sys
from numparq.spark import daemon
daemon.MODULES = ("not.installed", "numpy")
daemon._load_kernels = daemon._rehearse = lambda: None
daemon.warm("pyspark_of_a_kind")
print("numpy" in sys.modules)
"""
    known = os.environ.get("PYTHONPATH", "")
    done = run(code, PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, [known])]))
    assert done.stdout == "True\n"
    assert "left to the workers: pyspark_of_a_kind" in done.stderr
    assert "not.installed" not in done.stderr


def test_environment_is_restored(monkeypatch):
    from numparq.spark.daemon import _environment

    monkeypatch.setenv("A_SETTING", "own")
    monkeypatch.delenv("ANOTHER", raising=False)
    with _environment({"A_SETTING": "ours", "ANOTHER": "ours"}):
        assert (os.environ["A_SETTING"], os.environ["ANOTHER"]) == ("own", "ours")
    assert os.environ["A_SETTING"] == "own"
    assert "ANOTHER" not in os.environ


def test_warm_up_compiles_only_read_kernels(tmp_path):
    """With an empty cache the first task would wait for every other kernel."""
    code = """
from numparq.kernels.compile import bind
compiled = []
bind._compiled = lambda group: compiled.append(group) or 1 / 0
bind._warn_fallback = lambda error: None
from numparq.kernels.compile import fallback
fallback.dispatchers = lambda known, folder: fallback.python_functions(known)
from numparq.spark import daemon
daemon.warm()
print(compiled)
"""
    assert run(code, NUMPARQ_CACHE_DIR=str(tmp_path / "empty"), NUMPARQ_KERNELS="object").stdout == "['reading']\n"
