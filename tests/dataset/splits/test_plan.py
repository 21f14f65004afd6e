"""Tables divided into splits: their rows and their sizes."""

from __future__ import annotations

import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import RuntimeFilter, SchemaError, col
from numparq.dataset.splits import plan
from numparq.dataset.splits.plan import pack_pieces
from numparq.dataset.splits.split import Split
from numparq.dataset.splits.table import split_table
from numparq.io import small_files
from numparq.io.file_pool import PooledFileSource
from support.data.split_tables import numbered_frame, read_splits, thousands


@pytest.fixture
def folder(tmp_path):
    return thousands(tmp_path / "table")


def test_splits_respect_split_bytes(folder):
    whole = split_table(folder, split_bytes=1 << 20)
    (one,) = whole.splits
    assert one.num_rows == 4000
    assert len(one.files) == 4
    several = split_table(folder, split_bytes=one.num_bytes // 5)
    assert 5 <= len(several) <= 8
    assert all(split.num_bytes <= one.num_bytes // 5 for split in several.splits)
    assert sum(split.num_bytes for split in several.splits) >= one.num_bytes
    assert sum(split.num_rows for split in several.splits) == 4000


def test_min_splits_is_reached(folder):
    assert len(split_table(folder, min_splits=4)) == 4
    assert len(split_table(folder, min_splits=20)) == 20
    assert read_splits(split_table(folder, min_splits=7))["id"].tolist() == list(range(4000))


def test_split_bytes_count_projected_columns_only(folder):
    everything, one = split_table(folder).splits[0], split_table(folder, ["s"]).splits[0]
    assert 0 < one.num_bytes < everything.num_bytes / 5


def test_pruned_row_groups_are_in_no_split(folder):
    table = split_table(folder, filters=(col("id") >= 1250) & (col("id") < 1260))
    (split,) = table.splits
    (part,) = split.parts
    assert part.file.name.endswith("p=0/1.parquet")
    assert [rows.row_group for rows in part.groups] == [2]
    assert split.num_rows is None
    assert table.count(split) == 10
    assert split_table(folder, filters=col("p") == 7).splits == []
    assert split_table(folder, filters=col("id") > 9999).splits == []


@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        (col("id") == 2500, ["2.parquet"]),
        ((col("id") == 500) | (col("p") == 1), ["0.parquet", "2.parquet", "3.parquet"]),
        (col("id") > 9999, []),
    ],
)
def test_files_pruned_by_statistics_are_not_planned(folder, monkeypatch, predicate, names):
    planned = []
    real = plan._planned_file
    monkeypatch.setattr(plan, "_planned_file", lambda file, *rest: planned.append(file.name) or real(file, *rest))
    split_table(folder, filters=predicate)
    assert sorted(name.rpartition("/")[2] for name in planned) == names


def test_bytes_are_counted_by_column_index(tmp_path):
    numparq.to_parquet(numbered_frame(10_000), tmp_path / "a.parquet", data_page_size=2000)
    (split,) = split_table(tmp_path / "a.parquet", filters=col("id") == 5000).splits
    assert [part.groups for part in split.parts] == [((0, 0, 10_000),)]
    (whole,) = split_table(tmp_path / "a.parquet").splits
    assert 0 < split.num_bytes < whole.num_bytes / 5


def test_large_row_group_is_divided_at_pages(tmp_path):
    numparq.to_parquet(numbered_frame(10_000), tmp_path / "a.parquet", data_page_size=2000, compression=None)
    table = split_table(tmp_path / "a.parquet", split_bytes=20_000)
    assert len(table) >= 5
    assert {rows.row_group for split in table.splits for part in split.parts for rows in part.groups} == {0}
    assert all(split.num_bytes < 25_000 for split in table.splits)
    assert read_splits(table)["id"].tolist() == list(range(10_000))


def test_row_group_without_offset_index_is_not_divided(tmp_path):
    pq.write_table(
        pa.table(numbered_frame(10_000)), tmp_path / "a.parquet", data_page_size=2000, write_page_index=False
    )
    assert len(split_table(tmp_path / "a.parquet", split_bytes=5000)) == 1


