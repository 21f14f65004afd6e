"""Decode task: pages of column chunks from a page source into a sink, for all or selected rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from numparq.column.buffers import BinaryArray
from numparq.column.read.context import ReadContext
from numparq.column.read.decode import check_utf8, find_page_of_invalid_utf8, is_utf8
from numparq.column.read.dictionary import DictionaryCache, decode_binary_dictionary
from numparq.column.read.page_sources import PageSource
from numparq.column.read.pages import ChunkFailure, PageFailure, Pages, split_data_pages
from numparq.column.scratch import Scratch
from numparq.errors import InvalidFileError, LimitError, ParquetError
from numparq.kernels.enums import DICTIONARY_PAGE
from numparq.kernels.selection.lazy_pages import STATE_TAKEN
from numparq.kernels.status import INEXACT, NO_DICTIONARY, NULL_FOUND
from numparq.kernels.tables import C_NULL_COUNT, P_CHUNK, P_TYPE, P_UNCOMPRESSED
from numparq.util.pluralize import pluralize

if TYPE_CHECKING:
    from numparq.column.read.chunk_selection import ChunkSelection

_Result = TypeVar("_Result")

# Statuses of kernels that ask for another output type of the column.
RETRY_STATUSES = frozenset((NULL_FOUND, INEXACT, NO_DICTIONARY))


class PageSink(Protocol):
    """Memory that the pages of one task are decoded into. Null counts go to the chunk table.

    Attributes
    ----------
    arrays : list of BinaryArray, DictionaryArray or NestedLeaf
        Decoded values of variable size: the rows in order.
    failed : dict of int to int
        For each column that asks for another output type, the status out of RETRY_STATUSES.
    builds_arrays : bool
        Whether `start` and `finish` have to be called: the memory is not that of the frame.
    """

    arrays: list[Any]
    failed: dict[int, int]
    builds_arrays: ClassVar[bool] = True

    def start(self, task: DecodeTask) -> None:
        """Prepare for the chunks of a task that has read nothing."""
        return

    def decode(self, pages: Pages, task: DecodeTask, scratch: Scratch) -> None:
        """Decode a window of pages; `scratch` is that of the calling thread."""

    def finish(self, task: DecodeTask) -> None:
        """Complete the arrays after the last window."""
        return

    def single(self, position: int) -> PageSink:
        """Return an unused sink for one chunk of the task."""


@dataclass(eq=False, repr=False)
class DecodeTask:
    """Column chunks of any row groups, decoded into a sink.

    Parameters
    ----------
    context : ReadContext
        That of the read.
    row_groups : sequence of int
        For each chunk the ordinal of its row group; for errors.
    columns : sequence of int
        For each chunk the position of its column in `ReadContext.column_names`.
    source : PageSource
        The pages.
    sink : PageSink
        Where they are decoded to.
    shares_pages : bool
        Whether other threads decode some of the pages.
    selection : ChunkSelection or None
        The selected rows of the one chunk; None: those of the chunk table.
    dictionary_cache : DictionaryCache or None
        The cached dictionary of the one chunk, or where to cache it; None: it is not cached.
    """

    context: ReadContext
    row_groups: Sequence[int]
    columns: Sequence[int]
    source: PageSource
    sink: PageSink
    shares_pages: bool = False
    selection: ChunkSelection | None = None
    dictionary_cache: DictionaryCache | None = None

    def __call__(self) -> None:
        """Decode the pages."""
        context, source, sink, selection = self.context, self.source, self.sink, self.selection
        scratch, pages = context.local.get(), None
        scratch.carried_prefixes.clear()
        if sink.builds_arrays:
            sink.start(self)
        try:
            try:
                for pages in source.windows(scratch):
                    if not source.is_checked:
                        context.check_pages(self.row_groups, self.columns, pages)
                    sink.decode(pages, self, scratch)
                    if context.progress is not None:
                        context.progress.advance(len(pages.raw))
                    if sink.failed and len(sink.failed) == len({*self.columns}):
                        break
            except (ChunkFailure, PageFailure) as failure:
                raise self._locate_failure(failure, pages) from None
            if selection is not None and selection.state[STATE_TAKEN] != selection.count and not sink.failed:
                raise self._row_count_error(selection)
            if sink.builds_arrays:
                sink.finish(self)
        except (ParquetError, MemoryError):
            context.doubts_indexes |= source.is_located
            raise

    def _locate_failure(self, failure: ChunkFailure | PageFailure, pages: Pages | None) -> ParquetError:
        """Return the error of a failure to read or decode pages, with its location; `pages` are the last window."""
        if isinstance(failure, ChunkFailure):
            return self.locate(failure.error, failure.chunk)
        assert pages is not None
        return self.page_error(pages, failure)

    def _row_count_error(self, selection: ChunkSelection) -> ParquetError:
        """Return the error of pages that lack selected rows, whose memory is not written."""
        message = f"the pages have {selection.num_decoded:,} of the {pluralize(selection.count, 'selected row')}"
        return self.locate(InvalidFileError(message), 0)

    def single(self, position: int) -> DecodeTask:
        """Return a task for one chunk of this one, which has read nothing."""
        one = slice(position, position + 1)
        source = replace(self.source, chunks=self.source.chunks[one].copy())  # type: ignore[type-var]
        return replace(
            self,
            row_groups=self.row_groups[one],
            columns=self.columns[one],
            source=source,
            sink=self.sink.single(position),
            shares_pages=False,
        )

    def page_error(self, pages: Pages, failure: PageFailure | LimitError) -> ParquetError:
        """Return the error of a failure in `pages`, with its location."""
        if isinstance(failure, LimitError):  # of a scratch buffer: located if all pages are of one chunk
            chunks = {*pages.pages[:, P_CHUNK].tolist()}
            return self.locate(failure, chunks.pop()) if len(chunks) == 1 else failure
        error = failure.error
        return self.locate(error, pages.add_page_to_error(error, failure.page))

    def locate(self, error: ParquetError, chunk: int) -> ParquetError:
        """Add the row group and the column of a chunk to an error."""
        chunk = min(chunk, len(self.columns) - 1)
        error.where.setdefault("row_group", self.row_groups[chunk])
        error.where.setdefault("column", self.context.column_names[self.columns[chunk]])
        return error

    def check_utf8(self, strings: BinaryArray, pages: Pages) -> None:
        """Raise CorruptPageError for strings that are not UTF-8; they were decoded from `pages`."""
        try:
            check_utf8(strings)
        except ParquetError as error:
            page = find_page_of_invalid_utf8(strings, pages)
            raise self.locate(error, pages.add_page_to_error(error, page)) from None

    def decode_dictionary(self, pages: Pages, utf8: bool, scratch: Scratch) -> BinaryArray | None:
        """Decode the dictionaries of chunks of BYTE_ARRAY values and check the strings; None if no page is one.

        A cached dictionary is returned instead.
        """
        cache = self.dictionary_cache
        if cache is not None and isinstance(cache.dictionary, BinaryArray):
            return cache.dictionary
        try:
            dictionary = decode_binary_dictionary(pages, scratch)
        except (PageFailure, LimitError) as failure:
            raise self.page_error(pages, failure) from None
        if dictionary is None:
            return None
        if utf8 and not is_utf8(dictionary):
            is_dictionary = pages.pages[:, P_TYPE] == DICTIONARY_PAGE
            self.check_utf8(dictionary, Pages(pages.raw, pages.chunks, pages.pages[is_dictionary]))
        if cache is not None:
            cache.keep_binary(pages.chunks[0], dictionary, 0 if self.selection is None else self.selection.count)
        return dictionary

    def split_pages(self, pages: Pages) -> list[Pages]:
        """Split the data pages of a window into runs, if other threads decode some."""
        if not (self.shares_pages and self.context.pool.runs_out_of_jobs()):
            return [pages]
        return split_data_pages(pages, 2 * self.context.pool.threads, pages.pages[:, P_UNCOMPRESSED])

    def run_parts(
        self,
        pages: Pages,
        work: Callable[[Pages, Scratch], _Result],
        scratch: Scratch,
        split: Callable[[Pages], list[Pages]] | None = None,
    ) -> list[_Result]:
        """Return ``work(part, scratch)`` for runs of data pages, in order; on several threads if these share the pages.

        Several parts are of a single chunk, and have chunk tables of their own, bounded to the rows of their pages.
        """
        if not len(pages.pages):
            return []
        parts = self.split_pages(pages) if split is None else split(pages)
        if len(parts) == 1:
            return [work(pages, scratch)]
        results: dict[int, _Result] = {}

        def run(number: int) -> None:
            results[number] = work(parts[number], self.context.local.get())

        calls = [partial(run, number) for number in range(len(parts))]
        if self.shares_pages:
            self.context.pool.run(calls)
        else:
            for call in calls:
                call()
        pages.chunks[0, C_NULL_COUNT] += sum(part.chunks[0, C_NULL_COUNT] for part in parts)
        return [results[number] for number in range(len(parts))]
