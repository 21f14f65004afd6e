"""Write data pages (V1, V2) and dictionary pages: levels, values, compression, checksum, words of the header."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf, DenseValues
from numparq.column.encodings import Encoder, encoder_for, index_bit_width
from numparq.column.scratch import Scratch
from numparq.compression.codecs import compressor
from numparq.errors import SchemaError
from numparq.format.schema import Leaf
from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from numparq.kernels.enums import (
    BOOLEAN,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    INT32,
    INT64,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
)
from numparq.kernels.kernel_groups import writing_kernels
from numparq.kernels.page_writing import (
    BINARY_VALUES,
    BIT_VALUES,
    W_BIT_WIDTH,
    W_ENCODING,
    W_END,
    W_FIELDS,
    W_FIRST_ENTRY,
    W_FIRST_VALUE,
    W_LAST_ENTRY,
    W_LAST_VALUE,
    W_LEVELS_END,
)
from numparq.kernels.thrift.encode import ABSENT
from numparq.util.pluralize import pluralize

from .encoding_choice import ChosenEncodings
from .options import ColumnOptions
from .page_splits import Bounds

_BATCH_BYTES = 1 << 20  # pages are encoded together up to so many bytes
MAX_PAGE_SIZE = (1 << 31) - 1


class EncodedPage(NamedTuple):
    """A page as written to the file, without its header.

    Attributes
    ----------
    body : bytes-like
        The page after its header, compressed.
    uncompressed_size : int
        Bytes of the body before compression.
    header : tuple of int
        Words of the header by `page_header_template`, without those of statistics.
    """

    type: int
    body: Any
    uncompressed_size: int
    header: tuple[int, ...]


class PageWriter:
    """Writes the pages of one leaf column: what its values do not decide is decided once."""

    def __init__(self, leaf: Leaf, options: ColumnOptions) -> None:
        self._compress = compressor(options.codec, options.level)
        self._checksum = options.checksum
        self._version = options.data_page_version
        self._finish = self._finish_v1 if options.data_page_version == 1 else self._finish_v2
        self._max_levels = leaf.max_repetition_level, leaf.max_definition_level

    def write(
        self, dense: DenseLeaf, chosen: ChosenEncodings, bounds: Bounds, first_pages: Sequence[int], scratch: Scratch
    ) -> list[EncodedPage]:
        """Encode the data pages of consecutive column chunks."""
        values, dictionaries = chosen.values, chosen.dictionaries
        table = np.empty((len(bounds.rows) - 1, W_FIELDS), np.int64)
        table[:, W_FIRST_ENTRY], table[:, W_LAST_ENTRY] = bounds.entries[:-1], bounds.entries[1:]
        table[:, W_FIRST_VALUE], table[:, W_LAST_VALUE] = bounds.values[:-1], bounds.values[1:]
        table[:, W_ENCODING] = _repeat_by_page(chosen.encodings, first_pages)
        if dictionaries is not None:
            table[:, W_BIT_WIDTH] = _repeat_by_page(map(index_bit_width, dictionaries.counts), first_pages)
        encoders = [encoder_for(values.physical, encoding) for encoding in set(chosen.encodings)]
        levels = *_levels(dense.repetition, self._max_levels[0]), *_levels(dense.definition, self._max_levels[1])
        source = _source(values, None if dictionaries is None else dictionaries.codes)
        pages: list[EncodedPage] = []
        for first, last, room in _batches(table, encoders, values, self._max_levels):
            out = scratch.buffer("page", room)
            writing_kernels.encode_pages(table.reshape(-1), first, last, self._version, *levels, *source, out)
            if encoders[0].write is not None:  # a batch of one page
                place = table[first].tolist()
                table[first, W_END] = encoders[0].write(
                    values, place[W_FIRST_VALUE], place[W_LAST_VALUE], out, place[W_LEVELS_END]
                )
            pages += self._finish(table[first:last].tolist(), bounds.rows[first : last + 1], out)
        return pages

    def _finish_v1(self, table: list[list[int]], rows: np.ndarray, out: np.ndarray) -> list[EncodedPage]:
        """Compress data pages V1: levels and values together."""
        pages, start, compress = [], 0, self._compress
        for first, last, _, _, encoding, _, _, _, end in table:
            raw = out[start:end]
            body = raw.tobytes() if compress is None else compress(raw)
            pages.append(self._page(DATA_PAGE, body, end - start, last - first, encoding, RLE, RLE))
            start = end
        return pages

    def _finish_v2(self, table: list[list[int]], rows: np.ndarray, out: np.ndarray) -> list[EncodedPage]:
        """Compress data pages V2: levels are never compressed, values only if that makes them smaller."""
        pages, start = [], 0
        for place, num_rows in zip(table, np.diff(rows).tolist(), strict=True):
            first, last, first_value, last_value, encoding, _, repetition_end, levels_end, end = place
            body: Any = out[start:end].tobytes()
            shrinks = False
            if self._compress is not None and end > levels_end:
                packed = self._compress(out[levels_end:end])
                shrinks = len(packed) < end - levels_end
                body = b"".join((body[: levels_end - start], packed)) if shrinks else body
            entries = last - first
            fields = (entries, entries - (last_value - first_value), num_rows, encoding)
            level_bytes = (levels_end - repetition_end, repetition_end - start)
            pages.append(self._page(DATA_PAGE_V2, body, end - start, *fields, *level_bytes, shrinks))
            start = end
        return pages

    def write_dictionaries(self, chosen: ChosenEncodings, scratch: Scratch) -> list[EncodedPage | None]:
        """Encode the dictionary page of each chunk that has one, with values in PLAIN encoding."""
        dictionaries = chosen.dictionaries
        if dictionaries is None:
            return [None] * len(chosen.encodings)
        places = [
            (first, first + count) if encoding == RLE_DICTIONARY else None
            for encoding, first, count in zip(chosen.encodings, dictionaries.firsts, dictionaries.counts, strict=True)
        ]
        values, distinct = dictionaries.entries, [place for place in dict.fromkeys(places) if place is not None]
        encoders, source = [encoder_for(values.physical, PLAIN)], _source(values, None)
        table = np.zeros((len(distinct), W_FIELDS), np.int64)
        table[:, W_FIRST_VALUE : W_LAST_VALUE + 1] = distinct
        pages: dict[tuple[int, int] | None, EncodedPage | None] = {None: None}
        for first, last, room in _batches(table, encoders, values, (0, 0)):
            out = scratch.buffer("page", room)
            writing_kernels.encode_pages(table.reshape(-1), first, last, 1, *_NO_LEVELS, *_NO_LEVELS, *source, out)
            start = 0
            for place, end in zip(distinct[first:last], table[first:last, W_END].tolist(), strict=True):
                body = out[start:end].tobytes() if self._compress is None else self._compress(out[start:end])
                pages[place] = self._page(DICTIONARY_PAGE, body, end - start, place[1] - place[0], PLAIN)
                start = end
        return [pages[place] for place in places]

    def _page(self, page_type: int, body: Any, uncompressed_size: int, *fields: int) -> EncodedPage:
        size = len(body)
        if max(uncompressed_size, size) > MAX_PAGE_SIZE:
            raise SchemaError(
                f"a page of {pluralize(uncompressed_size, 'byte')} is too large: the format's limit is 2 GiB"
            )
        crc = ABSENT
        if self._checksum:
            crc = zlib.crc32(body)
            crc -= crc >> 31 << 32  # Thrift i32, same bits
        return EncodedPage(page_type, body, uncompressed_size, (page_type, uncompressed_size, size, crc, *fields))


_EMPTY1, _EMPTY4, _EMPTY8 = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)
_NO_LEVELS = (_EMPTY1, 0)


def _levels(levels: np.ndarray | None, maximum: int) -> tuple[np.ndarray, int]:
    """Return levels and their maximum as `encode_pages` takes them; None stands for levels at the maximum."""
    return (_EMPTY1, -maximum) if levels is None else (levels, maximum)


def _repeat_by_page(values: Iterable[int], first_pages: Sequence[int]) -> list[int]:
    """Return the value of each page's chunk."""
    return [
        value for value, (first, last) in zip(values, pairwise(first_pages), strict=True) for _ in range(first, last)
    ]


