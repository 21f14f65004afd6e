"""Walk over the pages of a column chunk that goes on after damage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from numparq.errors import ParquetError


class PageEvent(NamedTuple):
    """Bytes `start` to `end` (exclusive) of a walk: a page, or without one what is passed over.

    That is a page with a damaged header, whose `error` is None if it is reported elsewhere, or a gap between pages.
    """

    start: int
    page: Any = None
    end: int = 0
    error: ParquetError | None = None


def walk_chunk(
    read_page: Callable[[int, int], PageEvent], start: int, end: int, locations: Sequence[int] = ()
) -> Iterator[PageEvent]:
    """Yield the pages from `start` to `end` (exclusive), and what is passed over between them.

    `read_page` reads the page at a position, given its ordinal. From a damaged header, or a gap, the walk goes on at
    the next of `locations`, which ascend, or to the end.
    """
    position, ordinal = start, 0
    while position < end:
        event = read_page(position, ordinal)
        if event.page is None:
            following = bisect_right(locations, position)
            event = event._replace(end=locations[following] if following < len(locations) else end)
        yield event
        position, ordinal = event.end, ordinal + 1
