"""Column chunks of values of a fixed size, decoded into the rows of a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import kernels
from ..kernels.fixed import STATE_FIELDS
from .pages import Pages, Placement, check_page, decompress
from .plain import readable
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


NO_MASK = np.empty(0, np.uint8)


def decode_fixed(
    pages: Pages, placement: Placement, output: FixedOutput, dictionary: np.ndarray, scratch: Scratch
) -> None:
    """Decompress and decode pages into the output; null counts are added up in the chunk table.

    Parameters
    ----------
    pages : Pages
        Pages of chunks that share the output.
    placement : Placement
        Of these pages.
    output : FixedOutput
        Where the values go.
    dictionary : uint8 array
        The dictionaries decoded so far, with room for those among the pages.
    scratch : Scratch
        This thread's buffers.

    Raises
    ------
    PageFailure
    """
    decompressed = scratch.take("decompressed", placement.decompressed)
    dense = scratch.take("dense", placement.values * placement.item)
    validity = scratch.take("levels", placement.values)
    state = np.zeros(STATE_FIELDS, np.int64)
    for batch in placement.batches:
        decompress(pages, batch, decompressed)
        for part in readable(pages, batch, decompressed, scratch):
            status = kernels.decode_fixed_pages(
                pages.chunks.reshape(-1), part.table.reshape(-1), part.first, part.last, pages.raw, part.decompressed,
                dictionary, dense, validity, output.mask, output.out, state,
            )  # fmt: skip
            check_page(status, state)
