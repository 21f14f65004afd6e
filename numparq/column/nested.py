"""Column chunks of leaves of nested columns: their levels, one byte an entry, and their values, dense."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InvalidFileError
from ..kernels import kernels, nested_kernels
from ..kernels.fixed import STATE_FIELDS
from ..kernels.nested import STATE_ENTRIES, STATE_ROWS, STATE_VALUES
from ..kernels.nested import STATE_FIELDS as LEVEL_FIELDS
from ..kernels.tables import (
    C_CONVERSION,
    C_DICTIONARY,
    C_ITEM_SIZE,
    C_MASK,
    C_MAX_DEFINITION,
    C_NULLS,
    C_NUM_VALUES,
    C_OUT,
    C_ROW_START,
    C_ROW_STOP,
    CODES,
    DICTIONARY_PAGE,
    NULLS_REFUSE,
    P_NUM_VALUES,
    P_TYPE,
    SLACK,
)
from ..schema import Leaf
from ..targets import Target
from .binary import NO_DICTIONARY, all_indices, decode_part
from .buffer import BinaryPiece, DictionaryPiece
from .chunks import RowSlice
from .job import RETARGET, Job
from .pages import PageFailure, Pages, Placement, check_page, decompress
from .plain import Readable, readable
from .scratch import Scratch, allocate

_NO_BYTES = np.empty(0, np.uint8)
_CODE = np.dtype(np.int32)
# Codes are kept where there are so many times as many entries of the chunk as of its dictionary.
_SMALLER = 2


@dataclass(slots=True)
class NestedPiece:
    """Levels and values of a leaf in some rows.

    Parameters
    ----------
    definition, repetition : uint8, or None
        The levels, entry by entry; None where they are all 0 by the schema.
    num_entries : int
        How many there are.
    values : numpy.ndarray or list of BinaryPiece or DictionaryPiece
        The values that are there, in order, in one array or in pieces.
    row_group : int
        The ordinal of the row group that they are of.
    """

    definition: np.ndarray | None
    repetition: np.ndarray | None
    num_entries: int
    values: Any
    row_group: int


@dataclass
class NestedJob(Job):
    """One chunk of a leaf of a nested column.

    Parameters
    ----------
    leaf : Leaf
        The leaf.
    target : Target
        How its values are decoded.
    rows : RowSlice
        The rows wanted.
    num_rows : int
        Rows of the row group.
    """

    leaf: Leaf = field(kw_only=True)
    target: Target = field(kw_only=True)
    rows: RowSlice = field(kw_only=True)
    num_rows: int = field(kw_only=True)

    def __call__(self) -> None:
        """Decode the chunk into one piece."""
        room = int(self.chunks[0, C_NUM_VALUES])
        levels = Levels(self.leaf, room)
        dense = self._dense_chunk()
        values: _FixedValues | _BinaryValues | _NoValues
        if self.target.storage == "null":
            values = _NoValues()
        elif self.target.dtype is not None:
            values = _FixedValues(self.target.dtype, room)
        else:
            values = _BinaryValues(self)
        for window in self.windows():
            pages = Pages(window.raw, dense, window.pages)
            try:
                values.decode(pages, levels, self.context.scratch)
            except PageFailure as failure:
                if failure.status in RETARGET and self.target.on_inexact is not None:
                    self.failed[self.columns[0]] = failure.status
                    return
                error = failure.error
                raise self._placed(error, pages.locate(error, failure.page)) from None
        self._check_rows(levels.rows)
        self.pieces.append(levels.piece(values.finished(levels.num_values), self.rows, self.num_rows))

    def _check_rows(self, rows: int) -> None:
        """Refuse levels of another number of rows than the row group has."""
        if rows != self.num_rows:
            message = f"the levels are those of {rows} rows, where the row group has {self.num_rows}"
            raise self._placed(InvalidFileError(message), 0)

    def _dense_chunk(self) -> np.ndarray:
        """Make the chunk table of what the pages are once their levels are taken away: values without nulls."""
        chunks = self.chunks.copy()
        chunks[0, [C_MAX_DEFINITION, C_ROW_START, C_OUT, C_MASK]] = 0
        chunks[0, C_ROW_STOP] = chunks[0, C_NUM_VALUES]
        chunks[0, C_NULLS] = NULLS_REFUSE
        return chunks


class Levels:
    """The levels of a chunk, as its pages come in."""

    def __init__(self, leaf: Leaf, room: int) -> None:
        self._leaf = leaf
        self._definition = allocate(room + SLACK) if leaf.max_definition_level else _NO_BYTES
        self._repetition = allocate(room + SLACK) if leaf.max_repetition_level else _NO_BYTES
        self._element_levels = np.array(leaf.element_levels, np.int64)
        self._state = np.zeros(LEVEL_FIELDS, np.int64)

    @property
    def num_entries(self) -> int:
        """How many there are."""
        return int(self._state[STATE_ENTRIES])

    @property
    def num_values(self) -> int:
        """How many values are there."""
        return int(self._state[STATE_VALUES])

    @property
    def rows(self) -> int:
        """How many rows begin in them."""
        return int(self._state[STATE_ROWS])

    def take(self, pages: Pages, first: int, last: int, decompressed: np.ndarray) -> None:
        """Decode the levels of some pages, whose rows of the page table then are those of dense pages."""
        leaf = self._leaf
        status = nested_kernels.take_levels(
            pages.pages.reshape(-1), first, last, pages.raw, decompressed, leaf.max_definition_level,
            leaf.max_repetition_level, self._element_levels, self._definition, self._repetition, self._state,
        )  # fmt: skip
        check_page(status, self._state)

    def piece(self, values: Any, rows: RowSlice, num_rows: int) -> NestedPiece:
        """Give the levels and values of the rows wanted."""
        count = self.num_entries
        definition = self._definition[:count] if len(self._definition) else None
        repetition = self._repetition[:count] if len(self._repetition) else None
        if len(rows) == num_rows:
            return NestedPiece(definition, repetition, count, values, rows.row_group)
        first, last = rows.start, rows.stop
        if repetition is not None:
            starts = np.append(np.flatnonzero(repetition == 0), count)
            first, last = int(starts[first]), int(starts[last])
            repetition = repetition[first:last].copy()
        begin, end = first, last
        if definition is not None:
            most = self._leaf.max_definition_level
            begin = int(np.count_nonzero(definition[:first] == most))
            end = begin + int(np.count_nonzero(definition[first:last] == most))
            definition = definition[first:last].copy()
        return NestedPiece(definition, repetition, last - first, _sliced(values, begin, end), rows.row_group)


def _sliced(values: Any, begin: int, end: int) -> Any:
    """Give some of the values that a chunk was decoded into."""
    if isinstance(values, np.ndarray):
        return values[begin:end].copy()
    found: list[Any] = []
    for piece in values:
        first, last = max(begin, 0), min(end, len(piece))
        if first < last and isinstance(piece, DictionaryPiece):
            found.append(DictionaryPiece(piece.codes[first:last].copy(), piece.dictionary))
        elif first < last:
            found.append(BinaryPiece(piece.offsets[first : last + 1], piece.data))
        begin, end = begin - len(piece), end - len(piece)
    return found


def _dense_parts(pages: Pages, levels: Levels, placement: Placement, scratch: Scratch) -> Iterator[Readable]:
    """Decompress pages, take their levels away, and give them in encodings that the decoders read."""
    decompressed = scratch.take("decompressed", placement.decompressed)
    for batch in placement.batches:
        decompress(pages, batch, decompressed)
        levels.take(pages, batch[0], batch[1], decompressed)
        yield from readable(pages, batch, decompressed, scratch)


class _NoValues:
    """Of a leaf that is always null: only the levels count."""

    def decode(self, pages: Pages, levels: Levels, scratch: Scratch) -> None:
        for _ in _dense_parts(pages, levels, Placement(pages), scratch):
            pass

    def finished(self, count: int) -> np.ndarray:
        return np.full(count, None, object)


class _FixedValues:
    """Values of a fixed size, as the pages of a chunk come in."""

    def __init__(self, dtype: np.dtype, room: int) -> None:
        self._dtype = dtype
        self._out = allocate(room * dtype.itemsize + SLACK)

    def decode(self, pages: Pages, levels: Levels, scratch: Scratch) -> None:
        placement = Placement(pages)
        dictionary = scratch.take("dictionary", placement.dictionary)
        _decode_fixed(pages, levels, placement, dictionary, self._out, scratch)

    def finished(self, count: int) -> np.ndarray:
        return self._out[: count * self._dtype.itemsize].view(self._dtype)


def _decode_fixed(
    pages: Pages, levels: Levels, placement: Placement, dictionary: np.ndarray, out: np.ndarray, scratch: Scratch
) -> None:
    dense = scratch.take("dense", placement.values * placement.item)
    unused = scratch.take("levels", 0)
    state = np.zeros(STATE_FIELDS, np.int64)
    for part in _dense_parts(pages, levels, placement, scratch):
        status = kernels.decode_fixed_pages(
            pages.chunks.reshape(-1), part.table.reshape(-1), part.first, part.last, pages.raw, part.decompressed,
            dictionary, dense, unused, _NO_BYTES, out, state,
        )  # fmt: skip
        check_page(status, state)


class _BinaryValues:
    """BYTE_ARRAY values: a piece for each window of pages, of codes where all of them are dictionary indices."""

    def __init__(self, job: NestedJob) -> None:
        self._job = job
        self._dictionary: BinaryPiece | None = None
        self._pieces: list[BinaryPiece | DictionaryPiece] = []

    def decode(self, pages: Pages, levels: Levels, scratch: Scratch) -> None:
        utf8 = self._job.target.utf8
        self._dictionary = self._job.binary_dictionary(pages, utf8) or self._dictionary
        first = int(pages.pages[0, P_TYPE] == DICTIONARY_PAGE)
        try:
            self._data_pages(Pages(pages.raw, pages.chunks, pages.pages[first:]), levels, scratch)
        except PageFailure as failure:
            failure.page += first
            raise

    def _data_pages(self, pages: Pages, levels: Levels, scratch: Scratch) -> None:
        if not len(pages.pages):
            return
        only_indices = all_indices(pages)
        pages.chunks[0, C_ROW_START] = levels.num_values
        most = int(pages.pages[:, P_NUM_VALUES].sum())
        dictionary = self._dictionary
        if self._job.target.coded and only_indices and dictionary and _SMALLER * len(dictionary) <= most:
            self._pieces.append(self._codes(pages, levels, dictionary, most, scratch))
            return
        piece = self._decoded(pages, levels, most, scratch)
        self._pieces.append(piece)
        if self._job.target.utf8 and not only_indices:
            self._job.check_utf8(piece, pages)

    def _codes(
        self, pages: Pages, levels: Levels, dictionary: BinaryPiece, most: int, scratch: Scratch
    ) -> DictionaryPiece:
        """Keep the indices of pages, up to `most`, as they are: values of a dictionary of 0, 1, 2 and so on."""
        chunks = pages.chunks.copy()
        chunks[0, [C_CONVERSION, C_ITEM_SIZE, C_DICTIONARY]] = CODES, _CODE.itemsize, 0
        pages = Pages(pages.raw, chunks, pages.pages)
        before = levels.num_values
        out = allocate(most * _CODE.itemsize + SLACK)
        ordinals = np.arange(len(dictionary) + SLACK, dtype=_CODE).view(np.uint8)
        _decode_fixed(pages, levels, Placement(pages), ordinals, out, scratch)
        codes = out[: (levels.num_values - before) * _CODE.itemsize].view(_CODE)
        return DictionaryPiece(codes, dictionary)

    def _decoded(self, pages: Pages, levels: Levels, most: int, scratch: Scratch) -> BinaryPiece:
        placement = Placement(pages)
        before = levels.num_values
        entries = self._dictionary or NO_DICTIONARY
        offsets = allocate(most + 1, "i8")
        offsets[0] = 0
        indices, unused = scratch.take("indices", 4 * placement.values), scratch.take("levels", placement.values)
        validity = scratch.take("validity", most)
        state = np.zeros(STATE_FIELDS, np.int64)
        out = allocate(len(pages.raw) + SLACK)
        for part in _dense_parts(pages, levels, placement, scratch):
            out = decode_part(pages, part, entries, indices, unused, validity, offsets, out, state)
        return BinaryPiece(offsets[: levels.num_values - before + 1], out)

    def finished(self, count: int) -> list[BinaryPiece | DictionaryPiece]:
        return self._pieces


__all__ = ["Levels", "NestedJob", "NestedPiece"]
