"""Writers of numparq and its peers behind one signature, with equal threads, codec and level.

Everything else is each writer's default: numparq writes indexes and CRCs and syncs its file before renaming it, which
no peer does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from asv_benchmarks.frames import Codec
from asv_benchmarks.readers import PEERS, ReaderUnavailable, available, load_peer


class Write(Protocol):
    """``write(frame, path, codec)``; `rows` are those of a row group, by default the writer's own number."""

    def __call__(self, frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> object: ...


ZSTD_LEVEL = 1
"""The level for all; it is the default of pyarrow and of numparq, others have higher ones."""


def _numparq(threads: int) -> Write:
    import numparq

    if not hasattr(numparq, "to_parquet"):
        raise ReaderUnavailable("numparq has no to_parquet")

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        numparq.to_parquet(frame, path, codec, row_group_size=rows, threads=threads)

    return write


def _pyarrow(threads: int) -> Write:
    import pyarrow as pa

    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        frame.to_parquet(path, engine="pyarrow", compression=codec, row_group_size=rows)

    return write


def _polars(threads: int) -> Write:
    import polars as pl

    if pl.thread_pool_size() != threads:
        raise ReaderUnavailable(f"polars was imported with {pl.thread_pool_size()} threads")

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        level = ZSTD_LEVEL if codec == "zstd" else None
        pl.from_pandas(frame).write_parquet(path, compression=codec, compression_level=level, row_group_size=rows)

    return write


def _duckdb(threads: int) -> Write:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        target = str(path).replace("'", "''")
        level = f", COMPRESSION_LEVEL {ZSTD_LEVEL}" if codec == "zstd" else ""
        groups = f", ROW_GROUP_SIZE {rows}" if rows else ""
        options = f"FORMAT parquet, COMPRESSION {codec}{level}{groups}"
        connection.register("frame", frame)
        try:
            connection.execute(f"COPY (SELECT * FROM frame) TO '{target}' ({options})")
        finally:
            connection.unregister("frame")

    return write


def _fastparquet(threads: int) -> Write:
    # It knows no threads of its own, and no dates as objects.
    import fastparquet

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        args = {"level": ZSTD_LEVEL} if codec == "zstd" else {}
        compression = {"_default": {"type": codec.upper(), "args": args}}
        groups = {"row_group_offsets": rows} if rows else {}
        fastparquet.write(str(path), frame, compression=compression, **groups)

    return write


_MAKERS: dict[str, Callable[[int], Write]] = {
    "numparq": _numparq,
    "pyarrow": _pyarrow,
    "polars": _polars,
    "duckdb": _duckdb,
    "fastparquet": _fastparquet,
}
assert set(_MAKERS) == {"numparq", *PEERS}


@dataclass(frozen=True)
class Writer:
    """A loaded writer."""

    name: str
    version: str
    write: Write


def load_writer(name: str, threads: int) -> Writer:
    """Import one writer, as `load_peer`."""
    write, version = load_peer(_MAKERS, name, threads)
    return Writer(name, version, write)


def load_writers(names: Sequence[str], threads: int) -> tuple[list[Writer], dict[str, str]]:
    """Load the available writers; return reasons for the others."""
    return available(names, threads, load_writer)


def synced(writer: Writer) -> Writer:
    """Return `writer` followed by a sync to disk, which numparq does anyway."""
    if writer.name == "numparq":
        return writer

    def write(frame: pd.DataFrame, path: Path, codec: Codec, rows: int | None = None) -> None:
        writer.write(frame, path, codec, rows)
        with path.open("rb") as file:
            os.fsync(file.fileno())

    return Writer(writer.name, writer.version, write)
