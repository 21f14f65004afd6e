"""What numparq reads equals what pandas reads with pyarrow: dtypes, index, labels, the objects themselves.

Where pyarrow is silently wrong, or fails, the answer expected is written out at the end.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

try:
    from numparq import read_parquet
except ImportError as error:  # pragma: no cover
    pytest.skip(f"there is no reader yet: {error}", allow_module_level=True)

BACKENDS = [None, "numpy_nullable", "pyarrow"]


def backend(name):
    return {} if name is None else {"dtype_backend": name}


def written(table, **options):
    buffer = io.BytesIO()
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table)
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def saved(frame, **options):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.to_parquet(buffer, engine="pyarrow", **options)
    return buffer.getvalue()


def check(data, oracle_options=None, **options):
    """Hold numparq's answer against pandas' own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pd.read_parquet(io.BytesIO(data), engine="pyarrow", **(oracle_options or options))
    got = read_parquet(data, **options)
    assert_same(got, expected)
    return got


def assert_same(got, expected):
    pd.testing.assert_frame_equal(got, expected, check_exact=True, check_freq=False)
    assert type(got.index) is type(expected.index)
    assert list(got.index.names) == list(expected.index.names)
    assert type(got.columns) is type(expected.columns)
    assert got.columns.dtype == expected.columns.dtype
    assert got.attrs == expected.attrs
    for place in range(expected.shape[1]):
        mine, theirs = got.iloc[:, place], expected.iloc[:, place]
        if theirs.dtype == object:
            assert [type(value) for value in mine] == [type(value) for value in theirs]
        if isinstance(theirs.dtype, pd.CategoricalDtype):
            assert mine.cat.categories.dtype == theirs.cat.categories.dtype
            assert mine.cat.codes.dtype == theirs.cat.codes.dtype
        if isinstance(theirs.dtype, pd.StringDtype):
            assert mine.dtype.storage == theirs.dtype.storage


# --- one column of every type that pyarrow writes ----------------------------------------------------

DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 891011)

