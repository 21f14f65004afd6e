"""The folders that Spark reads: files large enough for several tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

import numparq
from asv_benchmarks.workloads import MILLION, SEED, SMALLEST

KINDS = ("bus", "car", "ferry", "train", "tram")


@dataclass(frozen=True)
class Spread:
    """Rows spread over files of one folder, written by numparq.

    Attributes
    ----------
    name : str
        Stem of its name.
    table : callable
        ``table(rng, first, size)`` makes the rows of one file, of which the first one has that number.
    rows, files : int
        Rows of all files together at scale 1, and how many files they are.
    options : mapping
        How they are written: keyword arguments of `numparq.to_parquet`.
    version : int
        Part of its name: raise it with every change of what it holds.
    """

    name: str
    table: Callable[[np.random.Generator, int, int], pa.Table]
    rows: int
    files: int
    options: Mapping[str, object] = field(default_factory=dict)
    version: int = 1
    suffix: ClassVar[str] = ""
    is_folder: ClassVar[bool] = True

    def rows_of_file(self, scale: float) -> int:
        """Return the number of rows of each file."""
        return max(SMALLEST, round(self.rows * scale / self.files))

    def write(self, scale: float, path: Path) -> None:
        """Write the files below `path`."""
        path.mkdir(parents=True)
        rng = np.random.default_rng(SEED)
        rows = self.rows_of_file(scale)
        for number in range(self.files):
            frame = self.table(rng, number * rows, rows).to_pandas(types_mapper=pd_arrow)
            numparq.to_parquet(frame, path / f"part-{number:05}.parquet", **self.options)


def pd_arrow(kind: pa.DataType) -> object:
    """Return the Arrow dtype of a column, so that it reaches the writer unchanged."""
    import pandas as pd

    return pd.ArrowDtype(kind)


def trips(rng: np.random.Generator, first: int, size: int) -> pa.Table:
    """Return six columns: 8- and 4-byte numbers, floats, short text, a time."""
    seconds = rng.integers(0, 10**7, size).astype("m8[s]")
    return pa.table(
        {
            "id": np.arange(first, first + size),
            "seats": rng.integers(1, 300, size).astype("i4"),
            "price": rng.normal(40, 12, size),
            "share": rng.random(size),
            "kind": rng.choice(np.array(KINDS), size),
            "at": (np.datetime64("2024-01-01", "s") + seconds).astype("M8[us]"),
        }
    )


def keyed(rng: np.random.Generator, first: int, size: int) -> pa.Table:
    """Return a row number, an unordered key (`key_of`), and two values."""
    ids = np.arange(first, first + size)
    return pa.table(
        {
            "id": ids,
            "key": key_of(ids),
            "value": rng.normal(size=size),
            "cents": rng.integers(0, 10_000, size),
        }
    )


def key_of(ids: np.ndarray) -> np.ndarray:
    """Return distinct unordered keys of numbers: an odd factor is a bijection modulo 2**64."""
    return (ids.astype("u8") * np.uint64(0x9E3779B97F4A7C15)).view("i8")


TRIPS = Spread("spark-trips", trips, 5 * MILLION, 8)
KEYED = Spread("spark-keyed", keyed, 50 * MILLION, 20, {"bloom_filter_options": {"key": True}})
