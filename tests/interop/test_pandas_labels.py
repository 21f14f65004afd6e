"""Labels of columns and levels, missing and of any type: in files of pyarrow and fastparquet, and in our own."""

from __future__ import annotations

import datetime
import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAN = np.nan


def written_by_pyarrow(frame):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # labels that become strings
        pq.write_table(pa.Table.from_pandas(frame), buffer)
    return buffer.getvalue()


def with_columns(labels):
    labels = labels if isinstance(labels, pd.Index) else pd.Index(labels)
    return pd.DataFrame(np.arange(2.0 * len(labels)).reshape(2, -1), columns=labels)


def with_index(names):
    arrays = [["a", "b"], pd.Categorical(["x", "y"]), [1, None]]
    return pd.DataFrame({"v": [1, 2]}, index=pd.MultiIndex.from_arrays(arrays[: len(names)], names=names))


# pandas with pyarrow gives the same
LIKE_PYARROW = {
    "text and None": ["a", None],
    "NaN and text": [NAN, "a"],
    "the word nan": ["a", "nan"],
    "floats": [1.5, NAN],
    "only NaN": [NAN],
    "timestamps": pd.DatetimeIndex(["2020", None]),
    "zoned timestamps": pd.DatetimeIndex(["2020", None], tz="UTC"),
    "pairs": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=[None, "n"]),
}
# pyarrow is wrong, or raises an exception
BEYOND_PYARROW = {
    "booleans": [True, False],
    "Int64": pd.Index([1, None], dtype="Int64"),
    "Float64": pd.Index([1.5, None], dtype="Float64"),
    "boolean": pd.Index([True, None], dtype="boolean"),
    "times": [datetime.time(1), datetime.time(2, 3, 4, 5)],
    "intervals": pd.IntervalIndex.from_breaks([0, 1, 2], closed="left"),
    "intervals of floats": pd.IntervalIndex.from_tuples([(0.5, 1), (-1.5, 2)]),
    "durations": pd.to_timedelta(["1s", None]),
    "pairs with None": pd.MultiIndex.from_tuples([("a", None), ("b", "x")]),
    "pairs with NaN": pd.MultiIndex.from_tuples([("a", 1.5), ("b", NAN)]),
    "pairs with quotes": pd.MultiIndex.from_tuples([("nan, 'nan'", NAN), ('"', 1.0)]),
    "pairs of booleans": pd.MultiIndex.from_tuples([("a", True), ("b", False)]),
}


@pytest.mark.parametrize("name", [*LIKE_PYARROW, *BEYOND_PYARROW])
def test_labels_written_by_pyarrow(name):
    frame = with_columns((LIKE_PYARROW | BEYOND_PYARROW)[name])
    data = written_by_pyarrow(frame)
    pd.testing.assert_frame_equal(numparq.read_parquet(data), frame)
    if name in LIKE_PYARROW:
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), frame)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["nan", NAN], ["nan", NAN]),
        ([None, "None"], [NAN, "None"]),
        (["<NA>", "a"], ["<NA>", "a"]),
        (pd.Index(["a", pd.NA], dtype="string"), ["a", NAN]),
        (pd.CategoricalIndex(["a", None]), ["a", NAN]),
    ],
)
def test_labels_whose_dtype_pyarrow_loses(labels, found):
    labels = pd.Index(labels, dtype=object) if isinstance(labels, list) else labels
    read = numparq.read_parquet(written_by_pyarrow(with_columns(labels)))
    pd.testing.assert_index_equal(read.columns, pd.Index(found, dtype="str"))
    assert read.to_numpy().tolist() == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize("name", [("a", 1), ("a", ("b", 2)), NAN, 1.5, True])
def test_names_in_files_of_pyarrow(name):
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.RangeIndex(2, name=name)).rename_axis(columns=[name])
    found = numparq.read_parquet(written_by_pyarrow(frame))
    assert repr((found.index.name, found.columns.name)) == repr((name, name))


def test_names_in_files_of_fastparquet(tmp_path):
    fastparquet = pytest.importorskip("fastparquet")
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.RangeIndex(2, name=("a", 1))).rename_axis(columns=[("b", 2)])
    fastparquet.write(str(tmp_path / "f"), frame)
    found = numparq.read_parquet(tmp_path / "f")
    assert (found.index.name, found.columns.name) == (("a", 1), ("b", 2))


@pytest.mark.parametrize("columns", [None, ["v"]])
def test_index_levels_of_one_name(columns):
    """pyarrow writes both levels as columns of the same name, and cannot read them."""
    frame = with_index([1.5, 1.5])
    found = numparq.read_parquet(written_by_pyarrow(frame), columns)
    assert found.index.to_list() == [("a", "x"), ("b", "y")]
    assert found.index.names == ["1.5", "1.5"]


@pytest.mark.parametrize("names", [[1, 0], [2, 0, 1], [0, 0, 0], [NAN, pd.NaT, None]])
def test_names_that_look_like_level_numbers(names):
    """pandas takes an integer for a level's name first; pyarrow therefore writes the wrong levels."""
    frame = with_index(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = numparq.read_parquet(numparq.to_parquet(frame))
    assert repr(list(found.index.names)) == repr(names)
    plain, wanted = (index.set_names([None] * len(names)).to_frame() for index in (found.index, frame.index))
    pd.testing.assert_frame_equal(plain.reset_index(drop=True), wanted.reset_index(drop=True))


MISSING = [None, NAN, pd.NaT]
SCALARS = st.one_of(
    st.sampled_from(MISSING),
    st.text(st.characters(codec="utf-8"), max_size=3),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(max_size=3),
    st.dates(),
    st.times().map(lambda time: time.replace(fold=0)),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(pd.Timestamp),
)
LABELS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS))


@given(st.lists(LABELS, max_size=5), LABELS, LABELS)
def test_any_labels_come_back(labels, index_name, columns_name):
    columns = pd.Index(labels, dtype=object, tupleize_cols=False).set_names([columns_name])
    index = pd.RangeIndex(2).set_names([index_name])
    frame = pd.DataFrame(np.arange(2.0 * len(labels)).reshape(2, -1), index=index, columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # other readers see them as strings
        found = numparq.read_parquet(numparq.to_parquet(frame))
    for made, wanted in ((found.columns, columns), (found.index, index)):
        assert (made.dtype, list(map(repr, made)), repr(made.name)) == (
            wanted.dtype,
            list(map(repr, wanted)),
            repr(wanted.name),
        )
    assert (found.to_numpy() == frame.to_numpy()).all()


@given(
    st.lists(
        st.one_of(st.none(), st.just(NAN), st.text(st.characters(codec="utf-8"), max_size=3)), min_size=1, unique=True
    )
)
def test_texts_and_missing_labels_written_by_pyarrow(labels):
    frame = with_columns(pd.Index(labels, dtype="str").unique())
    pd.testing.assert_frame_equal(numparq.read_parquet(written_by_pyarrow(frame)), frame)
