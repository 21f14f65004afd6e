"""Prints facts of a session set up by `numparq.spark.configure` as JSON; run by a test.

The module ``pyspark_numparq`` is installed as usual, and `numparq.spark.register` is called besides.
"""

from __future__ import annotations

import json
import os
import sys

import pandas as pd
from pyspark.sql import SparkSession

import numparq

QUIET = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
}


def seen_in_a_worker(batches):
    """Yield the state of a worker before it does anything."""
    loaded = sorted(name for name in sys.modules if name.startswith("numparq") or name in ("pandas", "numba"))
    with open(f"/proc/{os.getppid()}/cmdline", "rb") as file:
        parent = file.read().split(b"\0")
    threads = len(os.listdir(f"/proc/{os.getppid()}/task"))
    import numpy
    import pyarrow as pa

    from numparq.kernels.kernel_groups import kernels
    from numparq.util.arguments import thread_count

    found = {
        "loaded": loaded,
        "parent": [word.decode() for word in parent],
        "threads of parent": threads,
        "pid": os.getpid(),
        "kernels": kernels.mode,
        "threads": thread_count(None),
        "drawn": float(numpy.random.rand()),  # noqa: NPY002
        "python": sys.executable,
        "numba threads": os.environ.get("NUMBA_NUM_THREADS"),
        "cache": os.environ.get("NUMPARQ_CACHE_DIR"),
        "own": os.environ.get("OWN"),
    }
    list(batches)
    import time

    time.sleep(1)  # so that the other worker is a process of its own
    yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})


def frames_of(spark, path):
    """Read with the data source, registered by itself and once more explicitly."""
    before = [row["n"] for row in spark.read.format("numparq").load(path).collect()]
    numparq.spark.register(spark)
    return before, [row["n"] for row in spark.read.format("numparq").load(path).collect()]


def main(folder: str) -> None:
    """Run the checks and print the report."""
    builder = SparkSession.builder.master("local[2,3]").config("spark.executorEnv.OWN", "kept")
    for name, value in QUIET.items():
        builder = builder.config(name, value)
    spark = numparq.spark.configure(builder).getOrCreate()
    path = f"{folder}/a.parquet"
    numparq.to_parquet(pd.DataFrame({"n": [1, 2, 3]}), path)
    workers = [
        json.loads(row["found"])
        for row in spark.range(0, 2, 1, 2).mapInArrow(seen_in_a_worker, "found string").collect()
    ]
    print(json.dumps({"workers": workers, "read": frames_of(spark, path)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
