"""Decode job: column chunks fetched and decoded together; shares pages over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.read.context import ReadContext
from numparq.column.read.decode import check_utf8, find_page_of_invalid_utf8, is_utf8
from numparq.column.read.dictionary import decode_binary_dictionary
from numparq.column.read.pages import PageFailure, Pages, split_data_pages
from numparq.errors import LimitError, ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.status import INEXACT, NO_DICTIONARY, NULL_FOUND
from numparq.kernels.tables import C_END, C_NULL_COUNT, C_START, P_CHUNK, P_TYPE, P_UNCOMPRESSED

__all__ = ["RETRY_STATUSES", "DecodeJob"]

# What a kernel says when a column has to be decoded again, as another target.
RETRY_STATUSES = frozenset((NULL_FOUND, INEXACT, NO_DICTIONARY))


@dataclass(eq=False, repr=False)
class DecodeJob:
    """Column chunks of any row groups; several fit into one window.

    Parameters
    ----------
    context : ReadContext
        Of the read.
    row_groups : sequence of int
        For each chunk the ordinal of its row group.
    columns : sequence of int
        For each chunk the position of its column in `ReadContext.names`.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    shares_pages : bool
        Whether the pages are worth sharing out over the threads.

    Attributes
    ----------
    retries : dict of int to int
        For each column that cannot be decoded as its target says, a status out of RETARGET.
    arrays : list of BinaryArray, DictionaryArray or NestedLeaf
        What chunks of BYTE_ARRAY values are decoded into: the rows, in order.
    """

    context: ReadContext
    row_groups: Sequence[int]
    columns: Sequence[int]
    chunks: np.ndarray
    shares_pages: bool
    retries: dict[int, int] = field(default_factory=dict)
    arrays: list[Any] = field(default_factory=list)

    def __call__(self) -> None:
        """Do it."""
        raise NotImplementedError

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        return int((self.chunks[:, C_END] - self.chunks[:, C_START]).sum())

    def page_windows(self) -> Iterator[Pages]:
        """Fetch and walk the chunks; gives their pages window by window, checked."""
        scratch = self.context.local.get()
        scratch.carried_prefixes.clear()
        walk = self.context.walk_pages(self.chunks, self.row_groups)
        windows = walk.windows(scratch)
        while True:
            try:
                pages = next(windows, None)
            except ParquetError as error:
                raise self._add_location(error, walk.failed_chunk) from None
            if pages is None:
                return
            pages = self._prune_pages(pages)
            try:
                self.context.check_pages(self.row_groups, self.columns, pages)
            except PageFailure as failure:
                raise self.page_error(pages, failure) from None
            yield pages
            if self.context.progress is not None:
                self.context.progress.advance(len(pages.raw))

    def _prune_pages(self, pages: Pages) -> Pages:
        """Leave out those pages of a window that are not needed after all."""
        return pages

    def page_error(self, pages: Pages, failure: PageFailure | LimitError) -> Exception:
        """Return the error that says where pages failed."""
        if isinstance(failure, LimitError):
            return self._locate_limit(failure, pages)
        error = failure.error
        return self._add_location(error, pages.add_page_to_error(error, failure.page))

    def _locate_limit(self, error: LimitError, pages: Pages) -> ParquetError:
        """Add the chunk of a scratch buffer's error, if all pages are of one."""
        chunks = set(pages.pages[:, P_CHUNK].tolist())
        return self._add_location(error, chunks.pop()) if len(chunks) == 1 else error

    def _add_location(self, error: ParquetError, chunk: int) -> ParquetError:
        chunk = min(chunk, len(self.columns) - 1)
        error.where.setdefault("row_group", self.row_groups[chunk])
        error.where.setdefault("column", self.context.column_names[self.columns[chunk]])
        return error

    def check_utf8(self, piece: BinaryArray, pages: Pages) -> None:
        """Refuse strings that are not UTF-8; `pages` are those that the piece was decoded from."""
        try:
            check_utf8(piece)
        except ParquetError as error:
            raise self._add_location(
                error, pages.add_page_to_error(error, find_page_of_invalid_utf8(piece, pages))
            ) from None

    def decode_dictionary(self, pages: Pages, utf8: bool) -> BinaryArray | None:
        """Decode the dictionaries of chunks of BYTE_ARRAY values, if pages hold any, and check the strings."""
        try:
            dictionary = decode_binary_dictionary(pages, self.context.local.get())
        except (PageFailure, LimitError) as failure:
            raise self.page_error(pages, failure) from None
        if dictionary is not None and utf8 and not is_utf8(dictionary):
            is_dictionary = pages.pages[:, P_TYPE] == DICTIONARY_PAGE
            self.check_utf8(dictionary, Pages(pages.raw, pages.chunks, pages.pages[is_dictionary]))
        return dictionary

    def split_pages(self, pages: Pages) -> list[Pages]:
        """Divide the data pages of a window into parts: those of a single chunk where other threads may take some."""
        if not self.shares_pages:
            return [pages]
        return split_data_pages(pages, 2 * self.context.pool.threads, pages.pages[:, P_UNCOMPRESSED])

    def run_parts(self, pages: Pages, work: Callable[[int, Pages], None]) -> None:
        """Call ``work(ordinal, part)`` for runs of data pages: those of a single chunk are shared out where that pays.

        Each part has a chunk table of its own, whose wanted rows are those of its pages.
        """
        if not len(pages.pages):
            return
        parts = self.split_pages(pages)
        if len(parts) == 1:
            work(0, pages)
            return
        jobs = [partial(work, number, part) for number, part in enumerate(parts)]
        if self.shares_pages:
            self.context.pool.run(jobs)
        else:
            for job in jobs:
                job()
        pages.chunks[0, C_NULL_COUNT] += sum(part.chunks[0, C_NULL_COUNT] for part in parts)
