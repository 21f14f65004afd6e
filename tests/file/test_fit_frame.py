"""Frames fitted to the columns before: `ParquetWriter`, `append=True`, `DatasetWriter`, as all readers read them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.errors import SchemaError

NAN, NAT = float("nan"), pd.NaT


def objects(*values) -> pd.Series:
    return pd.Series(list(values), dtype=object)


def as_frame(values) -> pd.DataFrame:
    return pd.DataFrame({"a": values, "n": np.arange(len(values))})


def by_writer(frames, path: str, **options) -> None:
    with numparq.ParquetWriter(path, **options) as writer:
        for frame in frames:
            writer.write(frame)


def by_append(frames, path: str, **options) -> None:
    for frame in frames:
        numparq.to_parquet(frame, path, append=True, **options)


def by_checkpoints(frames, path: str, **options) -> None:
    by_writer(frames, path, checkpoint_row_groups=1, **options)


WAYS = [by_writer, by_append, by_checkpoints]


def plain(value):
    """Return a value as Python's own objects; missing ones are None."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if value is None or value is pd.NA or value is NAT or value != value:
        return None
    return value


def read_everywhere(path: str) -> list:
    """Read the column with numparq, pyarrow, polars and duckdb; all must agree. Return its values."""
    found = pq.read_table(path)["a"].to_pylist()
    assert plain(numparq.ParquetFile(path).to_arrow(["a"])["a"].to_pylist()) == plain(found)
    assert plain(pl.read_parquet(path)["a"].to_list()) == plain(found)
    count = duckdb.sql(f"select count(a), count(*) from '{path}'").fetchall()[0]
    assert count == (sum(value is not None for value in found), len(found))
    numparq.read_parquet(path)
    assert [str(deviation) for deviation in numparq.verify(path)] == []
    return found


# Values of the first chunk and of a later one, and those that the file must have.
FITTED = {
    "NaN among integers": ([1, 2], [3.0, NAN], [1, 2, 3, None]),
    "whole floats": ([1, 2], [3.0, 4.0], [1, 2, 3, 4]),
    "all NaN": ([1, 2], [NAN, NAN], [1, 2, None, None]),
    "int32 after int64": (np.array([1 << 40]), np.array([2], np.int32), [1 << 40, 2]),
    "int64 after int32": (np.array([1], np.int32), np.array([2]), [1, 2]),
    "int64 after uint8": (np.array([1], np.uint8), np.array([255]), [1, 255]),
    "integers after floats": ([0.5], [3], [0.5, 3.0]),
    "float64 after float32": (np.array([0.5], np.float32), np.array([0.25, NAN]), [0.5, 0.25, None]),
    "float32 after float64": (np.array([0.1]), np.array([0.25], np.float32), [0.1, 0.25]),
    "None after text": (["x"], objects(None), ["x", None]),
    "None after nullable integers": (pd.Series([1], dtype="Int64"), objects(None, NAN), [1, None, None]),
    "None after booleans": ([True], objects(None), [True, None]),
    "None after timestamps": (
        pd.to_datetime(["2020-01-01"]).tz_localize("UTC"),
        objects(NAT),
        [pd.Timestamp("2020-01-01", tz="UTC"), None],
    ),
    "None after lists": ([[1]], objects(None), [[1], None]),
    "None after dicts": ([{"x": 1}], objects(None), [{"x": 1}, None]),
    "None after categories": (pd.Categorical(["u"]), objects(None), ["u", None]),
    "empty lists": ([[1]], [[], None], [[1], [], None]),
    "lists of None": ([["x"]], [[None]], [["x"], [None]]),
    "lists of dicts, empty": ([[{"x": 1}]], [[]], [[{"x": 1}], []]),
    "fewer keys": ([{"x": 1, "y": "z"}], [{"x": 2}], [{"x": 1, "y": "z"}, {"x": 2, "y": None}]),
    "keys in another order": ([{"x": 1, "y": "z"}], [{"y": "u", "x": 2}], [{"x": 1, "y": "z"}, {"x": 2, "y": "u"}]),
    "fewer keys in lists": (
        [[{"x": 1, "y": [2]}]],
        [[{"x": 2}, {"y": [3]}], None],
        [[{"x": 1, "y": [2]}], [{"x": 2, "y": None}, {"x": None, "y": [3]}], None],
    ),
    "NaN in lists of integers": ([np.array([1, 2])], [np.array([3.0, NAN])], [[1, 2], [3, None]]),
    "whole floats in dicts": ([{"x": 1}], [{"x": 2.0}], [{"x": 1}, {"x": 2}]),
    "decimals of less scale": (
        [Decimal("10.25")],
        [Decimal("3.5"), None],
        [Decimal("10.25"), Decimal("3.50"), None],
    ),
    "integers after decimals": ([Decimal("10.25")], [3], [Decimal("10.25"), Decimal("3.00")]),
    "bytes of one length": (
        pd.Series([b"ab"], dtype=pd.ArrowDtype(pa.binary(2))),
        [b"cd"],
        [b"ab", b"cd"],
    ),
    "coarser timestamps": (
        pd.Series(pd.to_datetime(["2020-01-01"])).astype("M8[us]"),
        pd.Series(pd.to_datetime(["2020-01-02", None])).astype("M8[s]"),
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"), None],
    ),
    "finer timestamps of whole microseconds": (
        pd.Series(pd.to_datetime(["2020-01-01"])).astype("M8[us]"),
        pd.Series(pd.to_datetime(["2020-01-02"])).astype("M8[ns]"),
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")],
    ),
    "finer durations": (
        pd.Series(pd.to_timedelta(["1s"])).astype("m8[us]"),
        pd.Series(pd.to_timedelta(["2s"])).astype("m8[ns]"),
        [pd.Timedelta("1s"), pd.Timedelta("2s")],
    ),
    "coarser durations": (
        pd.Series(pd.to_timedelta(["1s"])).astype("m8[ns]"),
        pd.Series(pd.to_timedelta(["2s", None])).astype("m8[ms]"),
        [pd.Timedelta("1s"), pd.Timedelta("2s"), None],
    ),
    "categories of other integers": (np.array([1]), pd.Categorical(np.array([2, 2, None], object)), [1, 2, 2, None]),
}

