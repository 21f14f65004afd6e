"""Query readers of numparq and its peers behind one signature, with equal thread counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from asv_benchmarks.queries import predicates
from asv_benchmarks.queries.task import Task
from asv_benchmarks.readers import available, load

Run = Callable[[Task], pd.DataFrame]
"""``run(task)``: the rows asked for, in any order."""


def _numparq(threads: int) -> Run:
    import numparq

    def run(task: Task) -> pd.DataFrame:
        return numparq.read_parquet(
            task.path, task.columns, predicates.for_numparq(task.terms), filesystem=task.store, threads=threads
        )

    return run


def _read_all(threads: int) -> Run:
    import numparq

    def run(task: Task) -> pd.DataFrame:
        frame = numparq.read_parquet(task.path, task.columns, threads=threads)
        return frame[predicates.mask_of(frame, task.terms)]

    return run


def _pyarrow(threads: int) -> Run:
    def run(task: Task) -> pd.DataFrame:
        return pd.read_parquet(
            str(task.path),
            engine="pyarrow",
            columns=task.columns,
            filters=predicates.for_pyarrow(task.terms),
            filesystem=task.store,
        )

    return run


def _dataset(threads: int) -> Run:
    import pyarrow.dataset as ds

    def run(task: Task) -> pd.DataFrame:
        hive = {"partitioning": "hive"} if task.is_folder else {}
        dataset = ds.dataset(str(task.path), format="parquet", filesystem=task.store, **hive)
        return dataset.to_table(task.columns, predicates.for_pyarrow(task.terms)).to_pandas()

    return run


def _polars(threads: int) -> Run:
    import polars as pl

    def run(task: Task) -> pd.DataFrame:
        hive = {"hive_partitioning": True, "missing_columns": "insert", "extra_columns": "ignore"}
        lazy = pl.scan_parquet(task.path, **(hive if task.is_folder else {}))
        if task.terms:
            lazy = lazy.filter(predicates.for_polars(task.terms))
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
        names = "*" if task.columns is None else ", ".join(predicates.quoted(name) for name in task.columns)
        # To unite the schemas, it opens all files: nobody does so who need not.
        hive = f", hive_partitioning = true, union_by_name = {task.unites}" if task.is_folder else ""
        query = f"SELECT {names} FROM read_parquet(?{hive}){predicates.for_sql(task.terms)}"
        path = f"{task.path}/**/*.parquet" if task.is_folder else str(task.path)
        if task.store is None:
            return near.execute(query, [path]).df()
        if far.filesystem_is_registered(task.store.protocol):
            far.unregister_filesystem(task.store.protocol)
        far.register_filesystem(task.store)
        return far.execute(query, [f"{task.store.protocol}://{path}"]).df()

    return run


@dataclass(frozen=True)
class QueryReaderKind:
    """A kind of query reader: its library (a name of `readers`), factory and capabilities (see `QueryReader`)."""

    reader: str
    make: Callable[[int], Run]
    takes_stores: bool = True
    unites: bool = False


KINDS: dict[str, QueryReaderKind] = {
    "numparq": QueryReaderKind("numparq", _numparq, unites=True),
    "pyarrow": QueryReaderKind("pyarrow", _pyarrow),
    "dataset": QueryReaderKind("pyarrow", _dataset),
    "polars": QueryReaderKind("polars", _polars, takes_stores=False),
    "duckdb": QueryReaderKind("duckdb", _duckdb, unites=True),
    "read-all": QueryReaderKind("numparq", _read_all, takes_stores=False),
}
"""By name: ``pyarrow`` is pandas with pyarrow, ``dataset`` `pyarrow.dataset`, ``read-all`` numparq and then a mask."""


@dataclass(frozen=True)
class QueryReader:
    """One that can be asked.

    Attributes
    ----------
    name, version : str
        Who it is.
    run : OptimizeRun
        Asks it.
    takes_stores : bool
        Whether it takes an fsspec file system.
    unites : bool
        Whether it finds, by itself, the columns of a folder that not all files have.
    """

    name: str
    version: str
    run: Run
    takes_stores: bool = True
    unites: bool = False


def load_query_reader(name: str, threads: int) -> QueryReader:
    """Import one and hold it to `threads` threads.

    Raises
    ------
    ReaderUnavailable
        When it cannot be imported or limited.
    """
    kind = KINDS[name]
    version = load(kind.reader, threads).version
    return QueryReader(name, version, kind.make(threads), kind.takes_stores, kind.unites)


def load_query_readers(peers: Sequence[str], threads: int) -> tuple[list[QueryReader], dict[str, str]]:
    """Load the readers of numparq and of the peers; return reasons for those missing."""
    wanted = [name for name, kind in KINDS.items() if kind.reader in ("numparq", *peers)]
    return available(wanted, threads, load_query_reader)
