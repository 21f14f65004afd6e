"""First use of each entry point by several threads at once, in a fresh process."""

from __future__ import annotations

import subprocess
import sys

import pytest

THREADS = 8
# Entry points, each as a function of a path to a small file and a number of the thread.
ENTRY_POINTS = {
    "read_parquet": "numparq.read_parquet(path)",
    "filters": "numparq.read_parquet(path, filters=numparq.col('a') > 1)",
    "categories": "numparq.read_parquet(path, ['b'], categories=['b'])",
    "nullable": "numparq.read_parquet(path, dtype_backend='numpy_nullable')",
    "memory_limit": "numparq.read_parquet(path, memory_limit=1 << 30)",
    "on_error": "numparq.read_parquet(path, on_error='skip')",
    "virtual columns": "numparq.read_parquet(path, include=['file', 'row_number'])",
    "glob": "numparq.read_parquet(path.replace('rides', 'rides*'))",
    "ParquetFile": "numparq.ParquetFile(path).plan(filters=numparq.col('a') == 1).explain()",
    "iter_batches": "list(numparq.ParquetFile(path).iter_batches(batch_rows=2))",
    "explode": "numparq.read_parquet(path, ['c'], explode='c.list.element')",
    "Dataset": "numparq.Dataset([path]).read(filters=[('a', '=', 2)])",
    "to_parquet": "numparq.to_parquet(frame, f'{path}{thread}')",
    "DatasetWriter": "numparq.to_parquet(frame, f'{path}{thread}.d', partition_cols=['a'])",
    "variant": "numparq.variant.decode(*numparq.variant.encode({'a': [1, None]}))",
    "verify": "numparq.verify(path)",
    "salvage": "numparq.salvage(path, f'{path}{thread}.salvaged')",
    "profile": "__import__('numparq.tools.profile').tools.profile.profile_files(path)",
    "pandas": "numparq.pandas.register(); frame.numparq",
}
# Also run in the quick suite; the others in the slow one.
QUICK = {"read_parquet", "to_parquet", "Dataset"}

PROGRAM = """
import sys, threading, traceback
import pandas
import numparq
path, call, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})
barrier, errors = threading.Barrier(threads), []
calls = [compile(part, call, "eval") for part in call.split("; ")]
def use(thread):
    barrier.wait()
    try:
        for part in calls:
            eval(part, {"numparq": numparq, "frame": frame, "path": path, "thread": thread})
    except BaseException:
        errors.append(traceback.format_exc())
all_threads = [threading.Thread(target=use, args=(number,)) for number in range(threads)]
for each in all_threads: each.start()
for each in all_threads: each.join()
sys.exit("".join(errors[:1]) or None)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    pandas = pytest.importorskip("pandas")
    import numparq

    path = tmp_path_factory.mktemp("first_use") / "rides.parquet"
    numparq.to_parquet(pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "c": [[1], [2, 3], []]}), path)
    return str(path)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ENTRY_POINTS]
)
def test_eight_threads_use_an_entry_point_first(name, path):
    """Lazy imports in circles failed so in 11 of 28 processes."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, ENTRY_POINTS[name], str(THREADS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
