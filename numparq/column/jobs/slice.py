"""Decode jobs for one slice of rows: fixed-size values, strings, dictionary codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray, binary_from_fixed_size
from numparq.column.read.decode import decode_binary, decode_fixed
from numparq.column.read.decompress import PageBatches
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices, decode_fixed_dictionary
from numparq.column.read.output import FixedOutput
from numparq.column.read.pages import PageFailure, Pages, data_pages
from numparq.column.scratch import allocate
from numparq.errors import LimitError
from numparq.kernels.enums import BYTE_ARRAY, DICTIONARY_PAGE
from numparq.kernels.status import NO_DICTIONARY
from numparq.kernels.tables import (
    C_CAST,
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
    P_TYPE,
    SLACK,
)

from .job import RETRY_STATUSES, DecodeJob

__all__ = ["BinaryJob", "DictionaryJob", "FixedJob", "OutputTypeRetry"]

_FIRST = np.zeros(1, np.intp)


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
        rows = _count_rows(self.chunks)
        for pages in self.page_windows():
            dictionary = self.decode_dictionary(pages, self.utf8) or dictionary
            self._decode(data_pages(pages), dictionary, rows)

    def _decode(self, pages: Pages, dictionary: BinaryArray | None, rows: int) -> None:
        made: dict[int, BinaryArray] = {}

        def work(number: int, part: Pages) -> None:
            hint = self.size_hint * _count_rows(part.chunks) // max(rows, 1)
            hint += hint // 16  # memory not touched costs nothing, a buffer that has to grow a copy
            with self.page_error_context(part):
                made[number] = decode_binary(part, dictionary, hint, self.context.scratch)
            if self.utf8 and not all_have_indices(part):  # the strings of a dictionary are checked already
                self.check_utf8(made[number], part)

        self.run_parts(pages, work)
        self.chunks[:, C_NULL_COUNT] += pages.chunks[:, C_NULL_COUNT]
        self.arrays.extend(made[number] for number in sorted(made))


def _count_rows(chunks: np.ndarray) -> int:
    """Count the selected rows of chunks."""
    return int((chunks[:, C_ROW_STOP] - chunks[:, C_ROW_START]).clip(0).sum())


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
    """

    outputs: Sequence[FixedOutput] = field(kw_only=True)
    output_of: np.ndarray = field(kw_only=True, default_factory=_FIRST.copy)

    @property
    def output(self) -> FixedOutput:
        """The output of the first chunk."""
        return self.outputs[int(self.output_of[0])]

    def __call__(self) -> None:
        """Decode the chunks into the outputs."""
        for pages in self.page_windows():
            self._prepare_window(pages)
            if self.shares_pages:
                self._decode_shared(pages)
            else:
                self._decode_window(pages)
            if self.retries and len(self.columns) == 1:
                return

    def _prepare_window(self, pages: Pages) -> None:
        """Do what a window's pages need before they are decoded."""

    def _decode_window(self, pages: Pages) -> None:
        """Decode the pages of each output."""
        if len(self.output_of) == 1:
            self._decode(pages, self.output, None)
            return
        owners = self.output_of[pages.pages[:, P_CHUNK]]
        for number in np.unique(owners).tolist():
            part = Pages(pages.raw, pages.chunks, pages.pages[owners == number])
            self._decode(part, self.outputs[number], None)

    def _decode(self, pages: Pages, output: FixedOutput, dictionary: np.ndarray | None) -> None:
        """Decode pages of one output; columns that need another target are left out, and noted.

        `dictionary` is the buffer of a dictionary that another thread has decoded.
        """
        while len(pages.pages):
            try:
                with self.page_error_context(pages):
                    placement = PageBatches(pages)
                    if dictionary is None:
                        dictionary = self.context.scratch.buffer("dictionary", placement.dictionary)
                    decode_fixed(pages, placement, output, dictionary, self.context.scratch)
                    return
            except OutputTypeRetry as again:
                pages = self._without(pages, again)

    def _without(self, pages: Pages, again: OutputTypeRetry) -> Pages:
        """Return the pages without those of a column; the null counts of these chunks begin again."""
        column = self.columns[again.chunk]
        self.retries[column] = again.status
        owners = pages.pages[:, P_CHUNK]
        pages.chunks[np.unique(owners), C_NULL_COUNT] = 0
        is_left = np.asarray(self.columns)[owners] != column
        return Pages(pages.raw, pages.chunks, np.ascontiguousarray(pages.pages[is_left]))

    @contextmanager
    def page_error_context(self, pages: Pages) -> Iterator[None]:
        """Turn a PageFailure into the ParquetError that says where, or into what asks for another target."""
        try:
            yield
        except PageFailure as failure:
            chunk = int(pages.pages[failure.page, P_CHUNK])
            if failure.status in RETRY_STATUSES and not self._is_final(pages, chunk, failure.status):
                raise OutputTypeRetry(chunk, failure.status) from None
            error = failure.error
            raise self._add_location(error, pages.add_page_to_error(error, failure.page)) from None
        except LimitError as error:
            raise self._locate_limit(error, pages) from None

    @staticmethod
    def _is_final(pages: Pages, chunk: int, status: int) -> bool:
        """Tell whether no other target could help: a missing dictionary, unless only its codes are wanted."""
        return status == NO_DICTIONARY and pages.chunks[chunk, C_CAST] != CODES

    def _decode_shared(self, pages: Pages) -> None:
        """Decode the dictionary, if the one chunk has one here, then its data pages in parts."""
        output = self.output
        if pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
            self._decode(Pages(pages.raw, pages.chunks, pages.pages[:1]), output, None)
        dictionary = self.context.scratch.buffer("dictionary", 0)
        item = self.chunks[0]
        start, out, mask = int(item[C_ROW_START]), int(item[C_OUT]), int(item[C_VALIDITY])

        def work(number: int, part: Pages) -> None:
            skipped = int(part.chunks[0, C_ROW_START]) - start
            part.chunks[0, C_OUT] = out + skipped * int(item[C_ITEM_SIZE])
            part.chunks[0, C_VALIDITY] = mask + skipped
            self._decode(part, output, dictionary)

        first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        self.run_parts(Pages(pages.raw, pages.chunks, pages.pages[first:]), work)


