"""Decode jobs for a leaf of a nested column: levels and dense values, or row counts of pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.nested.levels import _NO_BYTES, LevelDecoder
from numparq.column.read.decode import decode_binary_run
from numparq.column.read.decompress import PageBatches, decompress_pages
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices
from numparq.column.read.pages import PageFailure, Pages, check_page
from numparq.column.read.row_selection import RowSlice
from numparq.column.read.transcode import DecodablePages, transcode
from numparq.column.scratch import Scratch, allocate
from numparq.errors import InvalidFileError
from numparq.format.schema import Leaf
from numparq.kernels import kernels
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.status import BAD_LEVELS
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULLS,
    C_NUM_VALUES,
    C_OUT,
    C_QUIRKS,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    C_VALIDITY,
    CODES,
    NULLS_RAISE,
    P_BODY,
    P_COMPRESSED,
    P_HEADER,
    P_NUM_VALUES,
    P_TYPE,
    SLACK,
)
from numparq.types.output_type import OutputType

from .job import RETRY_STATUSES, DecodeJob

__all__ = ["NestedJob", "PageRowCountJob"]

_CODE = np.dtype(np.int32)
# Codes are kept where there are so many times as many entries of the chunk as of its dictionary.
MIN_VALUES_PER_ENTRY = 2


@dataclass
class NestedJob(DecodeJob):
    """One chunk of a leaf of a nested column.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    target : OutputType
        How its values are decoded.
    rows : RowSlice
        The rows wanted.
    num_rows : int
        Rows of the row group.
    """

    leaf: Leaf = field(kw_only=True)
    target: OutputType = field(kw_only=True)
    rows: RowSlice = field(kw_only=True)
    num_rows: int = field(kw_only=True)

    def __call__(self) -> None:
        """Decode the chunk into one piece."""
        room = int(self.chunks[0, C_NUM_VALUES])
        levels = LevelDecoder(self.leaf, room, int(self.chunks[0, C_QUIRKS]))
        dense = self._dense_chunk()
        values: _FixedDecoder | _BinaryDecoder | _NullDecoder
        if self.target.storage == "null":
            values = _NullDecoder()
        elif self.target.dtype is not None:
            values = _FixedDecoder(self.target.dtype, room)
        else:
            values = _BinaryDecoder(self)
        for window in self.page_windows():
            pages = Pages(window.raw, dense, window.pages)
            try:
                values.decode(pages, levels, self.context.local.get())
            except PageFailure as failure:
                if failure.status in RETRY_STATUSES and self.target.on_inexact is not None:
                    self.retries[self.columns[0]] = failure.status
                    return
                error = failure.error
                raise self._add_location(error, pages.add_page_to_error(error, failure.page)) from None
        self._check_rows(levels.num_rows)
        self.arrays.append(levels.to_leaf(values.finish(levels.num_values), self.rows, self.num_rows))

    def _check_rows(self, rows: int) -> None:
        """Refuse levels of another number of rows than the row group has."""
        if rows != self.num_rows:
            message = f"the levels have {rows:,} rows, but the row group has {self.num_rows:,}"
            raise self._add_location(InvalidFileError(message), 0)

    def _dense_chunk(self) -> np.ndarray:
        """Make the chunk table of what the pages are once their levels are taken away: values without nulls."""
        chunks = self.chunks.copy()
        chunks[0, [C_MAX_DEFINITION, C_ROW_START, C_OUT, C_VALIDITY]] = 0
        chunks[0, C_ROW_STOP] = chunks[0, C_NUM_VALUES]
        chunks[0, C_NULLS] = NULLS_RAISE
        return chunks


def _dense_pages(
    pages: Pages, levels: LevelDecoder, placement: PageBatches, scratch: Scratch
) -> Iterator[DecodablePages]:
    """Decompress pages, take their levels away, and give them in encodings that the decoders read."""
    decompressed = scratch.buffer("decompressed", placement.decompressed)
    for batch in placement.batches:
        decompress_pages(pages, batch, decompressed)
        levels.decode(pages, batch[0], batch[1], decompressed)
        yield from transcode(pages, batch, decompressed, scratch)


class _NullDecoder:
    """Of a leaf that is always null: only the levels count."""

    def decode(self, pages: Pages, levels: LevelDecoder, scratch: Scratch) -> None:
        for _ in _dense_pages(pages, levels, PageBatches(pages), scratch):
            pass

    def finish(self, count: int) -> np.ndarray:
        return np.full(count, None, object)


class _FixedDecoder:
    """Values of a fixed size, as the pages of a chunk come in."""

    def __init__(self, dtype: np.dtype, room: int) -> None:
        self._dtype = dtype
        self._out = allocate(room * dtype.itemsize + SLACK)

    def decode(self, pages: Pages, levels: LevelDecoder, scratch: Scratch) -> None:
        placement = PageBatches(pages)
        dictionary = scratch.buffer("dictionary", placement.dictionary)
        _decode_fixed(pages, levels, placement, dictionary, self._out, scratch)

    def finish(self, count: int) -> np.ndarray:
        return self._out[: count * self._dtype.itemsize].view(self._dtype)


def _decode_fixed(
    pages: Pages,
    levels: LevelDecoder,
    placement: PageBatches,
    dictionary: np.ndarray,
    out: np.ndarray,
    scratch: Scratch,
) -> None:
    dense = scratch.buffer("dense", placement.values * placement.item)
    unused = scratch.buffer("levels", 0)
    state = np.zeros(STATE_FIELDS, np.int64)
    for table, first, last, buffer in _dense_pages(pages, levels, placement, scratch):
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
            _NO_BYTES,
            out,
            state,
        )
        check_page(status, state)


class _BinaryDecoder:
    """BYTE_ARRAY values: a piece for each window of pages, of codes where all of them are dictionary indices."""

    def __init__(self, job: NestedJob) -> None:
        self._job = job
        self._dictionary: BinaryArray | None = None
        self._pieces: list[BinaryArray | DictionaryArray] = []

    def decode(self, pages: Pages, levels: LevelDecoder, scratch: Scratch) -> None:
        utf8 = self._job.target.utf8
        self._dictionary = self._job.decode_dictionary(pages, utf8) or self._dictionary
        first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        try:
            self._data_pages(Pages(pages.raw, pages.chunks, pages.pages[first:]), levels, scratch)
        except PageFailure as failure:
            failure.page += first
            raise

    def _data_pages(self, pages: Pages, levels: LevelDecoder, scratch: Scratch) -> None:
        if not len(pages.pages):
            return
        only_indices = all_have_indices(pages)
        pages.chunks[0, C_ROW_START] = levels.num_values
        most = int(pages.pages[:, P_NUM_VALUES].sum())
        dictionary = self._dictionary
        if (
            self._job.target.keep_codes
            and only_indices
            and dictionary
            and MIN_VALUES_PER_ENTRY * len(dictionary) <= most
        ):
            self._pieces.append(self._codes(pages, levels, dictionary, most, scratch))
            return
        piece = self._decoded(pages, levels, most, scratch)
        self._pieces.append(piece)
        if self._job.target.utf8 and not only_indices:
            self._job.check_utf8(piece, pages)

    def _codes(
        self, pages: Pages, levels: LevelDecoder, dictionary: BinaryArray, most: int, scratch: Scratch
    ) -> DictionaryArray:
        """Keep the indices of pages, up to `most`, as they are: values of a dictionary of 0, 1, 2 and so on."""
        chunks = pages.chunks.copy()
        chunks[0, [C_CAST, C_ITEM_SIZE, C_DICTIONARY]] = CODES, _CODE.itemsize, 0
        pages = Pages(pages.raw, chunks, pages.pages)
        before = levels.num_values
        out = allocate(most * _CODE.itemsize + SLACK)
        ordinals = np.arange(len(dictionary) + SLACK, dtype=_CODE).view(np.uint8)
        _decode_fixed(pages, levels, PageBatches(pages), ordinals, out, scratch)
        codes = out[: (levels.num_values - before) * _CODE.itemsize].view(_CODE)
        return DictionaryArray(codes, dictionary)

    def _decoded(self, pages: Pages, levels: LevelDecoder, most: int, scratch: Scratch) -> BinaryArray:
        placement = PageBatches(pages)
        before = levels.num_values
        entries = self._dictionary or EMPTY_DICTIONARY
        offsets = allocate(most + 1, "i8")
        offsets[0] = 0
        indices, unused = scratch.buffer("indices", 4 * placement.values), scratch.buffer("levels", placement.values)
        validity = scratch.buffer("validity", most)
        state = np.zeros(STATE_FIELDS, np.int64)
        out = allocate(len(pages.raw) + SLACK)
        for part in _dense_pages(pages, levels, placement, scratch):
            out = decode_binary_run(pages, part, entries, indices, unused, validity, offsets, out, state)
        return BinaryArray(offsets[: levels.num_values - before + 1], out)

    def finish(self, count: int) -> list[BinaryArray | DictionaryArray]:
        return self._pieces


@dataclass
class PageRowCountJob(NestedJob):
    """A walk over the pages of a chunk that decodes nothing but their levels, and keeps none of these."""

    def __post_init__(self) -> None:
        self._locations: list[tuple[int, int, int]] = []
        self._rows = 0

    @property
    def locations(self) -> np.ndarray | None:
        """Position, size and first row of each data page, int64 of shape (pages, 3).

        None where a page begins in the midst of a row: then rows are not in the pages that they begin in.
        """
        return None if self._rows < 0 else np.array(self._locations, np.int64).reshape(-1, 3)

    def __call__(self) -> None:
        """Count the rows."""
        start = int(self.chunks[0, C_START])
        dense = self._dense_chunk()
        for window in self.page_windows():
            begun = start - int(self.chunks[0, C_START])
            pages = Pages(window.raw, dense, window.pages.copy())
            try:
                self._count(pages, window.pages, begun)
            except PageFailure as failure:
                error = failure.error
                raise self._add_location(error, pages.add_page_to_error(error, failure.page)) from None
            if self._rows < 0:
                return
        self._check_rows(self._rows)

    def _count(self, pages: Pages, headers: np.ndarray, begun: int) -> None:
        """Count the rows of a window's pages; `begun` is where its positions begin in the file."""
        scratch = self.context.local.get()
        placement = PageBatches(pages)
        decompressed = scratch.buffer("decompressed", placement.decompressed)
        for batch in placement.batches:
            decompress_pages(pages, batch, decompressed)
            for number in range(*batch[:2]):
                header = headers[number]
                if header[P_TYPE] == DICTIONARY_PAGE:
                    continue
                levels = LevelDecoder(self.leaf, max(int(header[P_NUM_VALUES]), 0), int(self.chunks[0, C_QUIRKS]))
                try:
                    levels.decode(pages, number, number + 1, decompressed)
                except PageFailure as failure:
                    if failure.status != BAD_LEVELS:
                        raise
                    # They may go on with a row that began before. If they are damaged, who decodes them says so.
                    self._rows = -1
                    return
                size = int(header[P_BODY] + header[P_COMPRESSED] - header[P_HEADER])
                self._locations.append((int(header[P_HEADER]) + begun, size, self._rows))
                self._rows += levels.num_rows
