"""Bounded caches keyed by content, empty in a forked process."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from numparq.util.bounded_cache import BoundedCache, fork_safe_lru_cache


def test_makes_once_and_evicts_the_oldest() -> None:
    made: list[int] = []
    cache = BoundedCache(3)

    def make(number: int) -> int:
        return cache.get_or_make(number, lambda: made.append(number) or -number)  # type: ignore[func-returns-value]

    assert [make(number) for number in (1, 2, 3, 1, 4, 2, 3, 1)] == [-1, -2, -3, -1, -4, -2, -3, -1]
    assert made == [1, 2, 3, 4, 1]
    assert len(cache) == 3


def test_caches_none_but_no_failures() -> None:
    cache, made = BoundedCache(2), []

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", fail)
    assert len(cache) == 0
    for _ in range(2):
        assert cache.get_or_make("a", lambda: made.append(1)) is None
    assert made == [1]


def test_concurrent_threads() -> None:
    cache, wrong = BoundedCache(4), []

    def use(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 9, 3000).tolist():
            if cache.get_or_make(number, lambda: number * 10) != number * 10:  # noqa: B023
                wrong.append(number)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) <= 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_process_starts_with_an_empty_cache() -> None:
    @fork_safe_lru_cache(4)
    def made(number: int) -> list[int]:
        return [number]

    first = made(1)
    assert made(1) is first
    child = os.fork()
    if not child:
        os._exit(int(made.cache_info().currsize != 0))  # type: ignore[attr-defined]
    assert os.waitpid(child, 0)[1] == 0
    assert made(1) is first
