"""Reads of many files: nulls with exact, missing and wrong null counts in footers."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from support.files.edited_footers import write_with_footer


def write(folder: Path, *tables: pa.Table, **options: Any) -> None:
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)


def with_zero_null_counts(table: pa.Table) -> bytes:
    """Return a file whose footer denies all nulls."""

    def edit(footer: Any) -> None:
        for chunk in footer.row_groups[0].columns:
            chunk.meta_data.statistics.null_count = 0

    return write_with_footer(table, edit)


@pytest.mark.parametrize("order", [0, 1])
def test_integers_missing_in_file_are_null(tmp_path, order):
    tables = [pa.table({"a": [1, 2, 3], "b": [7, 8, 9]}), pa.table({"b": [5, 6, 4]})]
    write(tmp_path, *(tables if order == 0 else tables[::-1]))
    dirty = [np.ones(6, np.uint8) for _ in range(64)]  # mask-sized, so that freed memory is reused with ones
    del dirty
    found = numparq.read_parquet(tmp_path, ["a", "b"])
    missing, present = [np.nan] * 3, [1, 2, 3]
    expected = [*present, *missing] if order == 0 else [*missing, *present]
    pd.testing.assert_series_equal(found["a"], pd.Series(expected, name="a"))
    assert found["b"].dtype == "int64"
    assert (found["b"].sum(), found["a"].sum()) == (39, 6)


@pytest.mark.parametrize("options", [{}, {"write_statistics": False}])
def test_converted_columns_have_separate_null_masks(tmp_path, options):
    ints = {"a": [1, 2], "b": [None, 3], "s": [{"x": 1}, {"x": None}], "c": [4, 5]}
    kinds = {"a": pa.int32(), "b": pa.int32(), "s": pa.struct([("x", pa.int32())]), "c": pa.int32()}
    narrow = pa.table({name: pa.array(values, kinds[name]) for name, values in ints.items()})
    wide = pa.table({"a": [6], "b": [7], "s": [{"x": 8}], "c": [9]})
    write(tmp_path, narrow, wide, **options)
    found = numparq.read_parquet(tmp_path, ["a", "b", "s.x", "c"])
    assert found.dtypes.map(str).tolist() == ["int64", "float64", "float64", "int64"]
    assert found["a"].tolist() == [1, 2, 6]
    assert found["b"].fillna(-1).tolist() == [-1, 3, 7]
    assert found["x"].fillna(-1).tolist() == [1, -1, 8]
    assert found["c"].tolist() == [4, 5, 9]


def test_columns_without_null_counts(tmp_path):
    table = pa.table({"a": [1, None, 3], "b": [True, None, False]})
    write(tmp_path, table, table, write_statistics=False)
    whole = numparq.read_parquet(tmp_path)
    assert whole.dtypes.map(str).tolist() == ["float64", "object"]
    with numparq.Dataset(tmp_path) as dataset:
        batches = list(dataset.iter_batches(batch_rows=2))
    pd.testing.assert_frame_equal(pd.concat(batches), whole.astype({"a": "Int64", "b": "boolean"}))


def test_several_columns_with_nulls_denied_by_footers(tmp_path):
    """Converted and partition columns make positions in file and table differ."""
    first = pa.table({"w": pa.array([1, 2], "int32"), "a": [1, None], "b": [None, True], "c": [5, 6]})
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "0.parquet").write_bytes(with_zero_null_counts(first))
    pq.write_table(pa.table({"w": [3], "a": [3], "b": [False], "c": [7]}), tmp_path / "p=1" / "1.parquet")
    for columns in (["p", "w", "c", "a", "b"], ["b", "w", "a", "p", "c"]):
        found = numparq.read_parquet(tmp_path, columns, threads=2)
        assert found[["w", "a", "b", "c"]].dtypes.map(str).tolist() == ["int64", "float64", "object", "int64"]
        assert found["a"].fillna(-1).tolist() == [1, -1, 3]
        assert found["b"].fillna(True).tolist() == [True, True, False]
        assert found["c"].tolist() == [5, 6, 7]
    with pytest.raises(numparq.ParquetError, match="nulls"):
        list(numparq.Dataset(tmp_path).iter_batches(["p", "w", "a"], batch_rows=1))


def test_empty_result_keeps_categories(tmp_path):
    for number, values in enumerate((["a", "b"], ["c", "b"])):
        frame = pd.DataFrame({"c": pd.Categorical(values, categories=sorted(values)), "n": [1, 2]})
        numparq.to_parquet(frame, tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path, filters=col("n") > 1, nrows=0)
    assert len(found) == 0
    found = numparq.read_parquet(tmp_path, filters=(col("n") != 1) & (col("n") != 2))
    assert found["c"].dtype.categories.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
def test_merged_decimal_scales_of_equal_width(tmp_path, backend):
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


def test_user_schema_decimal_scale_of_equal_width(tmp_path):
    file = tmp_path / "0.parquet"
    pq.write_table(pa.table({"d": pa.array([decimal.Decimal("2.5"), None], pa.decimal128(19, 2))}), file)
    schema = pa.schema([("d", pa.decimal128(21, 4))])
    found = numparq.read_parquet(file, schema=schema)["d"]
    assert found.tolist() == [decimal.Decimal("2.5"), None]
    assert found.iloc[0].as_tuple().exponent == -4
    assert numparq.read_parquet(file, filters=col("d") == decimal.Decimal("2.5"), schema=schema)["d"].tolist() == [
        decimal.Decimal("2.5")
    ]


def test_partition_column_wins_over_index_of_same_name(tmp_path):
    for key in (1, 2):
        frame = pd.DataFrame({"x": [key, key]}, index=pd.Index([7, 3], name="k"))
        (tmp_path / f"k={key}").mkdir()
        frame.to_parquet(tmp_path / f"k={key}" / "0.parquet")
    whole = numparq.read_parquet(tmp_path)
    assert whole.reset_index()["k"].tolist() == [1, 1, 2, 2]
    assert numparq.read_parquet(tmp_path, ["x"]).reset_index()["x"].tolist() == [1, 1, 2, 2]
    assert "7" not in numparq.read_parquet(tmp_path, ["x"]).to_string()


def test_files_replaced_between_reads(tmp_path):
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


def test_columns_only_in_pruned_files(tmp_path):
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


def test_unnamed_index_missing_in_some_files(tmp_path):
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
