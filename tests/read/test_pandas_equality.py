"""Frames equal those of pandas with pyarrow: dtypes, index, labels, objects."""

from __future__ import annotations

import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq import read_parquet
from support.compare import (
    BACKENDS,
    assert_equal_to_pandas,
    assert_frames_equal,
    backend_options,
    write_by_pandas,
    write_by_pyarrow,
)
from support.data.pandas_frames import BASE, DAY, EXTENSIONS, INDEXES, LABELS, MOMENT, NULLS, VALUES, array_of


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", VALUES)
def test_every_type(name, nulls, store_schema, dtype_backend):
    arrow_type, values = VALUES[name]
    column = array_of(arrow_type, NULLS[nulls](values))
    assert_equal_to_pandas(
        write_by_pyarrow(pa.table({"a": column}), store_schema=store_schema), **backend_options(dtype_backend)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"write_statistics": False},
        {"use_dictionary": False},
        {"data_page_version": "2.0"},
        {"row_group_size": 2},
        {"version": "1.0"},
        {"use_deprecated_int96_timestamps": True},
        {"store_decimal_as_integer": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("nulls", ["none", "some"])
def test_all_types_in_one_file(nulls, options):
    names = [name for name in VALUES if len(VALUES[name][1]) >= 3]
    if options.get("store_decimal_as_integer"):
        names = [name for name in names if name not in ("decimal-widest",)]
    columns = {name: array_of(VALUES[name][0], NULLS[nulls](VALUES[name][1][:3])) for name in names}
    assert_equal_to_pandas(write_by_pyarrow(pa.table(columns), **options))


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_required_columns(dtype_backend):
    types = {
        "i": pa.int64(),
        "u": pa.uint8(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "x": pa.binary(2),
        "n": pa.decimal128(4, 1),
    }
    values = {
        "i": 1,
        "u": 2,
        "f": 0.5,
        "s": "q",
        "b": True,
        "d": DAY,
        "t": MOMENT,
        "x": b"xy",
        "n": decimal.Decimal("0.1"),
    }
    schema = pa.schema([pa.field(name, arrow_type, nullable=False) for name, arrow_type in types.items()])
    table = pa.Table.from_pylist([values] * 3, schema=schema)
    assert_equal_to_pandas(write_by_pyarrow(table), **backend_options(dtype_backend))


def test_null_column():
    data = write_by_pyarrow(pa.table({"a": pa.nulls(3), "b": [1, 2, 3]}))
    for dtype_backend in BACKENDS:
        assert_equal_to_pandas(data, **backend_options(dtype_backend))


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_dictionaries_of_row_groups_are_merged(dtype_backend):
    values = ["b", "a", "c", "a", "d", None, None, None, "a"]
    column = pa.array(values).dictionary_encode()
    assert_equal_to_pandas(
        write_by_pyarrow(pa.table({"a": column}), row_group_size=2), **backend_options(dtype_backend)
    )


def test_many_categories_have_wider_codes():
    column = pa.array([f"v{i}" for i in range(300)]).dictionary_encode()
    assert_equal_to_pandas(write_by_pyarrow(pa.table({"a": column})))


def test_unused_and_ordered_categories_are_preserved():
    frame = pd.DataFrame({"a": pd.Categorical(["b", "a", None], categories=["z", "b", "a"], ordered=True)})
    assert_equal_to_pandas(write_by_pandas(frame))


def test_categories_argument():
    data = write_by_pyarrow(pa.table({"a": ["b", "a", None, "b"], "x": [b"1", b"1", None, b"2"]}), row_group_size=2)
    assert_equal_to_pandas(data, {"read_dictionary": ["a", "x"]}, categories=["a", "x"])


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable"])
def test_categories_of_non_string_columns(dtype_backend, statistics):
    values = {
        "i": pa.array([5, 3, 5]),
        "n": pa.array([5, None, 5]),
        "u": pa.array([2, None, 2], pa.uint8()),
        "f": [0.5, None, 0.5],
        "b": [True, None, False],
        "d": [DAY, DAY, None],
        "t": pa.array([0, 5, None], pa.timestamp("us")),
        "l": pa.array([0, 5, None], pa.duration("ms")),
        "x": pa.array([b"xy", None, b"xy"], pa.binary(2)),
        "m": [decimal.Decimal("1.5"), None, decimal.Decimal("1.5")],
    }
    table = pa.table(values)
    got = read_parquet(
        write_by_pyarrow(table, write_statistics=statistics), categories=list(values), **backend_options(dtype_backend)
    )
    assert_frames_equal(got, table.to_pandas(categories=list(values)))


# --- frames: indexes, labels, selections ----------------------------------------------------


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", INDEXES)
def test_every_index(name, dtype_backend):
    if (name, dtype_backend) == ("period", "numpy_nullable"):
        pytest.skip("pyarrow does not restore the period dtype")
    assert_equal_to_pandas(write_by_pandas(BASE.set_index(INDEXES[name])), **backend_options(dtype_backend))


@pytest.mark.parametrize("columns", [None, [], ["a"], ["b"], ["b", "a"], ["a", "a"]], ids=str)
@pytest.mark.parametrize("name", ["range", "range-named", "int", "int-named", "multi", "datetime-tz"])
def test_projection_keeps_every_index(name, columns):
    assert_equal_to_pandas(write_by_pandas(BASE.set_index(INDEXES[name])), columns=columns)


def test_index_columns_can_be_projected():
    data = write_by_pandas(BASE.set_index(INDEXES["int-named"]))
    assert_equal_to_pandas(data, columns=["n"])
    assert_equal_to_pandas(data, columns=["b", "n"])


@pytest.mark.parametrize("index", [False, True])
def test_index_option(index):
    assert_equal_to_pandas(write_by_pandas(BASE.set_index(INDEXES["string"]), index=index))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(index=[5, 6]),
        pd.DataFrame(),
        BASE.iloc[:0],
        BASE.set_index(["a", "b"]),
        BASE.iloc[:0].set_index("b"),
        BASE.iloc[:0].set_index(["a", "b"]),
    ],
    ids=["no columns", "nothing", "no rows", "only an index", "empty string index", "empty multi index"],
)
@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_empty_frames(frame, dtype_backend):
    assert_equal_to_pandas(write_by_pandas(frame), **backend_options(dtype_backend))


