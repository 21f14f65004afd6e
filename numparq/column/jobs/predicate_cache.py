"""Predicate cache: values decoded for a filter become columns without a second fetch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read.decode import check_utf8
from numparq.column.read.output import FixedOutput
from numparq.column.read.pages import Pages
from numparq.column.read.take import ValueSelection, dictionary_decode, take_array, take_binary
from numparq.errors import ParquetError
from numparq.kernels.enums import BOOLEAN, DATA_PAGE, PLAIN, RLE, UNCOMPRESSED
from numparq.kernels.tables import (
    C_CAST,
    C_CODEC,
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_NULLS,
    C_NUM_VALUES,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_VALIDITY,
    COPY,
    NULLS_MASK,
    P_COMPRESSED,
    P_CRC,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_NUM_NULLS,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    PAGE_FIELDS,
    SLACK,
)

from .job import DecodeJob
from .slice import FixedJob

__all__ = ["CachedBinary", "CachedBinaryJob", "CachedFixed", "CachedFixedJob"]


@dataclass(frozen=True)
class CachedFixed:
    """Values of a fixed size, as they are stored.

    Parameters
    ----------
    values : numpy.ndarray
        An item a row; what is at nulls does not count.
    validity : uint8 array or None
        1 where there is a value; None: everywhere.
    """

    values: np.ndarray
    validity: np.ndarray | None

    def take(self, taking: ValueSelection) -> CachedFixed:
        """Take some of the rows, in memory of their own."""
        validity = None if self.validity is None else take_array(self.validity, taking)
        return CachedFixed(take_array(self.values, taking), validity)

    def copy_to(self, chunk: np.ndarray, output: FixedOutput) -> bool:
        """Copy the values to where a chunk's C_OUT and C_MASK say, if they become what they are stored as, all of them.

        Returns
        -------
        bool
            Whether that is so.
        """
        values = self.values
        is_same = chunk[C_CAST] == COPY and chunk[C_ITEM_SIZE] == values.itemsize and chunk[C_TYPE] != BOOLEAN
        if not is_same or self.validity is not None:
            return False
        start, row = int(chunk[C_OUT]), int(chunk[C_VALIDITY])
        output.out[start : start + values.nbytes] = values.view(np.uint8)
        if chunk[C_NULLS] == NULLS_MASK:
            output.mask[row : row + len(values)] = 1
        return True

    def to_plain_page(self, physical: int, is_optional: bool) -> np.ndarray:
        """Give the values as the body of a data page of version 1 in PLAIN, with SLACK behind it; uint8."""
        values, validity = self.values, self.validity
        if validity is not None and is_optional:
            values = values[validity != 0]
        plain = np.packbits(values != 0, bitorder="little") if physical == BOOLEAN else values.view(np.uint8)
        levels = _levels(len(self.values), validity) if is_optional else b""
        return np.concatenate([np.frombuffer(levels, np.uint8), plain, np.zeros(SLACK, np.uint8)])


def _levels(count: int, validity: np.ndarray | None) -> bytes:
    """Encode definition levels of 0 and 1 as a data page has them (Encodings.md, RLE): in a single run."""
    if validity is None:
        section = _varint(count << 1) + b"\1"
    else:
        bits = np.packbits(validity != 0, bitorder="little")
        section = _varint(len(bits) << 1 | 1) + bits.tobytes()
    return len(section).to_bytes(4, "little") + section


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


@dataclass(frozen=True)
class CachedBinary:
    """Values of BYTE_ARRAY, or codes of them; a row each."""

    piece: BinaryArray | DictionaryArray

    def take(self, taking: ValueSelection) -> CachedBinary:
        """Take some of the rows, in memory of their own."""
        if isinstance(self.piece, DictionaryArray):
            return CachedBinary(DictionaryArray(take_array(self.piece.codes, taking), self.piece.dictionary))
        return CachedBinary(take_binary(self.piece, taking))

    def shrink(self) -> CachedBinary:
        """Give the strings themselves where they are fewer than a dictionary has, so that it need not be kept."""
        piece = self.piece
        is_smaller = isinstance(piece, DictionaryArray) and len(piece) < len(piece.dictionary)
        return CachedBinary(dictionary_decode(piece)) if is_smaller else self  # type: ignore[arg-type]


@dataclass
class CachedFixedJob(FixedJob):
    """Makes rows of the output of values that were kept: they are decoded as the page that they might be from."""

    cached: CachedFixed = field(kw_only=True)

    @property
    def num_bytes(self) -> int:
        """The bytes that it goes over."""
        return self.cached.values.nbytes

    def __call__(self) -> None:
        """Decode the values into the output; those that become what they are stored as are copied."""
        chunk, count = self.chunks[0], len(self.cached.values)
        if self.cached.copy_to(chunk, self.output):
            chunk[C_NULL_COUNT] = 0
            return
        chunk[[C_ROW_START, C_CODEC, C_QUIRKS]] = 0, UNCOMPRESSED, 0
        chunk[[C_ROW_STOP, C_NUM_VALUES]] = count
        super().__call__()

    def page_windows(self) -> Iterator[Pages]:
        """Yield the values as a page in memory."""
        physical, is_optional = int(self.chunks[0, C_TYPE]), bool(self.chunks[0, C_MAX_DEFINITION])
        body = self.cached.to_plain_page(physical, is_optional)
        page = np.zeros((1, PAGE_FIELDS), np.int64)
        page[0, [P_TYPE, P_ENCODING, P_DEFINITION_ENCODING]] = DATA_PAGE, PLAIN, RLE
        page[0, [P_NUM_NULLS, P_CRC]] = -1
        page[0, P_NUM_VALUES] = self.chunks[0, C_NUM_VALUES]
        page[0, [P_COMPRESSED, P_UNCOMPRESSED]] = len(body) - SLACK
        yield Pages(body, self.chunks, page)


@dataclass
class CachedBinaryJob(DecodeJob):
    """Makes pieces of strings that were kept.

    Parameters
    ----------
    cached : CachedBinary
        The strings.
    keep_codes : bool
        Whether codes are wanted as they are.
    utf8 : bool
        Whether the strings must be valid UTF-8.
    """

    cached: CachedBinary = field(kw_only=True)
    keep_codes: bool = field(kw_only=True)
    utf8: bool = field(kw_only=True)

    @property
    def num_bytes(self) -> int:
        """The bytes that it goes over."""
        piece = self.cached.piece
        return piece.codes.nbytes if isinstance(piece, DictionaryArray) else piece.data.nbytes

    def __call__(self) -> None:
        """Make the piece."""
        piece = self.cached.piece
        if isinstance(piece, DictionaryArray):
            self.chunks[0, C_NULL_COUNT] = int(np.count_nonzero(piece.codes < 0))
            self._check_text(piece.dictionary)
            self.arrays.append(piece if self.keep_codes else dictionary_decode(piece))
            return
        self._check_text(piece)
        self.chunks[0, C_NULL_COUNT] = piece.null_count
        self.arrays.append(piece)

    def _check_text(self, piece: BinaryArray) -> None:
        if self.utf8:
            try:
                check_utf8(piece)
            except ParquetError as error:
                raise self._add_location(error, 0) from None
