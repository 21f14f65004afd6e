"""Differences from pandas with pyarrow where that is silently wrong or fails (`docs/differences.md`)."""

from __future__ import annotations

import datetime
import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from numparq import SchemaError, read_parquet
from support.compare import write_by_pandas, write_by_pyarrow
from support.data.pandas_frames import BASE, DAY, INDEXES


def test_integers_beyond_2_53_beside_nulls_keep_their_digits():
    big = 2**53 + 1
    table = pa.table({"i": [big, None], "u": pa.array([2**64 - 1, None], pa.uint64()), "ok": [2**53, None]})
    for options in ({}, {"write_statistics": False}):
        got = read_parquet(write_by_pyarrow(table, **options))
        assert [str(dtype) for dtype in got.dtypes] == ["Int64", "UInt64", "float64"]
        assert got["i"].tolist() == [big, pd.NA]
        assert got["u"].tolist() == [2**64 - 1, pd.NA]


def test_period_index_is_preserved():
    frame = BASE.set_index(INDEXES["period"])
    got = read_parquet(write_by_pandas(frame), dtype_backend="numpy_nullable")
    pd.testing.assert_index_equal(got.index, frame.index, exact=True)


def test_int96_beyond_nanoseconds_is_in_microseconds():
    far = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
    table = pa.table({"a": pa.array([far, None, datetime.datetime(1, 1, 1)], pa.timestamp("us"))})
    data = write_by_pyarrow(table, use_deprecated_int96_timestamps=True)
    got = read_parquet(data)["a"]
    assert got.dtype == "datetime64[us]"
    assert got[0].to_pydatetime() == far
    assert got[1] is pd.NaT
    assert got[2].year == 1
    arrow = read_parquet(data, dtype_backend="pyarrow")["a"]
    assert arrow.dtype == pd.ArrowDtype(pa.timestamp("us"))
    assert arrow[0].to_pydatetime() == far


def test_times_with_nanoseconds_are_timedeltas():
    data = write_by_pyarrow(pa.table({"a": pa.array([1, None, 2000], pa.time64("ns"))}))
    got = read_parquet(data)["a"]
    assert got.dtype == "timedelta64[ns]"
    assert got[0].value == 1
    assert got[1] is pd.NaT


def test_days_beyond_the_year_9999_are_timestamps():
    data = write_by_pyarrow(pa.table({"a": pa.array([10**8, None, 0], pa.int32()).cast(pa.date32())}))
    got = read_parquet(data)["a"]
    assert got.dtype == "datetime64[s]"
    assert got.isna().tolist() == [False, True, False]
    assert got.astype("int64")[0] == 10**8 * 86400


def test_boolean_labels_stay_boolean():
    got = read_parquet(write_by_pandas(pd.DataFrame([[1, 2]], columns=[True, False])))
    assert got.columns.tolist() == [True, False]
    assert got.columns.dtype == bool


@pytest.mark.parametrize(
    "labels",
    [
        pd.timedelta_range("1D", periods=2),
        pd.period_range("2020", periods=2, freq="M"),
        pd.Index([DAY, datetime.date(2021, 1, 1)], dtype=object),
    ],
    ids=["timedelta", "period", "date"],
)
def test_labels_that_pyarrow_does_not_restore(labels):
    got = read_parquet(write_by_pandas(pd.DataFrame([[1, 2]], columns=labels)))
    pd.testing.assert_index_equal(got.columns, labels, exact=False, check_freq=False)


def test_unknown_time_zone_warns():
    data = write_by_pyarrow(pa.table({"a": pa.array([0, None], pa.timestamp("us", "Not/There"))}))
    with pytest.warns(UserWarning, match="Not/There"):
        got = read_parquet(data)
    assert str(got["a"].dtype) == "datetime64[us, UTC]"


