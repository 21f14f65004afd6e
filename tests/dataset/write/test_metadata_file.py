"""`_metadata` and `_common_metadata` as written: consistent with all files, and readable by other libraries."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.dataset.write.metadata_file import misread_statistics
from numparq.errors import SchemaError, UnsupportedError
from support.files.builder import extended_idl
from support.files.forged_metadata import FileParts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")


def frame(first: int, keys: list[str]) -> pd.DataFrame:
    numbers = np.arange(first, first + len(keys))
    return pd.DataFrame(
        {
            "key": keys,
            "n": numbers,
            "text": [f"text {n}" if n % 3 else None for n in numbers],
            "list": [[n] * (n % 3) for n in numbers],
        }
    )


def write(folder: Path, first: int, keys: list[str], **options: object) -> None:
    numparq.to_parquet(frame(first, keys), folder, partition_cols=["key"], write_metadata_file=True, **options)


def by_metadata(folder: Path, **options: object) -> dict[str, list]:
    dataset = ds.parquet_dataset(folder / "_metadata", partitioning="hive")
    return dataset.to_table(**options).sort_by("n").to_pydict()


def test_pyarrow_reads_dataset_by_metadata_file(tmp_path):
    write(tmp_path, 0, ["a b", "c/d", "a b", "é"], row_group_size=1)
    assert by_metadata(tmp_path) == {
        "n": [0, 1, 2, 3],
        "text": [None, "text 1", "text 2", None],
        "list": [[], [1], [2, 2], []],
        "key": ["a b", "c/d", "a b", "é"],
    }
    dataset = ds.parquet_dataset(tmp_path / "_metadata", partitioning="hive")
    (fragment,) = dataset.get_fragments(filter=ds.field("key") == "é")
    assert fragment.row_groups[0].statistics["n"] == {"min": 3, "max": 3}
    assert pq.read_schema(tmp_path / "_common_metadata").names == ["n", "text", "list"]
    assert pq.read_metadata(tmp_path / "_common_metadata").num_row_groups == 0


def test_metadata_file_equals_footers(tmp_path):
    write(tmp_path, 0, list("abab"), bloom_filter_options={"n": True})
    whole = pq.read_metadata(tmp_path / "_metadata")
    assert (whole.num_rows, whole.num_row_groups) == (4, 2)
    for number in range(2):
        group = whole.row_group(number)
        alone = pq.read_metadata(tmp_path / group.column(0).file_path).row_group(0)
        for column in range(group.num_columns):
            ours, theirs = group.column(column).to_dict(), alone.column(column).to_dict()
            assert ours.pop("file_path")
            assert not theirs.pop("file_path")
            assert ours == theirs


def test_metadata_file_follows_appends_and_replacements(tmp_path):
    write(tmp_path, 0, list("ab"))
    write(tmp_path, 2, list("bc"), append=True)
    assert by_metadata(tmp_path)["n"] == [0, 1, 2, 3]
    write(tmp_path, 4, list("b"), existing_data_behavior="delete_matching")
    found = by_metadata(tmp_path)
    assert (found["n"], found["key"]) == ([0, 3, 4], ["a", "c", "b"])


def test_stale_metadata_file_is_removed(tmp_path):
    write(tmp_path, 0, list("ab"))
    assert {"_metadata", "_common_metadata"} <= set(os.listdir(tmp_path))
    numparq.to_parquet(frame(2, ["b"]), tmp_path, partition_cols=["key"], append=True)
    assert set(os.listdir(tmp_path)) == {"key=a", "key=b"}


def test_metadata_file_includes_files_of_other_writers(tmp_path):
    write(tmp_path, 0, list("ab"))
    (tmp_path / "key=c").mkdir()
    frame(5, ["c"]).drop(columns="key").to_parquet(tmp_path / "key=c" / "x.parquet", engine="pyarrow")
    write(tmp_path, 2, list("b"), append=True)
    assert by_metadata(tmp_path)["n"] == [0, 1, 2, 5]


def without_orders(parts: FileParts) -> None:
    parts.footer.column_orders = None


def in_an_unknown_order(parts: FileParts) -> None:
    parts.footer.column_orders = [extended_idl().ColumnOrder() for _ in parts.footer.column_orders]


def of_a_writer_with_bugs(parts: FileParts) -> None:
    parts.footer.created_by = "Arrow2 - Native Rust implementation of Arrow"


DTYPES = {"n": np.uint32, "r": np.float64}


def old_file_chunks(folder: Path) -> dict[str, dict[str, object]]:
    """Return the column chunks that `_metadata` has of the file `old.parquet`, by path."""
    with numparq.ParquetFile(folder / "_metadata") as file:
        groups = file.metadata.to_dict()["row_groups"]
    (group,) = (group for group in groups if group["columns"][0]["file_path"] == "old.parquet")
    return {".".join(chunk["meta_data"]["path_in_schema"]): chunk for chunk in group["columns"]}


def append_to_old_file(folder: Path, change: object) -> dict[str, dict[str, object]]:
    """Append to a dataset with a file of wrong bounds, write `_metadata`, and return its chunks of that file."""
    old = pd.DataFrame({"n": [5, 6, 7], "r": [5.0, 6.0, 7.0]}).astype(DTYPES)
    parts = FileParts(numparq.to_parquet(old, index=False))
    change(parts)
    for chunk in parts.footer.row_groups[0].columns:
        statistics = chunk.meta_data.statistics
        statistics.max_value = statistics.min_value
    (folder / "old.parquet").write_bytes(parts.data())
    os.utime(folder / "old.parquet", (1, 1))
    new = pd.DataFrame({"n": [1, 2], "r": [1.0, 2.0]}).astype(DTYPES)
    numparq.to_parquet(new, folder, index=False, append=True, write_metadata_file=True)
    for name in ("n", "r"):
        assert numparq.read_parquet(folder, filters=[(name, "=", 7)])["n"].tolist() == [7]
    return old_file_chunks(folder)


@pytest.mark.parametrize("writer", ["impala version 2.12.0", "parquet-mr version 1.7.0 (build abc)", None])
def test_files_with_writer_quirks_refuse_a_metadata_file(tmp_path, writer):
    """`_metadata` would hide the writer's quirk; the file and the dataset stay unchanged."""
    parts = FileParts(numparq.to_parquet(pd.DataFrame({"n": [1, 2]}), index=False))
    parts.footer.created_by = writer
    (tmp_path / "old.parquet").write_bytes(parts.data())
    new = pd.DataFrame({"n": [3]})
    with pytest.raises(UnsupportedError, match=r"write_metadata_file=False.*old\.parquet"):
        numparq.to_parquet(new, tmp_path, index=False, append=True, write_metadata_file=True)
    assert numparq.read_parquet(tmp_path)["n"].tolist() == [1, 2]
    numparq.to_parquet(new, tmp_path, index=False, append=True, max_rows_per_file=10)
    assert sorted(numparq.read_parquet(tmp_path)["n"]) == [1, 2, 3]


