"""Rows of a job's tasks, from DataFrames and Arrow data: row groups, file limits, sorting and errors."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.errors import SchemaError

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses POSIX locks")


def write_job(folder: Path, pieces: list[Any], task: str = "0", **options: Any) -> TaskMessage:
    job = SharedJob.begin(folder, **options)
    with job.task(task) as writer:
        for piece in pieces:
            writer.write(piece)
    job.commit([writer.message])
    return writer.message


def row_groups(folder: Path, message: TaskMessage) -> list[list[int]]:
    files = (numparq.ParquetFile(folder / file.name) for file in message.files)
    return [[group.num_rows for group in file.metadata.row_groups] for file in files]


def batches(count: int, rows: int) -> list[Any]:
    return [pa.RecordBatch.from_pydict({"n": np.arange(first, first + rows)}) for first in range(0, count * rows, rows)]


@pytest.mark.parametrize("kind", ["batches", "tables", "frames"])
def test_small_pieces_are_combined_into_row_groups(tmp_path, kind):
    make = {
        "batches": lambda batch: batch,
        "tables": lambda batch: pa.Table.from_batches([batch]),
        "frames": lambda batch: batch.to_pandas(),
    }[kind]
    pieces = [make(batch) for batch in batches(37, 10)]
    message = write_job(tmp_path / "rows", pieces, row_group_size=100)
    assert row_groups(tmp_path / "rows", message) == [[100, 100, 100, 70]]
    assert message.num_rows == 370
    message = write_job(tmp_path / "bytes", pieces, row_group_bytes=800)
    assert row_groups(tmp_path / "bytes", message) == [[100, 100, 100, 70]]
    message = write_job(tmp_path / "files", pieces, row_group_size=100, max_rows_per_file=150)
    assert row_groups(tmp_path / "files", message) == [[100, 50], [50, 100], [70]]
    for folder in ("rows", "bytes", "files"):
        assert numparq.read_parquet(tmp_path / folder)["n"].tolist() == list(range(370))


def test_row_group_bytes_count_memory_size(tmp_path):
    text = pd.DataFrame({"s": pd.Series(["x" * 92] * 1000, dtype=object), "t": "y" * 100})
    groups = row_groups(tmp_path, write_job(tmp_path, [text], row_group_bytes=25_000))
    assert len(groups[0]) > 5
    assert sum(groups[0]) == 1000


def test_writing_object_columns_emits_no_warnings(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_job(tmp_path, [pd.DataFrame({"s": ["a"], "o": pd.Series([1.5], dtype=object)})])


def test_max_bytes_per_file(tmp_path):
    rng = np.random.default_rng(0)
    pieces = [pa.table({"x": rng.random(1000)}) for _ in range(40)]
    message = write_job(tmp_path, pieces, row_group_size=1000, max_bytes_per_file=50_000)
    assert len(message.files) > 4
    assert all(file.num_bytes < 65_000 for file in message.files)


def test_flush_and_roll_end_row_groups_and_files(tmp_path):
    job = SharedJob.begin(tmp_path)
    with job.task("0") as writer:
        for batch in batches(5, 10):
            writer.write(batch)
            writer.flush()
            if batch["n"][0].as_py() == 20:
                assert writer.num_bytes > 0
                writer.roll()
                assert writer.num_bytes == 0
    job.commit([writer.message])
    assert row_groups(tmp_path, writer.message) == [[10, 10, 10], [10, 10]]


def test_explicit_folder_names_are_kept(tmp_path):
    job = SharedJob.begin(tmp_path)
    with job.task("0") as writer:
        for folder in ("month=01", "month=1", "month=01"):
            writer.write(pa.table({"n": [1]}), folder=folder)
    job.commit([writer.message])
    assert sorted(file.folder for file in writer.message.files) == ["month=01", "month=1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["month=01", "month=1"]
    job = SharedJob.begin(tmp_path, partition_cols=["month"])
    with pytest.raises(ValueError, match="cannot be used with partition_cols"):
        job.task("0").write(pa.table({"n": [1]}), folder="x")
    job.abort()


@pytest.mark.parametrize("folder", ["../x", "/x", "x/../..", "a//b", ".x", "_x", "a\\b", "x/"])
def test_folders_outside_the_dataset_raise(tmp_path, folder):
    job = SharedJob.begin(tmp_path)
    with pytest.raises(SchemaError, match="folder must be"):
        job.task("0").write(pa.table({"n": [1]}), folder=folder)
    job.abort()


@pytest.mark.parametrize("mode", ["append", "delete_matching"])
@pytest.mark.parametrize("folders", [("", "p=3"), ("p=3", ""), ("p=3", "q=3"), ("p=3/q=3", "q=3/p=3")])
def test_folders_of_other_partition_columns_raise(tmp_path, mode, folders):
    """No reader could merge such files, and `delete_matching` could not match their partitions."""
    write_job(tmp_path, [pa.table({"p": [1, 2], "n": [1, 2]})], partition_cols=["p"])
    job = SharedJob.begin(tmp_path, mode=mode)
    messages = []
    for number, folder in enumerate(folders):
        with job.task(str(number)) as writer:
            writer.write(pa.table({"n": [3]}), folder=folder)
        messages.append(writer.message)
    with pytest.raises(SchemaError, match="partitioned by"):
        job.commit(messages)
    job.abort()
    assert numparq.read_parquet(tmp_path)["n"].tolist() == [1, 2]


def test_rows_are_sorted(tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 5, 1000), rng.permutation(1000)
    table = pa.table({"a": pa.array(a, mask=a == 4), "b": b.astype(str), "p": b % 2})
    pieces = table.to_batches(max_chunksize=70)
    keys: list[Any] = [("a", True, True), "b"]
    message = write_job(tmp_path, pieces, sort_by=keys, row_group_size=100, max_rows_per_file=300, partition_cols=["p"])
    assert len(message.files) == 4
    for part in (0, 1):
        files = [file for file in message.files if file.folder == f"p={part}"]
        found = pd.concat([numparq.read_parquet(tmp_path / file.name) for file in files], ignore_index=True)
        rows = table.to_pandas()[b % 2 == part].drop(columns="p")
        expected = rows.assign(k=-rows["a"].fillna(9)).sort_values(["k", "b"]).drop(columns="k")
        assert found["b"].tolist() == expected["b"].tolist()
        assert found["a"].isna().tolist() == expected["a"].isna().tolist()
    (first, second) = numparq.ParquetFile(tmp_path / message.files[0].name).metadata.row_groups[0].sorting_columns
    assert (first.column_idx, first.descending, first.nulls_first) == (0, True, True)
    assert (second.column_idx, second.descending, second.nulls_first) == (1, False, False)


@pytest.mark.parametrize(
    ("descending", "nulls_first", "expected"),
    [
        (False, False, "1 2 nan nan None"),
        (False, True, "None 1 2 nan nan"),
        (True, False, "nan nan 2 1 None"),
        (True, True, "None nan nan 2 1"),
    ],
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_sort_places_nan_above_all_numbers(tmp_path, descending, nulls_first, expected, kind):
    table = pa.table({"x": pa.array([np.nan, 2, None, 1, np.nan], kind, from_pandas=False), "n": range(5)})
    write_job(tmp_path, [table], sort_by=[("x", descending, nulls_first)])
    frame = numparq.read_parquet(tmp_path, dtype_backend="pyarrow")
    shown = [f"{value:g}" if value is not None else "None" for value in pa.array(frame["x"]).to_pylist()]
    assert " ".join(shown) == expected
    assert [n for n in frame["n"] if n in (0, 4)] == [0, 4], "the sort is stable"


def test_large_strings_are_sorted(tmp_path, monkeypatch):
    monkeypatch.setattr("numparq.dataset.write.row_group_buffer._MOST_NARROW_BYTES", 1)
    table = pa.table({"s": ["b", None, "a"], "b": [b"1", b"2", b"3"], "n": [1, 2, 3]})
    write_job(tmp_path / "with schema", [table, table], sort_by=["s"], schema=table.schema)
    write_job(tmp_path / "without schema", [table, table], sort_by=["s"])
    for folder in ("with schema", "without schema"):
        assert numparq.read_parquet(tmp_path / folder)["n"].tolist() == [3, 3, 1, 1, 2, 2]


def test_dataframes_are_sorted(tmp_path):
    frame = pd.DataFrame({"a": [3.0, np.nan, 1.0, 2.0], "n": range(4)})
    write_job(tmp_path, [frame, frame], sort_by=["a"])
    assert numparq.read_parquet(tmp_path)["n"].tolist() == [2, 2, 3, 3, 0, 0, 1, 1]


def test_sorting_by_list_or_missing_column_raises(tmp_path):
    job = SharedJob.begin(tmp_path, sort_by=["l"])
    writer = job.task("0")
    writer.write(pa.table({"l": [[1]]}))
    with pytest.raises(SchemaError, match="cannot be sorted by values of type list"):
        writer.close()
    writer = job.task("0")
    writer.write(pa.table({"x": [1]}))
    with pytest.raises(SchemaError, match="missing column"):
        writer.close()
    job.abort()


def test_arrow_data_has_no_pandas_metadata(tmp_path):
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int8()),
            "l": [[1, None], None],
            "s": [{"x": 1}, {"x": None}],
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    message = write_job(tmp_path, [table, table], key_value_metadata={"a": "b"})
    file = numparq.ParquetFile(tmp_path / message.files[0].name)
    assert {pair.key for pair in file.metadata.key_value_metadata} == {"a", "ARROW:schema"}
    import pyarrow.parquet as parquet

    found = parquet.ParquetFile(tmp_path / message.files[0].name).read()
    assert found.to_pylist() == table.to_pylist() * 2


def test_dataframes_keep_their_index(tmp_path):
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["a", "b"], name="i"))
    write_job(tmp_path, [frame, frame])
    assert numparq.read_parquet(tmp_path).index.tolist() == ["a", "b", "a", "b"]
    write_job(tmp_path / "ranges", [pd.DataFrame({"n": [1, 2]})] * 2)
    assert numparq.read_parquet(tmp_path / "ranges").index.tolist() == [0, 1, 2, 3]


def test_columns_must_be_equal_in_all_folders(tmp_path):
    job = SharedJob.begin(tmp_path, partition_cols=["key"])
    with pytest.raises(SchemaError, match="'n'"), job.task("0") as writer:
        writer.write(pa.table({"key": [1], "n": [1]}))
        writer.flush()
        writer.write(pa.table({"key": [2], "n": ["1"]}))
    job.abort()


def test_category_order_must_not_change(tmp_path):
    job = SharedJob.begin(tmp_path)
    with pytest.raises(SchemaError, match="order"), job.task("0") as writer:
        for categories in (["a", "b"], ["b", "a"]):
            writer.write(pd.DataFrame({"c": pd.Categorical(["a", "b"], categories, ordered=True)}))
            writer.roll()
    job.abort()


def test_column_types_must_not_change(tmp_path):
    job = SharedJob.begin(tmp_path)
    writer = job.task("0")
    writer.write(pd.DataFrame({"n": [1]}))
    writer.write(pd.DataFrame({"n": ["x"]}))
    with pytest.raises(SchemaError, match="column 'n'"):
        writer.close()
    with pytest.raises(ValueError, match="aborted"):
        writer.close()
    with pytest.raises(TypeError, match="df must be a table, not a pyarrow"):
        job.task("0").write(pa.array([1]))
    job.abort()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zip"},
        {"nonsense": 1},
        {"bloom_filter_options": {"x": True}},
        {"sort_by": ["x"]},
        {"row_group_size": 0},
        {"max_rows_per_file": -1},
        {"column_encoding": {"n": "DELTA_BYTE_ARRAY"}},
        {"partition_cols": ["k", "k"]},
        {"partition_cols": ["x"]},
        {"partition_cols": ["l"]},
        {"partition_cols": ["b"]},
        {"partition_cols": ["n", "k", "l", "b"]},
    ],
)
def test_invalid_options_raise_on_begin(tmp_path, options):
    columns = [("n", pa.int64()), ("k", pa.string()), ("l", pa.list_(pa.string())), ("b", pa.binary())]
    with pytest.raises((ValueError, TypeError, SchemaError)):
        SharedJob.begin(tmp_path / "data", schema=pa.schema(columns), **{"partition_cols": ["k"], **options})
    assert os.listdir(tmp_path) == []
