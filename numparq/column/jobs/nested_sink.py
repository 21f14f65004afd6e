"""Sinks of a leaf of a nested column: its levels and dense values, or the rows of each page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.nested.levels import LevelDecoder, NestedLeaf, take_leaf_rows
from numparq.column.read.decode import decode_binary, decode_fixed
from numparq.column.read.decompress import PageBatches, decompress_pages
from numparq.column.read.dictionary import all_have_indices, have_indices
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.pages import PageFailure, Pages, stored_ends
from numparq.column.read.row_selection import RowSlice
from numparq.column.read.transcode import open_batch
from numparq.column.scratch import Scratch, allocate
from numparq.errors import InvalidFileError
from numparq.format.schema import Leaf
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
    C_SEALED,
    C_START,
    C_VALIDITY,
    CODES,
    L_IN_CHUNK,
    L_ROW,
    L_ROWS,
    NULLS_RAISE,
    P_HEADER,
    P_NUM_VALUES,
    P_TYPE,
    SLACK,
)
from numparq.types.output_type import OutputType
from numparq.util.pluralize import pluralize

from .task import RETRY_STATUSES, DecodeTask, PageSink

_CODE = np.dtype(np.int32)
# Codes are decoded if a chunk has so many times as many entries as its dictionary.
MIN_VALUES_PER_ENTRY = 2


@dataclass(eq=False, repr=False)
class NestedSink(PageSink):
    """Levels and values of one chunk of a leaf of a nested column: pages are decoded whole, then rows are taken.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    target : OutputType
        Output type of its values.
    num_rows : int or None
        Rows of the pages; None: as many as the levels have.
    rows : RowSlice
        The rows that are kept, counted from the first row of the pages; without `num_rows`, all of them.
    row_ranges : int64 array, (ranges, 2), or None
        The rows that are taken of these; None: all.
    locations : int64 array, (pages, LOCATION_FIELDS), or None
        Locations of the pages, whose rows must be those of the levels.

    Attributes
    ----------
    has_other_rows : bool
        Whether the levels have another number of rows than `num_rows`, which is an error.
    """

    leaf: Leaf
    target: OutputType
    num_rows: int | None
    rows: RowSlice
    row_ranges: np.ndarray | None = None
    locations: np.ndarray | None = None
    arrays: list[NestedLeaf] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)
    has_other_rows: bool = field(default=False, init=False)

    def start(self, task: DecodeTask) -> None:
        """Allocate levels and values."""
        chunks = task.source.chunks
        room = int(chunks[0, C_NUM_VALUES])
        self._levels = LevelDecoder(self.leaf, room, int(chunks[0, C_QUIRKS]))
        self._dense_chunks = _dense_chunks(chunks)
        self._page_sizes: list[int] = []  # level entries of each data page
        self._values: _DenseValues
        if self.target.storage == "null":
            self._values = _NullValues()
        elif self.target.dtype is not None:
            self._values = _FixedValues(self.target.dtype, room)
        else:
            self._values = _BinaryValues(self.target)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the levels of pages, then their dense values."""
        if self.locations is not None:
            table = pages.pages
            self._page_sizes.extend(table[table[:, P_TYPE] != DICTIONARY_PAGE, P_NUM_VALUES].tolist())
        dense = Pages(pages.raw, self._dense_chunks, pages.pages)
        try:
            self._values.decode(dense, self._levels, task, scratch)
        except PageFailure as failure:
            if failure.status not in RETRY_STATUSES or self.target.on_inexact is None:
                raise task.page_error(dense, failure) from None
            self.failed[task.columns[0]] = failure.status

    def finish(self, task: DecodeTask) -> None:
        """Check the number of rows, and take the selected ones."""
        if self.failed:
            return
        levels = self._levels
        if self.num_rows is None:
            self.num_rows = levels.num_rows
            self.rows = RowSlice(self.rows.row_group, 0, levels.num_rows, 0)
        self.has_other_rows = levels.num_rows != self.num_rows
        _check_row_count(levels.num_rows, self.num_rows, task)
        leaf = levels.to_leaf(self._values.finish(levels.num_values), self.rows, self.num_rows)
        if self.locations is not None and leaf.repetition is not None:
            self._check_locations(leaf.repetition[: leaf.num_entries] == 0, self.locations, task)
        self.arrays.append(leaf if self.row_ranges is None else take_leaf_rows(leaf, self.leaf, self.row_ranges))

    def single(self, position: int) -> NestedSink:
        """Return an unused sink for the chunk; without codes: each would keep a dictionary of its own."""
        return NestedSink(self.leaf, replace(self.target, keep_codes=False), self.num_rows, self.rows)

    def _check_locations(self, begins_row: np.ndarray, locations: np.ndarray, task: DecodeTask) -> None:
        """Compare the rows of pages, by their levels, with the offset index; `begins_row` has a bool an entry."""
        locations = locations[locations[:, L_ROW] >= 0]
        heads = np.flatnonzero(np.diff(locations[:, L_ROW], prepend=-1))  # the first of the pages that begin with a row
        starts = np.concatenate([[0], np.cumsum(self._page_sizes)])[heads]
        before = np.concatenate([[0], np.cumsum(begins_row)])
        wrong = np.diff(np.append(before[starts], before[-1])) != np.add.reduceat(locations[:, L_ROWS], heads)
        has_entries = starts < len(begins_row)
        wrong[has_entries] |= ~begins_row[starts[has_entries]]
        if wrong.any():
            page = int(locations[heads[np.argmax(wrong)], L_IN_CHUNK])
            message = "the rows of a page differ from the offset index, or the page begins within a row"
            raise task.locate(InvalidFileError(message, page=page), 0)


