"""Pages in encodings that the decoders do not know themselves: made PLAIN first, as many at a time as a cache holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import NEED_ROOM
from ..kernels import delta_kernels
from ..kernels.tables import (
    BYTE_ARRAY,
    BYTE_STREAM_SPLIT,
    C_TYPE,
    DATA_PAGE,
    DATA_PAGE_V2,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    P_CHUNK,
    P_ENCODING,
    P_NUM_VALUES,
    P_TYPE,
    RLE_DICTIONARY,
    SLACK,
)
from ..kernels.to_plain import STATE_FIELDS, STATE_NEEDED
from .pages import BATCH_BYTES, Pages, check_page
from .scratch import Scratch

# What these encodings may hold (Encodings.md). A page of another type is left to the decoders, which refuse it.
_TYPES = {
    DELTA_BINARY_PACKED: (INT32, INT64),
    DELTA_LENGTH_BYTE_ARRAY: (BYTE_ARRAY,),
    DELTA_BYTE_ARRAY: (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    BYTE_STREAM_SPLIT: (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY),
}
_IS_READ = np.zeros((BYTE_STREAM_SPLIT + 2, FIXED_LEN_BYTE_ARRAY + 1), bool)
for _encoding, _physical in _TYPES.items():
    _IS_READ[_encoding, _physical] = True


@dataclass(frozen=True)
class Readable:
    """Pages that the decoders can read.

    Parameters
    ----------
    table : int64 array, (pages, PAGE_FIELDS)
        The page table that they are in.
    first, last : int
        Their rows in it.
    decompressed : uint8 array
        What P_SCRATCH of these rows is a position in.
    """

    table: np.ndarray
    first: int
    last: int
    decompressed: np.ndarray


def readable(
    pages: Pages, batch: tuple[int, int, bool], decompressed: np.ndarray, scratch: Scratch
) -> Iterator[Readable]:
    """Give the pages of a batch, in order, in encodings that the decoders read.

    Parameters
    ----------
    pages : Pages
        The pages; their table is not changed.
    batch : (int, int, bool)
        As in `Placement.batches`; it has been decompressed.
    decompressed : uint8 array
        The decompressed pages.
    scratch : Scratch
        This thread's buffers; what one item lies in is used again for the next.

    Raises
    ------
    PageFailure
        For values that are damaged.
    """
    first, last, _ = batch
    encodings = pages.pages[first:last, P_ENCODING]
    if not ((encodings >= DELTA_BINARY_PACKED) & (encodings != RLE_DICTIONARY)).any():
        yield Readable(pages.pages, first, last, decompressed)
        return
    foreign = _foreign(pages, first, last)
    edges = [first, *(np.flatnonzero(foreign[1:] != foreign[:-1]) + first + 1).tolist(), last]
    rewritten = Pages(pages.raw, pages.chunks, pages.pages.copy())  # the pages may have to be decoded once more
    for start, stop in pairwise(edges):
        if foreign[start - first]:
            yield from _made_plain(rewritten, start, stop, decompressed, scratch)
        else:
            yield Readable(pages.pages, start, stop, decompressed)


def _foreign(pages: Pages, first: int, last: int) -> np.ndarray:
    """Tell of each page whether it has to be made PLAIN."""
    table = pages.pages[first:last]
    types = pages.chunks[table[:, P_CHUNK], C_TYPE]
    data = (table[:, P_TYPE] == DATA_PAGE) | (table[:, P_TYPE] == DATA_PAGE_V2)
    known = _IS_READ[table[:, P_ENCODING].clip(0, len(_IS_READ) - 1), types]
    return data & known


def _made_plain(pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch) -> Iterator[Readable]:
    """Make pages PLAIN, as many at a time as there is room for; their rows of the page table are rewritten."""
    lengths = scratch.take("lengths", 8 * _most_strings(pages, first, last))
    room = BATCH_BYTES
    state = np.zeros(STATE_FIELDS, np.int64)
    while first < last:
        out = scratch.take("plain", room)
        status = delta_kernels.decode_to_plain(
            pages.chunks.reshape(-1), pages.pages.reshape(-1), first, last, pages.raw, decompressed, lengths, out,
            len(out) - SLACK, state,
        )  # fmt: skip
        if status == NEED_ROOM:
            room = int(state[STATE_NEEDED])
            continue
        done = check_page(status, state)
        yield Readable(pages.pages, first, done, out)
        first = done


def _most_strings(pages: Pages, first: int, last: int) -> int:
    """Count the values of the page of strings that has the most."""
    table = pages.pages[first:last]
    encodings = table[:, P_ENCODING]
    strings = (encodings == DELTA_LENGTH_BYTE_ARRAY) | (encodings == DELTA_BYTE_ARRAY)
    return int(table[strings, P_NUM_VALUES].max(initial=0))
