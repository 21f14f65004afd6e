"""Files and batches as Arrow streams: equal to pyarrow's reader, for pyarrow, polars and duckdb, without copies."""

from __future__ import annotations

import datetime
import decimal
import io
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from support.files.builder import extended_idl
from support.files.page_damage import damage_body, edit_footer, pages_of

duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")

N = 300


def column(values, arrow_type=None):
    return pa.array([values[number % len(values)] for number in range(N)], arrow_type)


FLAT = {
    "bool": column([True, None, False]),
    "i8": column([1, None, -3], pa.int8()),
    "u16": column([1, 65535], pa.uint16()),
    "i64": column([2**62, None]),
    "u64": column([2**64 - 1, 0], pa.uint64()),
    "f32": column([1.5, None], pa.float32()),
    "f64": column([1.5, float("nan"), None]),
    "f16": pa.array(np.arange(N, dtype=np.float16)),
    "text": column(["a", None, "größer", ""]),
    "large_text": column(["a", None], pa.large_string()),
    "bytes": column([b"\xff", None]),
    "fixed": column([b"abc", None], pa.binary(3)),
    "date": column([datetime.date(2020, 1, 1), None]),
    "time_ms": column([datetime.time(1, 2, 3), None], pa.time32("ms")),
    "time_ns": column([1, None], pa.time64("ns")),
    "stamp": column([datetime.datetime(2020, 1, 1), None], pa.timestamp("us")),
    "zoned": column([datetime.datetime(2020, 1, 1), None], pa.timestamp("ms", "Europe/Berlin")),
    "duration": column([1, None], pa.duration("us")),
    "decimal": column([decimal.Decimal("1.23"), None], pa.decimal128(9, 2)),
    "wide_decimal": column([decimal.Decimal("1.23"), None], pa.decimal256(50, 2)),
    "null": pa.nulls(N),
    "dictionary": column(["x", "y", None]).dictionary_encode(),
    "uuid": column([uuid.UUID(int=5).bytes, None], pa.uuid()),
}
NESTED = {
    "list": column([[1, 2], None, [], [None]]),
    "large_list": column([[1], None], pa.large_list(pa.int32())),
    "fixed_list": column([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
    "struct": column([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
    "map": column([[("k", 1.5)], None, []], pa.map_(pa.string(), pa.float64())),
    "deep": column([[{"x": [[1], None]}], None]),
}


def write_table(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **{"row_group_size": 100, **options})
    return buffer


def read_by_pyarrow(buffer, **options):
    return pq.read_table(buffer, **options)


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"store_schema": False}])
@pytest.mark.parametrize("name", [*FLAT, *NESTED])
def test_every_type(name, options):
    table = pa.table({name: {**FLAT, **NESTED}[name]})
    if name in ("f16", "duration", "null") and options.get("store_schema") is False:
        pytest.skip("other tests cover the type without its Arrow schema")
    buffer = write_table(table, **options)
    expected = read_by_pyarrow(buffer)
    with numparq.ParquetFile(buffer) as file:
        got = pa.table(file)
        # pyarrow names the entries of a map after the column, Arrow "entries".
        assert got.schema.equals(expected.schema, check_metadata=name != "map"), (got.schema, expected.schema)
        assert got.equals(expected) or name in ("f64", "dictionary")
        assert got[name].to_pylist().__repr__() == expected[name].to_pylist().__repr__()
        got.validate(full=True)


def test_schema_before_rows():
    """The schema needs no page of the file, and is that of every batch."""
    table = pa.table({**FLAT, **NESTED})
    content = bytearray(write_table(table, compression=None).getvalue())
    first = pq.read_metadata(io.BytesIO(bytes(content))).row_group(0).column(0).data_page_offset
    content[first : first + 8] = bytes(8)
    reader = pa.RecordBatchReader.from_stream(numparq.ParquetFile(bytes(content)))
    assert reader.schema.names == table.schema.names
    with pytest.raises(Exception, match="row group 0"):
        reader.read_all()


def test_schema_metadata():
    schema = pa.schema([pa.field("a", pa.int64(), False, {"note": "x"}), pa.field("b", pa.string())], {"key": "value"})
    buffer = write_table(pa.table({"a": [1], "b": ["x"]}, schema))
    assert pa.table(numparq.ParquetFile(buffer)).schema.equals(pq.read_schema(buffer), check_metadata=True)
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="k"))
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    got = pa.table(numparq.ParquetFile(buffer))
    assert got.schema.equals(pq.read_schema(buffer), check_metadata=True)
    pd.testing.assert_frame_equal(got.to_pandas(), frame)


