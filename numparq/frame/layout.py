"""The memory of a frame before it is one: 2-D blocks, whose rows the kernels decode columns into."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..errors import LimitError
from ..kernels.tables import SLACK
from ..targets import Target


class Layout:
    """Where each column of a frame to be is decoded to.

    Made by `allocate`; a column is moved by `replace`.

    Parameters
    ----------
    targets : list of Target
        How each column is decoded.
    num_rows : int
        Rows of the frame.

    Attributes
    ----------
    values : list of numpy.ndarray or None
        For each column of fixed storage the 1-D array to decode into (a row of its block, or an array of its own);
        None for the others.
    validity : list of numpy.ndarray or None
        For each column with ``nulls="mask"``, uint8, one item a row.
    blocks : list of numpy.ndarray
        The blocks, of shape (columns, rows), C-contiguous.
    block_of, row_of : list of int or None
        Which block a column lies in, and which of its rows; None for a column that lies in none.
    """

    def __init__(self, targets: list[Target], num_rows: int) -> None:
        self.targets = targets
        self.num_rows = num_rows
        self.values: list[np.ndarray | None] = [None] * len(targets)
        self.validity: list[np.ndarray | None] = [None] * len(targets)
        self.blocks: list[np.ndarray] = []
        self.block_of: list[int | None] = [None] * len(targets)
        self.row_of: list[int | None] = [None] * len(targets)

    def replace(self, position: int, target: Target) -> None:
        """Move a column to memory of its own, to be decoded as another target; what it held is void.

        Parameters
        ----------
        position : int
            Which column.
        target : Target
            Its new target, from `numparq.dtypes.retarget`.
        """
        self.targets[position] = target
        self.block_of[position] = self.row_of[position] = None
        self._place_alone(position, target)

    def _place_alone(self, position: int, target: Target) -> None:
        self.values[position] = self.validity[position] = None
        if target.storage == "fixed" and target.dtype is not None and not target.nested:
            self.values[position] = empty((self.num_rows,), target.dtype)
            if target.nulls == "mask":
                self.validity[position] = empty((self.num_rows,), np.dtype("u1"))

    def _place_together(self, positions: list[int], dtype: np.dtype) -> None:
        block = empty((len(positions), self.num_rows), dtype)
        for row, (position, values) in enumerate(zip(positions, block, strict=True)):
            self.values[position] = values
            self.block_of[position] = len(self.blocks)
            self.row_of[position] = row
        self.blocks.append(block)


def allocate(targets: Sequence[Target], num_rows: int, separate: Collection[int] = ()) -> Layout:
    """Allocate the memory that columns are decoded into: once, at its final size, as the frame's own blocks.

    Parameters
    ----------
    targets : sequence of Target
        One for each column, in the order of the frame's columns.
    num_rows : int
        How many rows there will be.
    separate : collection of int
        Columns that must not share a block with others, because they will not be columns of the frame (its index).

    Returns
    -------
    Layout
        Its memory is not initialised. Behind each array there is room for what kernels may write beyond it.

    Raises
    ------
    LimitError
        When there is not that much memory.
    """
    layout = Layout(list(targets), num_rows)
    together: dict[np.dtype, list[int]] = {}
    for position, target in enumerate(layout.targets):
        if target.block and position not in separate:
            assert target.dtype is not None
            together.setdefault(target.dtype, []).append(position)
        elif target.storage == "fixed":
            layout._place_alone(position, target)
    for dtype, positions in together.items():
        layout._place_together(positions, dtype)
    return layout


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Allocate an array, not initialised, with SLACK bytes of room behind it; LimitError where memory ends."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    try:
        return np.empty(size + SLACK, np.uint8)[:size].view(dtype).reshape(shape)
    except (MemoryError, ValueError) as error:
        raise LimitError(f"{size} bytes for {shape[-1]} rows are more than there is memory for") from error
