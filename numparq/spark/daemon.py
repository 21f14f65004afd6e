"""The daemon that Spark's Python workers are forked from, with everything in it that a worker needs first.

Spark starts it as ``python -m numparq.spark.daemon <module of the worker>`` where `spark.python.daemon.module` says so
(`numparq.spark.configure` does). It imports numparq, pandas and pyarrow, loads the kernels, and goes on as Spark's own
daemon: so a worker has all of that from its first instant, in memory that all workers of an executor share.

Nothing here may start a thread, since a forked process has only the thread that forked; and nothing may be written to
the standard output, on which Spark reads where the daemon listens. A warm-up that fails costs its own gain and no more:
workers then do for themselves what is left.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What a worker that reads or writes with numparq imports; those that need what is not installed are left to it.
MODULES = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "numparq.api",
    "numparq.dataset.writing",
    "numparq.spark.reader",
    "numparq.spark.writer",
    "numparq.spark.jobs",
    "numparq.spark.tasks",
    "numparq.spark.decoders",
)
# jemalloc, inside pyarrow, has a thread of its own from the import on, unless it is told otherwise.
_NO_THREADS = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def main() -> None:
    """Warm up, then be Spark's daemon until Spark ends it."""
    with _output_elsewhere():
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
    with _settings(_NO_THREADS):
        for name in (*MODULES, *([worker] if worker.startswith("pyspark") else [])):
            _attempt(_import, name)
    _attempt(_load_kernels)
    _attempt(_rehearse)
    _give_workers_their_own_chance()
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
    from ..kernels import preload
    from ..metadata.footer import warm_up

    warm_up()
    preload()


def _rehearse() -> None:
    from .rehearsal import rehearse

    rehearse()


def _give_workers_their_own_chance() -> None:
    """Seed NumPy's global generator anew in each worker: all would draw the numbers of the one they are copies of."""
    daemon = os.getpid()

    def seed() -> None:
        if os.getppid() == daemon:  # and not what a worker forks, which is the user's affair
            sys.modules["numpy"].random.seed()

    if "numpy" in sys.modules:
        os.register_at_fork(after_in_child=seed)


@contextmanager
def _settings(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for a while, but for those that have a value."""
    mine = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            del os.environ[name]


@contextmanager
def _output_elsewhere() -> Iterator[None]:
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


if __name__ == "__main__":
    main()
