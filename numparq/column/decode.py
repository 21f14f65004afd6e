"""Jobs: column chunks that are fetched and decoded together, by one thread or by a crew that shares their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import INEXACT, NO_DICTIONARY, NULL_FOUND, ParquetError
from ..io.source import Source
from ..kernels import kernels
from ..kernels.tables import (
    BIT_PACKED,
    BYTE_ARRAY,
    C_CONVERSION,
    C_END,
    C_ITEM_SIZE,
    C_MASK,
    C_NULL_COUNT,
    C_NULLS,
    C_NUM_VALUES,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    C_START,
    C_TYPE,
    C_TYPE_LENGTH,
    CODES,
    COPY,
    DICTIONARY_PAGE,
    NULLS_MASK,
    P_CHUNK,
    P_DEFINITION_ENCODING,
    P_ENCODING,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    P_UNCOMPRESSED,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SLACK,
)
from ..threads import Crew
from .binary import NO_DICTIONARY as NO_VALUES
from .binary import check_utf8, copy_fixed_dictionary, decode_binary, decode_binary_dictionary, fixed_piece
from .buffer import BinaryPiece, DictionaryPiece
from .fixed import FixedOutput, decode_fixed
from .pages import PageFailure, Pages, PageWalk, Placement, verify_crcs
from .scratch import Scratch, ThreadScratch, allocate

# Bytes (decompressed) that a part of a chunk has at least when its pages are shared out.
PART_BYTES = 512 << 10

# What a kernel says when a column has to be decoded again, as another target.
RETARGET = frozenset((NULL_FOUND, INEXACT, NO_DICTIONARY))


@dataclass(eq=False, repr=False)
class Context:
    """What all jobs of one read share.

    Parameters
    ----------
    source : Source
        The file.
    names : list of str
        The columns read, for messages.
    crew : Crew
        The threads.
    verify_crc : bool
        Whether pages with a CRC are held against it.
    local : ThreadScratch
        The buffers of each thread.
    bit_packed : int
        How this writer's levels in the encoding BIT_PACKED lie, as `writers.Faults` has it.
    """

    source: Source
    names: list[str]
    crew: Crew
    verify_crc: bool
    local: ThreadScratch = field(default_factory=ThreadScratch)
    bit_packed: int = BIT_PACKED

    @property
    def scratch(self) -> Scratch:
        """The buffers of the calling thread."""
        return self.local.get()

    def walk(self, chunks: np.ndarray) -> PageWalk:
        """Give what walks over the pages of column chunks."""
        return PageWalk(self.source, chunks)

    def check(self, row_group: int, columns: list[int], pages: Pages) -> None:
        """Check pages before they are decoded; PageFailure. `columns` are those of the rows of the chunk table."""
        if self.bit_packed != BIT_PACKED:
            encodings = pages.pages[:, P_DEFINITION_ENCODING]
            encodings[encodings == BIT_PACKED] = self.bit_packed
        if self.verify_crc:
            verify_crcs(pages)

    def close(self) -> None:
        """End the read: the crew is done."""
        self.local.close()


@dataclass(eq=False, repr=False)
class Job:
    """Column chunks of one row group, in the order of the file, none over another.

    Parameters
    ----------
    context : Context
        Of the read.
    row_group : int
        Its ordinal in the file.
    columns : list of int
        For each chunk the position of its column in `Context.names`.
    chunks : int64 array, (chunks, CHUNK_FIELDS)
        The chunk table.
    share : bool
        Whether the pages are worth sharing out over the threads.

    Attributes
    ----------
    failed : dict of int to int
        For each column that cannot be decoded as its target says, a status out of RETARGET.
    pieces : list of BinaryPiece, DictionaryPiece or NestedPiece
        What chunks of BYTE_ARRAY values are decoded into: the rows, in order.
    """

    context: Context
    row_group: int
    columns: list[int]
    chunks: np.ndarray
    share: bool
    failed: dict[int, int] = field(default_factory=dict)
    pieces: list[Any] = field(default_factory=list)

    def __call__(self) -> None:
        """Do it."""
        raise NotImplementedError

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        return int((self.chunks[:, C_END] - self.chunks[:, C_START]).sum())

    def windows(self) -> Iterator[Pages]:
        """Fetch and walk the chunks; gives their pages window by window, checked."""
        scratch = self.context.scratch
        scratch.strings.clear()
        walk = self._walk()
        windows = walk.windows(scratch)
        while True:
            try:
                pages = next(windows, None)
            except ParquetError as error:
                raise self._placed(error, walk.failed_chunk) from None
            if pages is None:
                return
            pages = self._needed(pages)
            with self.placing(pages):
                self.context.check(self.row_group, self.columns, pages)
            yield pages

    def _walk(self) -> PageWalk:
        """Give what fetches the pages and walks over them."""
        return self.context.walk(self.chunks)

    def _needed(self, pages: Pages) -> Pages:
        """Leave out those pages of a window that are not needed after all."""
        return pages

    @contextmanager
    def placing(self, pages: Pages) -> Iterator[None]:
        """Turn a PageFailure into the ParquetError that says where."""
        try:
            yield
        except PageFailure as failure:
            error = failure.error
            raise self._placed(error, pages.locate(error, failure.page)) from None

    def _placed(self, error: ParquetError, chunk: int) -> ParquetError:
        error.where.setdefault("row_group", self.row_group)
        error.where.setdefault("column", self.context.names[self.columns[min(chunk, len(self.columns) - 1)]])
        return error

    def _check_utf8(self, piece: BinaryPiece, pages: Pages) -> None:
        """Refuse strings that are not UTF-8; `pages` are those that the piece was decoded from."""
        try:
            check_utf8(piece)
        except ParquetError as error:
            raise self._placed(error, pages.locate(error, _page_of_bad_utf8(piece, pages))) from None

    def _binary_dictionary(self, pages: Pages, utf8: bool) -> BinaryPiece | None:
        """Decode the dictionary of a chunk of BYTE_ARRAY values, if its page is among these, and check its strings."""
        with self.placing(pages):
            dictionary = decode_binary_dictionary(pages, self.context.scratch)
        if dictionary is not None and utf8:
            self._check_utf8(dictionary, pages)
        return dictionary

    def in_parts(self, pages: Pages, work: Callable[[int, Pages], None]) -> None:
        """Call ``work(ordinal, part)`` for runs of the data pages of a single chunk, shared out where that pays.

        Each part has a chunk table of its own, whose wanted rows are those of its pages.
        """
        first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        data = Pages(pages.raw, pages.chunks, pages.pages[first:])
        if not len(data.pages):
            return
        parts = split(data, 2 * self.context.crew.threads) if self.share else [data]
        self.context.crew.run([_bind(work, number, part) for number, part in enumerate(parts)])
        if len(parts) > 1:
            pages.chunks[0, C_NULL_COUNT] += sum(part.chunks[0, C_NULL_COUNT] for part in parts)


def _are_indices(pages: Pages) -> np.ndarray:
    """Tell of each page whether it holds dictionary indices."""
    encodings = pages.pages[:, P_ENCODING]
    return (encodings == PLAIN_DICTIONARY) | (encodings == RLE_DICTIONARY)


def _all_indices(pages: Pages) -> bool:
    """Tell whether all pages hold dictionary indices."""
    return bool(_are_indices(pages).all())


def _page_of_bad_utf8(piece: BinaryPiece, pages: Pages) -> int:
    """Find the page that the first string that is not UTF-8 is in; a dictionary stands in the first page."""
    if pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
        return 0
    chunks = pages.chunks[pages.pages[:, P_CHUNK]]
    places = chunks[:, C_MASK] + (pages.pages[:, P_ROW] - chunks[:, C_ROW_START]).clip(0)
    firsts = places.clip(0, len(piece)).tolist()
    for number, (first, last) in enumerate(zip(firsts, [*firsts[1:], len(piece)], strict=True)):
        if kernels.check_utf8(piece.offsets[first : last + 1], last - first, piece.data) < 0:
            return number
    return len(firsts) - 1


def _bind(work: Callable[[int, Pages], None], number: int, part: Pages) -> Callable[[], None]:
    return lambda: work(number, part)


def split(pages: Pages, most: int) -> list[Pages]:
    """Divide the data pages of a single chunk into at most `most` parts of about the same size."""
    sizes = np.cumsum(pages.pages[:, P_UNCOMPRESSED])
    count = int(min(most, len(sizes), max(sizes[-1] // PART_BYTES, 1)))
    if count < 2:
        return [pages]
    cuts = np.unique(np.searchsorted(sizes, np.arange(1, count) * sizes[-1] // count, side="left") + 1)
    edges = [0, *cuts[cuts < len(sizes)].tolist(), len(sizes)]
    if len(edges) == 2:
        return [pages]
    return [part_of(pages, first, last) for first, last in pairwise(edges)]


def part_of(pages: Pages, first: int, last: int) -> Pages:
    """Give a run of data pages of a single chunk as pages of their own, with the rows that they hold."""
    table = np.ascontiguousarray(pages.pages[first:last])
    chunks = pages.chunks.copy()
    chunks[0, C_ROW_START] = max(chunks[0, C_ROW_START], table[0, P_ROW])
    stop = min(chunks[0, C_ROW_STOP], table[-1, P_ROW] + table[-1, P_NUM_VALUES])
    chunks[0, C_ROW_STOP] = max(stop, chunks[0, C_ROW_START])
    chunks[0, C_NULL_COUNT] = 0
    return Pages(pages.raw, chunks, table)


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


class Retarget(Exception):
    """A chunk of a job has to be decoded as another target."""

    def __init__(self, chunk: int, status: int) -> None:
        super().__init__(chunk, status)
        self.chunk = chunk
        self.status = status


@dataclass(eq=False, repr=False)
class BinaryJob(Job):
    """One chunk of BYTE_ARRAY values, decoded into pieces.

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
        """Decode the chunk into pieces."""
        dictionary: BinaryPiece | None = None
        rows = int(self.chunks[0, C_ROW_STOP] - self.chunks[0, C_ROW_START])
        for pages in self.windows():
            dictionary = self._binary_dictionary(pages, self.utf8) or dictionary
            self._decode(pages, dictionary, rows)

    def _decode(self, pages: Pages, dictionary: BinaryPiece | None, rows: int) -> None:
        made: dict[int, BinaryPiece] = {}

        def work(number: int, part: Pages) -> None:
            chunk = part.chunks[0]
            hint = self.size_hint * max(int(chunk[C_ROW_STOP] - chunk[C_ROW_START]), 0) // max(rows, 1)
            hint += hint // 16  # memory not touched costs nothing, a buffer that has to grow a copy
            with self.placing(part):
                made[number] = decode_binary(part, dictionary, hint, self.context.scratch)
            if self.utf8 and not _all_indices(part):  # the strings of a dictionary are checked already
                self._check_utf8(made[number], part)

        trimmed = _trimmed(pages)
        self.in_parts(trimmed, work)
        self.chunks[0, C_NULL_COUNT] += trimmed.chunks[0, C_NULL_COUNT]
        self.pieces.extend(made[number] for number in sorted(made))


