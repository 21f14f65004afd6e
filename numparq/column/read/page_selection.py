"""Page selections: pages laid out for the selected rows, few of these decoded one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.scratch import Scratch, allocate
from numparq.kernels import kernels, selection_kernels
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.selection.lazy_pages import STATE_FIELDS, STATE_TAKEN
from numparq.kernels.selection.rows import K_FIELDS, K_PAGE, K_START, K_STOP, SELECTED_PAGES, SELECTED_ROWS
from numparq.kernels.status import BAD_COUNT, NEED_ROOM
from numparq.kernels.tables import (
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_VALIDITY,
    P_CHUNK,
    P_NUM_VALUES,
    P_ROW,
    SLACK,
)

from .decode import grow_buffer
from .decompress import PageBatches, decompress_pages
from .output import FixedOutput
from .pages import PageFailure, Pages, check_page
from .take import ValueRanges, ValueSelection
from .transcode import DecodablePages, are_decodable, transcode

__all__ = [
    "PageSelection",
    "decode_sparse_fixed",
    "decode_sparse_strings",
    "is_sparse",
    "select_page_run",
    "select_pages",
]

# Rows are scattered where one in so many is wanted, or fewer.
SPARSE_RATIO = 8
# Room for strings at least: where there is too little, a page is begun again.
MIN_STRING_BYTES = 64 << 10


def is_sparse(count: int, num_rows: int) -> bool:
    """Tell whether so few rows are wanted that they are better taken one by one."""
    return count * SPARSE_RATIO <= num_rows


def decode_sparse_fixed(
    pages: Pages, indices: np.ndarray, output: FixedOutput, out: int, row: int, dictionary: np.ndarray, scratch: Scratch
) -> None:
    """Decode the values of a fixed size of some rows into the output; null counts are added up in the chunk table.

    Parameters
    ----------
    pages : Pages
        Data pages of one chunk, not of BOOLEAN, as a `Gathered` has them.
    indices : int32 array
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
    placement = PageBatches(pages)
    levels, values, state = _room(placement, indices, scratch)
    for part, is_stored in _parts(pages, placement, scratch):
        status = kernels.take_fixed_pages(
            pages.chunks.reshape(-1),
            part.table.reshape(-1),
            part.first,
            part.last,
            pages.raw,
            part.decompressed,
            is_stored,
            dictionary,
            levels,
            indices,
            len(indices),
            values,
            output.mask,
            row,
            output.out,
            out,
            state,
        )
        check_page(status, state)
    _check_all(pages, indices, state)


def decode_sparse_strings(pages: Pages, indices: np.ndarray, size_hint: int, scratch: Scratch) -> BinaryArray:
    """Decode the strings of some rows; nulls are added up in the chunk table.

    Parameters
    ----------
    pages, places, scratch
        As for `decode_sparse_fixed`; none of the pages has dictionary indices.
    size_hint : int
        Bytes that the strings may take together; only a guess.

    Raises
    ------
    PageFailure
    """
    count = len(indices)
    placement = PageBatches(pages)
    levels, values, state = _room(placement, indices, scratch)
    offsets, validity = allocate(count + 1, "i8"), allocate(count)
    offsets[0] = 0
    data = allocate(max(size_hint, MIN_STRING_BYTES) + SLACK)
    for part, is_stored in _parts(pages, placement, scratch):
        first = part.first
        while True:
            status = kernels.take_binary_pages(
                pages.chunks.reshape(-1),
                part.table.reshape(-1),
                first,
                part.last,
                pages.raw,
                part.decompressed,
                is_stored,
                levels,
                indices,
                count,
                values,
                validity,
                offsets,
                data,
                len(data) - SLACK,
                state,
            )
            if status != NEED_ROOM:
                break
            first = int(state[STATE_PAGE])
            data = grow_buffer(data, int(state[STATE_BYTES]), int(state[STATE_NEEDED]))
        check_page(status, state)
    _check_all(pages, indices, state)
    has_nulls = bool(pages.chunks[0, C_MAX_DEFINITION]) and not validity.all()
    return BinaryArray(offsets, data, validity if has_nulls else None)


