"""Prefetched byte ranges: order and number of requests, memory limit, release and errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.errors import InvalidFileError, error_context
from numparq.io import prefetch
from numparq.io.coalesce import Coalescing
from numparq.io.local_source import BytesSource
from numparq.io.prefetch import PrefetchedSource
from numparq.kernels.tables import SLACK

DATA = np.random.default_rng(5).integers(0, 256, 5000, np.uint8).tobytes()
ALONE = Coalescing(0, 1000)


@pytest.fixture(scope="module", autouse=True)
def small_requests():
    """Allow requests of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefetch, "MIN_REQUEST_BYTES", 1)
        yield


class GatedSource(BytesSource):
    """A source that records its loads and blocks them while its gate is closed."""

    is_remote = True

    def __init__(self, data: bytes = DATA) -> None:
        super().__init__(data)
        self.loads: list[list[tuple[int, int]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failures: dict[int, Exception] = {}  # by a load's first byte

    def read_ranges(self, ranges):
        ranges = list(ranges)
        self.loads.append(ranges)
        assert self.gate.wait(20)
        for start, _ in ranges:
            if start in self.failures:
                raise self.failures[start]
        return super().read_ranges(ranges)


def open_prefetched(source, *batches, coalescing=ALONE, most_bytes=10_000) -> PrefetchedSource:
    return PrefetchedSource(
        source, [np.array(batch, np.int64).reshape(-1, 2) for batch in batches], coalescing, most_bytes
    )


def view_bytes(source, start: int, stop: int) -> bytes | None:
    found = source.view(start, stop - start, SLACK)
    if found is None:
        return None
    assert len(found) == stop - start + SLACK
    return found[: stop - start].tobytes()


def wait_for_loads(source: PrefetchedSource) -> None:
    """Wait until all loads requested so far have finished."""
    barrier = threading.Barrier(2)
    for waiting in [source._threads.submit(lambda: barrier.wait(20)) for _ in range(2)]:
        waiting.result(20)


def test_prefetched_bytes_are_returned():
    source = GatedSource()
    with open_prefetched(source, [[100, 200], [300, 400]], [[1000, 1100]]) as prefetched:
        assert (prefetched.name, prefetched.size, prefetched.is_remote) == ("<bytes>", 5000, True)
        assert view_bytes(prefetched, 100, 200) is None, "the batch has not begun"
        prefetched.begin(0)
        assert view_bytes(prefetched, 100, 200) == DATA[100:200]
        assert view_bytes(prefetched, 310, 390) == DATA[310:390]
        for start, stop in ((99, 101), (199, 201), (150, 350), (250, 260), (1000, 1100), (0, 5000)):
            assert view_bytes(prefetched, start, stop) is None
        wait_for_loads(prefetched)
        assert source.loads == [[(100, 200), (300, 400)], [(1000, 1100)]], "the next batch is prefetched"
        assert prefetched.num_requests == source.num_requests
        assert prefetched.num_bytes == source.num_bytes
        prefetched.begin(1)
        assert view_bytes(prefetched, 1000, 1100) == DATA[1000:1100]
        prefetched.end(0)
        assert view_bytes(prefetched, 100, 200) is None
        assert len(source.loads) == 2
    assert source.size == 5000, "the source stays open"
    assert view_bytes(prefetched, 1000, 1100) is None
    with pytest.raises(ValueError, match="closed"):
        prefetched.begin(0)


def test_reads_inside_and_outside_batches():
    source = GatedSource()
    with open_prefetched(source, [[100, 200]]) as prefetched:
        prefetched.begin(0)
        wait_for_loads(prefetched)
        before = source.num_requests
        out = np.empty(50, np.uint8)
        prefetched.read_into(120, out)
        assert out.tobytes() == DATA[120:170]
        assert source.num_requests == before
        prefetched.read_into(180, out)
        assert out.tobytes() == DATA[180:230]
        assert source.num_requests == before + 1
        pieces = prefetched.read_ranges([(0, 10), (110, 120), (4990, 5000)])
        assert [piece[:10].tobytes() for piece in pieces] == [DATA[:10], DATA[110:120], DATA[4990:]]
        assert {len(piece) for piece in pieces} == {10 + SLACK}
        assert source.loads[-1] == [(0, 10), (4990, 5000)]
        assert prefetched.contains(0, 5000)
        assert not prefetched.contains(0, 5001)
        with pytest.raises(InvalidFileError):
            prefetched.read_ranges([(0, 5001)])
        assert prefetched.view(100, 10, SLACK + 1) is None


def test_near_ranges_are_coalesced_and_large_ones_divided():
    source = GatedSource()
    with open_prefetched(source, [[0, 10], [20, 30], [500, 4500]], coalescing=Coalescing(20, 1500)) as prefetched:
        prefetched.begin(0)
        wait_for_loads(prefetched)
        assert source.loads == [[(0, 30), (500, 1833), (1833, 3166), (3166, 4500)]]
        assert view_bytes(prefetched, 5, 25) == DATA[5:25], "bytes between near ranges are available"
        assert view_bytes(prefetched, 500, 4500) == DATA[500:4500]
        assert view_bytes(prefetched, 1800, 1900) == DATA[1800:1900]
        assert view_bytes(prefetched, 1833, 3166) == DATA[1833:3166]
        assert view_bytes(prefetched, 4400, 4501) is None


def test_divided_requests_have_a_minimum_size(monkeypatch):
    monkeypatch.setattr(prefetch, "MIN_REQUEST_BYTES", 1000)
    source = GatedSource()
    with open_prefetched(source, [[0, 1000], [2000, 3001]], coalescing=Coalescing(0, 1)) as prefetched:
        prefetched.begin(0)
        wait_for_loads(prefetched)
        assert sorted(pair for load in source.loads for pair in load) == [(0, 1000), (2000, 2500), (2500, 3001)]


def test_small_batches_share_a_load_and_large_ones_do_not():
    source = GatedSource()
    batches = [[[number * 10, number * 10 + 5]] for number in range(20)]
    with open_prefetched(source, *batches) as prefetched:
        prefetched.begin(0)
        wait_for_loads(prefetched)
        assert [len(load) for load in source.loads] == [1, 19]
    source = GatedSource()
    with open_prefetched(source, *[[[number * 600, number * 600 + 600]] for number in range(8)]) as prefetched:
        prefetched.begin(0)
        wait_for_loads(prefetched)
        assert sorted(map(len, source.loads)) == [1, 1, 2, 2, 2]


def test_held_bytes_respect_limit():
    source = GatedSource()
    batches = [[[number * 500, number * 500 + 400]] for number in range(10)]
    with open_prefetched(source, *batches, most_bytes=1000) as prefetched:
        for number in range(10):
            prefetched.begin(number)
            start = number * 500
            assert view_bytes(prefetched, start, start + 400) == DATA[start : start + 400]
            wait_for_loads(prefetched)
            starts = sorted(start for load in source.loads for start, _ in load)
            assert starts == [500 * index for index in range(min(number + 2, 10))], "this batch and the next"
            prefetched.end(number)
        assert source.num_bytes == 4000


def test_batch_larger_than_limit():
    source = GatedSource()
    with open_prefetched(source, [[0, 3000]], [[4000, 4100]], most_bytes=2500) as prefetched:
        prefetched.begin(0)
        assert view_bytes(prefetched, 0, 2000) == DATA[:2000]
        assert view_bytes(prefetched, 2000, 2100) is None
        assert view_bytes(prefetched, 1900, 2100) is None
        out = np.empty(200, np.uint8)
        prefetched.read_into(1900, out)
        assert out.tobytes() == DATA[1900:2100]
        prefetched.end(0)
        prefetched.begin(1)
        assert view_bytes(prefetched, 4000, 4100) == DATA[4000:4100]
        wait_for_loads(prefetched)
        assert sorted(start for load in source.loads for start, _ in load) == [0, 1000, 4000]


def test_ranges_already_read_are_not_prefetched():
    source = GatedSource()
    with open_prefetched(source, [[0, 1000]], [[1000, 2000]], most_bytes=1000) as prefetched:
        prefetched.begin(0)
        prefetched.begin(1)
        assert view_bytes(prefetched, 1000, 1100) is None
        prefetched.end(0)
        wait_for_loads(prefetched)
        assert source.loads == [[(0, 1000)]]


def test_batch_ended_during_its_load():
    source = GatedSource()
    source.gate.clear()
    with open_prefetched(source, [[0, 1000]], [[1000, 2000]], most_bytes=1000) as prefetched:
        prefetched.begin(0)
        prefetched.end(0)
        assert len(source.loads) <= 1
        prefetched.begin(1)
        assert len(source.loads) <= 1, "memory is held until the request has finished"
        source.gate.set()
        for _ in range(2):  # the end of the first load starts the next
            wait_for_loads(prefetched)
        assert view_bytes(prefetched, 1000, 2000) in (DATA[1000:2000], None)
        prefetched.end(1)


def test_batches_in_any_order_repeated_and_skipped():
    source = GatedSource()
    batches = [[[number * 100, number * 100 + 50]] for number in range(6)]
    with open_prefetched(source, *batches) as prefetched:
        prefetched.end(4)
        prefetched.begin(2)
        wait_for_loads(prefetched)
        assert source.loads == [[(200, 250)], [(300, 350), (500, 550)]]
        prefetched.begin(0)
        assert view_bytes(prefetched, 0, 50) == DATA[:50]
        prefetched.begin(0)
        prefetched.end(0)
        prefetched.end(0)
        assert view_bytes(prefetched, 0, 50) is None
        prefetched.begin(0)
        assert view_bytes(prefetched, 0, 50) == DATA[:50]
        prefetched.begin(4)
        assert view_bytes(prefetched, 400, 450) == DATA[400:450]
        assert source.num_bytes == 50 * 6


def test_ranges_outside_the_file():
    source = GatedSource()
    hostile = [[4000, 2**62], [-5, 10], [7, 7], [9, 3], [2**62, 2**62 + 1], [100, 110], [-(2**63), 2**63 - 1]]
    with open_prefetched(source, hostile, hostile, coalescing=Coalescing(2**70, 10)) as prefetched:
        prefetched.begin(0)
        assert view_bytes(prefetched, 100, 110) == DATA[100:110]
        wait_for_loads(prefetched)
        assert source.loads == [[(100, 110)], [(100, 110)]]
        with pytest.raises(InvalidFileError, match="beyond the file's 5000 bytes"):
            prefetched.read_into(4000, np.empty(1001, np.uint8))


def test_errors_are_raised_on_access():
    source = GatedSource()
    source.failures = {100: OSError("the network is down"), 1000: InvalidFileError("cut")}
    with open_prefetched(source, [[100, 200]], [[1000, 1100], [2000, 2100]]) as prefetched:
        prefetched.begin(0)
        prefetched.begin(1)
        for _ in range(2):
            with pytest.raises(OSError, match="network is down"):
                view_bytes(prefetched, 100, 200)
        assert view_bytes(prefetched, 2000, 2100) == DATA[2000:2100], (
            "an error of one load does not affect its neighbour"
        )
        for row_group in range(2):
            with pytest.raises(InvalidFileError, match="cut") as caught, error_context(row_group=row_group):
                view_bytes(prefetched, 1000, 1100)
            assert caught.value.where == {"row_group": row_group}
        prefetched.end(0)
        source.failures.clear()
        prefetched.begin(0)
        assert view_bytes(prefetched, 100, 200) == DATA[100:200], "a second try"


def test_close_releases_waiting_readers():
    source = GatedSource()
    source.gate.clear()
    prefetched = open_prefetched(source, *[[[number * 1000, number * 1000 + 1000]] for number in range(5)])
    for number in range(5):
        prefetched.begin(number)
    with ThreadPoolExecutor(6) as pool:
        pending = [pool.submit(view_bytes, prefetched, number * 1000, number * 1000 + 1000) for number in range(5)]
        closing = pool.submit(prefetched.close)
        source.gate.set()
        closing.result(20)
        results = [future.result(20) for future in pending]
    for number, future in enumerate(results):
        assert future in (None, DATA[number * 1000 : number * 1000 + 1000])
    prefetched.close()
    assert prefetched._held == 0


PAIRS = st.tuples(st.integers(-3, 210), st.integers(-2, 40))
RANGES = st.lists(PAIRS.map(lambda pair: (pair[0], sum(pair))), max_size=6)


@given(st.lists(RANGES, min_size=1, max_size=5), st.integers(0, 20), st.integers(1, 50), st.integers(1, 300))
def test_batches_of_many_threads(batches, gap, max_bytes, most_bytes):
    data = DATA[:200]
    source = GatedSource(data)

    def decode(number: int) -> None:
        prefetched.begin(number)
        for start, stop in batches[number]:
            if 0 <= start < stop <= 200:
                assert view_bytes(prefetched, start, stop) in (None, data[start:stop])
                out = np.empty(stop - start, np.uint8)
                prefetched.read_into(start, out)
                assert out.tobytes() == data[start:stop]
        prefetched.end(number)

    with open_prefetched(source, *batches, coalescing=Coalescing(gap, max_bytes), most_bytes=most_bytes) as prefetched:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(decode, range(len(batches))))
        wait_for_loads(prefetched)
        assert prefetched._held == 0
        assert not prefetched._batches