def _source(values: DenseValues, codes: np.ndarray | None) -> tuple[Any, ...]:
    """Return values and codes as `encode_pages` takes them."""
    width = BIT_VALUES if values.physical == BOOLEAN else values.width
    return (
        values.raw,
        len(values.data),
        width if values.starts is None else BINARY_VALUES,
        _EMPTY8 if values.starts is None else values.starts,
        _EMPTY8 if values.ends is None else values.ends,
        values.data if values.physical == INT32 else _EMPTY4,
        values.data if values.physical == INT64 else _EMPTY8,
        _EMPTY4 if codes is None else codes,
    )


def _batches(
    table: np.ndarray, encoders: Sequence[Encoder], values: DenseValues, max_levels: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the first and the exclusive last page of each batch, encoded in one call, and the bytes that it needs."""
    pages, step = len(table), 1
    if all(encoder.write is None for encoder in encoders):
        room = _room(table, encoders, values, max_levels)
        if room <= _BATCH_BYTES:
            yield 0, pages, room
            return
        step = max(pages * _BATCH_BYTES // room, 1)
    for first in range(0, pages, step):
        last = min(first + step, pages)
        yield first, last, _room(table[first:last], encoders, values, max_levels)


def _room(table: np.ndarray, encoders: Sequence[Encoder], values: DenseValues, max_levels: Sequence[int]) -> int:
    """Return the most bytes that pages can take before compression: levels, and values in any of the encodings."""
    pages = len(table)
    _, last_entry, _, last_value = table[-1, :W_ENCODING].tolist()
    first_entry, _, first_value, _ = table[0, :W_ENCODING].tolist()
    room = 8 * pages
    for bits in (maximum.bit_length() for maximum in max_levels if maximum):
        room += max_hybrid_bytes(last_entry - first_entry, bits) + pages * max_hybrid_bytes(0, bits)
    for encoder in encoders:  # a bound of many values is at most that of all, and of none for each page
        room += encoder.max_bytes(values, first_value, last_value)
        room += pages * encoder.max_bytes(values, first_value, first_value)
    return room
