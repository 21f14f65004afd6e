"""Splits read in other processes: schema-only types, pickled sizes and bytes read."""

from __future__ import annotations

import datetime
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import RuntimeFilter, col
from numparq.dataset.splits.split import Split
from numparq.dataset.splits.table import split_table
from numparq.format.bloom_filter import BloomFilter
from support.data.split_tables import numbered_frame, read_splits, rows_of, thousands


@pytest.fixture
def folder(tmp_path):
    return thousands(tmp_path / "table")


def test_split_types_are_schema_only(tmp_path):
    schema = pa.schema(
        [
            pa.field("required", pa.int64(), nullable=False),
            pa.field("i", pa.int64()),
            pa.field("u", pa.uint8()),
            pa.field("b", pa.bool_()),
            pa.field("f", pa.float64()),
            pa.field("c", pa.dictionary(pa.int8(), pa.string())),
            pa.field("t", pa.timestamp("ns")),
        ]
    )
    moment = datetime.datetime(2020, 1, 1)
    table = pa.table(
        {
            "required": [1, 2],
            "i": [1, 2],
            "u": [1, 2],
            "b": [True, False],
            "f": [1.0, 2.0],
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "t": [moment, moment],
        }
    ).cast(schema)
    (tmp_path / "p=1").mkdir()
    pq.write_table(table, tmp_path / "p=1" / "a.parquet", row_group_size=1, use_deprecated_int96_timestamps=True)
    divided_table = split_table(tmp_path, split_bytes=1)
    expected = {
        "required": "int64",
        "i": "Int64",
        "u": "UInt8",
        "b": "boolean",
        "f": "float64",
        "c": "str",
        "t": "datetime64[us]",
        "p": "Int32",
    }
    assert len(divided_table) == 2
    for split in [*divided_table.splits, Split()]:
        assert divided_table.frame(split).dtypes.astype(str).to_dict() == expected
    arrow = divided_table.arrow_schema
    assert arrow.field("t").type == pa.timestamp("us")
    assert arrow.field("c").type in (pa.string(), pa.large_string())
    assert [field.nullable for field in arrow] == [False] + [True] * 7


def test_split_types_are_independent_of_other_reads(tmp_path):
    """A type cached for a footer by one read does not leak into the other."""
    table = pa.table({"c": pa.array(["a", "b"]).dictionary_encode(), "id": [1, 2]})
    for number in range(2):
        pq.write_table(table if number else table.select(["c"]), tmp_path / f"{number}.parquet")
    for _ in range(2):
        with numparq.Dataset(str(tmp_path)) as dataset:
            assert isinstance(dataset.read()["c"].dtype, pd.CategoricalDtype)
        divided_table = split_table(str(tmp_path), min_splits=2)
        frames = [divided_table.frame(split) for split in [Split(), *divided_table.splits]]
        assert not any(isinstance(frame["c"].dtype, pd.CategoricalDtype) for frame in frames)


def test_explicit_partition_types(tmp_path):
    for value in ("2020-01-01", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"day={value}").mkdir()
        numparq.to_parquet(numbered_frame(3), tmp_path / f"day={value}" / "a.parquet")
    table = split_table(tmp_path, partitioning={"day": "date"}, min_splits=2)
    first, second = (table.frame(split)["day"] for split in table.splits)
    assert first.tolist() == [datetime.date(2020, 1, 1)] * 3
    assert second.isna().all()
    assert table.arrow_schema.field("day").type == pa.date32()


def test_only_dtypes_of_pandas_metadata_are_used(tmp_path):
    frame = pd.DataFrame(
        {"1": [1, 2], "c": pd.Categorical(["x", "y"]), "n": pd.array([1, None], "Int8")},
        index=pd.Index([5, 6], name="key"),
    )
    frame.attrs["note"] = 1
    numparq.to_parquet(frame, tmp_path / "a.parquet")
    read_frame = split_table(tmp_path / "a.parquet").frame(split_table(tmp_path / "a.parquet").splits[0])
    assert read_frame.columns.tolist() == ["1", "c", "n", "key"]
    assert read_frame.index.tolist() == [0, 1]
    assert not read_frame.attrs
    assert read_frame["c"].tolist() == ["x", "y"]
    assert read_frame["c"].dtype != "category"
    assert str(read_frame["n"].dtype) == "Int8"
    assert split_table(tmp_path / "a.parquet", ["n"]).names == ["n"]


