"""A frame for files of small pages."""

from __future__ import annotations

import numpy as np
import pandas as pd

ROWS, GROUP, PAGE = 3000, 1100, 150


def small_pages_frame(with_nulls: bool) -> pd.DataFrame:
    rng = np.random.default_rng(with_nulls)
    frame = pd.DataFrame(
        {
            "key": np.arange(ROWS) * 3,
            "number": rng.integers(0, 1 << 40, ROWS),
            "small": rng.integers(0, 99, ROWS, "i2"),
            "few": rng.integers(0, 5, ROWS) * 1000,
            "float": rng.normal(size=ROWS),
            "float32": rng.normal(size=ROWS).astype("f4"),
            "bool": rng.random(ROWS) < 0.5,
            "text": [f"item {number}" for number in rng.integers(0, 1 << 40, ROWS)],
            "city": [f"city {number}" for number in rng.integers(0, 9, ROWS)],
            "time": pd.to_datetime(rng.integers(0, 1 << 60, ROWS)),
        }
    )
    if with_nulls:
        for name in frame.columns[1:]:
            frame[name] = frame[name].where(rng.random(ROWS) > 0.1)
        frame["nullable"] = pd.array(rng.integers(0, 9, ROWS), "Int64")
        frame.loc[rng.random(ROWS) < 0.2, "nullable"] = pd.NA
    return frame
