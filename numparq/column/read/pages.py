"""Pages in memory: bytes, page table and chunk table; runs of pages, and failures located in a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from numparq.errors import ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import check_status
from numparq.kernels.tables import P_BODY, P_CHUNK, P_COMPRESSED, P_IN_CHUNK, P_TYPE, PLAINTEXT_OFFSET

# Decompressed bytes of the smallest run of pages that is worth a thread.
MIN_RUN_BYTES = 512 << 10


@dataclass(eq=False, repr=False)
class Pages:
    """Pages in memory.

    Attributes
    ----------
    raw : numpy.ndarray
        uint8, bytes of the file that hold the pages, and SLACK bytes after them.
    chunks : numpy.ndarray
        int64, (chunks, CHUNK_FIELDS): the chunk table.
    pages : numpy.ndarray
        int64, (pages, PAGE_FIELDS): the page table, with positions in `raw`.
    """

    raw: np.ndarray
    chunks: np.ndarray
    pages: np.ndarray

    def add_page_to_error(self, error: ParquetError, page: int) -> int:
        """Add the page's ordinal to an error; return the row of its chunk in the chunk table."""
        error.where.setdefault("page", int(self.pages[page, P_IN_CHUNK]))
        return int(self.pages[page, P_CHUNK])


class ChunkFailure(Exception):
    """A failure to read the pages of a column chunk: its row in the chunk table, and the error without its location."""

    def __init__(self, chunk: int, error: ParquetError) -> None:
        super().__init__(chunk, error)
        self.chunk = chunk
        self.error = error


class PageFailure(Exception):
    """A failure in one page of a page table: a kernel's negative status, or a ready `error`.

    `page` is the row in the page table, `status` is 0 if there is an `error`.
    """

    def __init__(self, page: int, status: int = 0, error: ParquetError | None = None) -> None:
        super().__init__(page, status, error)
        self.page = page
        self.status = status
        self._error = error

    @property
    def error(self) -> ParquetError:
        """Error to raise, without its location."""
        if self._error is not None:
            return self._error
        try:
            check_status(self.status)
        except ParquetError as error:
            return error
        raise AssertionError("a page failure without a reason")


def check_page(status: int, state: np.ndarray) -> int:
    """Raise PageFailure for a negative status; ``state[0]`` is then the row of the page table."""
    if status < 0:
        raise PageFailure(int(state[0]), status)
    return status


def split_data_pages(pages: Pages, most: int, sizes: np.ndarray) -> list[Pages]:
    """Split the data pages of one chunk into at most `most` runs of about equal size; `sizes` has the bytes of each."""
    ends = sizes.cumsum()
    count = int(min(most, len(ends), max(ends[-1] // MIN_RUN_BYTES, 1)))
    if count < 2:
        return [pages]
    cuts = ends.searchsorted(np.arange(1, count) * ends[-1] // count, side="left") + 1
    edges = sorted({0, *cuts.tolist(), len(ends)})
    if len(edges) == 2:
        return [pages]
    return [bound_pages(pages, pages.pages[first:last]) for first, last in pairwise(edges)]


def stored_ends(table: np.ndarray, sealed: np.ndarray | int) -> np.ndarray:
    """Return where each page ends as stored; `sealed` is C_SEALED of its chunk, whatever has been decrypted since."""
    ends: np.ndarray = table[:, P_BODY] + table[:, P_COMPRESSED] + np.maximum(sealed - PLAINTEXT_OFFSET, 0)
    return ends


def data_pages(pages: Pages) -> Pages:
    """Return the data pages among pages, their chunks bounded to the rows that they hold."""
    return bound_pages(pages, pages.pages[pages.pages[:, P_TYPE] != DICTIONARY_PAGE])


def bound_pages(pages: Pages, table: np.ndarray) -> Pages:
    """Return some of the data pages, in order, as Pages whose chunks are bounded to the rows that these hold.

    C_VALIDITY becomes the first row of each chunk among all rows; null counts begin at 0.
    """
    chunks = pages.chunks.copy()
    kernels.bound_chunks(chunks.reshape(-1), len(chunks), table.reshape(-1), len(table))
    return Pages(pages.raw, chunks, table)