def test_field_ids():
    struct = pa.struct([pa.field("x", pa.int32())])
    ids = {"a": {"PARQUET:field_id": "7"}, "s": {"PARQUET:field_id": "9"}}
    schema = pa.schema([pa.field("a", pa.int64(), metadata=ids["a"]), pa.field("s", struct, metadata=ids["s"])])
    table = pa.table({"a": [1], "s": [{"x": 1}]}, schema)
    for options in ({}, {"store_schema": False}):
        buffer = write_table(table, **options)
        got = pa.table(numparq.ParquetFile(buffer)).schema
        assert got.field("a").metadata == pq.read_schema(buffer).field("a").metadata
        assert got.field("s").metadata == pq.read_schema(buffer).field("s").metadata


def test_polars_reads_streams():
    names = [name for name in FLAT if name not in ("wide_decimal", "u64", "duration", "uuid")]
    table = pa.table({name: FLAT[name] for name in names} | {name: NESTED[name] for name in ("list", "struct", "deep")})
    file = numparq.ParquetFile(write_table(table))
    got = pl.DataFrame(file)
    assert got.equals(pl.from_arrow(read_by_pyarrow(write_table(table))))
    few = pl.DataFrame(file.iter_batches(["i64", "text"], filters=col("i64").is_null(), batch_rows=30))
    assert few.columns == ["i64", "text"]
    assert len(few) == N // 2


