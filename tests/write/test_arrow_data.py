"""Arrow data of other libraries, written as they are: equal to pyarrow's own file of the same stream."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import numparq

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

STRUCT = pa.struct([pa.field("x", pa.int16(), nullable=False), ("y", pa.large_string())])
COLUMNS = {
    "int8": pa.array([1, None, 3], pa.int8()),
    "uint64": pa.array([1, None, 2**63], pa.uint64()),
    "float16": pa.array([1.5, None, 2], pa.float16()),
    "double": pa.array([1.5, None, -0.0]),
    "bool": pa.array([True, None, False]),
    "string": pa.array(["x", None, ""]),
    "string_view": pa.array(["x", None, "y" * 40], pa.string_view()),
    "binary_view": pa.array([b"x", None, b"y" * 40], pa.binary_view()),
    "fixed": pa.array([b"xy", None, b"ab"], pa.binary(2)),
    "null": pa.nulls(3),
    "date64": pa.array([date(2020, 1, 1), None, date(1, 1, 1)], pa.date64()),
    "time": pa.array([time(1, 2, 3), None, time(4)], pa.time64("ns")),
    "timestamp": pa.array(
        [datetime(2020, 1, 1, tzinfo=UTC), None, datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")
    ),
    "duration": pa.array([timedelta(1), None, timedelta(2)]),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("2.25")], pa.decimal128(10, 2)),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "ordered": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array(["z", "a"]), ordered=True),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "list_view": pa.array([["a", None], None, []], pa.list_view(pa.string())),
    "fixed_list": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
    "dictionaries": pa.array([["a"], None, []], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": 2, "y": None}], STRUCT),
    "map": pa.array([[("k", [1])], None, []], pa.map_(pa.string(), pa.list_(pa.int64()))),
    "uuid": pa.array([b"1" * 16, None, b"2" * 16], pa.uuid()),
}


def pyarrow_file(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer


def test_types_nulls_and_metadata_equal_pyarrow():
    fields = [
        pa.field(name, values.type, metadata={"unit": name, "PARQUET:field_id": "7"})
        for name, values in COLUMNS.items()
    ]
    schema = pa.schema(
        [*fields, pa.field("required", pa.int64(), nullable=False)], metadata={"key": "value", "b": b"\xff"}
    )
    table = pa.table([*COLUMNS.values(), pa.array([1, 2, 3])], schema=schema)
    data, expected = numparq.to_parquet(table), pyarrow_file(table)
    ours, theirs = pq.read_table(io.BytesIO(data)), pq.read_table(expected)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.equals(theirs)
    assert pq.ParquetFile(io.BytesIO(data)).schema.equals(pq.ParquetFile(expected).schema)
    assert numparq.read_parquet(data).equals(numparq.read_parquet(expected))


def test_run_end_encoded_values_are_decoded():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", None])).slice(1, 3)
    assert numparq.read_parquet(numparq.to_parquet(pa.table({"a": runs})))["a"].tolist()[0] == "a"


@pytest.mark.parametrize("batch_rows", [1, 7, 100])
def test_batches_are_gathered_into_row_groups(batch_rows):
    table = pa.table({"a": np.arange(50), "b": pa.array([str(number % 3) for number in range(50)]).dictionary_encode()})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(batch_rows))
    file = numparq.ParquetFile(numparq.to_parquet(reader, row_group_size=20))
    assert file._file.footer.row_group_num_rows.tolist() == [20, 20, 10]
    assert file.read()["a"].tolist() == list(range(50))


def test_index_in_the_metadata_of_a_table_is_restored():
    for index in (pd.Index(["p", "q"], name="id"), pd.RangeIndex(5, 9, 2), None):
        frame = pd.DataFrame({"x": [1, 2]}, index)
        for data in (pa.Table.from_pandas(frame), pa.RecordBatch.from_pandas(frame)):
            pd.testing.assert_frame_equal(numparq.read_parquet(numparq.to_parquet(data)), frame)


def test_schema_overrides_the_types():
    data = numparq.to_parquet(pa.table({"a": [1, 2], "b": ["x", "y"]}), schema={"a": pa.int16()})
    assert pq.read_schema(io.BytesIO(data)).types == [pa.int16(), pa.string()]


def test_empty_stream_writes_a_file_without_rows():
    data = numparq.to_parquet(pa.table({"a": pa.array([], pa.int8())}))
    assert pq.read_table(io.BytesIO(data)).schema.types == [pa.int8()]
    assert numparq.ParquetFile(data).num_rows == 0


def test_datasets_of_arrow_data(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["p", "q"]))
    views = pa.array([["x"], None, ["z"]], pa.list_(pa.string_view()))
    table = pa.table({"year": [2023, 2024, 2023], "views": views, "runs": runs, "l": [[1], None, []]})
    numparq.to_parquet(table, tmp_path / "d", partition_cols=["year"])
    found = pq.read_table(tmp_path / "d", partitioning=None)
    assert found.to_pydict() == {"views": [["x"], ["z"], None], "runs": ["p", "q", "q"], "l": [[1], [], None]}
    assert found.schema.field("views").type == views.type
    assert numparq.read_parquet(tmp_path / "d")["year"].astype(int).tolist() == [2023, 2023, 2024]


def test_numparq_file_as_a_stream():
    data = numparq.to_parquet(pd.DataFrame({"a": range(10), "b": "x"}))
    with numparq.ParquetFile(data) as file:
        assert numparq.read_parquet(numparq.to_parquet(file.iter_batches(batch_rows=3))).equals(file.read())


def test_polars():
    pl = pytest.importorskip("polars")
    columns = {
        "i": [1, None, 3],
        "s": ["x", None, "y" * 40],
        "category": pl.Series(["u", None, "v"], dtype=pl.Categorical),
        "enum": pl.Series(["u", None, "v"], dtype=pl.Enum(["v", "u"])),
        "struct": [{"x": 1, "y": [time(1)]}, None, {"x": None, "y": None}],
        "array": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int8, 2)),
        "none": [None] * 3,
    }
    frame = pl.DataFrame(columns)
    found = pl.read_parquet(io.BytesIO(numparq.to_parquet(frame)))
    assert found.schema == frame.schema
    assert found.equals(frame)
    with pytest.raises(TypeError, match=r"not polars\.lazyframe\.frame\.LazyFrame; call its collect"):
        numparq.to_parquet(frame.lazy())
    with pytest.raises(TypeError, match=r"df must be a table, not a polars\.series\.series\.Series; put a single"):
        numparq.to_parquet(frame["i"])


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    query = (
        "select i, 'x' || i as s, [i] as l, {'k': i} as t, map([1], [i]) as m, i::decimal(9, 2) as d from range(5) r(i)"
    )
    relation = duckdb.sql(query)
    assert pq.read_table(io.BytesIO(numparq.to_parquet(relation))).equals(
        pq.read_table(pyarrow_file(relation.to_arrow_table()))
    )


def test_index_and_missing_pyarrow():
    table = pa.table({"a": [1]})
    with pytest.raises(ValueError, match="Arrow data has no index to write; omit index=True"):
        numparq.to_parquet(table, index=True)
    with (
        mock.patch.dict("sys.modules", {"pyarrow": None}),
        pytest.raises(ImportError, match="writing Arrow data needs pyarrow"),
    ):
        numparq.to_parquet(table)


def test_failure_in_the_stream_aborts_the_file(tmp_path):
    def batches():
        yield pa.record_batch({"a": np.arange(10)})
        raise OSError("the connection was lost")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    writer = numparq.ParquetWriter(tmp_path / "x.parquet", row_group_size=5)
    with pytest.raises(OSError, match="the connection was lost"):
        writer.write(reader)
    with pytest.raises(ValueError, match="the writer is closed"):
        writer.write(pa.table({"a": [1]}))
    assert not list(tmp_path.iterdir())


def test_metadata_that_are_not_text_are_kept_for_arrow_alone():
    table = pa.table({"a": [1]}).replace_schema_metadata({"text": "x", "raw": b"\xff\x00", b"\xff": b"y"})
    data = numparq.to_parquet(table)
    assert pq.read_table(io.BytesIO(data)).schema.metadata == table.schema.metadata
    assert pytest.importorskip("polars").read_parquet(io.BytesIO(data)).shape == (1, 1)
    assert numparq.verify(data) == []
    with pytest.raises(numparq.SchemaError, match=r"the Arrow metadata of the key b'raw' are not UTF-8"):
        numparq.to_parquet(table, schema={"a": pa.int8()})
