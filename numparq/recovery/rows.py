"""The rows of a frame to be that are whole, without the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..column.buffer import ColumnBuffer
from ..frame.layout import Layout, empty
from ..schema import Leaf
from .pieces import kept_nested, kept_pieces

__all__ = ["kept_rows"]


def kept_rows(
    layout: Layout, buffers: Sequence[ColumnBuffer], leaves: Sequence[Leaf], kept: np.ndarray
) -> tuple[Layout, list[ColumnBuffer]]:
    """Copy the rows that are kept of all columns.

    Parameters
    ----------
    layout : Layout
        The memory that the columns were decoded to.
    buffers : sequence of ColumnBuffer
        What each was decoded to.
    leaves : sequence of Leaf
        The columns.
    kept : bool array
        One item a row.

    Returns
    -------
    Layout, list of ColumnBuffer
        Of so many rows as are kept. Whether a column had nulls stays as it was, so that its dtype does.
    """
    small = Layout(list(layout.targets), int(np.count_nonzero(kept)))
    small.blocks = [_kept_columns(block, kept) for block in layout.blocks]
    small.block_of, small.row_of = list(layout.block_of), list(layout.row_of)
    found = []
    for position, (buffer, leaf) in enumerate(zip(buffers, leaves, strict=True)):
        block, row = small.block_of[position], small.row_of[position]
        values = buffer.values
        if block is not None and row is not None:
            values = small.blocks[block][row]
        elif values is not None:
            values = _kept_columns(values[None], kept)[0]
        validity = None if buffer.validity is None else _kept_columns(buffer.validity[None], kept)[0]
        small.values[position], small.validity[position] = values, validity
        nested = layout.targets[position].nested
        pieces = kept_nested(buffer.pieces, kept, leaf) if nested else kept_pieces(buffer.pieces, kept)
        found.append(replace(buffer, values=values, validity=validity, pieces=pieces))
    return small, found


def _kept_columns(block: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Copy the items kept of each row of a block, with room behind them."""
    out = empty((len(block), int(np.count_nonzero(kept))), block.dtype)
    np.compress(kept, block, axis=1, out=out)
    return out
