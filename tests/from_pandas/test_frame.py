"""Frames shredded into columns: schema, metadata and values must match the file that pyarrow writes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
import pandas.core.arrays.arrow.extension_types  # noqa: E402  (registers pandas' extension types)

from numparq.from_pandas.frame import shred_frame  # noqa: E402
from support.data.pandas_frames import BASE, EXTENSIONS, INDEXES, LABELS, NULLS, VALUES, array_of  # noqa: E402
from support.shredded import assert_shredded_like_pyarrow, rows_of  # noqa: E402


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", VALUES)
def test_arrow_types_match_pyarrow(name, nulls):
    arrow_type, values = VALUES[name]
    array = pa.chunked_array([array_of(arrow_type, NULLS[nulls](values))])
    assert_shredded_like_pyarrow(pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(array)}))


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_dtypes_match_pyarrow(name):
    assert_shredded_like_pyarrow(pd.DataFrame({"a": EXTENSIONS[name]}))


@pytest.mark.parametrize("index", [None, True, False])
@pytest.mark.parametrize("name", INDEXES)
def test_indexes_match_pyarrow(name, index):
    assert_shredded_like_pyarrow(BASE.set_index(INDEXES[name]), index=index)


@pytest.mark.parametrize("name", LABELS)
def test_column_labels_match_pyarrow(name):
    assert_shredded_like_pyarrow(pd.DataFrame([[1, 2], [3, 4]], columns=LABELS[name]))


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "f2",
        "f4",
        "f8",
        "M8[s]",
        "M8[ms]",
        "M8[us]",
        "M8[ns]",
        "m8[s]",
        "m8[ms]",
        "m8[us]",
        "m8[ns]",
    ],
)
def test_numpy_dtypes_match_pyarrow(dtype):
    rng = np.random.default_rng(5)
    size = np.dtype(dtype).itemsize
    if np.dtype(dtype).kind in "Mm":
        values = rng.integers(-(2**40), 2**40, 40).view(dtype)
        values[[3, 7]] = "NaT"
    elif dtype == "bool":
        values = rng.integers(0, 2, 40).astype(bool)
    else:
        values = np.frombuffer(rng.bytes(40 * size), dtype).copy()
        if values.dtype.kind == "f":
            values[[2, 5]] = [np.nan, -0.0]
    assert_shredded_like_pyarrow(pd.DataFrame({"a": values}))
    assert_shredded_like_pyarrow(pd.DataFrame({"a": values[:0]}))
    assert_shredded_like_pyarrow(pd.DataFrame(np.repeat(values.reshape(-1, 1), 3, axis=1)[:8], columns=list("abc")))


def chunked(arrow_type, *chunks):
    return pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(chunk, arrow_type) for chunk in chunks]))


@pytest.mark.parametrize(
    ("arrow_type", "values"),
    [
        (pa.string(), ["a", None, "bcd"]),
        (pa.large_string(), ["a", "é", None]),
        (pa.string_view(), ["a" * 20, None]),
        (pa.int16(), [1, None, 3]),
        (pa.bool_(), [True] * 9),
        (pa.binary(2), [b"ab", None]),
        (pa.float16(), [1.0, 2.0]),
        (pa.decimal128(5, 1), [5, None]),
        (pa.dictionary(pa.int8(), pa.string()), ["x", None, "y"]),
    ],
    ids=str,
)
def test_chunked_arrays_match_pyarrow(arrow_type, values):
    assert_shredded_like_pyarrow(pd.DataFrame({"a": chunked(arrow_type, values, [], values[::-1], values[:1])}))
    sliced = chunked(arrow_type, values * 2, values)[2:]
    assert_shredded_like_pyarrow(pd.DataFrame({"a": sliced}))


def test_single_chunk_strings_are_not_copied():
    array = chunked(pa.large_string(), ["a", "bc", None, "d"])
    frame = pd.DataFrame({"a": pd.array(array, dtype="str")})
    (leaf,) = shred_frame(frame).columns[0].read_leaves(1, 4)
    chunk = frame["a"].array.__arrow_array__().chunk(0)
    assert leaf.starts.ctypes.data == chunk.buffers()[1].address + 8
    assert leaf.values.ctypes.data == chunk.buffers()[2].address


def test_numbers_are_not_copied():
    for values in (np.arange(9), np.arange(9.0), np.arange(9).astype("M8[ns]"), np.arange(9, dtype="u4")):
        frame = pd.DataFrame({"a": values})
        (leaf,) = shred_frame(frame).columns[0].read_leaves(3, 5)
        assert np.shares_memory(leaf.values, frame["a"].to_numpy())
        assert leaf.validity is None


def test_big_endian_values():
    values = np.array([1, 2, 3], ">i8")
    frame = pd.DataFrame({"a": pd.Series(values), "b": pd.Series(values.astype(">f4"))})
    assert rows_of(shred_frame(frame), 0, 3) == [[1, 2, 3], [np.float32(v).tobytes() for v in (1, 2, 3)]]


def test_duplicate_labels_get_unique_names():
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", "a_1", "a"])
    shredded = shred_frame(frame)
    assert [column.node.name for column in shredded.columns] == ["a", "a_2", "a_1", "a_3"]
    table = pa.table({column.node.name: [number] for number, column in enumerate(shredded.columns)})
    back = table.replace_schema_metadata({"pandas": shredded.key_value_metadata["pandas"]}).to_pandas()
    assert list(back.columns) == ["a", "a", "a_1", "a"]


def test_rows_without_columns():
    shredded = assert_shredded_like_pyarrow(pd.DataFrame(index=pd.RangeIndex(5)))
    assert shredded.num_rows == 5
    assert shredded.columns == []
    assert_shredded_like_pyarrow(pd.DataFrame(index=["x", "y"]))
    assert shred_frame(pd.DataFrame(index=range(3)), index=False).num_rows == 3
    assert_shredded_like_pyarrow(pd.DataFrame())


def test_attrs_are_stored_as_json():
    frame = pd.DataFrame({"a": [1]})
    frame.attrs = {"unit": "m", "n": [1, 2]}
    shredded = assert_shredded_like_pyarrow(frame)
    assert shredded.key_value_metadata["PANDAS_ATTRS"] == '{"unit": "m", "n": [1, 2]}'
    frame.attrs = {"odd": object()}
    with pytest.warns(UserWarning, match="attrs"):
        assert "PANDAS_ATTRS" not in shred_frame(frame).key_value_metadata


def test_column_name_with_surrogate_is_refused():
    from numparq.errors import SchemaError

    with pytest.raises(SchemaError, match="cannot be encoded as UTF-8"):
        shred_frame(pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)))


def test_series_is_refused():
    with pytest.raises(TypeError, match="Series"):
        shred_frame(pd.Series([1]))


@pytest.mark.parametrize(
    "arrays",
    [
        [[1, 1, 2], ["x", "y", "x"]],
        [[1, None, 2], ["x", None, "x"]],
        [pd.Index([1, None, 2], dtype="Int64"), pd.Index(["é", None, "x"], dtype="string")],
        [pd.Index([0.5, np.nan, 1]), pd.Index([1.5, 2, 3], dtype="f4")],
        [pd.DatetimeIndex(["2020", None, "2021"]), pd.date_range("2020", periods=3, tz="Asia/Tokyo").as_unit("s")],
        [pd.Categorical(["u", None, "u"]), pd.interval_range(0, 3)],
        [pd.period_range("2020", periods=3), pd.timedelta_range(0, periods=3)],
        [pd.Index([True, False, True]), pd.Index([None, None, None], dtype=object)],
        [pd.Index([b"a", None, b"b"], dtype=object), pd.array([1, None, 2], "int8[pyarrow]")],
    ],
)
def test_multiindex_levels_match_pyarrow(arrays):
    index = pd.MultiIndex.from_arrays(arrays, names=["one", None])
    assert_shredded_like_pyarrow(BASE.set_index(index))
    assert_shredded_like_pyarrow(BASE.set_index(index)[1:])


def test_multiindex_levels_stay_dictionaries():
    index = pd.MultiIndex.from_product([range(1000), ["a", "b"]], names=["n", "s"])
    shredded = shred_frame(pd.DataFrame({"v": np.zeros(2000)}, index=index))
    (leaf,) = shredded.columns[2].read_leaves(500, 700)
    assert len(leaf.values) == 2
    assert leaf.starts.tolist() == [0, 1] * 100
