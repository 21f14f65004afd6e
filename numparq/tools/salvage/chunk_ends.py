"""Find the pages where a column chunk may end, by decoding with each candidate codec."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numparq.column.encodings import ENCODING_PHYSICAL_TYPES
from numparq.column.scratch import Scratch, allocate
from numparq.format.schema import Leaf
from numparq.io.source import Source
from numparq.kernels.enums import (
    BROTLI,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    GZIP,
    LZ4,
    LZ4_RAW,
    LZO,
    PLAIN,
    PLAIN_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    ZSTD,
)
from numparq.kernels.tables import SLACK
from numparq.tools.verify.page_decoder import PageDecodeError, PageDecoder
from numparq.tools.verify.page_values import PageDictionary, PageValues
from numparq.tools.verify.page_walk import PageSequence, StoredPage

__all__ = ["ChunkEnd", "ChunkEndFinder", "candidate_codecs"]

_CODECS = (UNCOMPRESSED, SNAPPY, ZSTD, GZIP, LZ4_RAW, BROTLI, LZ4, LZO)  # those first that writers choose most


@dataclass(frozen=True)
class ChunkEnd:
    """A place where a column chunk may end.

    Parameters
    ----------
    page : int
        The page behind it.
    num_rows, num_values : int
        Rows that begin in it, and entries.
    codecs : tuple of int
        The codecs that its pages decode in, the best guess first.
    is_certain : bool
        Whether all of them give the same values.
    must_end : bool
        Whether no page behind can be part of the chunk.
    """

    page: int
    num_rows: int
    num_values: int
    codecs: tuple[int, ...]
    is_certain: bool
    must_end: bool


@dataclass
class _CodecTrial:
    """A chunk that is decoded in one codec."""

    codec: int
    decoder: PageDecoder
    dictionary: PageDictionary | None = None


@dataclass
class ChunkEndFinder:
    """Decodes the pages of a column chunk one by one, as far as they can be its.

    Parameters
    ----------
    source : Source
        The file.
    walk : PageSequence
        Its pages.
    leaf : Leaf
        The column.
    start : int
        Its first page.
    codecs : sequence of int
        What its pages may be compressed with, the best guess first.
    scratch : Scratch
        Buffers.

    Attributes
    ----------
    found : list of ChunkEnd
        The ends so far.
    is_open : bool
        Whether the pages ran out while all of them were the chunk's: it may go on behind.
    """

    source: Source
    walk: PageSequence
    leaf: Leaf
    start: int
    codecs: tuple[int, ...]
    scratch: Scratch
    found: list[ChunkEnd] = field(default_factory=list)
    is_open: bool = False
    _page: int = 0
    _rows: int = 0
    _values: int = 0
    _is_done: bool = False
    _is_certain: bool = True

    def __post_init__(self) -> None:
        self._page = self.start
        self._trials = [_CodecTrial(codec, PageDecoder(self.leaf, codec, self.scratch)) for codec in self.codecs]

    def find(self, num_rows: int | None) -> list[ChunkEnd]:
        """Find the ends up to so many rows, or all of them."""
        while not self._is_done and (num_rows is None or self._rows <= num_rows):
            self._step()
        return self.found

    def _step(self) -> None:
        """Take one more page."""
        pages = self.walk.pages
        if self._page >= len(pages):
            self.is_open = self._is_done = True
            return
        page = pages[self._page]
        is_first = self._page == self.start
        if not is_first and (page.header["type"] == DICTIONARY_PAGE or self._page in self.walk.chunk_boundaries):
            self._finish()
            return
        taken = self._take(page)
        if taken is None:
            self._is_done = True
            return
        self._page += 1
        if page.header["type"] == DICTIONARY_PAGE:
            return
        self._rows, self._values = self._rows + taken.num_rows, self._values + taken.num_entries
        if taken.repetition is not None and taken.num_entries and taken.repetition[0] and self.found:
            self.found.pop()  # the row goes on behind what looked like an end
        codecs = tuple(reading.codec for reading in self._trials)
        self.found.append(ChunkEnd(self._page, self._rows, self._values, codecs, self._is_certain, False))

    def _finish(self) -> None:
        self._is_done = True
        if self.found:
            last = self.found.pop()
            self.found.append(ChunkEnd(last.page, last.num_rows, last.num_values, last.codecs, last.is_certain, True))

    def _take(self, page: StoredPage) -> PageValues | None:
        """Decode a page in all codecs that are left; None where it cannot be the chunk's."""
        about = page.about
        is_dictionary = page.header["type"] == DICTIONARY_PAGE
        allowed = (PLAIN, PLAIN_DICTIONARY) if is_dictionary else ENCODING_PHYSICAL_TYPES
        if about["encoding"] not in allowed or (not is_dictionary and not self._allows_encoding(about["encoding"])):
            return None
        size = page.end - page.body
        raw = allocate(size + SLACK)
        self.source.read_into(page.body, raw[:size])
        raw[size:] = 0
        left: list[_CodecTrial] = []
        decoded: list[PageValues] = []
        for reading in self._trials:
            if reading.codec == UNCOMPRESSED and page.header["uncompressed_page_size"] != size:
                continue
            values = self._decode(reading, raw, page)
            if values is not None:
                left.append(reading)
                decoded.append(values)
        self._trials = left
        self._is_certain = len(left) < 2 or (
            self._is_certain and all(_are_equal(decoded[0], one) for one in decoded[1:])
        )
        return decoded[0] if decoded else None

    def _allows_encoding(self, encoding: int) -> bool:
        return self.leaf.physical in ENCODING_PHYSICAL_TYPES[encoding]

    def _decode(self, reading: _CodecTrial, raw: np.ndarray, page: StoredPage) -> PageValues | None:
        try:
            if page.header["type"] == DICTIONARY_PAGE:
                reading.dictionary = reading.decoder.dictionary(raw, page.header)
                found = reading.dictionary
                return PageValues(None, None, 0, 0, found.count, found.values, found.starts, found.ends)
            values = reading.decoder.data(raw, page.header, reading.dictionary)
        except PageDecodeError:
            return None
        about = page.about
        if page.header["type"] == DATA_PAGE_V2 and (
            about["num_rows"] != values.num_rows or about["num_nulls"] != values.num_entries - values.num_values
        ):
            return None
        return None if values.unused else values


def _are_equal(one: PageValues, other: PageValues) -> bool:
    """Tell whether two decodings of a page give the same."""
    if (one.num_entries, one.num_rows, one.num_values) != (other.num_entries, other.num_rows, other.num_values):
        return False
    parts = ("definition", "repetition", "starts", "ends", "codes")
    for name in parts:
        mine, theirs = getattr(one, name), getattr(other, name)
        if (mine is None) != (theirs is None) or (mine is not None and not np.array_equal(mine, theirs)):
            return False
    most = int(one.ends.max(initial=0)) if one.ends is not None else len(one.values)
    return one.values[:most].tobytes() == other.values[:most].tobytes()


def candidate_codecs(first: int | None) -> tuple[int, ...]:
    """List the codecs that numparq reads, a guess first."""
    return tuple(dict.fromkeys([*(codec for codec in _CODECS if codec == first), *_CODECS]))
