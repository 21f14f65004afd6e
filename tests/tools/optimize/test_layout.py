"""Layouts of datasets by their footers: which folders need a rewrite, and rows in pieces and bins."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.tools.optimize.layout import LAYOUT_KEY, TargetLayout
from numparq.tools.optimize.rewrite_plan import OutputSchema, bin_pieces, plan_rewrite, split_by_folder


def write_file(folder, name, rows=100, **options):
    os.makedirs(folder, exist_ok=True)
    numparq.to_parquet(pd.DataFrame({"a": np.arange(rows)}), f"{folder}/{name}.parquet", **options)


def with_layout_note(layout, job):
    return {"key_value_metadata": {LAYOUT_KEY: layout.to_json(job)}}


def folders_to_rewrite(folder, layout, **options):
    return [one.name for one in plan_rewrite(folder, layout, **options).folders]


def test_many_small_files_need_a_rewrite(tmp_path):
    for part in ("k=1", "k=02"):
        write_file(tmp_path / part, "a")
    assert folders_to_rewrite(tmp_path, TargetLayout()) == []
    write_file(tmp_path / "k=02", "b")
    assert folders_to_rewrite(tmp_path, TargetLayout()) == ["k=02"]
    found = plan_rewrite(tmp_path, TargetLayout(), force=True)
    assert [(one.name, len(one.files), one.num_rows) for one in found.folders] == [("k=02", 2, 200), ("k=1", 1, 100)]
    assert found.keys == ("k",)


def test_files_without_page_indexes_need_a_rewrite(tmp_path):
    write_file(tmp_path, "a", write_page_index=False)
    assert folders_to_rewrite(tmp_path, TargetLayout()) == [""]


def test_file_sizes_outside_target_need_a_rewrite(tmp_path):
    for name in "ab":
        write_file(tmp_path, name, 10_000, use_dictionary=False)
    size = os.path.getsize(tmp_path / "a.parquet")
    assert folders_to_rewrite(tmp_path, TargetLayout(file_bytes=size)) == []
    assert folders_to_rewrite(tmp_path, TargetLayout(file_bytes=3 * size)) == [""]  # both files are too small
    assert folders_to_rewrite(tmp_path, TargetLayout(file_bytes=size // 3)) == [""]  # too large


@pytest.mark.parametrize(
    "layout", [TargetLayout(("a",)), TargetLayout((), ("a",)), TargetLayout(options=(("x", "1"),))]
)
def test_files_of_one_job_need_no_rewrite(tmp_path, layout):
    for name in "ab":
        write_file(tmp_path, name, **with_layout_note(layout, "one"))
    assert folders_to_rewrite(tmp_path, layout) == []
    assert folders_to_rewrite(tmp_path, layout, force=True) == [""]
    assert folders_to_rewrite(tmp_path, TargetLayout(("a", "b"))) == [""]
    assert folders_to_rewrite(
        tmp_path, TargetLayout(layout.sort_by, layout.cluster_by, 1 << 20, None, layout.options)
    ) == [""]
    write_file(tmp_path, "c", **with_layout_note(layout, "another"))
    assert folders_to_rewrite(tmp_path, layout) == [""]


@pytest.mark.parametrize("note", [b"", b"{", b"[1]", b'"x"', b'{"job": 3}'])
def test_invalid_layout_notes_need_a_rewrite(tmp_path, note):
    write_file(tmp_path, "a", key_value_metadata={LAYOUT_KEY: note})
    assert folders_to_rewrite(tmp_path, TargetLayout(("a",))) == [""]


def test_files_without_rows_are_not_rewritten(tmp_path):
    for name in "ab":
        write_file(tmp_path, name, 0)
    assert folders_to_rewrite(tmp_path, TargetLayout(("a",)), force=True) == []


def test_missing_bloom_filters_need_a_rewrite(tmp_path):
    write_file(tmp_path, "a", bloom_filter_options={"a": True})
    assert folders_to_rewrite(tmp_path, TargetLayout(bloom_filters=("a",))) == []
    write_file(tmp_path, "a")
    assert folders_to_rewrite(tmp_path, TargetLayout(bloom_filters=("a",))) == [""]


def test_where_selects_partitions(tmp_path):
    for year, zone in itertools.product((2023, 2024), ("n", "s")):
        write_file(tmp_path / f"year={year}" / f"zone={zone}", "a")
    for where in ("year = 2024", col("year") == 2024, [("year", "=", 2024)]):
        assert folders_to_rewrite(tmp_path, TargetLayout(), where=where, force=True) == [
            "year=2024/zone=n",
            "year=2024/zone=s",
        ]
    assert folders_to_rewrite(tmp_path, TargetLayout(), where="not (year = 2024 or zone = 'n')", force=True) == [
        "year=2023/zone=s"
    ]
    with pytest.raises(ValueError, match=r"only partition columns .'year', 'zone'., not 'a'"):
        plan_rewrite(tmp_path, TargetLayout(), where="year = 2024 and a > 3")


def test_single_files_and_globs_raise(tmp_path):
    write_file(tmp_path, "a")
    for path in (tmp_path / "a.parquet", str(tmp_path / "*.parquet")):
        with pytest.raises(ValueError, match="path must be the directory of a dataset"):
            plan_rewrite(path, TargetLayout())


@pytest.mark.parametrize("split_bytes", [1, 3000, 1 << 30])
def test_pieces_have_all_rows_by_folder(tmp_path, split_bytes):
    for number, part in enumerate(["k=a", "k=a", "k=b", "k=a", "k=c"]):
        write_file(tmp_path / part, f"{number}", 200 + number, row_group_size=50)
    found = plan_rewrite(tmp_path, TargetLayout())
    assert [one.name for one in found.folders] == ["k=a"]
    found = plan_rewrite(tmp_path, TargetLayout(), force=True)
    folders = {file.file.path: one.name for one in found.folders for file in one.files}
    table = found.split(None, split_bytes)
    pieces = split_by_folder(table, folders.__getitem__)
    rows = {}
    for piece in pieces:
        got = table.frame(piece.split)
        assert piece.split.num_rows == len(got)
        rows.setdefault(piece.folder, []).extend(got["a"])
    assert list(table.names) == ["a"]
    assert rows == {f"k={part}": numparq.read_parquet(tmp_path / f"k={part}")["a"].tolist() for part in "abc"}


def test_pieces_are_packed_into_bins(tmp_path):
    for number in range(12):
        write_file(tmp_path / ("k=a" if number < 10 else "k=b"), f"{number:02}", 2000, use_dictionary=False)
    found = plan_rewrite(tmp_path, TargetLayout())
    folders = {file.file.path: one.name for one in found.folders for file in one.files}
    pieces = split_by_folder(found.split(None, 1), folders.__getitem__)
    size = pieces[0].split.num_bytes
    bins = bin_pieces(pieces, 4 * size)
    assert [(one[0].folder, len(one)) for one in bins] == [("k=a", 3), ("k=a", 4), ("k=a", 3), ("k=b", 2)]
    assert [piece for one in bins for piece in one] == pieces
    assert len(bin_pieces(pieces, 1)) == len(pieces)
    assert len(bin_pieces(pieces, 1 << 40)) == 2


def test_output_schema_keeps_metadata(tmp_path):
    """The pandas metadata is kept except for the range index, and so are Arrow types."""
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", "x"]), "b": [1, 2, 3]}, index=pd.RangeIndex(3, name="row"))
    for name in "ab":
        numparq.to_parquet(frame, tmp_path / f"{name}.parquet")
    new = OutputSchema.from_schema_file(plan_rewrite(tmp_path, TargetLayout()).split(None, 1 << 20).schema_file)
    assert list(new.schema.columns) == ["a", "b"]
    assert list(new.leaf_columns) == ["a", "b"]
    with numparq.ParquetWriter(
        tmp_path / "new.parquet", schema=new.schema, store_schema=False, key_value_metadata=new.key_values
    ) as writer:
        for _ in range(2):
            writer.write(frame.astype({"a": "str"}), index=False)
    got = numparq.read_parquet(tmp_path / "new.parquet")
    pd.testing.assert_frame_equal(got, pd.concat([frame, frame], ignore_index=True))


def test_files_of_zero_bytes_are_left_alone(tmp_path):
    """Hadoop's committers and killed writers leave them; a read finds no rows in them."""
    folder = tmp_path / "k=1"
    folder.mkdir()
    for number in range(2):
        numparq.to_parquet(pd.DataFrame({"a": [number]}), folder / f"{number}.parquet")
    (folder / "empty.parquet").touch()
    plan = plan_rewrite(tmp_path, TargetLayout(), force=True)
    assert [os.path.basename(file.file.path) for one in plan.folders for file in one.files] == [
        "0.parquet",
        "1.parquet",
    ]
