"""Batches of a stream: ids of their writes, and marks of datasets."""

from __future__ import annotations

import re

import pytest

from numparq.dataset.commit.record import JOB_PATTERN
from numparq.dataset.commit.stream_batch import StreamBatch
from numparq.errors import InvalidFileError


def test_attempts_share_an_id_that_sorts_by_batch():
    ids = [StreamBatch("query-1", number).job for number in (0, 9, 10, 10**12 - 1)]
    assert ids == [StreamBatch("query-1", number).job for number in (0, 9, 10, 10**12 - 1)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(JOB_PATTERN, job) for job in ids)
    assert StreamBatch("query-2", 0).job not in ids


def test_earlier_batches_of_the_stream_are_recognised():
    batch = StreamBatch("query-1", 5)
    numbers = [number for number in range(10) if batch.is_earlier(StreamBatch("query-1", number).job)]
    assert numbers == [0, 1, 2, 3, 4]
    assert not batch.is_earlier(StreamBatch("query-2", 1).job)
    assert not batch.is_earlier("20200102T030405000006-0a1b2c")


def test_mark_names_the_latest_batch():
    mark = StreamBatch("query-1", 5).mark_text.encode()
    assert [StreamBatch("query-1", number).is_committed(mark, "data") for number in (0, 4, 5, 6)] == [True] * 3 + [
        False
    ]


@pytest.mark.parametrize(
    "mark",
    [b"", b"{", b"[" * 10**5, b"3", b"\xff", b'{"stream": "query-1"}', b'{"stream": "query-2", "batch": 9}']
    + [b'{"stream": "query-1", "batch": %s}' % number for number in (b'"9"', b"true", b"9.0", b"null")],
)
def test_damaged_mark_is_an_error(mark):
    batch = StreamBatch("query-1", 5)
    with pytest.raises(InvalidFileError, match="mark of a stream is damaged") as caught:
        batch.is_committed(mark, "data/")
    assert caught.value.where == {"file": f"data/{batch.mark}"}


@pytest.mark.parametrize("stream", ["", "../x", "a b", "-a", "a" * 101, "a\n"])
def test_other_characters_in_an_id_are_refused(stream):
    with pytest.raises(ValueError, match="the id of a stream"):
        StreamBatch(stream, 0)


@pytest.mark.parametrize("number", [-1, 10**12])
def test_numbers_beyond_twelve_digits_are_refused(number):
    with pytest.raises(ValueError, match="the number of a batch must be between 0 and 999999999999"):
        StreamBatch("query-1", number)
