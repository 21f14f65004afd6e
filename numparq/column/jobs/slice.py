"""Decode jobs for one slice of rows: fixed-size values, strings, dictionary codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray, binary_from_fixed_size
from numparq.column.read.decode import (
    allocate_strings,
    count_rows,
    decode_binary,
    decode_fixed,
    decode_fixed_dictionaries,
)
from numparq.column.read.decompress import PageBatches
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices, split_dictionaries
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.pages import PageFailure, Pages, data_pages, split_data_pages
from numparq.column.scratch import Scratch, allocate
from numparq.errors import LimitError
from numparq.kernels.enums import BYTE_ARRAY, DICTIONARY_PAGE
from numparq.kernels.status import NO_DICTIONARY
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_NULLS,
    C_NUM_VALUES,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_TYPE,
    C_TYPE_LENGTH,
    C_VALIDITY,
    CODES,
    COPY,
    NULLS_MASK,
    P_CHUNK,
    P_NUM_VALUES,
    P_TYPE,
    P_UNCOMPRESSED,
    SLACK,
)

from .job import RETRY_STATUSES, DecodeJob

__all__ = ["BinaryJob", "DictionaryJob", "FixedJob", "OutputTypeRetry", "StringMatchJob"]

_FIRST = np.zeros(1, np.intp)
_NO_ENTRIES = np.zeros(SLACK, np.uint8)
# Decompressed bytes of the strings that are matched together.
MATCH_BYTES = 2 << 20


@dataclass(eq=False, repr=False)
class BinaryJob(DecodeJob):
    """Chunks of BYTE_ARRAY values of one column, decoded into pieces with the rows of one after those of another.

    Parameters
    ----------
    utf8 : bool
        Whether the values must be valid UTF-8.
    size_hint : int
        Bytes that they may take together; only a guess.
    """

    utf8: bool = field(kw_only=True)
    size_hint: int = field(kw_only=True)

    def __call__(self) -> None:
        """Decode the chunks into pieces."""
        dictionary: BinaryArray | None = None
        rows = count_rows(self.chunks)
        for pages in self.page_windows():
            dictionary = self.decode_dictionary(pages, self.utf8) or dictionary
            self._decode(data_pages(pages), dictionary, rows)

    def _decode(self, pages: Pages, dictionary: BinaryArray | None, rows: int) -> None:
        made: dict[int, Any] = {}

        def work(number: int, part: Pages) -> None:
            count = count_rows(part.chunks)
            hint = self.size_hint * count // max(rows, 1)
            hint += hint // 16  # memory not touched costs nothing, a buffer that has to grow a copy
            scratch = self.context.local.get()
            try:
                strings = self._allocate(count, hint, part.chunks, scratch)
                decode_binary(part, dictionary, strings, scratch)
            except (PageFailure, LimitError) as failure:
                raise self.page_error(part, failure) from None
            if self.utf8 and not all_have_indices(part):  # the strings of a dictionary are checked already
                self.check_utf8(strings, part)
            made[number] = self._finish(strings)

        self.run_parts(pages, work)
        self.chunks[:, C_NULL_COUNT] += pages.chunks[:, C_NULL_COUNT]
        self.arrays.extend(map(made.__getitem__, sorted(made)))

    _allocate = staticmethod(allocate_strings)

    def _finish(self, strings: BinaryArray) -> object:
        """Return what becomes of decoded strings."""
        return strings


@dataclass(eq=False, repr=False)
class StringMatchJob(BinaryJob):
    """One chunk of BYTE_ARRAY values, each run of strings matched in memory that the thread's next run overwrites.

    Parameters
    ----------
    match : callable
        Its answers for the runs are `arrays`. It must copy the strings that it keeps.
    """

    match: Callable[[BinaryArray], Any] = field(kw_only=True)

    def split_pages(self, pages: Pages) -> list[Pages]:
        """Divide the data pages of a window into runs that stay in the processor's cache."""
        mean = self.size_hint / max(count_rows(self.chunks), 1)  # codes are smaller than the strings
        sizes = np.maximum(pages.pages[:, P_UNCOMPRESSED], (pages.pages[:, P_NUM_VALUES] * mean).astype(np.int64))
        return split_data_pages(pages, int(np.add.reduce(sizes)) // MATCH_BYTES + 1, sizes)

    @staticmethod
    def _allocate(rows: int, size_hint: int, chunks: np.ndarray, scratch: Scratch) -> BinaryArray:
        if scratch.limit is not None:  # it is that of one page
            return allocate_strings(rows, size_hint, chunks, scratch)
        offsets = scratch.buffer("matched offsets", 8 * rows + 8)[: 8 * rows + 8].view(np.int64)
        return BinaryArray(offsets, scratch.buffer("matched", size_hint), scratch.buffer("validity", rows)[:rows])

    def _finish(self, strings: BinaryArray) -> object:
        scratch = self.context.local.get()
        if scratch.limit is None:
            scratch.buffer("matched", len(strings.data) - SLACK)  # had it to grow, the next need not
        return self.match(strings)


class OutputTypeRetry(Exception):
    """A chunk of a job has to be decoded as another target."""

    def __init__(self, chunk: int, status: int) -> None:
        super().__init__(chunk, status)
        self.chunk = chunk
        self.status = status


@dataclass(eq=False, repr=False)
class FixedJob(DecodeJob):
    """Chunks of values of a fixed size; null counts end up in the chunk table.

    Parameters
    ----------
    outputs : sequence of FixedOutput
        The outputs that the chunks are decoded to.
    output_of : intp array, (chunks,)
        Which output each chunk has.
    entries : uint8 array or None
        The entries of dictionaries in the output's type, if the pages have none: C_DICTIONARY is a position in it.
    """

    outputs: Sequence[FixedOutput] = field(kw_only=True)
    output_of: np.ndarray = field(kw_only=True, default_factory=_FIRST.copy)
    entries: np.ndarray | None = field(default=None, init=False)

    @property
    def output(self) -> FixedOutput:
        """The output of the first chunk."""
        return self.outputs[int(self.output_of[0])]

    def __call__(self) -> None:
        """Decode the chunks into the outputs."""
        for pages in self.page_windows():
            if self.shares_pages:
                self._decode_shared(pages)
            elif len(self.outputs) == 1:
                self._decode(pages, self.outputs[0], self.entries)
            else:
                owners = self.output_of[pages.pages[:, P_CHUNK]]
                for number in sorted({*owners.tolist()}):
                    part = Pages(pages.raw, pages.chunks, pages.pages[owners == number])
                    self._decode(part, self.outputs[number], self.entries)
            if self.retries and len(self.columns) == 1:
                return

    def _decode(self, pages: Pages, output: FixedOutput, dictionary: np.ndarray | None) -> None:
        """Decode pages of one output; columns that need another target are left out, and noted.

        `dictionary` is the buffer of a dictionary that another thread has decoded.
        """
        scratch = self.context.local.get()
        while len(pages.pages):
            try:
                placement = PageBatches(pages)
                if dictionary is None:
                    dictionary = scratch.buffer("dictionary", placement.dictionary)
                decode_fixed(pages, placement, output, dictionary, scratch)
                return
            except (PageFailure, LimitError) as failure:
                error = self.page_error(pages, failure)
                if not isinstance(error, OutputTypeRetry):
                    raise error from None
                pages = self._without(pages, error)

    def _without(self, pages: Pages, again: OutputTypeRetry) -> Pages:
        """Return the pages without those of a column; the null counts of these chunks begin again."""
        column = self.columns[again.chunk]
        self.retries[column] = again.status
        owners = pages.pages[:, P_CHUNK]
        pages.chunks[owners, C_NULL_COUNT] = 0
        is_left = np.asarray(self.columns)[owners] != column
        return Pages(pages.raw, pages.chunks, np.ascontiguousarray(pages.pages[is_left]))

    def page_error(self, pages: Pages, failure: PageFailure | LimitError) -> Exception:
        """Return the error that says where pages failed, or what asks for another target."""
        if isinstance(failure, PageFailure) and failure.status in RETRY_STATUSES:
            chunk = int(pages.pages[failure.page, P_CHUNK])
            if not self._is_final(pages, chunk, failure.status):
                return OutputTypeRetry(chunk, failure.status)
        return super().page_error(pages, failure)

    @staticmethod
    def _is_final(pages: Pages, chunk: int, status: int) -> bool:
        """Tell whether no other target could help: a missing dictionary, unless only its codes are wanted."""
        return status == NO_DICTIONARY and pages.chunks[chunk, C_CAST] != CODES

    def _decode_shared(self, pages: Pages) -> None:
        """Decode the dictionary, if the one chunk has one here, then its data pages in parts."""
        output = self.output
        first = int(len(pages.pages) > 0 and pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        self._decode(Pages(pages.raw, pages.chunks, pages.pages[:first]), output, None)
        dictionary = self.context.local.get().buffer("dictionary", 0) if self.entries is None else self.entries
        item = self.chunks[0]
        start, out, mask = int(item[C_ROW_START]), int(item[C_OUT]), int(item[C_VALIDITY])

        def work(number: int, part: Pages) -> None:
            skipped = int(part.chunks[0, C_ROW_START]) - start
            part.chunks[0, C_OUT] = out + skipped * int(item[C_ITEM_SIZE])
            part.chunks[0, C_VALIDITY] = mask + skipped
            self._decode(part, output, dictionary)

        self.run_parts(Pages(pages.raw, pages.chunks, pages.pages[first:]), work)


@dataclass(eq=False, repr=False)
class DictionaryJob(FixedJob):
    """Chunks of one column whose dictionary indices are kept, with the rows of one after those of another.

    A chunk with a page of other values is decoded into values; those of a fixed size stay as they are stored.

    Parameters
    ----------
    utf8, size_hint
        As in `BinaryJob`.
    string_job : callable
        Makes the job that decodes BYTE_ARRAY values.
    """

    _fixed_job: ClassVar[Callable[..., DecodeJob]] = FixedJob
    outputs: Sequence[FixedOutput] = field(init=False)
    utf8: bool = field(kw_only=True)
    size_hint: int = field(kw_only=True)
    string_job: Callable[..., DecodeJob] = field(default=BinaryJob, kw_only=True)

    def __call__(self) -> None:
        """Decode the chunks into codes, or else into values."""
        counts = self._row_counts()
        edges = [0, *counts.cumsum().tolist()]
        codes = allocate(edges[-1], "i4")
        self.outputs, self.output_of = [FixedOutput(codes.view(np.uint8), NO_MASK)], np.zeros(len(counts), np.intp)
        self._dictionaries, self.entries = [EMPTY_DICTIONARY] * len(counts), _NO_ENTRIES
        if not len(codes):
            self.chunks[:, C_NUM_VALUES] = -1  # nothing but the dictionary is wanted
        untouched = self.chunks.copy()
        self.chunks[:, C_OUT] = 4 * (counts.cumsum() - counts)
        super().__call__()
        if not self.retries:
            self.arrays.extend(self._split(codes, edges))
            return
        self.retries.clear()
        self.chunks = untouched
        if len(counts) > 1:
            self._decode_each()
        else:
            self.arrays.extend(self._values(len(codes)))

    def _row_counts(self) -> np.ndarray:
        """Return the number of selected rows of each chunk."""
        counts: np.ndarray = np.maximum(self.chunks[:, C_ROW_STOP] - self.chunks[:, C_ROW_START], 0)
        return counts

    def _split(self, codes: np.ndarray, edges: Sequence[int]) -> Iterator[DictionaryArray]:
        """Yield the codes of each run of chunks with the same dictionary; `edges` are the bounds of chunks."""
        found = self._dictionaries
        cuts = [place for place in range(1, len(found)) if found[place] is not found[place - 1]]
        for first, last in pairwise([0, *cuts, len(found)]):
            yield DictionaryArray(codes[edges[first] : edges[last]], found[first])

    def _decode_each(self) -> None:
        """Decode the chunks one by one: some of them into values."""
        for place in range(len(self.chunks)):
            one = slice(place, place + 1)
            job = replace(self, row_groups=self.row_groups[one], columns=self.columns[one], chunks=self.chunks[one])
            job.retries, job.arrays = {}, []
            job()
            self.chunks[place, C_NULL_COUNT] = job.chunks[0, C_NULL_COUNT]
            self.arrays.extend(job.arrays)

    def page_windows(self) -> Iterator[Pages]:
        """Fetch and walk the chunks; decode the dictionary pages, and yield the data pages."""
        for pages in super().page_windows():
            found = self._decode_dictionaries(pages)
            if found:
                self._dictionaries = found
                self.entries = np.arange(max(map(len, found)) + SLACK, dtype=np.int32).view(np.uint8)
                pages.chunks[:, C_DICTIONARY] = 0
            data = Pages(pages.raw, pages.chunks, pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE])
            if not all_have_indices(data):
                self.retries.update(dict.fromkeys(self.columns, NO_DICTIONARY))
                return
            yield data

    def _decode_dictionaries(self, pages: Pages) -> list[BinaryArray]:
        """Return the dictionary of each chunk; none if no page is a dictionary."""
        if self.chunks[0, C_TYPE] == BYTE_ARRAY:
            joined = self.decode_dictionary(pages, self.utf8)
            return [] if joined is None else split_dictionaries(joined, pages.chunks)
        try:
            return decode_fixed_dictionaries(pages, self.context.local.get())
        except (PageFailure, LimitError) as failure:
            raise self.page_error(pages, failure) from None

    def _values(self, count: int) -> list[BinaryArray]:
        """Decode the values of the one chunk."""
        if self.chunks[0, C_TYPE] == BYTE_ARRAY:
            job = self.string_job(**self._shared_fields(), utf8=self.utf8, size_hint=self.size_hint)
            job()
            return job.arrays
        width = int(self.chunks[0, C_TYPE_LENGTH])
        values, validity = allocate(count * width + SLACK), allocate(count + SLACK)
        self.chunks[0, [C_CAST, C_ITEM_SIZE, C_NULLS]] = COPY, width, NULLS_MASK
        self._fixed_job(**self._shared_fields(), outputs=[FixedOutput(values, validity)])()
        return [binary_from_fixed_size(values[: count * width], width, validity[:count])]

    def _shared_fields(self) -> dict[str, Any]:
        """Return the arguments of a job that decodes the same rows into values."""
        return {name: getattr(self, name) for name in ("context", "row_groups", "columns", "chunks", "shares_pages")}