@dataclass(eq=False, repr=False)
class DictionaryJob(FixedJob):
    """One chunk whose dictionary indices are wanted as they are, in one piece.

    Where a page has no dictionary, the chunk is decoded into values instead. Values of a fixed size are kept as they
    are stored, as pieces of bytes, too.

    Parameters
    ----------
    codes : int32 array
        What the output is: a code a row.
    utf8, size_hint
        As in `BinaryJob`.
    """

    codes: np.ndarray = field(kw_only=True)
    utf8: bool = field(kw_only=True)
    size_hint: int = field(kw_only=True)
    dictionary: BinaryArray = field(default_factory=lambda: EMPTY_DICTIONARY)

    def __call__(self) -> None:
        """Decode the chunk into codes, or else into values."""
        if not len(self.codes):
            self.chunks[0, C_NUM_VALUES] = -1  # nothing but the dictionary is wanted
        untouched = self.chunks.copy()
        super().__call__()
        if not self.retries:
            self.arrays.append(DictionaryArray(self.codes, self.dictionary))
            return
        self.retries.clear()
        self.chunks = untouched
        if self._is_binary:
            plain = self._strings_job()
            plain()
            self.arrays.extend(plain.arrays)
        else:
            self.arrays.append(self._fixed_values())

    @property
    def _is_binary(self) -> bool:
        return bool(self.chunks[0, C_TYPE] == BYTE_ARRAY)

    def _prepare_window(self, pages: Pages) -> None:
        if self._is_binary:
            found = self.decode_dictionary(pages, self.utf8)
        else:
            with self.page_error_context(pages):
                found = decode_fixed_dictionary(pages, self.context.scratch)
        self.dictionary = found or self.dictionary

    def _strings_job(self) -> DecodeJob:
        """Make the job that decodes a chunk of BYTE_ARRAY values into these."""
        return BinaryJob(
            self.context,
            self.row_groups,
            self.columns,
            self.chunks,
            self.shares_pages,
            utf8=self.utf8,
            size_hint=self.size_hint,
        )

    def _fixed_job(self, output: FixedOutput) -> DecodeJob:
        """Make the job that decodes a chunk of values of a fixed size into what is stored."""
        return FixedJob(self.context, self.row_groups, self.columns, self.chunks, self.shares_pages, outputs=[output])

    def _fixed_values(self) -> BinaryArray:
        """Decode a chunk of values of a fixed size, kept as they are stored."""
        width = int(self.chunks[0, C_TYPE_LENGTH])
        values, validity = allocate(len(self.codes) * width + SLACK), allocate(len(self.codes) + SLACK)
        self.chunks[0, [C_CAST, C_ITEM_SIZE, C_NULLS]] = COPY, width, NULLS_MASK
        self._fixed_job(FixedOutput(values, validity))()
        return binary_from_fixed_size(values[: len(self.codes) * width], width, validity[: len(self.codes)])