def test_projected_struct_fields(tmp_path):
    structs = pa.array([{"x": 1, "y": {"z": "a"}}, None, {"x": 3, "y": None}])
    pq.write_table(pa.table({"st": structs, "a": [1, 2, 3]}), tmp_path / "1.parquet", row_group_size=1)
    pq.write_table(pa.table({"a": [4]}), tmp_path / "2.parquet")
    table = split_table(tmp_path, [("st", "y", "z"), "a", ("st", "x")], filters=col("a") != 2, split_bytes=1)
    with numparq.Dataset(tmp_path) as dataset:
        expected = dataset.read([("st", "y", "z"), "a", ("st", "x")], filters=col("a") != 2)
    assert table.names == list(expected)
    assert rows_of(read_splits(table)) == rows_of(expected)
    assert [part.num_rows for split in table.splits for part in table.tables(split)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("resolve", "expected"),
    [
        ("name", {"a": [1, None], "b": ["x", None], "c": [None, 2], "d": [None, "y"]}),
        ("position", {"a": [1, 2], "b": ["x", "y"]}),
        ("field_id", {"b": ["x", "y"], "a": [1, 2]}),
    ],
)
def test_column_resolution_modes(tmp_path, resolve, expected):
    for number, names in enumerate(("ab", "cd")):
        fields = [
            pa.field(name, kind, metadata={b"PARQUET:field_id": b"%d" % at})
            for at, (name, kind) in enumerate(zip(names, (pa.int32(), pa.string()), strict=True))
        ]
        table = pa.Table.from_arrays(
            [pa.array([number + 1], pa.int32()), pa.array(["xy"[number]])], schema=pa.schema(fields)
        )
        pq.write_table(table, tmp_path / f"{number}.parquet")
    for plan_files in (None, 0):
        frame = read_splits(split_table(tmp_path, resolve=resolve, min_splits=2, plan_files=plan_files))
        assert {name: [None if pd.isna(item) else item for item in frame[name]] for name in frame} == expected


def test_rows_without_columns(folder):
    table = split_table(folder, [], min_splits=3)
    assert sum(len(table.frame(split)) for split in table.splits) == 4000
    tables = [part for split in table.splits for part in table.tables(split)]
    assert sum(part.num_rows for part in tables) == 4000
    assert tables[0].num_columns == 0


def test_batches_of_rows_without_columns(folder):
    table = split_table(folder, [], col("id") != 5)
    assert [batch.num_rows for batch in table.tables(table.splits[0], 1_000)][-2:] == [1_000, 999]
    assert sum(batch.num_rows for split in table.splits for batch in table.tables(split, 7)) == table.count(
        table.splits[0]
    )


def test_variants_are_bytes_in_tables(parquet_testing):
    path = next((parquet_testing / "shredded_variant").glob("case-0*.parquet"))
    table = split_table(path)
    (kind,) = [field.type for field in table.arrow_schema if pa.types.is_struct(field.type)]
    assert {field.name for field in kind} == {"metadata", "value"}


READ = """
import pickle, sys
import pandas as pd
reader, splits = pickle.load(open(sys.argv[1], "rb"))
frames = [reader.frame(split) for split in splits]
tables = [table for split in splits for table in reader.tables(split, 300)]
pickle.dump((frames, [table.schema for table in tables], [table.num_rows for table in tables]), open(sys.argv[2], "wb"))
names = ("pyspark", "numparq.dataset.scan.query", "numparq.dataset.discover.snapshot")
print(sorted(name for name in names if name in sys.modules))
"""