VALUES = {
    "bool": (pa.bool_(), [True, False, True]),
    **{
        f"{sign}int{bits}": (getattr(pa, f"{sign}int{bits}")(), [1, 2, 100])
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "int8-low": (pa.int8(), [-128, 127, 0]),
    "uint32-high": (pa.uint32(), [2**32 - 1, 0, 7]),
    "float16": (pa.float16(), [1.5, -2.0, 0.0]),
    "float32": (pa.float32(), [1.5, float("nan"), -0.0]),
    "float64": (pa.float64(), [1.5, float("nan"), float("inf")]),
    "string": (pa.string(), ["a", "", "grün 中"]),
    "large_string": (pa.large_string(), ["a", "", "grün"]),
    "binary": (pa.binary(), [b"a", b"", b"\x00\xff"]),
    "large_binary": (pa.large_binary(), [b"a", b"", b"\x00\xff"]),
    "fixed_binary": (pa.binary(3), [b"abc", b"\x00\x00\x00", b"xyz"]),
    "date32": (pa.date32(), [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "date64": (pa.date64(), [DAY, datetime.date(1969, 12, 31), DAY]),
    "time32-s": (pa.time32("s"), [datetime.time(1, 2, 3), datetime.time(0), datetime.time(23, 59, 59)]),
    "time32-ms": (pa.time32("ms"), [datetime.time(1, 2, 3, 4000), datetime.time(0), datetime.time(1)]),
    "time64-us": (pa.time64("us"), [datetime.time(1, 2, 3, 4), datetime.time(0), datetime.time(1)]),
    "time64-ns": (pa.time64("ns"), [datetime.time(1, 2, 3, 4), datetime.time(0), datetime.time(1)]),
    **{
        f"timestamp-{unit}": (pa.timestamp(unit), [MOMENT.replace(microsecond=0), None, MOMENT.replace(microsecond=0)])
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"timestamp-{unit}-{zone}": (pa.timestamp(unit, zone), [MOMENT.replace(microsecond=0)] * 3)
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "Europe/Paris", "+05:30", "+00:00")
    },
    **{
        f"duration-{unit}": (pa.duration(unit), [datetime.timedelta(days=3), datetime.timedelta(0)] * 2)
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"decimal{bits}": (
            getattr(pa, f"decimal{bits}")(7, 2),
            [decimal.Decimal("1.10"), decimal.Decimal("-99999.99"), decimal.Decimal(0)],
        )
        for bits in (32, 64, 128, 256)
    },
    "decimal-wide": (
        pa.decimal128(38, 10),
        [
            decimal.Decimal("1234567890123456789012345678.0123456789"),
            decimal.Decimal("-1234567890123456789012345678.0123456789"),
        ],
    ),
    "decimal-widest": (pa.decimal256(76, 0), [decimal.Decimal(10**75), decimal.Decimal(-(10**75)), decimal.Decimal(1)]),
    "decimal-no-scale": (pa.decimal128(5, 0), [decimal.Decimal("12"), decimal.Decimal("-3")]),
    "uuid": (pa.uuid(), [uuid.UUID(int=5).bytes, uuid.UUID(int=2**127 + 1).bytes]),
    "json": (pa.json_(), ["{}", "[1]", '"ü"']),
    "json-large": (pa.json_(pa.large_string()), ["{}", "[1]"]),
    "bool8": (pa.bool8(), [1, 0, 1]),
    "opaque": (pa.opaque(pa.int32(), "x", "y"), [1, 2]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["b", "a", "b"]),
    "dictionary-int8": (pa.dictionary(pa.int8(), pa.large_string()), ["b", "a", "b"]),
    "dictionary-ordered": (pa.dictionary(pa.int16(), pa.string(), ordered=True), ["b", "a", "b"]),
    "dictionary-bytes": (pa.dictionary(pa.int32(), pa.binary()), [b"b", b"a", b"b"]),
    "dictionary-int": (pa.dictionary(pa.int32(), pa.int64()), [5, 3, 5]),
    "dictionary-float": (pa.dictionary(pa.int32(), pa.float32()), [5.0, 3.0, 5.0]),
}


def array_of(arrow_type, values):
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, arrow_type.storage_type))
    if isinstance(arrow_type, pa.DictionaryType):
        plain = pa.array(values, arrow_type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            plain.indices.cast(arrow_type.index_type), plain.dictionary, ordered=arrow_type.ordered
        )
    return pa.array(values, arrow_type)


NULLS = {
    "none": lambda values: values,
    "some": lambda values: [*values, None, *values[:1]],
    "all": lambda values: [None, None],
    "empty": lambda values: [],
}


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", VALUES)
def test_every_type(name, nulls, store_schema, dtype_backend):
    arrow_type, values = VALUES[name]
    column = array_of(arrow_type, NULLS[nulls](values))
    check(written(pa.table({"a": column}), store_schema=store_schema), **backend(dtype_backend))


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
def test_every_type_together(nulls, options):
    names = [name for name in VALUES if len(VALUES[name][1]) >= 3]
    if options.get("store_decimal_as_integer"):
        names = [name for name in names if name not in ("decimal-widest",)]
    columns = {name: array_of(VALUES[name][0], NULLS[nulls](VALUES[name][1][:3])) for name in names}
    check(written(pa.table(columns), **options))


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
    check(written(table), **backend(dtype_backend))


def test_a_null_column():
    data = written(pa.table({"a": pa.nulls(3), "b": [1, 2, 3]}))
    for dtype_backend in BACKENDS:
        check(data, **backend(dtype_backend))


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_dictionaries_of_several_row_groups_become_one(dtype_backend):
    values = ["b", "a", "c", "a", "d", None, None, None, "a"]
    column = pa.array(values).dictionary_encode()
    check(written(pa.table({"a": column}), row_group_size=2), **backend(dtype_backend))


