"""Values decoded for a filter become columns as a full read decodes them: every cast, nulls, and retries."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.column.jobs.predicate_cache import CachedFixed, CachedSink
from numparq.column.read.take import ValueIndices

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NOON, LATER = datetime.datetime(2024, 2, 3, 12), datetime.datetime(1960, 1, 2, 3, 4, 5, 6)
KINDS = {
    "int8": pa.array([1, -2, None, 127, -128, 0] * 3, pa.int8()),
    "uint8": pa.array([1, 255, None, 127, 128, 0] * 3, pa.uint8()),
    "int32": pa.array([1, -2, None, 4, 2**31 - 1, -(2**31)] * 3, pa.int32()),
    "uint32": pa.array([1, 2**32 - 1, None, 4, 2**31, 0] * 3, pa.uint32()),
    "int64": pa.array([1, -2, None, 4, 2**53, -(2**53)] * 3, pa.int64()),
    "inexact": pa.array([1, -2, None, 4, 5, -(2**53) - 1] * 3, pa.int64()),
    "inexact above": pa.array([1, -2, None, 4, 2**53 + 1, 5] * 3, pa.int64()),
    "uint64": pa.array([1, 2, None, 4, 2**53, 0] * 3, pa.uint64()),
    "inexact uint64": pa.array([1, 2, None, 4, 2**64 - 1, 0] * 3, pa.uint64()),
    "float32": pa.array([1.5, -2, None, 4, np.inf, 0] * 3, pa.float32()),
    "float64": pa.array([1.5, -2, None, 4, np.inf, 0] * 3, pa.float64()),
    "bool": pa.array([True, False, None, True, False, False] * 3, pa.bool_()),
    "timestamp us": pa.array([NOON, LATER, None, NOON, LATER, NOON] * 3, pa.timestamp("us")),
    "timestamp ns": pa.array([NOON, LATER, None, NOON, LATER, NOON] * 3, pa.timestamp("ns")),
    "date": pa.array([NOON.date(), LATER.date(), None] * 6, pa.date32()),
    "fixed": pa.array([b"abc", b"abd", None, b"xyz", b"\0\0\0", b"abc"] * 3, pa.binary(3)),
    "string": pa.array(["a", "", None, "bb", "a", "c"] * 3, pa.string()),
}


def encode(values: pa.Array, **options: object) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"x": values, "n": np.arange(len(values))})
    pq.write_table(table, sink, row_group_size=9, store_schema=False, **options)
    return sink.getvalue()


@pytest.mark.quick_cases(41)  # every fifth, so that all values of all parameters occur
@pytest.mark.parametrize("write_statistics", [False, True])
@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("has_nulls", [False, True])
def test_cached_columns_equal_decoded_ones(monkeypatch, name, dtype_backend, write_statistics, has_nulls):
    """Rows with nulls match, so that these come from the cache, too."""
    values = KINDS[name] if has_nulls else KINDS[name].drop_null()
    options = {} if dtype_backend is None else {"dtype_backend": dtype_backend}
    data = encode(values, write_statistics=write_statistics)
    finished = []
    finish = CachedSink.finish
    monkeypatch.setattr(CachedSink, "finish", lambda sink, task: (finished.append(sink), finish(sink, task))[1])
    first = values.drop_null()[0].as_py()
    frame = numparq.read_parquet(data, filters=(col("x") != first) | col("x").is_null(), **options)
    assert finished
    whole = numparq.read_parquet(data, **options)
    kept = [at for at, value in enumerate(values.to_pylist()) if value != first]
    pd.testing.assert_frame_equal(frame, whole.iloc[kept].reset_index(drop=True))


def test_take_keeps_validity_of_the_rows():
    cached = CachedFixed(np.array([10, 0, 30, 40]), np.array([1, 0, 1, 1], np.uint8))
    taken = cached.take(ValueIndices(np.array([1, 2], np.int32)))
    assert taken.values.tolist() == [0, 30]
    assert taken.validity.tolist() == [0, 1]
