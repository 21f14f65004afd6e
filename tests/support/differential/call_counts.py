"""Program that prints the calls of Python functions in warm reads as JSON; run in a process of its own.

What a process has read before changes the counts by a few calls.
"""

import gc
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import numparq
from numparq import col
from numparq.io import local_source

ROWS = 4000

OPTIONS = {
    "column": {"columns": ["value"]},
    "all columns": {},
    "filter": {"columns": ["value"], "filters": col("key") < 150},
    "range": {"columns": ["value"], "filters": (col("key") >= 150) & (col("key") < 250)},
    "isin": {"columns": ["value"], "filters": col("key").isin([5, 3000])},
    "look-up": {"filters": col("key") == 1234},
    "row range": {"columns": ["value"], "row_range": (1990, 2010)},
}


def count_calls(read) -> int:
    """Return the calls of Python functions in a read that has been done before: the least of three."""
    count = 0

    def on_event(frame, event, argument) -> None:
        nonlocal count
        count += event == "call"

    def counted() -> int:
        nonlocal count
        count = 0
        sys.setprofile(on_event)
        try:
            read()
        finally:
            sys.setprofile(None)
        return count

    read()
    gc.disable()  # what it may call is not the read's
    try:
        return min(counted() for _ in range(3))
    finally:
        gc.enable()


def mixed_frame(seed: int) -> pd.DataFrame:
    """Return 100 rows of 8 columns: numbers, strings, instants and booleans."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 1 << 20, 100)
    return pd.DataFrame(
        {
            "int64": numbers,
            "int32": numbers.astype("int32"),
            "float64": numbers / 3,
            "float32": numbers.astype("float32"),
            "unique": pd.Series([f"name {number}" for number in numbers], dtype="str"),
            "repeated": pd.Series([f"name {number % 7}" for number in numbers], dtype="str"),
            "instant": pd.Timestamp("2024-01-01") + pd.to_timedelta(numbers, unit="s"),
            "flag": numbers % 2 == 0,
        }
    )


def main(folder: Path) -> None:
    local_source.SETTLED_NS = 0  # as if the files were older: of a new one nothing is kept
    frame = pd.DataFrame({"key": np.arange(ROWS), "value": np.arange(ROWS) / 7, "text": "some text"})
    path, small_groups = folder / "a.parquet", folder / "b.parquet"
    numparq.to_parquet(frame, path, row_group_size=ROWS // 2, max_rows_per_page=100, use_dictionary=False)
    numparq.to_parquet(frame[["key"]], small_groups, row_group_size=ROWS // 200)
    counts = {
        name: count_calls(partial(numparq.read_parquet, path, threads=1, **each)) for name, each in OPTIONS.items()
    }
    many = folder / "many"
    many.mkdir()
    for number in range(100):
        numparq.to_parquet(mixed_frame(number), many / f"{number:02}.parquet")
    counts["100 small files"] = count_calls(partial(numparq.read_parquet, many, threads=1))
    counts["200 row groups"] = count_calls(partial(numparq.read_parquet, small_groups, threads=1))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
