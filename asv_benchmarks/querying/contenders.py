"""numparq and its peers behind one signature for queries, each held to the same number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from asv_benchmarks.querying import conditions
from asv_benchmarks.querying.task import Task
from asv_benchmarks.readers import available, load

Run = Callable[[Task], pd.DataFrame]
"""``run(task)``: the rows asked for, in any order."""


def _numparq(threads: int) -> Run:
    import numparq

    def run(task: Task) -> pd.DataFrame:
        return numparq.read_parquet(
            task.path, task.columns, conditions.for_numparq(task.terms), filesystem=task.store, threads=threads
        )

    return run


def _read_all(threads: int) -> Run:
    import numparq

    def run(task: Task) -> pd.DataFrame:
        frame = numparq.read_parquet(task.path, task.columns, threads=threads)
        return frame[conditions.mask_of(frame, task.terms)]

    return run


def _pyarrow(threads: int) -> Run:
    def run(task: Task) -> pd.DataFrame:
        return pd.read_parquet(
            str(task.path), engine="pyarrow", columns=task.columns, filters=conditions.for_pyarrow(task.terms),
            filesystem=task.store,
        )  # fmt: skip

    return run


def _dataset(threads: int) -> Run:
    import pyarrow.dataset as ds

    def run(task: Task) -> pd.DataFrame:
        dataset = ds.dataset(str(task.path), format="parquet", filesystem=task.store)
        return dataset.to_table(task.columns, conditions.for_pyarrow(task.terms)).to_pandas()

    return run


def _polars(threads: int) -> Run:
    import polars as pl

    def run(task: Task) -> pd.DataFrame:
        lazy = pl.scan_parquet(task.path)
        if task.terms:
            lazy = lazy.filter(conditions.for_polars(task.terms))
        if task.columns is not None:
            lazy = lazy.select(task.columns)
        return lazy.collect().to_pandas()

    return run


def _duckdb(threads: int) -> Run:
    import duckdb

    near = duckdb.connect(config={"threads": threads})
    # What has been fetched is to be fetched again: otherwise the second turn would not ask the store at all.
    far = duckdb.connect(config={"threads": threads, "enable_external_file_cache": False})

    def run(task: Task) -> pd.DataFrame:
        names = "*" if task.columns is None else ", ".join(conditions.quoted(name) for name in task.columns)
        query = f"SELECT {names} FROM read_parquet(?){conditions.for_sql(task.terms)}"
        if task.store is None:
            return near.execute(query, [str(task.path)]).df()
        if far.filesystem_is_registered(task.store.protocol):
            far.unregister_filesystem(task.store.protocol)
        far.register_filesystem(task.store)
        return far.execute(query, [f"{task.store.protocol}://{task.path}"]).df()

    return run


@dataclass(frozen=True)
class Kind:
    """A way to query: whose it is (as `readers` has it), how it is made, and whether it takes an fsspec file system."""

    reader: str
    make: Callable[[int], Run]
    takes_stores: bool = True


KINDS: dict[str, Kind] = {
    "numparq": Kind("numparq", _numparq),
    "pyarrow": Kind("pyarrow", _pyarrow),
    "dataset": Kind("pyarrow", _dataset),
    "polars": Kind("polars", _polars, takes_stores=False),
    "duckdb": Kind("duckdb", _duckdb),
    "read-all": Kind("numparq", _read_all, takes_stores=False),
}
"""By name: ``pyarrow`` is pandas with pyarrow, ``dataset`` `pyarrow.dataset`, ``read-all`` numparq and then a mask."""


@dataclass(frozen=True)
class Contender:
    """One that can be asked."""

    name: str
    version: str
    run: Run
    takes_stores: bool = True


def load_contender(name: str, threads: int) -> Contender:
    """Import one and hold it to `threads` threads.

    Raises
    ------
    ReaderUnavailable
        When it cannot be imported or limited.
    """
    kind = KINDS[name]
    version = load(kind.reader, threads).version
    return Contender(name, version, kind.make(threads), kind.takes_stores)


def load_contenders(peers: Sequence[str], threads: int) -> tuple[list[Contender], dict[str, str]]:
    """Load all that are numparq's or one of these peers'; for those that are not there, say why not."""
    wanted = [name for name, kind in KINDS.items() if kind.reader in ("numparq", *peers)]
    return available(wanted, threads, load_contender)