def test_many_categories_have_wider_codes():
    column = pa.array([f"v{i}" for i in range(300)]).dictionary_encode()
    check(written(pa.table({"a": column})))


def test_unused_and_ordered_categories_stay():
    frame = pd.DataFrame({"a": pd.Categorical(["b", "a", None], categories=["z", "b", "a"], ordered=True)})
    check(saved(frame))


def test_categories_argument():
    data = written(pa.table({"a": ["b", "a", None, "b"], "x": [b"1", b"1", None, b"2"]}), row_group_size=2)
    check(data, {"read_dictionary": ["a", "x"]}, categories=["a", "x"])


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable"])
def test_categories_of_what_is_no_string(dtype_backend, statistics):
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
    got = read_parquet(written(table, write_statistics=statistics), categories=list(values), **backend(dtype_backend))
    assert_same(got, table.to_pandas(categories=list(values)))


# --- frames: indexes, labels, selections ----------------------------------------------------

BASE = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})

INDEXES = {
    "range": pd.RangeIndex(3),
    "range-named": pd.RangeIndex(3, 12, 3, name="q"),
    "range-backwards": pd.RangeIndex(3, 0, -1),
    "int": pd.Index([7, 7, 9]),
    "int-named": pd.Index([7, 7, 9], name="n"),
    "int8": pd.Index([7, 7, 9], dtype="int8"),
    "float": pd.Index([0.5, np.nan, 1.0]),
    "string": pd.Index(["p", None, "q"], name="s"),
    "object": pd.Index(["p", None, "q"], dtype=object),
    "bool": pd.Index([True, False, True]),
    "bool-null": pd.Index([True, None, False], dtype=object),
    "bytes": pd.Index([b"a", b"b", None], dtype=object),
    "date": pd.Index([DAY, DAY, None], dtype=object),
    "time": pd.Index([datetime.time(1), datetime.time(2), datetime.time(3)], dtype=object),
    "decimal": pd.Index([decimal.Decimal("1.5")] * 3, dtype=object),
    "datetime": pd.date_range("2020", periods=3, freq="D", name="when"),
    "datetime-ns": pd.date_range("2020", periods=3, freq="D").as_unit("ns"),
    "datetime-tz": pd.date_range("2020", periods=3, freq="h", tz="America/New_York"),
    "timedelta": pd.timedelta_range(0, periods=3),
    "period": pd.period_range("2020", periods=3, freq="M"),
    "categorical": pd.CategoricalIndex(["u", "v", "u"], ordered=True),
    "categorical-int": pd.CategoricalIndex([2, 1, 2]),
    "Int64": pd.Index([1, None, 3], dtype="Int64"),
    "Int64-full": pd.Index([1, 2, 3], dtype="Int64"),
    "boolean": pd.Index([True, None, False], dtype="boolean"),
    "string-dtype": pd.Index(["p", None, "q"], dtype="string"),
    "multi": pd.MultiIndex.from_product([[1], ["a", "b", "c"]], names=["x", None]),
    "multi-same-names": pd.MultiIndex.from_product([[1], ["a", "b", "c"]], names=["x", "x"]),
    "multi-wide": pd.MultiIndex.from_arrays(
        [pd.date_range("2020", periods=3, tz="UTC"), [DAY] * 3, pd.Categorical(["u", "v", "u"]), [1.5, np.nan, 2.0]]
    ),
    "named-as-a-column": pd.Index([4, 5, 7], name="a"),
    "named-by-a-number": pd.Index([4, 5, 7], name=7),
    "named-level-0": pd.Index([4, 5, 7], name="__index_level_0__"),
}


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", INDEXES)
def test_every_index(name, dtype_backend):
    if (name, dtype_backend) == ("period", "numpy_nullable"):
        pytest.skip("pyarrow forgets that these integers are periods")
    check(saved(BASE.set_index(INDEXES[name])), **backend(dtype_backend))


