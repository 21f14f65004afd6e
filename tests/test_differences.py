"""Where pandas with pyarrow is silently wrong, or gives up: what numparq reads instead (`docs/differences.md`)."""

from __future__ import annotations

import datetime
import json

import pandas as pd
import pyarrow as pa
import pytest
from cases import BASE, DAY, INDEXES
from frames import saved, written

from numparq import read_parquet


def test_integers_beyond_2_53_beside_nulls_keep_their_digits():
    big = 2**53 + 1
    table = pa.table({"i": [big, None], "u": pa.array([2**64 - 1, None], pa.uint64()), "ok": [2**53, None]})
    for options in ({}, {"write_statistics": False}):
        got = read_parquet(written(table, **options))
        assert [str(dtype) for dtype in got.dtypes] == ["Int64", "UInt64", "float64"]
        assert got["i"].tolist() == [big, pd.NA]
        assert got["u"].tolist() == [2**64 - 1, pd.NA]


def test_a_period_index_stays_one():
    frame = BASE.set_index(INDEXES["period"])
    got = read_parquet(saved(frame), dtype_backend="numpy_nullable")
    pd.testing.assert_index_equal(got.index, frame.index, exact=True)


def test_int96_beyond_nanoseconds_is_in_microseconds():
    far = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
    table = pa.table({"a": pa.array([far, None, datetime.datetime(1, 1, 1)], pa.timestamp("us"))})
    data = written(table, use_deprecated_int96_timestamps=True)
    got = read_parquet(data)["a"]
    assert got.dtype == "datetime64[us]"
    assert got[0].to_pydatetime() == far
    assert got[1] is pd.NaT
    assert got[2].year == 1
    arrow = read_parquet(data, dtype_backend="pyarrow")["a"]
    assert arrow.dtype == pd.ArrowDtype(pa.timestamp("us"))
    assert arrow[0].to_pydatetime() == far


def test_times_with_nanoseconds_are_timedeltas():
    data = written(pa.table({"a": pa.array([1, None, 2000], pa.time64("ns"))}))
    got = read_parquet(data)["a"]
    assert got.dtype == "timedelta64[ns]"
    assert got[0].value == 1
    assert got[1] is pd.NaT


def test_days_beyond_the_year_9999_are_timestamps():
    data = written(pa.table({"a": pa.array([10**8, None, 0], pa.int32()).cast(pa.date32())}))
    got = read_parquet(data)["a"]
    assert got.dtype == "datetime64[s]"
    assert got.isna().tolist() == [False, True, False]
    assert got.astype("int64")[0] == 10**8 * 86400


def test_boolean_labels():
    got = read_parquet(saved(pd.DataFrame([[1, 2]], columns=[True, False])))
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
    got = read_parquet(saved(pd.DataFrame([[1, 2]], columns=labels)))
    pd.testing.assert_index_equal(got.columns, labels, exact=False, check_freq=False)


def test_an_unknown_time_zone_is_a_warning():
    data = written(pa.table({"a": pa.array([0, None], pa.timestamp("us", "Not/There"))}))
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
    got = read_parquet(written(table, store_schema=False))
    assert len(got) == 2
    assert "a" in got.columns
