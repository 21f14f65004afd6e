"""A read and a write of a small table, so that what these import and look up is there before the first task.

Everything here runs in the daemon, before it forks: on one thread, and by kernels that need not be compiled.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

__all__ = ["rehearse"]

_ROWS = 64


def rehearse() -> None:
    """Write and read a table of a few kinds of columns in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="numparq-") as folder:
        path = os.path.join(folder, "rehearsal.parquet")
        _write(path)
        _read(path)


def _write(path: str) -> None:
    """Write by numparq where its kernels for that are kept, else by pyarrow."""
    from ..kernels import shredding_kernels, statistics_kernels, writing_kernels

    if all(kernels.mode for kernels in (shredding_kernels, statistics_kernels, writing_kernels)):
        from ..api import to_parquet

        to_parquet(_frame(), path, threads=1)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pandas(_frame(), nthreads=1), path, use_dictionary=["text"], write_page_index=True)


def _read(path: str) -> None:
    from ..api import read_parquet

    read_parquet(path, threads=1)
    read_parquet(path, filters=[("number", ">", 3)], threads=1)
    _split(path)


def _split(path: str) -> None:
    from ..dataset.splits import split_table

    for filters in (None, [("number", ">", 3)]):
        table = split_table(path, filters=filters)
        for split in table.splits:
            table.frame(split)
            list(table.tables(split))


def _frame() -> Any:
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
