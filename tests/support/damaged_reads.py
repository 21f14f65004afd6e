"""A file to damage, and its reads with ``on_error="skip"``."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq.scan.recovery.losses import Lost

CRC = "the checksum (CRC-32) does not match: the page is damaged"
ROWS, GROUP, PAGE = 1200, 400, 100


def table(rows: int = ROWS) -> pd.DataFrame:
    """Return a frame with every kind of column."""
    numbers = np.arange(rows)
    text = [f"some text {number * 7919 % 1000}" for number in range(rows)]
    days = datetime.date(2020, 1, 1)
    return pd.DataFrame(
        {
            "int": numbers * 1_000_003,
            "small": numbers.astype("i2"),
            "gaps": pd.Series(numbers).astype("float64").where(numbers % 3 != 0),
            "whole": pd.array([None if n % 5 == 0 else int(n) for n in numbers], dtype="Int32"),
            "flag": numbers % 2 == 0,
            "text": pd.Series(text).where(numbers % 4 != 0),
            "few": [f"word {number % 20}" for number in range(rows)],
            "kind": pd.Categorical([f"kind {number % 9}" for number in range(rows)]),
            "time": pd.date_range("2020", periods=rows, freq="min"),
            "day": [days + datetime.timedelta(int(n)) for n in numbers],
            "price": [decimal.Decimal(int(n)) / 100 for n in numbers],
            "list": [None if n % 7 == 0 else list(range(n % 4)) for n in range(rows)],
            "struct": [None if n % 11 == 0 else {"x": n, "y": f"y{n}"} for n in range(rows)],
            "map": [[(f"k{n % 3}", n), ("all", None)][: n % 3] for n in range(rows)],
        }
    )


def written_file(**options) -> bytes:
    frame = options.pop("frame", None)
    defaults = {
        "row_group_size": GROUP,
        "max_rows_per_page": PAGE,
        "data_page_version": "1.0",
        "schema": {"map": pa.map_(pa.string(), pa.int64())} if frame is None else None,
    }
    return numparq.to_parquet(table() if frame is None else frame, **{**defaults, **options})


LEAVES = [
    "int",
    "small",
    "gaps",
    "whole",
    "flag",
    "text",
    "few",
    "kind",
    "time",
    "day",
    "price",
    "list.list.element",
    "struct.x",
    "struct.y",
    "map.key_value.key",
    "map.key_value.value",
]


def read_skipping_damage(data: bytes, **options) -> tuple[pd.DataFrame, list[Lost]]:
    frame = numparq.read_parquet(data, on_error="skip", **options)
    return frame, frame.attrs.pop("numparq.lost")


def assert_only_lost(damaged: bytes, whole: bytes, lost: list[tuple], gone: list[str] = (), **options) -> list[Lost]:
    """Check that exactly the lost rows and columns are missing from the damaged file."""
    frame, found = read_skipping_damage(damaged, **options)
    assert [item[1:4] for item in found] == [(group, column, rows) for group, column, rows in lost]
    assert all(item.file == "<bytes>" and item.reason for item in found)
    expected = numparq.read_parquet(whole, include=["row_number"], **options)
    kept = np.ones(len(expected), bool)
    for _, column, rows in lost:
        if column.split(".")[0] not in gone:
            numbers = expected["row_number"]
            kept &= ~((numbers >= rows[0]) & (numbers < rows[1])).to_numpy()
    expected = expected.drop(columns=["row_number", *gone])
    pd.testing.assert_frame_equal(frame, expected[kept])
    with pytest.raises(numparq.ParquetError):
        numparq.read_parquet(damaged, **options)
    return found
