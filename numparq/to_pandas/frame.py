"""Blocks of a frame: allocated before decoding, assembled into a DataFrame afterwards, without a copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.internals import create_dataframe_from_blocks

from numparq.column.buffers import DecodedColumn
from numparq.errors import LimitError
from numparq.format.arrow_type import TIME_UNITS
from numparq.format.key_values.pandas import PandasMetadata
from numparq.kernels.tables import SLACK
from numparq.types.output_type import OutputType

from .columns import to_array
from .labels import frame_labels, row_index

_NOTHING: Mapping[int, Any] = MappingProxyType({})

_DATETIME_ARRAYS = {
    np.dtype(f"{kind}8[{unit}]"): array
    for kind, array in (("M", pd.arrays.DatetimeArray), ("m", pd.arrays.TimedeltaArray))
    for unit in TIME_UNITS
}


class BlockLayout:
    """Memory into which each column of a future frame is decoded, from `allocate_blocks`.

    Attributes
    ----------
    values : list of numpy.ndarray or None
        For each column of fixed storage the 1-D array to decode into: a row of its block, or its own array.
    validity : list of numpy.ndarray or None
        For each column with ``nulls="mask"``, uint8, one item a row.
    blocks : list of numpy.ndarray
        The blocks, of shape (columns, rows), C-contiguous.
    block_of, row_of : list of int or None
        Block of each column, and the row in it; None for a column outside the blocks.
    """

    def __init__(self, targets: list[OutputType], num_rows: int) -> None:
        self.targets = targets
        self.num_rows = num_rows
        self.values: list[np.ndarray | None] = [None] * len(targets)
        self.validity: list[np.ndarray | None] = [None] * len(targets)
        self.blocks: list[np.ndarray] = []
        self.block_of: list[int | None] = [None] * len(targets)
        self.row_of: list[int | None] = [None] * len(targets)

    def reallocate(self, position: int, target: OutputType) -> None:
        """Move a column to memory of its own for another output type; its former memory is no longer used."""
        self.targets[position] = target
        self.block_of[position] = self.row_of[position] = None
        self._allocate_separately(position, target)

    def _allocate_separately(self, position: int, target: OutputType) -> None:
        self.values[position] = self.validity[position] = None
        if target.storage == "fixed" and target.dtype is not None and not target.nested:
            self.values[position] = allocate_array((self.num_rows,), target.dtype)
            if target.nulls == "mask":
                self.validity[position] = allocate_array((self.num_rows,), np.dtype("u1"))

    def _allocate_block(self, positions: list[int], dtype: np.dtype) -> None:
        block = allocate_array((len(positions), self.num_rows), dtype)
        for row, (position, values) in enumerate(zip(positions, block, strict=True)):
            self.values[position] = values
            self.block_of[position] = len(self.blocks)
            self.row_of[position] = row
        self.blocks.append(block)


def allocate_blocks(targets: Sequence[OutputType], num_rows: int, separate: Collection[int] = ()) -> BlockLayout:
    """Allocate the uninitialised memory of all columns once, at its final size, as the frame's own blocks.

    Columns in `separate` (the index) share no block. SLACK bytes follow each array. LimitError if memory runs out.
    """
    layout = BlockLayout(list(targets), num_rows)
    together: dict[np.dtype, list[int]] = {}
    for position, target in enumerate(layout.targets):
        if target.shares_block and position not in separate:
            assert target.dtype is not None
            together.setdefault(target.dtype, []).append(position)
        elif target.storage == "fixed":
            layout._allocate_separately(position, target)
    for dtype, positions in together.items():
        layout._allocate_block(positions, dtype)
    return layout


def allocate_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised array followed by SLACK bytes; LimitError if memory does not suffice."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    try:
        return np.empty(size + SLACK, np.uint8)[:size].view(dtype).reshape(shape)
    except (MemoryError, ValueError) as error:
        raise LimitError(
            f"not enough memory for {size:,} bytes of {shape[-1]:,} rows; read fewer rows or columns"
        ) from error


def assemble(
    layout: BlockLayout,
    buffers: Sequence[DecodedColumn],
    names: Sequence[str | None],
    metadata: PandasMetadata | None = None,
    extra_columns: Sequence[tuple[str, Any]] = (),
    arrays: Mapping[int, Any] = _NOTHING,
) -> pd.DataFrame:
    """Build a DataFrame of decoded columns, which takes over their memory; index columns become its index.

    `arrays` holds finished columns by position; `extra_columns` come last. A name is None within a column.
    """
    levels = frozenset(metadata.index_fields if metadata is not None else ())
    blocks, kept, index_arrays = _BlockCollector(layout), list[str](), list[tuple[str, Any]]()
    for position, name in enumerate(names):
        if name is None:
            continue
        if name in levels:
            array = arrays[position] if position in arrays else _index_array(layout, position, buffers[position])
            index_arrays.append((name, array))
            continue
        if position in arrays:
            blocks.add_array(arrays[position], len(kept))
        else:
            blocks.add(position, buffers[position], len(kept))
        kept.append(name)
    for place, (_, values) in enumerate(extra_columns, start=len(kept)):
        blocks.add_array(values, place)
    labels = frame_labels(metadata, kept, [label for label, _ in extra_columns] if extra_columns else ())
    frame = create_dataframe_from_blocks(blocks.blocks(), row_index(metadata, index_arrays, layout.num_rows), labels)
    if metadata is not None and metadata.attrs:
        frame.attrs = deepcopy(metadata.attrs)
    return frame


def _index_array(layout: BlockLayout, position: int, buffer: DecodedColumn) -> Any:
    array = to_array(layout.targets[position], buffer, layout.num_rows)
    if array is buffer.values and layout.block_of[position] is not None:
        return buffer.fixed_values.copy()  # else the index would keep the column's block alive
    return array


class _BlockCollector:
    """Blocks of a frame, with the frame's column of each of their rows."""

    def __init__(self, layout: BlockLayout) -> None:
        self._layout = layout
        self._places: list[list[int]] = []
        for block in layout.blocks:
            self._places.append([-1] * len(block))
        self._arrays: list[tuple[Any, np.ndarray]] = []

    def add(self, position: int, buffer: DecodedColumn, place: int) -> None:
        """Add a decoded column as column number `place` of the frame."""
        target = self._layout.targets[position]
        block = self._layout.block_of[position]
        if block is not None and (target.array_kind == "block" or buffer.null_count):
            row = self._layout.row_of[position]
            assert row is not None
            self._places[block][row] = place
        else:
            self.add_array(to_array(target, buffer, self._layout.num_rows), place)

    def add_array(self, values: Any, place: int) -> None:
        """Add a finished array as column number `place` of the frame."""
        if isinstance(values, np.ndarray):
            values = values.reshape(1, -1)
        self._arrays.append((_block_values(values), np.array([place], np.intp)))

    def blocks(self) -> list[tuple[Any, np.ndarray]]:
        """Return the blocks as pandas expects them, split at rows that are not columns of the frame."""
        for block, places in zip(self._layout.blocks, self._places, strict=True):
            if -1 not in places:
                self._arrays.append((_block_values(block), np.array(places, np.intp)))
                continue
            start = 0
            for stop in [*(row for row, place in enumerate(places) if place < 0), len(places)]:
                if stop > start:
                    self._arrays.append((_block_values(block[start:stop]), np.array(places[start:stop], np.intp)))
                start = stop + 1
        return self._arrays


def _block_values(values: Any) -> Any:
    """Return an array as a block holds it: datetimes as pandas' arrays, without pandas' check."""
    array = _DATETIME_ARRAYS.get(values.dtype) if isinstance(values, np.ndarray) else None
    return values if array is None else array._simple_new(values, dtype=values.dtype)
