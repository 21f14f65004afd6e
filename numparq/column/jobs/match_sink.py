"""Sink of a filter column: which rows match, found batch by batch in pages just decompressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read.decode import count_rows, decode_fixed
from numparq.column.read.decompress import PageBatches
from numparq.column.read.dictionary import EMPTY_DICTIONARY, FixedDictionary, have_indices
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.pages import PageFailure, Pages, bound_pages, check_page, data_pages, split_data_pages
from numparq.column.read.take import ValueIndices, take_array, take_binary, take_prefixed
from numparq.column.read.transcode import open_batch
from numparq.column.scratch import Scratch
from numparq.errors import LimitError
from numparq.kernels.decode.page_sections import STATE_FIELDS
from numparq.kernels.enums import BOOLEAN, DICTIONARY_PAGE
from numparq.kernels.kernel_groups import kernels, predicate_kernels
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_DICTIONARY_SIZE,
    C_DICTIONARY_UNREAD,
    C_FILL,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NULLS,
    C_ROW_START,
    C_ROW_STOP,
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

# Bytes of the pages, decompressed, that are matched by one call: they stay in the processor's cache.
MATCH_BYTES = 2 << 20


MatchedValues = CachedFixed | BinaryArray | DictionaryArray
PageMatcher = Callable[[Pages, np.ndarray, list[MatchedValues], Scratch], None]


class FilterValues(NamedTuple):
    """Values of a filter column, in memory that the next ones overwrite.

    Attributes
    ----------
    values : numpy.ndarray
        Values of a fixed size as stored, or the bytes (uint8) that hold values of `runs` or strings.
    offsets : int64 array or None
        Of strings: an item more than strings, or with `are_prefixed` their starts, each behind its length.
    are_prefixed : bool
        Whether `offsets` are starts.
    runs : int64 array or None
        Of values of a fixed size in `values`, by turns the start of a run and its number of values.
    dtype : dtype or None
        That of the values in runs.
    are_null : bool
        Whether they are null.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    are_prefixed: bool = False
    runs: np.ndarray | None = None
    dtype: np.dtype[Any] | None = None
    are_null: bool = False

    def take(self, matches: np.ndarray) -> CachedFixed | BinaryArray:
        """Take the values of a mask (uint8) out of pages, in memory of their own."""
        if self.runs is None:
            assert self.offsets is not None
            return take_prefixed(self.values, self.offsets, ValueIndices.from_mask(matches))
        assert self.dtype is not None
        taken, end = [], 0
        for start, count in self.runs.reshape(-1, 2).tolist():
            part = matches[end : end + count]
            end += count
            if np.logical_or.reduce(part.view(np.bool_)):
                values = self.values[start : start + count * self.dtype.itemsize].view(self.dtype)
                taken.append(take_array(values, ValueIndices.from_mask(part)))
        values = taken[0] if len(taken) == 1 else np.concatenate([np.zeros(0, self.dtype), *taken])
        return CachedFixed(values, None)


class MatchedRows(NamedTuple):
    """Whether each row of a chunk matches (bool), and the values of those that do in order, if they are kept."""

    answers: np.ndarray
    values: list[MatchedValues]


