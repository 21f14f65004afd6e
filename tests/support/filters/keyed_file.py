"""The file of the filter tests: sorted keys, small pages, every index."""

from __future__ import annotations

import numpy as np
import pandas as pd

from numparq import col, read_parquet, to_parquet


def matching_row_numbers(data, filters, **options):
    """Return the numbers of the matching rows of a file."""
    return read_parquet(data, [], filters, include=["row_number"], **options)["row_number"].tolist()


x = col("x")

ROWS, GROUP, PAGE = 1000, 200, 20
FRAME = pd.DataFrame(
    {
        "key": np.arange(ROWS) * 2,
        "value": np.arange(ROWS) / 7,
        "word": [f"w{row * 7 % 40:02d}" for row in range(ROWS)],
        "note": [f"note {row * 7919 % ROWS}" for row in range(ROWS)],
    }
)
OPTIONS = {"row_group_size": GROUP, "max_rows_per_page": PAGE, "use_dictionary": ["word"], "compression": None}
DATA = to_parquet(FRAME, **OPTIONS)
key = col("key")


def filtered_frame(keep, columns=None):
    return FRAME.loc[keep, columns or list(FRAME)].reset_index(drop=True)
