"""Inline reads of few rows: the same values, dtypes, errors, bytes and requests as with jobs."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.column.jobs import inline_read
from numparq.column.jobs.inline_read import InlineRead
from numparq.column.jobs.selection import SelectionJob
from numparq.column.read.page_selection import MIN_STRING_BYTES
from support.data.small_pages import GROUP, PAGE, ROWS, small_pages_frame
from support.io.recorded_reads import count_io

pytestmark = pytest.mark.usefixtures("without_point_lookup")


class InlineReadCounter:
    """Counts columns decoded inline, and those of them that took the steps of a job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.steps = 0
        decode, go_on = InlineRead.decode, SelectionJob.decode_fetched

        def decoded(this, columns):
            found = decode(this, columns)
            self.done += len(found)
            return found

        def went_on(this, rows):
            self.steps += 1
            go_on(this, rows)

        monkeypatch.setattr(InlineRead, "decode", decoded)
        monkeypatch.setattr(SelectionJob, "decode_fetched", went_on)


def read_both_ways(monkeypatch, data, columns=None, **how):
    """Read inline and with jobs: the frame or error, the bytes and the requests of each."""

    def read():
        return count_io(data, lambda file: file.read(columns, **how))

    ours = read()
    with monkeypatch.context() as patch:
        patch.setattr(InlineRead, "decode", lambda *arguments: {})
        return ours, read()


