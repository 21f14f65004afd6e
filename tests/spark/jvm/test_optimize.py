"""`numparq.spark.optimize` keeps the rows: compacted, sorted or clustered files."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col
from numparq.cli.spark_demo import measure_lookup
from numparq.skipping import MinMax, Store
from numparq.tools.optimize.checksum import checksum
from support.data.arrow_columns import TABLE

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def optimize(spark):
    from numparq.spark import optimize

    return lambda path, **options: optimize(spark, path, **{"target_file_bytes": 100_000, **options})


def files_of(path):
    return sorted(os.path.relpath(os.path.join(root, name), path) for root, _, names in os.walk(path) for name in names)


def rides(path, files=12, rows=400, seed=0):
    """Write files of two partitions, one with an unusual directory name; a third of the files lack a column."""
    random = np.random.default_rng(seed)
    for number in range(files):
        frame = pd.DataFrame(
            {
                "row": np.arange(rows) + number * rows,
                "ride": random.integers(0, 1 << 62, rows).astype("uint64") << np.uint64(1),
                "at": np.datetime64("2026-01-01", "us") + random.integers(0, 10**13, rows) * np.timedelta64(1, "us"),
                "zone": [None if n == 0 else f"zone {n}" for n in random.integers(0, 30, rows)],
                "fare": np.where(random.random(rows) < 0.1, np.nan, random.random(rows)),
            }
        )
        frame["fare"] = pd.array(frame["fare"], pd.ArrowDtype(pa.float64()))
        frame.loc[random.random(rows) < 0.05, "fare"] = pd.NA
        folder = path / ("month=07" if number % 2 else "month=%30%38")
        folder.mkdir(parents=True, exist_ok=True)
        if number % 3 == 2:
            frame = frame.drop(columns="fare").astype({"row": "int32"})
        frame.to_parquet(folder / f"{number:03}.parquet", index=False, compression="gzip")
    return path


def rows_of(path):
    return numparq.read_parquet(path, dtype_backend="pyarrow").sort_values("row", ignore_index=True)


def folder_frames(path):
    return {name: numparq.read_parquet(path / name, dtype_backend="pyarrow") for name in sorted(os.listdir(path))}


def test_small_files_are_compacted(optimize, tmp_path):
    path = rides(tmp_path / "rides")
    before, frames = rows_of(path), folder_frames(path)
    report = optimize(path)
    assert (report.status, report.folders, report.before.files, report.before.rows) == ("done", 2, 12, 4800)
    assert report.after.files == len(files_of(path)) < 6
    assert report.after.rows == 4800
    pd.testing.assert_frame_equal(rows_of(path), before)
    for name, frame in folder_frames(path).items():  # in the same order and the same directories
        pd.testing.assert_frame_equal(frame, frames[name])
    assert {os.path.dirname(name) for name in files_of(path)} == {"month=07", "month=%30%38"}
    sizes = [os.path.getsize(path / name) for name in files_of(path)]
    assert report.after.bytes == sum(sizes)
    assert all(40_000 < size < 160_000 for size in sizes)
    again = optimize(path)
    assert (again.status, again.fine_folders, again.checksum) == ("nothing to do", 2, None)
    assert "2 directories laid out well already" in str(again)
    assert optimize(path, force=True, dry_run=True).status == "dry run"


def test_rows_are_sorted_per_directory(optimize, spark, tmp_path):
    path = rides(tmp_path / "rides")
    before = rows_of(path)
    options = {"sort_by": ["zone", "ride", "month"], "target_file_bytes": 30_000}
    report = optimize(path, **options)
    assert report.after.files > 3
    pd.testing.assert_frame_equal(rows_of(path), before)
    for frame in folder_frames(path).values():
        pairs = [("" if zone is pd.NA else zone, ride) for zone, ride in zip(frame["zone"], frame["ride"], strict=True)]
        assert pairs == sorted(pairs)
    with numparq.ParquetFile(path / files_of(path)[0]) as file:
        (group, *_) = file.metadata.row_groups
        assert [(one.column_idx, one.descending, one.nulls_first) for one in group.sorting_columns] == [
            (3, False, True),
            (1, False, True),
        ]
        assert all(chunk.offset_index_offset for chunk in group.columns)
    assert optimize(path, **options).status == "nothing to do"
    assert optimize(path, sort_by=["ride"], dry_run=True).status == "dry run"
    totals = spark.read.parquet(str(path)).selectExpr("count(*)", "sum(row)", "count(fare)").collect()[0]
    assert tuple(totals) == (4800, sum(range(4800)), int(before["fare"].count()))


def test_new_files_are_optimized_again(optimize, tmp_path):
    path = rides(tmp_path / "rides")
    optimize(path, sort_by="ride")
    others = {name for name in files_of(path) if "07" not in os.path.dirname(name)}
    frame = numparq.read_parquet(path / "month=07").head(5)
    frame.to_parquet(path / "month=07" / "new.parquet", index=False)
    report = optimize(path, sort_by="ride")
    assert (report.status, report.folders, report.fine_folders) == ("done", 1, 1)
    assert others <= set(files_of(path))
    assert len(numparq.read_parquet(path)) == 4805
    assert numparq.read_parquet(path / "month=07")["ride"].is_monotonic_increasing


def test_clustering_by_two_columns(optimize, tmp_path):
    """A filter on either column reads few rows."""
    random = np.random.default_rng(3)
    path = tmp_path / "points"
    path.mkdir()
    for number in range(8):
        frame = pd.DataFrame({"x": random.random(5000), "y": random.integers(0, 10**9, 5000), "row": np.arange(5000)})
        frame["row"] += number * 5000
        frame.to_parquet(path / f"{number}.parquet", index=False)
    before = rows_of(path)
    report = optimize(path, cluster_by=["x", "y"], target_file_bytes=200_000, max_rows_per_page=500)
    assert report.after.files >= 3
    pd.testing.assert_frame_equal(rows_of(path), before)
    options = {"x": (col("x") > 0.4) & (col("x") < 0.41), "y": (col("y") > 10**8) & (col("y") < 11 * 10**7)}
    for filters in options.values():
        found = numparq.read_parquet(path, ["row"], filters)
        assert len(found) > 200
        with numparq.Dataset(path) as dataset:
            rows = sum(part.num_rows for part in [dataset.plan(["row"], filters)])
        assert rows < 14_000  # of 40,000
    assert optimize(path, cluster_by=["x", "y"], target_file_bytes=200_000, max_rows_per_page=500).status == (
        "nothing to do"
    )


def all_types(tmp_path):
    path = tmp_path / "all"
    path.mkdir()
    table = TABLE.drop_columns(["view"])
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for number in range(3):
        numparq.to_parquet(frame, path / f"{number}.parquet", index=False)
    return path


def arrow_rows(path):
    with numparq.Dataset(path) as dataset:
        return pa.RecordBatchReader.from_stream(dataset).read_all()


@pytest.mark.parametrize(
    "options",
    [{}, {"sort_by": ["uint64", "tns", "text"]}, {"cluster_by": ["f8", "dec9", "uuid"]}],
    ids=["compacted", "sorted", "clustered"],
)
def test_types_survive_even_unknown_to_spark(optimize, tmp_path, options):
    path = all_types(tmp_path)
    before = arrow_rows(path)
    report = optimize(path, bloom_filters=["text", "int32"], **options)
    after = arrow_rows(path)
    assert after.schema == before.schema
    assert checksum([after]) == checksum([before])
    assert report.after.files == 1
    assert report.checksum.rows == 18
    with numparq.ParquetFile(path / files_of(path)[0]) as file:
        chunks = {chunk.meta_data.path_in_schema[0]: chunk.meta_data for chunk in file.metadata.row_groups[0].columns}
        assert {name for name, chunk in chunks.items() if chunk.bloom_filter_offset} == {"text", "int32"}


def test_index_and_categories_survive(optimize, tmp_path):
    path = tmp_path / "frames"
    path.mkdir()
    frame = pd.DataFrame(
        {"kind": pd.Categorical(["a", "b", "a"]), "day": pd.to_datetime(["2026-01-02"] * 3).tz_localize("Europe/Rome")},
        index=pd.Index([7, 8, 9], name="key"),
    )
    for number in range(3):
        frame.to_parquet(path / f"{number}.parquet")
    before = numparq.read_parquet(path)
    optimize(path)
    pd.testing.assert_frame_equal(numparq.read_parquet(path), before)
    assert before.index.name == "key"


def test_output_directory_and_where(optimize, tmp_path):
    path = rides(tmp_path / "rides")
    names = files_of(path)
    report = optimize(path, out=tmp_path / "out", where="month = '08'", sort_by="row")
    assert files_of(path) == names
    assert {os.path.dirname(name) for name in files_of(tmp_path / "out")} == {"month=%30%38"}
    assert report.out == str(tmp_path / "out")
    expected = numparq.read_parquet(path / "month=%30%38", dtype_backend="pyarrow").sort_values(
        "row", ignore_index=True
    )
    pd.testing.assert_frame_equal(folder_frames(tmp_path / "out")["month=%30%38"], expected)
    with pytest.raises(FileExistsError):
        optimize(path, out=tmp_path / "out", sort_by="row")
    assert files_of(path) == names


def test_look_up_reads_little_after_optimize(optimize, spark, tmp_path):
    """Unsorted rows in files written by Spark; options are chosen from the data."""
    path = str(tmp_path / "events")
    rows_by_user = spark.range(0, 400_000, 1, 40).selectExpr(
        "xxhash64(id) AS event",
        "CAST(pmod(xxhash64(id, 1), 5000) AS int) AS user",
        "id AS row",
        "CAST(rand(1) AS float) AS weight",
        "concat('https://example.org/item/', pmod(xxhash64(id), 997)) AS item",
    )
    rows_by_user.write.parquet(path)
    filters = col("user") == 1234
    rows, before = measure_lookup(path, filters)
    report = optimize(path, sort_by=["user", "row"], target_file_bytes=128 << 20)
    assert report.after.files == 1
    assert report.bloom_filters == ("event", "row")
    found, after = measure_lookup(path, filters)
    assert found == rows > 50
    assert after < 0.02 * before  # mostly the file's end, read in 64 KiB
    assert "sorted by user, row" in str(report)


def test_stores_are_refreshed_after_the_commit(optimize, tmp_path):
    path = rides(tmp_path / "rides")
    store = Store.build(path, base=tmp_path / "index", indexes=[MinMax("row")])
    report = optimize(str(path), sort_by="row", skipping=store)
    assert {"commit", "store"} <= report.seconds.keys()
    found = store.select("row >= 100000")
    assert (len(found.kept), len(found.unknown)) == (0, 0)
    assert len(found.skipped) == len(numparq.Dataset(path).plan().files)
    with pytest.raises(ValueError, match="cannot be combined with out"):
        optimize(str(path), out=str(tmp_path / "out"), skipping=store)