@pytest.mark.parametrize("change", [without_orders, in_an_unknown_order, of_a_writer_with_bugs])
def test_unusable_bounds_are_dropped_from_metadata_file(tmp_path, change):
    for chunk in append_to_old_file(tmp_path, change).values():
        assert chunk["meta_data"]["statistics"].keys() <= {"null_count", "nan_count"}
        assert "column_index_offset" not in chunk
        assert "offset_index_offset" in chunk
        assert chunk["meta_data"]["statistics"]["null_count"] == 0


def test_bounds_without_column_order_are_kept(tmp_path):
    def change(parts: FileParts) -> None:
        parts.footer.column_orders = None
        for chunk in parts.footer.row_groups[0].columns:
            statistics = chunk.meta_data.statistics
            statistics.min, statistics.max = statistics.min_value, statistics.max_value

    found = append_to_old_file(tmp_path, change)
    assert {"min", "max"} < found["r"]["meta_data"]["statistics"].keys()
    assert "min_value" not in found["r"]["meta_data"]["statistics"]


def test_bounds_of_other_column_orders_are_dropped(tmp_path):
    """Floats in IEEE 754 total order are dropped; the bounds of neighbouring columns stay."""
    frame = pd.DataFrame({"n": [5, 6], "r": [5.0, 7.0]})
    (tmp_path / "old.parquet").write_bytes(numparq.to_parquet(frame, index=False, column_order="ieee754"))
    numparq.to_parquet(frame, tmp_path, index=False, append=True, write_metadata_file=True)
    found = old_file_chunks(tmp_path)
    assert "min_value" in found["n"]["meta_data"]["statistics"]
    assert "column_index_offset" in found["n"]
    assert found["r"]["meta_data"]["statistics"].keys() == {"null_count", "nan_count"}


