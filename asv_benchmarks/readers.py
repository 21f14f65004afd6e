"""Readers of numparq and its peers behind one signature, with equal thread counts."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pandas as pd

Loaded = TypeVar("Loaded")

Read = Callable[[Path, "list[str] | None"], pd.DataFrame]
"""``read(path, columns)``: the frame; columns None means all. `_DATES` may also get ``dates``."""


class ReaderUnavailable(Exception):
    """A reader is not installed, or its threads cannot be limited."""


def _numparq(threads: int) -> Read:
    import numparq

    if not hasattr(numparq, "read_parquet"):
        raise ReaderUnavailable("numparq has no read_parquet")
    return lambda path, columns, dates="objects": numparq.read_parquet(
        path, columns=columns, threads=threads, dates=dates
    )


def _pyarrow(threads: int) -> Read:
    import pyarrow as pa

    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)
    return lambda path, columns, dates="objects": pd.read_parquet(
        path, engine="pyarrow", columns=columns, to_pandas_kwargs={"date_as_object": dates == "objects"}
    )


def _polars(threads: int) -> Read:
    import polars as pl

    if pl.thread_pool_size() != threads:
        raise ReaderUnavailable(f"polars was imported with {pl.thread_pool_size()} threads")
    return lambda path, columns: pl.read_parquet(path, columns=columns).to_pandas()


def _duckdb(threads: int) -> Read:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})

    def read(path: Path, columns: list[str] | None) -> pd.DataFrame:
        names = "*" if columns is None else ", ".join(f'"{name}"' for name in columns)
        return connection.execute(f"SELECT {names} FROM read_parquet(?)", [str(path)]).df()

    return read


def _fastparquet(threads: int) -> Read:
    # It knows no threads of its own. pandas' engine="fastparquet" is deprecated and does no more than this.
    import fastparquet

    return lambda path, columns: fastparquet.ParquetFile(str(path)).to_pandas(columns=columns)


_MAKERS: dict[str, Callable[[int], Read]] = {
    "numparq": _numparq,
    "pyarrow": _pyarrow,
    "polars": _polars,
    "duckdb": _duckdb,
    "fastparquet": _fastparquet,
}

_DATES = ("numparq", "pyarrow")  # readers that make `datetime.date` objects unless told otherwise

PEERS = tuple(name for name in _MAKERS if name != "numparq")


@dataclass(frozen=True)
class Reader:
    """A loaded reader."""

    name: str
    version: str
    read: Read

    def with_dates(self, dates: str) -> Reader:
        """Return the reader that makes ``"objects"`` or ``"datetime64"`` of dates, if it can choose."""
        if dates == "objects" or self.name not in _DATES:
            return self
        return replace(self, read=partial(self.read, dates=dates))


def limit_threads(threads: int) -> None:
    """Set the environment that limits threads, before readers are imported and for child processes."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)


def load_peer(makers: Mapping[str, Callable[[int], Loaded]], name: str, threads: int) -> tuple[Loaded, str]:
    """Import one reader or writer by its maker, hold it to `threads` threads, and return it with its version.

    Raises
    ------
    ReaderUnavailable
        When it cannot be imported or limited; the message is for the reader of the table.
    """
    limit_threads(threads)
    try:
        return makers[name](threads), importlib.metadata.version(name)
    except ImportError as error:
        raise ReaderUnavailable(f"not installed ({error})") from error


def load(name: str, threads: int) -> Reader:
    """Import one reader, as `load_peer`."""
    read, version = load_peer(_MAKERS, name, threads)
    return Reader(name, version, read)


def available(
    names: Sequence[str], threads: int, load_one: Callable[[str, int], Loaded]
) -> tuple[list[Loaded], dict[str, str]]:
    """Load what can be loaded, by `load` or by what does the same for writers.

    Returns
    -------
    list of Reader
        In the order of `names`.
    dict of str to str
        For each of the others, why not.
    """
    found, missing = [], {}
    for name in names:
        try:
            found.append(load_one(name, threads))
        except ReaderUnavailable as reason:
            missing[name] = str(reason)
    return found, missing


def load_all(names: Sequence[str], threads: int) -> tuple[list[Reader], dict[str, str]]:
    """Load the available readers; return reasons for the others."""
    return available(names, threads, load)


def peers_named(names: str | None) -> list[str]:
    """Peers of a comma-separated list, or all.

    Raises
    ------
    ValueError
        When a name is not known.
    """
    wanted = list(PEERS) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in PEERS]
    if unknown:
        raise ValueError(f"no peer named {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    return wanted
