"""Values of few rows, here and there: no others are decoded. Of many it is quicker to decode all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import BAD_COUNT, NEED_ROOM
from ..kernels import kernels
from ..kernels.binary import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from ..kernels.partial import STATE_FIELDS, STATE_TAKEN
from ..kernels.tables import C_MAX_DEFINITION, SLACK
from .binary import grown
from .buffer import BinaryPiece
from .fixed import FixedOutput
from .pages import PageFailure, Pages, Placement, check_page, decompress
from .plain import Readable, are_readable, readable
from .scratch import Scratch, allocate

__all__ = ["is_scattered", "take_fixed", "take_strings"]

# Rows are scattered where one in so many is wanted, or fewer.
FEW = 8
# Room for strings at least: where there is too little, a page is begun again.
LEAST_BYTES = 64 << 10


def is_scattered(count: int, num_rows: int) -> bool:
    """Tell whether so few rows are wanted that they are better taken one by one."""
    return count * FEW <= num_rows


def take_fixed(
    pages: Pages, places: np.ndarray, output: FixedOutput, out: int, row: int, dictionary: np.ndarray, scratch: Scratch
) -> None:
    """Decode the values of a fixed size of some rows into the output; null counts are added up in the chunk table.

    Parameters
    ----------
    pages : Pages
        Data pages of one chunk, not of BOOLEAN, as a `Gathered` has them.
    places : int32 array
        The rows, in order: places among those that the pages would be decoded to.
    output : FixedOutput
        Where the values go.
    out, row : int
        The positions of the first of them, in its bytes and in its mask.
    dictionary : uint8 array
        The dictionary, decoded.
    scratch : Scratch
        This thread's buffers.

    Raises
    ------
    PageFailure
    """
    placement = Placement(pages)
    levels, values, state = _room(placement, places, scratch)
    for part, is_stored in _parts(pages, placement, scratch):
        status = kernels.take_fixed_pages(
            pages.chunks.reshape(-1), part.table.reshape(-1), part.first, part.last, pages.raw, part.decompressed,
            is_stored, dictionary, levels, places, len(places), values, output.mask, row, output.out, out, state,
        )  # fmt: skip
        check_page(status, state)
    _check_all(pages, places, state)


def take_strings(pages: Pages, places: np.ndarray, size_hint: int, scratch: Scratch) -> BinaryPiece:
    """Decode the strings of some rows; nulls are added up in the chunk table.

    Parameters
    ----------
    pages, places, scratch
        As for `take_fixed`; none of the pages has dictionary indices.
    size_hint : int
        Bytes that the strings may take together; only a guess.

    Raises
    ------
    PageFailure
    """
    count = len(places)
    placement = Placement(pages)
    levels, values, state = _room(placement, places, scratch)
    offsets, validity = allocate(count + 1, "i8"), allocate(count)
    offsets[0] = 0
    data = allocate(max(size_hint, LEAST_BYTES) + SLACK)
    for part, is_stored in _parts(pages, placement, scratch):
        first = part.first
        while True:
            status = kernels.take_string_pages(
                pages.chunks.reshape(-1), part.table.reshape(-1), first, part.last, pages.raw, part.decompressed,
                is_stored, levels, places, count, values, validity, offsets, data, len(data) - SLACK, state,
            )  # fmt: skip
            if status != NEED_ROOM:
                break
            first = int(state[STATE_PAGE])
            data = grown(data, int(state[STATE_BYTES]), int(state[STATE_NEEDED]))
        check_page(status, state)
    _check_all(pages, places, state)
    has_nulls = bool(pages.chunks[0, C_MAX_DEFINITION]) and not validity.all()
    return BinaryPiece(offsets, data, validity if has_nulls else None)


def _room(placement: Placement, places: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the memory that the kernels work in: levels of a page, numbers of values, and their state."""
    size = 8 * len(places)
    values = scratch.take("numbers of values", size)[:size].view(np.int64)
    return scratch.take("levels", placement.values), values, np.zeros(STATE_FIELDS, np.int64)


def _parts(pages: Pages, placement: Placement, scratch: Scratch) -> Iterator[tuple[Readable, int]]:
    """Give the pages in order, and whether the kernels are to decompress them, as far as they have to be."""
    decompressed = scratch.take("decompressed", placement.decompressed)
    for batch in placement.batches:
        first, last, by_kernel = batch
        if by_kernel and are_readable(pages, first, last):
            yield Readable(pages.pages, first, last, decompressed), 1
            continue
        decompress(pages, batch, decompressed)
        for part in readable(pages, batch, decompressed, scratch):
            yield part, 0


def _check_all(pages: Pages, places: np.ndarray, state: np.ndarray) -> None:
    """Refuse pages that do not have all the rows."""
    if int(state[STATE_TAKEN]) != len(places):
        raise PageFailure(len(pages.pages) - 1, BAD_COUNT)
