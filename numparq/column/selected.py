"""Jobs for rows here and there of a column chunk: pages without such rows are passed, of the others these are taken.

Of a page that holds few wanted rows only these are decoded. Any other one is decoded from the first of them to the
last, into memory that is used again; from there the wanted ones are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..errors import InvalidFileError
from ..kernels.located_pages import L_IN_CHUNK, L_ROW, L_ROWS
from ..kernels.tables import (
    BOOLEAN,
    C_CONVERSION,
    C_DICTIONARY,
    C_FAULTS,
    C_FILL,
    C_ITEM_SIZE,
    C_MASK,
    C_MAX_DEFINITION,
    C_NULL_COUNT,
    C_NULLS,
    C_OUT,
    C_TYPE,
    CODES,
    DICTIONARY_PAGE,
    NULLS_FILL,
    NULLS_MASK,
    P_NUM_VALUES,
    P_ROW,
    P_TYPE,
    PREFIXES_GO_ON,
    SLACK,
)
from .at_once import AtOnce
from .binary import all_indices, are_indices, decode_binary
from .binary_job import BinaryJob
from .buffer import BinaryPiece, DictionaryPiece
from .dictionary_job import DictionaryJob
from .fixed import NO_MASK, FixedOutput, decode_fixed
from .fixed_job import FixedJob, Retarget
from .job import Job
from .located import LocatedWalk, bytes_of
from .nested import NestedJob
from .nested_rows import rows_of
from .pages import Pages, PageWalk, Placement
from .scattered import is_scattered, take_fixed, take_strings
from .scratch import allocate
from .taking import Places, Runs, entries_of, items_of, strings_of
from .utf8 import is_utf8
from .wanted import Gathered, gathered, in_one

__all__ = ["SelectedBinaryJob", "SelectedDictionaryJob", "SelectedFixedJob", "SelectedNestedJob"]

# Rows of pages that are decoded before the wanted ones are taken: few enough to be in the cache still.
GROUP_ROWS = 512 << 10


@dataclass
class Selected(Job):
    """A job for some rows of one chunk.

    Parameters
    ----------
    wanted : int64 array, (ranges, 2)
        The rows.
    mask : uint8 array or None
        Which rows of the one range they are (1) and which not (0), where not all are.
    located : int64 array, (pages, LOCATED_FIELDS), or None
        The pages that hold some, if an offset index tells; None: the whole chunk is fetched and walked over.
    """

    wanted: np.ndarray = field(kw_only=True)
    mask: np.ndarray | None = field(kw_only=True, default=None)
    located: np.ndarray | None = field(kw_only=True)

    @property
    def num_bytes(self) -> int:
        """The bytes of the file that it reads."""
        if self.located is None:
            return super().num_bytes
        return bytes_of(self.located)

    @property
    def _num_wanted(self) -> int:
        """How many rows are wanted."""
        return int((self.wanted[:, 1] - self.wanted[:, 0]).sum() if self.mask is None else np.count_nonzero(self.mask))

    def _check_count(self, taken: int) -> None:
        """Hold the rows that the pages had against those that are wanted: nothing may be left as it was before."""
        if taken != self._num_wanted:
            message = f"the pages have {taken:,} of the {self._num_wanted:,} rows that they should have"
            raise self._placed(InvalidFileError(message), 0)

    def _walk(self) -> PageWalk:
        if self.located is None:
            return super()._walk()
        return LocatedWalk(self.context.source, self.chunks, self.located, self._is_flat, self._at_hand)

    _is_flat = True
    _at_hand: tuple[np.ndarray, np.ndarray] | None = field(default=None, init=False)

    def _at_once(self) -> AtOnce | None:
        """Get ready to read the rows by one call; the steps take what has been fetched for that, should it not do."""
        rows = None if self.mask is not None else AtOnce.of(self.context, self.chunks[0], self.located, self.wanted)
        self._at_hand = None if rows is None else (rows.raw, rows.located)
        return rows

    def go_on(self, rows: AtOnce) -> None:
        """Decode by steps what could not be decoded at once, of the bytes that were fetched for that.

        Parameters
        ----------
        rows : AtOnce
            Of this job's rows, made by this thread, which has fetched nothing since.
        """
        self._at_hand = rows.raw, rows.located
        self._in_steps()

    def _in_steps(self) -> None:
        raise NotImplementedError

    def _are_few(self, found: Gathered) -> bool:
        """Tell whether the wanted ones of some rows are better taken one by one."""
        goes_on = bool(self.chunks[0, C_FAULTS] & PREFIXES_GO_ON)
        return not goes_on and is_scattered(found.taking.count, found.num_decoded)

    def _needed(self, pages: Pages) -> Pages:
        """Leave out data pages that hold no wanted row, unless others cannot be read without them."""
        if self.located is not None or self.chunks[0, C_FAULTS] & PREFIXES_GO_ON:
            return pages
        table = pages.pages
        first, last = table[:, P_ROW], table[:, P_ROW] + table[:, P_NUM_VALUES]
        before = np.searchsorted(self.wanted[:, 1], first, side="right")
        holds = np.searchsorted(self.wanted[:, 0], last, side="left") > before
        return Pages(pages.raw, pages.chunks, table[holds | (table[:, P_TYPE] == DICTIONARY_PAGE)])

    def groups(self, pages: Pages) -> Iterator[Gathered]:
        """Set out the data pages of a window for the rows wanted, so many at a time that these stay in the cache."""
        first = int(len(pages.pages) > 0 and pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        table = pages.pages[first:]
        if self.chunks[0, C_FAULTS] & PREFIXES_GO_ON:
            yield from self._set_out(Pages(pages.raw, pages.chunks, table))
            return
        ends = np.cumsum(table[:, P_NUM_VALUES])
        start = 0
        while start < len(table):
            before = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, before + GROUP_ROWS, side="right")), start + 1)
            yield from self._set_out(Pages(pages.raw, pages.chunks, table[start:stop]))
            start = stop

    def _set_out(self, pages: Pages) -> Iterator[Gathered]:
        """Set out some data pages, if they hold wanted rows, or the strings that those behind them begin with."""
        table = pages.pages
        if not len(table):
            return
        goes_on = bool(self.chunks[0, C_FAULTS] & PREFIXES_GO_ON)
        if self.mask is None and not goes_on:
            found = gathered(pages, self.wanted)
        else:
            rows = np.clip(self.wanted, table[0, P_ROW], table[-1, P_ROW] + table[-1, P_NUM_VALUES])
            rows = rows[rows[:, 0] < rows[:, 1]]
            if not len(rows) and not goes_on:
                return
            start, stop = (int(rows[0, 0]), int(rows[-1, 1])) if len(rows) else (int(table[0, P_ROW]),) * 2
            if self.mask is None:
                found = in_one(pages, start, stop, Runs.between(rows - start))
            else:
                first = int(self.wanted[0, 0])
                found = in_one(pages, start, stop, Places.where(self.mask[start - first : stop - first]))
        if found.taking.count or goes_on:
            yield found


@dataclass
class SelectedFixedJob(Selected, FixedJob):
    """Rows of one chunk of values of a fixed size."""

    def __call__(self) -> None:
        """Decode the rows into the output."""
        rows = self._at_once()
        nulls = None if rows is None else rows.fixed(self.output)
        if nulls is None:
            self._in_steps()
        else:
            self.chunks[0, C_NULL_COUNT] = nulls

    def _in_steps(self) -> None:
        taken = nulls = 0
        try:
            for pages in self.windows():
                self._begin(pages)
                if len(pages.pages) and pages.pages[0, P_TYPE] == DICTIONARY_PAGE:
                    self._decode_to(Pages(pages.raw, pages.chunks, pages.pages[:1]), self.output)
                for found in self.groups(pages):
                    nulls += self._decode_dense(found, taken) if found.is_dense else self._decode_some(found, taken)
                    taken += found.taking.count
        except Retarget as again:
            self.failed[self.columns[0]] = again.status
            return
        self.chunks[0, C_NULL_COUNT] = nulls
        self._check_count(taken)

    def _decode_to(self, pages: Pages, output: FixedOutput) -> None:
        with self.placing(pages):
            placement = Placement(pages)
            dictionary = self.context.scratch.take("dictionary", placement.dictionary)
            decode_fixed(pages, placement, output, dictionary, self.context.scratch)

    def _decode_dense(self, found: Gathered, taken: int) -> int:
        """Decode rows to where they belong; gives the nulls among them."""
        chunk = self.chunks[0]
        pages = found.at(int(chunk[C_OUT] + taken * chunk[C_ITEM_SIZE]), int(chunk[C_MASK] + taken))
        self._decode_to(pages, self.output)
        return int(pages.chunks[:, C_NULL_COUNT].sum())

    def _take_few(self, found: Gathered, taken: int) -> int:
        """Decode the rows that are wanted alone; gives the nulls among these."""
        chunk, scratch = self.chunks[0], self.context.scratch
        out, row = int(chunk[C_OUT] + taken * chunk[C_ITEM_SIZE]), int(chunk[C_MASK] + taken)
        dictionary = scratch.take("dictionary", 0)
        with self.placing(found.pages):
            take_fixed(found.pages, found.taking.one_by_one(), self.output, out, row, dictionary, scratch)
        return int(found.pages.chunks[:, C_NULL_COUNT].sum())

    def _decode_some(self, found: Gathered, taken: int) -> int:
        """Decode rows, and take those that are wanted; gives the nulls among these."""
        if self._are_few(found) and self.chunks[0, C_TYPE] != BOOLEAN:
            return self._take_few(found, taken)
        chunk, scratch = self.chunks[0], self.context.scratch
        item, keeps_nulls = int(chunk[C_ITEM_SIZE]), bool(chunk[C_NULLS] == NULLS_MASK)
        if chunk[C_MAX_DEFINITION] and chunk[C_NULLS] == NULLS_FILL:
            found.pages.chunks[:, C_NULLS] = NULLS_MASK  # filled as well, and then they can be counted
        values = scratch.take("decoded rows", found.num_decoded * item)
        mask = scratch.take("decoded mask", found.num_decoded)
        self._decode_to(found.pages, FixedOutput(values, mask))
        out, row = int(chunk[C_OUT] + taken * item), int(chunk[C_MASK] + taken)
        count = found.taking.count
        found.taking.take_items(values, item, self.output.out, out)
        if not chunk[C_MAX_DEFINITION] or found.pages.chunks[0, C_NULLS] != NULLS_MASK:
            if keeps_nulls:
                self.output.mask[row : row + count] = 1
            return 0
        if not keeps_nulls:
            row, kept = 0, scratch.take("taken mask", count)
        else:
            kept = self.output.mask
        found.taking.take_items(mask, 1, kept, row)
        return count - int(np.count_nonzero(kept[row : row + count]))


@dataclass
class SelectedBinaryJob(Selected, BinaryJob):
    """Rows of one chunk of BYTE_ARRAY values."""

    def __call__(self) -> None:
        """Decode the rows into pieces."""
        rows = self._at_once()
        piece = None if rows is None else rows.strings(self.utf8)
        if piece is None:
            self._in_steps()
        else:
            self._add(piece)

    def _in_steps(self) -> None:
        dictionary: BinaryPiece | None = None
        for pages in self.windows():
            dictionary = self.binary_dictionary(pages, self.utf8) or dictionary
            for found in self.groups(pages):
                self._take_piece(found, dictionary)
        self._check_count(sum(map(len, self.pieces)))

    def _take_piece(self, found: Gathered, dictionary: BinaryPiece | None) -> None:
        pages = found.pages
        if dictionary is not None and not found.is_dense and all_indices(pages):
            piece = entries_of(DictionaryPiece(self._codes(found, len(dictionary)), dictionary))
        else:
            piece = self._strings(found, dictionary)
        self._add(piece)

    def _add(self, piece: BinaryPiece) -> None:
        self.chunks[0, C_NULL_COUNT] += piece.null_count
        self.pieces.append(piece)

    def _strings(self, found: Gathered, dictionary: BinaryPiece | None) -> BinaryPiece:
        """Decode rows to strings, and take those that are wanted."""
        pages = found.pages
        if self._are_few(found) and not are_indices(pages).any():
            with self.placing(pages):
                hint = self._hint(found.taking.count)
                piece = take_strings(pages, found.taking.one_by_one(), hint, self.context.scratch)
            if not self.utf8 or is_utf8(piece):
                return piece  # else all are decoded, which tells the page
        with self.placing(pages):
            piece = decode_binary(pages, dictionary, self._hint(found.num_decoded), self.context.scratch)
        if self.utf8 and not all_indices(pages):
            self.check_utf8(piece, pages)
        return piece if found.is_dense else strings_of(piece, found.taking)

    def _codes(self, found: Gathered, num_entries: int) -> np.ndarray:
        """Decode rows to codes, and take those that are wanted: of strings that nobody wants nothing is copied."""
        scratch, chunks, count = self.context.scratch, found.pages.chunks, found.taking.count
        chunks[:, [C_CONVERSION, C_ITEM_SIZE, C_NULLS, C_FILL, C_DICTIONARY]] = CODES, 4, NULLS_FILL, -1, 0
        chunks[:, C_OUT] = 4 * chunks[:, C_MASK]
        numbers = scratch.take("dictionary", 4 * num_entries)
        numbers[: 4 * num_entries].view(np.int32)[:] = np.arange(num_entries)
        if self._are_few(found):
            taken = allocate(4 * count + SLACK)
            with self.placing(found.pages):
                take_fixed(found.pages, found.taking.one_by_one(), FixedOutput(taken, NO_MASK), 0, 0, numbers, scratch)
            return taken[: 4 * count].view(np.int32)
        codes = scratch.take("decoded rows", 4 * found.num_decoded)
        with self.placing(found.pages):
            decode_fixed(found.pages, Placement(found.pages), FixedOutput(codes, NO_MASK), numbers, scratch)
        return items_of(codes[: 4 * found.num_decoded].view(np.int32), found.taking)

    def _hint(self, count: int) -> int:
        """Guess how many bytes some rows take, as those wanted do on the average."""
        return self.size_hint * count // max(self._num_wanted, 1) * 17 // 16


@dataclass
class SelectedDictionaryJob(DictionaryJob, SelectedFixedJob):
    """Rows of one chunk whose dictionary indices are wanted as they are."""

    def _at_once(self) -> AtOnce | None:
        return None  # the dictionary is wanted, too

    def _plain(self) -> Job:
        return SelectedBinaryJob(self.context, self.row_group, self.columns, self.chunks, self.share, utf8=self.utf8,
                                 size_hint=self.size_hint, wanted=self.wanted, mask=self.mask,
                                 located=self.located)  # fmt: skip

    def _stored(self, output: FixedOutput) -> Job:
        return SelectedFixedJob(self.context, self.row_group, self.columns, self.chunks, self.share, output=output,
                                wanted=self.wanted, mask=self.mask, located=self.located)  # fmt: skip


@dataclass
class SelectedNestedJob(Selected, NestedJob):
    """Rows of one chunk of a leaf of a nested column; `rows` and `num_rows` are all those that are decoded."""

    _sizes: list[int] = field(default_factory=list, init=False)  # entries of each data page

    @property
    def _is_flat(self) -> bool:  # type: ignore[override]
        return not self.leaf.max_repetition_level

    def _needed(self, pages: Pages) -> Pages:
        table = pages.pages
        self._sizes.extend(table[table[:, P_TYPE] != DICTIONARY_PAGE, P_NUM_VALUES].tolist())
        return pages

    def __call__(self) -> None:
        """Decode the pages into one piece, and take the rows."""
        super().__call__()
        for piece in self.pieces:
            if self.located is not None and piece.repetition is not None:
                self._check_places(piece.repetition[: piece.num_entries] == 0, self.located)
        self.pieces = [rows_of(piece, self.leaf, self.wanted) for piece in self.pieces]

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
            message = "a page has other rows than the offset index says, or begins within one"
            raise self._placed(InvalidFileError(message, page=page), 0)
