"""Statistics by row group: bounds typed as a read returns values, and None for what cannot be trusted."""

from __future__ import annotations

import datetime
import decimal
import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from support.files.edited_footers import write_with_footer

D = decimal.Decimal
DAY, TIME = datetime.date(2024, 5, 1), datetime.time(1, 2, 3)
COLUMNS: dict[str, pa.Array] = {
    "int": pa.array([3, None, 1]),
    "uint64": pa.array([1 << 63, 1, None], "uint64"),
    "int8": pa.array([-3, None, 1], "int8"),
    "float": pa.array([0.5, None, -2.0], "float32"),
    "half": pa.array(np.array([0.5, -2], np.float16)),
    "bool": pa.array([True, None, False]),
    "str": pa.array(["b", None, "ä"]),
    "bytes": pa.array([b"b", None, b"\xff"]),
    "fixed": pa.array([b"ab", None, b"aa"], pa.binary(2)),
    "category": pa.array(["b", None, "a"]).dictionary_encode(),
    "date": pa.array([DAY, None, datetime.date(1960, 1, 1)]),
    "time": pa.array([TIME, None, datetime.time(0)]),
    "timestamp": pa.array([datetime.datetime(2024, 5, 1), None, datetime.datetime(1960, 1, 1)], pa.timestamp("ms")),
    "zoned": pa.array([datetime.datetime(2024, 5, 1), None], pa.timestamp("us", "Europe/Paris")),
    "duration": pa.array([datetime.timedelta(1), None, datetime.timedelta(-1)], pa.duration("us")),
    "small decimal": pa.array([D("1.50"), None, D("-2.00")], pa.decimal128(5, 2)),
    "large decimal": pa.array([D("1.50"), None, D("-2.00")], pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("writer", ["pyarrow", "numparq"])
def test_bounds_are_values_of_a_read(name, writer):
    table = pa.table({"x": COLUMNS[name]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_decimal_as_integer=True)
    data = sink.getvalue().to_pybytes()
    if writer == "numparq":
        data = numparq.to_parquet(numparq.read_parquet(data), schema=table.schema)
    with numparq.ParquetFile(data) as file:
        (found,) = file.statistics("x")
        values = [value for value in file.read()["x"] if not pd.isna(value)]
    if found.min is None:  # the writer writes no bounds
        assert name in ("half", "category")
        return
    assert (found.min, found.max) == (min(values), max(values))
    assert {type(found.min), type(found.max)} <= {type(value) for value in values} | {int}
    assert (found.null_count, found.num_values) == (len(table) - len(values), len(table))


def test_row_groups_and_nested_columns():
    table = pa.table({"a": range(10), "n": [{"l": [number, None]} for number in range(10)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=4)
    with numparq.ParquetFile(sink.getvalue().to_pybytes()) as file:
        assert [(each.min, each.max) for each in file.statistics("a")] == [(0, 3), (4, 7), (8, 9)]
        for path in ("n", "n.l", "n.l.list.element", ("n", "l")):
            assert [(each.min, each.max) for each in file.statistics(path)] == [(0, 3), (4, 7), (8, 9)]
        with pytest.raises(numparq.SchemaError, match="has no column 'b'"):
            file.statistics("b")
    data = numparq.to_parquet(pd.DataFrame({"s": [{"x": 1, "y": 2}]}))
    with pytest.raises(numparq.SchemaError, match=r"several leaf columns.*'s\.x', 's\.y'"):
        numparq.ParquetFile(data).statistics("s")
    assert numparq.ParquetFile(numparq.to_parquet(pd.DataFrame({"a": []}))).statistics("a") in ([], [found_nothing()])


def found_nothing() -> Any:
    from numparq.file.column_statistics import ColumnStatistics

    return ColumnStatistics(null_count=0, nan_count=0, num_values=0)


def test_truncated_bounds_are_not_exact():
    data = numparq.to_parquet(pd.DataFrame({"s": ["a" * 1000, "b" * 1000], "t": ["x", "y"]}))
    with numparq.ParquetFile(data) as file:
        (long,), (short,) = file.statistics("s"), file.statistics("t")
    assert (long.is_min_exact, long.is_max_exact) == (False, False)
    assert ("a" * 1000).startswith(long.min)
    assert long.max > "b" * 1000
    assert (short.min, short.max, short.is_min_exact, short.is_max_exact) == ("x", "y", True, True)


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        (pa.array([1, 2]), (b"\1", b"\2")),  # not eight bytes
        (pa.array([0.5, 1.5]), (np.float64(np.nan).tobytes(), np.float64(np.nan).tobytes())),
        (pa.array(["ä", "ö"]), ("ä".encode()[:1], None)),  # cut within a character
    ],
)
def test_unusable_bounds_are_none(column, bounds):
    def edit(footer: Any) -> None:
        statistics = footer.row_groups[0].columns[0].meta_data.statistics
        statistics.min_value, statistics.max_value = bounds

    (found,) = numparq.ParquetFile(write_with_footer(pa.table({"x": column}), edit)).statistics("x")
    assert (found.min, found.max, found.is_min_exact, found.is_max_exact) == (None,) * 4
    assert found.null_count == 0


def test_untrusted_writers_and_missing_statistics():
    def edit(footer: Any) -> None:
        footer.created_by = "parquet-mr version 1.8.0"  # compares bytes as signed (PARQUET-686)
        statistics = footer.row_groups[0].columns[0].meta_data.statistics
        statistics.min, statistics.max = b"a", b"b"
        statistics.min_value = statistics.max_value = None

    (found,) = numparq.ParquetFile(write_with_footer(pa.table({"x": ["a", "b"]}), edit)).statistics("x")
    assert (found.min, found.max) == (None, None)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink, write_statistics=False)
    (found,) = numparq.ParquetFile(sink.getvalue().to_pybytes()).statistics("x")
    assert (found.min, found.null_count, found.num_values) == (None, None, 1)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "+02:00", None])
@pytest.mark.parametrize("year", [-300_000, 0, 1, 9999, 10_000, 300_000])
def test_timestamps_of_years_that_datetime_lacks(year, zone):
    """pandas can neither localize them nor, in UTC, show them as text."""
    moment = np.datetime64(year - 1970, "Y").astype("M8[ms]")
    table = pa.table({"t": pa.array([int(moment.astype(int))], pa.timestamp("ms", zone))})
    pq.write_table(table, out := io.BytesIO())
    (found,) = numparq.ParquetFile(out).statistics("t")
    assert str(year).lstrip("-") in repr(found) or (zone and year == 1)
    for bound in (found.min, found.max):
        is_zoned = isinstance(bound, pd.Timestamp) and bound.tz is not None
        assert np.datetime64(bound.tz_convert(None) if is_zoned else bound) == moment
