"""Pages in encodings that the decoders do not know themselves: made PLAIN first, as many at a time as a cache holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import NEED_ROOM
from ..kernels import alp_kernels, delta_kernels
from ..kernels.tables import (
    ALP,
    BYTE_ARRAY,
    BYTE_STREAM_SPLIT,
    C_FAULTS,
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
    PREFIXES_GO_ON,
    RLE_DICTIONARY,
    SLACK,
)
from ..kernels.value_section import STATE_FIELDS, STATE_NEEDED
from .pages import BATCH_BYTES, Pages, check_page
from .scratch import Scratch

# What these encodings may hold (Encodings.md). A page of another type is left to the decoders, which refuse it.
_TYPES = {
    DELTA_BINARY_PACKED: (INT32, INT64),
    DELTA_LENGTH_BYTE_ARRAY: (BYTE_ARRAY,),
    DELTA_BYTE_ARRAY: (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    BYTE_STREAM_SPLIT: (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY),
    ALP: (FLOAT, DOUBLE),
}
# By encoding and physical type, the kernels that make such a page PLAIN; 0: none do.
_NONE, _BY_DELTA_KERNELS, _BY_ALP_KERNELS = 0, 1, 2
_MAKERS = np.zeros((ALP + 2, FIXED_LEN_BYTE_ARRAY + 1), np.int64)
for _encoding, _physical in _TYPES.items():
    _MAKERS[_encoding, _physical] = _BY_ALP_KERNELS if _encoding == ALP else _BY_DELTA_KERNELS


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
    if (pages.chunks[:, C_FAULTS] & PREFIXES_GO_ON).any():
        from .continued import in_sequence

        yield from in_sequence(pages, first, last, decompressed, scratch)
    else:
        yield from each_by_itself(pages, first, last, decompressed, scratch)


def is_delta(encoding: int, physical: int) -> bool:
    """Tell whether pages of fixed-size values in an encoding are made PLAIN by the kernels of the delta encodings."""
    return encoding < len(_MAKERS) and encoding != DELTA_BYTE_ARRAY and _MAKERS[encoding, physical] == _BY_DELTA_KERNELS


def are_readable(pages: Pages, first: int, last: int) -> bool:
    """Tell whether the decoders read pages as they are, or refuse them."""
    encodings = pages.pages[first:last, P_ENCODING]
    return not ((encodings >= DELTA_BINARY_PACKED) & (encodings != RLE_DICTIONARY)).any()


def each_by_itself(
    pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch
) -> Iterator[Readable]:
    """Do what `readable` does, for pages that need no other."""
    if are_readable(pages, first, last):
        yield Readable(pages.pages, first, last, decompressed)
        return
    makers = _makers(pages, first, last)
    edges = [first, *((makers[1:] != makers[:-1]).nonzero()[0] + first + 1).tolist(), last]
    rewritten = Pages(pages.raw, pages.chunks, pages.pages.copy())  # the pages may have to be decoded once more
    for start, stop in pairwise(edges):
        if makers[start - first] == _NONE:
            yield Readable(pages.pages, start, stop, decompressed)
        else:
            make = _by_alp_kernels if makers[start - first] == _BY_ALP_KERNELS else by_delta_kernels
            yield from _made_plain(rewritten, start, stop, decompressed, scratch, make)


def _makers(pages: Pages, first: int, last: int) -> np.ndarray:
    """Tell of each page which kernels are to make it PLAIN."""
    table = pages.pages[first:last]
    types = pages.chunks[table[:, P_CHUNK], C_TYPE]
    data = (table[:, P_TYPE] == DATA_PAGE) | (table[:, P_TYPE] == DATA_PAGE_V2)
    return np.where(data, _MAKERS[table[:, P_ENCODING].clip(0, len(_MAKERS) - 1), types], _NONE)


# (pages, first, last, decompressed, scratch, out, state) -> the page behind the last one done, or a status.
Make = Callable[[Pages, int, int, np.ndarray, Scratch, np.ndarray, np.ndarray], int]


def _made_plain(
    pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch, make: Make
) -> Iterator[Readable]:
    """Make pages PLAIN, as many at a time as there is room for; their rows of the page table are rewritten."""
    room = BATCH_BYTES
    state = np.zeros(STATE_FIELDS, np.int64)
    while first < last:
        out = scratch.take("plain", room)
        status = make(pages, first, last, decompressed, scratch, out, state)
        if status == NEED_ROOM:
            room = int(state[STATE_NEEDED])
            continue
        done = check_page(status, state)
        yield Readable(pages.pages, first, done, out)
        first = done


def by_delta_kernels(
    pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch, out: np.ndarray, state: np.ndarray
) -> int:
    """Call the kernel that knows the delta encodings and BYTE_STREAM_SPLIT; arguments as in `Make`."""
    lengths = scratch.take("lengths", 8 * _most_strings(pages, first, last))
    return delta_kernels.decode_to_plain(
        pages.chunks.reshape(-1), pages.pages.reshape(-1), first, last, pages.raw, decompressed, lengths, out,
        len(out) - SLACK, state,
    )  # fmt: skip


def _by_alp_kernels(
    pages: Pages, first: int, last: int, decompressed: np.ndarray, scratch: Scratch, out: np.ndarray, state: np.ndarray
) -> int:
    return alp_kernels.decode_alp_to_plain(
        pages.chunks.reshape(-1), pages.pages.reshape(-1), first, last, pages.raw, decompressed, out,
        len(out) - SLACK, state,
    )  # fmt: skip


def _most_strings(pages: Pages, first: int, last: int) -> int:
    """Count the values of the page of strings that has the most."""
    table = pages.pages[first:last]
    encodings = table[:, P_ENCODING]
    strings = (encodings == DELTA_LENGTH_BYTE_ARRAY) | (encodings == DELTA_BYTE_ARRAY)
    return int(table[strings, P_NUM_VALUES].max(initial=0))
