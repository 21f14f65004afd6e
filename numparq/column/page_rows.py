"""Rows of the pages of a repeated leaf: counted by its levels, where no offset index tells them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import BAD_LEVELS
from ..kernels.tables import (
    C_START,
    DICTIONARY_PAGE,
    P_BODY,
    P_COMPRESSED,
    P_HEADER,
    P_NUM_VALUES,
    P_TYPE,
)
from .nested import Levels, NestedJob
from .pages import PageFailure, Pages, Placement, decompress

__all__ = ["PageRowsJob"]


@dataclass
class PageRowsJob(NestedJob):
    """A walk over the pages of a chunk that decodes nothing but their levels, and keeps none of these."""

    def __post_init__(self) -> None:
        self._locations: list[tuple[int, int, int]] = []
        self._rows = 0

    @property
    def locations(self) -> np.ndarray | None:
        """Position, size and first row of each data page, int64 of shape (pages, 3).

        None where a page begins in the midst of a row: then rows are not in the pages that they begin in.
        """
        return None if self._rows < 0 else np.array(self._locations, np.int64).reshape(-1, 3)

    def __call__(self) -> None:
        """Count the rows."""
        start = int(self.chunks[0, C_START])
        dense = self._dense_chunk()
        for window in self.windows():
            begun = start - int(self.chunks[0, C_START])
            pages = Pages(window.raw, dense, window.pages.copy())
            try:
                self._count(pages, window.pages, begun)
            except PageFailure as failure:
                error = failure.error
                raise self._placed(error, pages.locate(error, failure.page)) from None
            if self._rows < 0:
                return
        self._check_rows(self._rows)

    def _count(self, pages: Pages, headers: np.ndarray, begun: int) -> None:
        """Count the rows of a window's pages; `begun` is where its positions begin in the file."""
        scratch = self.context.scratch
        placement = Placement(pages)
        decompressed = scratch.take("decompressed", placement.decompressed)
        for batch in placement.batches:
            decompress(pages, batch, decompressed)
            for number in range(*batch[:2]):
                header = headers[number]
                if header[P_TYPE] == DICTIONARY_PAGE:
                    continue
                levels = Levels(self.leaf, max(int(header[P_NUM_VALUES]), 0))
                try:
                    levels.take(pages, number, number + 1, decompressed)
                except PageFailure as failure:
                    if failure.status != BAD_LEVELS:
                        raise
                    # They may go on with a row that began before. If they are damaged, who decodes them says so.
                    self._rows = -1
                    return
                size = int(header[P_BODY] + header[P_COMPRESSED] - header[P_HEADER])
                self._locations.append((int(header[P_HEADER]) + begun, size, self._rows))
                self._rows += levels.rows
