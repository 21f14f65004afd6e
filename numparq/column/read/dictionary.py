"""Dictionary pages, and which data pages hold dictionary indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from numparq.column.buffers import BinaryArray, binary_from_fixed_size
from numparq.column.scratch import Scratch, allocate
from numparq.kernels import kernels
from numparq.kernels.enums import DICTIONARY_PAGE, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.status import BAD_DICTIONARY, UNSUPPORTED_ENCODING
from numparq.kernels.tables import (
    C_DICTIONARY_SIZE,
    C_TYPE_LENGTH,
    P_BODY,
    P_CHUNK,
    P_COMPRESSED,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_SCRATCH,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)

from .decompress import PageBatches, decompress_pages
from .pages import PageFailure, Pages

EMPTY_DICTIONARY = BinaryArray(np.zeros(1, np.int64), np.zeros(SLACK, np.uint8))


def decode_binary_dictionary(pages: Pages, scratch: Scratch) -> BinaryArray | None:
    """Decode the chunk's dictionary page and set its C_DICTIONARY_SIZE; None if the pages do not begin with one.

    The bytes have SLACK after them. Raises PageFailure.
    """
    if not len(pages.pages) or pages.pages[0, P_TYPE] != DICTIONARY_PAGE:
        return None
    return next(decode_binary_dictionaries(Pages(pages.raw, pages.chunks, pages.pages[:1]), scratch))


def decode_binary_dictionaries(pages: Pages, scratch: Scratch) -> Iterator[BinaryArray]:
    """Yield the decoded dictionary of each page, one page a chunk, and set the chunks' C_DICTIONARY_SIZE."""
    for page, (data, start, size, count) in enumerate(_dictionary_pages(pages, scratch)):
        if count > size // 4:
            raise PageFailure(page, BAD_DICTIONARY)
        offsets = allocate(count + 1, "i8")
        values = allocate(size + SLACK)
        status = kernels.decode_plain_binary(data, start, start + size, count, offsets, values)
        if status < 0:
            raise PageFailure(page, status)
        yield BinaryArray(offsets, values)


def decode_fixed_dictionary(pages: Pages, scratch: Scratch) -> BinaryArray | None:
    """Return the fixed-size values of a chunk's dictionary page as stored (PLAIN); None if it has none.

    Raises PageFailure.
    """
    if not len(pages.pages) or pages.pages[0, P_TYPE] != DICTIONARY_PAGE:
        return None
    ((data, start, size, count),) = _dictionary_pages(Pages(pages.raw, pages.chunks, pages.pages[:1]), scratch)
    width = int(pages.chunks[0, C_TYPE_LENGTH])
    if width <= 0 or count > size // width:
        raise PageFailure(0, BAD_DICTIONARY)
    return binary_from_fixed_size(data[start : start + count * width].copy(), width)


def _dictionary_pages(pages: Pages, scratch: Scratch) -> Iterator[tuple[np.ndarray, int, int, int]]:
    """Decompress dictionary pages; yield buffer, position, bytes and number of values.

    The buffer is reused for the next batch.
    """
    placement = PageBatches(pages)
    data = scratch.buffer("decompressed", placement.decompressed)
    for batch in placement.batches:
        decompress_pages(pages, batch, data)
        for number, page in enumerate(pages.pages[batch[0] : batch[1]].tolist(), batch[0]):
            if page[P_ENCODING] not in (PLAIN, PLAIN_DICTIONARY):
                raise PageFailure(number, UNSUPPORTED_ENCODING)
            pages.chunks[page[P_CHUNK], C_DICTIONARY_SIZE] = page[P_NUM_VALUES]
            if page[P_IS_COMPRESSED]:
                yield data, page[P_SCRATCH], page[P_UNCOMPRESSED], page[P_NUM_VALUES]
            else:
                yield pages.raw, page[P_BODY], page[P_COMPRESSED], page[P_NUM_VALUES]


def have_indices(pages: Pages) -> np.ndarray:
    """Return a bool for each page: whether it holds dictionary indices."""
    encodings = pages.pages[:, P_ENCODING]
    found: np.ndarray = (encodings == PLAIN_DICTIONARY) | (encodings == RLE_DICTIONARY)
    return found


def all_have_indices(pages: Pages) -> bool:
    """Whether all pages hold dictionary indices."""
    return bool(have_indices(pages).all())
