"""Transcode DELTA, BYTE_STREAM_SPLIT and ALP pages to PLAIN, with prefixes carried over pages (PARQUET-246)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from numparq.column.scratch import Scratch
from numparq.kernels.decode.transcode import STATE_FIELDS, STATE_NEEDED, STATE_PREVIOUS, STATE_PREVIOUS_SIZE
from numparq.kernels.enums import DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY
from numparq.kernels.kernel_groups import alp_kernels, delta_kernels
from numparq.kernels.status import NEED_ROOM
from numparq.kernels.tables import (
    ALP_TRANSCODER,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    DELTA_TRANSCODER,
    NO_TRANSCODER,
    P_CHUNK,
    P_ENCODING,
    P_NUM_VALUES,
    P_ROW,
    PREFIX_CARRYOVER,
    SLACK,
)

from .decompress import BATCH_BYTES, PageBatch, decompress_pages
from .pages import PageFailure, Pages, check_page

# Pages in encodings that the decoders read: page table, first and exclusive last of its rows, and the buffer (uint8)
# that P_SCRATCH of these rows points into.
DecodablePages = tuple[np.ndarray, int, int, np.ndarray]


class PageLevels(Protocol):
    """Decoder of the levels of pages, which describes them as dense pages."""

    def decode(self, pages: Pages, first: int, last: int, decompressed: np.ndarray) -> None:
        """Decode the levels of pages `first` to `last` (exclusive)."""


def open_batch(
    pages: Pages, batch: PageBatch, decompressed: np.ndarray, scratch: Scratch, levels: PageLevels | None = None
) -> Iterable[DecodablePages]:
    """Decompress a batch of pages; return them, in order, in encodings that the decoders read.

    `levels` decodes and removes their levels. But for these, the page table is not changed; an item's buffer is reused
    for the next one. Raises PageFailure.
    """
    first, last, _, transcoder = batch
    decompress_pages(pages, batch, decompressed)
    if levels is not None:
        levels.decode(pages, first, last, decompressed)
    if transcoder == NO_TRANSCODER:
        return [(pages.pages, first, last, decompressed)]
    return transcode(pages, batch, decompressed, scratch)


def transcode(pages: Pages, batch: PageBatch, decompressed: np.ndarray, scratch: Scratch) -> Iterable[DecodablePages]:
    """Return the pages of a decompressed batch that has a transcoder as `open_batch` does."""
    if np.bitwise_or.reduce(pages.chunks[:, C_QUIRKS]) & PREFIX_CARRYOVER:
        return _transcode_with_carryover(pages, batch, decompressed, scratch)
    return _transcode_pages(pages, batch, decompressed, scratch)


def _transcode_pages(
    pages: Pages, batch: PageBatch, decompressed: np.ndarray, scratch: Scratch
) -> Iterator[DecodablePages]:
    """Yield pages without prefixes carried over, as many at a time as fit the buffer."""
    first, last, _, transcoder = batch
    rewritten = Pages(pages.raw, pages.chunks, pages.pages.copy())  # a copy: the pages may be decoded again
    room, state = min(BATCH_BYTES, scratch.window_bytes // 2), np.zeros(STATE_FIELDS, np.int64)
    while first < last:
        out = scratch.buffer("plain", room)
        status = _call_transcoder(transcoder, rewritten, first, last, decompressed, scratch, out, state)
        if status == NEED_ROOM:
            room = int(state[STATE_NEEDED])
            continue
        if status < 0:
            raise PageFailure(int(state[0]), status)
        yield rewritten.pages, first, status, out
        first = status


def _call_transcoder(
    transcoder: int,
    pages: Pages,
    first: int,
    last: int,
    decompressed: np.ndarray,
    scratch: Scratch,
    out: np.ndarray,
    state: np.ndarray,
) -> int:
    """Call the kernel of ALP, or that of the DELTA encodings and BYTE_STREAM_SPLIT."""
    if transcoder == ALP_TRANSCODER:
        kernel, lengths = alp_kernels.transcode_alp_pages, []
    else:
        table = pages.pages[first:last]
        has_lengths = (table[:, P_ENCODING] == DELTA_LENGTH_BYTE_ARRAY) | (table[:, P_ENCODING] == DELTA_BYTE_ARRAY)
        most = int(np.maximum.reduce(table[has_lengths, P_NUM_VALUES], initial=0))
        kernel, lengths = delta_kernels.transcode_delta_pages, [scratch.buffer("lengths", 8 * most)]
    return kernel(
        pages.chunks.reshape(-1),
        pages.pages.reshape(-1),
        first,
        last,
        pages.raw,
        decompressed,
        *lengths,
        out,
        len(out) - SLACK,
        state,
    )


def _transcode_with_carryover(
    pages: Pages, batch: PageBatch, decompressed: np.ndarray, scratch: Scratch
) -> Iterator[DecodablePages]:
    """Transcode as `transcode` does, for pages whose first string may continue the previous page's last (PARQUET-246).

    Last strings are cached by the row of the next page: a window may be decoded more than once.
    """
    first, last, is_snappy, transcoder = batch
    rewritten = Pages(pages.raw, pages.chunks, pages.pages.copy())
    state = np.zeros(STATE_FIELDS, np.int64)
    for number in range(first, last):
        page = pages.pages[number]
        chunk, begin, end = int(page[P_CHUNK]), int(page[P_ROW]), int(page[P_ROW] + page[P_NUM_VALUES])
        facts = pages.chunks[chunk]
        is_selected = begin < facts[C_ROW_STOP] and end > facts[C_ROW_START]
        if page[P_ENCODING] == DELTA_BYTE_ARRAY and facts[C_QUIRKS] & PREFIX_CARRYOVER:  # set for string columns only
            before = scratch.carried_prefixes.get((chunk, begin), b"")
            part = _transcode_continued(rewritten, number, decompressed, scratch, before, state)
            kept = part[3][state[STATE_PREVIOUS] :][: state[STATE_PREVIOUS_SIZE]].tobytes()
            scratch.carried_prefixes[chunk, end] = kept
            if is_selected:
                yield part
        elif is_selected:
            single = number, number + 1, is_snappy, transcoder
            yield from _transcode_pages(pages, single, decompressed, scratch)


def _transcode_continued(
    pages: Pages, number: int, decompressed: np.ndarray, scratch: Scratch, before: bytes, state: np.ndarray
) -> DecodablePages:
    """Transcode a page whose first prefix may refer to `before`; `state` then locates its last string."""
    room = min(BATCH_BYTES, scratch.window_bytes // 2) + len(before)
    while True:
        out = scratch.buffer("plain", room)
        out[: len(before)] = np.frombuffer(before, np.uint8)
        state[STATE_PREVIOUS_SIZE] = len(before)
        status = _call_transcoder(DELTA_TRANSCODER, pages, number, number + 1, decompressed, scratch, out, state)
        if status != NEED_ROOM:
            check_page(status, state)
            return pages.pages, number, number + 1, out
        room = int(state[STATE_NEEDED])
