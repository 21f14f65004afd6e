"""Decode data pages: fixed-size values into an output, BYTE_ARRAY into offsets and valid UTF-8 bytes."""

from __future__ import annotations

import numpy as np

from numparq.column.buffers import BinaryArray, binary_from_fixed_size
from numparq.column.scratch import Scratch, allocate
from numparq.kernels.decode.binary_pages import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import BAD_DICTIONARY, NEED_ROOM, check_status
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE_LENGTH,
    C_VALIDITY,
    COPY,
    P_CHUNK,
    P_ROW,
    P_TYPE,
    SLACK,
)

from .decompress import PageBatches
from .dictionary import EMPTY_DICTIONARY
from .output import FixedOutput
from .pages import PageFailure, Pages
from .transcode import DecodablePages, PageLevels, open_batch


def allocate_strings(rows: int, size_hint: int, chunks: np.ndarray, scratch: Scratch) -> BinaryArray:
    """Return memory for rows of chunks, which may take `size_hint` bytes."""
    validity = allocate(rows) if chunks[0, C_MAX_DEFINITION] else scratch.buffer("validity", rows)
    return BinaryArray(allocate(rows + 1, "i8"), allocate(max(size_hint, 0) + SLACK), validity)


def decode_binary(
    pages: Pages,
    dictionary: BinaryArray | None,
    strings: BinaryArray,
    scratch: Scratch,
    page_levels: PageLevels | None = None,
) -> None:
    """Decompress and decode data pages into memory with validity; replaces its data if it is too small.

    C_VALIDITY is a chunk's first row in the result, C_DICTIONARY its first entry of `dictionary`. Null counts, 0
    before, go to the chunk table; without nulls the validity becomes None. `page_levels` decodes the levels of a nested
    leaf, whose values are then dense. Raises PageFailure.
    """
    chunks, entries = pages.chunks, dictionary or EMPTY_DICTIONARY
    offsets, validity = strings.offsets, strings.validity
    assert validity is not None
    offsets[0] = 0
    placement = PageBatches(pages, scratch)
    decompressed = scratch.buffer("decompressed", placement.decompressed)
    indices, levels = scratch.buffer("indices", 4 * placement.values), scratch.buffer("levels", placement.values)
    state = np.zeros(STATE_FIELDS, np.int64)
    for batch in placement.batches:
        for part in open_batch(pages, batch, decompressed, scratch, page_levels):
            strings.data = decode_binary_run(
                pages, part, entries, indices, levels, validity, offsets, strings.data, state
            )
    if not np.logical_or.reduce(chunks[:, C_NULL_COUNT]):
        strings.validity = None


def count_rows(chunks: np.ndarray) -> int:
    """Count the selected rows of chunks."""
    return int(np.add.reduce(np.maximum(chunks[:, C_ROW_STOP] - chunks[:, C_ROW_START], 0)))


def decode_binary_run(
    pages: Pages,
    part: DecodablePages,
    entries: BinaryArray,
    indices: np.ndarray,
    levels: np.ndarray,
    validity: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    state: np.ndarray,
) -> np.ndarray:
    """Decode pages into offsets and bytes; return the bytes' buffer, a new one if it had to grow.

    The arrays are those of the kernel `decode_binary_pages`. Raises PageFailure.
    """
    table, first, last, decompressed = part
    while True:
        status = kernels.decode_binary_pages(
            pages.chunks.reshape(-1),
            table.reshape(-1),
            first,
            last,
            pages.raw,
            decompressed,
            entries.offsets,
            entries.data,
            indices,
            levels,
            validity,
            offsets,
            out,
            len(out) - SLACK,
            state,
        )
        if status >= 0:
            return out
        if status != NEED_ROOM:
            raise PageFailure(int(state[0]), status)
        first = int(state[STATE_PAGE])
        out = grow_buffer(out, int(state[STATE_BYTES]), int(state[STATE_NEEDED]))