@pytest.mark.parametrize("name", LABELS)
def test_every_kind_of_label(name):
    assert_equal_to_pandas(write_by_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=LABELS[name])))


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize(
    "options", [{}, {"store_schema": False}, {"version": "1.0"}, {"use_deprecated_int96_timestamps": True}], ids=str
)
@pytest.mark.parametrize("name", EXTENSIONS)
def test_every_pandas_dtype(name, options, dtype_backend):
    if name == "Int64-large" and "store_schema" in options and dtype_backend is None:
        pytest.skip("pyarrow rounds these integers")
    assert_equal_to_pandas(
        write_by_pandas(pd.DataFrame({"a": EXTENSIONS[name]}), **options), **backend_options(dtype_backend)
    )


def test_attrs():
    frame = BASE.copy()
    frame.attrs = {"k": [1, {"deep": None}]}
    assert_equal_to_pandas(write_by_pandas(frame))


def test_row_groups_get_a_new_range_index():
    frame = BASE.set_index(INDEXES["range-named"])
    data = write_by_pandas(frame, row_group_size=2)
    expected = pq.ParquetFile(io.BytesIO(data)).read_row_groups([1]).to_pandas()
    assert_frames_equal(read_parquet(data, row_groups=[1]), expected)


def test_row_groups_of_an_index_column():
    frame = BASE.set_index(INDEXES["int-named"])
    data = write_by_pandas(frame, row_group_size=2)
    expected = pq.ParquetFile(io.BytesIO(data)).read_row_groups([1]).to_pandas()
    assert_frames_equal(read_parquet(data, row_groups=[1]), expected)


def test_wide_frame_has_few_blocks():
    values = np.arange(300 * 7, dtype="f4").reshape(7, 300)
    frame = pd.DataFrame(values, columns=[f"c{i}" for i in range(300)])
    frame["i"] = np.arange(7)
    frame["s"] = "x"
    got = assert_equal_to_pandas(write_by_pandas(frame, row_group_size=3))
    assert len(got._mgr.blocks) <= 3


@pytest.mark.parametrize(("value", "dtype"), [(1 << 40, "Float64"), ((1 << 60) + 1, "Int64")])
def test_integers_with_float_metadata_are_not_rounded(value, dtype):
    floats = pa.Table.from_pandas(pd.DataFrame({"a": pd.array([1.5, None], "Float64")}))
    table = pa.table({"a": pa.array([value, None], pa.int64())}).replace_schema_metadata(floats.schema.metadata)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    got = read_parquet(buffer)["a"]
    assert got.dtype == dtype
    assert int(got[0]) == value
    assert got[1] is pd.NA
