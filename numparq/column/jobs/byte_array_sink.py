"""Sink of BYTE_ARRAY values: arrays of strings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.read.chunk_selection import ChunkSelection, find_page_of_invalid_row
from numparq.column.read.decode import allocate_strings, check_utf8, count_rows, decode_binary
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices, have_indices
from numparq.column.read.pages import PageFailure, Pages, data_pages
from numparq.column.scratch import Scratch
from numparq.errors import LimitError, ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.tables import C_NULL_COUNT, P_TYPE

from .task import DecodeTask, PageSink


@dataclass(eq=False, repr=False)
class ByteArraySink(PageSink):
    """Arrays of the strings of one column, in the order of its chunks.

    Parameters
    ----------
    utf8 : bool
        Whether the values must be valid UTF-8.
    size_hint : int
        Estimated bytes of all strings.
    """

    utf8: bool
    size_hint: int
    arrays: list[Any] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def start(self, task: DecodeTask) -> None:
        """Allocate memory for selected rows, or count all rows."""
        self._dictionary: BinaryArray | None = None
        if task.selection is None:
            self._num_rows = count_rows(task.source.chunks)
        else:
            self._strings = task.selection.allocate_strings(self.size_hint)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode pages into one array or several; with a selection, into the one array."""
        self._dictionary = task.decode_dictionary(pages, self.utf8, scratch) or self._dictionary
        if task.selection is not None:
            self._decode_rows(pages, task.selection, task, scratch)
            return

        def work(part: Pages, scratch: Scratch) -> BinaryArray:
            count = count_rows(part.chunks)
            hint = self.size_hint * count // max(self._num_rows, 1)
            hint += hint // 16  # memory not touched costs nothing, a buffer that has to grow a copy
            strings = allocate_strings(count, hint, part.chunks, scratch)
            _decode_strings(part, self._dictionary, strings, task, scratch)
            if self.utf8 and not all_have_indices(part):  # strings of a dictionary are checked before
                task.check_utf8(strings, part)
            return strings

        data = data_pages(pages)
        self.arrays.extend(task.run_parts(data, work, scratch))
        task.source.chunks[:, C_NULL_COUNT] += data.chunks[:, C_NULL_COUNT]

    def finish(self, task: DecodeTask) -> None:
        """Complete the array of selected rows."""
        if task.selection is None:
            return
        if not task.source.chunks[0, C_NULL_COUNT]:
            self._strings.validity = None
        self.arrays.append(self._strings)

    def single(self, position: int) -> ByteArraySink:
        """Return an unused sink for one chunk of the task."""
        return ByteArraySink(self.utf8, self.size_hint)

    def _decode_rows(self, pages: Pages, selection: ChunkSelection, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the selected rows of pages; check strings that are not of a dictionary, which is checked before."""
        before = selection.num_decoded
        try:
            selection.read(pages, self._strings, self._dictionary or EMPTY_DICTIONARY, scratch)
        except (PageFailure, LimitError) as failure:
            raise task.page_error(pages, failure) from None
        is_plain = (pages.pages[:, P_TYPE] != DICTIONARY_PAGE) & ~have_indices(pages)
        if not self.utf8 or not np.logical_or.reduce(is_plain):
            return
        strings, last = self._strings, selection.num_decoded
        try:
            check_utf8(BinaryArray(strings.offsets[before : last + 1], strings.data))
        except ParquetError as error:
            page = find_page_of_invalid_row(strings, before, last, selection, pages)
            raise task.page_error(pages, PageFailure(page, error=error)) from None


def _decode_strings(
    pages: Pages, dictionary: BinaryArray | None, strings: BinaryArray, task: DecodeTask, scratch: Scratch
) -> None:
    """Decode data pages into `strings`."""
    try:
        decode_binary(pages, dictionary, strings, scratch)
    except (PageFailure, LimitError) as failure:
        raise task.page_error(pages, failure) from None
