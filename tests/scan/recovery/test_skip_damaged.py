"""``on_error="skip"`` with filters, and over many files: the rows of one file with the same row groups and damage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import col
from support.damaged_reads import GROUP, LEAVES, ROWS, read_skipping_damage, table, written_file
from support.files.page_damage import damage_body, data_pages, edit_footer

UNIT = 1_000_003  # of the column "int"
OPTIONS = {
    "all": {},
    "range": {"row_range": (350, 950)},
    "row groups": {"row_groups": [2, 1]},
    "filter": {"filters": (col("int") > 450 * UNIT) & (col("small") < 1100)},
    "filter of text": {"filters": col("few") == "word 3"},
    "filter of elements": {"filters": col("list").contains(2), "nrows": 150},
    "filter and range": {"filters": col("small") > 500, "row_range": (300, 700), "columns": ["text", "list"]},
    "filter of nothing": {"filters": col("int") < 0},
    "exploded": {"explode": "list", "columns": ["int", "list"]},
}


def table_slice(number: int) -> pd.DataFrame:
    return table().iloc[number * GROUP : (number + 1) * GROUP].reset_index(drop=True)


@pytest.fixture(scope="module")
def whole() -> bytes:
    return written_file()


@pytest.fixture(scope="module")
def parts() -> list[bytes]:
    return [written_file(frame=table_slice(number), schema=MAP) for number in range(ROWS // GROUP)]


MAP = {"map": pa.map_(pa.string(), pa.int64())}


def damage(data: bytes, row_group: int, leaf: str, page: int) -> bytes:
    return damage_body(data, data_pages(data, row_group, leaf)[page])


def set_codec(footer, row_group: int, column: int) -> None:
    footer.row_groups[row_group].columns[column].meta_data.codec = 99  # which no reader knows


def rows_left(data: bytes, options: dict, lost: range) -> pd.DataFrame:
    """Return the undamaged rows that an option selects, without the lost ones."""
    frame = numparq.read_parquet(data, **{**options, "nrows": None}, include=["row_number"])
    frame = frame[~frame.pop("row_number").isin(lost)].reset_index(drop=True)
    return frame.head(options["nrows"]) if "nrows" in options else frame


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("options", [name for name in OPTIONS if "filter" in name])
@pytest.mark.parametrize("leaf", LEAVES)
def test_filters_drop_rows_whose_values_are_lost(whole, leaf, options):
    chosen = OPTIONS[options]
    damaged = damage(whole, 1, leaf, 2)
    frame, lost = read_skipping_damage(damaged, **chosen)
    expected = rows_left(whole, chosen, range(600, 700))
    if not lost:  # the column is not read, or no row of its row group matches
        expected = numparq.read_parquet(whole, **chosen)
    else:
        assert [item[1:4] for item in lost] == [(1, leaf, (600, 700))]
    pd.testing.assert_frame_equal(frame, expected)


@pytest.mark.parametrize("options", OPTIONS)
def test_filters_of_intact_files(whole, options):
    frame, lost = read_skipping_damage(whole, **OPTIONS[options])
    assert lost == []
    pd.testing.assert_frame_equal(frame, numparq.read_parquet(whole, **OPTIONS[options]))


def test_lost_filter_column_leaves_no_row(whole):
    damaged = edit_footer(
        whole, lambda footer: [setattr(group.columns[0].meta_data, "codec", 99) for group in footer.row_groups]
    )
    frame, lost = read_skipping_damage(damaged, filters=col("int") >= 0, columns=["text", "int"])
    assert frame.shape == (0, 2)
    assert [item[1:4] for item in lost] == [(group, "int", (GROUP * group, GROUP * (group + 1))) for group in range(3)]


def test_unreadable_projected_column_is_dropped_from_matching_rows(whole):
    damaged = edit_footer(whole, lambda footer: set_codec(footer, 1, 5))
    frame, lost = read_skipping_damage(
        damaged, filters=(col("small") >= 450) & (col("small") < 460), columns=["small", "text"]
    )
    assert frame.to_dict("list") == {"small": list(range(450, 460))}
    assert [item[1:4] for item in lost] == [(1, "text", (400, 800))]


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_many_files_lose_what_one_file_loses(tmp_path, whole, parts, leaf, options):
    places = [(1, leaf, 2), (2, "gaps", 0)]
    one, many = whole, list(parts)
    for row_group, name, page in places:
        one = damage(one, row_group, name, page)
        many[row_group] = damage(many[row_group], 0, name, page)
    for number, data in enumerate(many):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    expected, expected_lost = read_skipping_damage(one, **OPTIONS[options])
    frame = numparq.read_parquet(tmp_path, **OPTIONS[options], on_error="skip")
    lost = frame.attrs.pop("numparq.lost")
    pd.testing.assert_frame_equal(frame, expected)
    found = []
    for item in lost:
        number = int(item.file.rsplit("/", 1)[1][0])
        found.append((number + item.row_group, item.column, tuple(row + number * GROUP for row in item.rows)))
    assert sorted(found) == sorted(item[1:4] for item in expected_lost)


def test_cast_columns_and_partitions_without_lost_rows(tmp_path):
    """Files that store a narrower type, or lack the column, keep their intact rows."""
    frames = []
    for number, kind in enumerate(("int32", "int64")):
        frame = pd.DataFrame(
            {"a": np.arange(400, dtype=kind), "s": [{"x": n} for n in range(400)], "b": np.arange(400)}
        )
        if number:
            frame["s"] = [{"x": n, "y": "y"} for n in range(400)]
            frame["c"] = "c"
        data = numparq.to_parquet(frame, max_rows_per_page=100)
        data = damage(damage(data, 0, "a", 1), 0, "b", 3)
        (tmp_path / f"k={number}").mkdir()
        (tmp_path / f"k={number}" / "x.parquet").write_bytes(data)
        kept = np.r_[0:100, 200:300]
        frames.append(frame.take(kept).assign(k=number))
    found = numparq.read_parquet(tmp_path, partitioning={"k": "int64"}, include=["row_number", "file"], on_error="skip")
    lost = sorted(item[1:4] for item in found.attrs["numparq.lost"])
    assert lost == [(0, "a", (100, 200))] * 2 + [(0, "b", (300, 400))] * 2
    expected = pd.concat(frames, ignore_index=True)
    assert found["a"].tolist() == expected["a"].tolist() == found["row_number"].tolist()
    assert found.index.tolist() == [n + 400 * k for n, k in zip(expected["a"], expected["k"], strict=True)]
    assert found["a"].dtype == "int64"
    assert found["s"].tolist() == [{"x": value["x"], "y": value.get("y")} for value in expected["s"]]
    assert found["c"].isna().tolist() == (expected["k"] == 0).tolist()
    assert found["k"].tolist() == expected["k"].tolist()


def test_column_lost_in_all_files_is_dropped(tmp_path):
    for number in range(2):
        data = numparq.to_parquet(pd.DataFrame({"a": range(10), "s": ["x"] * 10}))
        (tmp_path / f"{number}.parquet").write_bytes(damage(data, 0, "a", 0))
    found = numparq.read_parquet(tmp_path, on_error="skip")
    assert found.to_dict("list") == {"s": ["x"] * 20}
    found = numparq.read_parquet(tmp_path, on_error="skip", filters=col("s") == "x", nrows=3)
    assert found.to_dict("list") == {"s": ["x"] * 3}


def test_chunk_of_an_unknown_codec_is_lost_in_its_file_only(tmp_path):
    for number in range(2):
        data = numparq.to_parquet(pd.DataFrame({"a": range(10), "s": ["x"] * 10}))
        if number:
            data = edit_footer(data, lambda footer: set_codec(footer, 0, 0))
        (tmp_path / f"{number}.parquet").write_bytes(data)
    found = numparq.read_parquet(tmp_path, on_error="skip")
    assert found["a"].tolist() == list(range(10))
    assert [(item.file[-9:], *item[1:4]) for item in found.attrs["numparq.lost"]] == [("1.parquet", 0, "a", (0, 10))]


@pytest.mark.parametrize("options", ["all", "range", "row groups", "filter", "filter of elements", "exploded"])
@pytest.mark.parametrize("leaf", ["small", "text", "kind", "list.list.element"])
def test_batches_lose_rows_and_no_columns(tmp_path, whole, parts, leaf, options):
    (tmp_path / "one.parquet").write_bytes(damage(whole, 1, leaf, 2))
    (tmp_path / "many").mkdir()
    for number, data in enumerate(parts):
        (tmp_path / "many" / f"{number}.parquet").write_bytes(damage(data, 0, leaf, 2) if number == 1 else data)
    chosen = {"dtype_backend": "numpy_nullable", **OPTIONS[options]}
    expected, lost = read_skipping_damage(tmp_path / "one.parquet", **chosen)
    for path in ("one.parquet", "many"):
        with numparq.ParquetFile(tmp_path / path) if path != "many" else numparq.Dataset(tmp_path / path) as opened:
            batches = opened.iter_batches(**chosen, on_error="skip", batch_rows=70)
            frame = pd.concat(list(batches))
            pd.testing.assert_frame_equal(frame.reset_index(drop=True), expected.reset_index(drop=True))
            assert {item.column for item in batches.lost} == {item.column for item in lost}
            if "explode" not in chosen:
                arrow = opened.iter_batches(**chosen, on_error="skip", batch_rows=70).reader().read_all()
                assert len(arrow) == len(expected)
            if lost:
                with pytest.raises(numparq.ParquetError):
                    list(opened.iter_batches(**chosen))


def test_batches_without_an_intact_row_keep_their_columns(tmp_path):
    data = numparq.to_parquet(pd.DataFrame({"a": range(10), "s": ["x"] * 10}))
    (tmp_path / "0.parquet").write_bytes(edit_footer(data, lambda footer: set_codec(footer, 0, 0)))
    for opened in (numparq.ParquetFile(tmp_path / "0.parquet"), numparq.Dataset(tmp_path)):
        with opened:
            batches = opened.iter_batches(on_error="skip")
            (frame,) = batches
            assert list(frame) == ["a", "s"]
            assert len(frame) == 0
            assert [item[1:4] for item in batches.lost] == [(0, "a", (0, 10))]


def test_column_that_cannot_be_built_loses_the_rows_of_its_unit(tmp_path, monkeypatch):
    """An error that names no row group is one of all row groups of the unit."""
    from numparq.errors import InvalidFileError
    from numparq.scan.scan import Scan

    to_frame = Scan.to_frame

    def failing(self, rows):
        if rows.num_rows:
            raise InvalidFileError("cannot be built", column="a")
        return to_frame(self, rows)

    monkeypatch.setattr(Scan, "to_frame", failing)
    data = numparq.to_parquet(pd.DataFrame({"a": range(30), "b": 0}), row_group_size=10)
    with numparq.ParquetFile(data) as file:
        batches = file.iter_batches(on_error="skip")
        assert [frame.shape for frame in batches] == [(0, 2)]
        assert [(*item[1:4], item.reason) for item in batches.lost] == [
            (group, "a", (10 * group, 10 * group + 10), "cannot be built") for group in range(3)
        ]
    monkeypatch.setattr(Scan, "to_frame", lambda *_: fail())
    with numparq.ParquetFile(data) as file, pytest.raises(InvalidFileError, match="cannot be read"):
        next(file.iter_batches(on_error="skip"))


def fail():
    raise numparq.InvalidFileError("cannot be read", column="a")
