"""Decode one page in isolation, so that a damaged page does not hide the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.read.decode import decode_binary_run, decode_fixed_dictionaries
from numparq.column.read.decompress import PageBatch, PageBatches, decompress_pages
from numparq.column.read.dictionary import EMPTY_DICTIONARY, decode_binary_dictionary
from numparq.column.read.pages import PageFailure, Pages, check_page
from numparq.column.read.transcode import DecodablePages, transcode
from numparq.column.scratch import Scratch, allocate
from numparq.compression.codecs import max_ratios
from numparq.errors import LimitError, ParquetError
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.format.schema import Leaf
from numparq.format.writer_quirks import PageQuirks
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import (
    DATA_PAGE_V2,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DICTIONARY_PAGE,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
)
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import BAD_UTF8
from numparq.kernels.tables import (
    ALWAYS_COMPRESSED,
    C_CAST,
    C_CODEC,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_ITEM_SIZE,
    C_MAX_RATIO,
    C_NULLS,
    C_NUM_VALUES,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_TYPE_LENGTH,
    CHUNK_FIELDS,
    CODES,
    COPY,
    NO_TRANSCODER,
    NULLS_RAISE,
    P_COMPRESSED,
    P_CRC,
    P_DEFINITION_BYTES,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_IS_COMPRESSED,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_REPETITION_BYTES,
    P_REPETITION_ENCODING,
    P_ROW,
    P_TYPE,
    P_UNCOMPRESSED,
    P_UNREAD,
    PAGE_FIELDS,
    PREFIX_CARRYOVER,
    SLACK,
)
from numparq.util.pluralize import agree_verb, pluralize

from .page_levels import PageLevelDecoder, excess_of_section, page_body
from .page_values import VALUE_DTYPES, PageDictionary, PageValues, first_delta_value, max_delta_bits
from .page_walk import has_negative_counts

_SIZES = {BOOLEAN: 0, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 0}
_DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)
_STRINGS = (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)
_TEXT_TYPES = ("STRING", "ENUM", "JSON")
_MAX_PAGE_BYTES = 1 << 31  # limit for levels and values of a page
_INT32_BITS = 32

_NO_QUIRKS = PageQuirks()


class PageDecodeError(Exception):
    """Page that cannot be decoded: the check it fails, and the reason."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(check, message)
        self.check = check
        self.message = message


