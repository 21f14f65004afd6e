"""One cache for what is kept of files between reads, with a budget in bytes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from .bounded_cache import fork_safe_lru_cache
from .fork_safe_lock import fork_safe_rlock

_DEFAULT_BYTES = 64 << 20
_ENTRY_BYTES = 1 << 10  # an entry without values
DICTIONARY_BYTES = 1 << 9  # a dictionary's key and objects, besides its arrays
_FOOTER_SHARE = 4  # the footer of the last file may take so many budgets by itself: 256 MiB hold 200,000 columns
_DICTIONARY_SHARE = 4  # dictionaries take at most one in so many bytes of the budget in an entry, twice as much in all


class CacheInfo(NamedTuple):
    """State of the cache.

    Attributes
    ----------
    num_bytes, max_bytes : int
        Bytes that it holds, and may hold besides the footer of the file opened last.
    num_files : int
        Files that it holds something of.
    hits, misses : int
        Opened files that it held, or did not hold, something of.
    """

    num_bytes: int
    max_bytes: int
    num_files: int
    hits: int
    misses: int


class CachedFile(dict[Hashable, Any]):
    """Values of one file by key, which must not be changed; added by `put`.

    Threads may share it: two that miss the same key both make its value.
    """

    __slots__ = ("cache", "dictionary_bytes", "footer_bytes", "key", "num_bytes")

    def __init__(self, cache: ByteBudgetCache | None = None, key: Hashable = None) -> None:
        super().__init__()
        self.cache = cache  # None: outside of the cache, or evicted
        self.key = key
        self.num_bytes = self.dictionary_bytes = self.footer_bytes = 0

    def put(self, values: Mapping[Any, Any], num_bytes: int) -> None:
        """Add values that take `num_bytes` together."""
        self.update(values)
        if self.cache is not None:
            self.cache.charge(self, num_bytes)

    def put_footer(self, key: Hashable, footer: object, num_bytes: int) -> None:
        """Add the footer, or count anew what it takes."""
        added, self.footer_bytes = num_bytes - self.footer_bytes, num_bytes
        self.put({key: footer}, added)

    def put_dictionary(self, key: Hashable, value: object, num_bytes: int) -> None:
        """Add a decoded dictionary, unless it is there, or those of this file take too much."""
        budget = (self.cache or file_cache()).max_bytes // _DICTIONARY_SHARE
        if key in self or self.dictionary_bytes + num_bytes > budget or self.setdefault(key, value) is not value:
            return
        if self.cache is None:
            self.dictionary_bytes += num_bytes
        else:
            self.cache.charge(self, num_bytes, num_bytes)


class ByteBudgetCache:
    """Entries of files, at most `max_bytes` together; the least recently opened files are evicted first.

    Whoever holds an evicted entry goes on with it. A file that exceeds the budget by itself is not cached. The footer
    of the file opened last does not count unless it takes more than _FOOTER_SHARE budgets: its reader had that memory,
    and to read it again takes longer than any query.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = fork_safe_rlock()
        self._entries: OrderedDict[Hashable, CachedFile] = OrderedDict()
        self._num_bytes = self._dictionary_bytes = self._hits = self._misses = 0

    def entry(self, key: Hashable) -> CachedFile:
        """Return the entry of a file, an empty one if it has none."""
        with self._lock:
            found = self._entries.get(key)
            last = next(reversed(self._entries.values()), None)
            if last is not None and last is not found and last.num_bytes > self.max_bytes:
                self._entries.move_to_end(last.key, last=False)  # evict it first: its footer counts from now on
            if found is not None:
                self._hits += 1
                self._entries.move_to_end(key)
                return found
            self._misses += 1
            made = self._entries[key] = CachedFile(self, key)
            self.charge(made, _ENTRY_BYTES)
            return made

    def charge(self, entry: CachedFile, num_bytes: int, dictionary_bytes: int = 0) -> None:
        """Count bytes that an entry has more than before, those of dictionaries among them; evict what exceeds."""
        with self._lock:
            if entry.cache is None:  # evicted since
                return
            entry.num_bytes += num_bytes
            entry.dictionary_bytes += dictionary_bytes
            self._num_bytes += num_bytes
            self._dictionary_bytes += dictionary_bytes
            is_last = entry is next(reversed(self._entries.values()))
            if entry.num_bytes - is_last * self._uncounted_bytes() > self.max_bytes:  # evict it alone
                self._entries.move_to_end(entry.key, last=False)
            most = 2 * self.max_bytes // _DICTIONARY_SHARE
            while self._num_bytes - self._uncounted_bytes() > self.max_bytes or self._dictionary_bytes > most:
                _, evicted = self._entries.popitem(last=False)
                evicted.cache = None
                self._num_bytes -= evicted.num_bytes
                self._dictionary_bytes -= evicted.dictionary_bytes

    def _uncounted_bytes(self) -> int:
        """Return the bytes of the footer of the file opened last, unless it is too large."""
        last = next(reversed(self._entries.values()), None)
        footer_bytes = 0 if last is None else last.footer_bytes
        return footer_bytes if footer_bytes <= _FOOTER_SHARE * self.max_bytes else 0

    def info(self) -> CacheInfo:
        """Return the state of the cache."""
        with self._lock:
            return CacheInfo(self._num_bytes, self.max_bytes, len(self._entries), self._hits, self._misses)


@fork_safe_lru_cache(1)
def file_cache() -> ByteBudgetCache:
    """Return the cache of this process, which is empty in a forked child."""
    chosen = os.environ.get("NUMPARQ_CACHE_BYTES")
    if not chosen:
        return ByteBudgetCache(_DEFAULT_BYTES)
    if not chosen.isdecimal():
        raise ValueError(f"NUMPARQ_CACHE_BYTES must be a number of bytes, not {chosen!r}; 0 caches nothing")
    return ByteBudgetCache(int(chosen))


def cache_info() -> CacheInfo:
    """Return the state of the cache that holds large footers, page indexes and dictionaries between reads.

    Its budget is 64 MiB, or the bytes in the environment variable ``NUMPARQ_CACHE_BYTES``. The footer of the file
    opened last is held beyond it, up to four times the budget.

    Returns
    -------
    CacheInfo
        Bytes held and their limit, files held, hits and misses.

    Examples
    --------
    >>> import numparq
    >>> info = numparq.cache_info()
    >>> info.num_bytes <= info.max_bytes
    True
    """
    return file_cache().info()
