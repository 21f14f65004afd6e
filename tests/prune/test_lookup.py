"""Look-ups by column index alone: rows, bytes and errors must match those of the full read plan."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.io import local_source
from numparq.plan.row_ranges import RowRanges
from numparq.prune import lookup
from numparq.prune.planner import ReadPlanner
from support.files.forged_metadata import LIES, forge
from support.io.recorded_reads import count_io

ROWS, GROUP, PAGE = 6000, 1500, 100
pytestmark = pytest.mark.usefixtures("without_point_lookup")


class LookupCounter:
    """Counts the row groups that look-ups plan, and the look-ups that fall back to the read plan."""

    def __init__(self, monkeypatch) -> None:
        self.planned: list[int] = []
        self.left = 0
        plan = ReadPlanner.plan_lookup

        def counted(this, row_groups, bound):
            found = plan(this, row_groups, bound)
            if found is None:
                self.left += 1
            else:
                self.planned.append(len(found))
            return found

        monkeypatch.setattr(ReadPlanner, "plan_lookup", counted)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "key": np.arange(ROWS) * 3,
            "near": np.arange(ROWS) // 7,
            "back": np.arange(ROWS)[::-1].copy(),
            "float": np.where(rng.random(ROWS) < 0.1, np.nan, np.arange(ROWS) / 8),
            "text": np.array([f"name {number:05}" for number in range(ROWS)]),
            "some": pd.array(np.where(rng.random(ROWS) < 0.3, None, np.arange(ROWS)), "Int64"),
            "when": pd.date_range(datetime(2020, 1, 1, tzinfo=UTC), periods=ROWS, freq="min"),
            "any": rng.integers(0, 50, ROWS),
            "tens": np.arange(ROWS) // 660 * 10,
            "list": [None if row % 11 == 0 else [row, row // 9] for row in range(ROWS)],
        }
    )


def stored(**options) -> bytes:
    arguments = {"use_dictionary": False, "row_group_size": GROUP, "max_rows_per_page": PAGE} | options
    return numparq.to_parquet(table(), **arguments) or b""


DICTIONARIES = dict.fromkeys(["any", "near", "tens"], "RLE_DICTIONARY")
FILTERS = [
    col("key") == 3 * 3210,
    col("key") == 3 * 3210 + 1,
    (col("key") >= 3 * 1490) & (col("key") < 3 * 1505),
    (col("key") > 3 * 100) & (col("back") > ROWS - 110) & (col("any") < 25),
    (col("key") == 30) | (col("key") == 900),
    col("near").isin([3, 130]),
    (col("near") == 230) & (col("any") == 7),
    col("near").between(100, 120) & (col("text") >= "name 00750"),
    col("text") == "name 04321",
    col("text").startswith("name 0007"),
    col("float") == 333.0,
    ~(col("float") < 740.0),
    (col("float") != 3.0) & (col("key") < 60),
    (col("some") >= 4000) & (col("some") < 4100),
    col("some").is_null() & (col("key") < 1200),
    col("when") == datetime(2020, 1, 2, 3, 4, tzinfo=UTC),
    (col("key") < 90) & (col("near") > 9000),
    (col("key") < 60) & col("list").contains(3),
    col("list").is_null() & (col("key") >= 3 * 5900),
    col("tens") == 15,  # the dictionary lacks it
    (col("key") == 30) | (col("near") == 700),
    (col("key") < 3 * 1500) & (col("key") >= 3 * 1490),
]


def both(data, monkeypatch, columns, filters, **how):
    """Read with look-ups and without; return frame or error, bytes and requests of each."""

    def read():
        return count_io(data, lambda file: file.read(columns, filters=filters, **how))

    ours = read()
    with monkeypatch.context() as patch:
        patch.setattr(ReadPlanner, "plan_lookup", lambda *arguments: None)
        return ours, read()


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("damage", LIES)
def test_false_indexes_act_as_in_the_plan(monkeypatch, damage) -> None:
    """Indexes with false contents, with another number of pages, of other columns, or missing."""
    for rows in (100, 101, 102):  # other pages, so other false indexes
        data = forge(stored(row_group_size=ROWS // 2, max_rows_per_page=rows), (damage,))
        for filters in (FILTERS[0], FILTERS[2], FILTERS[3], col("near") == 230):
            ours, planned = both(data, monkeypatch, ["key", "near", "any"], filters)
            same(ours[:1], planned[:1])
            assert ours[1] <= planned[1]  # the plan reads no offset index where a column index prunes nothing


def same(ours, planned) -> None:
    if isinstance(planned[0], str):
        assert ours[0] == planned[0]
    else:
        pd.testing.assert_frame_equal(ours[0], planned[0])
    assert ours[1:] == planned[1:]


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("number", range(len(FILTERS)))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": None, "data_page_version": "2.0"},
        {"compression": "zstd", "column_encoding": DICTIONARIES},
        {"write_page_index": False},
        {"bloom_filter_options": {"key": True, "text": True}},
    ],
    ids=["snappy", "v2", "dictionary", "no index", "bloom"],
)
def test_rows_and_bytes_match_the_plan(monkeypatch, number, options) -> None:
    data, filters, frame = stored(**options), FILTERS[number], table()
    for columns in (None, ["text", "key", "some"], ["any"], ["list", "near"]):
        ours, planned = both(data, monkeypatch, columns, filters)
        same(ours, planned)
    expected = numparq.read_parquet(numparq.to_parquet(frame, row_group_size=ROWS), filters=filters)
    pd.testing.assert_frame_equal(numparq.read_parquet(data, filters=filters), expected, check_dtype=False)


def test_filters_that_use_look_ups(monkeypatch) -> None:
    data, counter = stored(), LookupCounter(monkeypatch)
    for filters in FILTERS:
        numparq.read_parquet(data, ["key", "text"], filters=filters)
    assert len(counter.planned) >= 12
    assert max(counter.planned) == 2
    counter.planned.clear()
    numparq.read_parquet(data, filters=col("key") == 30, nrows=1)
    numparq.read_parquet(data, filters=col("key") == 30, row_range=(0, 1000))
    numparq.read_parquet(data, filters=col("key") >= 0)
    numparq.read_parquet(data, filters=col("any") == 7)  # in all row groups
    waiting = numparq.RuntimeFilter("key")
    numparq.read_parquet(data, filters=col("key") == 30, runtime_filters=waiting)
    assert not counter.planned


@pytest.mark.parametrize(("bound", "number"), [("MAX_CHUNKS", 9), ("MAX_ROWS", PAGE - 1)])
def test_limits_of_look_ups(monkeypatch, bound, number) -> None:
    data, counter, filters = stored(), LookupCounter(monkeypatch), col("key") == 30
    numparq.read_parquet(data, filters=filters)
    assert counter.planned == [1]
    monkeypatch.setattr(lookup, bound, number + 1)
    numparq.read_parquet(data, filters=filters)
    assert (counter.planned, counter.left) == ([1, 1], 0)
    monkeypatch.setattr(lookup, bound, number)
    found = numparq.read_parquet(data, filters=filters)
    assert (counter.planned, counter.left) == ([1, 1], 1)
    assert found["key"].tolist() == [30]


def test_selected_row_groups_in_any_order(monkeypatch) -> None:
    data, counter = stored(), LookupCounter(monkeypatch)
    found = numparq.read_parquet(data, filters=col("key") == 30, row_groups=[0, 1])
    assert found["key"].tolist() == [30]
    ours, planned = both(data, monkeypatch, ["key"], col("near") == GROUP // 7, row_groups=[1, 0])
    same(ours, planned)
    assert len(ours[0]) == 7
    assert ours[0]["key"].is_monotonic_increasing is False
    assert counter.planned == [1, 2]


def test_damage_raises_as_in_the_plan(monkeypatch) -> None:
    """Damages each byte of a page and of the indexes in turn."""
    data = bytearray(stored(compression=None, row_group_size=ROWS)[:])
    columns, filters = ["key", "float"], col("key") == 3 * 2050
    with numparq.ParquetFile(bytes(data)) as file:
        chunk = file.plan(columns, filters=filters)[0].chunks[0]
        page = int(chunk.offsets[chunk.pages_with_rows(RowRanges.from_range(2050, 2051))[0]])
        metadata = file.metadata.row_groups[0].columns[0]
        column_index, offset_index = metadata.column_index_offset, metadata.offset_index_offset
    errors = 0
    for start, length in ((page, 60), (column_index, 40), (offset_index, 40)):
        for place in range(start, start + length):
            damaged = bytes(data[:place]) + bytes([data[place] ^ 0x55]) + bytes(data[place + 1 :])
            ours, planned = both(damaged, monkeypatch, columns, filters)
            same(ours, planned)
            errors += isinstance(ours[0], str)
    assert errors > 20


def test_equal_footers_do_not_share_indexes() -> None:
    """Cached indexes are keyed by their bytes: files with equal footers may have other indexes."""
    whole = stored()
    with numparq.ParquetFile(whole) as file:
        place = file.metadata.row_groups[0].columns[0].column_index_offset
    other = whole[:place] + bytes(8) + whole[place + 8 :]

    def read(data: bytes) -> tuple[list[int], int]:
        with numparq.ParquetFile(data) as file:
            return file.read(["key"], filters=col("key") == 30)["key"].tolist(), file.source.num_bytes

    first, second, again = read(whole), read(other), read(whole)
    assert first == again
    assert first[0] == second[0] == [30]
    assert second[1] > first[1]


def test_open_file_reads_each_index_once(monkeypatch) -> None:
    """Indexes that an earlier read fetched are not fetched again, and the rows stay the same."""
    data, counter = stored(), LookupCounter(monkeypatch)
    with numparq.ParquetFile(data) as file:

        def read(columns, filters):
            before = file.source.num_bytes
            found = file.read(columns, filters=filters)
            pd.testing.assert_frame_equal(found, numparq.read_parquet(data, columns, filters=filters))
            return file.source.num_bytes - before

        key, back = col("key") == 30, (col("key") == 30) & (col("back") == ROWS - 11)
        first, again = read(["text"], key), read(["text"], key)
        more, both_known = read(["text"], back), read(["text"], back)
        assert first > again
        assert more > both_known
        assert more - both_known < 2 * (first - again)  # the indexes of another column, and not of all
        assert read(["text"], key) == again
    assert counter.left == 0
    assert set(counter.planned) == {1}


def test_look_up_planner_is_reused_for_the_same_file(monkeypatch, tmp_path) -> None:
    files = [stored(key_value_metadata={"number": str(number)}) for number in range(3)]
    created: list[int] = []
    original = lookup.LookupPlanner._pruner
    monkeypatch.setattr(lookup.LookupPlanner, "_pruner", lambda this, file: created.append(1) or original(this, file))
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    for number, data in enumerate(files):
        (tmp_path / str(number)).write_bytes(data)
    for number in [*range(len(files))] * 2:
        found = numparq.read_parquet(tmp_path / str(number), ["key"], filters=col("key") == 33)
        assert found["key"].tolist() == [33]
    assert len(created) == len(files)
