"""Decompress pages, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numparq.column.encodings import TRANSCODERS
from numparq.compression.codecs import decompressor
from numparq.errors import ParquetError
from numparq.kernels.decode.scratch_layout import T_DECOMPRESSED, T_DICTIONARY, T_ITEM, T_PAGE, T_VALUES, TOTAL_FIELDS
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.tables import (
    B_FIRST,
    B_SNAPPY,
    B_TRANSCODER,
    BATCH_FIELDS,
    C_CODEC,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_DEFINITION_BYTES,
    P_IS_COMPRESSED,
    P_REPETITION_BYTES,
    P_SCRATCH,
    P_UNCOMPRESSED,
)

from .pages import PageFailure

if TYPE_CHECKING:
    from numparq.column.scratch import Scratch

    from .pages import Pages

# Decompressed bytes of a batch: one call serves many small pages, a larger page is a batch of its own.
BATCH_BYTES = 2 << 20


_TRANSCODERS = TRANSCODERS.reshape(-1)

PageBatch = tuple[int, int, int, int]


class PageBatches:
    """Pages divided into batches, and the scratch sizes they need; lays out P_SCRATCH in the page table.

    PageFailure if a header claims more than its page can hold.

    Attributes
    ----------
    batches : list of (int, int, int, int)
        First page, exclusive last page, 1 if our Snappy kernel decompresses them all in one call, and the transcoder
        of them all.
    decompressed, dictionary : int
        Bytes of the largest batch decompressed, and of all dictionaries converted.
    values, item : int
        Values of the largest data page, and bytes of the largest value.
    """

    def __init__(self, pages: Pages, scratch: Scratch) -> None:
        count = len(pages.pages)
        batches = np.empty((count + 1, BATCH_FIELDS), np.int64)
        totals = np.empty(TOTAL_FIELDS, np.int64)
        status = kernels.lay_out_scratch(
            pages.chunks.reshape(-1),
            pages.pages.reshape(-1),
            count,
            min(BATCH_BYTES, scratch.window_bytes // 2),
            _TRANSCODERS,
            batches.reshape(-1),
            totals,
        )
        if status < 0:
            raise PageFailure(int(totals[T_PAGE]), status)
        firsts = batches[: status + 1, B_FIRST].tolist()
        flags = batches[:status, B_SNAPPY].tolist(), batches[:status, B_TRANSCODER].tolist()
        self.batches: list[PageBatch] = list(zip(firsts[:-1], firsts[1:], *flags, strict=True))
        numbers = totals.tolist()
        self.decompressed: int = numbers[T_DECOMPRESSED]
        self.dictionary: int = numbers[T_DICTIONARY]
        self.values: int = numbers[T_VALUES]
        self.item: int = numbers[T_ITEM]


def decompress_pages(pages: Pages, batch: PageBatch, out: np.ndarray) -> None:
    """Decompress the pages of a batch into a scratch buffer, each to its P_SCRATCH.

    Raises PageFailure for damaged data or an unsupported codec.
    """
    first, last, by_kernel, _ = batch
    if by_kernel:
        state = np.zeros(1, np.int64)
        status = kernels.decompress_snappy_pages(pages.pages.reshape(-1), first, last, pages.raw, out, state)
        if status < 0:
            raise PageFailure(int(state[0]), status)
        return
    source, target = pages.raw.data, out.data
    for number in range(first, last):
        page = pages.pages[number].tolist()
        if not page[P_IS_COMPRESSED]:
            continue
        levels = page[P_REPETITION_BYTES] + page[P_DEFINITION_BYTES]
        start, end = page[P_BODY] + levels, page[P_BODY] + page[P_COMPRESSED]
        size = page[P_UNCOMPRESSED] - levels
        try:
            function = decompressor(int(pages.chunks[page[P_CHUNK], C_CODEC]))
            function(source[start:end], target[page[P_SCRATCH] : page[P_SCRATCH] + size])
        except ParquetError as error:
            raise PageFailure(number, error=error) from None