def test_duckdb_reads_streams():
    names = ["i64", "u64", "text", "decimal", "date", "stamp", "dictionary", "list", "struct", "map"]
    table = pa.table({name: {**FLAT, **NESTED}[name] for name in names})
    file = numparq.ParquetFile(write_table(table))
    assert duckdb.sql("select count(*), count(i64), max(u64) from file").fetchall() == [(N, N // 2, 2**64 - 1)]
    got = duckdb.sql("select * from file").to_arrow_table()
    assert got["struct"].to_pylist() == table["struct"].to_pylist()
    batches = file.iter_batches(["text"], batch_rows=50)  # noqa: F841  (duckdb finds it)
    assert duckdb.sql("select count(*) from batches where text = 'a'").fetchall() == [(N // 4,)]


def test_batches_are_streamed():
    table = pa.table({"a": range(10_000), "s": ["x" * (number % 50) for number in range(10_000)]})
    file = numparq.ParquetFile(write_table(table, row_group_size=1000))
    reader = pa.RecordBatchReader.from_stream(file.iter_batches(batch_rows=300, include=["row_number", "file"]))
    batches = list(reader)
    assert max(len(batch) for batch in batches) <= 300
    got = pa.Table.from_batches(batches)
    assert got.select(["a", "s"]).equals(table)
    assert got["row_number"].to_pylist() == list(range(10_000))
    assert got["file"][0].as_py() == "<BytesIO>"


def test_streams_are_zero_copy(monkeypatch):
    """The consumer gets the buffers that columns were decoded into."""
    from numparq.scan import scan
    from numparq.to_pandas import frame as to_pandas_frame

    layouts = []
    original = to_pandas_frame.allocate_blocks

    def record(*arguments):
        layouts.append(original(*arguments))
        return layouts[-1]

    monkeypatch.setattr(scan, "allocate_blocks", record)
    table = pa.table({"a": range(1000), "b": np.random.default_rng(0).random(1000)})
    got = pa.table(numparq.ParquetFile(write_table(table, row_group_size=1000)))
    (layout,) = layouts
    for number, name in enumerate(["a", "b"]):
        assert got[name].chunk(0).buffers()[1].address == layout.values[number].ctypes.data
    frame = pl.DataFrame(numparq.ParquetFile(write_table(table, row_group_size=1000)))
    address = frame["a"].to_arrow().buffers()[1].address
    assert address == layouts[1].values[0].ctypes.data


@pytest.fixture
def count_units(monkeypatch):
    """Count the units that are read, of which default ones are small, and the readers that plan them."""
    from numparq.scan.scan import Scan
    from numparq.scan.stream import units
    from numparq.scan.stream.unit_reader import UnitReader

    counts = {"units": 0, "readers": 0}

    def count(kind, name, key):
        original = getattr(kind, name)

        def counted(*arguments):
            counts[key] += 1
            return original(*arguments)

        monkeypatch.setattr(kind, name, counted)

    count(Scan, "read_unit", "units")
    count(UnitReader, "__init__", "readers")
    monkeypatch.setattr(units.BatchSize, "DEFAULT_LIMIT", 300_000)
    return counts


def make_files(folder, tables, **options):
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=5000, **options)


@pytest.mark.parametrize(
    ("columns", "filters"),
    [
        (None, None),
        (["s", "a"], None),
        (["d"], col("a") > 7000),
        (None, col("f") > 0.5),
        (None, col("a") < -5),
        ([], None),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_a_table_is_read_at_once(tmp_path, count_units, count, columns, filters):
    """Nothing is divided of rows that are returned together."""
    rng, rows = np.random.default_rng(3), 20_000
    table = pa.table(
        {
            "a": pa.array(np.arange(rows), mask=rng.random(rows) < 0.1),
            "f": rng.random(rows),
            "s": pa.array(rng.integers(0, 10**6, rows).astype(str), mask=rng.random(rows) < 0.1),
            "d": pa.array([f"k{number // 1000}" for number in range(rows)]).dictionary_encode(),
            "t": pa.array(np.arange(rows), pa.timestamp("ms", "UTC")),
            "n": pa.array(rng.integers(0, 10**6, rows)).cast(pa.decimal128(21, 2)),
        }
    )
    make_files(tmp_path, [table.slice(number * 10) for number in range(count)])
    source = numparq.ParquetFile(tmp_path / "0.parquet") if count == 1 else numparq.Dataset(tmp_path)
    with source:
        found = source.to_arrow(columns, filters)
        assert count_units == {"units": 1, "readers": 0}
        expected = pa.table(source.iter_batches(columns, filters, dtype_backend="pyarrow"))
        assert count_units["units"] > 2 or filters is not None or columns == []
        frame = source.read(columns, filters, dtype_backend="pyarrow")
    found.validate(full=True)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.num_rows == len(frame)
    for name in found.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist()
        assert found[name].to_pylist() == pa.array(frame[name].array, from_pandas=True).to_pylist()


def test_a_table_of_different_files(tmp_path, count_units):
    """Columns that are cast, missing or partitions have the types and values of a stream."""
    rng = np.random.default_rng(3)
    for number, kind in enumerate((pa.int32(), pa.float64(), pa.int8())):
        (tmp_path / f"k={number}").mkdir()
        values = {"a": pa.array(rng.integers(0, 99, 9000)).cast(kind), f"only_{number}": rng.random(9000)}
        make_files(tmp_path / f"k={number}", [pa.table(values)])
    with numparq.Dataset(tmp_path) as dataset:
        found = dataset.to_arrow()
        assert count_units == {"units": 1, "readers": 0}
        expected = pa.table(dataset)
        assert count_units["units"] > 2
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)
    assert found["a"].type == pa.float64()


def test_nested_columns_of_a_table_have_short_offsets(monkeypatch, count_units):
    """A list of more elements than 32-bit offsets count would have another type than the schema."""
    monkeypatch.setattr("numparq.to_pandas.nested.arrow._MAX_ELEMENTS", 30_000)
    lists = pa.ListArray.from_arrays(np.arange(0, 100_001, 5, dtype=np.int32), np.arange(100_000))
    table = pa.table({"l": lists, "a": np.arange(20_000)})
    for filters in (None, col("a") >= 100):
        found = numparq.ParquetFile(write_table(table, row_group_size=2000)).to_arrow(filters=filters)
        assert found.schema.field("l").type == pa.list_(pa.field("element", pa.int64()))
        assert found["l"].to_pylist() == table["l"].to_pylist()[100 if filters is not None else 0 :]
    assert count_units["readers"] == 2


def test_a_stream_is_planned_once(count_units):
    """Later streams, and frames after a stream, have readers of their own."""
    file = numparq.ParquetFile(write_table(pa.table({"a": np.arange(50_000)}), row_group_size=5000))
    assert pa.table(file)["a"].to_pylist() == list(range(50_000))
    assert count_units["readers"] == 1
    batches = file.iter_batches(dtype_backend="pyarrow")
    first, second = batches.reader(), batches.reader()
    pairs = list(zip(first, second, strict=True))
    assert all(one.equals(other) for one, other in pairs)
    assert sum(map(len, batches)) == sum(len(one) for one, _ in pairs) == 50_000
    assert count_units["readers"] == 4


def test_requested_schemas():
    file = numparq.ParquetFile(write_table(pa.table({"a": [1], "s": ["x"], "b": [b"y"]})))
    requested = pa.schema([("a", pa.int32()), ("s", pa.large_string()), ("b", pa.large_binary())])
    capsule = file.__arrow_c_stream__(requested.__arrow_c_schema__())
    reader = pa.RecordBatchReader._import_from_c_capsule(capsule)
    assert reader.schema.types == [pa.int64(), pa.large_string(), pa.large_binary()]
    assert reader.read_all().to_pydict() == {"a": [1], "s": ["x"], "b": [b"y"]}


def test_batches_stream_repeatedly_and_iterate_once():
    batches = numparq.ParquetFile(write_table(pa.table({"a": range(10)}))).iter_batches()
    assert [batches.reader().read_all().num_rows for _ in range(2)] == [10, 10]
    assert len(next(batches)) == 10
    with pytest.raises(ValueError, match="already"):
        batches.__arrow_c_stream__()


def test_file_streams_repeatedly(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(10)}), path)
    with numparq.ParquetFile(path) as file:
        assert [pa.table(file).num_rows for _ in range(3)] == [10, 10, 10]


def test_numparq_files():
    frame = pd.DataFrame({"a": [1, 2], "c": pd.Categorical(["x", "y"]), "s": pd.array(["p", None], "str")})
    data = numparq.to_parquet(frame)
    got = pa.table(numparq.ParquetFile(data))
    assert got.equals(read_by_pyarrow(io.BytesIO(data)))


def test_no_columns_and_no_rows():
    file = numparq.ParquetFile(write_table(pa.table({"a": range(10)})))
    assert file.iter_batches([]).reader().read_all().num_rows in (0, 10)
    empty = file.iter_batches(filters=col("a") > 100).reader().read_all()
    assert empty.num_rows == 0
    assert empty.schema.names == ["a"]


def test_metadata_that_are_no_utf8(tmp_path):
    def edit(footer):
        footer.key_value_metadata = [extended_idl().KeyValue(key=b"\x9bkey", value=b"\xff")]

    data = edit_footer(numparq.to_parquet(pd.DataFrame({"a": [1]})), edit)
    for number in range(2):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    for source in (numparq.ParquetFile(data), numparq.Dataset(tmp_path)):
        assert pa.table(source).schema.metadata == {b"\x9bkey": b"\xff"}


def test_long_metadata_are_left_out(monkeypatch):
    """pyarrow copies the metadata of a schema three times while it imports them."""
    monkeypatch.setattr("numparq.scan.stream.arrow_tables._MAX_METADATA_BYTES", 12)
    pairs = {"short": "1234", "long": "123456789", "fits": "12345678"}
    data = numparq.to_parquet(pa.table({"a": [1]}), key_value_metadata=pairs)
    with pytest.warns(UserWarning, match="the value of key 'long' has 9 bytes and is left out of the Arrow schema"):
        table = pa.table(numparq.ParquetFile(data))
    assert table.schema.metadata == {b"short": b"1234", b"fits": b"12345678"}


EXPLODED = {
    "list": {"explode": "l"},
    "map": {"explode": "m", "columns": ["m", "k"]},
    "structs": {"explode": "s.list.element"},
    "virtual columns": {"explode": "l", "include": ["file", "row_number", "position"]},
    "filter": {"explode": "l", "filters": numparq.col("k") > 5},
    "nothing": {"explode": "l", "filters": numparq.col("k") > 500},
    "no columns": {"explode": "l", "columns": []},
    "limits": {"explode": "s", "nrows": 11},
}


@pytest.mark.parametrize("options", EXPLODED.values(), ids=EXPLODED)
@pytest.mark.parametrize("many", [False, True])
def test_streams_of_exploded_rows(tmp_path, options, many):
    """They have the rows and columns of the frame, a stored index as columns."""
    for number in range(3 if many else 1):
        rows = 20 + number
        index = pd.Index(np.arange(rows) * 10, name="at")
        table = pa.Table.from_pandas(pd.DataFrame({"k": np.arange(rows) + 7 * number}, index=index))
        lists = [[row, None, row + 1][: row % 4] if row % 5 else None for row in range(rows)]
        maps = [[("a", row), ("b", None)] if row % 3 else [] for row in range(rows)]
        structs = [[{"x": row, "y": f"text {row}"}] * (row % 3) for row in range(rows)]
        for name, values in {
            "l": pa.array(lists, pa.list_(pa.int32())),
            "m": pa.array(maps, pa.map_(pa.string(), pa.int64())),
            "s": pa.array(structs),
            "t": pa.array([f"text {row}" for row in range(rows)]),
        }.items():
            table = table.append_column(name, values)
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=8)
    source = numparq.Dataset(tmp_path) if many else numparq.ParquetFile(tmp_path / "0.parquet")
    with source:
        batches = source.iter_batches(batch_rows=7, **options)
        found = pa.table(batches)
        expected = source.read(dtype_backend="pyarrow", **options)
    if len(found.column_names) > expected.shape[1]:
        expected = expected.assign(at=expected.index)
    assert found.column_names == list(expected.columns)
    assert found.num_rows == len(expected)
    for name in found.column_names:
        values = [None if value is pd.NA else value for value in expected[name].tolist()]
        assert found[name].to_pylist() == values
    assert "at" in found.column_names
    if "position" in found.column_names:
        assert found.schema.field("file").type == pa.string()
        assert found.schema.field("position").type == pa.int64()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """A file with a damaged page in its second row group."""
    sound = numparq.to_parquet(pd.DataFrame({"a": np.arange(900.0)}), row_group_size=300, use_dictionary=False)
    path = tmp_path_factory.mktemp("damaged") / "damaged.parquet"
    path.write_bytes(damage_body(sound, pages_of(sound, 1, "a")[0]))
    return path


@pytest.mark.parametrize("open_table", [numparq.ParquetFile, lambda path: numparq.Dataset([path, path])])
def test_damage_is_the_same_error_in_arrow_tables(damaged, open_table):
    """`to_arrow` and pyarrow's reader raise the error of `read`, of the same class, text and location."""
    table = open_table(damaged)
    for read in (
        table.read,
        table.to_arrow,
        lambda: table.to_arrow(["a"], col("a") >= 300),
        lambda: list(table.iter_batches(batch_rows=100)),
        lambda: table.iter_batches(dtype_backend="pyarrow").reader().read_all(),
    ):
        with pytest.raises(numparq.CorruptPageError, match="checksum") as caught:
            read()
        assert caught.value.where == {"file": str(damaged), "row_group": 1, "column": "a", "page": 0}
        assert len(str(caught.value)) < 250


def test_damage_in_arrow_streams_is_short(damaged):
    """An error crosses Arrow's C stream as text: it names the page, and has no frames of numparq but the last."""
    file = numparq.ParquetFile(damaged)
    for read in (
        lambda: pa.table(file),
        lambda: pa.table(file.iter_batches(batch_rows=100)),
        lambda: pl.from_arrow(file.iter_batches()),
        lambda: duckdb.from_arrow(pa.RecordBatchReader.from_stream(file)).fetchall(),
    ):
        with pytest.raises(Exception, match=r"damaged.parquet', row group 1, column 'a', page 0") as caught:
            read()
        assert len(str(caught.value)) < 1000