def test_small_files_share_a_split(tmp_path):
    for number in range(100):
        numparq.to_parquet(numbered_frame(10, number), tmp_path / f"{number:03}.parquet")
    table = split_table(tmp_path)
    assert len(table) == 1
    assert len(table.splits[0].parts) == 100
    assert [len(split.files) for split in split_table(tmp_path, min_splits=4).splits] == [25] * 4


@pytest.mark.parametrize(
    ("sizes", "capacity", "expected"),
    [
        ([], 10, []),
        ([5], 1, [1]),
        ([3, 3, 3, 3], 9, [2, 2]),
        ([10, 1, 1, 10], 10, [1, 2, 1]),
        ([0, 0, 0], 5, [3]),
        ([5, 5, 6, 6], 100, [4]),
        ([1] * 10, 4, [4, 4, 2]),
        ([20, 1, 20], 5, [1, 1, 1]),
    ],
)
def test_pieces_are_packed_in_order(sizes, capacity, expected):
    runs = pack_pieces([0] * len(sizes), sizes, capacity)
    assert [index for run in runs for index in run] == list(range(len(sizes)))
    assert list(map(len, runs)) == expected
    for count in range(1, len(sizes) + 1):
        more = pack_pieces([0] * len(sizes), sizes, capacity, count)
        assert len(runs) <= len(more) >= count
        assert [index for run in more for index in run] == list(range(len(sizes)))


def test_packing_counts_cost_of_opening_files():
    # Each file costs 20 more to open.
    assert list(map(len, pack_pieces([0, 0, 1, 1], [160] * 4, 320))) == [1, 1, 1, 1]
    assert list(map(len, pack_pieces([0, 0, 1, 1], [150] * 4, 320))) == [2, 2]
    assert list(map(len, pack_pieces(range(6), [0] * 6, 160))) == [6]
    assert list(map(len, pack_pieces([0, 0, 0, 1], [10, 10, 10, 10], 1600, 2))) == [3, 1]


def test_invalid_arguments_raise(folder):
    for options in ({"split_bytes": 0}, {"min_splits": 0}, {"split_bytes": "1"}):
        with pytest.raises((TypeError, ValueError)):
            split_table(folder, **options)
    with pytest.raises(SchemaError, match="nothing"):
        split_table(folder, ["nothing"])
    with pytest.raises(ValueError, match="arrive"):
        split_table(folder, runtime_filters=RuntimeFilter("id"))
    with pytest.raises(FileNotFoundError):
        split_table(folder / "nowhere")


def test_unplanned_files_are_divided_by_byte_ranges(folder):
    table = split_table(folder, split_bytes=2000, plan_files=2)
    assert len(table) > 8
    assert all(split.num_rows is None for split in table.splits)
    assert all(part.groups is None for split in table.splits for part in split.parts)
    assert read_splits(table)["id"].tolist() == list(range(4000))
    assert sum(map(table.count, table.splits)) == 4000
    assert len(split_table(folder, min_splits=20, plan_files=2)) >= 20
    pruned = split_table(folder, filters=(col("p") == 1) & (col("id") < 2300), plan_files=1, split_bytes=3000)
    assert {name[-9:] for split in pruned.splits for name in split.files} == {"2.parquet", "3.parquet"}
    assert read_splits(pruned)["id"].tolist() == list(range(2000, 2300))


@pytest.mark.parametrize("plan_files", [None, 0])
@pytest.mark.parametrize("split_bytes", [1 << 20, 3000])
def test_file_listed_twice_is_read_twice(folder, plan_files, split_bytes):
    paths = [folder / "p=0" / name for name in ("0.parquet", "0.parquet", "1.parquet", "0.parquet")]
    table = split_table(paths, ["id"], plan_files=plan_files, split_bytes=split_bytes)
    once, other = list(range(1000)), list(range(1000, 2000))
    assert read_splits(table)["id"].tolist() == once + once + other + once


