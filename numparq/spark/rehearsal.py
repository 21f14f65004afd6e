"""A read and a write of a small table, so that what these import and look up is there before the first task.

Everything here runs in the daemon, before it forks: on one thread, and by kernels that need not be compiled.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernels import Kernels

__all__ = ["rehearse"]

_ROWS = 64


def rehearse() -> None:
    """Write and read a table of a few kinds of columns in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="numparq-") as folder:
        path = os.path.join(folder, "rehearsal.parquet")
        _write(path)
        _read(path)


def _write(path: str) -> None:
    """Write by numparq where its kernels for that are loaded, else by pyarrow."""
    from ..kernels import shredding_kernels, statistics_kernels, writing_kernels

    if _are_loaded(shredding_kernels, statistics_kernels, writing_kernels):
        from ..api import to_parquet

        to_parquet(_frame(), path, threads=1)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pandas(_frame(), nthreads=1), path, use_dictionary=["text"], write_page_index=True)


def _read(path: str) -> None:
    """Read files and splits; by a filter, too, where the kernels for that are loaded."""
    from ..api import read_parquet
    from ..dataset.splits import split_table
    from ..kernels import predicate_kernels, selecting_kernels

    wanted = [("number", ">", 3)]
    for filters in (None, wanted) if _are_loaded(predicate_kernels, selecting_kernels) else (None,):
        read_parquet(path, filters=filters, threads=1)
        table = split_table(path, filters=filters)
        for split in table.splits:
            table.frame(split)
            list(table.tables(split))


def _are_loaded(*groups: Kernels) -> bool:
    return all(group.mode for group in groups)


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