@pytest.mark.parametrize("columns", [None, [], ["a"], ["b"], ["b", "a"], ["a", "a"]], ids=str)
@pytest.mark.parametrize("name", ["range", "range-named", "int", "int-named", "multi", "datetime-tz"])
def test_every_index_is_read_along_with_columns(name, columns):
    check(saved(BASE.set_index(INDEXES[name])), columns=columns)


def test_index_columns_may_be_asked_for():
    data = saved(BASE.set_index(INDEXES["int-named"]))
    check(data, columns=["n"])
    check(data, columns=["b", "n"])


@pytest.mark.parametrize("index", [False, True])
def test_index_option(index):
    check(saved(BASE.set_index(INDEXES["string"]), index=index))


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
    check(saved(frame), **backend(dtype_backend))


LABELS = {
    "int": [0, 1],
    "float": [0.5, 1.5],
    "string": ["a", "b"],
    "object": pd.Index(["a", "b"], dtype=object),
    "named": pd.Index(["a", "b"], name="label"),
    "mixed": pd.Index(["a", 1], dtype=object),
    "none": pd.Index(["a", None], dtype=object),
    "datetime": pd.date_range("2020", periods=2),
    "datetime-ns": pd.date_range("2020", periods=2).as_unit("ns"),
    "datetime-tz": pd.date_range("2020", periods=2, tz="Europe/Paris", name="t"),
    "bytes": pd.Index([b"a", b"b"], dtype=object),
    "decimal": pd.Index([decimal.Decimal("1.0"), decimal.Decimal("2.0")], dtype=object),
    "Int64": pd.Index([1, 2], dtype="Int64"),
    "int8": pd.Index([1, 2], dtype="int8"),
    "string-dtype": pd.Index(["a", "b"], dtype="string"),
    "multi": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["n", None]),
    "multi-strings": pd.MultiIndex.from_tuples([("a", "x'y"), ("b", 'q"')]),
    "multi-datetime": pd.MultiIndex.from_product([["a"], pd.date_range("2020", periods=2)]),
    "multi-float": pd.MultiIndex.from_product([[0.5, 1.5], ["u"]]),
}


@pytest.mark.parametrize("name", LABELS)
def test_every_kind_of_label(name):
    check(saved(pd.DataFrame([[1, 2], [3, 4]], columns=LABELS[name])))


