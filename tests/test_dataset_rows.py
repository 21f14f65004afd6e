"""Reads of many files whose columns, index or files are not what the first of them has."""

from __future__ import annotations

import decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
def test_decimals_of_several_scales_in_as_many_bytes(tmp_path, backend):
    values = {2: "1.25", 4: "1.2345", 3: "-7.125"}
    for scale, text in values.items():
        column = pa.array([decimal.Decimal(text)], pa.decimal128(20, scale))
        pq.write_table(pa.table({"d": column, "s": [{"d": column[0]}]}), tmp_path / f"{scale}.parquet")
    found = numparq.read_parquet(tmp_path, dtype_backend=backend)
    expected = [decimal.Decimal(values[scale]) for scale in sorted(values)]
    assert found["d"].tolist() == expected
    assert [value["d"] for value in found["s"]] == expected
    found = numparq.read_parquet(tmp_path, filters=col("d") > decimal.Decimal("1.24"), dtype_backend=backend)
    assert found["d"].tolist() == [decimal.Decimal("1.25")]


def test_decimals_of_another_scale_in_as_many_bytes(tmp_path):
    file = tmp_path / "0.parquet"
    pq.write_table(pa.table({"d": pa.array([decimal.Decimal("2.5"), None], pa.decimal128(19, 2))}), file)
    given = pa.schema([("d", pa.decimal128(21, 4))])
    found = numparq.read_parquet(file, schema=given)["d"]
    assert found.tolist() == [decimal.Decimal("2.5"), None]
    assert found.iloc[0].as_tuple().exponent == -4
    assert numparq.read_parquet(file, filters=col("d") == decimal.Decimal("2.5"), schema=given)["d"].tolist() == [
        decimal.Decimal("2.5")
    ]


def test_a_partition_column_wins_over_an_index_of_its_name(tmp_path):
    for key in (1, 2):
        frame = pd.DataFrame({"x": [key, key]}, index=pd.Index([7, 3], name="k"))
        (tmp_path / f"k={key}").mkdir()
        frame.to_parquet(tmp_path / f"k={key}" / "0.parquet")
    whole = numparq.read_parquet(tmp_path)
    assert whole.reset_index()["k"].tolist() == [1, 1, 2, 2]
    assert numparq.read_parquet(tmp_path, ["x"]).reset_index()["x"].tolist() == [1, 1, 2, 2]
    assert "7" not in numparq.read_parquet(tmp_path, ["x"]).to_string()


def test_files_that_are_replaced_between_reads(tmp_path):
    for name, number in (("a", 1), ("b", 2)):
        pq.write_table(pa.table({"x": [number]}), tmp_path / f"{name}.parquet")
    with numparq.Dataset(tmp_path) as dataset:
        (tmp_path / "b.parquet").unlink()
        pq.write_table(pa.table({"x": [3]}), tmp_path / "c.parquet")
        assert dataset.read()["x"].tolist() == [1, 3]
        assert [name.rpartition("/")[2] for name in dataset.files] == ["a.parquet", "c.parquet"]
    with numparq.Dataset(tmp_path) as dataset:
        for name in ("a", "c"):
            (tmp_path / f"{name}.parquet").unlink()
        with pytest.raises(numparq.ParquetError, match="no Parquet files"):
            dataset.count_rows()


def test_columns_that_only_files_left_out_have(tmp_path):
    tables = {1: pa.table({"a": pa.array([1], "int32")}), 2: pa.table({"a": [5], "b": [1.5]})}
    for key, table in tables.items():
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(table, tmp_path / f"k={key}" / "0.parquet")
    only = [("k", "=", 1)]
    assert list(numparq.read_parquet(tmp_path, filters=only)) == ["a", "k"]
    found = numparq.read_parquet(tmp_path, ["a", "b"], only)
    assert found["b"].isna().tolist() == [True]
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    found = numparq.read_parquet(tmp_path, filters=only, schema=schema)
    assert found.dtypes.map(str).to_dict() == {"a": "int64", "b": "float64", "k": "category"}


def test_an_index_without_a_name_that_only_some_files_have(tmp_path):
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=[5, 9, 4])
    for write in (pd.DataFrame.to_parquet, numparq.to_parquet):
        write(frame, tmp_path / "0.parquet")
        write(frame.reset_index(drop=True), tmp_path / "1.parquet")
        found = numparq.read_parquet(tmp_path)
        assert list(found) == ["x", "__index_level_0__"]
        assert found["__index_level_0__"].fillna(0).tolist() == [5, 9, 4, 0, 0, 0]
        assert list(numparq.read_parquet(tmp_path, ["x"])) == ["x"]
        write(frame, tmp_path / "1.parquet")
        assert numparq.read_parquet(tmp_path).index.tolist() == [5, 9, 4] * 2
        assert numparq.read_parquet(tmp_path).index.name is None
