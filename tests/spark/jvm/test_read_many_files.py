"""Tables with more files than the driver reads footers of, planned in tasks; rows without columns."""

from __future__ import annotations

import datetime
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 12, 60
PLANS = {"driver": None, "tasks": 3}


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    numparq.spark.register(spark)


@pytest.fixture(scope="module")
def stored_folder(tmp_path_factory):
    """Write files of three row groups in partitions of two keys, one with a null."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(3)
    for number in range(FILES):
        zone = ["a", "b%2Fc", "__HIVE_DEFAULT_PARTITION__"][number % 3]
        place = folder / f"day=2024-01-0{number % 2 + 1}" / f"zone={zone}"
        place.mkdir(parents=True, exist_ok=True)
        rows = np.arange(number * ROWS, (number + 1) * ROWS)
        frame = pd.DataFrame(
            {
                "id": rows,
                "x": rng.normal(size=ROWS),
                "n": pd.array(rows % 7, "Int32"),
                "s": [f"k{row:05}" for row in rows],
            }
        )
        frame.loc[frame.id % 5 == 0, "n"] = pd.NA
        numparq.to_parquet(frame, place / f"{number:03}.parquet", index=False, row_group_size=20, max_rows_per_page=5)
    return str(folder)


@pytest.fixture(params=PLANS, ids=str)
def plan(request):
    return PLANS[request.param]


def rows(df):
    return sorted(map(repr, df.collect()))


# --- rows -------------------------------------------------------------------------------------------------------------


def test_all_rows_match_spark(spark, stored_folder, plan):
    expected = spark.read.parquet(stored_folder)
    found = numparq.spark.read(spark, stored_folder, plan_files=plan)
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert found.agg({"id": "sum", "n": "sum"}).collect() == expected.agg({"id": "sum", "n": "sum"}).collect()
    loaded = spark.read.format("numparq").options(**({} if plan is None else {"planFiles": plan})).load(stored_folder)
    assert rows(loaded) == rows(expected)


@pytest.mark.parametrize(("size", "count"), [(500, 1), (2_000, 7), (10**9, 40)])
def test_splits_of_any_size(spark, stored_folder, size, count):
    found = numparq.spark.read(spark, stored_folder, ["id"], plan_files=3, split_bytes=size, min_splits=count)
    assert sorted(row.id for row in found.collect()) == list(range(FILES * ROWS))
    assert found.rdd.getNumPartitions() >= (count if count < FILES else FILES)


FILTERS = [
    "id between 100 and 130 or s = 'k00577'",
    "n is null",
    "x > 1 and n = 3",
    "id < 0",
    "zone = 'b/c' and n > 4",
    "zone is null and day < '2024-01-02'",
]


@pytest.mark.parametrize("text", FILTERS)
def test_filters_match_spark(spark, stored_folder, plan, text):
    expected = rows(spark.read.parquet(stored_folder).filter(text))
    assert rows(numparq.spark.read(spark, stored_folder, filters=text, plan_files=plan)) == expected


def test_expression_with_selected_columns(spark, stored_folder, plan):
    expected = spark.read.parquet(stored_folder).filter("id > 400 and day = '2024-01-01'").select("zone", "s")
    filters = (col("id") > 400) & (col("day") == datetime.date(2024, 1, 1))
    assert rows(numparq.spark.read(spark, stored_folder, ["zone", "s"], filters, plan_files=plan)) == rows(expected)


KEYS = {
    "id": "id * 37",
    "n": "cast(id % 3 as tinyint)",
    "s": "format_string('k%05d', id * 11)",
    "day": "date_add(date'2024-01-02', cast(id as int))",
    "zone": "case when id = 3 then 'b/c' end",
}


@pytest.mark.parametrize(("column", "limit"), [*((column, 2_000) for column in KEYS), ("id", 1), ("s", 1)])
def test_join_keys_as_runtime_filters(spark, stored_folder, monkeypatch, column, limit):
    from numparq.spark.scan import runtime_filters

    monkeypatch.setattr(runtime_filters, "MAX_VALUES", limit)
    small = spark.range(15).selectExpr(f"{KEYS[column]} as key").distinct()
    expected = spark.read.parquet(stored_folder)
    found = numparq.spark.read(spark, stored_folder, runtime_filters={column: small}, plan_files=3)
    assert rows(found.join(small, found[column] == small.key)) == rows(
        expected.join(small, expected[column] == small.key)
    )
    assert found.count() < FILES * ROWS


def test_user_schema(spark, stored_folder, plan):
    ddl = "zone string, ID bigint, gone double, n bigint"
    expressions = "zone", "id as ID", "cast(null as double) as gone", "cast(n as bigint) n"
    expected = spark.read.parquet(stored_folder).selectExpr(*expressions)
    found = numparq.spark.read(spark, stored_folder, schema=ddl, plan_files=plan)
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)


def test_virtual_columns(spark, stored_folder, plan):
    include = ["file", "row_group", "row_number"]
    found = numparq.spark.read(spark, stored_folder, ["id"], "id >= 675", include=include, plan_files=plan).collect()
    places = [(row.row_group, row.row_number) for row in sorted(found)]
    assert places == [(at // 20, at) for at in range(15, 60)]
    assert {os.path.basename(row.file) for row in found} == {"011.parquet"}


def test_columns_missing_in_some_files(spark, tmp_path, plan):
    for number in range(8):
        table = {"id": [number], "a": pa.array([number], pa.int64() if number % 2 == 0 else pa.int32())}
        pq.write_table(pa.table(table if number != 5 else {"id": [number]}), tmp_path / f"{number}.parquet")
    found = numparq.spark.read(spark, str(tmp_path), plan_files=plan)
    assert rows(found) == [f"Row(id={number}, a={number if number != 5 else None})" for number in range(8)]
    assert numparq.spark.read(spark, str(tmp_path), [], "a is null", plan_files=plan).count() == 1


# --- errors -----------------------------------------------------------------------------------------------------------


def test_damage_names_file_row_group_and_page(spark, stored_folder, tmp_path, plan):
    for number in range(5):
        frame = pd.DataFrame({"id": np.arange(40), "x": np.arange(40) / 7})
        path = tmp_path / f"{number}.parquet"
        numparq.to_parquet(frame, path, index=False, row_group_size=20, max_rows_per_page=5, use_dictionary=False)
        if number == 3:
            data = bytearray(path.read_bytes())
            with numparq.ParquetFile(path) as file:
                chunk = file.metadata.row_groups[1].columns[1].meta_data
            data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 255  # in the last of four pages
            path.write_bytes(data)
    found = numparq.spark.read(spark, str(tmp_path), plan_files=plan)
    with pytest.raises(Exception, match=r"CorruptPageError: .*file '[^']*3\.parquet', row group 1, column 'x', page 3"):
        found.collect()
    assert numparq.spark.read(spark, str(tmp_path), ["id"], plan_files=plan).count() == 200


def write_few(folder, count=6):
    for number in range(count):
        pq.write_table(pa.table({"id": [number], "x": [0.5]}), folder / f"{number}.parquet")


@pytest.fixture
def sampled(monkeypatch):
    """Limit the driver to the footers of the first and the last file."""
    from numparq.dataset.splits import plan as splits_plan

    monkeypatch.setattr(splits_plan, "SAMPLED_FILES", 2)


def test_invalid_file_raises_in_its_task(spark, tmp_path, sampled):
    write_few(tmp_path)
    (tmp_path / "3.parquet").write_bytes(b"PAR1 nothing at all PAR1")
    found = numparq.spark.read(spark, str(tmp_path), plan_files=2)
    with pytest.raises(Exception, match=r"InvalidFileError: .*file '[^']*3\.parquet'"):
        found.collect()


def test_changed_and_deleted_files_raise(spark, tmp_path):
    write_few(tmp_path)
    found = numparq.spark.read(spark, str(tmp_path), plan_files=2)
    assert found.count() == 6
    pq.write_table(pa.table({"id": [1, 2], "x": [1.5, 2.5]}), tmp_path / "4.parquet")
    with pytest.raises(Exception, match=r"InvalidFileError: the file has changed.*file '[^']*4\.parquet'"):
        found.collect()
    (tmp_path / "4.parquet").unlink()
    with pytest.raises(Exception, match=r"FileNotFoundError: .*4\.parquet'"):
        found.collect()


def test_unsampled_file_with_new_column_raises(spark, tmp_path, sampled):
    """The task that reads the file raises, because sampling cannot find the column."""
    write_few(tmp_path)
    pq.write_table(pa.table({"id": [3], "x": [0.5], "new": ["a"]}), tmp_path / "3.parquet")
    found = numparq.spark.read(spark, str(tmp_path), plan_files=2)
    with pytest.raises(
        Exception, match=r"a column that is missing from the files .*file '[^']*3\.parquet', column 'new'"
    ):
        found.collect()
    assert rows(numparq.spark.read(spark, str(tmp_path), plan_files=6))[3] == "Row(id=3, x=0.5, new='a')"


# --- rows without columns ---------------------------------------------------------------------------------------------


def counted(df):
    """Count the rows of a DataFrame with no columns selected."""
    return df.count(), len(df.select().collect())


CHOSEN = {
    "all": {},
    "partition": {"filters": "day = '2024-01-02' and zone is null"},
    "ranges": {"filters": "id between 17 and 43 or id > 700"},
    "none": {"filters": "id < 0"},
    "both": {"filters": "zone = 'a' and x > 0.5"},
    "virtual": {"include": ["row_number"]},
}


@pytest.mark.parametrize("selection", CHOSEN)
def test_counts_by_tasks(spark, stored_folder, plan, selection):
    options = {**CHOSEN[selection], "plan_files": plan, "split_bytes": 1_000}
    expected = spark.read.parquet(stored_folder).filter(options.get("filters", "true")).count()
    for columns in (None, [], ["zone"]):
        assert counted(numparq.spark.read(spark, stored_folder, columns, **options)) == (expected, expected)


@pytest.mark.driver_reads
@pytest.mark.parametrize("selection", CHOSEN)
def test_counts_by_the_driver(spark, stored_folder, selection):
    expected = spark.read.parquet(stored_folder).filter(CHOSEN[selection].get("filters", "true")).count()
    for columns in (None, [], ["zone"]):
        assert counted(numparq.spark.read(spark, stored_folder, columns, **CHOSEN[selection])) == (expected, expected)


@pytest.mark.parametrize("text", ["n = 3", "zone is null", "id < 0"])
def test_counts_through_the_data_source(spark, stored_folder, text):
    expected = spark.read.parquet(stored_folder).filter(text).count()
    for options in ({}, {"columns": "day"}, {"planFiles": "2", "columns": "[]"}, {"columns": "", "rowsPerBatch": "7"}):
        found = spark.read.format("numparq").options(filter=text, **options).load(stored_folder)
        assert counted(found) == (expected, expected)


def test_counts_with_runtime_filters(spark, stored_folder, plan):
    small = {"id": spark.range(50).selectExpr("id * 37 as id"), "zone": spark.sql("select 'b/c' as zone")}
    for column, expected in (("id", len(range(0, FILES * ROWS, 37))), ("zone", FILES // 3 * ROWS)):
        keys = {column: small[column]}
        found = numparq.spark.read(spark, stored_folder, [], runtime_filters=keys, plan_files=plan)
        assert counted(found) == (expected, expected)
