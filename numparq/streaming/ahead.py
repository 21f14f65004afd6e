"""Units read ahead: the next one is decoded while the one before is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

__all__ = ["ReadAhead"]

_Item = TypeVar("_Item")
_END: Any = object()


class ReadAhead(Generic[_Item]):
    """An iterator whose next item is made on a thread of its own as soon as the one before has been taken.

    Parameters
    ----------
    items : iterator
        Makes the items; used by one thread at a time.

    Notes
    -----
    There is never more than one item waiting or being made. Nothing of it refers to who iterates: an iterator that is
    let go of takes its thread along.
    """

    def __init__(self, items: Iterator[_Item]) -> None:
        self._items = items
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "numparq-ahead")
        self._next: Future[_Item] | None = None

    def __iter__(self) -> ReadAhead[_Item]:
        return self

    def __next__(self) -> _Item:
        if self._pool is None:
            raise StopIteration
        waiting, self._next = self._next or self._begun(self._pool), None
        item = waiting.result()
        if item is _END:
            self.close()
            raise StopIteration
        self._next = self._begun(self._pool)
        return item

    def _begun(self, pool: ThreadPoolExecutor) -> Future[_Item]:
        return pool.submit(next, self._items, _END)

    def close(self) -> None:
        """Stop: what is being made is waited for, and thrown away."""
        pool, self._pool, self._next = self._pool, None, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            if hasattr(self._items, "close"):
                self._items.close()

    def __del__(self) -> None:
        if self._pool is not None:  # not waited for: who knows in which thread this is
            self._pool.shutdown(wait=False, cancel_futures=True)