def metadata_variants():
    good = {
        "index_columns": ["i"],
        "column_indexes": [{"name": None, "pandas_type": "unicode", "numpy_type": "str"}],
        "columns": [{"name": "i", "field_name": "i", "pandas_type": "int64", "numpy_type": "int64", "metadata": None}],
    }
    yield "not JSON", b"{"
    yield "a list", b"[]"
    yield "deep", b"[" * 100_000
    yield "not UTF-8", b"\xff\xfe{}"
    for key in good:
        for wrong in (None, 5, "x", {}, [5], [None], [{}], [[]]):
            yield f"{key} {wrong}", json.dumps({**good, key: wrong}).encode()
    for wrong in (None, 5, [], {}, "nonsense", "period[", "a" * 10_000, "int64[pyarrow]", "interval[int64, right]"):
        yield (
            f"numpy_type {wrong!r:.20}",
            json.dumps(
                {**good, "columns": [{"name": "a", "field_name": "a", "pandas_type": wrong, "numpy_type": wrong}]}
            ).encode(),
        )
    for wrong in (0, "x", None, 10**30, 0.5):
        yield (
            f"range {wrong}",
            json.dumps(
                {**good, "index_columns": [{"kind": "range", "name": [], "start": 0, "stop": wrong, "step": wrong}]}
            ).encode(),
        )


VARIANTS = dict(metadata_variants())


@pytest.mark.parametrize("name", VARIANTS)
def test_malformed_metadata_is_ignored(name):
    table = pa.table({"a": ["x", "y"], "i": [1, 2]}).replace_schema_metadata({"pandas": VARIANTS[name]})
    got = read_parquet(write_by_pyarrow(table, store_schema=False))
    assert len(got) == 2
    assert "a" in got.columns


NAN = float("nan")
FLOATS = pa.array([1.0, None, NAN, 3.0, -0.0])
ONES = pa.array([1.0, 1.0, NAN])
TENTHS = pa.array([0.1, 0.2], pa.float32())
PRICES = pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(5, 2))
MORE_DIGITS = pa.array([Decimal("1.10000000000000000"), Decimal("1.10000000000000001")], pa.decimal128(20, 17))
FAR = pa.array([dt.datetime(9999, 1, 1), dt.datetime(2024, 1, 1)], pa.timestamp("us"))
WORDS = pa.array(["a", "b", None])
ID = uuid.UUID(int=7)

# Values, filter, pyarrow's rows, and numparq's rows or error.
ANSWERS: dict[str, tuple[pa.Array, tuple[str, str, Any], list[int], list[int] | type[Exception]]] = {
    "not in, of a null": (FLOATS, ("x", "not in", [1.0]), [1, 2, 3, 4], [2, 3, 4]),
    "not in, of a null string": (WORDS, ("x", "not in", ["a"]), [1, 2], [1]),
    "!=, of a null": (FLOATS, ("x", "!=", 1.0), [2, 3, 4], [2, 3, 4]),
    "in with None": (FLOATS, ("x", "in", [1.0, None]), [0, 1], [0]),
    "in with NaN": (FLOATS, ("x", "in", [NAN]), [2], []),
    "not in with NaN": (FLOATS, ("x", "not in", [NAN]), [0, 1, 3, 4], [0, 2, 3, 4]),
    "!= where all else is equal": (ONES, ("x", "!=", 1.0), [], [2]),
    "not in where all else is equal": (ONES, ("x", "not in", [1.0]), [], [2]),
    "in with zero": (FLOATS, ("x", "in", [0.0]), [], [4]),
    "== zero": (FLOATS, ("x", "==", 0.0), [4], [4]),
    "float32": (TENTHS, ("x", "==", 0.1), [], [0]),
    "float32 of a DECIMAL": (PRICES, ("x", "==", np.float32(1.1)), [], [0]),
    "more digits than a double": (MORE_DIGITS, ("x", "==", 1.1), [0, 1], [0]),
    "INT96": (FAR, ("x", ">", pd.Timestamp("2024-06-01")), [], [0]),
    "None": (WORDS, ("x", "==", None), [], TypeError),
    "a string as a list": (WORDS, ("x", "in", "ab"), [0, 1], TypeError),
    "text beside bytes": (pa.array([b"a", b"b"]), ("x", "==", "a"), [0], SchemaError),
}

