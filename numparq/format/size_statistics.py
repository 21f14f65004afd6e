"""SizeStatistics (parquet.thrift): level histograms and byte counts of pages and column chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from numparq.kernels import statistics_kernels

from .physical_type import BYTE_ARRAY
from .schema import Leaf

__all__ = ["PageSizeStatistics", "build_size_statistics", "compute_page_sizes"]

_EMPTY4 = np.empty(0, np.int32)


@dataclass(slots=True)
class PageSizeStatistics:
    """Size statistics of each page; None for what the format lets writers omit without loss.

    Attributes
    ----------
    definition_histograms, repetition_histograms : int64, (num_pages, max level + 1), or None
        Level histograms. None for definition levels up to 1 (the null count suffices) and maximum repetition level 0.
    byte_array_bytes : int64, (num_pages,), or None
        Bytes of BYTE_ARRAY values, without nulls and lengths.
    """

    definition_histograms: np.ndarray | None = None
    repetition_histograms: np.ndarray | None = None
    byte_array_bytes: np.ndarray | None = None


def compute_page_sizes(
    leaf: Leaf,
    bounds: np.ndarray,
    level_bounds: np.ndarray | None = None,
    *,
    definition: np.ndarray | None = None,
    repetition: np.ndarray | None = None,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> PageSizeStatistics:
    """Return the size statistics of each page.

    Page p has the values bounds[p] to bounds[p + 1] (exclusive, no nulls); `level_bounds` is the same for levels.
    """
    found = PageSizeStatistics()
    if level_bounds is not None:
        if leaf.max_definition_level > 1 and definition is not None:
            found.definition_histograms = _histograms(definition, level_bounds, leaf.max_definition_level + 1)
        if leaf.max_repetition_level > 0 and repetition is not None:
            found.repetition_histograms = _histograms(repetition, level_bounds, leaf.max_repetition_level + 1)
    if leaf.physical == BYTE_ARRAY and starts is not None and ends is not None:
        found.byte_array_bytes = np.empty(len(bounds) - 1, np.int64)
        coded = (_EMPTY4, 0) if codes is None else (codes, len(starts))
        statistics_kernels.sum_bytes_by_page(starts, ends, *coded, bounds, len(bounds) - 1, found.byte_array_bytes)
    return found


def _histograms(levels: np.ndarray, bounds: np.ndarray, num_levels: int) -> np.ndarray:
    counts = np.zeros((len(bounds) - 1, num_levels), np.int64)
    statistics_kernels.level_histograms(levels, bounds, len(bounds) - 1, num_levels, counts.reshape(-1))
    return counts


def build_size_statistics(sizes: PageSizeStatistics) -> dict[str, Any] | None:
    """Build the SizeStatistics of a column chunk from those of its pages; None if all fields can be omitted."""
    fields = {
        "unencoded_byte_array_data_bytes": sizes.byte_array_bytes,
        "repetition_level_histogram": sizes.repetition_histograms,
        "definition_level_histogram": sizes.definition_histograms,
    }
    return {name: pages.sum(axis=0).tolist() for name, pages in fields.items() if pages is not None} or None
