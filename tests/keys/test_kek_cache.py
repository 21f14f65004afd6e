"""Kept keys: once within a lifetime, errors again, forks, threads that need other keys, the most that are kept."""

from __future__ import annotations

import os
import threading

import pytest

from numparq.keys import kek_cache
from numparq.keys.kek_cache import KeyCache


def test_values_are_made_once_within_a_lifetime(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(kek_cache.time, "monotonic", lambda: now[0])
    cache, made = KeyCache(10), iter(range(9))
    values = []
    for now[0] in (100, 109.9, 110, 119, 121):
        values.append(cache.get_or_make("a", lambda: next(made)))
    assert values == [0, 0, 1, 1, 2]


def test_errors_are_not_kept():
    cache = KeyCache(600)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 // 0)
    assert cache.get_or_make("a", lambda: 7) == 7


def test_threads_that_need_another_key_do_not_wait():
    cache, begun, end = KeyCache(600), threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert end.wait(10)
        return 1

    thread = threading.Thread(target=cache.get_or_make, args=["slow", slow])
    thread.start()
    assert begun.wait(10)
    assert cache.get_or_make("other", lambda: 2) == 2
    end.set()
    thread.join()
    assert cache.get_or_make("slow", lambda: 3) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_begins_empty(monkeypatch):
    cache = KeyCache(600)
    cache.get_or_make("a", lambda: 1)
    monkeypatch.setattr(kek_cache.os, "getpid", lambda: -1)
    assert cache.get_or_make("a", lambda: 2) == 2


def test_the_oldest_are_evicted(monkeypatch):
    monkeypatch.setattr(kek_cache, "MAX_KEYS", 3)
    cache = KeyCache(600)
    for number in range(5):
        cache.get_or_make(number, lambda number=number: number)
    assert repr(cache) == "<KeyCache, 3 keys>"
    assert [cache.get_or_make(number, lambda: None) for number in (2, 3, 4)] == [2, 3, 4]
