"""Rows here and there of a leaf of a nested column: its levels and values, taken out of those of more rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schema import Leaf
from .buffer import DictionaryPiece
from .nested import NestedPiece
from .taking import Runs, items_of, strings_of

__all__ = ["rows_of"]


def rows_of(piece: NestedPiece, leaf: Leaf, rows: np.ndarray) -> NestedPiece:
    """Take some rows.

    Parameters
    ----------
    piece : NestedPiece
        Levels and values of a run of rows.
    leaf : Leaf
        What it is of.
    rows : int64 array, (ranges, 2)
        The rows wanted, counted from the first one of the piece.

    Returns
    -------
    NestedPiece
    """
    entries = rows
    if piece.repetition is not None:
        starts = np.append(np.flatnonzero(piece.repetition == 0), piece.num_entries)
        entries = starts[rows]
    values = entries
    if piece.definition is not None:
        there = piece.definition[: piece.num_entries] == leaf.max_definition_level
        values = np.concatenate([[0], np.cumsum(there)])[entries]
    count = int((entries[:, 1] - entries[:, 0]).sum())
    taking = Runs.between(entries)
    definition = None if piece.definition is None else items_of(piece.definition, taking)
    repetition = None if piece.repetition is None else items_of(piece.repetition, taking)
    return NestedPiece(definition, repetition, count, _values(piece.values, values), piece.row_group)


def _values(values: Any, ranges: np.ndarray) -> Any:
    """Take ranges of the values of a leaf, in an array or in pieces."""
    if isinstance(values, np.ndarray):
        return items_of(values, Runs.between(ranges))
    found: list[Any] = []
    first = 0
    for piece in values:
        within = np.clip(ranges, first, first + len(piece)) - first
        taking = Runs.between(within[within[:, 0] < within[:, 1]])
        if isinstance(piece, DictionaryPiece):
            found.append(DictionaryPiece(items_of(piece.codes, taking), piece.dictionary))
        else:
            found.append(strings_of(piece, taking))
        first += len(piece)
    return [piece for piece in found if len(piece)]
