"""Partition writers of numparq and its peers behind one signature, with their own defaults.

Only numparq syncs its files to disk before it renames them, all together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from asv_benchmarks.frames import Codec
from asv_benchmarks.readers import available, load

WriteParts = Callable[[pd.DataFrame, Path, Codec, "list[str]"], object]
"""``write(frame, folder, codec, keys)``; the folder is not there yet."""


def _numparq(threads: int) -> WriteParts:
    import numparq

    return lambda frame, folder, codec, keys: numparq.to_parquet(
        frame, folder, codec, partition_cols=keys, threads=threads
    )


def _pyarrow(threads: int) -> WriteParts:
    return lambda frame, folder, codec, keys: frame.to_parquet(
        folder, engine="pyarrow", compression=codec, partition_cols=keys
    )


def _polars(threads: int) -> WriteParts:
    import polars as pl

    def write(frame: pd.DataFrame, folder: Path, codec: Codec, keys: list[str]) -> None:
        parts = pl.PartitionBy(folder, key=keys, include_key=False)
        pl.from_pandas(frame).lazy().sink_parquet(parts, compression=codec, mkdir=True)

    return write


def _duckdb(threads: int) -> WriteParts:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})

    def write(frame: pd.DataFrame, folder: Path, codec: Codec, keys: list[str]) -> None:
        target = str(folder).replace("'", "''")
        connection.register("frame", frame)
        try:
            connection.execute(
                f"COPY (SELECT * FROM frame) TO '{target}' "
                f"(FORMAT parquet, COMPRESSION {codec}, PARTITION_BY ({', '.join(keys)}))"
            )
        finally:
            connection.unregister("frame")

    return write


_MAKERS: dict[str, Callable[[int], WriteParts]] = {
    "numparq": _numparq,
    "pyarrow": _pyarrow,
    "polars": _polars,
    "duckdb": _duckdb,
}


@dataclass(frozen=True)
class PartsWriter:
    """A loaded writer."""

    name: str
    version: str
    write: WriteParts


def load_writer(name: str, threads: int) -> PartsWriter:
    """Import one writer and hold it to `threads` threads.

    Raises
    ------
    ReaderUnavailable
        When it cannot be imported or limited.
    """
    return PartsWriter(name, load(name, threads).version, _MAKERS[name](threads))


def load_writers(names: Sequence[str], threads: int) -> tuple[list[PartsWriter], dict[str, str]]:
    """Load the available writers that support partitions; return reasons for the others."""
    found, missing = available([name for name in names if name in _MAKERS], threads, load_writer)
    return found, {**missing, **{name: "not asked for partitions" for name in names if name not in _MAKERS}}


def synced(writer: PartsWriter) -> PartsWriter:
    """Return `writer` followed by a sync to disk, which numparq does anyway."""
    if writer.name == "numparq":
        return writer

    def write(frame: pd.DataFrame, folder: Path, codec: Codec, keys: list[str]) -> None:
        writer.write(frame, folder, codec, keys)
        for path in folder.rglob("*.parquet"):
            with path.open("rb") as file:
                os.fsync(file.fileno())

    return PartsWriter(writer.name, writer.version, write)
