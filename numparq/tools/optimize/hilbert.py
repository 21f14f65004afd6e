"""Hilbert clustering: the position of rows on a curve through quantiles of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from numparq.dataset.splits.reader import SplitReader
from numparq.errors import SchemaError
from numparq.util.optional import import_pyarrow

from .rewrite_plan import RewritePiece

_MAX_BITS = 62  # a position is an int64
_MAX_BITS_PER_COLUMN = 12


class HilbertClustering:
    """Positions of rows on a Hilbert curve.

    `bounds` has one Arrow array of quantiles (see `quantiles`) for each column; at most 62 columns, else SchemaError.
    """

    def __init__(self, bounds: Sequence[Any]) -> None:
        if len(bounds) > _MAX_BITS:
            raise SchemaError(f"rows can be clustered by at most {_MAX_BITS} columns, not by {len(bounds)}")
        self._bounds = list(bounds)
        self._bits = bits_per_column(len(bounds))

    def positions(self, columns: Sequence[Any]) -> np.ndarray:
        """Return the int64 position of each row on the curve, from one Arrow array of values for each column."""
        coordinates = [_coordinates(column, bounds) for column, bounds in zip(columns, self._bounds, strict=True)]
        return hilbert_positions(coordinates, self._bits)


def bits_per_column(num_columns: int) -> int:
    """Return the number of bits of a coordinate."""
    return max(min(_MAX_BITS // max(num_columns, 1), _MAX_BITS_PER_COLUMN), 1)


def quantiles(sample: Any, num_columns: int) -> Any:
    """Return the sorted, distinct values of an Arrow array that divide a column into parts of about equal size.

    Nulls and NaNs are ignored. The number of parts follows from `num_columns`.
    """
    import pyarrow.compute as pc

    pa = import_pyarrow()
    values = _sortable(sample).drop_null()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    values = values.take(pc.array_sort_indices(values))
    parts = 1 << bits_per_column(num_columns)
    step = max(len(values) / parts, 1.0)
    places = np.unique(np.arange(step, len(values), step).astype(np.int64))
    return values.take(pa.array(places)).unique()


def _sortable(column: Any) -> Any:
    """Return the column as one contiguous array of a type that Arrow can sort."""
    pa = import_pyarrow()
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # too long for one array, or without chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_decimal(array.type) and array.type.bit_width < 128:
        return array.cast(pa.decimal128(array.type.precision, array.type.scale))
    sortable = {pa.float16(): pa.float32(), pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return array.cast(sortable.get(array.type, array.type))


def _coordinates(column: Any, bounds: Any) -> np.ndarray:
    """Count for each value the bounds that are not above it; nulls get 0, NaNs the most."""
    import pyarrow.compute as pc

    pa = import_pyarrow()
    array = _sortable(column)
    if array.null_count == len(array):
        return np.zeros(len(array), np.int64)
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary
    both = pa.concat_arrays([bounds.cast(distinct.type), distinct])
    order = pc.array_sort_indices(both).to_numpy()  # stable, so that a bound comes before what equals it
    is_bound = order < len(bounds)
    found = np.empty(len(both), np.int64)
    found[order] = np.cumsum(is_bound)
    codes = encoded.indices.fill_null(0).to_numpy()
    coordinates: np.ndarray = found[len(bounds) :][codes]
    if array.null_count:
        coordinates[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return coordinates


def hilbert_positions(coordinates: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Return the int64 positions of points on a Hilbert curve, by Skilling's transformation (2004).

    `coordinates` has one int64 array for each dimension, values from 0 to ``2**bits - 1``; at most 62 bits in all.
    """
    axes = [np.minimum(each, (1 << bits) - 1).astype(np.int64) for each in coordinates]
    if not axes:
        return np.empty(0, np.int64)
    first = axes[0]
    for place in range(bits - 1, 0, -1):  # undo the rotations and reflections of each level
        low = (1 << place) - 1
        for axis in axes:
            is_set = (axis >> place & 1).astype(np.bool_)
            swapped = np.where(is_set, 0, (first ^ axis) & low)
            np.copyto(first, np.where(is_set, first ^ low, first ^ swapped))
            if axis is not first:
                axis ^= swapped
    for before, axis in pairwise(axes):
        axis ^= before
    turned = np.zeros_like(first)
    for place in range(bits - 1, 0, -1):
        turned ^= np.where(axes[-1] >> place & 1, (1 << place) - 1, 0)
    found: np.ndarray = np.zeros_like(first)
    for axis in axes:
        axis ^= turned
    for place in range(bits - 1, -1, -1):
        for axis in axes:
            found = found << 1 | axis >> place & 1
    return found


def sample_rows(reader: SplitReader, rows: int, piece: RewritePiece) -> pa.Table:
    """Return about `rows` rows of a piece, evenly spread over it."""
    step = max((piece.split.num_rows or rows) // max(rows, 1), 1)
    taken, first = [], step // 2
    for table in reader.tables(piece.split):
        places = range(first, table.num_rows, step)
        taken.append(table.take(pa.array(places, pa.int64())))
        first = first + len(places) * step - table.num_rows
    return pa.concat_tables(taken).combine_chunks()
