"""Placeholders for lost rows in decoded columns, and their removal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.jobs.nested import NestedJob
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.format.schema import Leaf
from numparq.kernels.tables import SLACK
from numparq.to_pandas.frame import BlockLayout, allocate_array
from numparq.types.output_type import OutputType

from .bisect import IntactPages

__all__ = [
    "drop_lost_rows",
    "nested_piece_with_placeholders",
    "placeholder_rows",
    "slice_piece",
    "take_nested",
    "take_pieces",
]


def placeholder_rows(count: int) -> BinaryArray:
    """Make a piece for rows that are lost; they are taken out before anybody looks at them."""
    return BinaryArray(np.zeros(count + 1, np.int64), np.zeros(SLACK, np.uint8))


def slice_piece(piece: Any, first: int, stop: int) -> Any:
    """Give some rows of a piece, which share its memory."""
    if isinstance(piece, DictionaryArray):
        return DictionaryArray(piece.codes[first:stop], piece.dictionary)
    validity = None if piece.validity is None else piece.validity[first:stop]
    return BinaryArray(piece.offsets[first : stop + 1], piece.data, validity)


def nested_piece_with_placeholders(job: NestedJob, decoded: IntactPages, first: int, stop: int) -> NestedLeaf:
    """Give the rows wanted of a chunk of a nested leaf: those decoded, and an entry for each of those lost.

    Parameters
    ----------
    job : NestedJob
        The chunk's.
    decoded : IntactPages
        What is left of it.
    first, stop : int
        The rows wanted, counted within the row group.
    """
    parts, position = [], 0
    for begin, end, done in [*decoded.jobs, (job.num_rows, job.num_rows, None)]:
        if begin > position:
            parts.append(_placeholder_entries(job.leaf, job.target, begin - position))
        if done is not None:
            piece = done.arrays[0]
            rows = np.arange(_num_rows(piece)) < end - begin  # the last row may be lost, because it is cut off
            parts.append(_take_nested_piece(piece, rows, job.leaf))
        position = end
    whole = concat_leaves(parts, job.leaf, job.target) if len(parts) != 1 else parts[0]
    wanted = np.zeros(job.num_rows, np.bool_)
    wanted[first:stop] = True
    piece = _take_nested_piece(whole, wanted, job.leaf)
    piece.row_group = job.row_group
    return piece


def _placeholder_entries(leaf: Leaf, target: OutputType, count: int) -> NestedLeaf:
    """Make a piece of as many rows that are null, or empty where the schema has no null."""
    values: Any = [placeholder_rows(0 if leaf.max_definition_level else count)]
    if target.storage != "binary":
        dtype = np.dtype(object) if target.dtype is None else target.dtype
        values = np.zeros(0 if leaf.max_definition_level else count, dtype)
    return NestedLeaf(
        np.zeros(count, np.uint8) if leaf.max_definition_level else None,
        np.zeros(count, np.uint8) if leaf.max_repetition_level else None,
        count,
        values,
        -1,
    )


def _num_rows(piece: NestedLeaf) -> int:
    if piece.repetition is None:
        return piece.num_entries
    return int(np.count_nonzero(piece.repetition == 0))


def _take_nested_piece(piece: NestedLeaf, rows: np.ndarray, leaf: Leaf) -> NestedLeaf:
    """Give some rows of a piece; `rows` tells of each whether it is kept."""
    if rows.all():
        return piece
    entries = rows if piece.repetition is None else rows[np.cumsum(piece.repetition == 0) - 1]
    there = entries if piece.definition is None else entries[piece.definition == leaf.max_definition_level]
    values = piece.values[there] if isinstance(piece.values, np.ndarray) else take_pieces(piece.values, there)
    return NestedLeaf(
        None if piece.definition is None else piece.definition[entries],
        None if piece.repetition is None else piece.repetition[entries],
        int(np.count_nonzero(entries)),
        values,
        piece.row_group,
    )


def take_nested(pieces: Sequence[NestedLeaf], intact: np.ndarray, leaf: Leaf) -> list[NestedLeaf]:
    """Give the pieces of a nested leaf without the rows that are not kept.

    Parameters
    ----------
    pieces : sequence of NestedLeaf
        All its rows, in order.
    intact : bool array
        One item a row.
    leaf : Leaf
        The leaf.
    """
    found, first = [], 0
    for piece in pieces:
        stop = first + _num_rows(piece)
        found.append(_take_nested_piece(piece, intact[first:stop], leaf))
        first = stop
    return found


def take_pieces(pieces: Sequence[Any], intact: np.ndarray) -> list[Any]:
    """Give pieces without the values that are not kept, of which `kept` tells one by one.

    A piece of codes stays even if none of them does: its dictionary says what categories there are.
    """
    found: list[Any] = []
    first = 0
    for piece in pieces:
        wanted = intact[first : first + len(piece)]
        first += len(piece)
        if wanted.all():
            if len(piece) or isinstance(piece, DictionaryArray):
                found.append(piece)
        elif isinstance(piece, DictionaryArray):
            found.append(DictionaryArray(piece.codes[wanted], piece.dictionary))
        elif wanted.any():
            found.append(_take_binary(piece, wanted))
    return found


def _take_binary(piece: BinaryArray, intact: np.ndarray) -> BinaryArray:
    edges = np.flatnonzero(np.diff(intact, prepend=False, append=False)).reshape(-1, 2).tolist()
    offsets = np.zeros(int(np.count_nonzero(intact)) + 1, np.int64)
    np.cumsum(np.diff(piece.offsets)[intact], out=offsets[1:])
    runs = [piece.data[piece.offsets[start] : piece.offsets[stop]] for start, stop in edges]
    return BinaryArray(
        offsets,
        np.concatenate([*runs, np.zeros(SLACK, np.uint8)]),
        None if piece.validity is None else piece.validity[intact],
    )


def drop_lost_rows(
    layout: BlockLayout, buffers: Sequence[DecodedColumn], leaves: Sequence[Leaf], intact: np.ndarray
) -> tuple[BlockLayout, list[DecodedColumn]]:
    """Copy the rows that are kept of all columns.

    Parameters
    ----------
    layout : BlockLayout
        The memory that the columns were decoded to.
    buffers : sequence of DecodedColumn
        What each was decoded to.
    leaves : sequence of Leaf
        The columns.
    intact : bool array
        One item a row.

    Returns
    -------
    BlockLayout, list of DecodedColumn
        Of so many rows as are kept. Whether a column had nulls stays as it was, so that its dtype does.
    """
    small = BlockLayout(list(layout.targets), int(np.count_nonzero(intact)))
    small.blocks = [_take_block(block, intact) for block in layout.blocks]
    small.block_of, small.row_of = list(layout.block_of), list(layout.row_of)
    found = []
    for position, (buffer, leaf) in enumerate(zip(buffers, leaves, strict=True)):
        block, row = small.block_of[position], small.row_of[position]
        values = buffer.values
        if block is not None and row is not None:
            values = small.blocks[block][row]
        elif values is not None:
            values = _take_block(values[None], intact)[0]
        validity = None if buffer.validity is None else _take_block(buffer.validity[None], intact)[0]
        small.values[position], small.validity[position] = values, validity
        nested = layout.targets[position].nested
        pieces = take_nested(buffer.arrays, intact, leaf) if nested else take_pieces(buffer.arrays, intact)
        found.append(replace(buffer, values=values, validity=validity, arrays=pieces))
    return small, found


def _take_block(block: np.ndarray, intact: np.ndarray) -> np.ndarray:
    """Copy the items kept of each row of a block, with room behind them."""
    out = allocate_array((len(block), int(np.count_nonzero(intact))), block.dtype)
    np.compress(intact, block, axis=1, out=out)
    return out
