"""Byte ranges that a read asks of its source, as text: the parts of the file that each covers, in order."""

from __future__ import annotations

from itertools import groupby
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.format.footer import tail
from support.io.recorded_reads import RecordingFile, file_regions


@pytest.fixture(scope="module")
def data():
    """Two row groups of five pages in each column; `few` has a dictionary, and `odd` a Bloom filter."""
    rows = np.arange(100)
    frame = pd.DataFrame({"key": rows, "few": rows % 3, "odd": (rows * 37 + 1) % 101, "text": [f"t{n}" for n in rows]})
    return numparq.to_parquet(
        frame,
        row_group_size=50,
        max_rows_per_page=10,
        use_dictionary=["few"],
        column_encoding={"key": "PLAIN", "odd": "PLAIN", "text": "PLAIN"},
        bloom_filter_options={"odd": True},
    )


def covered(where, start, stop) -> str:
    """Return the parts of the file in a range, those of one column chunk together."""
    there = sorted((first, name) for name, (first, last) in where.items() if first < stop and start < last)
    found = []
    for (kind, group, column), parts in groupby((name for _, name in there), lambda name: name[:3]):
        pages = [name[3] for name in parts if len(name) > 3]
        numbers = f" {pages[0]}-{pages[-1]}" if len(pages) > 1 else f" {pages[0]}" if pages else ""
        found.append(f"{group}.{column} {kind}{numbers}")
    return " + ".join(found) or "footer"


def ranges_read(data, **options) -> list[str]:
    """Return what the ranges read cover, without the request of the file's last bytes."""
    where, source = file_regions(data), RecordingFile(data)
    with mock.patch.object(tail, "TAIL_BYTES", 16):
        numparq.read_parquet(source, threads=1, **options)
    return [text for text in (covered(where, *some) for some in source.ranges) if text != "footer"]


READS = {
    "all": {},
    "one column": {"columns": ["few"]},
    "two columns apart": {"columns": ["key", "odd"]},
    "rows in a page": {"columns": ["key", "text"], "row_range": (12, 15)},
    "rows over row groups": {"columns": ["key", "few"], "row_range": (45, 55)},
    "look-up": {"columns": ["text"], "filters": col("key") == 23},
    "look-up with dictionary": {"columns": ["few"], "filters": col("key") == 73},
    "Bloom filter": {"columns": ["key"], "filters": col("odd") == 65},
    "range": {"columns": ["text"], "filters": (col("key") >= 38) & (col("key") < 52)},
    "no rows": {"columns": ["text"], "filters": col("few") == 7},
    "head": {"columns": ["key"], "nrows": 5},
}
EXPECTED: dict[str, list[str]] = {
    "all": [
        "0.key page 0-4 + 0.few dictionary + 0.few page 0-4 + 0.odd page 0-4",
        "1.key page 0-4 + 1.few dictionary + 1.few page 0-4 + 1.odd page 0-4",
        "0.text page 0-4",
        "1.text page 0-4",
    ],
    "one column": ["0.few dictionary + 0.few page 0-4", "1.few dictionary + 1.few page 0-4"],
    "two columns apart": [
        "0.key page 0-4 + 0.few dictionary + 0.few page 0-4 + 0.odd page 0-4",
        "1.key page 0-4 + 1.few dictionary + 1.few page 0-4 + 1.odd page 0-4",
    ],
    "rows in a page": ["0.key offset index", "0.text offset index", "0.key page 1", "0.text page 1"],
    "rows over row groups": [
        "0.key offset index + 0.few offset index",
        "1.key offset index + 1.few offset index",
        "0.key page 4",
        "0.few dictionary",
        "0.few page 4",
        "1.key page 0",
        "1.few dictionary + 1.few page 0",
    ],
    "look-up": ["0.key column index", "0.key offset index", "0.text offset index", "0.key page 2", "0.text page 2"],
    "look-up with dictionary": [
        "1.key column index",
        "1.key offset index + 1.few offset index",
        "1.key page 2",
        "1.few dictionary",
        "1.few page 2",
    ],
    "Bloom filter": ["0.odd bloom", "0.odd bloom + 1.odd bloom", "1.odd bloom"],
    "range": [
        "0.key column index",
        "0.key offset index",
        "0.text offset index + 1.key column index",
        "1.key offset index",
        "1.text offset index",
        "0.key page 3-4",
        "1.key page 0",
        "0.text page 3-4",
        "1.text page 0",
    ],
    "no rows": [],
    "head": ["0.key offset index", "0.key page 0"],
}


@pytest.mark.parametrize("name", READS)
def test_ranges_read(data, name):
    assert ranges_read(data, **READS[name]) == EXPECTED[name]