# Values, filter, and numparq's rows where pyarrow raises.
DAYS = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)])
TIMES = pa.array([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)])
NUMBERS = pa.array([2**53, 2**53 + 1, 2**53 + 2])
COMPARED: dict[str, tuple[pa.Array, tuple[str, str, Any], list[int]]] = {
    "text of dates": (DAYS, ("x", ">", "2024-01-01"), [1]),
    "text of timestamps": (TIMES, ("x", ">", "2024-01-01"), [1]),
    "datetime64": (TIMES, ("x", ">", np.datetime64("2024-01-01")), [1]),
    "integers of DECIMAL": (PRICES, ("x", ">", 1), [0, 1]),
    "integers of booleans": (pa.array([True, False, None]), ("x", "==", 1), [0]),
    "beyond 64 bits": (NUMBERS, ("x", "<", 2**70), [0, 1, 2]),
    "unsigned and negative": (pa.array([1, 2**64 - 1], pa.uint64()), ("x", ">", -1), [0, 1]),
    "beyond floats": (NUMBERS, ("x", "==", float(2**53)), [0]),
    "float16": (pa.array(np.array([0.1, 0.3], "f2")), ("x", ">", 0.2), [1]),
    "UUID": (pa.array([ID.bytes], pa.uuid()), ("x", "==", ID), [0]),
    "a field": (pa.array([{"y": 1}, {"y": None}, None]), ("x.y", "==", 1), [0]),
    "in nothing": (WORDS, ("x", "in", []), []),
    "not in nothing": (WORDS, ("x", "not in", []), [0, 1]),
}


def write_values(values: pa.Array) -> bytes:
    table = pa.table({"row": range(len(values)), "x": values})
    return write_by_pyarrow(table, use_deprecated_int96_timestamps=values is FAR)


def rows_by_pyarrow(data: bytes, condition: tuple[str, str, Any]) -> list[int]:
    frame = pd.read_parquet(io.BytesIO(data), engine="pyarrow", filters=[condition])
    return frame["row"].tolist()


@pytest.mark.parametrize("name", ANSWERS)
def test_filter_results_beside_pyarrow(name: str) -> None:
    values, condition, theirs, ours = ANSWERS[name]
    data = write_values(values)
    assert rows_by_pyarrow(data, condition) == theirs
    if isinstance(ours, list):
        assert read_parquet(data, filters=[condition])["row"].tolist() == ours
    else:
        with pytest.raises(ours):
            read_parquet(data, filters=[condition])


@pytest.mark.parametrize("name", COMPARED)
def test_filter_results_where_pyarrow_raises(name: str) -> None:
    values, condition, ours = COMPARED[name]
    data = write_values(values)
    with pytest.raises((pa.ArrowException, TypeError, OverflowError)):
        rows_by_pyarrow(data, condition)
    assert read_parquet(data, filters=[condition])["row"].tolist() == ours


def test_typed_literals_compare_exactly() -> None:
    assert not len(read_parquet(write_values(TENTHS), filters=[("x", "==", np.float64(0.1))]))
    for price in (Decimal("1.1"), "1.1"):
        assert read_parquet(write_values(PRICES), filters=[("x", "==", price)])["row"].tolist() == [0]


def test_filtered_dtypes_are_those_of_a_full_read() -> None:
    data = write_values(pa.array([4, None, 2]))
    theirs = pd.read_parquet(io.BytesIO(data), engine="pyarrow", filters=[("row", "==", 2)])
    ours = read_parquet(data, filters=[("row", "==", 2)])
    assert (theirs["x"].dtype, ours["x"].dtype) == ("int64", "float64")
