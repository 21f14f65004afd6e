"""Transcodes pages to PLAIN with the kernel, as `numparq.column.read.transcode` does, in small buffers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.transcode import STATE_FIELDS, STATE_NEEDED
from numparq.kernels.status import NEED_ROOM
from support.oracles import delta


class TranscodeFailed(Exception):
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


def transcoded_parts(run, first: int, last: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield batches of pages with their decompressed buffers; rewrites the page table of `run`.

    Raises TranscodeFailed.
    """
    encodings = delta.ENCODINGS.get(int(run.chunks[t.C_TYPE]), ())
    start = first
    while start < last:
        maker = _maker(run.pages[start], encodings)
        stop = start
        while stop < last and _maker(run.pages[stop], encodings) == maker:
            stop += 1
        if maker:
            yield from _made_plain(run, start, stop, maker)
        else:
            yield start, stop, run.decompressed
        start = stop


def _maker(page: np.ndarray, encodings) -> str:
    """Return the name of the kernel that transcodes a page to PLAIN."""
    encoding = int(page[t.P_ENCODING])
    if page[t.P_TYPE] == enums.DICTIONARY_PAGE or encoding not in encodings:
        return ""
    return "transcode_alp_pages" if encoding == enums.ALP else "transcode_delta_pages"


def _made_plain(run, first: int, last: int, maker: str) -> Iterator[tuple[int, int, np.ndarray]]:
    lengths = run.buffer(8 * int(run.pages[first:last, t.P_NUM_VALUES].max()))
    state = run.buffer(STATE_FIELDS, "i8")
    room = int(run.rng.choice([0, 10, 300, 5000]))
    while first < last:
        out = run.buffer(room + t.SLACK)
        buffers = (run.raw, run.decompressed, *((lengths,) if maker == "transcode_delta_pages" else ()), out)
        status = getattr(run.engine, maker)(run.chunks, run.pages.reshape(-1), first, last, *buffers, room, state)
        if status == NEED_ROOM:
            assert state[STATE_NEEDED] > room
            room = int(state[STATE_NEEDED])
            continue
        if status < 0:
            raise TranscodeFailed(status, int(state[0]))
        assert first < status <= last
        yield first, status, out
        first = status
