"""The pandas key of a footer: its fields, large documents, index and labels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from numparq.format.key_values import json_document
from numparq.format.key_values.pandas import PandasMetadata, RangeIndexLevel
from numparq.to_pandas.labels import column_labels, row_index

pa = pytest.importorskip("pyarrow")


def metadata_of(frame: pd.DataFrame) -> bytes:
    return pa.Table.from_pandas(frame).schema.metadata[b"pandas"]


FRAME = pd.DataFrame(
    {
        "a": [1],
        "t": pd.DatetimeIndex(["2020"], tz="Europe/Paris"),
        "n": pd.array([1], dtype="Int64"),
        "c": pd.Categorical(["x"]),
        "d": pd.DatetimeIndex(["2020"]),
    },
    index=pd.Index([5], name="i"),
)


def test_parsed_fields():
    metadata = PandasMetadata.parse(metadata_of(FRAME))
    assert metadata.index == metadata.index_fields == ("i",)
    assert metadata.index_name("i") == "i"
    assert metadata.timezone("t") == "Europe/Paris"
    assert metadata.timezone("a") is None
    assert metadata.extension_dtype("n") == pd.Int64Dtype()
    assert [metadata.extension_dtype(name) for name in "atcdi?"] == [None] * 6
    assert metadata.labels(["a"])[0] == "a"
    assert metadata.labels(["?"])[0] == "?"


def test_generated_level_names_are_none():
    frame = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_arrays([[1], [2]]))
    metadata = PandasMetadata.parse(metadata_of(frame))
    assert metadata.index == ("__index_level_0__", "__index_level_1__")
    assert [metadata.index_name(level) for level in metadata.index] == [None, None]


def test_metadata_before_2018():
    old = {
        "index_columns": ["__index_level_0__"],
        "column_indexes": [],
        "columns": [
            {"name": "a", "pandas_type": "int64", "numpy_type": "int64", "metadata": None},
            {"name": "i", "pandas_type": "int64", "numpy_type": "int64", "metadata": None},
        ],
    }
    metadata = PandasMetadata.parse(json.dumps(old))
    assert metadata.index_name("__index_level_0__") == "i"
    assert metadata.labels(["a"])[0] == "a"


def test_pandas_own_attrs_come_first():
    assert PandasMetadata.parse('{"attributes": {"a": 1}}', '{"b": 2}').attrs == {"b": 2}
    assert PandasMetadata.parse('{"attributes": {"a": 1}}').attrs == {"a": 1}
    assert PandasMetadata.parse(None, '{"b": 2}').attrs == {"b": 2}
    assert PandasMetadata.parse(None) is None
    assert PandasMetadata.parse("[]", "5") is None


# --- large documents ----------------------------------------------------

NAMES = [f'c{i} "quoted" \\ ü, "columns": [' + "{" * (i % 2) for i in range(300)]
PLAIN, WITH_BRACE = NAMES[6], NAMES[7]


def large_frame(**attrs) -> pd.DataFrame:
    frame = pd.DataFrame(np.zeros((1, 300)), columns=NAMES)
    frame[PLAIN] = frame[WITH_BRACE] = pd.array([1], dtype="Int8")
    frame.attrs = attrs
    return frame


@pytest.mark.parametrize("attrs", [{}, {"k": [1, {"columns": [{"field_name": "x", "numpy_type": "y"}]}]}], ids=str)
def test_large_documents_are_parsed_lazily(attrs):
    text = metadata_of(large_frame(**attrs))
    document, columns = json_document.parse_pandas_json(text)
    assert columns is not None
    assert "columns" not in document
    assert document == {key: value for key, value in json.loads(text).items() if key != "columns"}
    assert columns.parse_all() == json.loads(text)["columns"]
    assert columns.find(PLAIN)["numpy_type"] == "Int8"
    assert columns.find(WITH_BRACE) is None
    few, whole = PandasMetadata.parse(text), PandasMetadata(json.loads(text))
    for name in [PLAIN, NAMES[250], WITH_BRACE, "not there", *NAMES]:
        assert few.labels([name])[0] == whole.labels([name])[0]
        assert few.extension_dtype(name) == whole.extension_dtype(name)
    assert few.attrs == whole.attrs == attrs


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "}",
        lambda text: text.replace('], "attributes"', '], "columns": [], "attributes"'),
        lambda text: text.replace('"columns": [', '"columns":['),
        lambda text: "[" + text + "]",
        lambda text: '{"outer": ' + text + "}",
    ],
    ids=["cut", "too long", "columns twice", "other blanks", "in a list", "in an object"],
)
def test_unsplittable_documents_are_parsed_whole(change):
    text = change(metadata_of(large_frame()).decode())
    document, columns = json_document.parse_pandas_json(text)
    assert columns is None
    try:
        assert document == (json.loads(text) if isinstance(json.loads(text), dict) else None)
    except ValueError:
        assert document is None


def test_incomplete_entries_fall_back_to_the_whole_document():
    entries = [{"field_name": f"c{i}", "name": f"C{i}"} for i in range(1000)]
    metadata = PandasMetadata.parse(json.dumps({"index_columns": [], "columns": entries, "attributes": {}}))
    assert metadata.labels(["c999"])[0] == "C999"


# --- index and labels ----------------------------------------------------


def with_index(*levels) -> PandasMetadata:
    return PandasMetadata({"index_columns": list(levels)})


def test_range_index_must_match_the_row_count():
    level = {"kind": "range", "name": "r", "start": 9, "stop": 0, "step": -3}
    metadata = with_index(level)
    assert metadata.index == (RangeIndexLevel(9, 0, -3, "r"),)
    pd.testing.assert_index_equal(row_index(metadata, [], 3), pd.RangeIndex(9, 0, -3, name="r"), exact=True)
    pd.testing.assert_index_equal(row_index(metadata, [], 2), pd.RangeIndex(2), exact=True)


def test_unread_index_level_is_omitted():
    metadata = with_index("i", "j")
    pd.testing.assert_index_equal(row_index(metadata, [("j", np.array([4, 5]))], 2), pd.Index([4, 5], name="j"))
    pd.testing.assert_index_equal(row_index(metadata, [], 2), pd.RangeIndex(2), exact=True)


@pytest.mark.parametrize(("length", "step"), [(0, 1), (1, 1), (7, 2), (7, -2), (10**15, 1), (10**15, -7)])
def test_range_index_lengths(length, step):
    stop = length * step
    metadata = with_index({"kind": "range", "start": 0, "stop": stop, "step": step})
    assert len(range(0, stop, step)) == length
    assert row_index(metadata, [], length).step == step or length == 0


def test_labels_that_contradict_the_metadata_stay_strings():
    for pandas_type, numpy_type in [
        ("int64", "int64"),
        ("datetime", "datetime64[ns]"),
        ("datetimetz", "datetime64[ns]"),
        ("decimal", "object"),
        ("nonsense", "nonsense"),
        ("float64", "nonsense"),
        (5, 6),
    ]:
        metadata = PandasMetadata({"column_indexes": [{"pandas_type": pandas_type, "numpy_type": numpy_type}]})
        assert column_labels(metadata, ["a", "b"]).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "name",
    ["a", "('a',)", "('a', 'b', 'c')", "(" * 5000, "['a', 'b']", "1 + 1", "('a', 'b'" + " " * 20_000 + ")"],
    ids=lambda name: name[:12],
)
def test_labels_that_are_not_tuples_stay_strings(name):
    metadata = PandasMetadata({"column_indexes": [{}, {}]})
    labels = column_labels(metadata, ["('x', 'y')", name])
    assert not isinstance(labels, pd.MultiIndex)
    assert labels.tolist() == ["('x', 'y')", name]


def test_repeated_column_names():
    assert column_labels(None, ["a", "a"]).tolist() == ["a", "a"]
