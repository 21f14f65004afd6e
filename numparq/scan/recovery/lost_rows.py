"""Placeholders for lost rows in decoded columns, and the rows that are kept; lost rows take no memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf, concat_leaves, take_leaf_rows
from numparq.column.read.take import ValueRanges, take_array, take_binary
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import BlockLayout, allocate_array
from numparq.types.output_type import OutputType

_NO_ROWS = np.empty(0, np.uint8)


@dataclass(frozen=True)
class LostPiece:
    """Stands for lost rows among the pieces of a flat column."""

    num_rows: int

    def __len__(self) -> int:
        return self.num_rows


@dataclass(frozen=True)
class PartialLeaf:
    """Intact rows of a chunk of a nested leaf: first row, end (exclusive) and levels and values of each part.

    Rows count from the first row read; a part may have further rows, before or after the rows read.
    """

    parts: Sequence[tuple[int, int, NestedLeaf]]
    num_rows: int
    row_group: int

    @property
    def intact(self) -> RowRanges:
        """Rows that were decoded."""
        parts = RowRanges([(max(start, 0), max(stop, 0)) for start, stop, _ in self.parts])
        return parts.clip(0, self.num_rows)

    def take(self, rows: RowRanges, leaf: Leaf, target: OutputType) -> NestedLeaf:
        """Take row ranges, all of them intact."""
        taken = [
            take_leaf_rows(part, leaf, wanted.bounds - start)
            for start, stop, part in self.parts
            if (wanted := rows.clip(start, stop))
        ]
        return replace(concat_leaves(taken, leaf, target), row_group=self.row_group)


def slice_piece(piece: Any, first: int, stop: int) -> Any:
    """Return some rows of a piece, which share its memory."""
    if isinstance(piece, DictionaryArray):
        return DictionaryArray(piece.codes[first:stop], piece.dictionary)
    validity = None if piece.validity is None else piece.validity[first:stop]
    return BinaryArray(piece.offsets[first : stop + 1], piece.data, validity)


def _take_pieces(pieces: Sequence[Any], kept: RowRanges, leaf: Leaf, target: OutputType) -> list[Any]:
    """Return the rows `kept` of the pieces of a column, which follow each other."""
    found: list[Any] = []
    first = 0
    for piece in pieces:
        stop = first + _num_rows(piece)
        rows = kept.clip(first, stop).shift(-first)
        whole = rows.count == stop - first
        if isinstance(piece, PartialLeaf):
            found.append(piece.take(rows, leaf, target))
        elif isinstance(piece, NestedLeaf):
            found.append(piece if whole else take_leaf_rows(piece, leaf, rows.bounds))
        elif isinstance(piece, DictionaryArray):  # kept even without rows: its dictionary has the categories
            codes = piece.codes if whole else take_array(piece.codes, ValueRanges.from_ranges(rows.bounds))
            found.append(DictionaryArray(codes, piece.dictionary))
        elif rows:
            found.append(piece if whole else take_binary(piece, ValueRanges.from_ranges(rows.bounds)))
        first = stop
    return found


def take_intact(column: DecodedColumn, kept: RowRanges, leaf: Leaf, target: OutputType) -> DecodedColumn:
    """Return the rows `kept` of a column that has no block."""
    values, validity = (
        None if array is None else _copy_rows(array, kept, allocate_array((kept.count,), array.dtype))
        for array in (column.values, column.validity)
    )
    pieces = _take_pieces(column.arrays, kept, leaf, target)
    return replace(column, values=values, validity=validity, arrays=pieces)


def intact_parts(
    pieces: Sequence[NestedLeaf | PartialLeaf], leaves: Sequence[Leaf], targets: Sequence[OutputType]
) -> tuple[list[tuple[int, int, list[NestedLeaf]]], int]:
    """Return first row, end (exclusive) and leaves of each run of rows that is intact in all leaves; and all rows."""
    num_rows = _num_rows(pieces[0])
    intact = RowRanges.all(num_rows)
    for piece in pieces:
        if isinstance(piece, PartialLeaf):
            intact -= RowRanges.all(num_rows) - piece.intact
    parts = []
    for start, stop in intact:
        rows = RowRanges([(start, stop)])
        some = [
            piece.take(rows, leaf, target)
            if isinstance(piece, PartialLeaf)
            else take_leaf_rows(piece, leaf, rows.bounds)
            for piece, leaf, target in zip(pieces, leaves, targets, strict=True)
        ]
        parts.append((start, stop, some))
    return parts, num_rows


def _num_rows(piece: Any) -> int:
    if isinstance(piece, PartialLeaf):
        return piece.num_rows
    return piece.num_rows if isinstance(piece, NestedLeaf) else len(piece)


def drop_lost_rows(
    layout: BlockLayout,
    buffers: Sequence[DecodedColumn],
    leaves: Sequence[Leaf],
    kept: RowRanges,
    dropped: Collection[int],
) -> tuple[BlockLayout, list[DecodedColumn]]:
    """Copy the rows `kept` of all leaves but those at the positions `dropped`, which become empty.

    Whether a column had nulls stays as it was, so that its dtype does.
    """
    small = BlockLayout(list(layout.targets), kept.count)
    small.block_of, small.row_of = list(layout.block_of), list(layout.row_of)
    left = set(range(len(leaves))).difference(dropped)
    for number, block in enumerate(layout.blocks):
        is_used = any(small.block_of[position] == number for position in left)
        small.blocks.append(allocate_array((len(block), kept.count if is_used else 0), block.dtype))
    found = []
    for position, (buffer, leaf) in enumerate(zip(buffers, leaves, strict=True)):
        if position in dropped:
            found.append(DecodedColumn(_NO_ROWS))
            continue
        of, row = small.block_of[position], small.row_of[position]
        in_block = None
        if of is not None and row is not None:
            in_block = _copy_rows(layout.blocks[of][row], kept, small.blocks[of][row])
            buffer = replace(buffer, values=None)
        taken = take_intact(buffer, kept, leaf, layout.targets[position])
        if in_block is not None:
            taken.values = in_block
        small.values[position], small.validity[position] = taken.values, taken.validity
        found.append(taken)
    return small, found


def _copy_rows(values: np.ndarray, kept: RowRanges, out: np.ndarray) -> np.ndarray:
    """Copy row ranges of a column to `out`, and return it."""
    position = 0
    for start, stop in kept:
        out[position : position + stop - start] = values[start:stop]
        position += stop - start
    return out