def grow_buffer(out: np.ndarray, used: int, needed: int) -> np.ndarray:
    """Return a buffer at least half as large again, with the used bytes copied: few copies in all."""
    grown = allocate(max(needed, len(out) + len(out) // 2) + SLACK)
    grown[:used] = out[:used]
    return grown


def decode_fixed(
    pages: Pages,
    output: FixedOutput,
    dictionary: np.ndarray | None,
    scratch: Scratch,
    page_levels: PageLevels | None = None,
) -> None:
    """Decompress and decode pages into the output; null counts are added to the chunk table.

    `dictionary` (uint8) holds the dictionaries decoded before, with room for those among the pages; None: the thread's
    buffer. `page_levels` decodes the levels of a nested leaf, whose values are then dense. Raises PageFailure.
    """
    placement = PageBatches(pages, scratch)
    if dictionary is None:
        dictionary = scratch.buffer("dictionary", placement.dictionary)
    decompressed = scratch.buffer("decompressed", placement.decompressed)
    dense = scratch.buffer("dense", placement.values * placement.item)
    validity = scratch.buffer("levels", placement.values)
    state = np.zeros(STATE_FIELDS, np.int64)
    for batch in placement.batches:
        for table, first, last, buffer in open_batch(pages, batch, decompressed, scratch, page_levels):
            status = kernels.decode_fixed_pages(
                pages.chunks.reshape(-1),
                table.reshape(-1),
                first,
                last,
                pages.raw,
                buffer,
                dictionary,
                dense,
                validity,
                output.mask,
                output.out,
                state,
            )
            if status < 0:
                raise PageFailure(int(state[0]), status)


def decode_fixed_dictionaries(pages: Pages, scratch: Scratch) -> list[BinaryArray]:
    """Return the fixed-size dictionary of each chunk, as stored; equal neighbours are one object.

    The list is empty if no page is a dictionary. C_DICTIONARY_SIZE of each chunk is set. Raises PageFailure.
    """
    places = (pages.pages[:, P_TYPE] == DICTIONARY_PAGE).nonzero()[0]
    if not len(places):
        return []
    chunks, width = pages.chunks.copy(), int(pages.chunks[0, C_TYPE_LENGTH])
    if width <= 0:
        raise PageFailure(int(places[0]), BAD_DICTIONARY)
    chunks[:, C_CAST], chunks[:, C_ITEM_SIZE] = COPY, width
    stored = Pages(pages.raw, chunks, pages.pages[places])
    try:
        values = allocate(PageBatches(stored, scratch).dictionary + SLACK)
        decode_fixed(stored, FixedOutput(values[:0], values[:0]), values, scratch)
    except PageFailure as failure:
        failure.page = int(places[failure.page])
        raise
    known = [C_DICTIONARY_SIZE, C_DICTIONARY_UNREAD]
    pages.chunks[:, known] = chunks[:, known]
    dictionaries: list[BinaryArray] = []
    for first, count in chunks[:, [C_DICTIONARY, C_DICTIONARY_SIZE]].tolist():
        data = values[first : first + max(count, 0) * width]
        is_same = bool(dictionaries) and dictionaries[-1].data.data == data.data
        dictionaries.append(dictionaries[-1] if is_same else binary_from_fixed_size(data, width))
    return dictionaries


def is_utf8(piece: BinaryArray) -> bool:
    """Whether all strings are valid UTF-8."""
    return kernels.check_utf8(piece.offsets, len(piece.offsets) - 1, piece.data) >= 0


def check_utf8(piece: BinaryArray) -> None:
    """Raise CorruptPageError if a string is not valid UTF-8."""
    status = kernels.check_utf8(piece.offsets, len(piece.offsets) - 1, piece.data)
    if status < 0:
        check_status(status)


def find_page_of_invalid_utf8(piece: BinaryArray, pages: Pages) -> int:
    """Return the page of the first string that is not UTF-8; `piece` is what data pages or dictionary pages hold."""
    chunks = pages.chunks[pages.pages[:, P_CHUNK]]
    if pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
        places = chunks[:, C_DICTIONARY]
    else:
        places = chunks[:, C_VALIDITY] + (pages.pages[:, P_ROW] - chunks[:, C_ROW_START]).clip(0)
    firsts = places.clip(0, len(piece)).tolist()
    for number, (first, last) in enumerate(zip(firsts, [*firsts[1:], len(piece)], strict=True)):
        if kernels.check_utf8(piece.offsets[first : last + 1], last - first, piece.data) < 0:
            return number
    return len(firsts) - 1