# The same with only nulls first.
OPEN = {
    "lists": (objects(None, NAN), [[1, 2], None, []], [None, None, [1, 2], None, []]),
    "dicts": (objects(None), [{"x": 1, "y": ["z"]}, None], [None, {"x": 1, "y": ["z"]}, None]),
    "lists of dicts": (objects(None), [[{"x": 1}, None], []], [None, [{"x": 1}, None], []]),
    "lists of lists after lists": ([[], None, [None]], [[[1], None]], [[], None, [None], [[1], None]]),
    "dicts after empty lists": ([[], None, [None]], [[{"x": 1, "y": None}]], [[], None, [None], [{"x": 1, "y": None}]]),
    "lists in dicts": (
        [{"x": None, "y": 1}, None],
        [{"x": ["z"], "y": 2}],
        [{"x": None, "y": 1}, None, {"x": ["z"], "y": 2}],
    ),
    "dicts in dicts": (
        [{"x": None, "y": "u"}, None],
        [{"x": {"v": 1, "w": [1.5]}, "y": "u"}],
        [{"x": None, "y": "u"}, None, {"x": {"v": 1, "w": [1.5]}, "y": "u"}],
    ),
    "dicts in lists of dicts": (
        [[{"x": None, "y": 1}], [], None],
        [[{"x": {"v": True}, "y": 1}]],
        [[{"x": None, "y": 1}], [], None, [{"x": {"v": True}, "y": 1}]],
    ),
    "booleans in dicts": ([{"x": None}], [{"x": True}], [{"x": None}, {"x": True}]),
    "text": (objects(None, NAN), ["x", None], [None, None, "x", None]),
    "integers": (objects(None), [1], [None, 1]),
    "floats": (objects(None), [0.5, NAN], [None, 0.5, None]),
    "booleans": (objects(None), [True, False], [None, True, False]),
    "small integers": (objects(None), np.array([1], np.int8), [None, 1]),
    "dates": (objects(None), [date(2020, 1, 1)], [None, date(2020, 1, 1)]),
    "decimals": (objects(None), [Decimal("1.5")], [None, Decimal("1.5")]),
    "categories": (objects(None), pd.Categorical(["u", "v", "u"]), [None, "u", "v", "u"]),
    "halves": (objects(None), np.array([0.5], np.float16), [None, 0.5]),
    "empty lists": ([[], None], [[1], [None]], [[], None, [1], [None]]),
    "empty lists of text": ([[]], [["x"]], [[], ["x"]]),
    "lists of lists": ([[[], None]], [[[1.5]]], [[[], None], [[1.5]]]),
    "keys without a value": ([{"x": None, "y": 1}], [{"x": "z", "y": 2}], [{"x": None, "y": 1}, {"x": "z", "y": 2}]),
    "keys in lists": ([[{"x": None}], []], [[{"x": 2}]], [[{"x": None}], [], [{"x": 2}]]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", FITTED)
def test_values_are_fitted(tmp_path, case: str, way: Callable):
    first, later, expected = FITTED[case]
    path = str(tmp_path / "a.parquet")
    way([as_frame(first), as_frame(later)[["n", "a"]]], path)
    assert plain(read_everywhere(path)) == expected
    assert pq.read_schema(path).field("a").type == pq.read_schema(_written(first)).field("a").type


def _written(values) -> io.BytesIO:
    return io.BytesIO(numparq.to_parquet(as_frame(values)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0", "write_page_index": False, "compression": None}])
@pytest.mark.parametrize("case", OPEN)
def test_types_follow_from_the_first_values(tmp_path, case: str, options: dict, way: Callable):
    first, later, expected = OPEN[case]
    path = str(tmp_path / "a.parquet")
    way([as_frame(part) for part in (first, first, later, first, later)], path, **options)
    nulls, values = expected[: len(first)], expected[len(first) :]
    assert plain(read_everywhere(path)) == nulls * 2 + values + nulls + values
    assert pq.read_schema(path).field("a").type == pq.read_schema(_written(later)).field("a").type
    assert pq.ParquetFile(path).metadata.num_row_groups == 5
    other = str(tmp_path / "b.parquet")
    way([as_frame(later), as_frame(first)], other)
    assert numparq.read_parquet(path).dtypes.equals(numparq.read_parquet(other).dtypes)


@pytest.mark.parametrize("way", WAYS)
def test_nulls_alone_stay_nulls(tmp_path, way: Callable):
    path = str(tmp_path / "a.parquet")
    way([as_frame(objects(None)), as_frame(objects(NAN, None))], path)
    assert read_everywhere(path) == [None] * 3
    assert pq.read_schema(path).field("a").type == pa.null()


def test_a_frame_without_rows_leaves_types_open(tmp_path):
    path = str(tmp_path / "a.parquet")
    by_writer([as_frame(objects()), as_frame(["x"])], path)
    assert read_everywhere(path) == ["x"]


@pytest.mark.parametrize("nulls", [pa.nulls(2), pa.array([[], None], pa.list_(pa.null()))])
def test_nulls_of_pyarrow_get_a_type(tmp_path, nulls: pa.Array):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": nulls, "n": pa.array([0, 1])}), path)
    value = "x" if pa.types.is_null(nulls.type) else ["x"]
    by_append([as_frame([value])], path)
    assert read_everywhere(path) == [*nulls.to_pylist(), value]


@pytest.mark.parametrize("value", [True, {"x": True}, [True]])
def test_booleans_follow_a_dictionary_without_entries(tmp_path, value):
    """No reader expects a dictionary of booleans, so that pages of the file are written again."""
    path = str(tmp_path / "a.parquet")
    kinds = {bool: pa.null(), dict: pa.struct({"x": pa.null()}), list: pa.list_(pa.null())}
    nulls = {bool: [None, None], dict: [{"x": None}, None], list: [[None], []]}[type(value)]
    table = pa.table({"a": pa.array(nulls, kinds[type(value)]), "n": pa.array([0, 1])})
    pq.write_table(table, path, row_group_size=1)
    assert pq.read_metadata(path).row_group(0).column(0).has_dictionary_page
    by_append([as_frame([value])], path)
    assert read_everywhere(path) == [*nulls, value]


def test_retyped_elements_keep_names_and_field_ids(tmp_path):
    path = str(tmp_path / "a.parquet")
    fields = [pa.field(name, pa.null(), metadata={"PARQUET:field_id": str(7 + n)}) for n, name in enumerate("ab")]
    pq.write_table(pa.table([pa.nulls(1), pa.nulls(1)], schema=pa.schema(fields)), path)
    by_append([pd.DataFrame({"a": ["x"], "b": [None]})], path)
    assert [field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(path)] == [b"7", b"8"]
    assert pq.read_schema(path).types == [pa.large_string(), pa.null()]


def test_arrow_data_are_fitted(tmp_path):
    path = str(tmp_path / "a.parquet")
    tables = [
        pa.table({"a": pa.array([{"x": 1, "y": "z"}]), "b": pa.array([1])}),
        pa.table({"b": pa.array([2.0, None]), "a": pa.array([{"x": 2.0}, None])}),
        pa.table({"b": pa.nulls(1), "a": pa.nulls(1)}),
    ]
    by_writer(tables, path)
    found = pq.read_table(path)
    assert found["a"].to_pylist() == [{"x": 1, "y": "z"}, {"x": 2, "y": None}, None, None]
    assert found["b"].to_pylist() == [1, 2, None, None]
    assert found.schema.types == tables[0].schema.types
    by_writer([tables[2], tables[1]], path)
    assert read_everywhere(path) == [None, {"x": 2.0}, None]


# First values, later ones, and the error: its column, and its text.
REFUSED = {
    "a fraction": ([1], [2.0, 2.5], "a", "row 1: 2.5 does not fit int64; convert the column, or begin the file"),
    "infinity": ([1], [float("inf")], "a", "row 0: inf does not fit int64; "),
    "too large": (np.array([1], np.int8), [1, 1000], "a", "row 1: 1000 does not fit int8; "),
    "negative": (np.array([1], np.uint64), [-1], "a", "row 0: -1 does not fit uint64; "),
    "beyond float64": ([0.5], [1, (1 << 53) + 1], "a", f"row 1: {(1 << 53) + 1} does not fit float64; "),
    "rounding": (np.array([0.5], np.float32), [0.5, 0.1], "a", "row 1: 0.1 does not fit float32; "),
    "text": ([1], ["1"], "a", "the file has INT64, the frame BYTE_ARRAY STRING; convert the column"),
    "integers for text": (["1"], [1], "a", "the file has BYTE_ARRAY STRING, the frame INT64; convert"),
    "booleans": ([1], [True], "a", "the file has INT64, the frame BOOLEAN; convert"),
    "bytes for text": (["x"], [b"x"], "a", "the file has BYTE_ARRAY STRING, the frame BYTE_ARRAY; convert"),
    "integers for timestamps": (pd.to_datetime(["2020-01-01"]), [5], "a", "the file has INT64 TIMESTAMP"),
    "a time zone": (
        pd.to_datetime(["2020-01-01"]),
        pd.to_datetime(["2020-01-01"]).tz_localize("UTC"),
        "a",
        "timestamps with a time zone and without one",
    ),
    "nanoseconds": (
        pd.Series(pd.to_datetime(["2020-01-01"])).astype("M8[us]"),
        pd.to_datetime(["2020-01-01 00:00:00.000000001"]),
        "a",
        "row 0: np.datetime64('2020-01-01T00:00:00.000000001') does not fit timestamp[us]; ",
    ),
    "integers for durations": (
        pd.to_timedelta(["1s"]),
        [5],
        "a",
        "the file has duration[us], the frame int64; convert the column",
    ),
    "durations for integers": ([5], pd.to_timedelta(["1s"]), "a", "the file has int64, the frame duration[us]; "),
    "periods of other lengths": (
        pd.period_range("2020", periods=1, freq="Y"),
        pd.period_range("2020", periods=1, freq="D"),
        "a",
        'the file has pandas.period({"freq": "Y-DEC"}), the frame pandas.period({"freq": "D"}); ',
    ),
    "intervals of other sides": (
        pd.IntervalIndex.from_tuples([(0, 1)], closed="left"),
        pd.IntervalIndex.from_tuples([(0, 1)], closed="right"),
        "a",
        "the file has pandas.interval",
    ),
    "a new key": ([{"x": 1}], [{"x": 1, "zz": 2}], "a", "a dict has the key 'zz', but the file does not; drop it"),
    "another key": ([{"x": None}], [{"y": 2}], "a", "a dict has the key 'y', but the file does not; drop it"),
    "a fraction in a list": ([[1]], [[1.0], [2.5]], "a.list.element", "row 1: 2.5 is not a whole number"),
    "text in a list": ([[1]], [["x"]], "a.element", "the file has int64, the frame string; convert"),
    "narrower floats in a list": (
        [np.array([0.5], np.float32)],
        [np.array([0.5])],
        "a.element",
        "the file has float32, the frame float64; convert",
    ),
}


@pytest.mark.parametrize("way", [by_writer, by_append])
@pytest.mark.parametrize("case", REFUSED)
def test_values_that_do_not_fit_are_named(tmp_path, case: str, way: Callable):
    first, later, column, message = REFUSED[case]
    path = str(tmp_path / "a.parquet")
    with pytest.raises(SchemaError) as raised:
        way([as_frame(first), as_frame(later)], path)
    assert raised.value.message.startswith(message)
    assert raised.value.where["column"] == column
    assert "schema=" in raised.value.message or "time zone" in raised.value.message
    assert len(numparq.read_parquet(path)) == len(first) if way is by_append else not os.path.exists(path)


def test_a_refused_frame_leaves_the_writer_usable():
    with numparq.ParquetWriter(None) as writer:
        writer.write(as_frame([1, 2]))
        with pytest.raises(SchemaError):
            writer.write(as_frame(["x"]))
        writer.write(as_frame([NAN]))
    assert pq.read_table(io.BytesIO(writer.getvalue()))["a"].to_pylist() == [1, 2, None]


def test_rows_are_those_of_the_frame_in_later_row_groups():
    with numparq.ParquetWriter(None, row_group_size=4) as writer:
        writer.write(as_frame([1]))
        with pytest.raises(SchemaError, match=r"row 9: 0\.5 does not fit int64"):
            writer.write(as_frame([1.0] * 9 + [0.5]))


def test_required_columns_take_frames_without_nulls(tmp_path):
    path = str(tmp_path / "a.parquet")
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"a": [1]}, schema=schema), path)
    by_append([pd.DataFrame({"a": [2.0]}), pd.DataFrame({"a": [3]})], path)
    assert read_everywhere(path) == [1, 2, 3]
    with pytest.raises(SchemaError, match="row 1 is null, but the schema requires a value"):
        by_append([pd.DataFrame({"a": [4.0, NAN]})], path)


def test_schema_converts_and_the_result_is_fitted(tmp_path):
    path = str(tmp_path / "a.parquet")
    by_append([pd.DataFrame({"a": np.array([0.5], np.float32)})], path)
    by_append([pd.DataFrame({"a": [0.1]})], path, schema={"a": pa.float32()})
    assert pq.read_table(path)["a"].to_pylist() == [0.5, float(np.float32(0.1))]


@pytest.mark.parametrize("partition_cols", [None, ["k"]])
def test_dataset_writers_fit_later_frames(tmp_path, partition_cols):
    frames = [
        pd.DataFrame({"k": [1, 2, 1], "v": [1, 2, 3], "l": [[1], [2], []], "o": [None] * 3}),
        pd.DataFrame({"o": [None] * 3, "l": [[], None, []], "v": [4.0, NAN, 5.0], "k": [2, 1, 2]}),
        pd.DataFrame({"k": [1, 2, 1], "v": [NAN] * 3, "l": [None] * 3, "o": ["x", "y", None]}),
    ]
    with DatasetWriter(tmp_path, partition_cols=partition_cols) as writer:
        for frame in frames:
            writer.write(frame)
    found = numparq.Dataset(tmp_path).to_arrow().select(["v", "l", "o"])
    assert found.schema.types == [pa.int64(), pa.list_(pa.int64()), pa.large_string()]
    expected = pd.concat(frames)
    if partition_cols:
        expected = expected.sort_values("k", kind="stable")
    assert plain(found["v"].to_pylist()) == plain(expected["v"].tolist())
    assert plain(found["l"].to_pylist()) == plain(expected["l"].tolist())
    assert plain(found["o"].to_pylist()) == plain(expected["o"].tolist())


def test_dataset_writers_name_rows_that_do_not_fit(tmp_path):
    with DatasetWriter(tmp_path, partition_cols=["k"]) as writer:
        writer.write(pd.DataFrame({"k": [1, 2], "v": [1, 2]}))
        with pytest.raises(SchemaError, match=r"0\.5 does not fit int64; convert the column"):
            writer.write(pd.DataFrame({"k": [1, 2], "v": [1, 0.5]}))
