"""Column chunks of values of a fixed size, decoded into the rows of a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import CorruptPageError
from ..kernels import kernels
from ..kernels.tables import (
    BOOLEAN,
    C_CONVERSION,
    C_DICTIONARY,
    C_ITEM_SIZE,
    C_TYPE,
    C_TYPE_LENGTH,
    CODES,
    DICTIONARY_PAGE,
    P_CHUNK,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)
from .pages import PageFailure, Pages, batches, check_page, decompress, largest
from .scratch import Scratch


@dataclass(frozen=True)
class FixedOutput:
    """Where values go.

    Parameters
    ----------
    out : uint8 array
        The bytes of a whole block; C_OUT is the position in it of a chunk's first wanted row.
    mask : uint8 array
        One byte a value of the block, for columns that keep their validity; empty where none does.
    """

    out: np.ndarray
    mask: np.ndarray


def decode_fixed(pages: Pages, output: FixedOutput, dictionary: np.ndarray, scratch: Scratch) -> None:
    """Decompress and decode pages into the output; null counts are added up in the chunk table.

    Parameters
    ----------
    pages : Pages
        Pages of chunks that share the output.
    output : FixedOutput
        Where the values go.
    dictionary : uint8 array
        Room for the dictionaries, as `place_dictionaries` asked for.
    scratch : Scratch
        This thread's buffers.

    Raises
    ------
    PageFailure
    """
    most = largest(pages)
    chunks = pages.chunks
    wide = int(np.maximum(chunks[:, C_ITEM_SIZE], chunks[:, C_TYPE_LENGTH]).max())
    dense = scratch.take("dense", most * wide)
    validity = scratch.take("levels", most)
    state = np.zeros(5, np.int64)
    for first, last in batches(pages):
        decompressed = decompress(pages, first, last, scratch)
        status = kernels.decode_fixed_pages(
            chunks.reshape(-1), pages.pages.reshape(-1), first, last, pages.raw, decompressed, dictionary, dense, validity,
            output.mask, output.out, state,
        )  # fmt: skip
        check_page(status, state)


def place_dictionaries(pages: Pages, scratch: Scratch) -> np.ndarray:
    """Settle where in the dictionary buffer the values of each chunk's dictionary go, and give that buffer.

    Raises
    ------
    PageFailure
        For a dictionary page that is too short for the number of values in its header.
    """
    table, chunks = pages.pages, pages.chunks
    rows = np.flatnonzero(table[:, P_TYPE] == DICTIONARY_PAGE)
    if not len(rows):
        return scratch.take("dictionary", 0)
    owners = table[rows, P_CHUNK]
    counts = table[rows, P_NUM_VALUES]
    # A BYTE_ARRAY value (whose codes alone are wanted) takes at least the four bytes of its length; a boolean a bit.
    stored = np.where(chunks[owners, C_CONVERSION] == CODES, np.maximum(chunks[owners, C_TYPE_LENGTH], 4),
                      chunks[owners, C_TYPE_LENGTH])  # fmt: skip
    room = table[rows, P_UNCOMPRESSED]
    fits = np.where(chunks[owners, C_TYPE] == BOOLEAN, counts <= 8 * room, counts * stored <= room)
    if not fits.all():
        page = int(rows[np.argmin(fits)])
        raise PageFailure(page, error=CorruptPageError("the dictionary page is too short for the values that it claims"))
    sizes = (counts * chunks[owners, C_ITEM_SIZE] + 2 * SLACK - 1) & -SLACK
    ends = np.cumsum(sizes)
    chunks[owners, C_DICTIONARY] = ends - sizes
    return scratch.take("dictionary", int(ends[-1]))
