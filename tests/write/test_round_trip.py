"""numparq's own files read back unchanged: every dtype, label and name, including those that pyarrow loses."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from support.data.pandas_columns import COLUMNS, LABELS, NAMES, assert_round_trip

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

# Columns whose type only the Arrow schema records.
KINDS = ("arrow", "object-timedelta", "object-period")
ONLY_BY_ARROW_SCHEMA = (*KINDS, *(f"category-{kind}" for kind in KINDS))


def write_and_read(frame, index=None, **options):
    """Write and read a frame, without the warnings about labels that other readers lose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about labels that other readers lose
        data = numparq.to_parquet(frame, index=index, **options)
    return numparq.read_parquet(data)


def select_rows(series, nulls, count):
    """Select rows of a series: without nulls, with some, or nulls only. None if the series has no such rows."""
    present = np.flatnonzero(~series.isna())
    indices = {"none": present, "some": np.arange(len(series)), "all": np.flatnonzero(series.isna())}[nulls]
    if count and not len(indices):
        return None
    if "_view" in str(series.dtype):  # pyarrow cannot take items of views
        items = series.array._pa_array.to_pylist()
        selected = [items[index] for index in np.resize(indices, count)] if count else []
        array = pd.arrays.ArrowExtensionArray(pa.array(selected, series.dtype.pyarrow_dtype))
    else:
        array = series.array[np.resize(indices, count)] if count else series.array[:0]
    return pd.Series(array, dtype=series.dtype)


@pytest.mark.parametrize("nulls", ["none", "some", "all"])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_round_trip(name, nulls):
    for count, options in ((0, {}), (1, {}), (11, {}), (11, {"row_group_size": 4, "store_schema": False})):
        series = select_rows(COLUMNS[name], nulls, count)
        if series is None or ("store_schema" in options and name.startswith(ONLY_BY_ARROW_SCHEMA)):
            continue
        frame = pd.DataFrame({"before": range(count), "a": series, "after": "x"}, index=pd.RangeIndex(count))
        assert_round_trip(write_and_read(frame, **options), frame)


@pytest.mark.quick_cases(60)
@pytest.mark.parametrize("name", COLUMNS)
def test_indexes_round_trip(name):
    series = COLUMNS[name]
    if series.dtype == np.float16 or "halffloat" in name or "_view" in name:
        pytest.skip("pandas has no such indexes")
    index = pd.Index(series, name="k", dtype=series.dtype)
    for count in (0, 3):
        frame = pd.DataFrame({"a": range(count)}, index=index[:count])
        assert_round_trip(write_and_read(frame), frame)
        assert_round_trip(write_and_read(frame, row_group_size=2), frame)


@pytest.mark.quick_cases(60)
@pytest.mark.parametrize("name", COLUMNS)
def test_index_levels_round_trip(name):
    series = COLUMNS[name]
    try:
        index = pd.MultiIndex.from_arrays([[2, 1, 1], pd.Index(series, name="k", dtype=series.dtype)])
        repr(index)
    except (NotImplementedError, pa.ArrowException, ValueError, AttributeError) as error:
        pytest.skip(f"pandas has no such levels: {type(error).__name__}")
    if name == "sparse-uint64":
        pytest.skip("pandas changes the numbers")
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=index)
    assert_round_trip(write_and_read(frame), frame)


@pytest.mark.parametrize("name", LABELS)
def test_labels_round_trip(name):
    labels = LABELS[name]
    frame = pd.DataFrame(np.arange(2 * len(labels)).reshape(2, -1), columns=labels, index=pd.RangeIndex(2))
    assert_round_trip(write_and_read(frame), frame)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_index_names_round_trip(name):
    for index in (
        pd.Index([1, 2], name=name),
        pd.RangeIndex(2, name=name),
        pd.MultiIndex.from_arrays([[1, 2], [3, 4]], names=[name, "q"]),
        pd.MultiIndex.from_arrays([[1, 2], [3, 4]], names=[name, name]),
    ):
        frame = pd.DataFrame({"a": [1, 2]}, index=index)
        assert_round_trip(write_and_read(frame), frame)
        assert_round_trip(write_and_read(frame, index=True), frame) if not isinstance(index, pd.RangeIndex) else None


@pytest.mark.parametrize(
    "attrs", [{}, {"a": 1, "b": [1, {"c": None}]}, {1: 2}, {"t": (1, 2)}, {"day": pd.Timestamp(1)}, {("a", 1): b"x"}]
)
def test_attrs_round_trip(attrs):
    frame = pd.DataFrame({"a": [1]})
    frame.attrs = attrs
    assert write_and_read(frame).attrs == attrs


