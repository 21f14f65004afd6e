"""Sink of fixed-size values: blocks of the output, for chunks of any columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from numparq.column.read.decode import decode_fixed
from numparq.column.read.output import FixedOutput
from numparq.column.read.pages import PageFailure, Pages
from numparq.column.scratch import Scratch
from numparq.errors import LimitError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.status import NO_DICTIONARY
from numparq.kernels.tables import (
    C_CAST,
    C_ITEM_SIZE,
    C_NULL_COUNT,
    C_OUT,
    C_ROW_START,
    C_VALIDITY,
    CODES,
    P_CHUNK,
    P_TYPE,
)

from .task import RETRY_STATUSES, DecodeTask, PageSink


@dataclass(eq=False, repr=False)
class FixedSink(PageSink):
    """Outputs of values of a fixed size.

    Parameters
    ----------
    outputs : sequence of FixedOutput
        The outputs that the chunks are decoded to.
    output_of : intp array, (chunks,), or None
        Position of each chunk's output; None: the first.
    entries : uint8 array or None
        Entries of dictionaries in the output type, if no page is a dictionary: C_DICTIONARY is a position in it.
    """

    outputs: Sequence[FixedOutput]
    output_of: np.ndarray | None = None
    entries: np.ndarray | None = None
    failed: dict[int, int] = field(default_factory=dict)
    arrays: list[Any] = field(default_factory=list)
    builds_arrays: ClassVar[bool] = False

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode pages into their outputs."""
        selection, cache = task.selection, task.dictionary_cache
        if selection is not None:
            try:
                selection.read(pages, self.outputs[0], self.entries, scratch)
            except (PageFailure, LimitError) as failure:
                if isinstance(failure, LimitError) or not _asks_for_retry(pages, failure):
                    raise task.page_error(pages, failure) from None
                self.failed[task.columns[0]] = failure.status
                return
            has_dictionary = len(pages.pages) > 0 and pages.pages[0, P_TYPE] == DICTIONARY_PAGE
            if has_dictionary and cache is not None and self.entries is None:
                cache.keep_fixed(pages.chunks[0], scratch.buffer("dictionary", 0), selection.count)
        elif task.shares_pages:
            self._decode_shared(pages, task, scratch)
        elif len(self.outputs) == 1:
            self._decode(pages, self.outputs[0], self.entries, task, scratch)
        else:
            assert self.output_of is not None
            owners = self.output_of[pages.pages[:, P_CHUNK]]
            for number in sorted({*owners.tolist()}):
                part = Pages(pages.raw, pages.chunks, pages.pages[owners == number])
                self._decode(part, self.outputs[number], self.entries, task, scratch)

    def single(self, position: int) -> FixedSink:
        """Return an unused sink for one chunk of the task."""
        number = 0 if self.output_of is None else int(self.output_of[position])
        return FixedSink([self.outputs[number]])

    def _decode(
        self, pages: Pages, output: FixedOutput, dictionary: np.ndarray | None, task: DecodeTask, scratch: Scratch
    ) -> None:
        """Decode pages of one output; columns that ask for another output type are left out, and noted.

        `dictionary` is the buffer of a dictionary that another thread has decoded.
        """
        while len(pages.pages):
            try:
                decode_fixed(pages, output, dictionary, scratch)
                return
            except LimitError as error:
                raise task.page_error(pages, error) from None
            except PageFailure as failure:
                if not _asks_for_retry(pages, failure):
                    raise task.page_error(pages, failure) from None
                pages = self._without_failed_column(pages, failure, task)

    def _without_failed_column(self, pages: Pages, failure: PageFailure, task: DecodeTask) -> Pages:
        """Note the column of a failure; return the pages of the others. The null counts of these begin again."""
        owners = pages.pages[:, P_CHUNK]
        column = task.columns[int(owners[failure.page])]
        self.failed[column] = failure.status
        pages.chunks[owners, C_NULL_COUNT] = 0
        is_left = np.asarray(task.columns)[owners] != column
        return Pages(pages.raw, pages.chunks, np.ascontiguousarray(pages.pages[is_left]))

    def _decode_shared(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode the dictionary, if the one chunk has one here, then its data pages in parts."""
        output = self.outputs[0 if self.output_of is None else int(self.output_of[0])]
        first = int(len(pages.pages) > 0 and pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        self._decode(Pages(pages.raw, pages.chunks, pages.pages[:first]), output, None, task, scratch)
        dictionary = scratch.buffer("dictionary", 0) if self.entries is None else self.entries
        chunk = task.source.chunks[0]
        start, out, mask = int(chunk[C_ROW_START]), int(chunk[C_OUT]), int(chunk[C_VALIDITY])

        def work(part: Pages, scratch: Scratch) -> None:
            skipped = int(part.chunks[0, C_ROW_START]) - start
            part.chunks[0, C_OUT] = out + skipped * int(chunk[C_ITEM_SIZE])
            part.chunks[0, C_VALIDITY] = mask + skipped
            self._decode(part, output, dictionary, task, scratch)

        task.run_parts(Pages(pages.raw, pages.chunks, pages.pages[first:]), work, scratch)


def _asks_for_retry(pages: Pages, failure: PageFailure) -> bool:
    """Whether another output type could help; a missing dictionary is an error, unless only its codes are decoded."""
    if failure.status == NO_DICTIONARY:
        return bool(pages.chunks[pages.pages[failure.page, P_CHUNK], C_CAST] == CODES)
    return failure.status in RETRY_STATUSES
