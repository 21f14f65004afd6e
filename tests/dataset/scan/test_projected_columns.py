"""Reads of many files into one DataFrame: like pandas with pyarrow, and schemas that differ between files."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from support.files.page_damage import edit_footer


def make_frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "i": rng.integers(-(1 << 40), 1 << 40, rows),
            "small": rng.integers(0, 100, rows).astype("int16"),
            "f": rng.normal(size=rows),
            "s": rng.choice(["x", "yy", "zzz", ""], rows),
            "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 1 << 40, rows), unit="us"),
            "b": rng.random(rows) < 0.5,
            "o": [datetime.date(2020, 1, 1 + int(day)) for day in rng.integers(0, 28, rows)],
        }
    )
    frame.loc[rng.random(rows) < 0.2, "f"] = np.nan
    frame.loc[rng.random(rows) < 0.2, "s"] = None
    frame.loc[rng.random(rows) < 0.2, "o"] = None
    return frame


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        make_frame(50 + number, number).to_parquet(tmp_path / f"part-{number}.parquet")
    return tmp_path


def test_directory_reads_like_pandas(folder):
    pd.testing.assert_frame_equal(numparq.read_parquet(folder), pd.read_parquet(folder))


@pytest.mark.parametrize("columns", [["s", "i"], ["t"], []])
def test_column_projection(folder, columns):
    pd.testing.assert_frame_equal(
        numparq.read_parquet(folder, columns=columns), pd.read_parquet(folder, columns=columns)
    )


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtype_backends(folder, backend):
    expected = pd.read_parquet(folder, dtype_backend=backend)
    pd.testing.assert_frame_equal(numparq.read_parquet(folder, dtype_backend=backend), expected)


def test_filter_matches_pandas(folder):
    whole = pd.read_parquet(folder)
    found = numparq.read_parquet(folder, filters=(col("small") > 50) & col("s").isin(["x", "zzz"]))
    expected = whole[(whole["small"] > 50) & whole["s"].isin(["x", "zzz"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected)


def test_row_range_and_nrows_span_files(folder):
    whole = pd.read_parquet(folder)
    found = numparq.read_parquet(folder, row_range=(40, 130))
    pd.testing.assert_frame_equal(found, whole[40:130].reset_index(drop=True))
    found = numparq.read_parquet(folder, nrows=77)
    pd.testing.assert_frame_equal(found, whole[:77])
    found = numparq.read_parquet(folder, nrows=11, filters=col("small") > 50)
    pd.testing.assert_frame_equal(found, whole[whole["small"] > 50][:11].reset_index(drop=True))


def test_virtual_columns(folder):
    found = numparq.read_parquet(folder, columns=["i"], include=["file", "row_group", "row_number"])
    assert found["file"].map(lambda name: Path(name).name).tolist() == [
        f"part-{number}.parquet" for number in range(4) for _ in range(50 + number)
    ]
    assert found["row_number"].tolist() == [row for number in range(4) for row in range(50 + number)]
    assert found["row_group"].tolist() == [0] * len(found)


def test_globs_and_lists(folder):
    names = [folder / "part-2.parquet", folder / "part-0.parquet"]
    expected = pd.concat([pd.read_parquet(name) for name in names], ignore_index=True)
    pd.testing.assert_frame_equal(numparq.read_parquet(names), expected)
    found = numparq.read_parquet(str(folder / "part-[13].parquet"))
    expected = pd.concat([pd.read_parquet(folder / f"part-{n}.parquet") for n in (1, 3)], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    frame = make_frame(400)
    frame["year"] = np.repeat([2022, 2023, 2024, 2024], 100)
    frame["where"] = np.tile(["north", "so uth", "ea/st", "\u00e5"], 100)
    frame.to_parquet(tmp_path / "data", partition_cols=["year", "where"])
    return tmp_path / "data"


@pytest.fixture
def with_null(partitioned: Path) -> Path:
    for folder in partitioned.glob("*/where=north"):
        folder.rename(folder.with_name("where=__HIVE_DEFAULT_PARTITION__"))
    return partitioned


def test_partition_columns_read_like_pandas(partitioned):
    pd.testing.assert_frame_equal(numparq.read_parquet(partitioned), pd.read_parquet(partitioned))
    columns = ["where", "i", "year"]
    expected = pd.read_parquet(partitioned, columns=columns)
    pd.testing.assert_frame_equal(numparq.read_parquet(partitioned, columns=columns), expected)


@pytest.mark.parametrize(
    "filters",
    [
        [("year", "=", 2024)],
        [("year", "=", 2024), ("where", "=", "so uth"), ("small", ">", 30)],
        [[("year", "<", 2023)], [("small", ">", 90)]],
    ],
)
def test_partition_filters_match_pandas(partitioned, filters):
    expected = pd.read_parquet(partitioned, filters=filters)
    found = numparq.read_parquet(partitioned, filters=filters)
    for name in ("year", "where"):  # the remaining categories may differ
        expected[name] = expected[name].astype(object)
        found[name] = found[name].astype(object)
    pd.testing.assert_frame_equal(found, expected)


def test_null_partitions(with_null):
    found = numparq.read_parquet(with_null, filters=col("where").is_null())
    assert found["where"].isna().all()
    assert len(found) == 100
    assert len(numparq.read_parquet(with_null, filters=col("where") != "so uth")) == 200


def test_large_integers_with_nulls_in_one_file_are_nullable(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [(1 << 60) + 1, None]}), tmp_path / "1.parquet")
    found = numparq.read_parquet(tmp_path)
    pd.testing.assert_frame_equal(found, pd.DataFrame({"a": pd.array([1, 2, (1 << 60) + 1, None], "Int64")}))


def test_columns_missing_in_some_files(tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "s": ["x", "y"], "f": [1.5, 2.5]}), tmp_path / "0.parquet")
    pq.write_table(
        pa.table({"a": [3], "l": [[1, 2]], "d": pa.array(["u"]).dictionary_encode()}), tmp_path / "1.parquet"
    )
    found = numparq.read_parquet(tmp_path)
    assert list(found) == ["a", "s", "f", "l", "d"]
    assert found["a"].tolist() == [1, 2, 3]
    assert found["s"].tolist()[:2] == ["x", "y"]
    assert found["s"].isna().tolist() == [False, False, True]
    assert found["f"].isna().tolist() == [False, False, True]
    assert found["l"].isna().tolist() == [True, True, False]
    assert list(found["l"][2]) == [1, 2]
    assert found["d"].astype(object).tolist()[2] == "u"


def test_columns_of_widened_types(tmp_path):
    pq.write_table(
        pa.table(
            {
                "a": pa.array([1, 2], pa.int32()),
                "f": pa.array([0.5, None], pa.float32()),
                "d": pa.array([decimal.Decimal("1.5")] * 2, pa.decimal128(5, 1)),
                "t": pa.array([1, 2], pa.timestamp("ms")),
            }
        ),
        tmp_path / "0.parquet",
    )
    pq.write_table(
        pa.table(
            {
                "t": pa.array([1001, None], pa.timestamp("us")),
                "a": pa.array([1 << 40, None], pa.int64()),
                "f": pa.array([0.1, 0.2], pa.float64()),
                "d": pa.array([decimal.Decimal("2.25")] * 2, pa.decimal128(9, 2)),
            }
        ),
        tmp_path / "1.parquet",
    )
    found = numparq.read_parquet(tmp_path)
    pd.testing.assert_series_equal(found["a"], pd.Series([1, 2, 1 << 40, None], name="a"))
    pd.testing.assert_series_equal(found["f"], pd.Series([0.5, None, 0.1, 0.2], name="f"))
    assert [str(value) for value in found["d"]] == ["1.50", "1.50", "2.25", "2.25"]
    expected = pd.Series(np.array([1000, 2000, 1001, "NaT"], "M8[us]"), name="t")
    pd.testing.assert_series_equal(found["t"], expected)
    assert numparq.read_parquet(tmp_path, filters=col("a") > 1)["a"].tolist() == [2, 1 << 40]


def test_incompatible_types_raise(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "1.parquet")
    with pytest.raises(numparq.SchemaError, match=r"1\.parquet"):
        numparq.read_parquet(tmp_path)


def test_nested_columns_with_additional_fields(tmp_path):
    pq.write_table(pa.table({"p": [{"x": 1}, None]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"p": [{"x": 2, "y": "u"}]}), tmp_path / "1.parquet")
    found = numparq.read_parquet(tmp_path)
    assert found["p"].tolist() == [{"x": 1, "y": None}, None, {"x": 2, "y": "u"}]
    same = tmp_path / "same"
    same.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"l": [[number], [], None], "n": [number] * 3}), same / f"{number}.parquet")
    found = numparq.read_parquet(same)
    expected = pd.read_parquet(same)
    assert [None if each is None else list(each) for each in found["l"]] == [
        None if each is None else list(each) for each in expected["l"]
    ]


def test_pandas_index_of_files_is_concatenated(tmp_path):
    for number in range(2):
        frame = pd.DataFrame({"a": [number]}, index=pd.Index([f"row {number}"], name="key"))
        frame.to_parquet(tmp_path / f"{number}.parquet")
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), pd.read_parquet(tmp_path))


def test_categories_of_all_files_are_merged(tmp_path):
    for number, values in enumerate((["a", "b"], ["b", "c", None])):
        pd.DataFrame({"c": pd.Categorical(values)}).to_parquet(tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path)["c"]
    assert found.dtype == "category"
    assert found.astype(object).tolist()[:4] == ["a", "b", "b", "c"]
    assert found.isna().tolist() == [False] * 4 + [True]


def test_filter_without_matches_keeps_columns(partitioned):
    found = numparq.read_parquet(partitioned, filters=[("year", "=", 1999)])
    assert len(found) == 0
    assert list(found) == list(pd.read_parquet(partitioned))


def test_count_rows_with_filters(partitioned):
    with numparq.Dataset(partitioned) as dataset:
        assert dataset.count_rows() == 400
        assert dataset.count_rows(filters=[("year", "=", 2024)]) == 200
        whole = dataset.read()
        assert dataset.count_rows(col("small") > 50) == (whole["small"] > 50).sum()


def test_plan_lists_files_read(partitioned):
    with numparq.Dataset(partitioned) as dataset:
        plan = dataset.plan(filters=[("year", "=", 2022)])
        assert len(plan.files) == 4
        assert sum(cut.num_files for cut in plan.cuts) == plan.num_files - 4
        assert "partition" in plan.explain()
        assert "svg" in plan._repr_html_()


def test_damaged_file_is_named_in_error(folder):
    data = bytearray(numparq.to_parquet(make_frame(50)))
    data[100] ^= 1
    (folder / "part-2.parquet").write_bytes(data)
    with pytest.raises(numparq.ParquetError, match=r"part-2\.parquet"):
        numparq.read_parquet(folder)


@pytest.mark.parametrize("fields", [{"type": 77}, {"converted_type": 5, "precision": -1, "scale": 0}], ids=str)
def test_damaged_schema_names_its_file(tmp_path, fields):
    def edit(footer):
        for name, value in fields.items():
            setattr(footer.schema[1], name, value)

    path = tmp_path / "file.parquet"
    path.write_bytes(edit_footer(numparq.to_parquet(pd.DataFrame({"a": [1]})), edit))
    with pytest.raises(numparq.InvalidFileError, match=r"physical type 77 is unknown|not a valid decimal") as caught:
        numparq.read_parquet([path, path])
    assert caught.value.where == {"file": str(path), "column": "a"}


def test_row_range_counts_pruned_files(partitioned):
    with numparq.Dataset(partitioned) as dataset:
        whole = dataset.read()
        rows = (50, 230)
        found = dataset.read(filters=col("year") == 2024, row_range=rows)
    expected = whole[slice(*rows)]
    expected = expected[expected["year"] == 2024].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected)


def test_filter_on_column_missing_in_kept_files(tmp_path):
    for year, columns in ((2023, {"a": [1], "b": ["x"]}), (2024, {"a": [2]})):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table(columns), tmp_path / f"year={year}" / "0.parquet")
    filters = (col("year") == 2024) & (col("b") == "x")
    found = numparq.read_parquet(tmp_path, filters=filters)
    assert len(found) == 0
    assert list(found) == ["a", "b", "year"]
    assert len(numparq.read_parquet(tmp_path, filters=(col("year") == 2024) & col("b").is_null())) == 1


def test_empty_results_have_merged_dtypes(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1], "int32"), "s": [{"x": 1}], "k": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": pa.array([2], "int64"), "s": [{"x": 1, "y": "z"}], "k": [2]}), tmp_path / "1.parquet")
    whole = numparq.read_parquet(tmp_path)
    for filters in (col("k") > 2, col("k").isin([])):
        found = numparq.read_parquet(tmp_path, filters=filters, nrows=5)
        assert found.dtypes.to_dict() == whole.dtypes.to_dict()
        assert len(found) == 0
        (batch,) = numparq.Dataset(tmp_path).iter_batches(filters=filters)
        pd.testing.assert_frame_equal(batch, found)
    found = numparq.read_parquet(tmp_path, filters=col("k") > 1, nrows=0, include=["file", "row_number"])
    assert (len(found), found["a"].dtype) == (0, np.dtype("int64"))


@pytest.mark.parametrize("write", [pd.DataFrame.to_parquet, numparq.to_parquet], ids=["pyarrow", "numparq"])
@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        ([["lo", "mid"], ["lo", "mid", "hi"]], ["lo", "mid", "hi"]),
        ([["lo", "hi"], ["lo", "mid", "hi"]], None),
        ([["lo", "hi"], ["hi", "lo"]], None),
    ],
)
def test_category_order_requires_agreement_of_files(tmp_path, write, orders, expected):
    for number, order in enumerate(orders):
        write(pd.DataFrame({"c": pd.Categorical(order, order, ordered=True)}), tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(tmp_path)["c"]
    assert found.astype(object).tolist() == [label for order in orders for label in order]
    assert found.cat.ordered == (expected is not None)
    assert expected is None or found.cat.categories.tolist() == expected


@pytest.mark.parametrize("verify_crc", [True, False])
def test_random_damage_names_its_file(tmp_path, verify_crc):
    """Small files are decoded together; an error names the damaged file."""
    rng = np.random.default_rng(7)
    datas = [numparq.to_parquet(make_frame(60, seed), row_group_size=25) for seed in range(3)]
    for seed, data in enumerate(datas):
        (tmp_path / f"{seed}.parquet").write_bytes(data)
    whole, found = numparq.read_parquet(tmp_path), 0
    for _ in range(60):
        damaged = int(rng.integers(3))
        data = bytearray(datas[damaged])
        data[int(rng.integers(4, len(data)))] ^= 1 << int(rng.integers(8))
        (tmp_path / f"{damaged}.parquet").write_bytes(data)
        try:
            frame = numparq.read_parquet(tmp_path, verify_crc=verify_crc)
        except numparq.ParquetError as error:
            assert f"{damaged}.parquet" in str(error)
            found += 1
        else:
            assert len(frame) == len(whole)
        (tmp_path / f"{damaged}.parquet").write_bytes(datas[damaged])
    assert found > 10


def test_required_columns_without_statistics_are_not_nullable(tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64())])
    for number in range(2):
        table = pa.table({"a": [number], "b": [number]}, schema)
        pq.write_table(table, tmp_path / f"{number}.parquet", write_statistics=False)
    with numparq.Dataset(tmp_path) as dataset:
        (batch,) = dataset.iter_batches()
    assert batch.dtypes.astype(str).tolist() == ["int64", "Int64"]


def test_untrusted_null_counts_give_nullable_batches(tmp_path, monkeypatch):
    from numparq.format import writer_quirks

    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "0.parquet")
    with numparq.Dataset(tmp_path) as dataset:
        assert next(dataset.iter_batches())["a"].dtype == "int64"
        monkeypatch.setattr(writer_quirks, "untrusted_statistics", lambda created_by, leaf: {writer_quirks.NULL_COUNT})
        assert next(dataset.iter_batches())["a"].dtype == "Int64"


def test_files_are_pruned_by_statistics(folder):
    with numparq.Dataset(folder) as dataset:
        plan = dataset.plan(filters=col("small") > 1000)
        assert not plan.files
        assert [(cut.by.split()[0], cut.num_files) for cut in plan.cuts] == [("statistics", 4)]
        assert dataset.read(filters=col("small") > 1000).dtypes.equals(dataset.read().dtypes)
    with pytest.raises(ValueError, match="threads"):
        numparq.Dataset(folder, threads=1).read(threads=0)
