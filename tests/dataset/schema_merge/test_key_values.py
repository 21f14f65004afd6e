"""Schema merge: pandas metadata, Arrow types and geometries of many files."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema, check_one_table
from numparq.format.arrow_type import ArrowType
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import OPTIONAL
from numparq.format.schema_node import SchemaNode
from support.dataset_schemas import first_column_line, match_columns, open_column, open_nodes, open_table

pa = pytest.importorskip("pyarrow")


def open_frame(frame: pd.DataFrame, **options: Any) -> OpenFile:
    return open_table(pa.Table.from_pandas(frame, **options))


def test_index_columns_are_kept_where_all_files_have_them() -> None:
    first = open_frame(pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="i")))
    second = open_frame(pd.DataFrame({"a": [2], "b": [3]}, index=pd.Index(["y"], name="i")))
    third = open_frame(pd.DataFrame({"a": [1], "i": ["z"]}))
    without_pandas = open_table({"a": [1], "i": ["z"]})
    assert DatasetSchema.from_files([first, second]).schema_file.pandas_metadata.index == ("i",)
    assert DatasetSchema.from_files([first, without_pandas]).schema_file.pandas_metadata.index == ("i",)
    assert DatasetSchema.from_files([first, third]).schema_file.pandas_metadata.index == ()


def test_extension_dtypes_of_columns_not_widened() -> None:
    first = open_frame(pd.DataFrame({"a": pd.array([1], "Int32"), "b": pd.array([1], "Int32")}))
    second = open_frame(pd.DataFrame({"b": pd.array([1], "Int32"), "a": [1.5], "c": pd.array([1], "Int16")}))
    metadata = DatasetSchema.from_files([first, second]).schema_file.pandas_metadata
    assert metadata.extension_dtype("a") is None
    assert (metadata.extension_dtype("b"), metadata.extension_dtype("c")) == (pd.Int32Dtype(), pd.Int16Dtype())
    assert metadata.index == ()


def test_nullable_numbers_stay_nullable_when_they_are_widened() -> None:
    first = open_frame(pd.DataFrame({"a": pd.array([1], "Int32"), "b": pd.array([1], "UInt8")}))
    second = open_frame(pd.DataFrame({"a": pd.array([1], "Int64"), "b": pd.array([1], "Float32")}))
    metadata = DatasetSchema.from_files([first, second]).schema_file.pandas_metadata
    assert (metadata.extension_dtype("a"), metadata.extension_dtype("b")) == (pd.Int64Dtype(), pd.Float32Dtype())


def test_labels_of_widened_columns_are_kept() -> None:
    files = [open_frame(pd.DataFrame({1: pd.array([1], dtype), 2: ["a"]})) for dtype in ("int32", "int64")]
    metadata = DatasetSchema.from_files(files).schema_file.pandas_metadata
    assert metadata.labels(["1"])[0] == files[0].pandas_metadata.labels(["1"])[0]


def test_geometries_of_different_crs_do_not_merge() -> None:
    def open_geometry(crs: str, **more: Any) -> OpenFile:
        geo = json.dumps({"primary_column": "g", "columns": {"g": {"encoding": "WKB", "crs": crs, **more}}})
        table = pa.table({"g": pa.nulls(1, pa.binary())}).replace_schema_metadata({"geo": geo})
        return open_table(table, crs)

    first, second, third = (
        open_geometry("A", bbox=[0, 0, 1, 1]),
        open_geometry("A", bbox=[2, 2, 3, 3]),
        open_geometry("B"),
    )
    assert DatasetSchema.from_files([first, second]).schema is DatasetSchema.from_files([first]).schema
    other = open_table({"x": [1]})
    assert DatasetSchema.from_files([other, first, second]).schema_file.geospatial["g"].crs == "A"
    with pytest.raises(numparq.SchemaError, match="CRS") as raised:
        DatasetSchema.from_files([first, third]).check_columns()
    assert raised.value.where == {"file": "B", "column": "g"}


def test_decimals_of_excessive_precision_do_not_merge() -> None:
    def decimals(precision: int, scale: int) -> OpenFile:
        logical = LogicalType("DECIMAL", precision=precision, scale=scale)
        return open_nodes(SchemaNode("a", OPTIONAL, BYTE_ARRAY, logical=logical))

    assert "DECIMAL(800, 300)" in first_column_line(DatasetSchema.from_files([decimals(500, 0), decimals(600, 300)]))
    with pytest.raises(numparq.SchemaError):
        check_one_table([decimals(2**31 - 1, 0), decimals(2**31 - 1, 2**31 - 1)])


def test_malformed_pandas_metadata_is_ignored() -> None:
    texts = [
        "{}",
        "[]",
        '{"columns": [{"field_name": 3}, 7], "index_columns": [[1], {"a": 2}, "x"]}',
        "no JSON",
        '{"columns": {}, "index_columns": 7}',
        '{"a":' * 5000,
    ]
    other = open_frame(pd.DataFrame({"a": pd.array([1], "Int64"), "b": ["x"]}))
    for text in texts:
        malformed = open_table(pa.table({"a": [1]}).replace_schema_metadata({"pandas": text}))
        for files in ([malformed, other], [other, malformed]):
            metadata = DatasetSchema.from_files(files).schema_file.pandas_metadata
            assert metadata.extension_dtype("a") == pd.Int64Dtype()
            assert metadata.index == ()


def test_nested_durations_must_have_one_unit() -> None:
    files = [open_column(pa.list_(pa.duration(unit))) for unit in ("s", "ns")]
    with pytest.raises(numparq.SchemaError, match=r"duration\[ns\] here"):
        DatasetSchema.from_files(files).check_columns()
    with pytest.raises(numparq.SchemaError, match=r"duration\[s\] here"):
        DatasetSchema.from_files(files, schema=pa.schema([("a", pa.list_(pa.duration("ns")))])).check_columns()


def test_arrow_types_are_kept_where_they_agree() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    first = open_table({"d": pa.nulls(1, words), "e": pa.nulls(1, words), "t": pa.nulls(1, pa.duration("s"))})
    second = open_table({"d": pa.nulls(1, words), "e": pa.nulls(1, pa.string()), "t": pa.nulls(1, pa.duration("ns"))})
    arrow_schema = DatasetSchema.from_files([first, second]).schema_file.arrow_schema
    assert arrow_schema.field_type(0).dictionary is not None
    assert arrow_schema.field_type(1) == ArrowType("utf8")
    assert arrow_schema.field_type(2) == ArrowType("duration", unit="ns")
    matches = match_columns(DatasetSchema.from_files([first, second]), first)
    assert [match.is_same for match in matches] == [True, True, False]


def test_files_all_written_by_numparq() -> None:
    def open_own(frame: pd.DataFrame) -> OpenFile:
        return OpenFile(numparq.to_parquet(frame))

    first, second = open_own(pd.DataFrame({"a": [1]})), open_own(pd.DataFrame({"b": [1]}))
    assert DatasetSchema.from_files([first, second]).schema_file.is_written_by_numparq
    assert not DatasetSchema.from_files([first, open_table({"b": [1]})]).schema_file.is_written_by_numparq
