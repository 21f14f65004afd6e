"""Definition and repetition levels of a nested leaf: decoded with its values, sliced, taken, concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from numparq.column.buffers import BinaryArray, DictionaryArray
from numparq.column.read.pages import Pages, check_page
from numparq.column.read.row_selection import RowSlice
from numparq.column.read.take import ValueRanges, take_array, take_binary
from numparq.column.scratch import allocate
from numparq.format.schema import Leaf
from numparq.kernels.decode.levels import STATE_FIELDS as LEVEL_FIELDS
from numparq.kernels.decode.levels import STATE_LEVELS, STATE_QUIRKS, STATE_ROWS, STATE_VALUES
from numparq.kernels.kernel_groups import nested_decode_kernels
from numparq.kernels.tables import SLACK
from numparq.plan.row_ranges import RowRanges
from numparq.types.output_type import OutputType

_NO_BYTES = np.empty(0, np.uint8)


class LeafRows(Protocol):
    """Rows of a chunk of a nested leaf as a read decodes them: all (`NestedLeaf`), or only the intact ones.

    Reads of damaged files decode some rows in parts, so whatever handles rows before lost ones are dropped takes this.
    """

    @property
    def row_group(self) -> int:
        """Ordinal of their row group."""

    @property
    def num_rows(self) -> int:
        """Number of rows, lost ones included."""

    @property
    def intact(self) -> RowRanges:
        """Rows that were decoded."""

    @property
    def decoded(self) -> Sequence[NestedLeaf]:
        """Levels and values that were decoded, in order."""

    def take(self, rows: RowRanges, leaf: Leaf, target: OutputType) -> NestedLeaf:
        """Take row ranges, all of them intact."""


@dataclass(slots=True)
class NestedLeaf:
    """Levels and values of a leaf in some rows.

    Attributes
    ----------
    definition, repetition : numpy.ndarray or None
        uint8 levels, one an entry; None if the schema makes them all 0.
    values : numpy.ndarray or list of BinaryArray or DictionaryArray
        Values in order, without null slots, in one array or several.
    row_group : int
        Ordinal of their row group; -1 after concatenation.
    file : str or None
        Name of their file, if is_value are several.
    """

    definition: np.ndarray | None
    repetition: np.ndarray | None
    num_entries: int
    values: Any
    row_group: int
    file: str | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.num_entries if self.repetition is None else int(np.count_nonzero(self.repetition == 0))

    @property
    def intact(self) -> RowRanges:
        """All rows."""
        return RowRanges.all(self.num_rows)

    @property
    def decoded(self) -> Sequence[NestedLeaf]:
        """The leaf itself."""
        return (self,)

    @property
    def num_bytes(self) -> int:
        """Bytes of levels and values that were written to."""
        levels = sum(array.nbytes for array in (self.definition, self.repetition) if array is not None)
        values = self.values
        return levels + (values.nbytes if isinstance(values, np.ndarray) else sum(part.num_bytes for part in values))

    def take(self, rows: RowRanges, leaf: Leaf, target: OutputType) -> NestedLeaf:
        """Take row ranges; all of them are the leaf itself."""
        return self if rows.count == self.num_rows else take_leaf_rows(self, leaf, rows.bounds)


class LevelDecoder:
    """Decodes the levels of a column chunk, page by page, for `room` level entries; `quirks` are its C_QUIRKS."""

    def __init__(self, leaf: Leaf, room: int, quirks: int) -> None:
        self._leaf = leaf
        self._definition = allocate(room + SLACK) if leaf.max_definition_level else _NO_BYTES
        self._repetition = allocate(room + SLACK) if leaf.max_repetition_level else _NO_BYTES
        self._element_levels = np.array(leaf.element_levels, np.int64)
        self._state = np.zeros(LEVEL_FIELDS, np.int64)
        self._state[STATE_QUIRKS] = quirks

    @property
    def num_entries(self) -> int:
        """Level entries decoded so far."""
        return int(self._state[STATE_LEVELS])

    @property
    def num_values(self) -> int:
        """Values (not nulls) among these entries."""
        return int(self._state[STATE_VALUES])

    @property
    def num_rows(self) -> int:
        """Rows that begin in these entries."""
        return int(self._state[STATE_ROWS])

    def decode(self, pages: Pages, first: int, last: int, decompressed: np.ndarray) -> None:
        """Decode the levels of pages `first` to `last` (exclusive).

        Rewrites their rows of the page table to describe dense pages, without levels.
        """
        leaf = self._leaf
        status = nested_decode_kernels.decode_page_levels(
            pages.pages.reshape(-1),
            first,
            last,
            pages.raw,
            decompressed,
            leaf.max_definition_level,
            leaf.max_repetition_level,
            self._element_levels,
            self._definition,
            self._repetition,
            self._state,
        )
        check_page(status, self._state)

    def to_leaf(self, values: Any, rows: RowSlice, num_rows: int) -> NestedLeaf:
        """Return the levels and values of a row slice, copied unless it covers the whole chunk of `num_rows` rows."""
        count = self.num_entries
        definition = self._definition[:count] if len(self._definition) else None
        repetition = self._repetition[:count] if len(self._repetition) else None
        if len(rows) == num_rows:
            return NestedLeaf(definition, repetition, count, values, rows.row_group)
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
        return NestedLeaf(definition, repetition, last - first, _slice_values(values, begin, end), rows.row_group)


def _slice_values(values: Any, begin: int, end: int) -> Any:
    """Return values `begin` to `end` (exclusive) of a chunk's decoded values."""
    if isinstance(values, np.ndarray):
        return values[begin:end].copy()
    results: list[Any] = []
    for piece in values:
        first, last = max(begin, 0), min(end, len(piece))
        if first < last and isinstance(piece, DictionaryArray):
            results.append(DictionaryArray(piece.codes[first:last].copy(), piece.dictionary))
        elif first < last:
            results.append(BinaryArray(piece.offsets[first : last + 1], piece.data))
        begin, end = begin - len(piece), end - len(piece)
    return results