def check_same(ours, theirs) -> None:
    if isinstance(ours[0], str):
        assert ours == theirs
        return
    pd.testing.assert_frame_equal(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_inline_equals_jobs(monkeypatch, with_nulls, dictionary, compression) -> None:
    data = numparq.to_parquet(
        small_pages_frame(with_nulls),
        compression=compression,
        use_dictionary=dictionary,
        row_group_size=GROUP,
        max_rows_per_page=PAGE,
    )
    rng, counter = np.random.default_rng(5), InlineReadCounter(monkeypatch)
    for backend in ("numpy", "numpy_nullable", "pyarrow"):
        for count in (1, 3, PAGE - 1, PAGE + 1, 800):
            start = int(rng.integers(0, ROWS - count))
            keys = (col("key") >= 3 * start) & (col("key") < 3 * (start + count))
            for how in ({"row_range": (start, start + count)}, {"filters": keys}, {"filters": keys, "nrows": 2}):
                check_same(*read_both_ways(monkeypatch, data, dtype_backend=backend, **how))
    if compression == "zstd":
        assert counter.done <= 30
        assert not counter.steps
    else:
        assert counter.done > 100


def test_inline_row_limits(monkeypatch) -> None:
    frame = small_pages_frame(False)[["key", "number", "text"]]
    data = numparq.to_parquet(frame, row_group_size=GROUP, max_rows_per_page=PAGE, use_dictionary=False)
    counter = InlineReadCounter(monkeypatch)
    numparq.read_parquet(data, row_range=(10, 20))
    assert (counter.done, counter.steps) == (3, 0)
    counter.done = 0
    numparq.read_parquet(data, row_range=(10, 30))
    assert counter.done == 2  # too many rows for strings
    for how in ({"row_range": (GROUP - 2, GROUP + 2)}, {"row_groups": [1]}, {"filters": col("key").isin([3, 90])}):
        counter.done = 0
        numparq.read_parquet(data, ["number", "text"], **how)
        assert counter.done == ("filters" in how)  # the filter column, of a page
    counter.done = 0
    monkeypatch.setattr(inline_read, "MAX_INLINE_ROWS", 10)
    numparq.read_parquet(data, row_range=(10, 20))
    assert counter.done == 3
    numparq.read_parquet(data, row_range=(10, 21))
    assert counter.done == 3
    monkeypatch.setattr(inline_read, "MAX_INLINE_BYTES", 100)
    numparq.read_parquet(data, row_range=(10, 20))
    assert counter.done == 3


def test_pages_without_fused_read_are_fetched_once(monkeypatch) -> None:
    frame = pd.DataFrame({"s": [f"{row:05}" * (MIN_STRING_BYTES // 5 + 1) for row in range(30)], "n": np.arange(30)})
    data = numparq.to_parquet(frame, max_rows_per_page=10, use_dictionary=False)
    counter = InlineReadCounter(monkeypatch)
    check_same(*read_both_ways(monkeypatch, data, row_range=(3, 4)))
    assert (counter.done, counter.steps) == (2, 1)


def test_nulls_unknown_to_statistics(monkeypatch) -> None:
    """The column gets another output type; its neighbours in the block stay."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = np.arange(600)
    frame = pa.table(
        {
            "a": rows,
            "b": pa.array([None if row == 205 else row for row in rows.tolist()]),
            "c": rows * 2,
            "s": [None if row == 207 else str(row) for row in rows.tolist()],
        }
    )
    sink = io.BytesIO()
    parquet.write_table(
        frame,
        sink,
        data_page_size=400,
        write_batch_size=50,
        use_dictionary=False,
        write_statistics=False,
        write_page_index=True,
    )
    data, counter = sink.getvalue(), InlineReadCounter(monkeypatch)
    for start, stop, dtype in ((201, 209, "float64"), (205, 206, "float64"), (300, 310, "int64")):
        ours, theirs = read_both_ways(monkeypatch, data, row_range=(start, stop))
        check_same(ours, theirs)
        assert ours[0]["b"].dtype == dtype
        assert ours[0]["a"].tolist() == list(range(start, stop))
        assert ours[0]["s"].isna().tolist() == [row == 207 for row in range(start, stop)]
    assert counter.done
    assert counter.steps


@pytest.mark.parametrize("at", range(0, 900, 60))
def test_damage_raises_the_same_error(monkeypatch, at) -> None:
    frame = small_pages_frame(True)[["key", "number", "text"]].iloc[:300]
    data = bytearray(numparq.to_parquet(frame, max_rows_per_page=100, use_dictionary=False, compression=None) or b"")
    data[4 + at] ^= 0x55
    for verify_crc in (True, False):
        for how in ({"row_range": (20, 30)}, {"filters": col("key") == 60}):
            ours, theirs = read_both_ways(monkeypatch, bytes(data), verify_crc=verify_crc, **how)
            check_same(ours, theirs)


def test_lost_rows_are_recorded(monkeypatch) -> None:
    frame = small_pages_frame(False)[["key", "number"]].iloc[:300]
    data = bytearray(numparq.to_parquet(frame, max_rows_per_page=100, use_dictionary=False, compression=None) or b"")
    data[200] ^= 0x55
    found = numparq.read_parquet(bytes(data), row_range=(20, 150), on_error="skip")
    assert found["number"].tolist() == frame["number"].iloc[100:150].tolist()
    assert found.attrs["numparq.lost"]


def test_rows_of_several_files(monkeypatch, tmp_path) -> None:
    """Rows of later files do not begin at the output's first row."""
    frame = small_pages_frame(True)[["key", "number", "nullable", "text"]].iloc[:GROUP]
    for number in range(3):
        part = frame.assign(key=frame["key"] + number, number=frame["number"] + number)
        numparq.to_parquet(part, tmp_path / f"{number}.parquet", max_rows_per_page=PAGE, use_dictionary=False)
    predicate, counter = (col("key") >= 300) & (col("key") < 309), InlineReadCounter(monkeypatch)
    found = numparq.read_parquet(tmp_path, filters=predicate)
    whole = numparq.read_parquet(tmp_path)
    expected = whole[(whole["key"] >= 300) & (whole["key"] < 309)].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected)
    assert len(found) == 9
    assert found["key"].tolist() == [300, 303, 306, 301, 304, 307, 302, 305, 308]
    assert counter.done >= 3 * 4
