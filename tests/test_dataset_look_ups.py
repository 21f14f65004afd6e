"""What a look-up reads of a dataset: of files that have none of the wanted rows, no column chunk."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.cli.spark_demo import measure_lookup

ROWS, FILES = 40_000, 5


@pytest.fixture(scope="module")
def sorted_files(tmp_path_factory):
    path = tmp_path_factory.mktemp("sorted")
    random = np.random.default_rng(7)
    for number in range(FILES):
        frame = pd.DataFrame(
            {
                "key": np.arange(ROWS) + number * ROWS,
                "x": random.random(ROWS),
                "text": [f"text {n}" for n in random.integers(0, 10**9, ROWS)],
                "list": [[number, None]] * ROWS,
            }
        )
        numparq.to_parquet(frame, path / f"{number}.parquet", max_rows_per_page=500, row_group_size=20_000)
    return path


@pytest.mark.parametrize("number", range(FILES))
def test_files_without_wanted_rows_are_read_as_far_as_their_footers(sorted_files, number):
    key = number * ROWS + 12_345
    filters = col("key") == key
    frame = numparq.read_parquet(sorted_files, filters=filters)
    assert frame["key"].tolist() == [key]
    assert frame["list"][0][0] == number
    rows, num_bytes = measure_lookup(str(sorted_files), filters)
    assert rows == 1
    tails = FILES * (64 << 10)
    with numparq.Dataset(sorted_files) as dataset:
        planned = dataset.plan(None, filters).num_bytes
    assert num_bytes < tails + planned + 50_000  # indexes


def test_rows_of_no_file(sorted_files):
    rows, num_bytes = measure_lookup(str(sorted_files), col("key") == -1)
    assert rows == 0
    assert num_bytes <= FILES * (64 << 10) + 50_000
