"""Coalescing of byte ranges into requests, against a sequential reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.io.coalesce import LOCAL_COALESCING, OBJECT_STORE_COALESCING, Coalescing, coalesce
from support.kernels.engines import ENGINES
from support.kernels.guarded_buffers import GuardedBuffer

RANGES = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=14)


def reference_requests(ranges, gap, max_bytes):
    """Return the requests as lists of [start, stop]."""
    spans = []
    for start, stop in sorted(ranges):
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


@given(RANGES, st.integers(0, 10), st.integers(1, 60))
def test_requests_equal_reference(ranges, gap, max_bytes):
    found = coalesce(np.array(ranges, np.int64).reshape(-1, 2), Coalescing(gap, max_bytes))
    assert found.requests.tolist() == reference_requests(ranges, gap, max_bytes)
    file = np.arange(120, dtype=np.uint8)
    fetched = [file[start:stop] for start, stop in found.requests]
    assert sum(map(len, fetched)) == found.num_bytes
    for index, (start, stop) in enumerate(ranges):
        first = int(found.offset_in_request[index])
        request = fetched[found.request_index[index]]
        assert request[first : first + int(found.size[index])].tolist() == list(range(start, stop))


def test_default_coalescing_of_local_files_and_object_stores():
    ranges = np.array([[0, 10], [100_000, 100_010], [3 << 20, (3 << 20) + 10]])
    assert [
        len(coalesce(ranges, coalescing).requests)
        for coalescing in (LOCAL_COALESCING, OBJECT_STORE_COALESCING, Coalescing(0, 1))
    ] == [3, 2, 3]
    near = np.array([[0, 10], [11, 20], [20, 30]])
    assert coalesce(near, LOCAL_COALESCING).requests.tolist() == [[0, 10], [11, 30]], (
        "no byte outside the ranges is requested"
    )
    assert len(coalesce(ranges, Coalescing(2**70, 2**70)).requests) == 1


def test_range_larger_than_max_bytes_stays_whole():
    assert coalesce([[0, 100], [100, 110], [110, 120]], Coalescing(5, 20)).requests.tolist() == [[0, 100], [100, 120]]


def test_hundred_thousand_ranges():
    starts = np.arange(100_000, dtype=np.int64)[::-1] * 1000
    found = coalesce(np.stack([starts, starts + 500], axis=1), Coalescing(500, 10_000))
    assert len(found.requests) == 10_000
    assert found.request_index.tolist() == (starts // 10_000).tolist()
    assert coalesce(np.empty((0, 2))).requests.shape == (0, 2)


def test_invalid_byte_ranges_raise():
    for wrong in ([[-1, 5]], [[5, 5]], [[5, 4]]):
        with pytest.raises(ValueError, match="byte range"):
            coalesce(np.array(wrong))
    for gap, max_bytes in ((-1, 5), (0, 0)):
        with pytest.raises(ValueError, match="gap"):
            Coalescing(gap, max_bytes)


@given(
    ranges=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12),
    gap=st.integers(0, 9),
    most=st.integers(1, 60),
)
def test_coalesce_kernels_equal_reference(ranges, gap, most):
    """Overlapping ranges join the last request where gap and size allow; both engines agree."""
    bounds = np.array([(start, start + size) for start, size in ranges], np.int64).reshape(-1, 2)
    spans: list[list[int]] = []
    for start, stop in sorted(bounds.tolist()):
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
    order = bounds[:, 0].argsort(kind="stable")
    for engine in ENGINES:
        rng = np.random.default_rng(len(ranges))
        blobs, locations = GuardedBuffer(rng, bounds.size, "i8"), GuardedBuffer(rng, 3 * len(bounds), "i8")
        count = engine.coalesce_ranges(order, bounds.reshape(-1), len(bounds), gap, most, blobs.array, locations.array)
        blobs.check()
        locations.check()
        assert blobs.array[: 2 * count].reshape(-1, 2).tolist() == requests
        for (start, stop), (blob, position, size) in zip(
            bounds.tolist(), locations.array.reshape(-1, 3).tolist(), strict=True
        ):
            assert requests[blob][0] + position == start
            assert size == stop - start
