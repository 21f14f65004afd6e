"""Sink of a filter column: which rows match, found batch by batch in pages just decompressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read.decode import count_rows, decode_fixed
from numparq.column.read.decompress import PageBatches
from numparq.column.read.dictionary import EMPTY_DICTIONARY, have_indices
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.pages import PageFailure, Pages, bound_pages, data_pages, split_data_pages
from numparq.column.read.take import ValueIndices, take_array, take_prefixed
from numparq.column.read.transcode import open_batch
from numparq.column.scratch import Scratch
from numparq.errors import LimitError
from numparq.kernels import kernels, predicate_kernels
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_FILL,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NULLS,
    C_ROW_START,
    CODES,
    NULLS_FILL,
    P_IS_COMPRESSED,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)
from numparq.types.output_type import OutputType

from .predicate_cache import CachedFixed
from .task import DecodeTask, PageSink

__all__ = ["FilterValues", "MatchSink", "MatchedRows"]

# Bytes of the pages, decompressed, that are matched by one call: they stay in the processor's cache.
MATCH_BYTES = 2 << 20


class FilterValues(NamedTuple):
    """Values of a filter column, an item a row, in memory that the next ones overwrite.

    Attributes
    ----------
    values : numpy.ndarray
        Values of a fixed size as stored, or the bytes that hold strings.
    validity : uint8 array or None
        0 for a null; None without nulls.
    offsets : int64 array or None
        Of strings: an item more than rows, or with `are_prefixed` their starts, each behind its length.
    """

    values: np.ndarray
    validity: np.ndarray | None
    offsets: np.ndarray | None = None
    are_prefixed: bool = False


class MatchedRows(NamedTuple):
    """Whether each row of a chunk matches (bool), and the values of those that do in order, if they are kept."""

    answers: np.ndarray
    values: list[CachedFixed | BinaryArray | DictionaryArray]


@dataclass(eq=False, repr=False)
class MatchSink(PageSink):
    """Answers of a predicate on one column for all rows of a chunk: `arrays` is one MatchedRows.

    Pages of dictionary indices are not decompressed if no entry of the dictionary matches.

    Parameters
    ----------
    target : OutputType
        Fixed storage with a mask for nulls, or binary storage.
    match : callable
        Writes for each row of FilterValues to a uint8 array whether it matches.
    keeps_values : bool
        Whether the values of matching rows are kept.
    """

    target: OutputType
    match: Callable[[FilterValues, np.ndarray], object]
    keeps_values: bool
    arrays: list[Any] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def start(self, task: DecodeTask) -> None:
        """Allocate the answers."""
        chunk = task.source.chunks[0]
        self._first_row = int(chunk[C_ROW_START])
        self._answers = np.zeros(count_rows(task.source.chunks), np.uint8)
        self._kept: list[CachedFixed | BinaryArray | DictionaryArray] = []
        self._dictionary: BinaryArray | np.ndarray | None = None
        self._entry_answers = np.empty(1, np.uint8)  # one a dictionary entry, and one for nulls
        self.match(self._null(), self._entry_answers)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Match the rows of pages, on several threads if these share them."""
        is_dictionary = pages.pages[:, P_TYPE] == DICTIONARY_PAGE
        if np.logical_or.reduce(is_dictionary):
            self._match_dictionary(Pages(pages.raw, pages.chunks, pages.pages[is_dictionary]), task, scratch)
        for kept in task.run_parts(data_pages(pages), partial(self._match_part, task), scratch):
            self._kept.extend(kept)

    def finish(self, task: DecodeTask) -> None:
        """Hand the answers over."""
        self.arrays.append(MatchedRows(self._answers.view(np.bool_), self._kept))

    def single(self, position: int) -> MatchSink:
        """Return an unused sink for the chunk."""
        return MatchSink(self.target, self.match, self.keeps_values)

    def _match_dictionary(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the chunk's dictionary and match its entries."""
        if self.target.dtype is None:
            dictionary = task.decode_dictionary(pages, self.target.utf8, scratch)
            assert dictionary is not None
            entries = FilterValues(dictionary.data, None, dictionary.offsets)
            self._dictionary, count = dictionary, len(dictionary)
        else:
            try:
                decode_fixed(pages, FixedOutput(NO_MASK, NO_MASK), None, scratch)
            except (PageFailure, LimitError) as failure:
                raise task.page_error(pages, failure) from None
            first, count = pages.chunks[0, [C_DICTIONARY, C_DICTIONARY_SIZE]].tolist()
            self._dictionary = scratch.buffer("dictionary", 0)
            entries = FilterValues(
                self._dictionary[first:][: count * self.target.dtype.itemsize].view(self.target.dtype), None
            )
        answers = np.empty(count + 1, np.uint8)
        self.match(entries, answers[:count])
        answers[count] = self._entry_answers[-1]
        self._entry_answers = answers

    def _null(self) -> FilterValues:
        """Return a null."""
        if self.target.dtype is None:
            return FilterValues(np.zeros(SLACK, np.uint8), np.zeros(1, np.uint8), np.zeros(2, np.int64))
        return FilterValues(np.zeros(1, self.target.dtype), np.zeros(1, np.uint8))

    def _match_part(
        self, task: DecodeTask, pages: Pages, scratch: Scratch
    ) -> list[CachedFixed | BinaryArray | DictionaryArray]:
        """Match the rows of data pages; return the values of those that match."""
        kept: list[CachedFixed | BinaryArray | DictionaryArray] = []
        cannot_match = self._dictionary is not None and not np.logical_or.reduce(self._entry_answers.view(np.bool_))
        for run, have_codes in _runs_of_encodings(pages):
            if have_codes and cannot_match:
                continue
            match = self._match_fixed
            if self.target.dtype is None:
                match = self._match_codes if have_codes else self._match_strings
            for part in self._small_parts(run, scratch):
                first = int(part.chunks[0, C_ROW_START]) - self._first_row
                try:
                    match(part, self._answers[first : first + count_rows(part.chunks)], kept, scratch)
                except (PageFailure, LimitError) as failure:
                    raise task.page_error(part, failure) from None
        return kept

    def _small_parts(self, pages: Pages, scratch: Scratch) -> list[Pages]:
        """Split data pages into parts of at most about MATCH_BYTES, decompressed or as values."""
        item = 8 if self.target.dtype is None else self.target.dtype.itemsize
        sizes = np.maximum(pages.pages[:, P_UNCOMPRESSED], pages.pages[:, P_NUM_VALUES] * item)
        most = min(MATCH_BYTES, scratch.window_bytes // 2)
        return split_data_pages(pages, int(np.add.reduce(sizes)) // most + 1, sizes)

    def _match_fixed(self, pages: Pages, answers: np.ndarray, kept: list[Any], scratch: Scratch) -> None:
        """Match values of a fixed size."""
        dtype, count = self.target.dtype, len(answers)
        assert dtype is not None
        size = count * dtype.itemsize
        values, validity = scratch.buffer("matched", size), scratch.buffer("validity", count)
        decode_fixed(pages, FixedOutput(values, validity), self._dictionary, scratch)  # type: ignore[arg-type]
        some = CachedFixed(values[:size].view(dtype), validity[:count] if pages.chunks[0, C_NULL_COUNT] else None)
        self.match(FilterValues(some.values, some.validity), answers)
        if self.keeps_values and np.logical_or.reduce(answers.view(np.bool_)):
            kept.append(some.take(ValueIndices.from_mask(answers)))

    def _match_codes(self, pages: Pages, answers: np.ndarray, kept: list[Any], scratch: Scratch) -> None:
        """Match strings by their dictionary indices."""
        chunk, count = pages.chunks[0], len(answers)
        entries = self._dictionary if isinstance(self._dictionary, BinaryArray) else EMPTY_DICTIONARY
        num_entries = len(entries)
        chunk[[C_CAST, C_ITEM_SIZE, C_NULLS, C_FILL]] = CODES, 4, NULLS_FILL, num_entries
        chunk[C_DICTIONARY] = 0
        codes = scratch.buffer("matched", 4 * count)
        numbers = np.arange(num_entries + SLACK, dtype=np.int32).view(np.uint8)
        decode_fixed(pages, FixedOutput(codes, NO_MASK), numbers, scratch)
        codes = codes[: 4 * count].view(np.int32)
        predicate_kernels.match_codes(codes, self._entry_answers, num_entries + 1, NO_MASK, 0, 1, 0, count, answers)
        if self.keeps_values and np.logical_or.reduce(answers.view(np.bool_)):
            taken = take_array(codes, ValueIndices.from_mask(answers))
            taken[taken == num_entries] = -1
            kept.append(DictionaryArray(taken, entries))

    def _match_strings(self, pages: Pages, answers: np.ndarray, kept: list[Any], scratch: Scratch) -> None:
        """Match strings where they lie in decompressed pages."""
        placement, row = PageBatches(pages, scratch), 0
        decompressed = scratch.buffer("decompressed", placement.decompressed)
        levels = scratch.buffer("levels", placement.values)
        state = np.zeros(STATE_FIELDS, np.int64)
        for batch in placement.batches:
            for table, first, last, buffer in open_batch(pages, batch, decompressed, scratch):
                for start, stop in _equal_runs(table[first:last, P_IS_COMPRESSED], first):
                    part = bound_pages(pages, table[start:stop])
                    count = count_rows(part.chunks)
                    starts = scratch.buffer("starts", 8 * count)[: 8 * count].view(np.int64)
                    validity = scratch.buffer("validity", count)
                    status = kernels.find_string_starts(
                        part.chunks.reshape(-1),
                        part.pages.reshape(-1),
                        0,
                        stop - start,
                        pages.raw,
                        buffer,
                        levels,
                        validity,
                        starts,
                        int(self.target.utf8),
                        state,
                    )
                    if status < 0:
                        raise PageFailure(start + int(state[0]), status)
                    data = buffer if table[start, P_IS_COMPRESSED] else pages.raw
                    nulls = validity[:count] if part.chunks[0, C_NULL_COUNT] else None
                    some = FilterValues(data, nulls, starts, True)
                    found = answers[row : row + count]
                    self.match(some, found)
                    if self.keeps_values and np.logical_or.reduce(found.view(np.bool_)):
                        kept.append(take_prefixed(data, starts, nulls, ValueIndices.from_mask(found)))
                    row += count


def _equal_runs(items: np.ndarray, first: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of equal items, counted from `first`."""
    cuts = (items[1:] != items[:-1]).nonzero()[0] + 1
    return pairwise([first, *(cuts + first).tolist(), first + len(items)])


def _runs_of_encodings(pages: Pages) -> Iterator[tuple[Pages, bool]]:
    """Yield runs of data pages, and whether they hold dictionary indices."""
    have_codes = have_indices(pages)
    for first, last in _equal_runs(have_codes, 0):
        is_whole = last - first == len(have_codes)
        yield pages if is_whole else bound_pages(pages, pages.pages[first:last]), bool(have_codes[first])
