"""Dictionary pages, and which data pages hold dictionary indices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.scratch import Scratch, allocate
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import BYTE_ARRAY, DICTIONARY_PAGE, PLAIN_DICTIONARY, RLE_DICTIONARY
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import BAD_DICTIONARY
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_ITEM_SIZE,
    C_TYPE,
    P_COMPRESSED,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)
from numparq.util.byte_budget_cache import DICTIONARY_BYTES, CachedFile

from .decompress import PageBatches, decompress_pages
from .pages import PageFailure, Pages, check_page

EMPTY_DICTIONARY = BinaryArray(np.zeros(1, np.int64), np.zeros(SLACK, np.uint8))


class FixedDictionary(NamedTuple):
    """Entries of a dictionary in an output type: uint8, with SLACK after them; and their number."""

    values: np.ndarray
    num_entries: int


class DictionaryCache:
    """One chunk's dictionary in the file's entry of the cache, for reads of a few rows.

    A cached dictionary is described in the chunk, a row of the chunk table: then no page is one.

    Attributes
    ----------
    dictionary : FixedDictionary or BinaryArray or None
        The dictionary, if an earlier read kept it; its strings are valid UTF-8 if that is required.
    """

    def __init__(
        self, entry: CachedFile, row_group: int, leaf: int, chunk: np.ndarray, checks: tuple[bool, bool]
    ) -> None:
        kind = () if chunk[C_TYPE] == BYTE_ARRAY else (int(chunk[C_CAST]), int(chunk[C_ITEM_SIZE]))
        # What an earlier read did not check, a read that asks for it must.
        self._key = "decoded dictionary", row_group, leaf, kind, checks
        self._entry = entry
        self.dictionary: FixedDictionary | BinaryArray | None = entry.get(self._key)
        if self.dictionary is not None:
            cached, chunk[C_DICTIONARY] = self.dictionary, 0
            chunk[C_DICTIONARY_SIZE] = cached.num_entries if isinstance(cached, FixedDictionary) else len(cached)

    def keep_binary(self, chunk: np.ndarray, dictionary: BinaryArray, num_rows: int) -> None:
        """Keep a dictionary, unless it has fewer entries than rows are read: then the rows cost more to decode.

        Nor one that does not fill its page: a read that skips pages by their dictionary must know.
        """
        if len(dictionary.offsets) > num_rows and not chunk[C_DICTIONARY_UNREAD]:
            num_bytes = DICTIONARY_BYTES + dictionary.offsets.nbytes + dictionary.data.nbytes
            self._entry.put_dictionary(self._key, dictionary, num_bytes)

    def keep_fixed(self, chunk: np.ndarray, buffer: np.ndarray, num_rows: int) -> None:
        """Keep a copy of the dictionary that C_DICTIONARY and C_DICTIONARY_SIZE say is in a buffer, likewise."""
        count, first = int(chunk[C_DICTIONARY_SIZE]), int(chunk[C_DICTIONARY])
        if count > num_rows and not chunk[C_DICTIONARY_UNREAD]:
            num_bytes = count * int(chunk[C_ITEM_SIZE]) + SLACK
            values = buffer[first : first + num_bytes].copy()
            self._entry.put_dictionary(self._key, FixedDictionary(values, count), DICTIONARY_BYTES + values.nbytes)


def decode_binary_dictionary(pages: Pages, scratch: Scratch) -> BinaryArray | None:
    """Decode the dictionary pages among pages into one array of entries; None if there are none.

    C_DICTIONARY and C_DICTIONARY_SIZE of each chunk then say which are its entries. The bytes have SLACK after them.
    Raises PageFailure.
    """
    rows = (pages.pages[:, P_TYPE] == DICTIONARY_PAGE).nonzero()[0]
    if not len(rows):
        return None
    try:
        return _decode_binary_dictionaries(Pages(pages.raw, pages.chunks, pages.pages[rows]), scratch)
    except PageFailure as failure:
        failure.page = int(rows[failure.page])
        raise


def _decode_binary_dictionaries(pages: Pages, scratch: Scratch) -> BinaryArray:
    placement = PageBatches(pages, scratch)
    count = size = 0
    for number, page in enumerate(pages.pages.tolist()):
        num_bytes = page[P_UNCOMPRESSED if page[P_IS_COMPRESSED] else P_COMPRESSED]
        if page[P_NUM_VALUES] > num_bytes // 4:
            raise PageFailure(number, BAD_DICTIONARY)
        count, size = count + page[P_NUM_VALUES], size + num_bytes
    offsets, values = allocate(count + 1, "i8"), allocate(size + SLACK)
    offsets[0] = 0
    state = np.zeros(STATE_FIELDS, np.int64)
    decompressed = scratch.buffer("decompressed", placement.decompressed)
    for batch in placement.batches:
        decompress_pages(pages, batch, decompressed)
        status = kernels.decode_binary_dictionaries(
            pages.chunks.reshape(-1),
            pages.pages.reshape(-1),
            batch[0],
            batch[1],
            pages.raw,
            decompressed,
            offsets,
            values,
            state,
        )
        check_page(status, state)
    return BinaryArray(offsets, values)


def split_dictionaries(joined: BinaryArray, chunks: np.ndarray) -> list[BinaryArray]:
    """Return the dictionary of each chunk out of `decode_binary_dictionary`'s; equal neighbours are one object."""
    if len(chunks) == 1:
        return [joined]
    firsts, counts = chunks[:, C_DICTIONARY], chunks[:, C_DICTIONARY_SIZE].clip(0)
    starts, stops = joined.offsets[firsts].tolist(), joined.offsets[firsts + counts].tolist()
    lengths, data = np.diff(joined.offsets).tobytes(), joined.data.data
    dictionaries: list[BinaryArray] = []
    before: tuple[bytes, memoryview] | None = None
    for first, count, start, stop in zip(firsts.tolist(), counts.tolist(), starts, stops, strict=True):
        content = lengths[8 * first : 8 * (first + count)], data[start:stop]
        if content != before:
            offsets = joined.offsets[first : first + count + 1] - start
            dictionaries.append(BinaryArray(offsets, joined.data[start : stop + SLACK]) if count else EMPTY_DICTIONARY)
        else:
            dictionaries.append(dictionaries[-1])
        before = content
    return dictionaries


def have_indices(pages: Pages) -> np.ndarray:
    """Return a bool for each page: whether it holds dictionary indices."""
    encodings = pages.pages[:, P_ENCODING]
    are_indices: np.ndarray = (encodings == PLAIN_DICTIONARY) | (encodings == RLE_DICTIONARY)
    return are_indices


def all_have_indices(pages: Pages) -> bool:
    """Whether all pages hold dictionary indices."""
    return bool(np.logical_and.reduce(have_indices(pages)))
