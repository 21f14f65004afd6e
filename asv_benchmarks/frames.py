"""The table of frames to write: source file, dtypes and codec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from asv_benchmarks import tables
from asv_benchmarks.workloads import WORKLOADS, DataFile

Codec = Literal["snappy", "zstd"]


@dataclass(frozen=True)
class FrameToWrite:
    """A frame of the benchmarks of writing.

    Attributes
    ----------
    name : str
        Its name in the tables.
    file : DataFile
        The file of which pandas with pyarrow makes it.
    codec : {"snappy", "zstd"}
        What it is written with.
    dtype_backend : str or None
        As of `pandas.read_parquet`; None stands for NumPy's dtypes and ``str``.
    row_group_size : int or None
        Rows of a row group; None: the writer's default.
    """

    name: str
    file: DataFile
    codec: Codec = "snappy"
    dtype_backend: str | None = None
    row_group_size: int | None = None

    def load(self, path: Path) -> pd.DataFrame:
        """Load the frame from its file at `path`."""
        return _read(path, self.dtype_backend)

    def read_back(self, path: Path) -> pd.DataFrame:
        """Read the written file with pyarrow; nullable dtypes must follow from its metadata."""
        # pyarrow makes NumPy-backed strings of Arrow-backed ones, whoever wrote them, unless it is told.
        return _read(path, self.dtype_backend if self.dtype_backend == "pyarrow" else None)


def _read(path: Path, dtype_backend: str | None) -> pd.DataFrame:
    if dtype_backend is None:
        return pd.read_parquet(path, engine="pyarrow")
    return pd.read_parquet(path, engine="pyarrow", dtype_backend=dtype_backend)


def _file(workload: str) -> DataFile:
    return WORKLOADS[workload].file


FRAMES: dict[str, FrameToWrite] = {
    frame.name: frame
    for frame in (
        FrameToWrite("lineitem-snappy", _file("lineitem-snappy")),
        FrameToWrite("lineitem-zstd", _file("lineitem-snappy"), "zstd"),
        FrameToWrite("lineitem-arrow", _file("lineitem-snappy"), dtype_backend="pyarrow"),
        FrameToWrite("numbers", _file("plain-snappy")),
        FrameToWrite("repeated-numbers", _file("dictionary-numbers")),
        FrameToWrite("growing-keys", _file("pages-8k")),
        FrameToWrite("nulls-10", _file("nulls-10")),
        FrameToWrite("nullable-10", _file("nulls-10"), dtype_backend="numpy_nullable"),
        FrameToWrite("booleans", _file("booleans")),
        FrameToWrite("timestamps", _file("timestamps")),
        FrameToWrite("dates", _file("dates")),
        FrameToWrite("strings-few", _file("strings-few")),
        FrameToWrite("strings-distinct", _file("strings-distinct")),
        FrameToWrite("wide", _file("wide-whole")),
        FrameToWrite("wide-mixed", DataFile("wide-mixed", tables.wide_mixed, 1_000, {"compression": "snappy"})),
        FrameToWrite("row-groups-1k", _file("strings-few"), row_group_size=1_000),
    )
}
"""All frames by name, in the order in which they are run."""