def test_statistics_of_same_writer_are_kept():
    data = numparq.to_parquet(pd.DataFrame({"n": [1], "s": ["x"], "u": np.array([1], np.uint32), "r": [1.0]}))
    with numparq.ParquetFile(data) as file:
        assert misread_statistics(file._file.footer, file._file.footer) == {}


def test_wrong_null_counts_are_dropped_from_metadata_file(tmp_path):
    pq.write_table(pa.table({"l": [[1], [], None]}), tmp_path / "old.parquet", write_page_index=True)
    numparq.to_parquet(pd.DataFrame({"l": [[2]]}), tmp_path, index=False, append=True, write_metadata_file=True)
    (chunk,) = old_file_chunks(tmp_path).values()
    assert chunk["meta_data"]["statistics"].keys() >= {"min_value", "max_value"}
    assert "null_count" not in chunk["meta_data"]["statistics"]
    assert "column_index_offset" not in chunk


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("n", pa.int32()), ("text", pa.string()), ("list", pa.list_(pa.int64()))]),
        pa.schema([pa.field("n", pa.int64(), nullable=False), ("text", pa.string()), ("list", pa.list_(pa.int64()))]),
        pa.schema([("n", pa.int64()), ("text", pa.string())]),
    ],
)
def test_files_with_other_columns_refuse_a_metadata_file(tmp_path, schema):
    write(tmp_path, 0, list("ab"))
    (tmp_path / "key=c").mkdir()
    table = pa.table({"n": [5], "text": ["x"], "list": [[1]]}).select(schema.names).cast(schema)
    pq.write_table(table, tmp_path / "key=c" / "x.parquet")
    before = sorted(os.listdir(tmp_path)), by_metadata(tmp_path)
    with pytest.raises(SchemaError, match=r"x\.parquet"):
        write(tmp_path, 2, list("b"), append=True)
    assert (sorted(os.listdir(tmp_path)), by_metadata(tmp_path)) == before
    write(tmp_path, 2, list("c"), existing_data_behavior="delete_matching")
    assert by_metadata(tmp_path)["n"] == [0, 1, 2]


def test_metadata_file_survives_moving_the_dataset(tmp_path):
    write(tmp_path / "a", 0, list("ab"))
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert by_metadata(tmp_path / "b")["n"] == [0, 1]


def test_metadata_file_without_partitions(tmp_path):
    numparq.to_parquet(frame(0, list("abcd")), tmp_path, max_rows_per_file=1, write_metadata_file=True)
    assert ds.parquet_dataset(tmp_path / "_metadata").to_table()["n"].to_pylist() == [0, 1, 2, 3]


def test_empty_writes_leave_metadata_file_unchanged(tmp_path):
    with DatasetWriter(tmp_path, partition_cols=["key"], write_metadata_file=True):
        pass
    assert os.listdir(tmp_path) == []
    write(tmp_path, 0, list("ab"))
    before = sorted(os.listdir(tmp_path))
    numparq.to_parquet(frame(0, []), tmp_path, partition_cols=["key"], append=True)
    assert sorted(os.listdir(tmp_path)) == before


def test_fastparquet_reads_dataset_by_metadata_file(tmp_path):
    fastparquet = pytest.importorskip("fastparquet")
    write(tmp_path, 0, list("abcab"), max_rows_per_file=1)
    found = fastparquet.ParquetFile(str(tmp_path / "_metadata")).to_pandas(columns=["n", "key"])
    assert sorted(zip(found["n"], found["key"], strict=True)) == list(enumerate("abcab"))