def _dense_chunks(chunks: np.ndarray) -> np.ndarray:
    """Return the chunk table that describes pages without their levels: values without nulls."""
    dense = chunks.copy()
    dense[0, [C_MAX_DEFINITION, C_ROW_START, C_OUT, C_VALIDITY]] = 0
    dense[0, C_ROW_STOP] = dense[0, C_NUM_VALUES]
    dense[0, C_NULLS] = NULLS_RAISE
    return dense


def _check_row_count(num_rows: int, expected: int, task: DecodeTask) -> None:
    """Raise InvalidFileError for levels of another number of rows than the row group has."""
    if num_rows != expected:
        message = f"the levels have {pluralize(num_rows, 'row')}, but the row group has {expected:,}"
        raise task.locate(InvalidFileError(message), 0)


class _DenseValues(Protocol):
    """Memory of the values of a leaf, without null slots."""

    def decode(self, pages: Pages, levels: LevelDecoder, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the levels and values of pages."""

    def finish(self, count: int) -> np.ndarray | list[BinaryArray | DictionaryArray]:
        """Return the first `count` values."""


class _NullValues:
    """Values of a leaf that is always null: only the levels count."""

    def decode(self, pages: Pages, levels: LevelDecoder, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the levels of pages."""
        placement = PageBatches(pages, scratch)
        decompressed = scratch.buffer("decompressed", placement.decompressed)
        for batch in placement.batches:
            for _ in open_batch(pages, batch, decompressed, scratch, levels):
                pass

    def finish(self, count: int) -> np.ndarray:
        """Return nulls."""
        return np.full(count, None, object)


class _FixedValues:
    """Values of a fixed size."""

    def __init__(self, dtype: np.dtype, room: int) -> None:
        self._dtype = dtype
        self._output = FixedOutput(allocate(room * dtype.itemsize + SLACK), NO_MASK)

    def decode(self, pages: Pages, levels: LevelDecoder, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the levels and values of pages."""
        decode_fixed(pages, self._output, None, scratch, levels)

    def finish(self, count: int) -> np.ndarray:
        """Return the first `count` values."""
        return self._output.out[: count * self._dtype.itemsize].view(self._dtype)


class _BinaryValues:
    """BYTE_ARRAY values: an array for each window, of codes if all its pages hold dictionary indices."""

    def __init__(self, target: OutputType) -> None:
        self._target = target
        self._dictionary: BinaryArray | None = None
        self._arrays: list[BinaryArray | DictionaryArray] = []

    def decode(self, pages: Pages, levels: LevelDecoder, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the levels and values of pages into an array."""
        self._dictionary = task.decode_dictionary(pages, self._target.utf8, scratch) or self._dictionary
        first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        try:
            self._decode_data_pages(Pages(pages.raw, pages.chunks, pages.pages[first:]), levels, task, scratch)
        except PageFailure as failure:
            failure.page += first
            raise

    def finish(self, count: int) -> list[BinaryArray | DictionaryArray]:
        """Return the arrays."""
        return self._arrays

    def _decode_data_pages(self, pages: Pages, levels: LevelDecoder, task: DecodeTask, scratch: Scratch) -> None:
        if not len(pages.pages):
            return
        dictionary = self._dictionary
        only_indices = all_have_indices(pages)
        pages.chunks[0, C_ROW_START] = before = levels.num_values
        most = int(pages.pages[:, P_NUM_VALUES].sum())
        keeps_codes = self._target.keep_codes and only_indices
        if keeps_codes and dictionary and MIN_VALUES_PER_ENTRY * len(dictionary) <= most:
            codes = _decode_codes(pages, levels, len(dictionary), most, scratch)
            self._arrays.append(DictionaryArray(codes[: levels.num_values - before], dictionary))
            return
        data, validity = allocate(len(pages.raw) + SLACK), scratch.buffer("validity", most)
        strings = BinaryArray(allocate(most + 1, "i8"), data, validity)
        decode_binary(pages, dictionary, strings, scratch, levels)
        strings.offsets = strings.offsets[: levels.num_values - before + 1]
        self._arrays.append(strings)
        if self._target.utf8 and not only_indices:
            task.check_utf8(strings, pages)


def _decode_codes(pages: Pages, levels: LevelDecoder, num_entries: int, most: int, scratch: Scratch) -> np.ndarray:
    """Decode the indices of pages, at most `most`, as values of the dictionary 0, 1, 2 and so on; int32."""
    chunks = pages.chunks.copy()
    chunks[0, [C_CAST, C_ITEM_SIZE, C_DICTIONARY]] = CODES, _CODE.itemsize, 0
    output = FixedOutput(allocate(most * _CODE.itemsize + SLACK), NO_MASK)
    ordinals = np.arange(num_entries + SLACK, dtype=_CODE).view(np.uint8)
    decode_fixed(Pages(pages.raw, chunks, pages.pages), output, ordinals, scratch, levels)
    return output.out[: most * _CODE.itemsize].view(_CODE)


@dataclass(eq=False, repr=False)
class RowCountSink(PageSink):
    """Rows of each page of a chunk of a leaf: the values, or in a list the levels, which are decoded and not kept.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    num_rows : int
        Rows of the row group.

    Attributes
    ----------
    locations : int64 array, (pages, 3), or None
        Position, size and first row of each data page; None if a page begins within a row, which is a failure, too.
    needs_dictionary : int8 array, (pages,)
        Whether each page holds dictionary indices.
    """

    leaf: Leaf
    num_rows: int
    locations: np.ndarray | None = None
    needs_dictionary: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    arrays: list[NestedLeaf] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def start(self, task: DecodeTask) -> None:
        """Begin with row 0."""
        self._start = int(task.source.chunks[0, C_START])
        self._first_rows: list[int] = [0]
        self._pages = [np.empty((0, 3), np.int64)]
        self._dense_chunks = _dense_chunks(task.source.chunks)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Count the rows of a window's pages."""
        chunks = task.source.chunks
        table = pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE]
        starts = table[:, P_HEADER]
        sizes = stored_ends(table, chunks[0, C_SEALED]) - starts
        dense, first = Pages(pages.raw, self._dense_chunks, pages.pages.copy()), len(self._first_rows) - 1
        try:
            self._count_rows(dense, int(chunks[0, C_QUIRKS]), scratch)
        except PageFailure as failure:
            if failure.status != BAD_LEVELS:
                raise task.page_error(dense, failure) from None
            # They may continue a row of the page before. If they are damaged, the read that decodes them says so.
            self.failed[task.columns[0]] = failure.status
            return
        moved = self._start - int(chunks[0, C_START])
        self._pages.append(np.column_stack([starts + moved, sizes, self._first_rows[first:-1]]))
        needs = have_indices(Pages(pages.raw, chunks, table)).astype(np.int8)
        self.needs_dictionary = np.concatenate([self.needs_dictionary, needs])

    def finish(self, task: DecodeTask) -> None:
        """Check the number of rows."""
        if not self.failed:
            _check_row_count(self._first_rows[-1], self.num_rows, task)
            self.locations = np.concatenate(self._pages)

    def single(self, position: int) -> RowCountSink:
        """Return an unused sink for the chunk."""
        return RowCountSink(self.leaf, self.num_rows)

    def _count_rows(self, pages: Pages, quirks: int, scratch: Scratch) -> None:
        if not self.leaf.max_repetition_level:
            counts = pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE, P_NUM_VALUES]
            self._first_rows += (self._first_rows[-1] + counts.cumsum()).tolist()
            return
        placement = PageBatches(pages, scratch)
        decompressed = scratch.buffer("decompressed", placement.decompressed)
        for batch in placement.batches:
            decompress_pages(pages, batch, decompressed)
            for number in range(*batch[:2]):
                if pages.pages[number, P_TYPE] != DICTIONARY_PAGE:
                    levels = LevelDecoder(self.leaf, max(int(pages.pages[number, P_NUM_VALUES]), 0), quirks)
                    levels.decode(pages, number, number + 1, decompressed)
                    self._first_rows.append(self._first_rows[-1] + levels.num_rows)