def _trimmed(pages: Pages) -> Pages:
    """Narrow the wanted rows of a single chunk to those of its data pages at hand, so that pieces join up."""
    first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
    if first == len(pages.pages):
        chunks = pages.chunks.copy()
        chunks[0, C_NULL_COUNT] = 0
        return Pages(pages.raw, chunks, pages.pages)
    return Pages(pages.raw, part_of(pages, first, len(pages.pages)).chunks, pages.pages)


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
    dictionary: BinaryPiece = field(default_factory=lambda: NO_VALUES)

    def __call__(self) -> None:
        """Decode the chunk into codes, or else into values."""
        if not len(self.codes):
            self.chunks[0, C_NUM_VALUES] = -1  # nothing but the dictionary is wanted
        untouched = self.chunks.copy()
        super().__call__()
        if not self.failed:
            self.pieces.append(DictionaryPiece(self.codes, self.dictionary))
            return
        self.failed.clear()
        self.chunks = untouched
        if self._is_binary:
            plain = self._plain()
            plain()
            self.pieces.extend(plain.pieces)
        else:
            self.pieces.append(self._fixed_values())

    @property
    def _is_binary(self) -> bool:
        return self.chunks[0, C_TYPE] == BYTE_ARRAY

    def _begin(self, pages: Pages) -> None:
        if self._is_binary:
            found = self._binary_dictionary(pages, self.utf8)
        else:
            with self.placing(pages):
                found = copy_fixed_dictionary(pages, self.context.scratch)
        self.dictionary = found or self.dictionary

    def _plain(self) -> Job:
        """Make the job that decodes a chunk of BYTE_ARRAY values into these."""
        return BinaryJob(self.context, self.row_group, self.columns, self.chunks, self.share, utf8=self.utf8,
                         size_hint=self.size_hint)  # fmt: skip

    def _stored(self, output: FixedOutput) -> Job:
        """Make the job that decodes a chunk of values of a fixed size into what is stored."""
        return FixedJob(self.context, self.row_group, self.columns, self.chunks, self.share, output=output)

    def _fixed_values(self) -> BinaryPiece:
        """Decode a chunk of values of a fixed size, kept as they are stored."""
        width = int(self.chunks[0, C_TYPE_LENGTH])
        values, validity = allocate(len(self.codes) * width + SLACK), allocate(len(self.codes) + SLACK)
        self.chunks[0, [C_CONVERSION, C_ITEM_SIZE, C_NULLS]] = COPY, width, NULLS_MASK
        self._stored(FixedOutput(values, validity))()
        return fixed_piece(values[: len(self.codes) * width], width, validity[: len(self.codes)])


__all__ = ["RETARGET", "BinaryJob", "Context", "DictionaryJob", "FixedJob", "Job"]
