"""Pages of DELTA_BYTE_ARRAY whose strings go on from one page to the next (PARQUET-246), against the specification.

What it says of the first string of a page is that it has no prefix. So these pages are read one after the other, the
ones in front of the rows that are wanted, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import NEED_ROOM
from ..kernels.tables import (
    C_FAULTS,
    C_ROW_START,
    C_ROW_STOP,
    DATA_PAGE,
    DATA_PAGE_V2,
    DELTA_BYTE_ARRAY,
    DICTIONARY_PAGE,
    P_CHUNK,
    P_ENCODING,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PREFIXES_GO_ON,
)
from ..kernels.value_section import STATE_FIELDS, STATE_LAST, STATE_LAST_SIZE, STATE_NEEDED
from .pages import BATCH_BYTES, Pages, check_page
from .plain import Readable, by_delta_kernels, each_by_itself
from .scratch import Scratch


def in_sequence(pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch) -> Iterator[Readable]:
    """Do what `readable` does, for pages whose strings may go on.

    What is kept of a page is the last string, by where the next page begins: a window may be decoded more than once.
    """
    rewritten = Pages(pages.raw, pages.chunks, pages.pages.copy())
    state = np.zeros(STATE_FIELDS, np.int64)
    for number in range(first, last):
        page = pages.pages[number]
        chunk, begin, end = int(page[P_CHUNK]), int(page[P_ROW]), int(page[P_ROW] + page[P_NUM_VALUES])
        facts = pages.chunks[chunk]
        wanted = page[P_TYPE] == DICTIONARY_PAGE or (begin < facts[C_ROW_STOP] and end > facts[C_ROW_START])
        if _goes_on(page, facts):
            before = scratch.strings.get((chunk, begin), b"")
            part = _continued(rewritten, number, decompressed, scratch, before, state)
            kept = part.decompressed[state[STATE_LAST] :][: state[STATE_LAST_SIZE]].tobytes()
            scratch.strings[chunk, end] = kept
            if wanted:
                yield part
        elif wanted:
            yield from each_by_itself(pages, number, number + 1, decompressed, scratch)


def _goes_on(page: np.ndarray, chunk: np.ndarray) -> bool:
    return bool(
        page[P_ENCODING] == DELTA_BYTE_ARRAY
        and page[P_TYPE] in (DATA_PAGE, DATA_PAGE_V2)
        and chunk[C_FAULTS] & PREFIXES_GO_ON  # set of columns of strings only
    )


def _continued(
    pages: Pages, number: int, decompressed: np.ndarray, scratch: Scratch, before: bytes, state: np.ndarray
) -> Readable:
    """Make a page PLAIN whose first string may begin as `before`; `state` then says where the last one is."""
    room = BATCH_BYTES + len(before)
    while True:
        out = scratch.take("plain", room)
        out[: len(before)] = np.frombuffer(before, np.uint8)
        state[STATE_LAST_SIZE] = len(before)
        status = by_delta_kernels(pages, number, number + 1, decompressed, scratch, out, state)
        if status != NEED_ROOM:
            check_page(status, state)
            return Readable(pages.pages, number, number + 1, out)
        room = int(state[STATE_NEEDED])
