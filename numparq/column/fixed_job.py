"""Jobs of column chunks of values of a fixed size, decoded into memory that is there already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ..errors import NO_DICTIONARY
from ..kernels.tables import (
    C_CONVERSION,
    C_ITEM_SIZE,
    C_MASK,
    C_NULL_COUNT,
    C_OUT,
    C_ROW_START,
    CODES,
    DICTIONARY_PAGE,
    P_CHUNK,
    P_TYPE,
)
from .fixed import FixedOutput, decode_fixed
from .job import RETARGET, Job
from .pages import PageFailure, Pages, Placement

__all__ = ["FixedJob", "Retarget"]


class Retarget(Exception):
    """A chunk of a job has to be decoded as another target."""

    def __init__(self, chunk: int, status: int) -> None:
        super().__init__(chunk, status)
        self.chunk = chunk
        self.status = status


@dataclass(eq=False, repr=False)
class FixedJob(Job):
    """Chunks of values of a fixed size that share one output; null counts end up in the chunk table."""

    output: FixedOutput = field(kw_only=True)

    def __call__(self) -> None:
        """Decode the chunks into the output."""
        for pages in self.windows():
            self._begin(pages)
            if self.share:
                self._decode_shared(pages)
            else:
                self._decode(pages, None)
            if len(self.failed) == len(self.columns):
                return

    def _begin(self, pages: Pages) -> None:
        """Do what a window's pages need before they are decoded."""

    def _decode(self, pages: Pages, dictionary: np.ndarray | None) -> None:
        """Decode pages; chunks that need another target are left out, and noted.

        `dictionary` is the buffer of a dictionary that another thread has decoded.
        """
        while len(pages.pages):
            try:
                with self.placing(pages):
                    placement = Placement(pages)
                    if dictionary is None:
                        dictionary = self.context.scratch.take("dictionary", placement.dictionary)
                    decode_fixed(pages, placement, self.output, dictionary, self.context.scratch)
                    return
            except Retarget as again:
                pages = self._without(pages, again)

    def _without(self, pages: Pages, again: Retarget) -> Pages:
        self.failed[self.columns[again.chunk]] = again.status
        pages.chunks[:, C_NULL_COUNT] = 0
        return Pages(pages.raw, pages.chunks, np.ascontiguousarray(pages.pages[pages.pages[:, P_CHUNK] != again.chunk]))

    @contextmanager
    def placing(self, pages: Pages) -> Iterator[None]:
        """Turn a PageFailure into the ParquetError that says where, or into what asks for another target."""
        try:
            yield
        except PageFailure as failure:
            chunk = int(pages.pages[failure.page, P_CHUNK])
            if failure.status in RETARGET and not self._is_final(pages, chunk, failure.status):
                raise Retarget(chunk, failure.status) from None
            error = failure.error
            raise self._placed(error, pages.locate(error, failure.page)) from None

    @staticmethod
    def _is_final(pages: Pages, chunk: int, status: int) -> bool:
        """Tell whether no other target could help: a missing dictionary, unless only its codes are wanted."""
        return status == NO_DICTIONARY and pages.chunks[chunk, C_CONVERSION] != CODES

    def _decode_shared(self, pages: Pages) -> None:
        """Decode the dictionary, if the one chunk has one here, then its data pages in parts."""
        if pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
            self._decode(Pages(pages.raw, pages.chunks, pages.pages[:1]), None)
        dictionary = self.context.scratch.take("dictionary", 0)
        item = self.chunks[0]
        start, out, mask = int(item[C_ROW_START]), int(item[C_OUT]), int(item[C_MASK])

        def work(number: int, part: Pages) -> None:
            skipped = int(part.chunks[0, C_ROW_START]) - start
            part.chunks[0, C_OUT] = out + skipped * int(item[C_ITEM_SIZE])
            part.chunks[0, C_MASK] = mask + skipped
            self._decode(part, dictionary)

        self.in_parts(pages, work)
