"""Find the pages where a column chunk may end, by decoding one page after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    ZSTD,
)
from numparq.kernels.tables import SLACK
from numparq.tools.verify.file_walk import PageSequence
from numparq.tools.verify.page_decoder import PageDecodeError, PageDecoder
from numparq.tools.verify.page_values import PageDictionary, PageValues
from numparq.tools.verify.page_walk import StoredPage

_CODECS = (UNCOMPRESSED, SNAPPY, ZSTD, GZIP, LZ4_RAW, BROTLI, LZ4, LZO)  # most common first
_DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)


@dataclass(frozen=True, slots=True)
class ChunkEnd:
    """Page boundary where a column chunk may end.

    Attributes
    ----------
    end_page : int
        Page after the chunk (exclusive end).
    codecs : tuple of int
        Codecs in which all its pages decode, the most likely first.
    is_certain : bool
        Whether all of these codecs decode to the same values.
    is_intact : bool
        Whether all pages were decoded. Others count as their headers say.
    """

    end_page: int
    num_rows: int
    num_values: int
    codecs: tuple[int, ...]
    is_certain: bool
    is_intact: bool


@dataclass
class _CodecTrial:
    """Decoding of one chunk with one candidate codec."""

    codec: int
    decoder: PageDecoder
    dictionary: PageDictionary | None = None


@dataclass
class ChunkEndFinder:
    """Decodes the pages from `start` on, one by one, as long as they can belong to one column chunk.

    Attributes
    ----------
    codecs : tuple of int
        Candidate codecs, the most likely first.
    limit : int
        Page (exclusive) where what is known of the pages ends: the chunk may go on behind it.
    is_tail : bool
        Whether the chunk may begin before `start`, with its dictionary. It then has at least the rows counted.
    ends : list of ChunkEnd
        Ends found so far.
    is_open : bool
        Whether the pages ran out before the chunk had to end.
    """

    source: Source
    walk: PageSequence
    leaf: Leaf
    start: int
    codecs: tuple[int, ...]
    scratch: Scratch
    limit: int
    is_tail: bool = False
    ends: list[ChunkEnd] = field(default_factory=list)
    is_open: bool = False
    _page: int = 0
    _rows: int = 0
    _values: int = 0
    _is_done: bool = False
    _is_certain: bool = True
    _is_intact: bool = True

    def __post_init__(self) -> None:
        self._page = self.start
        self._has_dictionary = not self.is_tail
        self._trials = [_CodecTrial(codec, PageDecoder(self.leaf, codec, self.scratch)) for codec in self.codecs]
        if self.is_tail:
            self._skip_page()

    @property
    def num_decoded(self) -> int:
        """Number of pages that belong to the chunk so far."""
        return self._page - self.start

    def find(self, num_rows: int | None) -> list[ChunkEnd]:
        """Find the ends up to `num_rows` rows (None: all) and return all ends found so far."""
        while not self._is_done and (num_rows is None or self._rows <= num_rows):
            self._decode_next_page()
        return self.ends

    def _decode_next_page(self) -> None:
        """Decode the next page and record the end after it."""
        if self._page >= self.limit:
            self._stop_at_limit()
            return
        page = self.walk.pages[self._page]
        is_first = self._page == self.start
        if not is_first and (page.header["type"] == DICTIONARY_PAGE or self._page in self.walk.chunk_boundaries):
            self._is_done = True
            return
        if self._page in self.walk.damaged or self._lacks_dictionary(page):
            self._count_page(page)
            return
        taken = self._decode_page(page)
        if taken is None:
            self._is_done = True
            return
        self._page += 1
        if page.header["type"] == DICTIONARY_PAGE:
            self._has_dictionary = True
            return
        if taken.repetition_levels is not None and taken.num_entries and taken.repetition_levels[0] and self.ends:
            self.ends.pop()  # the last row continues: not an end
        self._add_end(taken.num_rows, taken.num_entries)

    def _add_end(self, num_rows: int, num_values: int) -> None:
        """Add the rows of a page, and the end after it."""
        self._rows, self._values = self._rows + num_rows, self._values + num_values
        codecs = tuple(reading.codec for reading in self._trials)
        end = ChunkEnd(self._page, self._rows, self._values, codecs, self._is_certain, self._is_intact)
        self.ends.append(end)

    def _stop_at_limit(self) -> None:
        """Stop where the pages run out. The last row of a list may go on in what is lost behind them."""
        self.is_open = self._is_done = True
        if self.limit < len(self.walk.pages) or self.limit in self.walk.gaps:
            self._drop_open_row()

    def _drop_open_row(self) -> None:
        """Drop the last end if the next page, which is lost, may continue its last row."""
        is_open = self.leaf.max_repetition_level and self.walk.pages[self._page - 1].header["type"] != DATA_PAGE_V2
        if is_open and self.ends:
            self.ends.pop()

    def _lacks_dictionary(self, page: StoredPage) -> bool:
        """Whether a data page has indices into a dictionary that is damaged, or before the pages."""
        is_dictionary = page.header["type"] == DICTIONARY_PAGE
        return not is_dictionary and not self._has_dictionary and page.type_header["encoding"] in _DICTIONARY_ENCODINGS

    def _count_page(self, page: StoredPage) -> None:
        """Count a page that cannot be decoded by its header; without the rows of a list, the chunk's end is unknown."""
        about = page.type_header
        self._is_intact = False
        if page.header["type"] == DICTIONARY_PAGE:
            self._has_dictionary = False
            self._page += 1
            return
        rows = about.get("num_rows", 0) if self.leaf.max_repetition_level else about["num_values"]
        if not (rows or self.is_tail):
            self.is_open = self._is_done = True
            self._drop_open_row()
            return
        self._page += 1
        self._skip_page()
        self._add_end(rows, about["num_values"])

    def _skip_page(self) -> None:
        for trial in self._trials:
            trial.decoder.skip_page()

    def _decode_page(self, page: StoredPage) -> PageValues | None:
        """Decode a page with all remaining codecs; None if it cannot belong to the chunk."""
        about = page.type_header
        is_dictionary = page.header["type"] == DICTIONARY_PAGE
        allowed = (PLAIN, PLAIN_DICTIONARY) if is_dictionary else ENCODING_PHYSICAL_TYPES
        if about["encoding"] not in allowed or (not is_dictionary and not self._allows_encoding(about["encoding"])):
            return None
        size = page.end - page.body_offset
        raw = allocate(size + SLACK)
        self.source.read_into(page.body_offset, raw[:size])
        raw[size:] = 0
        left: list[_CodecTrial] = []
        decoded: list[PageValues] = []
        for reading in self._trials:
            if reading.codec == UNCOMPRESSED and page.header["uncompressed_page_size"] != size:
                continue
            values = self._try_codec(reading, raw, page)
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

    def _try_codec(self, reading: _CodecTrial, raw: np.ndarray, page: StoredPage) -> PageValues | None:
        try:
            if page.header["type"] == DICTIONARY_PAGE:
                found = reading.decoder.decode_dictionary_page(raw, page.header)
                # Arrow C++ leaves bytes behind the entries if a DictionaryArray repeats some, and has no indices into
                # them. The page may be one of another type, so pages with indices into it do not fit.
                reading.dictionary = None if found.num_unread else found
                return PageValues(None, None, 0, 0, found.count, found.values, found.starts, found.ends)
            values = reading.decoder.decode_data_page(raw, page.header, reading.dictionary)
        except PageDecodeError:
            return None
        if any(check == "writer-padding" for check, _ in values.deviations):
            return None  # readers ignore them (DuckDB 1.3 has such), but a page of a narrower type must not fit
        return values if page.header["type"] != DATA_PAGE_V2 or self._fits_counts(values, page.type_header) else None

    def _fits_counts(self, values: PageValues, header: dict[str, Any]) -> bool:
        """Whether a page of version 2 has the rows and nulls of its header; writers count too few in lists."""
        nulls = values.num_entries - values.num_values
        if not self.leaf.max_repetition_level:
            return bool(header["num_rows"] == values.num_rows and header["num_nulls"] == nulls)
        return header["num_rows"] in (0, values.num_rows, values.num_entries) and header["num_nulls"] <= nulls


def _are_equal(one: PageValues, other: PageValues) -> bool:
    """Whether two decodings of a page have the same values, levels and codes."""
    if (one.num_entries, one.num_rows, one.num_values) != (other.num_entries, other.num_rows, other.num_values):
        return False
    if one.removed != other.removed:
        return False
    parts = ("definition_levels", "repetition_levels", "starts", "ends", "codes")
    for name in parts:
        mine, theirs = getattr(one, name), getattr(other, name)
        if (mine is None) != (theirs is None) or (mine is not None and not np.array_equal(mine, theirs)):
            return False
    most = int(one.ends.max(initial=0)) if one.ends is not None else len(one.values)
    return one.values[:most].tobytes() == other.values[:most].tobytes()


def candidate_codecs(first: int | None) -> tuple[int, ...]:
    """Return all supported codecs, starting with the guess `first`."""
    return tuple(dict.fromkeys([*(codec for codec in _CODECS if codec == first), *_CODECS]))
