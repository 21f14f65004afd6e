"""Pieces of decoded chunks: with something in place of rows that are lost, and then without those rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..column.buffer import BinaryPiece, DictionaryPiece
from ..column.nested import NestedJob, NestedPiece
from ..column.nested_arrays import joined
from ..kernels.tables import SLACK
from ..schema import Leaf
from ..targets import Target
from .attempts import Decoded

__all__ = ["kept_nested", "kept_pieces", "nested_piece", "rows_of", "unknown_rows"]


def unknown_rows(count: int) -> BinaryPiece:
    """Make a piece for rows that are lost; they are taken out before anybody looks at them."""
    return BinaryPiece(np.zeros(count + 1, np.int64), np.zeros(SLACK, np.uint8))


def rows_of(piece: Any, first: int, stop: int) -> Any:
    """Give some rows of a piece, which share its memory."""
    if isinstance(piece, DictionaryPiece):
        return DictionaryPiece(piece.codes[first:stop], piece.dictionary)
    validity = None if piece.validity is None else piece.validity[first:stop]
    return BinaryPiece(piece.offsets[first : stop + 1], piece.data, validity)


def nested_piece(job: NestedJob, decoded: Decoded, first: int, stop: int) -> NestedPiece:
    """Give the rows wanted of a chunk of a nested leaf: those decoded, and an entry for each of those lost.

    Parameters
    ----------
    job : NestedJob
        The chunk's.
    decoded : Decoded
        What is left of it.
    first, stop : int
        The rows wanted, counted within the row group.
    """
    parts, position = [], 0
    for begin, end, done in [*decoded.jobs, (job.num_rows, job.num_rows, None)]:
        if begin > position:
            parts.append(_unknown_entries(job.leaf, job.target, begin - position))
        if done is not None:
            piece = done.pieces[0]
            rows = np.arange(_num_rows(piece)) < end - begin  # the last row may be lost, because it is cut off
            parts.append(_kept(piece, rows, job.leaf))
        position = end
    whole = joined(parts, job.leaf, job.target) if len(parts) != 1 else parts[0]
    wanted = np.zeros(job.num_rows, np.bool_)
    wanted[first:stop] = True
    piece = _kept(whole, wanted, job.leaf)
    piece.row_group = job.row_group
    return piece


def _unknown_entries(leaf: Leaf, target: Target, count: int) -> NestedPiece:
    """Make a piece of as many rows that are null, or empty where the schema has no null."""
    values: Any = [unknown_rows(0 if leaf.max_definition_level else count)]
    if target.storage != "binary":
        dtype = np.dtype(object) if target.dtype is None else target.dtype
        values = np.zeros(0 if leaf.max_definition_level else count, dtype)
    return NestedPiece(
        np.zeros(count, np.uint8) if leaf.max_definition_level else None,
        np.zeros(count, np.uint8) if leaf.max_repetition_level else None,
        count, values, -1,
    )  # fmt: skip


def _num_rows(piece: NestedPiece) -> int:
    if piece.repetition is None:
        return piece.num_entries
    return int(np.count_nonzero(piece.repetition == 0))


def _kept(piece: NestedPiece, rows: np.ndarray, leaf: Leaf) -> NestedPiece:
    """Give some rows of a piece; `rows` tells of each whether it is kept."""
    if rows.all():
        return piece
    entries = rows if piece.repetition is None else rows[np.cumsum(piece.repetition == 0) - 1]
    there = entries if piece.definition is None else entries[piece.definition == leaf.max_definition_level]
    values = piece.values[there] if isinstance(piece.values, np.ndarray) else kept_pieces(piece.values, there)
    return NestedPiece(
        None if piece.definition is None else piece.definition[entries],
        None if piece.repetition is None else piece.repetition[entries],
        int(np.count_nonzero(entries)), values, piece.row_group,
    )  # fmt: skip


def kept_nested(pieces: Sequence[NestedPiece], kept: np.ndarray, leaf: Leaf) -> list[NestedPiece]:
    """Give the pieces of a nested leaf without the rows that are not kept.

    Parameters
    ----------
    pieces : sequence of NestedPiece
        All its rows, in order.
    kept : bool array
        One item a row.
    leaf : Leaf
        The leaf.
    """
    found, first = [], 0
    for piece in pieces:
        stop = first + _num_rows(piece)
        found.append(_kept(piece, kept[first:stop], leaf))
        first = stop
    return found


def kept_pieces(pieces: Sequence[Any], kept: np.ndarray) -> list[Any]:
    """Give pieces without the values that are not kept, of which `kept` tells one by one.

    A piece of codes stays even if none of them does: its dictionary says what categories there are.
    """
    found: list[Any] = []
    first = 0
    for piece in pieces:
        wanted = kept[first : first + len(piece)]
        first += len(piece)
        if wanted.all():
            if len(piece) or isinstance(piece, DictionaryPiece):
                found.append(piece)
        elif isinstance(piece, DictionaryPiece):
            found.append(DictionaryPiece(piece.codes[wanted], piece.dictionary))
        elif wanted.any():
            found.append(_kept_binary(piece, wanted))
    return found


def _kept_binary(piece: BinaryPiece, kept: np.ndarray) -> BinaryPiece:
    edges = np.flatnonzero(np.diff(kept, prepend=False, append=False)).reshape(-1, 2).tolist()
    offsets = np.zeros(int(np.count_nonzero(kept)) + 1, np.int64)
    np.cumsum(np.diff(piece.offsets)[kept], out=offsets[1:])
    runs = [piece.data[piece.offsets[start] : piece.offsets[stop]] for start, stop in edges]
    return BinaryPiece(
        offsets, np.concatenate([*runs, np.zeros(SLACK, np.uint8)]),
        None if piece.validity is None else piece.validity[kept],
    )  # fmt: skip
