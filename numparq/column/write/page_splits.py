"""Split consecutive column chunks into pages by bytes and rows, at row boundaries only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf, DenseValues
from numparq.column.encodings import index_bit_width
from numparq.kernels.enums import BOOLEAN, RLE_DICTIONARY
from numparq.kernels.kernel_groups import writing_kernels

from .encoding_choice import ChosenEncodings
from .options import ColumnOptions


class Bounds(NamedTuple):
    """Boundaries of chunks or pages: int64 arrays with one item more than these, exclusive ends after a start.

    Attributes
    ----------
    rows : numpy.ndarray
        In rows.
    entries : numpy.ndarray
        In level entries: `num_values` of page headers.
    values : numpy.ndarray
        In dense values (nulls not counted); the same array as `entries` if there are no nulls.
    """

    rows: np.ndarray
    entries: np.ndarray
    values: np.ndarray

    def null_counts(self) -> list[int]:
        """Return the number of entries without a value for each page."""
        if self.values is self.entries:
            return [0] * (len(self.entries) - 1)
        counts: list[int] = (np.diff(self.entries) - np.diff(self.values)).tolist()
        return counts


def row_bounds(dense: DenseLeaf, rows: np.ndarray) -> Bounds:
    """Return the boundaries of a leaf at some of its rows, the first and the end among them."""
    entries = rows
    if dense.repetition is not None:
        entries = np.append(np.flatnonzero(dense.repetition == 0), dense.num_entries)[rows]
    values = entries
    if dense.present is not None:
        counts = np.zeros(len(rows), np.int64)
        writing_kernels.count_valid_by_page(dense.present, entries, len(rows) - 1, counts[1:])
        values = np.cumsum(counts)
    return Bounds(rows, entries, values)


def split_pages(
    dense: DenseLeaf, chunks: Bounds, chosen: ChosenEncodings, options: ColumnOptions
) -> tuple[Bounds, list[int]]:
    """Return the page boundaries of consecutive chunks, and the first page of each chunk, then the end.

    A chunk without entries has one empty page.
    """
    rows, first_pages = [0], [0]
    places = list(zip(*(bounds.tolist() for bounds in chunks), strict=True))
    for chunk, span in enumerate(pairwise(places)):
        rows += _split_chunk(dense, chunk, span, chosen, options)
        first_pages.append(len(rows) - 1)
    if len(rows) == len(chunks.rows):
        return chunks, first_pages
    return row_bounds(dense, np.array(rows)), first_pages


_Place = tuple[int, int, int]  # in rows, entries and values


def _split_chunk(
    dense: DenseLeaf, chunk: int, span: tuple[_Place, _Place], chosen: ChosenEncodings, options: ColumnOptions
) -> Sequence[int]:
    """Return the exclusive ends of a chunk's pages in rows."""
    values, size, (start, end) = chosen.values, options.data_page_size, span
    most, num_rows = options.max_rows_per_page, end[0] - start[0]
    if chosen.encodings[chunk] == RLE_DICTIONARY:
        assert chosen.dictionaries is not None
        bits = max(index_bit_width(chosen.dictionaries.counts[chunk]), 1)
    elif values.starts is not None:
        bits = 0
    else:
        bits = 1 if values.physical == BOOLEAN else max(8 * values.width, 1)
    if bits and dense.repetition is None:
        step = max(min(most, 8 * size // bits), 1)
        return (*range(start[0] + step, end[0], step), end[0])
    total = (end[2] - start[2]) * max(bits // 8, 1) if bits else chosen.plain_sizes[chunk]
    if num_rows <= most and total <= size:
        return (end[0],)
    if dense.repetition is None and dense.present is None:
        return _split_binary(values, start[2], end[2], options)
    sizes = _entry_sizes(dense, start, end, values, bits)
    if dense.repetition is not None:
        sizes = np.add.reduceat(sizes, np.flatnonzero(dense.repetition[start[1] : end[1]] == 0))
    return _split_by_sizes(sizes, start[0], options)


def _split_binary(values: DenseValues, first: int, last: int, options: ColumnOptions) -> list[int]:
    """Return the exclusive ends of pages of binary values without nulls, where a value is a row."""
    assert values.starts is not None
    assert values.ends is not None
    out, limits = np.empty(last - first + 1, np.int64), (options.data_page_size, options.max_rows_per_page)
    pages = writing_kernels.cut_binary_pages(
        values.starts[first:last], values.ends[first:last], last - first, 4, *limits, out
    )
    ends: list[int] = (out[1 : pages + 1] + first).tolist()
    return ends


def _entry_sizes(dense: DenseLeaf, start: _Place, end: _Place, values: DenseValues, bits: int) -> np.ndarray:
    """Return the bytes that each entry of a chunk takes in a page."""
    if bits or values.starts is None or values.ends is None:
        sizes = np.full(end[2] - start[2], max(bits // 8, 1), np.int64)
    else:
        sizes = values.ends[start[2] : end[2]] - values.starts[start[2] : end[2]] + 4
    if dense.present is None:
        return sizes
    spread = np.zeros(end[1] - start[1], np.int64)
    spread[dense.present[start[1] : end[1]].view(bool)] = sizes
    return spread


def _split_by_sizes(sizes: np.ndarray, first_row: int, options: ColumnOptions) -> list[int]:
    """Return the exclusive ends of pages of rows of known sizes in bytes."""
    ends, bounds = np.cumsum(sizes), [0]
    while bounds[-1] < len(sizes):
        first = bounds[-1]
        before = int(ends[first - 1]) if first else 0
        fitting = int(np.searchsorted(ends, before + options.data_page_size, "right"))
        bounds.append(max(min(fitting, first + options.max_rows_per_page, len(sizes)), first + 1))
    return [first_row + bound for bound in bounds[1:]]
