"""Find row groups in a sequence of pages, where only one division into column chunks fits."""

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
    SNAPPY,
    UNCOMPRESSED,
    ZSTD,
)
from numparq.kernels.tables import SLACK
from numparq.tools.verify.page_decoder import PageDecodeError, PageDecoder
from numparq.tools.verify.page_values import PageDictionary, PageValues
from numparq.tools.verify.page_walk import PageSequence, StoredPage

_CODECS = (UNCOMPRESSED, SNAPPY, ZSTD, GZIP, LZ4_RAW, BROTLI, LZ4, LZO)  # most common first

_MAX_LISTED = 8


class AmbiguousPagesError(Exception):
    """Pages that can be divided in several ways.

    Attributes
    ----------
    argument : str
        Argument of `salvage` that decides: ``"row_group_size"`` or ``"codec"``.
    message : str
        The possible divisions.
    """

    def __init__(self, what: str, message: str) -> None:
        super().__init__(what, message)
        self.argument = what
        self.message = message


@dataclass(frozen=True)
class SalvagedChunk:
    """Column chunk found by its pages; `first_page` is its first page."""

    leaf: Leaf
    first_page: int
    end: ChunkEnd

    @property
    def codec(self) -> int:
        """Compression codec, the most likely one."""
        return self.end.codecs[0]


@dataclass(frozen=True)
class SalvagedRowGroup:
    """Complete row group found by its pages."""

    num_rows: int
    chunks: list[SalvagedChunk]

    @property
    def end_page(self) -> int:
        """Page after the row group (exclusive end)."""
        return self.chunks[-1].end.end_page


