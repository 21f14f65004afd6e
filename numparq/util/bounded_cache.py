"""Bounded, fork-safe caches keyed by content."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

Make = TypeVar("Make", bound=Callable[..., Any])
Thing = TypeVar("Thing")

_forgetting: list[Callable[[], None]] = []


def fork_safe_lru_cache(max_entries: int) -> Callable[[Make], Make]:
    """Decorate a function of hashable arguments with an LRU cache, which is emptied in forked children.

    Results are shared between callers and must not be changed; exceptions are not cached.
    """

    def decorate(make: Make) -> Make:
        found = lru_cache(max_entries)(make)
        _forgetting.append(found.cache_clear)
        return found  # type: ignore[return-value]

    return decorate


def _forget() -> None:
    for forget in _forgetting:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class BoundedCache(dict[Hashable, Any]):
    """Cache of at most `max_entries` values; the oldest inserted one is evicted first.

    Threads may share it: two that miss the same key at the same time both make its value. Callers that run for every
    read ask by `get` before they call `get_or_make`, which saves a call.
    """

    __slots__ = ("_most",)

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._most = max_entries

    def get_or_make(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """Return the value of a key, made on first use; it must not be changed afterwards."""
        found = self.get(key, self)
        if found is not self:
            known: Thing = found
            return known
        made = make()
        while len(self) >= self._most:
            self.pop(next(iter([*self]), None), None)
        self[key] = made
        return made