@dataclass(eq=False, repr=False)
class MatchSink(PageSink):
    """Answers of a predicate on one column for all rows of a chunk: `arrays` is one MatchedRows.

    Pages of dictionary indices are not decompressed if no entry of the dictionary matches, and it fills its page: a
    damaged header may count too few.

    Parameters
    ----------
    target : OutputType
        Fixed storage with a mask for nulls, or binary storage.
    match : callable
        Writes for each row of FilterValues to a uint8 array whether it matches.
    keeps_values : bool
        Whether the values of matching rows are kept, unless they take more than the thread's share of memory.
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
        self._kept: list[MatchedValues] = []
        self._dictionary: BinaryArray | np.ndarray | None = None
        self._fills_page = True
        self._entry_answers = np.empty(1, np.uint8)  # one a dictionary entry, and one for nulls
        self.match(self._null(), self._entry_answers)
        cached = None if task.dictionary_cache is None else task.dictionary_cache.dictionary
        if cached is not None:
            self._match_dictionary(cached)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Match the rows of pages, on several threads if these share them."""
        is_dictionary = pages.pages[:, P_TYPE] == DICTIONARY_PAGE
        if self._dictionary is None and np.logical_or.reduce(is_dictionary):
            table = Pages(pages.raw, pages.chunks, pages.pages[is_dictionary])
            self._match_dictionary(self._decode_dictionary(table, task, scratch))
            self._fills_page = not pages.chunks[0, C_DICTIONARY_UNREAD]
        for run, have_codes in _runs_of_encodings(data_pages(pages)):
            match = self._match_values
            if have_codes:
                if self._dictionary is not None and self._fills_page and not self._entry_answers.any():
                    continue
                match = self._match_codes
            elif self.target.physical == BOOLEAN:
                match = self._match_booleans
            for kept in task.run_parts(run, partial(self._match_part, task, match), scratch):
                self._kept.extend(kept)
        if scratch.limit is not None and self.keeps_values and sum(map(_own_bytes, self._kept)) > scratch.cached_bytes:
            self.keeps_values, self._kept = False, []

    def finish(self, task: DecodeTask) -> None:
        """Hand the answers over."""
        self.arrays.append(MatchedRows(self._answers.view(np.bool_), self._kept))

    def single(self, position: int) -> MatchSink:
        """Return an unused sink for the chunk."""
        return MatchSink(self.target, self.match, self.keeps_values)

    def _decode_dictionary(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> BinaryArray | FixedDictionary:
        """Decode and cache the chunk's dictionary."""
        if self.target.dtype is None:
            dictionary = task.decode_dictionary(pages, self.target.utf8, scratch)
            assert dictionary is not None
            return dictionary
        try:
            decode_fixed(pages, FixedOutput(NO_MASK, NO_MASK), None, scratch)
        except (PageFailure, LimitError) as failure:
            raise task.page_error(pages, failure) from None
        buffer = scratch.buffer("dictionary", 0)
        if task.dictionary_cache is not None:
            task.dictionary_cache.keep_fixed(pages.chunks[0], buffer, 0)
        first, count = pages.chunks[0, [C_DICTIONARY, C_DICTIONARY_SIZE]].tolist()
        return FixedDictionary(buffer[first:], count)

    def _match_dictionary(self, dictionary: BinaryArray | FixedDictionary) -> None:
        """Match the entries of the chunk's dictionary."""
        if isinstance(dictionary, BinaryArray):
            self._dictionary, count = dictionary, len(dictionary)
            entries = FilterValues(dictionary.data, dictionary.offsets)
        else:
            dtype, count = self.target.dtype, dictionary.num_entries
            assert dtype is not None
            self._dictionary = dictionary.values[: count * dtype.itemsize].view(dtype)
            entries = FilterValues(self._dictionary)
        answers = np.empty(count + 1, np.uint8)
        self.match(entries, answers[:count])
        answers[count] = self._entry_answers[-1]
        self._entry_answers = answers

    def _null(self) -> FilterValues:
        """Return a null."""
        if self.target.dtype is None:
            return FilterValues(np.zeros(SLACK, np.uint8), np.zeros(2, np.int64), are_null=True)
        return FilterValues(np.zeros(1, self.target.dtype), are_null=True)

    def _match_part(self, task: DecodeTask, match: PageMatcher, pages: Pages, scratch: Scratch) -> list[MatchedValues]:
        """Match the rows of data pages of one kind; return the values of those that match."""
        kept: list[MatchedValues] = []
        for part in self._small_parts(pages, scratch):
            first, end = (part.chunks[0, [C_ROW_START, C_ROW_STOP]] - self._first_row).tolist()
            try:
                match(part, self._answers[first:end], kept, scratch)
            except (PageFailure, LimitError) as failure:
                raise task.page_error(part, failure) from None
        return kept

    def _small_parts(self, pages: Pages, scratch: Scratch) -> list[Pages]:
        """Split data pages into parts of at most about MATCH_BYTES, decompressed or as values."""
        item = 8 if self.target.dtype is None else self.target.dtype.itemsize
        sizes = np.maximum(pages.pages[:, P_UNCOMPRESSED], pages.pages[:, P_NUM_VALUES] * item)
        most = min(MATCH_BYTES, scratch.window_bytes // 2)
        return split_data_pages(pages, int(np.add.reduce(sizes)) // most + 1, sizes)

    def _match_codes(self, pages: Pages, answers: np.ndarray, kept: list[MatchedValues], scratch: Scratch) -> None:
        """Match values by their dictionary indices."""
        count, num_entries = len(answers), len(self._entry_answers) - 1
        codes = self._decode_codes(pages, num_entries, count, scratch)
        predicate_kernels.match_codes(codes, self._entry_answers, num_entries + 1, NO_MASK, 0, 1, 0, count, answers)
        if not self.keeps_values or not np.logical_or.reduce(answers.view(np.bool_)):
            return
        taken, entries = take_array(codes, ValueIndices.from_mask(answers)), self._dictionary
        nulls = taken == num_entries
        if self.target.dtype is None:
            taken[nulls] = -1
            kept.append(DictionaryArray(taken, entries if isinstance(entries, BinaryArray) else EMPTY_DICTIONARY))
            return
        values = entries if isinstance(entries, np.ndarray) else np.zeros(0, self.target.dtype)
        some = CachedFixed(take_array(values, ValueIndices(taken[~nulls])), None)
        kept.append(_spread(some, (~nulls).view(np.uint8)) if self._entry_answers[-1] else some)

    def _decode_codes(self, pages: Pages, num_entries: int, count: int, scratch: Scratch) -> np.ndarray:
        """Decode dictionary indices; nulls become `num_entries`."""
        pages.chunks[0, [C_CAST, C_ITEM_SIZE, C_NULLS, C_FILL, C_DICTIONARY]] = CODES, 4, NULLS_FILL, num_entries, 0
        codes = scratch.buffer("matched", 4 * count)
        numbers = np.arange(num_entries + SLACK, dtype=np.int32).view(np.uint8)
        decode_fixed(pages, FixedOutput(codes, NO_MASK), numbers, scratch)
        return codes[: 4 * count].view(np.int32)

    def _match_booleans(self, pages: Pages, answers: np.ndarray, kept: list[MatchedValues], scratch: Scratch) -> None:
        """Match booleans, which are bits or runs in pages."""
        count, null = len(answers), 2
        pages.chunks[0, [C_NULLS, C_FILL]] = NULLS_FILL, null
        values = scratch.buffer("matched", count)
        decode_fixed(pages, FixedOutput(values, NO_MASK), None, scratch)
        values = values[:count]
        self.match(FilterValues(values), answers)
        if pages.chunks[0, C_NULL_COUNT]:
            answers[values == null] = self._entry_answers[-1]
        if self.keeps_values and np.logical_or.reduce(answers.view(np.bool_)):
            taken = take_array(values, ValueIndices.from_mask(answers))
            kept.append(CachedFixed(taken & 1, (taken < null).view(np.uint8)))

    def _match_values(self, pages: Pages, answers: np.ndarray, kept: list[MatchedValues], scratch: Scratch) -> None:
        """Match PLAIN values, nulls left out, where they are in decompressed pages."""
        placement, row = PageBatches(pages, scratch), 0
        decompressed = scratch.buffer("decompressed", placement.decompressed)
        levels = scratch.buffer("levels", placement.values)
        for batch in placement.batches:
            for table, first, last, buffer in open_batch(pages, batch, decompressed, scratch):
                for start, stop in _equal_runs(table[first:last, P_IS_COMPRESSED].tolist(), first):
                    is_whole = table is pages.pages and stop - start == len(table)
                    part = pages if is_whole else bound_pages(pages, table[start:stop])
                    data = buffer if table[start, P_IS_COMPRESSED] else pages.raw
                    try:
                        some, num_values, validity = self._find_values(part, data, levels, scratch)
                    except PageFailure as failure:
                        raise PageFailure(start + failure.page, failure.status) from None
                    row += len(validity)
                    found = answers[row - len(validity) : row]
                    kept.extend(self._match_rows(some, num_values, validity, found, scratch))

    def _match_rows(
        self, some: FilterValues, num_values: int, validity: np.ndarray, answers: np.ndarray, scratch: Scratch
    ) -> list[MatchedValues]:
        """Match rows, of which `some` has the values that are not null; return the values of those that match."""
        has_nulls, null_answer, matches = num_values < len(answers), int(self._entry_answers[-1]), answers
        if has_nulls:
            matches = scratch.buffer("matched", num_values)[:num_values]
        self.match(some, matches)
        if has_nulls:
            predicate_kernels.spread_mask(matches, validity, null_answer, len(answers), answers)
        if not self.keeps_values or not np.logical_or.reduce(answers.view(np.bool_)):
            return []
        taken = some.take(matches)
        if has_nulls and null_answer:
            return [_spread(taken, take_array(validity, ValueIndices.from_mask(answers)))]
        return [taken]

    def _find_values(
        self, pages: Pages, data: np.ndarray, levels: np.ndarray, scratch: Scratch
    ) -> tuple[FilterValues, int, np.ndarray]:
        """Find the PLAIN values of pages, which are all in `data`; return them, how many, and the rows' validity."""
        dtype, count, state = self.target.dtype, count_rows(pages.chunks), np.zeros(STATE_FIELDS, np.int64)
        num_found = count if dtype is None else 2 * len(pages.pages)
        found = scratch.buffer("found values", 8 * num_found)[: 8 * num_found].view(np.int64)
        validity = scratch.buffer("validity", count)[:count]
        arrays = pages.raw, data, levels, validity, found
        status = kernels.find_plain_values(
            pages.chunks.reshape(-1),
            pages.pages.reshape(-1),
            0,
            len(pages.pages),
            *arrays,
            int(self.target.utf8),
            state,
        )
        num_values = check_page(status, state)
        if dtype is None:
            return FilterValues(data, found[:num_values], are_prefixed=True), num_values, validity
        return FilterValues(data, runs=found, dtype=dtype), num_values, validity


def _own_bytes(piece: MatchedValues) -> int:
    """Return the bytes of kept values, without the dictionary that they share."""
    return piece.codes.nbytes if isinstance(piece, DictionaryArray) else piece.num_bytes


def _spread(values: CachedFixed | BinaryArray, validity: np.ndarray) -> CachedFixed | BinaryArray:
    """Spread values over rows, of which some are null."""
    places = np.where(validity, validity.cumsum(dtype=np.int32) - 1, -1).astype(np.int32)
    if isinstance(values, BinaryArray):
        return replace(take_binary(values, ValueIndices(places)), validity=validity)
    rows = np.zeros(len(validity), values.values.dtype)
    rows[validity != 0] = values.values
    return CachedFixed(rows, validity)


def _equal_runs(items: list[Any], first: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of equal items, counted from `first`."""
    cuts = [first + at for at in range(1, len(items)) if items[at] != items[at - 1]]
    return pairwise([first, *cuts, first + len(items)])


def _runs_of_encodings(pages: Pages) -> Iterator[tuple[Pages, bool]]:
    """Yield runs of data pages, and whether they hold dictionary indices."""
    have_codes = have_indices(pages).tolist()
    for first, last in _equal_runs(have_codes, 0) if have_codes else ():
        is_whole = last - first == len(have_codes)
        yield pages if is_whole else bound_pages(pages, pages.pages[first:last]), have_codes[first]
