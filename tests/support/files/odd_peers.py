"""What pyarrow, polars and duckdb read from an odd file: its rows as Python values, or None if they refuse it."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

Rows = list[Any]


def by_pyarrow(data: bytes, folder: Path) -> Rows:
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(data)).column("v").to_pylist()


def by_polars(data: bytes, folder: Path) -> Rows:
    import polars as pl

    return pl.read_parquet(io.BytesIO(data), columns=["v"])["v"].to_list()


def by_duckdb(data: bytes, folder: Path) -> Rows:
    path = folder / "odd.parquet"
    path.write_bytes(data)
    rows = _connection().execute("select v from read_parquet(?)", [str(path)]).fetchall()
    return [value for (value,) in rows]


@lru_cache(maxsize=1)
def _connection() -> Any:
    import duckdb

    return duckdb.connect()


PEERS: dict[str, Callable[[bytes, Path], Rows]] = {"pyarrow": by_pyarrow, "polars": by_polars, "duckdb": by_duckdb}


def attempt(read: Callable[..., Rows], *arguments: Any) -> Rows | None:
    """Return what a reader gives; None if it raises anything."""
    try:
        return read(*arguments)
    except BaseException as error:  # polars panics
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def agreed_rows(data: bytes, folder: Path) -> Rows | None:
    """Return the rows that all peers read alike; None if they differ, or any refuses."""
    first: Rows | None = None
    for read in PEERS.values():
        rows = attempt(read, data, folder)
        if rows is None or (first is not None and rows != first):
            return None
        first = rows
    return first
