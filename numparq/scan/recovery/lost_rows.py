"""Placeholders for lost rows in decoded columns, and the rows that are kept; lost rows take no memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import LeafRows, NestedLeaf, concat_leaves, take_leaf_rows
from numparq.column.read.take import ValueRanges, take_array, take_binary
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import BlockLayout, allocate_array
from numparq.types.output_type import OutputType

_FEW_RANGES = 64
_NO_ROWS = np.empty(0, np.uint8)


@dataclass(frozen=True)
class LostPiece:
    """Stands for lost rows among the pieces of a flat column."""

    num_rows: int

    def __len__(self) -> int:
        return self.num_rows


@dataclass(frozen=True)
class PartialLeaf:
    """Intact rows of a chunk of a nested leaf (`LeafRows`): first row, end (exclusive) and levels of each part."""

    parts: Sequence[tuple[int, int, NestedLeaf]]
    num_rows: int
    row_group: int

    @property
    def intact(self) -> RowRanges:
        """Rows that were decoded."""
        return RowRanges([(start, stop) for start, stop, _ in self.parts])

    @property
    def decoded(self) -> Sequence[NestedLeaf]:
        """The parts."""
        return [part for _, _, part in self.parts]

    def take(self, rows: RowRanges, leaf: Leaf, target: OutputType) -> NestedLeaf:
        """Take row ranges, all of them intact."""
        taken = [
            take_leaf_rows(part, leaf, wanted.bounds - start)
            for start, stop, part in self.parts
            if (wanted := rows.clip(start, stop))
        ]
        file = taken[0].file if taken else None
        return replace(concat_leaves(taken, leaf, target), row_group=self.row_group, file=file)


FlatPiece = BinaryArray | DictionaryArray | LostPiece


def slice_piece(piece: BinaryArray | DictionaryArray, first: int, stop: int) -> FlatPiece:
    """Return some rows of a piece, which share its memory."""
    if isinstance(piece, DictionaryArray):
        return DictionaryArray(piece.codes[first:stop], piece.dictionary)
    validity = None if piece.validity is None else piece.validity[first:stop]
    return BinaryArray(piece.offsets[first : stop + 1], piece.data, validity)


def _take_leaves(pieces: Sequence[LeafRows], kept: RowRanges, leaf: Leaf, target: OutputType) -> list[NestedLeaf]:
    """Return the rows `kept` of the pieces of a nested leaf, which follow each other."""
    edges = [0, *accumulate(piece.num_rows for piece in pieces)]
    return [
        piece.take(kept.clip(first, stop).shift(-first), leaf, target)
        for piece, (first, stop) in zip(pieces, pairwise(edges), strict=True)
    ]


def _take_pieces(pieces: Sequence[FlatPiece], kept: RowRanges) -> list[FlatPiece]:
    """Return the rows `kept` of the pieces of a flat column, which follow each other; no lost row is kept."""
    edges = [0, *accumulate(map(len, pieces))]
    found: list[FlatPiece] = []
    for piece, (first, stop) in zip(pieces, pairwise(edges), strict=True):
        rows = kept.clip(first, stop).shift(-first)
        taking = ValueRanges.from_ranges(rows.bounds)
        if isinstance(piece, DictionaryArray):  # kept even without rows: its dictionary has the categories
            codes = piece.codes if rows.count == len(piece) else take_array(piece.codes, taking)
            found.append(DictionaryArray(codes, piece.dictionary))
        elif isinstance(piece, BinaryArray) and rows:
            found.append(piece if rows.count == len(piece) else take_binary(piece, taking))
    return found


def take_intact(column: DecodedColumn, kept: RowRanges, leaf: Leaf, target: OutputType) -> DecodedColumn:
    """Return the rows `kept` of a column that has no block."""
    values, validity = (
        None if array is None else _copy_rows(array, kept, allocate_array((kept.count,), array.dtype))
        for array in (column.values, column.validity)
    )
    pieces = _take_leaves(column.arrays, kept, leaf, target) if leaf.is_nested else _take_pieces(column.arrays, kept)
    return replace(column, values=values, validity=validity, arrays=pieces)


def intact_parts(
    pieces: Sequence[LeafRows], leaves: Sequence[Leaf], targets: Sequence[OutputType]
) -> tuple[list[tuple[int, int, list[NestedLeaf]]], int]:
    """Return first row, end (exclusive) and leaves of each run of rows that is intact in all leaves; and all rows."""
    num_rows = pieces[0].num_rows
    intact = RowRanges.all(num_rows)
    for piece in pieces:
        intact &= piece.intact
    parts = []
    for start, stop in intact:
        rows = RowRanges([(start, stop)])
        some = [piece.take(rows, leaf, target) for piece, leaf, target in zip(pieces, leaves, targets, strict=True)]
        parts.append((start, stop, some))
    return parts, num_rows


def keep_rows(
    layout: BlockLayout,
    buffers: Sequence[DecodedColumn],
    leaves: Sequence[Leaf],
    kept: RowRanges,
    dropped: Collection[int] = (),
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
    if len(kept) < _FEW_RANGES:
        position = 0
        for start, stop in kept:
            out[position : position + stop - start] = values[start:stop]
            position += stop - start
    else:
        out[:] = take_array(values, ValueRanges.from_ranges(kept.bounds))
    return out