@pytest.mark.quick_cases(95)
@pytest.mark.parametrize("name", [*COLUMNS, *LABELS])
def test_pyarrow_reads_the_same_shape(name):
    if name in COLUMNS:
        frame = pd.DataFrame({"a": COLUMNS[name]})
    else:
        frame = pd.DataFrame([range(len(LABELS[name]))], columns=LABELS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = numparq.to_parquet(frame)
        assert pd.read_parquet(io.BytesIO(data), engine="pyarrow").shape == frame.shape


# --- categories ------------------------------------------------------------------------------------------------------


def category(values, categories, **options):
    return pd.DataFrame({"a": pd.Categorical(values, categories=pd.Index(categories), **options)})


def write_frames(*frames, **options):
    with numparq.ParquetWriter(None, **options) as writer:
        for frame in frames:
            writer.write(frame)
    return writer.getvalue()


@pytest.mark.parametrize("make", [int, float, str, pd.Timestamp, lambda number: pd.Timestamp(number, unit="s")])
def test_categories_of_frames_are_merged_in_order(make):
    first, second = [make(3), make(1)], [make(2), make(3), make(5)]
    data = write_frames(category(first, first), category([second[1], second[0], None], second))
    got = numparq.read_parquet(data)["a"]
    assert got.cat.categories.tolist() == [*first, second[0], second[2]]
    assert got.tolist()[:4] == [*first, second[1], second[0]]
    assert got.isna().tolist() == [False] * 4 + [True]


def test_zeros_of_both_signs_are_one_category():
    got = numparq.read_parquet(write_frames(category([0.0, 1.0], [0.0, 1.0]), category([-0.0, 2.0], [-0.0, 2.0])))["a"]
    assert got.cat.categories.tolist() == [0.0, 1.0, 2.0]
    assert got.tolist() == [0.0, 1.0, 0.0, 2.0]


@pytest.mark.parametrize("count", [1000, 300_000])
@pytest.mark.parametrize("text", [False, True])
def test_dictionaries_beyond_the_limit_are_in_the_first_row_group(text, count):
    values = np.random.default_rng(1).permutation(count)
    labels = pd.Index(values.astype(str)) if text else pd.Index(values)
    frame = pd.DataFrame({"a": pd.Categorical.from_codes(np.arange(1000) % 70, labels, ordered=True)})
    data = numparq.to_parquet(frame, row_group_size=300)
    assert_round_trip(numparq.read_parquet(data), frame)
    sizes = [pq.read_metadata(io.BytesIO(data)).row_group(group).column(0).total_uncompressed_size for group in (0, 1)]
    assert count == 1000 or sizes[1] * 10 < sizes[0]


@pytest.mark.parametrize("values", [[30, 10, None], ["c", "a", None], [3.5, 1.5, None]])
@pytest.mark.parametrize("options", [{"use_dictionary": False}, {"column_encoding": "PLAIN"}])
def test_without_a_dictionary_only_used_categories_remain(values, options):
    frame = category(values, [values[0], values[1]])
    got = write_and_read(frame, row_group_size=1, **options)
    assert_round_trip(got, frame)
    ascending = category(values, [values[1], values[0]], ordered=True)
    assert_round_trip(write_and_read(ascending, row_group_size=1, **options), ascending)
    assert (
        write_and_read(category(values, [*values[:2], values[0] * 2]), **options)["a"].cat.categories.tolist()
        == values[:2]
    )


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "str", "datetime64[s]"])
def test_row_groups_with_and_without_a_dictionary(dtype, tmp_path):
    labels = pd.Index([5, 3, 9]).astype(dtype)
    frames = [pd.DataFrame({"a": pd.Categorical.from_codes(codes, labels)}) for codes in ([1, 0], [-1, 2, 2], [0])]
    path = tmp_path / "file"
    for number, frame in enumerate(frames):
        numparq.to_parquet(frame, path, append=number > 0, use_dictionary=number != 1, data_page_version="2.0")
    expected = pd.DataFrame({"a": pd.Categorical.from_codes([1, 0, -1, 2, 2, 0], labels)})
    assert_round_trip(numparq.read_parquet(path), expected)
    assert_round_trip(numparq.read_parquet(path, threads=1), expected)


def test_row_selections_keep_all_categories():
    frame = pd.DataFrame({"a": pd.Categorical.from_codes([2, 0, -1, 0], pd.Index([5, 3, 9])), "b": range(4)})
    data = numparq.to_parquet(frame, row_group_size=2)
    assert_round_trip(numparq.read_parquet(data, nrows=0), frame.iloc[:0])
    assert_round_trip(numparq.read_parquet(data, row_groups=[]), frame.iloc[:0])
    assert_round_trip(numparq.read_parquet(data, row_range=(1, 3)), frame.iloc[1:3].reset_index(drop=True))
    assert_round_trip(
        numparq.read_parquet(data, columns=["a"], row_groups=[1]), frame[["a"]].iloc[2:].reset_index(drop=True)
    )


