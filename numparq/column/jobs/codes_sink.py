"""Sink of dictionary indices: codes and dictionaries, or values where a page holds others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray, binary_from_fixed_size
from numparq.column.read.decode import decode_fixed_dictionaries
from numparq.column.read.dictionary import EMPTY_DICTIONARY, all_have_indices, split_dictionaries
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.pages import PageFailure, Pages
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
    COPY,
    NULLS_MASK,
    P_TYPE,
    SLACK,
)

from .fixed_sink import FixedSink
from .task import DecodeTask, PageSink

_NO_ENTRIES = np.zeros(SLACK, np.uint8)


@dataclass(eq=False, repr=False)
class CodesSink(PageSink):
    """Codes of the chunks of one column, an array for each run of chunks with the same dictionary.

    A chunk with a page of other values is decoded into values; those of a fixed size stay as they are stored.

    Parameters
    ----------
    utf8 : bool
        Whether the strings of dictionaries must be valid UTF-8.
    bytes_sink : callable
        Returns the sink of BYTE_ARRAY values.
    """

    utf8: bool
    bytes_sink: Callable[[], PageSink]
    arrays: list[Any] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def start(self, task: DecodeTask) -> None:
        """Allocate the codes."""
        chunks = task.source.chunks
        if task.selection is None:
            counts = np.maximum(chunks[:, C_ROW_STOP] - chunks[:, C_ROW_START], 0)
        else:
            counts = np.array([task.selection.count])
        self._edges = [0, *counts.cumsum().tolist()]
        self._codes = allocate(self._edges[-1], "i4")
        output = FixedOutput(self._codes.view(np.uint8), NO_MASK)
        self._code_sink = FixedSink([output], None, _NO_ENTRIES, self.failed)
        self._dictionaries = [EMPTY_DICTIONARY] * len(counts)
        if not len(self._codes):
            chunks[:, C_NUM_VALUES] = -1  # only the dictionary is read
        self._unread_chunks = chunks.copy()
        chunks[:, C_OUT] = 4 * (counts.cumsum() - counts)

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the dictionary pages, and the indices of data pages."""
        dictionaries = self._decode_dictionaries(pages, task, scratch)
        if dictionaries:
            self._dictionaries = dictionaries
            most = max(map(len, dictionaries))
            self._code_sink.entries = np.arange(most + SLACK, dtype=np.int32).view(np.uint8)
            pages.chunks[:, C_DICTIONARY] = 0
        data = Pages(pages.raw, pages.chunks, pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE])
        if all_have_indices(data):
            self._code_sink.decode(data, task, scratch)
        else:
            self.failed.update(dict.fromkeys(task.columns, NO_DICTIONARY))

    def finish(self, task: DecodeTask) -> None:
        """Complete the arrays of codes; where there are other values, decode again."""
        if not self.failed:
            self.arrays.extend(self._split())
            return
        self.failed.clear()
        chunks = self._unread_chunks
        task.source = replace(task.source, chunks=chunks)  # type: ignore[type-var]
        if len(chunks) == 1:
            self.arrays.extend(self._decode_values(task, len(self._codes)))
            return
        for position in range(len(chunks)):
            single = task.single(position)
            single()
            chunks[position, C_NULL_COUNT] = single.source.chunks[0, C_NULL_COUNT]
            self.arrays.extend(single.sink.arrays)

    def single(self, position: int) -> CodesSink:
        """Return an unused sink for one chunk of the task."""
        return CodesSink(self.utf8, self.bytes_sink)

    def _split(self) -> Iterator[DictionaryArray]:
        """Yield the codes of each run of chunks with the same dictionary."""
        dictionaries = self._dictionaries
        cuts = [at for at in range(1, len(dictionaries)) if dictionaries[at] is not dictionaries[at - 1]]
        for first, last in pairwise([0, *cuts, len(dictionaries)]):
            yield DictionaryArray(self._codes[self._edges[first] : self._edges[last]], dictionaries[first])

    def _decode_dictionaries(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> list[BinaryArray]:
        """Return the dictionary of each chunk; none if no page is a dictionary."""
        if task.source.chunks[0, C_TYPE] == BYTE_ARRAY:
            joined = task.decode_dictionary(pages, self.utf8, scratch)
            return [] if joined is None else split_dictionaries(joined, pages.chunks)
        try:
            return decode_fixed_dictionaries(pages, scratch)
        except (PageFailure, LimitError) as failure:
            raise task.page_error(pages, failure) from None

    def _decode_values(self, task: DecodeTask, count: int) -> list[Any]:
        """Decode the one chunk again, into its `count` values."""
        chunk = task.source.chunks[0]
        if task.selection is not None:
            task.selection.restart()
        if chunk[C_TYPE] == BYTE_ARRAY:
            strings = replace(task, sink=self.bytes_sink())
            strings()
            return strings.sink.arrays
        width = int(chunk[C_TYPE_LENGTH])
        values, validity = allocate(count * width + SLACK), allocate(count + SLACK)
        chunk[[C_CAST, C_ITEM_SIZE, C_NULLS]] = COPY, width, NULLS_MASK
        replace(task, sink=FixedSink([FixedOutput(values, validity)]))()
        return [binary_from_fixed_size(values[: count * width], width, validity[:count])]