def _room(placement: PageBatches, places: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the memory that the kernels work in: levels of a page, numbers of values, and their state."""
    size = 8 * len(places)
    values = scratch.buffer("numbers of values", size)[:size].view(np.int64)
    return scratch.buffer("levels", placement.values), values, np.zeros(STATE_FIELDS, np.int64)


def _parts(pages: Pages, placement: PageBatches, scratch: Scratch) -> Iterator[tuple[DecodablePages, int]]:
    """Give the pages in order, and whether the kernels are to decompress them, as far as they have to be."""
    decompressed = scratch.buffer("decompressed", placement.decompressed)
    for batch in placement.batches:
        first, last, by_kernel = batch
        if by_kernel and are_decodable(pages, first, last):
            yield DecodablePages(pages.pages, first, last, decompressed), 1
            continue
        decompress_pages(pages, batch, decompressed)
        for part in transcode(pages, batch, decompressed, scratch):
            yield part, 0


def _check_all(pages: Pages, places: np.ndarray, state: np.ndarray) -> None:
    """Refuse pages that do not have all the rows."""
    if int(state[STATE_TAKEN]) != len(places):
        raise PageFailure(len(pages.pages) - 1, BAD_COUNT)


@dataclass(frozen=True)
class PageSelection:
    """Pages with wanted rows, set out to be decoded one behind the other, each from its first to its last such row.

    Parameters
    ----------
    pages : Pages
        The C_OUT and C_MASK of each row of the chunk table, which may stand for one page, count from the first row
        decoded.
    selection : ValueSelection
        Which of the rows decoded are wanted.
    num_decoded : int
        How many rows are decoded.
    """

    pages: Pages
    selection: ValueSelection
    num_decoded: int

    @property
    def is_dense(self) -> bool:
        """Whether all that is decoded is wanted."""
        return self.num_decoded == self.selection.count

    def with_output(self, out: int, mask: int) -> Pages:
        """Give the pages, to be decoded from the positions `out` and `mask` of an output on."""
        chunks = self.pages.chunks.copy()
        chunks[:, C_OUT] += out
        chunks[:, C_VALIDITY] += mask
        return Pages(self.pages.raw, chunks, self.pages.pages)


def select_pages(pages: Pages, rows: np.ndarray) -> PageSelection:
    """Set out the data pages of a flat chunk for the rows wanted of them.

    Parameters
    ----------
    pages : Pages
        Data pages of one chunk, in order; their positions in the page table are not changed.
    rows : int64 array, (ranges, 2)
        The rows wanted, counted as in P_ROW.

    Returns
    -------
    PageSelection
    """
    table = pages.pages
    count = len(table)
    if count:  # only the ranges that meet these pages
        first = int(rows[:, 1].searchsorted(table[0, P_ROW], side="right"))
        last = int(rows[:, 0].searchsorted(table[-1, P_ROW] + table[-1, P_NUM_VALUES], side="left"))
        rows = np.ascontiguousarray(rows[first : max(first, last)])
    kept = np.empty((count, K_FIELDS), np.int64)
    spans = np.empty((len(rows) + count, 2), np.int64)
    state = np.zeros(2, np.int64)
    found = selection_kernels.select_pages_of_ranges(
        np.ascontiguousarray(table).reshape(-1),
        0,
        count,
        rows.reshape(-1),
        len(rows),
        kept.reshape(-1),
        spans.reshape(-1),
        state,
    )
    kept, spans = kept[: int(state[SELECTED_PAGES])], spans[:found]
    chunks = pages.chunks[:1].repeat(len(kept), axis=0)
    lengths = kept[:, K_STOP] - kept[:, K_START]
    places = lengths.cumsum() - lengths
    chunks[:, C_ROW_START], chunks[:, C_ROW_STOP] = kept[:, K_START], kept[:, K_STOP]
    chunks[:, C_OUT], chunks[:, C_VALIDITY] = places * chunks[:, C_ITEM_SIZE], places
    chunks[:, C_NULL_COUNT] = 0
    chosen = table[kept[:, K_PAGE]]
    chosen[:, P_CHUNK] = np.arange(len(kept))
    return PageSelection(Pages(pages.raw, chunks, chosen), ValueRanges(spans), int(state[SELECTED_ROWS]))


def select_page_run(pages: Pages, start: int, stop: int, taking: ValueSelection) -> PageSelection:
    """Set out data pages of a flat chunk to be decoded as they stand, from row `start` to row `stop`."""
    chunks = pages.chunks.copy()
    chunks[0, [C_ROW_START, C_ROW_STOP]] = start, stop
    chunks[0, [C_OUT, C_VALIDITY, C_NULL_COUNT]] = 0
    return PageSelection(Pages(pages.raw, chunks, pages.pages), taking, stop - start)
