"""Write data pages (V1, V2) and dictionary pages: levels, values, compression, header, checksum."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf
from numparq.column.encodings import Encoder
from numparq.column.scratch import Scratch
from numparq.errors import SchemaError
from numparq.format.schema import Leaf
from numparq.format.thrift.encode import encode_struct
from numparq.kernels import writing_kernels
from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE

MAX_PAGE_SIZE = (1 << 31) - 1

Compress = Callable[[Any], Any]


class EncodedPage(NamedTuple):
    """A page as written to the file.

    Attributes
    ----------
    body : bytes-like
        The page after its header, compressed.
    uncompressed_size : int
        Bytes of the body before compression.
    """

    header: bytes
    body: Any
    uncompressed_size: int

    @property
    def size(self) -> int:
        """Bytes in the file, header included."""
        return len(self.header) + len(self.body)

    @property
    def uncompressed(self) -> int:
        """Bytes of header and uncompressed body."""
        return len(self.header) + self.uncompressed_size


class PageSpan(NamedTuple):
    """Entries, dense values and rows of one page; `last_entry` and `last_value` are exclusive."""

    first_entry: int
    last_entry: int
    first_value: int
    last_value: int
    num_rows: int


class PageWriter:
    """Writes the pages of one column chunk; `compress` is None for UNCOMPRESSED."""

    def __init__(
        self,
        leaf: Leaf,
        dense: DenseLeaf,
        encoding: int,
        encoder: Encoder,
        compress: Compress | None,
        checksum: bool,
        scratch: Scratch,
    ) -> None:
        self._leaf = leaf
        self._dense = dense
        self._encoding = encoding
        self._encoder = encoder
        self._compress = compress
        self._checksum = checksum
        self._scratch = scratch
        self._levels = ((dense.repetition, leaf.max_repetition_level), (dense.definition, leaf.max_definition_level))

    def write_v1(self, span: PageSpan, statistics: dict[str, Any] | None) -> EncodedPage:
        """Encode a data page V1: levels and values compressed together."""
        out = self._room(span, 8)
        pos = 0
        for levels, maximum in self._levels:
            if maximum:
                end = _write_levels(levels, maximum, span, out, pos + 4)
                out[pos : pos + 4] = np.frombuffer((end - pos - 4).to_bytes(4, "little"), np.uint8)
                pos = end
        pos = self._encoder.write(self._dense, span.first_value, span.last_value, out, pos)
        raw = out[:pos]
        body = raw.tobytes() if self._compress is None else self._compress(raw)
        header = {
            "num_values": span.last_entry - span.first_entry,
            "encoding": self._encoding,
            "definition_level_encoding": RLE,
            "repetition_level_encoding": RLE,
            "statistics": statistics,
        }
        return self._page({"type": DATA_PAGE, "data_page_header": header}, body, pos)

    def write_v2(self, span: PageSpan, statistics: dict[str, Any] | None) -> EncodedPage:
        """Encode a data page V2: levels are never compressed, values only if that makes them smaller."""
        out = self._room(span, 0)
        (repetition, most_repetition), (definition, most_definition) = self._levels
        repetition_bytes = _write_levels(repetition, most_repetition, span, out, 0)
        pos = _write_levels(definition, most_definition, span, out, repetition_bytes)
        end = self._encoder.write(self._dense, span.first_value, span.last_value, out, pos)
        body: Any = out[:end].tobytes()
        shrinks = False
        if self._compress is not None and end > pos:
            packed = self._compress(out[pos:end])
            shrinks = len(packed) < end - pos
            body = b"".join((body[:pos], packed)) if shrinks else body
        entries = span.last_entry - span.first_entry
        header = {
            "num_values": entries,
            "num_nulls": entries - (span.last_value - span.first_value),
            "num_rows": span.num_rows,
            "encoding": self._encoding,
            "definition_levels_byte_length": pos - repetition_bytes,
            "repetition_levels_byte_length": repetition_bytes,
            "is_compressed": shrinks,
            "statistics": statistics,
        }
        return self._page({"type": DATA_PAGE_V2, "data_page_header_v2": header}, body, end)

    def write_dictionary(self, plain: Encoder) -> EncodedPage:
        """Encode the dictionary page, with values in PLAIN encoding."""
        values = self._dense.values
        entries = DenseLeaf(values, None, values.count, values.count, values.count)
        out = self._scratch.buffer("page", plain.max_bytes(entries, 0, values.count))
        pos = plain.write(entries, 0, values.count, out, 0)
        body = out[:pos].tobytes() if self._compress is None else self._compress(out[:pos])
        header = {"num_values": values.count, "encoding": PLAIN}
        return self._page({"type": DICTIONARY_PAGE, "dictionary_page_header": header}, body, pos)

    def _room(self, span: PageSpan, prefixes: int) -> np.ndarray:
        entries = span.last_entry - span.first_entry
        levels = sum(max_hybrid_bytes(entries, maximum.bit_length()) for _, maximum in self._levels)
        values = self._encoder.max_bytes(self._dense, span.first_value, span.last_value)
        return self._scratch.buffer("page", prefixes + levels + values)

    def _page(self, header: dict[str, Any], body: Any, uncompressed_size: int) -> EncodedPage:
        if max(uncompressed_size, len(body)) > MAX_PAGE_SIZE:
            raise SchemaError(f"a page of {uncompressed_size:,} bytes is too large: the format's limit is 2 GiB")
        header["uncompressed_page_size"] = uncompressed_size
        header["compressed_page_size"] = len(body)
        if self._checksum:
            crc = zlib.crc32(body)
            header["crc"] = crc - (1 << 32) if crc >> 31 else crc  # Thrift i32, same bits
        return EncodedPage(encode_struct("PageHeader", header), body, uncompressed_size)


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
