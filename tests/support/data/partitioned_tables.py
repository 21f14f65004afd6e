"""Tables for partitioned datasets, and their rows as plain values for any reader or writer."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import numparq

ROWS = 60
TEXTS = ["Wien", "a b", "Linz/Ö", "x=y", "50%", "a:b", "*?[1]", "07", "a+b", "q'r\"s", "#1", "c\\d"]

# What partitions are made by: the type, and values that occur again and again.
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "int": (pa.int64(), [2023, -7, 0, 1 << 40]),
    "text": (pa.string(), TEXTS),
    "text with null": (pa.string(), ["a", None, "Null", "nan"]),
    "int with null": (pa.int32(), [1, None, 3]),
    "date": (pa.date32(), [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), None]),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal(text) for text in ("1.50", "-0.05", "1234567.00")]),
    "moment": (pa.timestamp("us"), [datetime.datetime(2024, 1, 2, 3, 4, 5, 6700), datetime.datetime(1969, 12, 31)]),
    "flag": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [1.5, -0.25, 3.0]),
}


def table(*kinds: str) -> pa.Table:
    """Return rows numbered by ``n`` with one column ``key`` (``key 1``, ...) per kind."""
    columns = {
        "n": pa.array(range(ROWS), pa.int64()),
        "text": pa.array([None if n % 7 == 3 else f"text {n}" for n in range(ROWS)]),
        "double": pa.array([n / 8 for n in range(ROWS)]),
        "when": pa.array(
            [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=n) for n in range(ROWS)], pa.timestamp("us")
        ),
    }
    for place, kind in enumerate(kinds):
        arrow_type, values = KEYS[kind]
        picked = [values[n // (5**place) % len(values)] for n in range(ROWS)]
        columns[f"key {place}" if place else "key"] = pa.array(picked, arrow_type)
    return pa.table(columns)


def key_columns(of: pa.Table) -> list[str]:
    return [name for name in of.column_names if name.startswith("key")]


def rows(frame: pd.DataFrame, names: list[str]) -> dict[str, list[Any]]:
    """Return plain values of the columns, sorted by ``n``; None is null."""
    frame = frame.sort_values("n")
    return {name: [None if pd.isna(value) else _plain(value) for value in frame[name]] for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):  # Spark's timestamps are of UTC
        return pd.Timestamp(value).tz_localize(None).to_pydatetime()
    return getattr(value, "item", lambda: value)()


def write(of: pa.Table, folder: Path, **options: Any) -> None:
    """Write with numparq, partitioned by the ``key`` columns."""
    frame = of.to_pandas(types_mapper=pd.ArrowDtype)
    numparq.to_parquet(frame, folder, partition_cols=key_columns(of), index=False, **options)


def read(folder: Path, of: pa.Table, **options: Any) -> pd.DataFrame:
    """Read with numparq, with the partition types given."""
    types = {key: of.schema.field(key).type for key in key_columns(of)}
    return numparq.read_parquet(folder, partitioning=types, **options)


def assert_same_rows(got: Any, of: pa.Table) -> None:
    """Check that a frame or table has the written rows, in any order."""
    frame = got.to_pandas(types_mapper=pd.ArrowDtype) if isinstance(got, pa.Table) else got
    assert sorted(frame.columns) == sorted(of.column_names)
    assert rows(frame, of.column_names) == of.to_pydict()