def concat_leaves(pieces: Sequence[NestedLeaf], leaf: Leaf, target: OutputType) -> NestedLeaf:
    """Concatenate the levels and values of a leaf over row groups; empty if `pieces` is empty."""
    if len(pieces) == 1:
        return pieces[0]
    values: Any
    if target.storage == "binary":
        values = [part for piece in pieces for part in piece.values]
    else:
        nothing = np.empty(0, object if target.dtype is None else target.dtype)
        values = np.concatenate([nothing, *(piece.values for piece in pieces)])
    return NestedLeaf(
        _concat_levels([piece.definition for piece in pieces], leaf.max_definition_level),
        _concat_levels([piece.repetition for piece in pieces], leaf.max_repetition_level),
        sum(piece.num_entries for piece in pieces),
        values,
        -1,
    )


def _concat_levels(parts: list[Any], most: int) -> np.ndarray | None:
    return np.concatenate([np.empty(0, np.uint8), *parts]) if most else None


def take_leaf_rows(piece: NestedLeaf, leaf: Leaf, rows: np.ndarray) -> NestedLeaf:
    """Take row ranges, int64 of shape (ranges, 2) with exclusive ends, counted from the first row of `piece`."""
    entries = rows
    if piece.repetition is not None:
        starts = np.append(np.flatnonzero(piece.repetition == 0), piece.num_entries)
        entries = starts[rows]
    values = entries
    if piece.definition is not None:
        is_value = piece.definition[: piece.num_entries] == leaf.max_definition_level
        values = np.concatenate([[0], np.cumsum(is_value)])[entries]
    count = int((entries[:, 1] - entries[:, 0]).sum())
    taking = ValueRanges.from_ranges(entries)
    definition = None if piece.definition is None else take_array(piece.definition, taking)
    repetition = None if piece.repetition is None else take_array(piece.repetition, taking)
    return NestedLeaf(definition, repetition, count, _take_values(piece.values, values), piece.row_group, piece.file)


def _take_values(values: Any, ranges: np.ndarray) -> Any:
    """Take ranges of the values of a leaf, held in one array or several."""
    if isinstance(values, np.ndarray):
        return take_array(values, ValueRanges.from_ranges(ranges))
    results: list[Any] = []
    first = 0
    for piece in values:
        within = np.clip(ranges, first, first + len(piece)) - first
        taking = ValueRanges.from_ranges(within[within[:, 0] < within[:, 1]])
        if isinstance(piece, DictionaryArray):
            results.append(DictionaryArray(take_array(piece.codes, taking), piece.dictionary))
        else:
            results.append(take_binary(piece, taking))
        first += len(piece)
    return [piece for piece in results if len(piece)]