class PageDecoder:
    """Decodes the pages of one column chunk one by one, in order."""

    def __init__(self, leaf: Leaf, codec: int, scratch: Scratch, quirks: PageQuirks = _NO_QUIRKS) -> None:
        self._leaf = leaf
        self._scratch = scratch
        self._last_string: bytes | None = b""  # last string of the page before; None if that could not be decoded
        self._width = _SIZES.get(leaf.physical, leaf.type_length or 0)
        self._is_text = leaf.logical is not None and leaf.logical.kind in _TEXT_TYPES and leaf.physical == BYTE_ARRAY
        self._levels = PageLevelDecoder(leaf, quirks)
        chunk = np.zeros(CHUNK_FIELDS, np.int64)
        chunk[C_TYPE], chunk[C_TYPE_LENGTH], chunk[C_CODEC] = leaf.physical, self._width, codec
        chunk[C_CAST], chunk[C_NULLS], chunk[C_DICTIONARY_SIZE] = COPY, NULLS_RAISE, -1
        chunk[C_ITEM_SIZE] = 1 if leaf.physical == BOOLEAN else self._width
        chunk[C_MAX_RATIO] = int(max_ratios(np.array([codec]))[0])
        chunk[C_QUIRKS] = quirks.page_flags | (quirks.string_flags if leaf.physical in _STRINGS else 0)
        self._chunk = chunk

    def decode_dictionary_page(self, raw: np.ndarray, header: dict[str, Any]) -> PageDictionary:
        """Decode a dictionary page; `raw` is its body followed by SLACK bytes.

        Raise PageDecodeError if it is damaged.
        """
        about = header["dictionary_page_header"]
        _check_counts(header, about)
        pages = self._pages(header, about["num_values"], about["encoding"], DICTIONARY_PAGE)
        pages.raw = raw
        try:
            if self._leaf.physical == BYTE_ARRAY:
                piece = decode_binary_dictionary(pages, self._scratch)
            else:
                (piece,) = decode_fixed_dictionaries(pages, self._scratch)
        except (PageFailure, ParquetError, MemoryError) as error:
            raise _decode_error(error, "page-values") from None
        assert piece is not None
        unread = int(pages.chunks[0, C_DICTIONARY_UNREAD])
        if self._leaf.physical == BYTE_ARRAY:
            self._check_text(piece)
            return PageDictionary(piece.data, piece.offsets[:-1].copy(), piece.offsets[1:].copy(), len(piece), unread)
        values = piece.data[: len(piece) * self._width].view(VALUE_DTYPES.get(self._leaf.physical, "u1"))
        return PageDictionary(values, None, None, len(piece), unread)

    def decode_data_page(
        self, raw: np.ndarray, header: dict[str, Any], dictionary: PageDictionary | None
    ) -> PageValues:
        """Decode a data page, which may continue a row of the page before; `raw` as in `decode_dictionary_page`.

        Raise PageDecodeError if it is damaged.
        """
        version2 = header["data_page_header_v2"] if header["type"] == DATA_PAGE_V2 else None
        about = version2 or header["data_page_header"]
        _check_counts(header, about)
        count = about["num_values"]
        per_value = 2 + max(self._width, 8 if about["encoding"] in _DICTIONARY_ENCODINGS else 1)
        if count * per_value > _MAX_PAGE_BYTES:
            raise PageDecodeError("not-checked", f"the page has {pluralize(count, 'value')}, too many to check")
        pages = self._pages(header, count, about["encoding"], header["type"])
        pages.raw = raw
        row = pages.pages[0]
        is_denied = False
        if version2 is None:
            row[P_DEFINITION_ENCODING] = about["definition_level_encoding"]
            row[P_REPETITION_ENCODING] = about["repetition_level_encoding"]
        else:
            row[P_DEFINITION_BYTES] = about["definition_levels_byte_length"]
            row[P_REPETITION_BYTES] = about["repetition_levels_byte_length"]
            levels = int(row[P_DEFINITION_BYTES] + row[P_REPETITION_BYTES])
            says_so = about.get("is_compressed", True)
            always = bool(self._chunk[C_QUIRKS] & ALWAYS_COMPRESSED)
            row[P_IS_COMPRESSED] &= int((says_so or always) and row[P_COMPRESSED] > levels)
            is_denied = bool(row[P_IS_COMPRESSED]) and not says_so
        found = self._decode_page(pages, dictionary)
        if is_denied:
            found.deviations.append(
                (
                    "writer-compressed",
                    "the page is compressed, but its is_compressed is false, as parquet-cpp wrote it (ARROW-10353)",
                )
            )
        return found

    def skip_page(self) -> None:
        """Record that a page could not be decoded: the next one may continue any row."""
        self._levels.skip_page()
        self._last_string = None

    def _pages(self, header: dict[str, Any], count: int, encoding: int, page_type: int) -> Pages:
        table, chunks = np.zeros((1, PAGE_FIELDS), np.int64), self._chunk.reshape(1, -1).copy()
        row = table[0]
        row[P_TYPE], row[P_ENCODING], row[P_NUM_VALUES], row[P_NUM_NULLS], row[P_CRC] = (
            page_type,
            encoding,
            count,
            -1,
            -1,
        )
        row[P_COMPRESSED], row[P_UNCOMPRESSED] = header["compressed_page_size"], header["uncompressed_page_size"]
        row[P_IS_COMPRESSED] = int(self._chunk[C_CODEC] != 0 and row[P_COMPRESSED] > 0)
        if not row[P_IS_COMPRESSED]:
            row[P_UNCOMPRESSED] = row[P_COMPRESSED]
        chunks[0, [C_NUM_VALUES, C_ROW_STOP]] = count
        return Pages(np.empty(0, np.uint8), chunks, table)

    def _decode_page(self, pages: Pages, dictionary: PageDictionary | None) -> PageValues:
        try:
            placement = PageBatches(pages, self._scratch)
            decompressed = self._scratch.buffer("decompressed", placement.decompressed)
            decompress_pages(pages, placement.batches[0], decompressed)
        except (PageFailure, ParquetError, MemoryError) as error:
            raise _decode_error(error, "page-decompressed") from None
        turned = self._levels.reverse_bits(pages, decompressed)
        excess = self._levels.excess_in_runs(pages, decompressed)
        try:
            found = self._levels.decode(pages, decompressed)
        except (PageFailure, ParquetError, MemoryError) as error:
            raise _decode_error(error, "page-levels") from None
        row = pages.pages[0]
        _note_oddities(found, turned, excess, int(row[P_UNREAD]))
        if not found.num_values:
            return found
        row[P_UNREAD] = 0
        pages.chunks[0, [C_NUM_VALUES, C_ROW_STOP]] = found.num_values
        goes_on = bool(row[P_ENCODING] == DELTA_BYTE_ARRAY and self._chunk[C_QUIRKS] & PREFIX_CARRYOVER)
        if goes_on:
            row[P_ROW] = pages.chunks[0, C_ROW_START] = 1  # row 0 is the last string of the page before
            pages.chunks[0, C_ROW_STOP] += 1
            self._scratch.carried_prefixes.clear()
            self._scratch.carried_prefixes[0, 1] = self._last_string or b""
        try:
            self._decode_values(pages, placement.batches[0], decompressed, dictionary, found)
        except (PageFailure, ParquetError, MemoryError) as error:
            if goes_on and self._last_string is None:
                raise PageDecodeError(
                    "not-checked", "the strings continue those of a page that could not be decoded"
                ) from None
            raise _decode_error(error, "page-values") from None
        self._last_string = self._scratch.carried_prefixes.pop((0, found.num_values + 1)) if goes_on else b""
        self._check_runs(row, pages.raw, decompressed, found)
        if row[P_UNREAD]:
            found.deviations.append(
                (
                    "writer-padding",
                    f"{pluralize(row[P_UNREAD], 'byte')} {agree_verb(row[P_UNREAD], 'follow')} the values",
                )
            )
        return found

    def _check_runs(self, row: np.ndarray, raw: np.ndarray, decompressed: np.ndarray, found: PageValues) -> None:
        """Record defects of indices and deltas that could be decoded; the page's levels have been stripped."""
        encoding, body = row[P_ENCODING], page_body(row, raw, decompressed)
        if encoding == DELTA_BINARY_PACKED and self._leaf.physical == INT32:
            widest = max_delta_bits(body.tobytes())
            if widest > _INT32_BITS:
                found.deviations.append(
                    (
                        "writer-deltas",
                        f"deltas of INT32 values have {pluralize(widest, 'bit')}, more than {_INT32_BITS}",
                    )
                )
        elif encoding in _DICTIONARY_ENCODINGS and len(body):
            excess = excess_of_section(body[1:], found.num_values, int(body[0]))
            if excess:
                found.deviations.append(("page-run", f"a run of indices goes on for {excess:,} more than the page has"))
        elif encoding == DELTA_BYTE_ARRAY and (shared := first_delta_value(body.tobytes())):
            found.deviations.append(
                (
                    "writer-prefixes",
                    f"the first string shares {pluralize(shared, 'byte')} with the last one of the previous page "
                    "(PARQUET-246)",
                )
            )

    def _decode_values(
        self,
        pages: Pages,
        batch: PageBatch,
        decompressed: np.ndarray,
        dictionary: PageDictionary | None,
        found: PageValues,
    ) -> None:
        if pages.pages[0, P_ENCODING] in _DICTIONARY_ENCODINGS:
            if dictionary is None:
                raise PageDecodeError(
                    "page-dictionary", "the page needs a dictionary page, but the column chunk has none before it"
                )
            pages.chunks[0, [C_CAST, C_ITEM_SIZE, C_DICTIONARY_SIZE]] = CODES, 4, dictionary.count
            out = self._decode_fixed(pages, batch, decompressed, dictionary.codes, 4)
            found.codes = out[: 4 * found.num_values].view(np.int32)
            found.values, found.starts, found.ends = dictionary.values, dictionary.starts, dictionary.ends
        elif self._leaf.physical == BYTE_ARRAY:
            piece = self._decode_binary(pages, batch, decompressed)
            self._check_text(piece)
            found.values, found.starts, found.ends = piece.data, piece.offsets[:-1].copy(), piece.offsets[1:].copy()
        else:
            item = self._width or 1
            out = self._decode_fixed(pages, batch, decompressed, np.empty(SLACK, np.uint8), item)
            found.values = out[: item * found.num_values].view(VALUE_DTYPES.get(self._leaf.physical, "u1"))

    def _decodable_pages(self, pages: Pages, batch: PageBatch, decompressed: np.ndarray) -> Iterable[DecodablePages]:
        _, _, _, transcoder = batch
        if transcoder == NO_TRANSCODER:
            return [(pages.pages, 0, 1, decompressed)]
        return transcode(pages, batch, decompressed, self._scratch)

    def _decode_fixed(
        self, pages: Pages, batch: PageBatch, decompressed: np.ndarray, dictionary: np.ndarray, item: int
    ) -> np.ndarray:
        count = int(pages.chunks[0, C_NUM_VALUES])
        out = allocate(count * item + SLACK)
        dense, unused = self._scratch.buffer("dense", count * max(item, 8)), self._scratch.buffer("levels", count)
        state = np.zeros(STATE_FIELDS, np.int64)
        for table, first, last, buffer in self._decodable_pages(pages, batch, decompressed):
            status = kernels.decode_fixed_pages(
                pages.chunks.reshape(-1),
                table.reshape(-1),
                first,
                last,
                pages.raw,
                buffer,
                dictionary,
                dense,
                unused,
                np.empty(0, np.uint8),
                out,
                state,
            )
            check_page(status, state)
            pages.pages[0, P_UNREAD] = table[0, P_UNREAD]
        return out

    def _decode_binary(self, pages: Pages, batch: PageBatch, decompressed: np.ndarray) -> BinaryArray:
        count = int(pages.chunks[0, C_NUM_VALUES])
        offsets = allocate(count + 1, "i8")
        offsets[0] = 0
        indices, unused = self._scratch.buffer("indices", 4 * count), self._scratch.buffer("levels", count)
        validity = self._scratch.buffer("validity", count)
        out = allocate(len(pages.raw) + SLACK)
        state = np.zeros(STATE_FIELDS, np.int64)
        for part in self._decodable_pages(pages, batch, decompressed):
            out = decode_binary_run(pages, part, EMPTY_DICTIONARY, indices, unused, validity, offsets, out, state)
            pages.pages[0, P_UNREAD] = part[0][0, P_UNREAD]
        return BinaryArray(offsets, out)

    def _check_text(self, piece: BinaryArray) -> None:
        if self._is_text and kernels.check_utf8(piece.offsets, len(piece), piece.data) == BAD_UTF8:
            raise PageDecodeError("page-utf8", "a value is not valid UTF-8")


