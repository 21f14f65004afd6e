"""Fused reads of runs of rows: the same rows, errors and requests as step by step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.column.read import fused_read
from numparq.column.read.decompress import BATCH_BYTES
from numparq.column.read.fused_read import MAX_FUSED_PAGES, FusedRead
from numparq.column.read.page_selection import MIN_STRING_BYTES
from support.data.small_pages import GROUP, PAGE, ROWS, small_pages_frame

pytestmark = pytest.mark.usefixtures("without_point_lookup")


class FusedReadCounter:
    """Counts the runs decoded by one kernel call, and those left to the separate steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.left = 0
        for name in ("read_fixed", "read_strings"):
            monkeypatch.setattr(FusedRead, name, self._counted(getattr(FusedRead, name)))

    def _counted(self, made: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            found = made(*arguments)
            self.done += found is not None
            self.left += found is None
            return found

        return counted


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize("compression", ["snappy", None, "zstd"])
@pytest.mark.parametrize(
    ("version", "dictionary", "split"), [("1.0", True, False), ("2.0", False, True), ("1.0", False, False)]
)
def test_rows_equal_a_full_read(monkeypatch, with_nulls, compression, version, dictionary, split) -> None:
    data = numparq.to_parquet(
        small_pages_frame(with_nulls),
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        use_byte_stream_split=split,
        row_group_size=GROUP,
        max_rows_per_page=PAGE,
    )
    full, rng, counted = numparq.read_parquet(data), np.random.default_rng(7), FusedReadCounter(monkeypatch)
    for count in (1, 2, 5, 100, 149, 151, 700):
        start = int(rng.integers(0, ROWS - count))
        found = numparq.read_parquet(data, row_range=(start, start + count))
        expected = full.iloc[start : start + count].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
        key = 3 * start
        found = numparq.read_parquet(data, filters=col("key") == key)
        pd.testing.assert_frame_equal(found, full.iloc[start : start + 1].reset_index(drop=True), check_dtype=False)
    assert counted.done if compression != "zstd" else not counted.done + counted.left


@pytest.mark.parametrize("encoding", ["PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"])
def test_fused_read_of_two_row_groups(monkeypatch, encoding) -> None:
    """Rows of the second one do not begin at the output's first row."""
    frame = small_pages_frame(True)[["key", "time", "nullable", "text"]]
    encodings = {**dict.fromkeys(frame.columns, encoding), "text": "PLAIN"}
    data = numparq.to_parquet(frame, row_group_size=GROUP, max_rows_per_page=PAGE, column_encoding=encodings)
    full, counted = numparq.read_parquet(data, dtype_backend="numpy_nullable"), FusedReadCounter(monkeypatch)
    found = numparq.read_parquet(data, row_range=(GROUP - 4, GROUP + 9), dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(found, full.iloc[GROUP - 4 : GROUP + 9].reset_index(drop=True))
    assert (counted.done, counted.left) == (2 * len(frame.columns), 0)
    assert found["time"].isna().any()
    assert found["nullable"].isna().any()


def test_several_row_runs_of_one_page() -> None:
    frame = pd.DataFrame({"n": np.arange(ROWS), "s": [f"{number}" for number in range(ROWS)]})
    data = numparq.to_parquet(frame, max_rows_per_page=PAGE, use_dictionary=False)
    found = numparq.read_parquet(data, filters=col("n").isin([10, 140, 160]))
    pd.testing.assert_frame_equal(found, frame.iloc[[10, 140, 160]].reset_index(drop=True))


def test_delta_pages_larger_than_the_room(monkeypatch) -> None:
    """A few bytes each page; transcoded to PLAIN, the pages exceed the room."""
    frame, counted = pd.DataFrame({"n": np.arange(3 * BATCH_BYTES // 8)}), FusedReadCounter(monkeypatch)
    data = numparq.to_parquet(frame, max_rows_per_page=len(frame) // 4, column_encoding={"n": "DELTA_BINARY_PACKED"})
    for start, stop, has_room in ((1, len(frame) // 4, True), (1, len(frame) - 1, False)):
        found = numparq.read_parquet(data, row_range=(start, stop), threads=1)
        pd.testing.assert_frame_equal(found, frame.iloc[start:stop].reset_index(drop=True))
        assert (counted.done, counted.left) == ((1, 0) if has_room else (0, 1))
        counted.done = counted.left = 0


def test_no_fused_read_beyond_the_page_limit(monkeypatch) -> None:
    frame = pd.DataFrame({"n": np.arange(200), "s": [f"{number}" for number in range(200)]})
    data = numparq.to_parquet(frame, max_rows_per_page=10, use_dictionary=False)
    counted = FusedReadCounter(monkeypatch)
    for pages, done in ((MAX_FUSED_PAGES, 1), (MAX_FUSED_PAGES + 1, 0)):
        found = numparq.read_parquet(data, row_range=(5, 10 * pages - 5))
        pd.testing.assert_frame_equal(found, frame.iloc[5 : 10 * pages - 5].reset_index(drop=True))
        assert counted.done == done
        counted.done = 0


@pytest.mark.parametrize("writer", ["parquet-cpp", "impala"])
def test_no_fused_read_for_writers_with_quirks(monkeypatch, writer) -> None:
    """Compressed pages marked as uncompressed (parquet-cpp), and levels in the other bit order (Impala)."""
    frame = small_pages_frame(True)[["key", "small", "text"]].iloc[:300]
    data = numparq.to_parquet(frame, max_rows_per_page=PAGE, use_dictionary=False) or b""
    with numparq.ParquetFile(data) as file:
        created_by = file.metadata.created_by.encode()
    counted = FusedReadCounter(monkeypatch)
    found = numparq.read_parquet(data.replace(created_by, writer.encode().ljust(len(created_by))), row_range=(160, 163))
    pd.testing.assert_frame_equal(found, numparq.read_parquet(data).iloc[160:163].reset_index(drop=True))
    assert not counted.done + counted.left


def test_long_strings(monkeypatch) -> None:
    """Pages larger than the initial room, and strings larger than the room made for them."""
    frame, counted = pd.DataFrame({"s": [f"{row:05}" * 800 for row in range(160)]}), FusedReadCounter(monkeypatch)
    data = numparq.to_parquet(frame, max_rows_per_page=160, data_page_size=1 << 20, use_dictionary=False)
    for count, done in ((3, 1), (MIN_STRING_BYTES // 4000 + 1, 0)):
        found = numparq.read_parquet(data, row_range=(7, 7 + count), threads=1)
        pd.testing.assert_frame_equal(found, frame.iloc[7 : 7 + count].reset_index(drop=True))
        assert (counted.done, counted.left) == (done, 1 - done)
        counted.done = counted.left = 0


def test_invalid_utf8_is_located() -> None:
    frame = pd.DataFrame({"s": [f"item {row:04}" for row in range(300)]})
    data = numparq.to_parquet(frame, max_rows_per_page=100, use_dictionary=False, compression=None) or b""
    bad = data.replace(b"item 0150", b"item \xff150")
    with pytest.raises(numparq.ParquetError) as caught:
        numparq.read_parquet(bad, row_range=(149, 152), verify_crc=False)
    assert (caught.value.where["column"], caught.value.where["page"]) == ("s", 1)
    found = numparq.read_parquet(bad, row_range=(151, 154), verify_crc=False)
    pd.testing.assert_frame_equal(found, frame.iloc[151:154].reset_index(drop=True))


@pytest.mark.parametrize("dictionary", [False, True])
def test_fallback_to_steps_fetches_no_byte_twice(monkeypatch, dictionary) -> None:
    frame = small_pages_frame(True)[["key", "text", "city", "number", "small"]]
    data = numparq.to_parquet(
        frame,
        row_group_size=GROUP,
        max_rows_per_page=PAGE,
        use_dictionary=dictionary,
        column_encoding=None if dictionary else {"text": "DELTA_BYTE_ARRAY"},
    )

    def read() -> tuple[pd.DataFrame, int, int]:
        with numparq.ParquetFile(data) as file:
            found = file.read(filters=col("key") == 999)
            return found, file.source.num_bytes, file.source.num_requests

    counted = FusedReadCounter(monkeypatch)
    frame, *fused = read()
    assert counted.left
    monkeypatch.setattr(FusedRead, "prepare", lambda *arguments: None)
    again, *in_steps = read()
    pd.testing.assert_frame_equal(frame, again)
    assert fused == in_steps


@pytest.mark.parametrize("filters", [col("key") == 999, col("key").between(2700, 2760)])
def test_fetched_bytes_equal_the_plan(tmp_path, filters) -> None:
    """Dictionaries, pages far after them, and nothing in between."""
    path, names = tmp_path / "a.parquet", ["key", "few", "city", "text"]
    frame = small_pages_frame(True)[names]
    frame["pad"] = [f"{number:0100}" for number in np.random.default_rng(3).integers(0, 1 << 62, ROWS)]
    numparq.to_parquet(frame, path, row_group_size=GROUP, max_rows_per_page=PAGE, compression=None)
    with numparq.ParquetFile(path) as file:
        plan, before = file.plan(names, filters=filters), file.source.num_bytes
        found = file.read(names, filters=filters)
        assert file.source.num_bytes - before == plan.num_bytes
    key = found["key"].iloc[0] // 3
    full = numparq.read_parquet(path, names)
    pd.testing.assert_frame_equal(found, full.iloc[key : key + len(found)].reset_index(drop=True), check_dtype=False)


def test_damage_raises_the_same_error_as_the_steps(monkeypatch) -> None:
    """Each byte of a row's pages in turn: the same error at the same location, or the same values."""
    frame = small_pages_frame(True)[["key", "float", "text"]].iloc[:300]
    data = numparq.to_parquet(frame, max_rows_per_page=100, use_dictionary=False) or b""
    with numparq.ParquetFile(data) as file:
        pages = [
            chunk.byte_ranges(np.array([1])) for chunk in file.plan(filters=col("key") == 450).row_groups[0].chunks
        ]
    places = np.concatenate([np.arange(start, stop) for ranges in pages for start, stop in ranges.tolist()])
    prepare = FusedRead.prepare

    def outcome(damaged: bytes, verify: bool, steps: bool) -> Any:
        monkeypatch.setattr(fused_read.FusedRead, "prepare", (lambda *arguments: None) if steps else prepare)
        try:
            return numparq.read_parquet(damaged, filters=col("key") == 450, verify_crc=verify).to_dict()
        except numparq.ParquetError as error:
            return type(error), str(error)

    for place, verify in itertools.product(places[::13].tolist(), (True, False)):
        bad = bytearray(data)
        bad[place] ^= 1 << place % 8
        ours, theirs = (outcome(bytes(bad), verify, steps) for steps in (False, True))
        # The steps decode more than the selected rows; a fused read may miss damage in the others.
        assert repr(ours) == repr(theirs) or (not verify and isinstance(ours, dict))
