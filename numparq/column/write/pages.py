"""Write data pages (V1, V2) and dictionary pages: levels, values, compression, checksum, words of the header."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf
from numparq.column.encodings import INDEX_ENCODER, Encoder, encoder_for
from numparq.column.scratch import Scratch
from numparq.compression.codecs import compressor
from numparq.errors import SchemaError
from numparq.format.schema import Leaf
from numparq.format.thrift.templates import ABSENT
from numparq.kernels import writing_kernels
from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY

from .options import ColumnOptions
from .page_splits import PageSplits

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


class PageSpan(NamedTuple):
    """Entries, dense values and rows of one page; `last_entry` and `last_value` are exclusive."""

    first_entry: int
    last_entry: int
    first_value: int
    last_value: int
    num_rows: int


class PageWriter:
    """Writes the pages of one leaf column: what its values do not decide is decided once."""

    def __init__(self, leaf: Leaf, options: ColumnOptions) -> None:
        self._compress = compressor(options.codec, options.level)
        self._checksum = options.checksum
        self._write = self._write_v1 if options.data_page_version == 1 else self._write_v2
        self._max_levels = leaf.max_repetition_level, leaf.max_definition_level
        self._level_bits = [maximum.bit_length() for maximum in self._max_levels if maximum]

    def write(self, dense: DenseLeaf, encoding: int, splits: PageSplits, scratch: Scratch) -> list[EncodedPage]:
        """Encode the data pages of a column chunk."""
        encoder = INDEX_ENCODER if encoding == RLE_DICTIONARY else encoder_for(dense, encoding)
        rows, entries, values = (bounds.tolist() for bounds in splits)
        pages = []
        for page in range(len(rows) - 1):
            span = PageSpan(
                entries[page], entries[page + 1], values[page], values[page + 1], rows[page + 1] - rows[page]
            )
            room = sum([max_hybrid_bytes(span.last_entry - span.first_entry, bits) for bits in self._level_bits])
            room += 8 + encoder.max_bytes(dense, span.first_value, span.last_value)
            pages.append(self._write(dense, encoding, encoder, span, scratch.buffer("page", room)))
        return pages

    def _write_v1(
        self, dense: DenseLeaf, encoding: int, encoder: Encoder, span: PageSpan, out: np.ndarray
    ) -> EncodedPage:
        """Encode a data page V1: levels and values compressed together."""
        pos = 0
        for levels, maximum in zip((dense.repetition, dense.definition), self._max_levels, strict=True):
            if maximum:
                end = _write_levels(levels, maximum, span, out, pos + 4)
                out[pos : pos + 4] = np.frombuffer((end - pos - 4).to_bytes(4, "little"), np.uint8)
                pos = end
        pos = encoder.write(dense, span.first_value, span.last_value, out, pos)
        raw = out[:pos]
        body = raw.tobytes() if self._compress is None else self._compress(raw)
        return self._page(DATA_PAGE, body, pos, span.last_entry - span.first_entry, encoding, RLE, RLE)

    def _write_v2(
        self, dense: DenseLeaf, encoding: int, encoder: Encoder, span: PageSpan, out: np.ndarray
    ) -> EncodedPage:
        """Encode a data page V2: levels are never compressed, values only if that makes them smaller."""
        most_repetition, most_definition = self._max_levels
        repetition_bytes = _write_levels(dense.repetition, most_repetition, span, out, 0)
        pos = _write_levels(dense.definition, most_definition, span, out, repetition_bytes)
        end = encoder.write(dense, span.first_value, span.last_value, out, pos)
        body: Any = out[:end].tobytes()
        shrinks = False
        if self._compress is not None and end > pos:
            packed = self._compress(out[pos:end])
            shrinks = len(packed) < end - pos
            body = b"".join((body[:pos], packed)) if shrinks else body
        entries = span.last_entry - span.first_entry
        nulls, definition_bytes = entries - (span.last_value - span.first_value), pos - repetition_bytes
        levels = (definition_bytes, repetition_bytes)
        return self._page(DATA_PAGE_V2, body, end, entries, nulls, span.num_rows, encoding, *levels, shrinks)

    def write_dictionary(self, dense: DenseLeaf, scratch: Scratch) -> EncodedPage:
        """Encode the dictionary page, with values in PLAIN encoding."""
        values, plain = dense.values, encoder_for(dense, PLAIN)
        entries = DenseLeaf(values, None, values.count, values.count, values.count)
        out = scratch.buffer("page", plain.max_bytes(entries, 0, values.count))
        pos = plain.write(entries, 0, values.count, out, 0)
        body = out[:pos].tobytes() if self._compress is None else self._compress(out[:pos])
        return self._page(DICTIONARY_PAGE, body, pos, values.count, PLAIN)

    def _page(self, page_type: int, body: Any, uncompressed_size: int, *fields: int) -> EncodedPage:
        size = len(body)
        if max(uncompressed_size, size) > MAX_PAGE_SIZE:
            raise SchemaError(f"a page of {uncompressed_size:,} bytes is too large: the format's limit is 2 GiB")
        crc = ABSENT
        if self._checksum:
            crc = zlib.crc32(body)
            crc -= crc >> 31 << 32  # Thrift i32, same bits
        return EncodedPage(page_type, body, uncompressed_size, (page_type, uncompressed_size, size, crc, *fields))


def _write_levels(levels: np.ndarray | None, maximum: int, span: PageSpan, out: np.ndarray, pos: int) -> int:
    """Write a page's levels of one kind; None means that all are at the maximum, a maximum of 0 writes nothing."""
    if not maximum:
        return pos
    if levels is not None:
        width = maximum.bit_length()
        return writing_kernels.encode_hybrid_u1(levels, span.first_entry, span.last_entry, width, out, pos)
    run = _rle_run(span.last_entry - span.first_entry, maximum)
    out[pos : pos + len(run)] = np.frombuffer(run, np.uint8)
    return pos + len(run)


def _rle_run(count: int, value: int) -> bytes:
    """Return an RLE run of one level (Encodings.md, RLE)."""
    if not count:
        return b""
    header, rest = bytearray(), count << 1
    while rest > 127:
        header.append(rest & 127 | 128)
        rest >>= 7
    header.append(rest)
    return bytes([*header, value])
