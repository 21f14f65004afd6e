"""Column chunks of BYTE_ARRAY values, decoded into offsets and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..errors import BAD_DICTIONARY, NEED_ROOM, UNSUPPORTED_ENCODING
from ..kernels import kernels
from ..kernels.binary import STATE_BYTES, STATE_NEEDED, STATE_PAGE
from ..kernels.fixed import STATE_FIELDS
from ..kernels.tables import (
    C_DICTIONARY_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE_LENGTH,
    DICTIONARY_PAGE,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SLACK,
)
from .buffer import BinaryPiece
from .pages import PageFailure, Pages, Placement, check_page, decompress
from .plain import Readable, readable
from .scratch import Scratch, allocate

NO_DICTIONARY = BinaryPiece(np.zeros(1, np.int64), np.zeros(SLACK, np.uint8))


def decode_binary_dictionary(pages: Pages, scratch: Scratch) -> BinaryPiece | None:
    """Decode the dictionary page, if one is among the pages of a chunk, and set the chunk's C_DICTIONARY_SIZE.

    Returns
    -------
    BinaryPiece or None
        The dictionary's values; the bytes have SLACK behind them.

    Raises
    ------
    PageFailure
    """
    if not len(pages.pages) or pages.pages[0, P_TYPE] != DICTIONARY_PAGE:
        return None
    return next(decode_binary_dictionaries(Pages(pages.raw, pages.chunks, pages.pages[:1]), scratch))


def decode_binary_dictionaries(pages: Pages, scratch: Scratch) -> Iterator[BinaryPiece]:
    """Decode dictionary pages of as many chunks, and set these chunks' C_DICTIONARY_SIZE; see above."""
    for page, (data, start, size, count) in enumerate(_dictionary_pages(pages, scratch)):
        if count > size // 4:
            raise PageFailure(page, BAD_DICTIONARY)
        offsets = allocate(count + 1, "i8")
        values = allocate(size + SLACK)
        status = kernels.decode_binary_dictionary(data, start, start + size, count, offsets, values)
        if status < 0:
            raise PageFailure(page, status)
        yield BinaryPiece(offsets, values)


def copy_fixed_dictionary(pages: Pages, scratch: Scratch) -> BinaryPiece | None:
    """Copy the dictionary page of a chunk of values of a fixed size: its values as they are stored, in PLAIN.

    Returns
    -------
    BinaryPiece or None
        As of `decode_binary_dictionary`; all values are of the same length.

    Raises
    ------
    PageFailure
    """
    if not len(pages.pages) or pages.pages[0, P_TYPE] != DICTIONARY_PAGE:
        return None
    ((data, start, size, count),) = _dictionary_pages(Pages(pages.raw, pages.chunks, pages.pages[:1]), scratch)
    width = int(pages.chunks[0, C_TYPE_LENGTH])
    if width <= 0 or count > size // width:
        raise PageFailure(0, BAD_DICTIONARY)
    return fixed_piece(data[start : start + count * width].copy(), width)


