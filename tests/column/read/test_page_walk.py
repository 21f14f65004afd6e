"""A page walk: what it passes over after damage, and in gaps."""

from __future__ import annotations

import pytest

from numparq.column.read.page_walk import PageEvent, walk_chunk
from numparq.errors import CorruptPageError

PAGES = {10: 20, 20: 35, 50: 60, 60: 80}
ERROR = CorruptPageError("damaged")


@pytest.mark.parametrize(
    ("locations", "walked"),
    [
        ([], [(10, 20), (20, 35), (35, 80)]),
        ([10, 20, 50, 60], [(10, 20), (20, 35), (35, 50), (50, 60), (60, 80)]),
        ([10, 20, 35], [(10, 20), (20, 35), (35, 80)]),
        ([60], [(10, 20), (20, 35), (35, 60), (60, 80)]),
    ],
)
@pytest.mark.parametrize("error", [ERROR, None])
def test_walk_goes_on_at_the_next_location(locations, walked, error):
    ordinals = []

    def read_page(position: int, ordinal: int) -> PageEvent:
        ordinals.append(ordinal)
        if position in PAGES:
            return PageEvent(position, str(position), PAGES[position])
        return PageEvent(position, error=error)

    events = list(walk_chunk(read_page, 10, 80, locations))
    assert [event[::2] for event in events] == walked
    assert [event.page for event in events] == [str(start) if start in PAGES else None for start, _ in walked]
    assert [event.error for event in events] == [None if event.page else error for event in events]
    assert ordinals == list(range(len(walked)))


def test_empty_chunk_has_no_pages():
    assert list(walk_chunk(lambda position, ordinal: PageEvent(position), 10, 10, [10])) == []