def read_in_other_process(reader, splits, tmp_path):
    """Read splits in another process with another working directory."""
    request, response = tmp_path / "request.pickle", tmp_path / "response.pickle"
    request.write_bytes(pickle.dumps((reader, splits)))
    environment = dict(os.environ, PYTHONPATH=str(Path(numparq.__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-c", READ, request, response], capture_output=True, text=True, cwd="/", env=environment
    )
    assert done.returncode == 0, done.stderr
    return (*pickle.loads(response.read_bytes()), done.stdout.strip())


@pytest.mark.slow
def test_other_process_reads_same_rows(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    days = RuntimeFilter("id", low=100, high=3500)
    table = split_table(".", filters=col("s") == "a", runtime_filters=days, include=["file"], split_bytes=9000)
    frames, schemas, rows, loaded = read_in_other_process(table.reader, table.splits, tmp_path)
    with numparq.Dataset(".") as dataset:
        expected = dataset.read(filters=col("s") == "a", runtime_filters=days, include=["file"])
    got = pd.concat(frames)
    assert got["id"].tolist() == expected["id"].tolist()
    assert got["file"].tolist() == expected["file"].tolist()
    assert len(frames) > 3
    assert all(schema.equals(table.arrow_schema, check_metadata=True) for schema in schemas)
    assert sum(rows) == len(expected)
    assert loaded == "[]"


def test_pickled_reader_and_splits_are_small(tmp_path):
    for number in range(300):
        numparq.to_parquet(numbered_frame(20, number), tmp_path / f"{number:03}.parquet", row_group_size=5)
    table = split_table(tmp_path, min_splits=30)
    assert len(pickle.dumps(table.reader)) < 8000
    assert max(len(pickle.dumps(split)) for split in table.splits) < 6000
    copy = pickle.loads(pickle.dumps(table))
    assert copy.splits == table.splits
    assert copy.arrow_schema.equals(table.arrow_schema)


def test_reading_a_split_opens_only_its_files(folder):
    table = split_table(folder, split_bytes=4000)
    split = next(split for split in table.splits if split.files == [f"{folder}/p=1/3.parquet"])
    for path in folder.rglob("*.parquet"):
        if path.name != "3.parquet":
            path.unlink()
    assert table.frame(split)["id"].min() >= 3000


def test_split_read_opens_files_once_and_reads_only_its_bytes(folder, monkeypatch):
    from numparq.dataset.discover import open_files
    from numparq.dataset.splits import open_files as splits_open_files

    opened = []

    def recording_open(*arguments, **options):
        opened.append(opening_files(*arguments, **options))
        return opened[-1]

    opening_files = open_files.open_files
    monkeypatch.setattr(splits_open_files, "open_files", recording_open)
    monkeypatch.setattr("numparq.dataset.discover.open_files.TAIL_BYTES", 3000)
    monkeypatch.setattr("numparq.dataset.discover.open_files.MIN_TAIL_BYTES", 3000)
    table = split_table(folder, ["x"], split_bytes=4000)
    for split in table.splits[:3]:
        opened.clear()
        table.frame(split)
        (files,) = opened
        assert [file.source.name for file in files] == split.files
        ends = [max(file.source.size - file.footer_start, 3000) for file in files]
        assert sum(file.source.num_bytes for file in files) <= split.num_bytes + sum(ends) + 4 * len(files)


def test_runtime_filters_and_bloom_filters_are_pickled():
    bloom = BloomFilter.build(np.arange(100, dtype=np.uint64) << np.uint64(33))
    runtime_filter = RuntimeFilter("a", [1, 2], low=0, bloom_filter=bloom)
    copy = pickle.loads(pickle.dumps(runtime_filter))
    assert copy.has_arrived
    assert repr(copy) == repr(runtime_filter)
    assert copy.column == "a"
    with pytest.raises(ValueError, match="already arrived"):
        copy.arrive(low=1)
    waiting = pickle.loads(pickle.dumps(RuntimeFilter(("a", "b"))))
    assert not waiting.has_arrived
    assert waiting.column == ("a", "b")
    waiting.arrive(values=[1])
    assert waiting.has_arrived


def test_runtime_filters_added_after_planning(folder):
    table = split_table(folder, filters=col("p") == 0, min_splits=4)
    narrowed = table.with_runtime_filters([RuntimeFilter("id", low=1900), RuntimeFilter("p", [0, 3])])
    assert read_splits(narrowed)["id"].tolist() == list(range(1900, 2000))
    assert sum(map(narrowed.count, narrowed.splits)) == 100
    assert sum(map(table.count, table.splits)) == 2000
    for wrong in (RuntimeFilter("nothing", [1]), RuntimeFilter("id")):
        with pytest.raises(ValueError, match=r"nothing|arrive"):
            table.with_runtime_filters(wrong)


def test_partition_types_from_callable(folder):
    def types(listing):
        assert listing.keys == ("p",)
        assert [file.values for file in listing.files] == [("0",), ("0",), ("1",), ("1",)]
        return {"p": "float64"}

    table = split_table(folder, partitioning=types, filters=col("p") > 0.5)
    assert read_splits(table)["p"].tolist() == [1.0] * 2000
    assert table.arrow_schema.field("p").type == pa.float64()


def test_filters_of_all_types_are_pickled(tmp_path):
    frame = pd.DataFrame(
        {
            "t": pd.date_range("2020", periods=50, tz="UTC"),
            "s": ["ab", "cd"] * 25,
            "i": range(50),
            "d": [datetime.date(2020, 1, 1 + at % 28) for at in range(50)],
            "f": np.arange(50) / 2,
        }
    )
    numparq.to_parquet(frame, tmp_path / "a.parquet", row_group_size=10)
    filters = [
        col("t") > pd.Timestamp("2020-01-20", tz="UTC"),
        col("d").isin([datetime.date(2020, 1, 3)]),
        ~col("s").like("a%"),
        [[("i", "<", np.int32(5))], [("f", ">", 20.5)]],
        col("s").startswith("c") & (col("i") >= 40),
        col("i").not_in([1, 2]),
    ]
    for each in filters:
        table = split_table(tmp_path / "a.parquet", filters=each, split_bytes=1)
        expected = numparq.read_parquet(tmp_path / "a.parquet", filters=each)
        assert read_splits(table)["i"].tolist() == expected["i"].tolist()
        assert 0 < len(expected) < 50


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(
    "options",
    [
        {"row_range": (1500, 3700)},
        {"row_range": (999, 1001)},
        {"row_range": (3999, None)},
        {"row_range": (700, 2900), "filters": col("s") == "a"},
        {"row_range": (5000, 6000)},
        {"row_groups": [0, 3, 4]},
        {"row_groups": [1], "filters": col("x") > 0.5},
        {"row_groups": []},
    ],
)
@pytest.mark.parametrize("split_bytes", [1, 1 << 20])
def test_rows_by_position(folder, options, split_bytes, backend):
    table = split_table(folder, split_bytes=split_bytes, dtype_backend=backend, **options)
    expected = numparq.read_parquet(folder, dtype_backend="pyarrow", **options)
    assert rows_of(read_splits(table)) == rows_of(expected)
    if "filters" not in options:
        assert sum(split.num_rows for split in table.splits) == len(expected)
    assert sum(map(table.count, table.splits)) == len(expected)


def test_refused_rows_by_position(folder):
    with pytest.raises(ValueError, match="ascending order"):
        split_table(folder, row_groups=[2, 1])
    with pytest.raises(ValueError, match="ascending order"):
        split_table(folder, row_groups=[1, 1])
    with pytest.raises(ValueError, match="row group 99"):
        split_table(folder, row_groups=[99])
    with pytest.raises(ValueError, match="need all footers, but there are 4 files"):
        split_table(folder, row_range=(0, 5), plan_files=2)


@pytest.mark.parametrize("options", [{}, {"filters": col("x") > 0.2}, {"row_range": (500, 3500)}])
def test_damaged_rows_are_skipped(folder, options):
    names = sorted(path for path in folder.rglob("*.parquet"))
    path = names[1]
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data[chunk.data_page_offset : chunk.data_page_offset + 9] = b"\xff" * 9
    path.write_bytes(data)
    table = split_table(folder, on_error="skip", split_bytes=1, **options)
    lost = []
    found = pd.concat([frame for split in table.splits for frame in table.frames(split, lost=lost)])
    with numparq.Dataset(folder) as dataset:
        batches = dataset.iter_batches(on_error="skip", **options)
        expected = pd.concat(list(batches))
    assert rows_of(found.reset_index(drop=True)) == rows_of(expected.reset_index(drop=True))
    assert 0 < len(found) < 4000
    assert {each.file.rpartition("/")[2] for each in lost} == {path.name}
    assert sum(map(table.count, table.splits)) == len(found)
    tables = [part for split in table.splits for part in table.tables(split)]
    assert sum(part.num_rows for part in tables) == len(found)
    framed = [table.frame(split) for split in table.splits]
    assert sum(map(len, framed)) == len(found)
    with pytest.raises(numparq.ParquetError):
        read_splits(split_table(folder, **options))
