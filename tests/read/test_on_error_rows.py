"""``on_error="skip"``: the remaining rows, their labels, and errors that are always raised."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import InvalidFileError, col
from numparq.errors import LimitError
from numparq.scan.recovery.losses import Losses, Lost, LostRows
from support.damaged_reads import CRC, assert_only_lost, read_skipping_damage, table, written_file
from support.files.page_damage import damage_body, damage_header, data_pages, flip_bytes, footer_start, pages_of

INDEXES = {
    "default": pd.RangeIndex(1000),
    "range": pd.RangeIndex(5, 5 + 3 * 1000, 3, name="r"),
    "labels": pd.Index([f"l{n}" for n in range(1000)], name="l"),
    "levels": pd.MultiIndex.from_arrays([np.arange(1000) // 10, np.arange(1000) % 10], names=["a", None]),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_rows_keep_their_labels(kind: str) -> None:
    frame = pd.DataFrame({"v": np.arange(1000), "w": np.arange(1000.0)}, index=INDEXES[kind])
    data = numparq.to_parquet(frame, max_rows_per_page=100)
    damaged = damage_body(data, data_pages(data, 0, "w")[4])
    assert_only_lost(damaged, data, [(0, "w", (400, 500))])
    assert_only_lost(damaged, data, [(0, "w", (450, 500))], row_range=(450, 900))


def test_row_numbers_count_lost_rows() -> None:
    out = io.BytesIO()
    pq.write_table(
        pa.table({"a": pa.array(range(1000), pa.int64())}),
        out,
        data_page_size=800,
        write_batch_size=100,
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = out.getvalue()
    pages = data_pages(data, 0, "a")
    damaged = damage_body(data, pages[2])
    first, stop = pages[2].first_value, pages[3].first_value
    got, lost = read_skipping_damage(damaged, include=["row_number", "row_group", "file"])
    assert lost == [Lost("<bytes>", 0, "a", (first, stop), CRC)]
    assert got["row_number"].tolist() == got.index.tolist() == got["a"].tolist()
    assert len(got) == 1000 - (stop - first)


def test_lost_index_column_is_dropped() -> None:
    frame = pd.DataFrame({"v": np.arange(1000)}, index=pd.Index(np.arange(1000.0), name="i"))
    data = numparq.to_parquet(frame, write_page_index=False)
    got, lost = read_skipping_damage(damage_header(data, pages_of(data, 0, "i")[0]))
    assert [item.column for item in lost] == ["i"]
    pd.testing.assert_frame_equal(got, frame.reset_index(drop=True))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_pyarrow_files_lose_only_the_damaged_page(version: str, index: bool, codec: str) -> None:
    frame = table(2000)
    arrow = pa.Table.from_pandas(frame.drop(columns="map"))
    out = io.BytesIO()
    pq.write_table(
        arrow,
        out,
        row_group_size=1000,
        data_page_size=500,
        write_batch_size=50,
        compression=codec,
        data_page_version=version,
        write_page_checksum=True,
        write_page_index=index,
    )
    data = out.getvalue()
    expected = numparq.read_parquet(data)
    for leaf in ("int", "text", "few", "list.list.element", "struct.y"):
        pages = data_pages(data, 1, leaf)
        damaged = damage_body(data, pages[len(pages) // 2])
        got, lost = read_skipping_damage(damaged)
        assert {item[1:3] for item in lost} == {(1, leaf)}
        assert [item.reason for item in lost] == [CRC]
        ((first, stop),) = (item.rows for item in lost)
        assert 1000 <= first < stop <= 2000
        if "list" not in leaf:
            page = pages[len(pages) // 2]
            assert (first, stop) == (1000 + page.first_value, 1000 + page.first_value + page.num_values)
        elif index or version == "2.0":
            assert stop - first < 300
        pd.testing.assert_frame_equal(got, expected.drop(index=range(first, stop)))


def test_rows_that_span_pages() -> None:
    """Without an offset index, version 1 pages may end within a row: the row before a damaged page is lost, too."""
    lists = [list(range(n % 97)) for n in range(400)]
    out = io.BytesIO()
    pq.write_table(
        pa.table({"l": lists, "n": list(range(400))}),
        out,
        data_page_size=300,
        write_batch_size=64,
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = out.getvalue()
    pages = data_pages(data, 0, "l.list.element")
    starts = np.cumsum([0, *(max(len(item), 1) for item in lists)])
    for page in pages[1::7]:
        got, lost = read_skipping_damage(damage_body(data, page))
        whole = int(np.searchsorted(starts, page.first_value, side="right")) - 1  # rows that end before the page
        assert whole - 1 <= lost[0].rows[0] <= whole
        assert lost[0].rows[1] == 400
        assert got["n"].tolist() == list(range(lost[0].rows[0]))
        assert [list(item) for item in got["l"]] == lists[: lost[0].rows[0]]


def test_explode_loses_only_damaged_rows() -> None:
    data = written_file()
    for leaf in ("list.list.element", "int"):
        damaged = damage_body(data, data_pages(data, 1, leaf)[2])
        frame, lost = read_skipping_damage(damaged, columns=["int"], explode="list.list.element")
        assert [item[1:4] for item in lost] == [(1, leaf, (600, 700))]
        expected = numparq.read_parquet(data, columns=["int"], explode="list.list.element")
        lost_rows = expected["int"].isin([number * 1_000_003 for number in range(600, 700)])
        pd.testing.assert_frame_equal(frame, expected[~lost_rows].reset_index(drop=True))
    everything = data
    for row_group in range(3):
        everything = damage_header(everything, pages_of(everything, row_group, "list.list.element")[0])
    frame, lost = read_skipping_damage(everything, columns=["int"], explode="list.list.element")
    assert len(frame) < 1200
    assert len(lost) == 3


SMALL = {
    "numbers": lambda n: {
        "a": n * 1_000_003,
        "f": np.sin(n),
        "g": pd.Series(n * 1.0).where(n % 3 != 0),
        "b": n % 2 == 0,
    },
    "texts": lambda n: {
        "t": [f"text {i * 7919 % 1000}" for i in n],
        "few": [f"w{i % 7}" for i in n],
        "gaps": pd.Series([f"w{i % 50}" for i in n]).where(n % 4 != 0),
    },
    "nested": lambda n: {
        "l": [None if i % 7 == 0 else list(range(i, i + i % 4)) for i in n],
        "s": [None if i % 11 == 0 else {"x": int(i), "y": f"y{i % 5}"} for i in n],
    },
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", SMALL)
def test_flipped_byte_never_returns_a_wrong_value(kind: str, index: bool, version: str) -> None:
    """Footer bytes are spared: the format has no checksum for them."""
    data = numparq.to_parquet(
        pd.DataFrame(SMALL[kind](np.arange(120))),
        max_rows_per_page=40,
        row_group_size=60,
        data_page_version=version,
        write_page_index=index,
        compression="snappy" if index else None,
    )
    expected = numparq.read_parquet(data)
    rng = np.random.default_rng([len(kind), index, int(version[0])])
    noticed = 0
    for _ in range(40):
        position, by = int(rng.integers(4, footer_start(data))), int(rng.integers(1, 256))
        frame, lost = read_skipping_damage(flip_bytes(data, position, by=by), threads=1)
        noticed += bool(lost)
        if len(frame):
            where = f"byte {position} by {by}"
            pd.testing.assert_frame_equal(frame, expected.loc[frame.index, frame.columns], obj=where)
        whole = np.ones(len(expected), bool)
        for item in lost:
            if item.column.split(".")[0] in frame.columns:
                whole[slice(*item.rows)] = False
        assert frame.index.tolist() == np.flatnonzero(whole).tolist()
    assert noticed > 10


@pytest.mark.parametrize("kind", SMALL)
def test_damage_without_checksums_never_raises(kind: str) -> None:
    data = numparq.to_parquet(
        pd.DataFrame(SMALL[kind](np.arange(120))),
        max_rows_per_page=40,
        row_group_size=60,
        write_page_checksum=False,
        compression=None,
    )
    rng = np.random.default_rng(len(kind))
    for _ in range(80):
        positions = rng.integers(4, footer_start(data), 3).tolist()
        frame, lost = read_skipping_damage(flip_bytes(data, *positions, by=int(rng.integers(1, 256))), threads=1)
        assert len(frame) <= 120
        assert all(item.reason for item in lost)


def test_io_errors_are_raised(monkeypatch) -> None:
    monkeypatch.setattr("numparq.format.footer.tail.TAIL_BYTES", 100)  # the end of a file is cached in memory

    class Broken(io.BytesIO):
        broken = False

        def readinto(self, out) -> int:
            if self.broken:
                raise OSError("the disk is gone")
            return super().readinto(out)

    frame = pd.DataFrame({"a": np.arange(50_000)})  # larger than the cached end of the file
    file = numparq.ParquetFile(source := Broken(written_file(frame=frame, compression=None, use_dictionary=False)))
    source.broken = True
    with pytest.raises(OSError, match="the disk is gone"):
        file.read(on_error="skip")


def test_limit_errors_are_raised(monkeypatch) -> None:
    from numparq.column.read import decode, dictionary

    def refuse(*arguments):
        raise LimitError("no memory")

    monkeypatch.setattr(decode, "allocate", refuse)
    monkeypatch.setattr(dictionary, "allocate", refuse)
    with pytest.raises(LimitError):
        numparq.read_parquet(written_file(), columns=["text"], on_error="skip")


def test_unknown_columns_are_raised() -> None:
    with pytest.raises(numparq.errors.SchemaError):
        numparq.read_parquet(written_file(), columns=["nothing"], on_error="skip")


def test_conformance_suite_bad_data(parquet_testing) -> None:
    results = {}
    for path in sorted((parquet_testing / "bad_data").glob("*.parquet")):
        frame = numparq.read_parquet(path, on_error="skip")
        assert {item.file for item in frame.attrs["numparq.lost"]} <= {str(path)}
        results[path.stem] = frame.shape, [item[1:4] for item in frame.attrs["numparq.lost"]]
    assert results == {
        "ARROW-GH-41321": (
            (3, 78),
            [
                (0, "int64", (0, 3)),
                (0, "large_binary", (0, 3)),
                (1, "fixed_size_list_float64.list.item", (3, 5)),
                (1, "map_float32.key_value.value", (3, 5)),
            ],
        ),
        "ARROW-GH-43605": ((21186, 1), []),  # the writer wrote a bit width of 0 for a dictionary with one entry
        "ARROW-GH-47662": ((1000, 0), [(0, "flba_field", (0, 1000))]),
        "ARROW-RS-GH-6229-DICTHEADER": (
            (25, 0),
            [(0, name, (0, 25)) for name in ("nation_key", "name", "region_key", "comment_col")],
        ),
        "PARQUET-1481": ((34, 0), [(None, "Handle", None)]),
    }


def test_adjacent_losses_are_merged() -> None:
    bad, worse = InvalidFileError("bad"), InvalidFileError("worse")
    losses = Losses("f", [0, 100])
    losses.add(1, 0, [LostRows(30, 40, bad), LostRows(0, 10, bad), LostRows(10, 20, bad), LostRows(20, 30, worse)])
    losses.add(0, 1, [LostRows(5, 5, bad)])
    losses.add(1, 0, [LostRows(30, 40, bad)])
    assert losses.to_list(["a", "b"]) == [
        Lost("f", 1, "a", (100, 120), "bad"),
        Lost("f", 1, "a", (120, 130), "worse"),
        Lost("f", 1, "a", (130, 140), "bad"),
    ]
    losses.forget(1, 0)
    assert not losses


@pytest.mark.parametrize("group_rows", [100, 6000, 20_000])
def test_filter_over_several_batches_of_row_groups(group_rows):
    """Row groups are filtered 16,384 rows at a time, here with some in between that have no match."""
    numbers = np.arange(50_000)
    frame = pd.DataFrame({"key": np.where(numbers // 6000 % 3 == 1, -1, numbers % 7), "value": numbers})
    data = numparq.to_parquet(frame, row_group_size=group_rows)
    filters = (col("key") == 3) & (col("value") > 50)
    expected = numparq.read_parquet(data, filters=filters)
    assert expected["value"].tolist() == frame.query("key == 3 and value > 50")["value"].tolist()
    found = numparq.read_parquet(data, filters=filters, on_error="skip")
    pd.testing.assert_frame_equal(found, expected)
    assert found.attrs["numparq.lost"] == []
