"""Making pages PLAIN by the kernel that is there for it, as `numparq.column.plain` does, with little room."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from twins import delta

from numparq.errors import NEED_ROOM
from numparq.kernels import tables as t
from numparq.kernels.value_section import STATE_FIELDS, STATE_NEEDED


class NotPlain(Exception):
    """A page that could not be made PLAIN.

    Parameters
    ----------
    status, page : int
        What the kernel said, and about which page.
    """

    def __init__(self, status: int, page: int) -> None:
        super().__init__(status, page)
        self.status = status
        self.page = page


def parts(run, first: int, last: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Give the pages of a batch in parts, each with the buffer that it lies decompressed in.

    `run` is one of `driving.decoding`, whose page table is rewritten. Raises NotPlain.
    """
    encodings = delta.ENCODINGS.get(int(run.chunks[t.C_TYPE]), ())
    start = first
    while start < last:
        foreign = _is_foreign(run.pages[start], encodings)
        stop = start
        while stop < last and _is_foreign(run.pages[stop], encodings) == foreign:
            stop += 1
        if foreign:
            yield from _made_plain(run, start, stop)
        else:
            yield start, stop, run.decompressed
        start = stop


def _is_foreign(page: np.ndarray, encodings) -> bool:
    return page[t.P_TYPE] != t.DICTIONARY_PAGE and int(page[t.P_ENCODING]) in encodings


def _made_plain(run, first: int, last: int) -> Iterator[tuple[int, int, np.ndarray]]:
    lengths = run.buffer(8 * int(run.pages[first:last, t.P_NUM_VALUES].max()))
    state = run.buffer(STATE_FIELDS, "i8")
    room = int(run.rng.choice([0, 10, 300, 5000]))
    while first < last:
        out = run.buffer(room + t.SLACK)
        status = run.engine.decode_to_plain(
            run.chunks, run.pages.reshape(-1), first, last, run.raw, run.decompressed, lengths, out, room, state
        )
        if status == NEED_ROOM:
            assert state[STATE_NEEDED] > room
            room = int(state[STATE_NEEDED])
            continue
        if status < 0:
            raise NotPlain(status, int(state[0]))
        assert first < status <= last
        yield first, status, out
        first = status
