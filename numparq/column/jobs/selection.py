"""Decode jobs for selected rows of a column chunk; pages without any are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.nested.levels import take_leaf_rows
from numparq.column.read.chunk_selection import ChunkSelection, find_page_of_invalid_row
from numparq.column.read.decode import check_utf8
from numparq.column.read.dictionary import EMPTY_DICTIONARY, DictionaryCache, FixedDictionary, have_indices
from numparq.column.read.page_walk import read_located_pages, split_locations
from numparq.column.read.pages import PageFailure, Pages
from numparq.errors import InvalidFileError, LimitError, ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.selection.lazy_pages import STATE_TAKEN
from numparq.kernels.tables import (
    C_NULL_COUNT,
    C_QUIRKS,
    L_END,
    L_IN_CHUNK,
    L_ROW,
    L_ROWS,
    L_START,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PREFIX_CARRYOVER,
)

from .job import DecodeJob
from .nested import NestedJob
from .slice import BinaryJob, DictionaryJob, FixedJob, OutputTypeRetry

__all__ = ["BinarySelectionJob", "DictionarySelectionJob", "FixedSelectionJob", "NestedSelectionJob"]


@dataclass
class SelectionJob(DecodeJob):
    """A job for some rows of one chunk.

    Parameters
    ----------
    selected : ChunkSelection
        The rows.
    locations : int64 array, (pages, LOCATED_FIELDS), or None
        The pages that hold some, if an offset index tells; None: the whole chunk is fetched and walked over.
    dictionary_cache : DictionaryCache or None
        The chunk's dictionary, or its place, in the cache; None: not there. If found, no page is a dictionary.
    """

    selected: ChunkSelection = field(kw_only=True)
    locations: np.ndarray | None = field(kw_only=True)
    dictionary_cache: DictionaryCache | None = field(default=None, kw_only=True)

    def decode_dictionary(self, pages: Pages, utf8: bool) -> BinaryArray | None:
        """Decode the dictionary of a chunk of BYTE_ARRAY values, if a page is one, or take the one in the cache."""
        if self.dictionary_cache is None:
            return super().decode_dictionary(pages, utf8)
        if isinstance(self.dictionary_cache.found, BinaryArray):
            return self.dictionary_cache.found
        dictionary = super().decode_dictionary(pages, utf8)
        if dictionary is not None:
            self.dictionary_cache.keep_binary(dictionary, self.selected.count)
        return dictionary

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        if self.locations is None:
            return super().num_bytes
        return int(np.add.reduce(self.locations[:, L_END] - self.locations[:, L_START]))

    def _count_error(self) -> ParquetError:
        """Return the error of pages that lack selected rows: memory is left as it was for these."""
        message = f"the pages have {self.selected.num_decoded:,} of the {self.selected.count:,} selected rows"
        return self._add_location(InvalidFileError(message), 0)

    _is_flat = True

    def page_windows(self) -> Iterator[Pages]:
        """Fetch and check the pages that hold selected rows, window by window."""
        if self.locations is None:
            yield from super().page_windows()
            return
        context = self.context
        scratch = context.local.get()
        parts = [self.locations] if len(self.locations) == 1 else split_locations(self.locations)
        for part in parts:
            try:
                pages = read_located_pages(context.reader, self.chunks, part, self._is_flat, scratch)
            except ParquetError as error:
                raise self._add_location(error, 0) from None
            try:
                context.check_pages(self.row_groups, self.columns, pages)
            except PageFailure as failure:
                raise self.page_error(pages, failure) from None
            yield pages
            if context.progress is not None:
                context.progress.advance(len(pages.raw))

    def _prune_pages(self, pages: Pages) -> Pages:
        """Leave out data pages that hold no wanted row, unless others cannot be read without them."""
        if self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
            return pages
        table = pages.pages
        first, last = table[:, P_ROW], table[:, P_ROW] + table[:, P_NUM_VALUES]
        before = np.searchsorted(self.selected.row_ranges[:, 1], first, side="right")
        holds = np.searchsorted(self.selected.row_ranges[:, 0], last, side="left") > before
        return Pages(pages.raw, pages.chunks, table[holds | (table[:, P_TYPE] == DICTIONARY_PAGE)])


@dataclass
class FixedSelectionJob(SelectionJob, FixedJob):
    """Rows of one chunk of values of a fixed size."""

    def __call__(self) -> None:
        """Decode the rows into the output."""
        found = None if self.dictionary_cache is None else self.dictionary_cache.found
        if isinstance(found, FixedDictionary):
            self.entries = found.values
        for pages in self.page_windows():
            try:
                self.selected.read_fixed(pages, self.outputs[0], self.entries, self.context.local.get())
            except (PageFailure, LimitError) as failure:
                error = self.page_error(pages, failure)
                if not isinstance(error, OutputTypeRetry):
                    raise error from None
                self.retries[self.columns[0]] = error.status
                return
        if self.retries:
            return
        if self.selected.state[STATE_TAKEN] != self.selected.count:
            raise self._count_error()
        if self.dictionary_cache is not None and self.entries is None:
            buffer = self.context.local.get().buffer("dictionary", 0)
            self.dictionary_cache.keep_fixed(self.chunks[0], buffer, self.selected.count)


@dataclass
class BinarySelectionJob(SelectionJob, BinaryJob):
    """Rows of one chunk of BYTE_ARRAY values."""

    def __call__(self) -> None:
        """Decode the rows into one array."""
        rows, dictionary = self.selected, EMPTY_DICTIONARY
        strings = rows.allocate_strings(self.size_hint)
        for pages in self.page_windows():
            dictionary = self.decode_dictionary(pages, self.utf8) or dictionary
            before = rows.num_decoded
            try:
                rows.read_binary(pages, dictionary, strings, self.context.local.get())
            except (PageFailure, LimitError) as failure:
                raise self.page_error(pages, failure) from None
            is_plain = (pages.pages[:, P_TYPE] != DICTIONARY_PAGE) & ~have_indices(pages)
            if self.utf8 and np.logical_or.reduce(is_plain):  # the strings of a dictionary are checked already
                self._check_text(strings, before, pages)
        if self.selected.state[STATE_TAKEN] != self.selected.count:
            raise self._count_error()
        if not self.chunks[0, C_NULL_COUNT]:
            strings.validity = None
        self.arrays.append(strings)

    def _check_text(self, strings: BinaryArray, first: int, pages: Pages) -> None:
        """Refuse rows from `first` on, decoded from `pages`, that are not UTF-8."""
        last = self.selected.num_decoded
        try:
            check_utf8(BinaryArray(strings.offsets[first : last + 1], strings.data))
        except ParquetError as error:
            page = find_page_of_invalid_row(strings, first, last, self.selected, pages)
            raise self.page_error(pages, PageFailure(page, error=error)) from None


@dataclass
class DictionarySelectionJob(DictionaryJob, FixedSelectionJob):
    """Rows of one chunk whose dictionary indices are wanted as they are."""

    string_job: Callable[..., DecodeJob] = field(default=BinarySelectionJob, kw_only=True)
    _fixed_job = FixedSelectionJob

    def _row_counts(self) -> np.ndarray:
        return np.array([self.selected.count])

    def _shared_fields(self) -> dict[str, Any]:
        self.selected.restart()
        return super()._shared_fields() | {
            "selected": self.selected,
            "locations": self.locations,
            "dictionary_cache": self.dictionary_cache,
        }


@dataclass
class NestedSelectionJob(SelectionJob, NestedJob):
    """Rows of one chunk of a leaf of a nested column; `rows` and `num_rows` are all those that are decoded."""

    _sizes: list[int] = field(default_factory=list, init=False)  # entries of each data page

    @property
    def _is_flat(self) -> bool:  # type: ignore[override]
        return not self.leaf.max_repetition_level

    def page_windows(self) -> Iterator[Pages]:
        """Fetch the pages, window by window, and note their sizes."""
        for pages in super().page_windows():
            table = pages.pages
            self._sizes.extend(table[table[:, P_TYPE] != DICTIONARY_PAGE, P_NUM_VALUES].tolist())
            yield pages

    def _prune_pages(self, pages: Pages) -> Pages:
        return pages

    def __call__(self) -> None:
        """Decode the pages into one piece, and take the rows."""
        super().__call__()
        for piece in self.arrays:
            if self.locations is not None and piece.repetition is not None:
                self._check_places(piece.repetition[: piece.num_entries] == 0, self.locations)
        self.arrays = [take_leaf_rows(piece, self.leaf, self.selected.row_ranges) for piece in self.arrays]

    def _check_places(self, begins: np.ndarray, located: np.ndarray) -> None:
        """Hold the rows of pages, by their levels, against the offset index; `begins`: entries that begin a row."""
        located = located[located[:, L_ROW] >= 0]
        heads = np.flatnonzero(np.diff(located[:, L_ROW], prepend=-1))  # pages that begin with one row: together
        starts = np.concatenate([[0], np.cumsum(self._sizes)])[heads]
        before = np.concatenate([[0], np.cumsum(begins)])
        wrong = np.diff(np.append(before[starts], before[-1])) != np.add.reduceat(located[:, L_ROWS], heads)
        there = starts < len(begins)
        wrong[there] |= ~begins[starts[there]]
        if wrong.any():
            page = int(located[heads[np.argmax(wrong)], L_IN_CHUNK])
            message = "the rows of a page differ from the offset index, or the page begins within a row"
            raise self._add_location(InvalidFileError(message, page=page), 0)