@pytest.mark.parametrize("edges", [[0], [0, 1], [0, 400, 401, 5000], list(range(0, 12_000, 97))])
def test_row_groups_belong_to_one_byte_range(folder, edges):
    table = split_table(folder / "p=0" / "0.parquet", plan_files=0)
    (split,) = table.splits
    (part,) = split.parts
    ranges = zip(edges, [*edges[1:], None], strict=True)
    frames = [table.frame(Split((part._replace(byte_range=each),), None)) for each in ranges]
    assert pd.concat(frames)["id"].tolist() == list(range(1000))


def test_byte_ranges_divide_a_file_evenly(tmp_path):
    pq.write_table(pa.table(numbered_frame(1000)), tmp_path / "a.parquet", row_group_size=100)
    table = split_table(tmp_path / "a.parquet", plan_files=0, split_bytes=1500)
    assert len(table) > 3
    groups = [table.frame(split)["id"].tolist() for split in table.splits]
    assert [row for rows in groups for row in rows] == list(range(1000))
    assert max(map(len, groups)) < 500


def test_unsampled_files_may_lack_columns_and_have_nulls(tmp_path):
    required = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    for number in range(130):
        table = pa.table({"a": [number], "b": ["x"]}, schema=required)
        if number == 76:  # not among the sampled files
            table = pa.table({"a": pa.array([None], pa.int32())})
        pq.write_table(table, tmp_path / f"{number:03}.parquet")
    frame = read_splits(split_table(tmp_path, plan_files=100))
    assert str(frame["a"].dtype) == "Int64"
    assert frame["a"].isna().tolist() == [at == 76 for at in range(130)]
    assert frame["b"].isna().tolist() == [at == 76 for at in range(130)]


@pytest.mark.parametrize(
    ("odd", "word"),
    [
        ({"a": pa.array([1], pa.int32()), "new": [2]}, "new"),
        ({"a": [2**40]}, "int64"),
        ({"a": ["text"]}, "int32"),
        ({"a": pa.array([1], pa.int32()), "st": [{"x": 1, "more": 2}]}, "more"),
    ],
)
def test_unsampled_file_with_other_columns_raises(tmp_path, odd, word):
    usual = pa.table({"a": pa.array([1], pa.int32()), "st": [{"x": 1}]})
    for number in range(130):
        pq.write_table(pa.table(odd) if number == 76 else usual, tmp_path / f"{number:03}.parquet")
    table = split_table(tmp_path, plan_files=100)
    with pytest.raises(SchemaError, match=word) as caught:
        read_splits(table)
    assert caught.value.where["file"].endswith("076.parquet")
    if "new" in odd:  # not a column of the user's schema
        schema = pa.schema({"a": pa.int64()})
        assert read_splits(split_table(tmp_path, plan_files=100, schema=schema))["a"].tolist() == [1] * 130


@pytest.mark.quick_cases(1)
@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(
    "wrap",
    [
        (pa.list_, lambda value: [value]),
        (lambda inner: pa.map_(pa.string(), inner), lambda value: [("a", value)]),
        (lambda inner: pa.struct({"in": inner}), lambda value: {"in": value}),
    ],
    ids=["list", "map", "struct"],
)
def test_unsampled_file_with_other_struct_fields_raises_at_any_depth(tmp_path, wrap, depth):
    for number in range(130):
        value = {"x": 1, "new": 2} if number == 76 else {"x": 1}
        kind, value = pa.list_(pa.scalar(value).type), [value]
        for _ in range(depth):
            kind, value = wrap[0](kind), wrap[1](value)
        pq.write_table(pa.table({"c": pa.array([value], kind)}), tmp_path / f"{number:03}.parquet")
    with pytest.raises(SchemaError, match="new"):
        read_splits(split_table(tmp_path, plan_files=100))
    assert len(read_splits(split_table(tmp_path))) == 130


def test_planning_opens_each_file_once(folder, monkeypatch):
    opened = []
    preadv = os.preadv
    monkeypatch.setattr(small_files.os, "preadv", lambda *file: opened.append(1) or preadv(*file))
    monkeypatch.setattr(PooledFileSource, "_open", lambda source: opened.append(1))
    assert sum(split.num_rows for split in split_table(folder).splits) == 4000
    assert len(opened) == 4
