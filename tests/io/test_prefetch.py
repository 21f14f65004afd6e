"""Bytes fetched ahead: what is asked for and when, what is given, what is let go of, and what goes wrong."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
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
def small_pieces():
    """Cut small ranges too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefetch, "MIN_REQUEST_BYTES", 1)
        yield


class Slow(BytesSource):
    """A source whose loads wait until they are let go on; notes what it was asked for."""

    is_remote = True

    def __init__(self, data: bytes = DATA) -> None:
        super().__init__(data)
        self.loads: list[list[tuple[int, int]]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.trouble: dict[int, Exception] = {}  # by a load's first byte

    def read_ranges(self, ranges):
        ranges = list(ranges)
        self.loads.append(ranges)
        assert self.gate.wait(20)
        for start, _ in ranges:
            if start in self.trouble:
                raise self.trouble[start]
        return super().read_ranges(ranges)


def prefetched(source, *batches, how=ALONE, most_bytes=10_000) -> PrefetchedSource:
    return PrefetchedSource(source, [np.array(batch, np.int64).reshape(-1, 2) for batch in batches], how, most_bytes)


def given_by(source, start: int, stop: int) -> bytes | None:
    found = source.view(start, stop - start, SLACK)
    if found is None:
        return None
    assert len(found) == stop - start + SLACK
    return found[: stop - start].tobytes()


def settle(source: PrefetchedSource) -> None:
    """Wait until all loads are over that were asked for so far."""
    barrier = threading.Barrier(2)
    for waiting in [source._pool.submit(barrier.wait, 20) for _ in range(2)]:
        waiting.result(20)


def test_what_is_fetched_is_given():
    source = Slow()
    with prefetched(source, [[100, 200], [300, 400]], [[1000, 1100]]) as ahead:
        assert (ahead.name, ahead.size, ahead.is_remote) == ("<bytes>", 5000, True)
        assert given_by(ahead, 100, 200) is None, "not begun"
        ahead.begin(0)
        assert given_by(ahead, 100, 200) == DATA[100:200]
        assert given_by(ahead, 310, 390) == DATA[310:390]
        for start, stop in ((99, 101), (199, 201), (150, 350), (250, 260), (1000, 1100), (0, 5000)):
            assert given_by(ahead, start, stop) is None
        settle(ahead)
        assert source.loads == [[(100, 200), (300, 400)], [(1000, 1100)]], "the next one is fetched as well"
        assert ahead.bytes_held == 300
        assert ahead.num_requests == source.num_requests
        assert ahead.num_bytes == source.num_bytes
        ahead.begin(1)
        assert given_by(ahead, 1000, 1100) == DATA[1000:1100]
        ahead.end(0)
        assert given_by(ahead, 100, 200) is None
        assert ahead.bytes_held == 100
        assert len(source.loads) == 2
    assert source.size == 5000, "it stays open"
    assert given_by(ahead, 1000, 1100) is None
    assert ahead.bytes_held == 0
    with pytest.raises(ValueError, match="closed"):
        ahead.begin(0)


def test_reads_from_batches_or_behind_them():
    source = Slow()
    with prefetched(source, [[100, 200]]) as ahead:
        ahead.begin(0)
        settle(ahead)
        before = source.num_requests
        out = np.empty(50, np.uint8)
        ahead.read_into(120, out)
        assert out.tobytes() == DATA[120:170]
        assert source.num_requests == before
        ahead.read_into(180, out)
        assert out.tobytes() == DATA[180:230]
        assert source.num_requests == before + 1
        pieces = ahead.read_ranges([(0, 10), (110, 120), (4990, 5000)])
        assert [piece[:10].tobytes() for piece in pieces] == [DATA[:10], DATA[110:120], DATA[4990:]]
        assert {len(piece) for piece in pieces} == {10 + SLACK}
        assert source.loads[-1] == [(0, 10), (4990, 5000)]
        assert ahead.contains(0, 5000)
        assert not ahead.contains(0, 5001)
        with pytest.raises(InvalidFileError):
            ahead.read_ranges([(0, 5001)])
        assert ahead.view(100, 10, SLACK + 1) is None


def test_near_ranges_are_one_request_and_large_ones_several():
    source = Slow()
    with prefetched(source, [[0, 10], [20, 30], [500, 4500]], how=Coalescing(20, 1500)) as ahead:
        ahead.begin(0)
        settle(ahead)
        assert source.loads == [[(0, 30), (500, 1833), (1833, 3166), (3166, 4500)]]
        assert given_by(ahead, 5, 25) == DATA[5:25], "what is between them is there too"
        assert given_by(ahead, 500, 4500) == DATA[500:4500]
        assert given_by(ahead, 1800, 1900) == DATA[1800:1900]
        assert given_by(ahead, 1833, 3166) == DATA[1833:3166]
        assert given_by(ahead, 4400, 4501) is None


def test_pieces_have_a_smallest_size(monkeypatch):
    monkeypatch.setattr(prefetch, "MIN_REQUEST_BYTES", 1000)
    source = Slow()
    with prefetched(source, [[0, 1000], [2000, 3001]], how=Coalescing(0, 1)) as ahead:
        ahead.begin(0)
        settle(ahead)
        assert sorted(pair for load in source.loads for pair in load) == [(0, 1000), (2000, 2500), (2500, 3001)]


def test_small_batches_are_fetched_together_and_large_ones_apart():
    source = Slow()
    batches = [[[number * 10, number * 10 + 5]] for number in range(20)]
    with prefetched(source, *batches) as ahead:
        ahead.begin(0)
        settle(ahead)
        assert [len(load) for load in source.loads] == [1, 19]
    source = Slow()
    with prefetched(source, *[[[number * 600, number * 600 + 600]] for number in range(8)]) as ahead:
        ahead.begin(0)
        settle(ahead)
        assert sorted(map(len, source.loads)) == [1, 1, 2, 2, 2]


def test_no_more_is_held_than_allowed():
    source = Slow()
    batches = [[[number * 500, number * 500 + 400]] for number in range(10)]
    with prefetched(source, *batches, most_bytes=1000) as ahead:
        for number in range(10):
            ahead.begin(number)
            start = number * 500
            assert given_by(ahead, start, start + 400) == DATA[start : start + 400]
            settle(ahead)
            assert ahead.bytes_held <= 1000
            asked = sorted(start for load in source.loads for start, _ in load)
            assert asked == [500 * place for place in range(min(number + 2, 10))], "this one, and the next"
            ahead.end(number)
        assert ahead.bytes_held == 0
        assert source.num_bytes == 4000


def test_a_batch_that_is_larger_than_allowed():
    source = Slow()
    with prefetched(source, [[0, 3000]], [[4000, 4100]], most_bytes=2500) as ahead:
        ahead.begin(0)
        assert given_by(ahead, 0, 2000) == DATA[:2000]
        assert given_by(ahead, 2000, 2100) is None
        assert given_by(ahead, 1900, 2100) is None
        out = np.empty(200, np.uint8)
        ahead.read_into(1900, out)
        assert out.tobytes() == DATA[1900:2100]
        ahead.end(0)
        ahead.begin(1)
        assert given_by(ahead, 4000, 4100) == DATA[4000:4100]
        settle(ahead)
        assert ahead.bytes_held == 100
        assert sorted(start for load in source.loads for start, _ in load) == [0, 1000, 4000]


def test_what_somebody_read_himself_is_not_fetched_any_more():
    source = Slow()
    with prefetched(source, [[0, 1000]], [[1000, 2000]], most_bytes=1000) as ahead:
        ahead.begin(0)
        ahead.begin(1)
        assert given_by(ahead, 1000, 1100) is None
        ahead.end(0)
        settle(ahead)
        assert source.loads == [[(0, 1000)]]
        assert ahead.bytes_held == 0


def test_a_batch_ends_while_it_is_on_its_way():
    source = Slow()
    source.gate.clear()
    with prefetched(source, [[0, 1000]], [[1000, 2000]], most_bytes=1000) as ahead:
        ahead.begin(0)
        ahead.end(0)
        assert len(source.loads) <= 1
        assert ahead.bytes_held == 1000, "its memory is taken until the request is over"
        source.gate.set()
        ahead.begin(1)
        for _ in range(2):  # the first load's end asks for the next
            settle(ahead)
        assert given_by(ahead, 1000, 2000) in (DATA[1000:2000], None)
        ahead.end(1)
    assert ahead.bytes_held == 0


def test_batches_in_any_order_again_or_not_at_all():
    source = Slow()
    batches = [[[number * 100, number * 100 + 50]] for number in range(6)]
    with prefetched(source, *batches) as ahead:
        ahead.end(4)
        ahead.begin(2)
        settle(ahead)
        assert source.loads == [[(200, 250)], [(300, 350), (500, 550)]]
        ahead.begin(0)
        assert given_by(ahead, 0, 50) == DATA[:50]
        ahead.begin(0)
        ahead.end(0)
        ahead.end(0)
        assert given_by(ahead, 0, 50) is None
        ahead.begin(0)
        assert given_by(ahead, 0, 50) == DATA[:50]
        ahead.begin(4)
        assert given_by(ahead, 400, 450) == DATA[400:450]
        assert source.num_bytes == 50 * 6


def test_ranges_that_the_file_does_not_have():
    source = Slow()
    hostile = [[4000, 2**62], [-5, 10], [7, 7], [9, 3], [2**62, 2**62 + 1], [100, 110], [-(2**63), 2**63 - 1]]
    with prefetched(source, hostile, hostile, how=Coalescing(2**70, 10)) as ahead:
        ahead.begin(0)
        assert given_by(ahead, 100, 110) == DATA[100:110]
        settle(ahead)
        assert source.loads == [[(100, 110)], [(100, 110)]]
        with pytest.raises(InvalidFileError, match="beyond the file's 5000 bytes"):
            ahead.read_into(4000, np.empty(1001, np.uint8))


def test_errors_are_raised_where_the_bytes_are_asked_for():
    source = Slow()
    source.trouble = {100: OSError("the network is down"), 1000: InvalidFileError("cut")}
    with prefetched(source, [[100, 200]], [[1000, 1100], [2000, 2100]]) as ahead:
        ahead.begin(0)
        ahead.begin(1)
        for _ in range(2):
            with pytest.raises(OSError, match="network is down"):
                given_by(ahead, 100, 200)
        assert given_by(ahead, 2000, 2100) == DATA[2000:2100], "the neighbour's trouble is not its own"
        for place in range(2):
            with pytest.raises(InvalidFileError, match="cut") as caught, error_context(row_group=place):
                given_by(ahead, 1000, 1100)
            assert caught.value.where == {"row_group": place}
        ahead.end(0)
        source.trouble.clear()
        ahead.begin(0)
        assert given_by(ahead, 100, 200) == DATA[100:200], "a second try"


def test_closing_lets_those_who_wait_go_on():
    source = Slow()
    source.gate.clear()
    ahead = prefetched(source, *[[[number * 1000, number * 1000 + 1000]] for number in range(5)])
    for number in range(5):
        ahead.begin(number)
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(given_by, ahead, number * 1000, number * 1000 + 1000) for number in range(5)]
        closing = pool.submit(ahead.close)
        source.gate.set()
        closing.result(20)
        answers = [answer.result(20) for answer in asked]
    for number, answer in enumerate(answers):
        assert answer in (None, DATA[number * 1000 : number * 1000 + 1000])
    ahead.close()
    assert ahead.bytes_held == 0


PAIRS = st.tuples(st.integers(-3, 210), st.integers(-2, 40))
RANGES = st.lists(PAIRS.map(lambda pair: (pair[0], sum(pair))), max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(RANGES, min_size=1, max_size=5), st.integers(0, 20), st.integers(1, 50), st.integers(1, 300))
def test_many_threads(batches, gap, max_bytes, most_bytes):
    data = DATA[:200]
    source = Slow(data)

    def decode(number: int) -> None:
        ahead.begin(number)
        for start, stop in batches[number]:
            if 0 <= start < stop <= 200:
                assert given_by(ahead, start, stop) in (None, data[start:stop])
                out = np.empty(stop - start, np.uint8)
                ahead.read_into(start, out)
                assert out.tobytes() == data[start:stop]
        ahead.end(number)

    with prefetched(source, *batches, how=Coalescing(gap, max_bytes), most_bytes=most_bytes) as ahead:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(decode, range(len(batches))))
        settle(ahead)
        assert ahead.bytes_held == 0
        assert not ahead._batches
