"""Split a column chunk into pages by bytes and rows, at row boundaries only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf
from numparq.column.encodings import index_bit_width
from numparq.kernels import writing_kernels
from numparq.kernels.enums import BOOLEAN

from .options import ColumnOptions


class PageSplits(NamedTuple):
    """Boundaries of pages: int64 arrays of shape (pages + 1,), starting at 0.

    Attributes
    ----------
    rows : numpy.ndarray
        In rows.
    entries : numpy.ndarray
        In level entries: `num_values` of page headers.
    values : numpy.ndarray
        In dense values (nulls not counted).
    """

    rows: np.ndarray
    entries: np.ndarray
    values: np.ndarray

    @classmethod
    def concatenate(cls, chunks: Sequence[PageSplits]) -> PageSplits:
        """Return the boundaries of the pages of consecutive chunks."""
        rows, entries, values = ([0], [0], [0])
        for chunk in chunks:
            for found, bounds in zip((rows, entries, values), chunk, strict=True):
                start = found[-1]
                found += [start + bound for bound in bounds[1:].tolist()]
        return cls(*(np.array(found, np.int64) for found in (rows, entries, values)))

    def null_counts(self) -> list[int]:
        """Return the number of entries without a value for each page."""
        if self.values is self.entries:
            return [0] * (len(self.entries) - 1)
        counts: list[int] = (np.diff(self.entries) - np.diff(self.values)).tolist()
        return counts


def split_pages(dense: DenseLeaf, options: ColumnOptions) -> PageSplits:
    """Return the page boundaries of a chunk; a chunk without entries has one empty page."""
    if not dense.num_entries:
        nothing = np.zeros(2, np.int64)
        return PageSplits(nothing, nothing, nothing)
    if dense.repetition is not None:
        return _split_nested(dense, options)
    values = dense.values
    if dense.codes is None and values.starts is not None and values.ends is not None:
        if dense.present is None:
            rows = _split_binary(values.starts, values.ends, options)
        else:
            rows = _split_by_sizes(_entry_sizes(dense), options)
    else:
        rows = _split_evenly(dense.num_entries, _bits(dense), options)
    return PageSplits(rows, rows, _value_bounds(dense, rows))


def _bits(dense: DenseLeaf) -> int:
    """Return the bits that a fixed-size value or code takes in a page."""
    if dense.codes is not None:
        return max(index_bit_width(dense.values.count), 1)
    return 1 if dense.values.physical == BOOLEAN else 8 * dense.values.width


def _split_evenly(count: int, bits: int, options: ColumnOptions) -> np.ndarray:
    step = max(min(options.max_rows_per_page, 8 * options.data_page_size // max(bits, 1)), 1)
    return np.array([*range(0, count, step), count], np.int64)


def _split_binary(starts: np.ndarray, ends: np.ndarray, options: ColumnOptions) -> np.ndarray:
    out = np.empty(len(starts) + 1, np.int64)
    pages = writing_kernels.cut_binary_pages(
        starts, ends, len(starts), 4, options.data_page_size, options.max_rows_per_page, out
    )
    splits: np.ndarray = out[: pages + 1].copy()
    return splits


def _entry_sizes(dense: DenseLeaf) -> np.ndarray:
    """Return the bytes that each entry takes in a page."""
    values = dense.values
    if dense.codes is None and values.starts is not None and values.ends is not None:
        sizes: np.ndarray = values.ends - values.starts + 4
    else:
        sizes = np.full(dense.num_values, max(_bits(dense) // 8, 1), np.int64)
    if dense.present is None:
        return sizes
    spread = np.zeros(dense.num_entries, np.int64)
    spread[dense.present.view(bool)] = sizes
    return spread


def _split_by_sizes(sizes: np.ndarray, options: ColumnOptions) -> np.ndarray:
    """Split rows of known sizes in bytes."""
    ends = np.cumsum(sizes)
    bounds = [0]
    while bounds[-1] < len(sizes):
        first = bounds[-1]
        before = int(ends[first - 1]) if first else 0
        fitting = int(np.searchsorted(ends, before + options.data_page_size, "right"))
        bounds.append(max(min(fitting, first + options.max_rows_per_page, len(sizes)), first + 1))
    return np.array(bounds, np.int64)


def _split_nested(dense: DenseLeaf, options: ColumnOptions) -> PageSplits:
    assert dense.repetition is not None
    row_starts = np.flatnonzero(dense.repetition == 0)
    rows = _split_by_sizes(np.add.reduceat(_entry_sizes(dense), row_starts), options)
    entries = np.append(row_starts, dense.num_entries)[rows]
    return PageSplits(rows, entries, _value_bounds(dense, entries))


def _value_bounds(dense: DenseLeaf, entries: np.ndarray) -> np.ndarray:
    if dense.present is None:
        return entries
    if len(entries) == 2:
        return np.array((0, dense.num_values))
    counts = np.zeros(len(entries), np.int64)
    writing_kernels.count_valid_by_page(dense.present, entries, len(entries) - 1, counts[1:])
    return np.cumsum(counts)
