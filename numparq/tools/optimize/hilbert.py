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

__all__ = ["HilbertClustering", "hilbert_positions", "quantiles", "sample_rows"]

_MAX_BITS = 62  # of a place: it is an int64
_MAX_BITS_PER_COLUMN = 12


class HilbertClustering:
    """Gives rows their places on the curve.

    Parameters
    ----------
    bounds : sequence of pyarrow.Array
        For each column, in the order of the columns, the values that divide it, as `quantiles` gives them.

    Raises
    ------
    SchemaError
        When there are more columns than there are bits.
    """

    def __init__(self, bounds: Sequence[Any]) -> None:
        if len(bounds) > _MAX_BITS:
            raise SchemaError(f"rows can be clustered by at most {_MAX_BITS} columns, not by {len(bounds)}")
        self._bounds = list(bounds)
        self._bits = bits_per_column(len(bounds))

    def places(self, columns: Sequence[Any]) -> np.ndarray:
        """Give the places of rows.

        Parameters
        ----------
        columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
            The values of each column.

        Returns
        -------
        int64 array
            One item a row, from 0 on.
        """
        coordinates = [_coordinates(column, bounds) for column, bounds in zip(columns, self._bounds, strict=True)]
        return hilbert_positions(coordinates, self._bits)


def bits_per_column(num_columns: int) -> int:
    """Give the bits of a coordinate where there are so many columns."""
    return max(min(_MAX_BITS // max(num_columns, 1), _MAX_BITS_PER_COLUMN), 1)


def quantiles(sample: Any, num_columns: int) -> Any:
    """Give the values that divide a column into parts of about one size.

    Parameters
    ----------
    sample : pyarrow.Array or pyarrow.ChunkedArray
        Some of its values; nulls and NaNs are left out.
    num_columns : int
        How many columns there are, by which it follows how many parts.

    Returns
    -------
    pyarrow.Array
        In order, none twice; empty where the sample is.
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
    """Give an array in one piece, of a type that Arrow can sort."""
    pa = import_pyarrow()
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of one that is too long for one piece, or has none
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
    """Count the bounds that are not above each value: nulls come first, NaNs last."""
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
    coordinates = found[len(bounds) :][codes]
    if array.null_count:
        coordinates[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return coordinates


def hilbert_positions(coordinates: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Give the places of points on a Hilbert curve, by Skilling's transformation (2004).

    Parameters
    ----------
    coordinates : sequence of int64 arrays
        One each dimension; coordinates of points, from 0 to ``2 ** bits - 1``.
    bits : int
        Bits of a coordinate; those of all dimensions are at most 62 together.

    Returns
    -------
    int64 array
        One item a point.
    """
    axes = [np.minimum(each, (1 << bits) - 1).astype(np.int64) for each in coordinates]
    if not axes:
        return np.empty(0, np.int64)
    first = axes[0]
    for place in range(bits - 1, 0, -1):  # undo what each level of the curve turns and mirrors
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
    found = np.zeros_like(first)
    for axis in axes:
        axis ^= turned
    for place in range(bits - 1, -1, -1):
        for axis in axes:
            found = found << 1 | axis >> place & 1
    return found


def sample_rows(reader: SplitReader, rows: int, piece: RewritePiece) -> pa.Table:
    """Give some rows of a piece, from all over it.

    Parameters
    ----------
    reader : SplitReader
        Of the columns that are wanted.
    rows : int
        How many, about.
    piece : RewritePiece
        The rows.
    """
    step = max((piece.split.num_rows or rows) // max(rows, 1), 1)
    taken, first = [], step // 2
    for table in reader.tables(piece.split):
        places = range(first, table.num_rows, step)
        taken.append(table.take(pa.array(places, pa.int64())))
        first = first + len(places) * step - table.num_rows
    return pa.concat_tables(taken).combine_chunks()