def fixed_piece(values: np.ndarray, width: int, validity: np.ndarray | None = None) -> BinaryPiece:
    """Give values of a fixed size, as bytes one behind the other, as a piece."""
    return BinaryPiece(np.arange(len(values) // width + 1, dtype=np.int64) * width, values, validity)


def _dictionary_pages(pages: Pages, scratch: Scratch) -> Iterator[tuple[np.ndarray, int, int, int]]:
    """Decompress dictionary pages; gives a buffer, where each lies in it until the next one, its size and values."""
    placement = Placement(pages)
    data = scratch.take("decompressed", placement.decompressed)
    for batch in placement.batches:
        decompress(pages, batch, data)
        for number, page in enumerate(pages.pages[batch[0] : batch[1]].tolist(), batch[0]):
            if page[P_ENCODING] not in (PLAIN, PLAIN_DICTIONARY):
                raise PageFailure(number, UNSUPPORTED_ENCODING)
            pages.chunks[page[P_CHUNK], C_DICTIONARY_SIZE] = page[P_NUM_VALUES]
            if page[P_IS_COMPRESSED]:
                yield data, page[P_SCRATCH], page[P_UNCOMPRESSED], page[P_NUM_VALUES]
            else:
                yield pages.raw, page[P_BODY], page[P_COMPRESSED], page[P_NUM_VALUES]


def decode_binary(pages: Pages, dictionary: BinaryPiece | None, size_hint: int, scratch: Scratch) -> BinaryPiece:
    """Decompress and decode pages; nulls are added up in the chunk table.

    Parameters
    ----------
    pages : Pages
        Data pages with one dictionary, of one chunk or, of several, in their order; each chunk's C_ROW_START and
        C_ROW_STOP bound its rows, and C_MASK is the row of the piece that they begin with.
    dictionary : BinaryPiece or None
        As `decode_binary_dictionary` gave it.
    size_hint : int
        Bytes that the values may take together; a guess that costs nothing but a copy when it is too small.
    scratch : Scratch
        This thread's buffers.

    Returns
    -------
    BinaryPiece
        One value a row; no validity where no null was met.

    Raises
    ------
    PageFailure
    """
    entries = dictionary or NO_DICTIONARY
    return _decoded(pages, lambda part: [(part, entries)], size_hint, scratch)


def decode_binary_chunks(
    pages: Pages, dictionaries: Sequence[BinaryPiece], size_hint: int, scratch: Scratch
) -> BinaryPiece:
    """Do what `decode_binary` does, for chunks that have a dictionary each: `dictionaries` are in their order."""
    return _decoded(pages, lambda part: _by_chunk(part, dictionaries), size_hint, scratch)


def _by_chunk(part: Readable, dictionaries: Sequence[BinaryPiece]) -> Iterator[tuple[Readable, BinaryPiece]]:
    """Divide pages into those of each chunk, and give the dictionary of these."""
    owners = part.table[part.first : part.last, P_CHUNK]
    edges = [part.first, *(np.flatnonzero(owners[1:] != owners[:-1]) + part.first + 1).tolist(), part.last]
    for first, last in pairwise(edges):
        yield Readable(part.table, first, last, part.decompressed), dictionaries[part.table[first, P_CHUNK]]


def _decoded(
    pages: Pages, divided: Callable[[Readable], Iterable[tuple[Readable, BinaryPiece]]], size_hint: int,
    scratch: Scratch,
) -> BinaryPiece:  # fmt: skip
    """Decode pages; `divided` says which of them have which dictionary."""
    chunks = pages.chunks
    rows = int((chunks[:, C_ROW_STOP] - chunks[:, C_ROW_START]).clip(0).sum())
    nulls_before = int(chunks[:, C_NULL_COUNT].sum())
    offsets = allocate(rows + 1, "i8")
    offsets[0] = 0
    validity = allocate(rows) if chunks[0, C_MAX_DEFINITION] else scratch.take("validity", rows)
    placement = Placement(pages)
    decompressed = scratch.take("decompressed", placement.decompressed)
    indices, levels = scratch.take("indices", 4 * placement.values), scratch.take("levels", placement.values)
    state = np.zeros(STATE_FIELDS, np.int64)
    out = allocate(max(size_hint, 0) + SLACK)
    for batch in placement.batches:
        decompress(pages, batch, decompressed)
        for part in readable(pages, batch, decompressed, scratch):
            for run, entries in divided(part):
                out = decode_part(pages, run, entries, indices, levels, validity, offsets, out, state)
    return BinaryPiece(offsets, out, validity if int(chunks[:, C_NULL_COUNT].sum()) > nulls_before else None)


def decode_part(
    pages: Pages, part: Readable, entries: BinaryPiece, indices: np.ndarray, levels: np.ndarray, validity: np.ndarray,
    offsets: np.ndarray, out: np.ndarray, state: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Decode pages into offsets and bytes, which grow as they need; give the bytes' buffer, which may be a new one.

    The arrays are those of the kernel `decode_binary_pages`.

    Raises
    ------
    PageFailure
    """
    first = part.first
    while True:
        status = kernels.decode_binary_pages(
            pages.chunks.reshape(-1), part.table.reshape(-1), first, part.last, pages.raw, part.decompressed,
            entries.offsets, entries.data, indices, levels, validity, offsets, out, len(out) - SLACK, state,
        )  # fmt: skip
        if status != NEED_ROOM:
            check_page(status, state)
            return out
        first = int(state[STATE_PAGE])
        out = grown(out, int(state[STATE_BYTES]), int(state[STATE_NEEDED]))


def grown(out: np.ndarray, used: int, needed: int) -> np.ndarray:
    """Give a larger buffer with the bytes used so far; at least half as large again, so that few copies are made."""
    grown = allocate(max(needed, len(out) + len(out) // 2) + SLACK)
    grown[:used] = out[:used]
    return grown


def are_indices(pages: Pages) -> np.ndarray:
    """Tell of each page whether it holds dictionary indices."""
    encodings = pages.pages[:, P_ENCODING]
    return (encodings == PLAIN_DICTIONARY) | (encodings == RLE_DICTIONARY)


def all_indices(pages: Pages) -> bool:
    """Tell whether all pages hold dictionary indices."""
    return bool(are_indices(pages).all())
