"""Daemon that Spark forks Python workers from: imports numparq, loads kernels, rehearses a read."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numparq.kernels.kernel_groups import KernelGroup

# Modules that a worker of numparq imports; those with missing dependencies are skipped.
MODULES = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "numparq.api.read",
    "numparq.api.write",
    "numparq.dataset.write",
    "numparq.spark.scan.reader",
    "numparq.spark.data_source.writer",
    "numparq.spark.jobs.pandas_jobs",
    "numparq.spark.tasks",
    "numparq.spark.udf",
)
# pyarrow's jemalloc starts a background thread on import unless disabled.
_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}

_ROWS = 64


def main() -> None:
    """Warm up, then run Spark's daemon until Spark ends it."""
    with _redirect_stdout():
        warm(sys.argv[1] if len(sys.argv) > 1 else "")
    from pyspark.daemon import manager

    manager()


def warm(worker: str = "") -> None:
    """Import and load what workers need, without starting a thread.

    `worker` is the module that Spark's workers will run, such as ``"pyspark.worker"``; imported if it is pyspark's.
    """
    with _environment(_NO_THREADS):
        for name in (*MODULES, *([worker] if worker.startswith("pyspark") else [])):
            _attempt(_import, name)
    _attempt(_load_kernels)
    _attempt(_rehearse)
    _reseed_workers()
    gc.collect()
    gc.freeze()  # otherwise a worker's first collection writes to shared pages and copies them


def _attempt(do: Callable[..., None], *args: str) -> None:
    """Run a step of the warm-up; on failure, log it on the executor and go on."""
    try:
        do(*args)
    except Exception:
        print(
            f"numparq.spark.daemon: warm-up step failed, left to the workers: {' '.join(args) or do.__name__}",
            file=sys.stderr,
        )
        traceback.print_exc()


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not error.name or name.startswith(error.name + ".") or name == error.name:
            return  # not part of this installation
        raise


def _load_kernels() -> None:
    from numparq.format.footer.file_metadata import warm_up
    from numparq.kernels.kernel_groups import preload

    warm_up()
    preload()


def _reseed_workers() -> None:
    """Reseed NumPy's global generator in each worker; otherwise all forks would draw the same numbers."""
    daemon = os.getpid()

    def seed() -> None:
        if os.getppid() == daemon:  # only workers themselves, not processes that they fork
            sys.modules["numpy"].random.seed()

    if "numpy" in sys.modules:
        os.register_at_fork(after_in_child=seed)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables that are unset, while the body runs."""
    mine = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


@contextmanager
def _redirect_stdout() -> Iterator[None]:
    """Redirect standard output to standard error, child processes included, while the body runs."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _rehearse() -> None:
    """Write and read a small table in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="numparq-") as folder:
        path = os.path.join(folder, "rehearsal.parquet")
        _rehearse_write(path)
        _rehearse_read(path)


def _rehearse_write(path: str) -> None:
    """Write with numparq if its write kernels are loaded, else with pyarrow."""
    from numparq.kernels.kernel_groups import nested_encode_kernels, statistics_kernels, writing_kernels

    if _are_loaded(nested_encode_kernels, statistics_kernels, writing_kernels):
        from numparq.api.write import to_parquet

        to_parquet(_rehearsal_frame(), path, threads=1)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(
            pa.Table.from_pandas(_rehearsal_frame(), nthreads=1), path, use_dictionary=["text"], write_page_index=True
        )


def _rehearse_read(path: str) -> None:
    """Read files and splits, with a filter as well if its kernels are loaded."""
    from numparq.api.read import read_parquet
    from numparq.dataset.splits.table import split_table
    from numparq.kernels.kernel_groups import predicate_kernels, selection_kernels

    wanted = [("number", ">", 3)]
    for filters in (None, wanted) if _are_loaded(predicate_kernels, selection_kernels) else (None,):
        read_parquet(path, filters=filters, threads=1)
        table = split_table(path, filters=filters)
        for split in table.splits:
            table.frame(split)
            list(table.tables(split))


def _are_loaded(*groups: KernelGroup) -> bool:
    return all(group.mode for group in groups)


def _rehearsal_frame() -> Any:
    import numpy as np
    import pandas as pd

    numbers = np.arange(_ROWS)
    return pd.DataFrame(
        {
            "number": numbers,
            "real": numbers / 2,
            "flag": numbers % 2 == 0,
            "moment": pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(numbers, "s"),
            "text": [f"text {number % 7}" for number in numbers],
            "other": [f"text {number}" if number % 3 else None for number in numbers],
        }
    )


if __name__ == "__main__":
    main()