@dataclass
class RowGroupFinder:
    """Finds row groups in the pages of a file without a footer.

    Attributes
    ----------
    codec_guesses : dict of int to int
        Likely codec of each leaf column; updated with each row group found.
    codec : int or None
        Codec of all pages, if the user named it.
    row_group_size : int or None
        Rows of each row group but the last, if the user named it.
    """

    source: Source
    walk: PageSequence
    leaves: list[Leaf]
    codec_guesses: dict[int, int]
    codec: int | None = None
    row_group_size: int | None = None
    _deepest: int = 0
    _scratch: Scratch = field(default_factory=Scratch)
    _ends: dict[tuple[int, int], ChunkEndFinder] = field(default_factory=dict)

    def find(self, start: int) -> SalvagedRowGroup | None:
        """Return the row group that begins with page `start`; None if no complete one does.

        Raise AmbiguousPagesError if several divisions of the pages fit.
        """
        self._ends.clear()
        self._deepest = 0
        if len(self.leaves) == 1:
            return self._find_single_column(start)
        complete: list[SalvagedRowGroup] = []
        is_open = False
        for first in self._first_ends(start):
            group, goes_on = self._complete_row_group(start, first)
            is_open |= goes_on
            if group is None:
                continue
            if group.num_rows == self.row_group_size:
                return self._choose([group], False)
            complete.append(group)
            if len(complete) > _MAX_LISTED:
                break
        return self._choose(complete, is_open or self._chunk_end_finder(0, start).is_open)

    def _first_ends(self, start: int) -> list[ChunkEnd]:
        """Return the possible ends of the first chunk; the end at the user's row group size comes first."""
        ends = self._chunk_end_finder(0, start).find(self.row_group_size)
        if self.row_group_size is None:
            return ends
        wanted = [end for end in ends if end.num_rows <= self.row_group_size]
        return sorted(wanted, key=lambda end: end.num_rows != self.row_group_size)

    def _find_single_column(self, start: int) -> SalvagedRowGroup | None:
        """Return all pages up to the next dictionary page as one row group.

        With one column the rows are the same wherever row groups end.
        """
        ends = self._chunk_end_finder(0, start).find(None)
        wanted = [end for end in ends if end.num_rows == self.row_group_size] or ends[-1:]
        return (
            self._choose(
                [SalvagedRowGroup(wanted[0].num_rows, [SalvagedChunk(self.leaves[0], start, wanted[0])])], False
            )
            if wanted
            else None
        )

    def _complete_row_group(self, start: int, first: ChunkEnd) -> tuple[SalvagedRowGroup | None, bool]:
        """Return the row group whose first chunk ends at `first` (or None), and whether the file may end within it."""
        chunks = [SalvagedChunk(self.leaves[0], start, first)]
        for leaf in self.leaves[1:]:
            page = chunks[-1].end.end_page
            if page >= len(self.walk.pages):
                return None, True
            ends = self._chunk_end_finder(leaf.index, page)
            found = [end for end in ends.find(first.num_rows) if end.num_rows == first.num_rows]
            if not found:
                self._deepest = max(self._deepest, leaf.index)
                return None, ends.is_open
            chunks.append(SalvagedChunk(leaf, page, found[-1]))
        return SalvagedRowGroup(first.num_rows, chunks), False

    @property
    def failed_column(self) -> str:
        """Name of the last column that was tried when `find` returned None."""
        return self.leaves[self._deepest].name

    def _chunk_end_finder(self, column: int, page: int) -> ChunkEndFinder:
        key = column, page
        if key not in self._ends:
            codecs = (self.codec,) if self.codec is not None else candidate_codecs(self.codec_guesses.get(column))
            self._ends[key] = ChunkEndFinder(self.source, self.walk, self.leaves[column], page, codecs, self._scratch)
        return self._ends[key]

    def _choose(self, complete: list[SalvagedRowGroup], is_open: bool) -> SalvagedRowGroup | None:
        """Return the only complete row group, None if there is none; raise AmbiguousPagesError if several fit."""
        if not complete:
            return None
        if len(complete) > 1 or is_open:
            sizes = ", ".join(f"{group.num_rows:,}" for group in complete[:_MAX_LISTED])
            more = ", or one that is cut off" if is_open else ""
            raise AmbiguousPagesError("row_group_size", f"the pages may form a row group of {sizes} rows{more}")
        for chunk in complete[0].chunks:
            if not chunk.end.is_certain:
                raise AmbiguousPagesError("codec", f"several codecs can decompress column {chunk.leaf.name!r}")
            self.codec_guesses[chunk.leaf.index] = chunk.codec
        return complete[0]


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
    """

    end_page: int
    num_rows: int
    num_values: int
    codecs: tuple[int, ...]
    is_certain: bool


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
    ends: list[ChunkEnd] = field(default_factory=list)
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
        """Find the ends up to `num_rows` rows (None: all) and return all ends found so far."""
        while not self._is_done and (num_rows is None or self._rows <= num_rows):
            self._decode_next_page()
        return self.ends

    def _decode_next_page(self) -> None:
        """Decode the next page and record the end after it."""
        pages = self.walk.pages
        if self._page >= len(pages):
            self.is_open = self._is_done = True
            return
        page = pages[self._page]
        is_first = self._page == self.start
        if not is_first and (page.header["type"] == DICTIONARY_PAGE or self._page in self.walk.chunk_boundaries):
            self._is_done = True
            return
        taken = self._decode_page(page)
        if taken is None:
            self._is_done = True
            return
        self._page += 1
        if page.header["type"] == DICTIONARY_PAGE:
            return
        self._rows, self._values = self._rows + taken.num_rows, self._values + taken.num_entries
        if taken.repetition_levels is not None and taken.num_entries and taken.repetition_levels[0] and self.ends:
            self.ends.pop()  # the last row continues: not an end
        codecs = tuple(reading.codec for reading in self._trials)
        self.ends.append(ChunkEnd(self._page, self._rows, self._values, codecs, self._is_certain))

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
                reading.dictionary = reading.decoder.decode_dictionary_page(raw, page.header)
                found = reading.dictionary
                return PageValues(None, None, 0, 0, found.count, found.values, found.starts, found.ends)
            values = reading.decoder.decode_data_page(raw, page.header, reading.dictionary)
        except PageDecodeError:
            return None
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
