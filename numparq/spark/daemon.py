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
    from numparq.kernels import KernelGroup

# What a worker that reads or writes with numparq imports; those that need what is not installed are left to it.
MODULES = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "numparq.api",
    "numparq.dataset.write",
    "numparq.spark.scan.reader",
    "numparq.spark.data_source.writer",
    "numparq.spark.jobs.pandas_jobs",
    "numparq.spark.tasks",
    "numparq.spark.udf",
)
# jemalloc, inside pyarrow, has a thread of its own from the import on, unless it is told otherwise.
_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}

_ROWS = 64


def main() -> None:
    """Warm up, then be Spark's daemon until Spark ends it."""
    with _redirect_stdout():
        warm(sys.argv[1] if len(sys.argv) > 1 else "")
    from pyspark.daemon import manager

    manager()


def warm(worker: str = "") -> None:
    """Import and load what workers need, without a thread.

    Parameters
    ----------
    worker : str
        The module that a worker will run, as Spark names it: ``"pyspark.worker"``. Imported, too, if it is Spark's.
    """
    with _environment(_NO_THREADS):
        for name in (*MODULES, *([worker] if worker.startswith("pyspark") else [])):
            _attempt(_import, name)
    _attempt(_load_kernels)
    _attempt(_rehearse)
    _reseed_workers()
    gc.collect()
    gc.freeze()  # else the first collection in a worker writes to, and so copies, the memory that all share


def _attempt(do: Callable[..., None], *args: str) -> None:
    """Do a part of the warm-up; where it fails, say so in the log of the executor and go on."""
    try:
        do(*args)
    except Exception:
        print(f"numparq.spark.daemon: left to the workers: {' '.join(args) or do.__name__}", file=sys.stderr)
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
    from numparq.kernels import preload

    warm_up()
    preload()


def _reseed_workers() -> None:
    """Seed NumPy's global generator anew in each worker: all would draw the numbers of the one they are copies of."""
    daemon = os.getpid()

    def seed() -> None:
        if os.getppid() == daemon:  # and not what a worker forks, which is the user's affair
            sys.modules["numpy"].random.seed()

    if "numpy" in sys.modules:
        os.register_at_fork(after_in_child=seed)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a while, but for those that have a value."""
    mine = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


@contextmanager
def _redirect_stdout() -> Iterator[None]:
    """Send to the error output what anybody prints meanwhile, child processes too."""
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
    """Write and read a table of a few kinds of columns in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="numparq-") as folder:
        path = os.path.join(folder, "rehearsal.parquet")
        _rehearse_write(path)
        _rehearse_read(path)


def _rehearse_write(path: str) -> None:
    """Write by numparq where its kernels for that are loaded, else by pyarrow."""
    from numparq.kernels import nested_encode_kernels, statistics_kernels, writing_kernels

    if _are_loaded(nested_encode_kernels, statistics_kernels, writing_kernels):
        from numparq.api import to_parquet

        to_parquet(_rehearsal_frame(), path, threads=1)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(
            pa.Table.from_pandas(_rehearsal_frame(), nthreads=1), path, use_dictionary=["text"], write_page_index=True
        )


def _rehearse_read(path: str) -> None:
    """Read files and splits; by a filter, too, where the kernels for that are loaded."""
    from numparq.api import read_parquet
    from numparq.dataset.splits.table import split_table
    from numparq.kernels import predicate_kernels, selection_kernels

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
