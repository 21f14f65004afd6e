"""Byte ranges put together to requests, against a twin that goes over them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numparq.io.coalesce import LOCAL_COALESCING, OBJECT_STORE_COALESCING, Coalescing, coalesce
from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import GuardedBuffer

RANGES = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=14)


def twin(wanted, gap, max_bytes):
    """The requests, as lists of [start, stop]."""
    spans = []
    for start, stop in sorted(wanted):
        if spans and start < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], stop)
        else:
            spans.append([start, stop])
    blobs = []
    for start, stop in spans:
        if blobs and start - blobs[-1][1] <= gap and stop - blobs[-1][0] <= max_bytes:
            blobs[-1][1] = stop
        else:
            blobs.append([start, stop])
    return blobs


@settings(deadline=None, max_examples=300)
@given(RANGES, st.integers(0, 10), st.integers(1, 60))
def test_requests(wanted, gap, max_bytes):
    found = coalesce(np.array(wanted, np.int64).reshape(-1, 2), Coalescing(gap, max_bytes))
    assert found.requests.tolist() == twin(wanted, gap, max_bytes)
    file = np.arange(120, dtype=np.uint8)
    fetched = [file[start:stop] for start, stop in found.requests]
    assert sum(map(len, fetched)) == found.num_bytes
    for place, (start, stop) in enumerate(wanted):
        assert found.range_bytes(fetched, place).tolist() == list(range(start, stop))


def test_the_defaults_differ_by_what_a_request_costs():
    wanted = np.array([[0, 10], [100_000, 100_010], [3 << 20, (3 << 20) + 10]])
    assert [
        len(coalesce(wanted, how).requests) for how in (LOCAL_COALESCING, OBJECT_STORE_COALESCING, Coalescing(0, 1))
    ] == [3, 2, 3]
    near = np.array([[0, 10], [11, 20], [20, 30]])
    assert coalesce(near, LOCAL_COALESCING).requests.tolist() == [[0, 10], [11, 30]], "not a byte that nobody wants"
    assert len(coalesce(wanted, Coalescing(2**70, 2**70)).requests) == 1


def test_a_range_larger_than_a_request_stays_whole():
    assert coalesce([[0, 100], [100, 110], [110, 120]], Coalescing(5, 20)).requests.tolist() == [[0, 100], [100, 120]]


def test_a_hundred_thousand_ranges():
    starts = np.arange(100_000, dtype=np.int64)[::-1] * 1000
    found = coalesce(np.stack([starts, starts + 500], axis=1), Coalescing(500, 10_000))
    assert len(found.requests) == 10_000
    assert found.request_index.tolist() == (starts // 10_000).tolist()
    assert coalesce(np.empty((0, 2))).requests.shape == (0, 2)


def test_what_is_no_byte_range():
    for wrong in ([[-1, 5]], [[5, 5]], [[5, 4]]):
        with pytest.raises(ValueError, match="byte range"):
            coalesce(np.array(wrong))
    for gap, max_bytes in ((-1, 5), (0, 0)):
        with pytest.raises(ValueError, match="gap"):
            Coalescing(gap, max_bytes)


@settings(deadline=None, max_examples=60)
@given(
    ranges=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
    gap=st.integers(0, 9),
    most=st.integers(1, 60),
)
def test_any_byte_ranges(ranges, gap, most):
    """Spans of ranges that lie over each other go into the last request, where gap and size allow."""
    wanted = np.array([(start, start + size) for start, size in ranges], np.int64).reshape(-1, 2)
    spans: list[list[int]] = []
    for start, stop in sorted(wanted.tolist()):
        if spans and start < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], stop)
        else:
            spans.append([start, stop])
    requests: list[list[int]] = []
    for start, stop in spans:
        if requests and start - requests[-1][1] <= gap and stop - requests[-1][0] <= most:
            requests[-1][1] = stop
        else:
            requests.append([start, stop])
    order = wanted[:, 0].argsort(kind="stable")
    for engine in ENGINES:
        rng = np.random.default_rng(len(ranges))
        blobs, places = GuardedBuffer(rng, wanted.size, "i8"), GuardedBuffer(rng, 3 * len(wanted), "i8")
        count = engine.coalesce_ranges(order, wanted.reshape(-1), len(wanted), gap, most, blobs.array, places.array)
        blobs.check()
        places.check()
        assert blobs.array[: 2 * count].reshape(-1, 2).tolist() == requests
        for (start, stop), (blob, position, size) in zip(
            wanted.tolist(), places.array.reshape(-1, 3).tolist(), strict=True
        ):
            assert requests[blob][0] + position == start
            assert size == stop - start
