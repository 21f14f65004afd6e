"""Decode jobs for selected rows of a column chunk; pages without any are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.nested.levels import take_leaf_rows
from numparq.column.read.decode import decode_binary, decode_fixed, is_utf8
from numparq.column.read.decompress import PageBatches
from numparq.column.read.dictionary import all_have_indices, have_indices
from numparq.column.read.fused_read import FusedRead
from numparq.column.read.output import NO_MASK, FixedOutput
from numparq.column.read.page_selection import (
    PageSelection,
    decode_sparse_fixed,
    decode_sparse_strings,
    is_sparse,
    select_page_run,
    select_pages,
)
from numparq.column.read.page_walk import IndexedPageWalk, PageWalk, count_page_bytes
from numparq.column.read.pages import Pages
from numparq.column.read.take import ValueIndices, ValueRanges, dictionary_decode, take_array, take_binary
from numparq.column.scratch import allocate
from numparq.errors import InvalidFileError
from numparq.kernels.enums import BOOLEAN, DICTIONARY_PAGE
from numparq.kernels.tables import (
    C_CAST,
    C_DICTIONARY,
    C_FILL,
    C_ITEM_SIZE,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_QUIRKS,
    C_TYPE,
    C_VALIDITY,
    CODES,
    L_IN_CHUNK,
    L_ROW,
    L_ROWS,
    NULLS_FILL,
    NULLS_MASK,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PREFIX_CARRYOVER,
    SLACK,
)

from .job import DecodeJob
from .nested import NestedJob
from .slice import BinaryJob, DictionaryJob, FixedJob, OutputTypeRetry

__all__ = ["BinarySelectionJob", "DictionarySelectionJob", "FixedSelectionJob", "NestedSelectionJob"]

# Rows of pages that are decoded before the wanted ones are taken: few enough to be in the cache still.
GROUP_ROWS = 512 << 10


@dataclass
class SelectionJob(DecodeJob):
    """A job for some rows of one chunk.

    Parameters
    ----------
    row_ranges : int64 array, (ranges, 2)
        The rows.
    mask : uint8 array or None
        Which rows of the one range they are (1) and which not (0), where not all are.
    locations : int64 array, (pages, LOCATED_FIELDS), or None
        The pages that hold some, if an offset index tells; None: the whole chunk is fetched and walked over.
    """

    row_ranges: np.ndarray = field(kw_only=True)
    mask: np.ndarray | None = field(kw_only=True, default=None)
    locations: np.ndarray | None = field(kw_only=True)

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        if self.locations is None:
            return super().num_bytes
        return count_page_bytes(self.locations)

    @property
    def _num_wanted(self) -> int:
        """How many rows are wanted."""
        return int(np.diff(self.row_ranges).sum() if self.mask is None else np.count_nonzero(self.mask))

    def _check_count(self, taken: int) -> None:
        """Hold the rows that the pages had against those that are wanted: nothing may be left as it was before."""
        if taken != self._num_wanted:
            message = f"the pages have {taken:,} of the {self._num_wanted:,} selected rows"
            raise self._add_location(InvalidFileError(message), 0)

    def _walk(self) -> PageWalk:
        if self.locations is None:
            return super()._walk()
        return IndexedPageWalk(self.context.source, self.chunks, self.locations, self._is_flat, self._fetched)

    _is_flat = True
    _fetched: tuple[np.ndarray, np.ndarray] | None = field(default=None, init=False)

    def _fused_read(self) -> FusedRead | None:
        """Get ready to read the rows by one call; the steps take what has been fetched for that, should it not do."""
        rows = (
            None
            if self.mask is not None
            else FusedRead.prepare(self.context, self.chunks[0], self.locations, self.row_ranges)
        )
        self._fetched = None if rows is None else (rows.raw, rows.locations)
        return rows

    def _decode_stepwise(self) -> None:
        raise NotImplementedError

    def _is_sparse(self, found: PageSelection) -> bool:
        """Tell whether the wanted ones of some rows are better taken one by one."""
        goes_on = bool(self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER)
        return not goes_on and is_sparse(found.selection.count, found.num_decoded)

    def _prune_pages(self, pages: Pages) -> Pages:
        """Leave out data pages that hold no wanted row, unless others cannot be read without them."""
        if self.locations is not None or self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
            return pages
        table = pages.pages
        first, last = table[:, P_ROW], table[:, P_ROW] + table[:, P_NUM_VALUES]
        before = np.searchsorted(self.row_ranges[:, 1], first, side="right")
        holds = np.searchsorted(self.row_ranges[:, 0], last, side="left") > before
        return Pages(pages.raw, pages.chunks, table[holds | (table[:, P_TYPE] == DICTIONARY_PAGE)])

    def page_selections(self, pages: Pages) -> Iterator[PageSelection]:
        """Set out the data pages of a window for the rows wanted, so many at a time that these stay in the cache."""
        first = int(len(pages.pages) > 0 and pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        table = pages.pages[first:]
        if self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER:
            yield from self._select(Pages(pages.raw, pages.chunks, table))
            return
        ends = np.cumsum(table[:, P_NUM_VALUES])
        start = 0
        while start < len(table):
            before = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, before + GROUP_ROWS, side="right")), start + 1)
            yield from self._select(Pages(pages.raw, pages.chunks, table[start:stop]))
            start = stop

    def _select(self, pages: Pages) -> Iterator[PageSelection]:
        """Set out some data pages, if they hold wanted rows, or the strings that those behind them begin with."""
        table = pages.pages
        if not len(table):
            return
        goes_on = bool(self.chunks[0, C_QUIRKS] & PREFIX_CARRYOVER)
        if self.mask is None and not goes_on:
            found = select_pages(pages, self.row_ranges)
        else:
            rows = np.clip(self.row_ranges, table[0, P_ROW], table[-1, P_ROW] + table[-1, P_NUM_VALUES])
            rows = rows[rows[:, 0] < rows[:, 1]]
            if not len(rows) and not goes_on:
                return
            start, stop = (int(rows[0, 0]), int(rows[-1, 1])) if len(rows) else (int(table[0, P_ROW]),) * 2
            if self.mask is None:
                found = select_page_run(pages, start, stop, ValueRanges.from_ranges(rows - start))
            else:
                first = int(self.row_ranges[0, 0])
                found = select_page_run(
                    pages, start, stop, ValueIndices.from_mask(self.mask[start - first : stop - first])
                )
        if found.selection.count or goes_on:
            yield found


@dataclass
class FixedSelectionJob(SelectionJob, FixedJob):
    """Rows of one chunk of values of a fixed size."""

    def __call__(self) -> None:
        """Decode the rows into the output."""
        rows = self._fused_read()
        nulls = None if rows is None else rows.read_fixed(self.outputs[0])
        if nulls is None:
            self._decode_stepwise()
        else:
            self.chunks[0, C_NULL_COUNT] = nulls

    def _decode_stepwise(self) -> None:
        taken = nulls = 0
        try:
            for pages in self.page_windows():
                pages = self._prepare_window(pages)
                if len(pages.pages) and pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
                    self._decode_to(Pages(pages.raw, pages.chunks, pages.pages[:1]), self.outputs[0])
                for found in self.page_selections(pages):
                    nulls += self._decode_dense(found, taken) if found.is_dense else self._decode_some(found, taken)
                    taken += found.selection.count
        except OutputTypeRetry as again:
            self.retries[self.columns[0]] = again.status
            return
        self.chunks[0, C_NULL_COUNT] = nulls
        self._check_count(taken)

    def _decode_to(self, pages: Pages, output: FixedOutput) -> None:
        with self.page_error_context(pages):
            placement = PageBatches(pages)
            dictionary = self._entries(placement.dictionary)
            decode_fixed(pages, placement, output, dictionary, self.context.scratch)

    def _entries(self, size: int) -> np.ndarray:
        return self.context.scratch.buffer("dictionary", size) if self.entries is None else self.entries

    def _decode_dense(self, found: PageSelection, taken: int) -> int:
        """Decode rows to where they belong; gives the nulls among them."""
        chunk = self.chunks[0]
        pages = found.with_output(int(chunk[C_OUT] + taken * chunk[C_ITEM_SIZE]), int(chunk[C_VALIDITY] + taken))
        self._decode_to(pages, self.outputs[0])
        return int(pages.chunks[:, C_NULL_COUNT].sum())

    def _take_few(self, found: PageSelection, taken: int) -> int:
        """Decode the rows that are wanted alone; gives the nulls among these."""
        chunk, scratch = self.chunks[0], self.context.scratch
        out, row = int(chunk[C_OUT] + taken * chunk[C_ITEM_SIZE]), int(chunk[C_VALIDITY] + taken)
        dictionary = self._entries(0)
        with self.page_error_context(found.pages):
            decode_sparse_fixed(
                found.pages, found.selection.to_indices(), self.outputs[0], out, row, dictionary, scratch
            )
        return int(found.pages.chunks[:, C_NULL_COUNT].sum())

    def _decode_some(self, found: PageSelection, taken: int) -> int:
        """Decode rows, and take those that are wanted; gives the nulls among these."""
        if self._is_sparse(found) and self.chunks[0, C_TYPE] != BOOLEAN:
            return self._take_few(found, taken)
        chunk, scratch = self.chunks[0], self.context.scratch
        item, keeps_nulls = int(chunk[C_ITEM_SIZE]), bool(chunk[C_NULLS] == NULLS_MASK)
        if chunk[C_MAX_DEFINITION] and chunk[C_NULLS] == NULLS_FILL:
            found.pages.chunks[:, C_NULLS] = NULLS_MASK  # filled as well, and then they can be counted
        values = scratch.buffer("decoded rows", found.num_decoded * item)
        mask = scratch.buffer("decoded mask", found.num_decoded)
        self._decode_to(found.pages, FixedOutput(values, mask))
        out, row = int(chunk[C_OUT] + taken * item), int(chunk[C_VALIDITY] + taken)
        count = found.selection.count
        found.selection.take_items(values, item, self.outputs[0].out, out)
        if not chunk[C_MAX_DEFINITION] or found.pages.chunks[0, C_NULLS] != NULLS_MASK:
            if keeps_nulls:
                self.outputs[0].mask[row : row + count] = 1
            return 0
        if not keeps_nulls:
            row, kept = 0, scratch.buffer("taken mask", count)
        else:
            kept = self.outputs[0].mask
        found.selection.take_items(mask, 1, kept, row)
        return count - int(np.count_nonzero(kept[row : row + count]))


@dataclass
class BinarySelectionJob(SelectionJob, BinaryJob):
    """Rows of one chunk of BYTE_ARRAY values."""

    def __call__(self) -> None:
        """Decode the rows into pieces."""
        rows = self._fused_read()
        piece = None if rows is None else rows.read_strings(self.utf8)
        if piece is None:
            self._decode_stepwise()
        else:
            self._add(piece)

    def _decode_stepwise(self) -> None:
        dictionary: BinaryArray | None = None
        for pages in self.page_windows():
            dictionary = self.decode_dictionary(pages, self.utf8) or dictionary
            for found in self.page_selections(pages):
                self._take_piece(found, dictionary)
        self._check_count(sum(map(len, self.arrays)))

    def _take_piece(self, found: PageSelection, dictionary: BinaryArray | None) -> None:
        pages = found.pages
        if dictionary is not None and not found.is_dense and all_have_indices(pages):
            piece = dictionary_decode(DictionaryArray(self._codes(found, len(dictionary)), dictionary))
        else:
            piece = self._strings(found, dictionary)
        self._add(piece)

    def _add(self, piece: BinaryArray) -> None:
        self.chunks[0, C_NULL_COUNT] += piece.null_count
        self.arrays.append(piece)

    def _strings(self, found: PageSelection, dictionary: BinaryArray | None) -> BinaryArray:
        """Decode rows to strings, and take those that are wanted."""
        pages = found.pages
        if self._is_sparse(found) and not have_indices(pages).any():
            with self.page_error_context(pages):
                hint = self._hint(found.selection.count)
                piece = decode_sparse_strings(pages, found.selection.to_indices(), hint, self.context.scratch)
            if not self.utf8 or is_utf8(piece):
                return piece  # else all are decoded, which tells the page
        with self.page_error_context(pages):
            piece = decode_binary(pages, dictionary, self._hint(found.num_decoded), self.context.scratch)
        if self.utf8 and not all_have_indices(pages):
            self.check_utf8(piece, pages)
        return piece if found.is_dense else take_binary(piece, found.selection)

    def _codes(self, found: PageSelection, num_entries: int) -> np.ndarray:
        """Decode rows to codes, and take those that are wanted: of strings that nobody wants nothing is copied."""
        scratch, chunks, count = self.context.scratch, found.pages.chunks, found.selection.count
        chunks[:, [C_CAST, C_ITEM_SIZE, C_NULLS, C_FILL, C_DICTIONARY]] = CODES, 4, NULLS_FILL, -1, 0
        chunks[:, C_OUT] = 4 * chunks[:, C_VALIDITY]
        numbers = scratch.buffer("dictionary", 4 * num_entries)
        numbers[: 4 * num_entries].view(np.int32)[:] = np.arange(num_entries)
        if self._is_sparse(found):
            taken = allocate(4 * count + SLACK)
            with self.page_error_context(found.pages):
                decode_sparse_fixed(
                    found.pages, found.selection.to_indices(), FixedOutput(taken, NO_MASK), 0, 0, numbers, scratch
                )
            return taken[: 4 * count].view(np.int32)
        codes = scratch.buffer("decoded rows", 4 * found.num_decoded)
        with self.page_error_context(found.pages):
            decode_fixed(found.pages, PageBatches(found.pages), FixedOutput(codes, NO_MASK), numbers, scratch)
        return take_array(codes[: 4 * found.num_decoded].view(np.int32), found.selection)

    def _hint(self, count: int) -> int:
        """Guess how many bytes some rows take, as those wanted do on the average."""
        return self.size_hint * count // max(self._num_wanted, 1) * 17 // 16


@dataclass
class DictionarySelectionJob(DictionaryJob, FixedSelectionJob):
    """Rows of one chunk whose dictionary indices are wanted as they are."""

    _string_job = BinarySelectionJob
    _fixed_job = FixedSelectionJob

    def _fused_read(self) -> FusedRead | None:
        return None  # the dictionary is wanted, too

    def _row_counts(self) -> np.ndarray:
        return np.array([self._num_wanted])

    def _shared_fields(self) -> dict[str, Any]:
        rows = {"row_ranges": self.row_ranges, "mask": self.mask, "locations": self.locations}
        return super()._shared_fields() | rows


@dataclass
class NestedSelectionJob(SelectionJob, NestedJob):
    """Rows of one chunk of a leaf of a nested column; `rows` and `num_rows` are all those that are decoded."""

    _sizes: list[int] = field(default_factory=list, init=False)  # entries of each data page

    @property
    def _is_flat(self) -> bool:  # type: ignore[override]
        return not self.leaf.max_repetition_level

    def _prune_pages(self, pages: Pages) -> Pages:
        table = pages.pages
        self._sizes.extend(table[table[:, P_TYPE] != DICTIONARY_PAGE, P_NUM_VALUES].tolist())
        return pages

    def __call__(self) -> None:
        """Decode the pages into one piece, and take the rows."""
        super().__call__()
        for piece in self.arrays:
            if self.locations is not None and piece.repetition is not None:
                self._check_places(piece.repetition[: piece.num_entries] == 0, self.locations)
        self.arrays = [take_leaf_rows(piece, self.leaf, self.row_ranges) for piece in self.arrays]

    def _check_places(self, begins: np.ndarray, located: np.ndarray) -> None:
        """Hold the rows of pages, by their levels, against the offset index; `begins`: entries that begin a row."""
        located = located[located[:, L_ROW] >= 0]
        heads = np.flatnonzero(np.diff(located[:, L_ROW], prepend=-1))  # pages that begin with one row: together
        starts = np.concatenate([[0], np.cumsum(self._sizes)])[heads]
        before = np.concatenate([[0], np.cumsum(begins)])
        wrong = np.diff(np.append(before[starts], before[-1])) != np.add.reduceat(located[:, L_ROWS], heads)
        there = starts < len(begins)
        wrong[there] |= ~begins[starts[there]]
        if wrong.any():
            page = int(located[heads[np.argmax(wrong)], L_IN_CHUNK])
            message = "the rows of a page differ from the offset index, or the page begins within a row"
            raise self._add_location(InvalidFileError(message, page=page), 0)