def test_dtype_backend_and_categories_options():
    data = numparq.to_parquet(pd.DataFrame({"a": pd.Categorical([3, 1]), "s": pd.arrays.SparseArray([1, 0])}))
    assert [str(dtype) for dtype in numparq.read_parquet(data, dtype_backend="numpy_nullable").dtypes] == ["Int64"] * 2
    assert numparq.read_parquet(data, categories=["a"])["a"].cat.categories.tolist() == [3, 1]


def test_boolean_categories_of_a_later_frame():
    got = numparq.read_parquet(write_frames(category([True], [True]), category([False, None], [False])))["a"]
    assert got.cat.categories.tolist() == [True, False]
    assert got.tolist()[:2] == [True, False]
    assert got.isna()[2]


@given(st.data())
def test_random_categoricals(data):
    dtype = data.draw(st.sampled_from(["int8", "uint16", "int64", "float64", "str", "M8[s]", "m8[ns]"]))
    values = data.draw(st.lists(st.integers(0, 100), unique=True, max_size=20))
    labels = pd.Index(values, dtype="int64").astype(dtype)
    codes = data.draw(st.lists(st.integers(-1, len(labels) - 1), max_size=40))
    frame = pd.DataFrame({"a": pd.Categorical.from_codes(codes, labels, ordered=data.draw(st.booleans()))})
    size = data.draw(st.integers(1, 20))
    got = write_and_read(frame, row_group_size=size, data_page_size=data.draw(st.sampled_from([16, 1 << 20])))
    assert_round_trip(got, frame)


# --- files of other writers, and invalid metadata --------------------------------------------------------------------


def test_pyarrow_files_read_as_by_pyarrow(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical([3, 1]), "b": np.array([1, 2], "M8[s]"), "c": ["x", "y"]})
    frame["c"] = frame["c"].astype(object)
    frame.to_parquet(tmp_path / "file")
    expected = pd.read_parquet(tmp_path / "file")
    assert str(expected["a"].dtype) == "int64"
    assert_round_trip(numparq.read_parquet(tmp_path / "file"), expected)
    numparq.to_parquet(frame, tmp_path / "file", append=True)
    assert_round_trip(numparq.read_parquet(tmp_path / "file"), pd.concat([expected, expected], ignore_index=True))


def test_later_values_beyond_the_first_dtype_are_not_lost():
    exact, finer = pd.DataFrame({"a": np.array([1, 2], "M8[s]")}), pd.DataFrame({"a": np.array([1, 2001], "M8[ms]")})
    got = numparq.read_parquet(write_frames(exact, finer))["a"]
    assert got.dtype == "datetime64[ms]"
    assert got.astype("int64").tolist() == [1000, 2000, 1, 2001]
    zoned = [frame.apply(lambda column: column.dt.tz_localize("Europe/Paris")) for frame in (exact, finer)]
    assert numparq.read_parquet(write_frames(*zoned))["a"].dtype == "datetime64[ms, Europe/Paris]"
    numbers = write_frames(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": pd.array([None, 3], "Int64")}))
    assert numparq.read_parquet(numbers)["a"].tolist()[3] == 3


@pytest.mark.parametrize(
    "note",
    [
        None,
        5,
        "nonsense",
        {},
        {"sparse": "int64"},
        {"sparse": 5, "fill_value": 0},
        {"categories": {}},
        {"categories": {"categories": "int64"}},
        "datetime64",
        "datetime64[D]",
        {"categories": "datetime64[s]"},
        {"categories": "Sparse[int64, 0]"},
        {"sparse": "datetime64[s]", "fill_value": "x"},
        {"categories": "int64", "values": 5},
        {"string": "str"},
        {"timestamp": "D", "zone": "UTC"},
        {"timestamp": "s", "zone": "Not/There"},
        {"arrow": True},
        {"categories": {"categories": {"categories": {"categories": {}}}}},
        "a" * 10_000,
        ["x"],
    ],
)
def test_invalid_dtype_metadata_is_ignored(note, monkeypatch):
    from numparq.format.key_values import pandas_dtypes

    monkeypatch.setattr(pandas_dtypes, "extra_dtype_json", lambda dtype: note)
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert write_and_read(frame).isna().sum().tolist() == [0, 1]


@pytest.mark.parametrize("kind", [pa.string(), pa.int16(), pa.binary(3), pa.timestamp("us")], ids=str)
def test_null_codes_without_categories(kind):
    """Found by the property test of filters: only null codes, and a schema that names the type of the categories."""
    schema = pa.schema({"c": pa.dictionary(pa.int32(), kind)})
    data = numparq.to_parquet(pd.DataFrame({"c": pd.Categorical([None, None], categories=[])}), schema=schema)
    assert numparq.read_parquet(data)["c"].isna().tolist() == [True, True]
