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
from numparq.util.pluralize import pluralize

from .columns import to_array
from .labels import append_labels, column_labels, row_index

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
    for number, (dtype, positions) in enumerate(together.items()):
        block = allocate_array((len(positions), num_rows), dtype)
        layout.blocks.append(block)
        for row, (position, values) in enumerate(zip(positions, block, strict=True)):
            layout.values[position], layout.block_of[position], layout.row_of[position] = values, number, row
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
            f"not enough memory for {pluralize(size, 'byte')} of {pluralize(shape[-1], 'row')}; read fewer "
            "rows or columns"
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
    blocks, kept, index_arrays = list[tuple[Any, np.ndarray]](), list[str](), list[tuple[str, Any]]()
    column_of: list[list[int]] = []  # by block and row, -1: none
    for block in layout.blocks:
        column_of.append([-1] * len(block))
    for position, name in enumerate(names):
        if name is None:
            continue
        target, buffer, number = layout.targets[position], buffers[position], layout.block_of[position]
        if name in levels:
            array = arrays[position] if position in arrays else _index_array(layout, position, buffer)
            index_arrays.append((name, array))
            continue
        if position in arrays:
            _add_array(blocks, arrays[position], len(kept))
        elif number is not None and (target.array_kind == "block" or buffer.null_count):
            column_of[number][layout.row_of[position] or 0] = len(kept)
        else:
            _add_array(blocks, to_array(target, buffer, layout.num_rows), len(kept))
        kept.append(name)
    for block, columns in zip(layout.blocks, column_of, strict=True):
        _add_block(blocks, block, columns)
    labels = column_labels(metadata, kept)
    if extra_columns:
        labels = _add_extra_columns(blocks, extra_columns, labels)
    frame = create_dataframe_from_blocks(blocks, row_index(metadata, index_arrays, layout.num_rows), labels)
    if metadata is not None and metadata.attrs:
        frame.attrs = deepcopy(metadata.attrs)
    return frame


def _index_array(layout: BlockLayout, position: int, buffer: DecodedColumn) -> Any:
    array = to_array(layout.targets[position], buffer, layout.num_rows)
    if array is buffer.values and layout.block_of[position] is not None:
        return buffer.fixed_values.copy()  # else the index would keep the column's block alive
    return array


def _add_array(blocks: list[tuple[Any, np.ndarray]], values: Any, column: int) -> None:
    """Add a finished array as a block that is one column of the frame."""
    if isinstance(values, np.ndarray):
        values = values.reshape(1, -1)
    blocks.append((_block_values(values), np.array([column], np.intp)))


def _add_extra_columns(
    blocks: list[tuple[Any, np.ndarray]], extra_columns: Sequence[tuple[str, Any]], labels: pd.Index
) -> pd.Index:
    """Add finished arrays after the columns of the file; return the labels with theirs."""
    for place, (_, values) in enumerate(extra_columns, start=len(labels)):
        _add_array(blocks, values, place)
    return append_labels(labels, [label for label, _ in extra_columns])


def _add_block(blocks: list[tuple[Any, np.ndarray]], block: np.ndarray, columns: list[int]) -> None:
    """Add a block whose rows are these columns of the frame, split at rows that are none (-1)."""
    if -1 not in columns and block.dtype not in _DATETIME_ARRAYS:
        blocks.append((block, np.array(columns, np.intp)))
        return
    start = 0
    for stop in [*(row for row, column in enumerate(columns) if column < 0), len(columns)]:
        if stop > start:
            blocks.append((_block_values(block[start:stop]), np.array(columns[start:stop], np.intp)))
        start = stop + 1


def _block_values(values: Any) -> Any:
    """Return an array as a block holds it: datetimes as pandas' arrays, without pandas' check."""
    array = _DATETIME_ARRAYS.get(values.dtype) if isinstance(values, np.ndarray) else None
    return values if array is None else array._simple_new(values, dtype=values.dtype)
