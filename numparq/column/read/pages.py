"""Pages in memory: bytes, page table and chunk table; runs of them; failures located in a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from numparq.errors import ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.status import check_status
from numparq.kernels.tables import (
    C_NULL_COUNT,
    C_ROW_START,
    C_ROW_STOP,
    P_CHUNK,
    P_IN_CHUNK,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    P_UNCOMPRESSED,
)

# Bytes (decompressed) that a part of a chunk has at least when its pages are shared out.
MIN_RUN_BYTES = 512 << 10


@dataclass(eq=False, repr=False)
class Pages:
    """Pages that are in memory.

    Attributes
    ----------
    raw : uint8 array
        The bytes of the file that they lie in, and SLACK bytes behind.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    pages : int64 array, (pages, PAGE_FIELDS)
        The page table; positions are in `raw`.
    """

    raw: np.ndarray
    chunks: np.ndarray
    pages: np.ndarray

    def locate(self, error: ParquetError, page: int) -> int:
        """Note a page's place in an error; returns the row of its chunk in the chunk table."""
        error.where.setdefault("page", int(self.pages[page, P_IN_CHUNK]))
        return int(self.pages[page, P_CHUNK])


class PageFailure(Exception):
    """Trouble with one page of a page table, as a kernel's status or as an error that is made already.

    Parameters
    ----------
    page : int
        Its row in the page table.
    status : int
        What the kernel returned; 0 where `error` says it.
    error : ParquetError or None
        What is to be raised; by default what `numparq.kernels.status.check_status` makes of the status.
    """

    def __init__(self, page: int, status: int = 0, error: ParquetError | None = None) -> None:
        super().__init__(page, status, error)
        self.page = page
        self.status = status
        self._error = error

    @property
    def error(self) -> ParquetError:
        """What to tell the user, without the place."""
        if self._error is not None:
            return self._error
        try:
            check_status(self.status)
        except ParquetError as error:
            return error
        raise AssertionError("a page failure without a reason")


def check_page(status: int, state: np.ndarray) -> int:
    """Raise PageFailure for a negative status of a kernel; item 0 of its `state` is the row of the page table."""
    if status < 0:
        raise PageFailure(int(state[0]), status)
    return status


def split_data_pages(pages: Pages, most: int) -> list[Pages]:
    """Divide the data pages of a single chunk into at most `most` parts of about the same size."""
    sizes = np.cumsum(pages.pages[:, P_UNCOMPRESSED])
    count = int(min(most, len(sizes), max(sizes[-1] // MIN_RUN_BYTES, 1)))
    if count < 2:
        return [pages]
    cuts = np.unique(np.searchsorted(sizes, np.arange(1, count) * sizes[-1] // count, side="left") + 1)
    edges = [0, *cuts[cuts < len(sizes)].tolist(), len(sizes)]
    if len(edges) == 2:
        return [pages]
    return [page_run(pages, first, last) for first, last in pairwise(edges)]


def page_run(pages: Pages, first: int, last: int) -> Pages:
    """Give a run of data pages of a single chunk as pages of their own, with the rows that they hold."""
    table = np.ascontiguousarray(pages.pages[first:last])
    chunks = pages.chunks.copy()
    chunks[0, C_ROW_START] = max(chunks[0, C_ROW_START], table[0, P_ROW])
    stop = min(chunks[0, C_ROW_STOP], table[-1, P_ROW] + table[-1, P_NUM_VALUES])
    chunks[0, C_ROW_STOP] = max(stop, chunks[0, C_ROW_START])
    chunks[0, C_NULL_COUNT] = 0
    return Pages(pages.raw, chunks, table)


def trim_rows(pages: Pages) -> Pages:
    """Narrow the wanted rows of a single chunk to those of its data pages at hand, so that pieces join up."""
    first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
    if first == len(pages.pages):
        chunks = pages.chunks.copy()
        chunks[0, C_NULL_COUNT] = 0
        return Pages(pages.raw, chunks, pages.pages)
    return Pages(pages.raw, page_run(pages, first, len(pages.pages)).chunks, pages.pages)