def _check_counts(header: dict[str, Any], type_header: dict[str, Any]) -> None:
    """Raise PageDecodeError for negative counts or levels longer than the page: kernels do not check these."""
    if has_negative_counts(type_header):
        raise PageDecodeError("page-counts", "a count in the page header is negative")
    stored, plain = header["compressed_page_size"], header["uncompressed_page_size"]
    levels = type_header.get("definition_levels_byte_length", 0) + type_header.get("repetition_levels_byte_length", 0)
    if levels > min(stored, plain):
        raise PageDecodeError(
            "page-counts", f"the levels have {pluralize(levels, 'byte')}, but the page has {min(stored, plain):,}"
        )


def _note_oddities(found: PageValues, are_turned: bool, excess: int, unread: int) -> None:
    """Record what is odd about levels that could be decoded."""
    if are_turned:
        message = "BIT_PACKED levels begin with the lowest bit, as Impala wrote them (IMPALA-3006)"
        found.deviations.append(("writer-level-bits", message))
    if excess:
        found.deviations.append(("page-run", f"a run of levels goes on for {excess:,} more than the page has"))
    if unread:
        found.deviations.append(
            (
                "writer-padding",
                f"{pluralize(unread, 'byte')} {agree_verb(unread, 'follow')} the levels in their section",
            )
        )


def _decode_error(error: Exception, check: str) -> PageDecodeError:
    """Convert an error of the decoders; memory and limits become ``not-checked`` instead of `check`."""
    reason = error.error if isinstance(error, PageFailure) else error
    if isinstance(reason, MemoryError) and not isinstance(reason, LimitError):
        return PageDecodeError("not-checked", "not enough memory to decode the page")
    if isinstance(reason, (LimitError, NotImplementedError)):
        return PageDecodeError("not-checked", getattr(reason, "message", str(reason)))
    return PageDecodeError(check, getattr(reason, "message", str(reason)))
