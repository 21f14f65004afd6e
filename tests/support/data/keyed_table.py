"""A table with a sorted key, in small pages."""

from __future__ import annotations

import numpy as np
import pandas as pd

import numparq

ROWS, GROUP, PAGE = 6000, 1500, 100


def keyed_frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    numbers = np.arange(ROWS)
    return pd.DataFrame(
        {
            "key": numbers * 3,
            "small": (numbers - ROWS // 2).astype("i4"),
            "near": numbers // 7,
            "back": numbers[::-1].copy(),
            "float": np.where(rng.random(ROWS) < 0.1, np.nan, numbers / 8),
            "text": np.array([f"name {number:05}" for number in range(ROWS)]),
            "maybe": [None if row % 5 == 0 else f"é{row}" for row in range(ROWS)],
            "some": pd.array(np.where(rng.random(ROWS) < 0.3, None, numbers), "Int64"),
            "when": pd.date_range("2020-01-01", periods=ROWS, freq="min", tz="UTC"),
            "flag": numbers % 3 == 0,
            "any": rng.integers(0, 50, ROWS),
        }
    )


def keyed_file(frame: pd.DataFrame | None = None, **options) -> bytes:
    choices = {"use_dictionary": False, "row_group_size": GROUP, "max_rows_per_page": PAGE} | options
    return numparq.to_parquet(keyed_frame() if frame is None else frame, **choices) or b""
