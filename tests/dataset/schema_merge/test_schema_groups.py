"""Caches of merged schemas: reused for files with equal schemas only."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.dataset.schema_merge import dataset_schema, fields, schema_groups
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.open_file import OpenFile


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch):
    monkeypatch.setattr(dataset_schema, "_kept", type(dataset_schema._kept)(16))
    monkeypatch.setattr(fields, "_kept", type(fields._kept)(64))


def open_table(table: pa.Table, **how) -> OpenFile:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **how)
    return OpenFile(sink.getvalue().to_pybytes())


def open_with_key_values(columns: dict, **notes: str) -> OpenFile:
    return open_table(pa.table(columns).replace_schema_metadata(notes))


def ints(*names: str, rows: int = 2) -> dict:
    return {name: list(range(rows)) for name in names}


def test_files_with_equal_schemas_share_merged_schema():
    first = DatasetSchema.from_files([open_table(pa.table(ints("a"))), open_table(pa.table(ints("a", "b")))])
    again = DatasetSchema.from_files(
        [open_table(pa.table(ints("a", rows=5))), open_table(pa.table(ints("a", "b", rows=3)))]
    )
    assert again.schema_file is first.schema_file
    assert again is not first
    assert again.schema.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("others", "how"),
    [
        ((ints("a"), ints("a", "c")), {}),
        ((ints("a", "b"), ints("a")), {}),
        ((ints("a"), {"a": [1], "b": ["x"]}), {}),
        ((ints("a"), ints("a", "b"), ints("a", "c")), {}),
        ((ints("a"), ints("a", "b")), {"resolve": "position"}),
        ((ints("a"), {"a": [1], "b": pa.array([1]).dictionary_encode()}), {}),
    ],
)
def test_different_files_are_merged_again(others, how):
    first = DatasetSchema.from_files([open_table(pa.table(ints("a"))), open_table(pa.table(ints("a", "b")))])
    merged = DatasetSchema.from_files([open_table(pa.table(one)) for one in others], **how)
    assert merged.schema_file is not first.schema_file
    dataset_schema._kept = type(dataset_schema._kept)(16)
    fields._kept = type(fields._kept)(64)
    alone = DatasetSchema.from_files([open_table(pa.table(one)) for one in others], **how)
    assert alone.schema.columns == merged.schema.columns
    assert list(alone.fields) == list(merged.fields)


@pytest.mark.parametrize("key", ["pandas", "PANDAS_ATTRS", "geo"])
def test_key_value_metadata_distinguishes_schemas(key):
    plain, note = ints("a", "b"), {"pandas": {"index_columns": ["b"], "columns": []}, "PANDAS_ATTRS": {"x": 1}}
    with_note = {key: json.dumps(note.get(key, {"primary_column": "a", "columns": {}}))}
    merged = DatasetSchema.from_files([open_with_key_values(ints("a")), open_with_key_values(plain)])
    other = DatasetSchema.from_files([open_with_key_values(ints("a")), open_with_key_values(plain, **with_note)])
    assert other.schema_file is not merged.schema_file
    assert key in other.schema_file.footer.key_value_metadata
    assert key not in merged.schema_file.footer.key_value_metadata


def test_pandas_index_of_one_file_and_of_many(tmp_path):
    pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(5, 9, 2)).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"a": [1, 2], "b": [0, 0]}).to_parquet(tmp_path / "b.parquet")
    schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    for paths in (["a.parquet"], ["a.parquet", "b.parquet"], ["a.parquet"]):
        found = numparq.read_parquet([tmp_path / path for path in paths], schema=schema)
        assert list(found.index) == ([5, 7] if len(paths) == 1 else [0, 1, 2, 3])


def test_numparq_files_and_foreign_files_are_cached_separately(tmp_path):
    frames = [pd.DataFrame({"a": pd.Series([1, 2], dtype="Int64")}), pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})]
    own, other = tmp_path / "own", tmp_path / "other"
    for folder, write in ((own, numparq.to_parquet), (other, pd.DataFrame.to_parquet)):
        folder.mkdir()
        for number, frame in enumerate(frames):
            write(frame, folder / f"{number}.parquet")
    for _ in range(2):
        with numparq.Dataset(own) as mine, numparq.Dataset(other) as theirs:
            kinds = [each._contents.schema_of([0, 1]).schema_file.is_written_by_numparq for each in (mine, theirs)]
            assert kinds == [True, False]


def test_large_and_many_schemas_are_not_cached(monkeypatch):
    monkeypatch.setattr(dataset_schema, "MAX_SHARED_GROUPS", 2)
    DatasetSchema.from_files([open_table(pa.table(ints("a", name))) for name in "bcd"])
    assert not len(dataset_schema._kept)
    monkeypatch.setattr(schema_groups, "MAX_SHARED_BYTES", 10)
    monkeypatch.setattr(fields, "_KEPT_BYTES", 10)
    merged = DatasetSchema.from_files([open_table(pa.table(ints("a"))), open_table(pa.table(ints("a", "b")))])
    assert not len(dataset_schema._kept)
    assert merged.schema.columns == ["a", "b"]


def test_merge_errors_name_their_own_files(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / folder / "0.parquet")
        pq.write_table(pa.table({"a": ["x"]}), tmp_path / folder / "1.parquet")
        with pytest.raises(numparq.SchemaError, match=folder):
            numparq.read_parquet(tmp_path / folder)


def test_modified_frame_does_not_change_cached_schema(tmp_path):
    pd.DataFrame({"a": [1, 2]}).rename_axis(columns="top").to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"a": [1], "b": ["x"]}).to_parquet(tmp_path / "1.parquet")
    expected = numparq.read_parquet(tmp_path)
    modified = numparq.read_parquet(tmp_path)
    modified.columns.name = "other"
    modified.attrs["x"] = 1
    modified.columns = ["y", "z"]
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), expected)
    assert not numparq.read_parquet(tmp_path).attrs