EXTENSIONS = {
    **{
        dtype: pd.array([1, None, 3], dtype=dtype)
        for dtype in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    },
    "Int64-large": pd.array([2**62 + 1, None, 3], dtype="Int64"),
    "Int64-full": pd.array([1, 2, 3], dtype="Int64"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "string": pd.array(["a", None, "b"], dtype="string"),
    "string-python": pd.array(["a", None, "b"], dtype="string[python]"),
    "str": pd.array(["a", None, "b"], dtype="str"),
    "object": pd.array(["a", None, "b"], dtype=object),
    "period": pd.array(pd.PeriodIndex(["2020Q1", None, "2020Q3"], freq="Q")),
    "int64-arrow": pd.array([1, None, 3], dtype="int64[pyarrow]"),
    "int8-arrow": pd.array([1, None, 3], dtype="int8[pyarrow]"),
    "string-arrow": pd.array(["1", None, "3"], dtype=pd.ArrowDtype(pa.string())),
    "timestamp-arrow": pd.array([1, None, 3], dtype="timestamp[us][pyarrow]"),
    "date-arrow": pd.array([DAY, None, DAY], dtype="date32[pyarrow]"),
    "decimal-arrow": pd.array([decimal.Decimal("1.5"), None, None], dtype=pd.ArrowDtype(pa.decimal128(4, 2))),
    "bool-arrow": pd.array([True, None, False], dtype="bool[pyarrow]"),
    "binary-arrow": pd.array([b"1", None, b"3"], dtype=pd.ArrowDtype(pa.binary())),
    "category": pd.Categorical(["b", None, "a"]),
    "category-int": pd.Categorical([3, None, 1]),
    "datetime-tz": pd.array(pd.DatetimeIndex(["2020", None, "2021"], tz="Asia/Tokyo")),
    "datetime-ns": pd.array(pd.DatetimeIndex(["2020", None, "2021"]).as_unit("ns")),
    "timedelta": pd.array(pd.TimedeltaIndex(["1D", None, "2s"])),
    "date": pd.array([DAY, None, DAY], dtype=object),
    "bool-null": pd.array([True, None, False], dtype=object),
    "bytes": pd.array([b"1", None, b"3"], dtype=object),
    "empty": pd.array([None, None, None], dtype=object),
}


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize(
    "options", [{}, {"store_schema": False}, {"version": "1.0"}, {"use_deprecated_int96_timestamps": True}], ids=str
)
@pytest.mark.parametrize("name", EXTENSIONS)
def test_every_dtype_of_pandas(name, options, dtype_backend):
    if name == "Int64-large" and "store_schema" in options and dtype_backend is None:
        pytest.skip("pyarrow rounds these integers")
    check(saved(pd.DataFrame({"a": EXTENSIONS[name]}), **options), **backend(dtype_backend))


def test_attrs():
    frame = BASE.copy()
    frame.attrs = {"k": [1, {"deep": None}]}
    check(saved(frame))


def test_row_groups_get_a_new_range_index():
    frame = BASE.set_index(INDEXES["range-named"])
    data = saved(frame, row_group_size=2)
    expected = pq.ParquetFile(io.BytesIO(data)).read_row_groups([1]).to_pandas()
    assert_same(read_parquet(data, row_groups=[1]), expected)


def test_row_groups_of_an_index_column():
    frame = BASE.set_index(INDEXES["int-named"])
    data = saved(frame, row_group_size=2)
    expected = pq.ParquetFile(io.BytesIO(data)).read_row_groups([1]).to_pandas()
    assert_same(read_parquet(data, row_groups=[1]), expected)


def test_a_wide_frame():
    values = np.arange(300 * 7, dtype="f4").reshape(7, 300)
    frame = pd.DataFrame(values, columns=[f"c{i}" for i in range(300)])
    frame["i"] = np.arange(7)
    frame["s"] = "x"
    got = check(saved(frame, row_group_size=3))
    assert len(got._mgr.blocks) <= 3


# --- where pandas with pyarrow is wrong, or gives up ----------------------------------------------------


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
    assert got[0].to_pydatetime() == far and got[1] is pd.NaT and got[2].year == 1
    arrow = read_parquet(data, dtype_backend="pyarrow")["a"]
    assert arrow.dtype == pd.ArrowDtype(pa.timestamp("us")) and arrow[0].to_pydatetime() == far


def test_times_with_nanoseconds_are_timedeltas():
    data = written(pa.table({"a": pa.array([1, None, 2000], pa.time64("ns"))}))
    got = read_parquet(data)["a"]
    assert got.dtype == "timedelta64[ns]" and got[0].value == 1 and got[1] is pd.NaT


def test_days_beyond_the_year_9999_are_timestamps():
    data = written(pa.table({"a": pa.array([10**8, None, 0], pa.int32()).cast(pa.date32())}))
    got = read_parquet(data)["a"]
    assert got.dtype == "datetime64[s]" and got.isna().tolist() == [False, True, False]
    assert got.astype("int64")[0] == 10**8 * 86400


def test_boolean_labels():
    got = read_parquet(saved(pd.DataFrame([[1, 2]], columns=[True, False])))
    assert got.columns.tolist() == [True, False] and got.columns.dtype == bool


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
    assert len(got) == 2 and "a" in got.columns
