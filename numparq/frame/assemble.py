"""From finished columns to a DataFrame, without a copy of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.internals import create_dataframe_from_blocks

from ..arrow_schema import TIME_UNITS
from ..column.buffer import ColumnBuffer
from ..pandas_metadata import PandasMetadata
from .finish import finish
from .labels import labels_with, row_index
from .layout import Layout

_NOTHING: Mapping[int, Any] = MappingProxyType({})


def assemble(
    layout: Layout,
    buffers: Sequence[ColumnBuffer],
    names: Sequence[str | None],
    metadata: PandasMetadata | None = None,
    extra: Sequence[tuple[str, Any]] = (),
    made: Mapping[int, Any] = _NOTHING,
) -> pd.DataFrame:
    """Make a DataFrame of decoded columns.

    Parameters
    ----------
    layout : Layout
        The memory and the targets of the columns, as `allocate` and `Layout.replace` left them.
    buffers : sequence of ColumnBuffer
        What each column was decoded to. Their memory becomes the frame's.
    names : sequence of str or None
        The name of each column in the file; None for what is only a part of one.
    metadata : PandasMetadata or None
        The file's pandas metadata. Columns that it names as index become the index.
    extra : sequence of (str, array)
        Columns that are not the file's own, to come last: labels, and NumPy or extension arrays.
    made : mapping of int to array
        Columns that are finished already, by their positions.

    Returns
    -------
    pandas.DataFrame
    """
    levels = set(metadata.index_fields) if metadata is not None else ()
    named = [(position, name) for position, name in enumerate(names) if name is not None]
    kept = [(position, name) for position, name in named if name not in levels] if levels else named
    blocks = _Blocks(layout)
    for place, (position, _) in enumerate(kept):
        if position in made:
            blocks.add_array(made[position], place)
        else:
            blocks.add(position, buffers[position], place)
    for place, (_, values) in enumerate(extra, start=len(kept)):
        blocks.add_array(values, place)
    index_arrays = {} if not levels else {
        name: made[position] if position in made else _index_array(layout, position, buffers[position])
        for position, name in named
        if name in levels
    }  # fmt: skip
    labels = labels_with(metadata, [name for _, name in kept], [label for label, _ in extra] if extra else ())
    frame = create_dataframe_from_blocks(blocks.finished(), row_index(metadata, index_arrays, layout.num_rows), labels)
    if metadata is not None and metadata.attrs:
        frame.attrs = deepcopy(metadata.attrs)
    return frame


def _index_array(layout: Layout, position: int, buffer: ColumnBuffer) -> Any:
    array = finish(layout.targets[position], buffer, layout.num_rows)
    if array is buffer.values and layout.block_of[position] is not None:
        return buffer.fixed.copy()  # else the index would keep the block alive that its column was decoded into
    return array


class _Blocks:
    """Collects the blocks of a frame and which columns of the frame their rows are."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._places: list[list[int]] = [[-1] * len(block) for block in layout.blocks]
        self._arrays: list[tuple[Any, np.ndarray]] = []

    def add(self, position: int, buffer: ColumnBuffer, place: int) -> None:
        """Add a decoded column as the frame's column `place`."""
        target = self._layout.targets[position]
        block = self._layout.block_of[position]
        if block is not None and (target.finish == "block" or buffer.null_count):
            row = self._layout.row_of[position]
            assert row is not None
            self._places[block][row] = place
        else:
            self.add_array(finish(target, buffer, self._layout.num_rows), place)

    def add_array(self, values: Any, place: int) -> None:
        """Add a finished column as the frame's column `place`."""
        if isinstance(values, np.ndarray):
            values = values.reshape(1, -1)
        self._arrays.append((_wrapped(values), np.array([place], np.intp)))

    def finished(self) -> list[tuple[Any, np.ndarray]]:
        """Give the blocks as pandas takes them; one whose rows are not all columns of the frame, in parts."""
        for block, places in zip(self._layout.blocks, self._places, strict=True):
            start = 0
            for stop in [*(row for row, place in enumerate(places) if place < 0), len(places)]:
                if stop > start:
                    self._arrays.append((_wrapped(block[start:stop]), np.array(places[start:stop], np.intp)))
                start = stop + 1
        return self._arrays


_MOMENTS = {
    np.dtype(f"{kind}8[{unit}]"): array
    for kind, array in (("M", pd.arrays.DatetimeArray), ("m", pd.arrays.TimedeltaArray))
    for unit in TIME_UNITS
}


def _wrapped(values: Any) -> Any:
    """Give an array as blocks hold it: moments as pandas' own arrays, which it would make of them by way of a check."""
    array = _MOMENTS.get(values.dtype) if isinstance(values, np.ndarray) else None
    return values if array is None else array._simple_new(values, dtype=values.dtype)
