"""Offsets of file streams: which files are read, and which are remembered. Needs no Java."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="pyspark is missing, or too old for streams")

from numparq.spark.data_source import stream_offset
from numparq.spark.data_source.stream_offset import StreamFile, StreamOffset, limit_batch

pytestmark = pytest.mark.pyspark

DAY = 86400 * 10**6
NOW = 20000 * DAY


def file(name: object, modified: int = 0, size: int = 1) -> StreamFile:
    return StreamFile(str(name), NOW - 10 * DAY + modified, size)


def after(offset: StreamOffset, files: list[StreamFile], count: int = 10**9, max_age: int = 7 * DAY) -> StreamOffset:
    """Return the offset after a batch, stored and read again as Spark does."""
    unread = offset.unread(files)
    made = offset.advance(unread, min(count, len(unread)), max_age, NOW)
    assert StreamOffset.decode(json.loads(json.dumps(made.encode()))) == made
    return made


def test_files_are_read_oldest_first():
    files = [file("a", 30), file("b", 10), file("c", 20)]
    first = after(StreamOffset(), files, count=2)
    assert first.files == ("b", "c")
    assert after(first, files).files == ("a",)
    assert after(first, files).unread(files) == []


def test_files_of_zero_bytes_wait():
    assert StreamOffset().unread([file("a", size=0)]) == []
    assert [each.name for each in StreamOffset().unread([file("a", 5, size=9)])] == ["a"]


def test_late_files_are_read():
    offset = after(StreamOffset(), [file("a", 10)])
    late = file("late", -6 * DAY)
    assert after(offset, [file("a", 10), late]).files == ("late",)


def test_removed_and_listed_again_files_are_not_read_again():
    files = [file("a", 10), file("b", 20)]
    offset = after(after(StreamOffset(), files), [file("c", 30)])
    assert offset.unread(files) == []


def test_files_that_are_too_old_are_not_read():
    offset = after(StreamOffset(), [file("a", 10)])
    assert offset.unread([file("old", 9 - 7 * DAY)]) == []
    assert len(offset.unread([file("young", 11 - 7 * DAY)])) == 1


def test_first_batches_read_files_of_any_age():
    files = [file(number, -number * DAY) for number in range(100)]
    offset, names = StreamOffset(), []
    while offset.unread(files):
        offset = after(offset, files, count=3)
        names += offset.files
    assert names == [str(number) for number in range(99, -1, -1)]


def test_times_in_the_future_do_not_age_other_files():
    offset = after(StreamOffset(), [file("future", 10000 * DAY), file("a", 10 * DAY)])
    assert len(offset.unread([file("b", 3 * DAY + 1)])) == 1


def test_offsets_remember_a_bounded_number_of_files(monkeypatch):
    monkeypatch.setattr(stream_offset, "MAX_SEEN_FILES", 50)
    rng = np.random.default_rng(3)
    files = [file(number, int(modified)) for number, modified in enumerate(rng.integers(0, 100, 1000))]
    offset, names, seen = StreamOffset(), [], []
    while offset.unread(files):
        offset = after(offset, files, count=7)
        names += offset.files
        seen.append(len(offset.seen))
    assert sorted(names, key=int) == [str(number) for number in range(1000)]
    assert max(seen) == 50
    assert offset.unread(files) == []


def test_every_file_is_read_once_however_they_arrive(monkeypatch):
    """Files arrive in any order of times, some equal; a model that remembers all of them is the oracle."""
    monkeypatch.setattr(stream_offset, "MAX_SEEN_FILES", 40)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        times = np.sort(rng.integers(0, 200, 300)) + rng.integers(-15, 15, 300)  # at most about 40 files late
        files = [file(number, int(modified)) for number, modified in enumerate(times)]
        offset, names, arrived = StreamOffset(), [], 0
        while arrived < 300 or offset.unread(files):
            arrived = min(300, arrived + int(rng.integers(0, 9)))
            unread = offset.unread(files[:arrived])
            if unread:
                offset = after(offset, files[:arrived], count=int(rng.integers(1, 9)))
                names += offset.files
        assert sorted(names, key=int) == [str(number) for number in range(300)]


def test_a_full_offset_is_small():
    rng = np.random.default_rng(1)
    files = [file(f"part-{number}.parquet", int(at)) for number, at in enumerate(rng.integers(0, DAY, 20000))]
    offset = after(StreamOffset(), files)
    assert len(offset.seen) == stream_offset.MAX_SEEN_FILES == 5000
    assert len(offset.encode()["seen"]) < 90_000


@pytest.mark.parametrize(
    ("max_files", "max_bytes", "count"), [(None, None, 4), (3, None, 3), (9, None, 4), (None, 5, 2), (None, 1, 1)]
)
def test_limits_of_a_batch(max_files, max_bytes, count):
    assert limit_batch([file(number, size=2) for number in range(4)], max_files, max_bytes) == count


def test_no_files_make_no_batch():
    assert limit_batch([], None, 5) == 0


def encoded(**changes: object) -> dict:
    return StreamOffset(("a",), (3, 4), frozenset([(5, 6)])).encode() | changes


@pytest.mark.parametrize(
    "offset",
    [
        *(None, 3, [], {}, {"index": 3}, encoded(version=2), encoded(files="a"), encoded(files=[3])),
        *(encoded(until=[1]), encoded(until=None), encoded(until=["a", "b"])),
        *(encoded(seen=3), encoded(seen="!"), encoded(seen="QUJD")),
    ],
)
def test_other_offsets_are_refused(offset):
    with pytest.raises(ValueError, match="the checkpoint's offset is not that of a numparq stream"):
        StreamOffset.decode(offset)


def test_hostile_offsets_take_no_memory(monkeypatch):
    import base64
    import zlib

    monkeypatch.setattr(stream_offset, "_MAX_BYTES", 1 << 12)
    bomb = base64.b64encode(zlib.compress(bytes(1 << 20))).decode()
    with pytest.raises(ValueError, match="seen has a wrong length"):
        StreamOffset.decode(encoded(seen=bomb))
