"""SizeStatistics (parquet.thrift): level histograms and byte counts of pages and column chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.kernels.kernel_groups import statistics_kernels
from numparq.kernels.thrift.encode import ABSENT

from .physical_type import BYTE_ARRAY
from .schema import Leaf

_EMPTY4 = np.empty(0, np.int32)


@dataclass(slots=True)
class PageSizeStatistics:
    """Size statistics of each page; None for what the format lets writers omit without loss.

    Attributes
    ----------
    definition_histograms, repetition_histograms : int64, (num_pages, max level + 1), or None
        Level histograms. None for definition levels up to 1 (the null count suffices) and maximum repetition level 0.
    byte_array_bytes : list of int, or None
        Bytes of BYTE_ARRAY values, without nulls and lengths.
    """

    definition_histograms: np.ndarray | None = None
    repetition_histograms: np.ndarray | None = None
    byte_array_bytes: list[int] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether all can be omitted."""
        return (
            self.definition_histograms is None and self.repetition_histograms is None and self.byte_array_bytes is None
        )


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
        sums = np.empty(len(bounds) - 1, np.int64)
        coded = (_EMPTY4, 0) if codes is None else (codes, len(starts))
        statistics_kernels.sum_bytes_by_page(starts, ends, *coded, bounds, len(sums), sums)
        found.byte_array_bytes = sums.tolist()
    return found


def _histograms(levels: np.ndarray, bounds: np.ndarray, num_levels: int) -> np.ndarray:
    counts = np.zeros((len(bounds) - 1, num_levels), np.int64)
    statistics_kernels.level_histograms(levels, bounds, len(bounds) - 1, num_levels, counts.reshape(-1))
    return counts


# Fields of SizeStatistics, in the order of the words of `size_words`.
SIZE_FIELDS = ("unencoded_byte_array_data_bytes", "repetition_level_histogram", "definition_level_histogram")
NO_SIZES = (ABSENT, ABSENT, 0, ABSENT, 0)


def size_words(sizes: PageSizeStatistics, first: int, last: int, items: list[int]) -> tuple[int, ...]:
    """Return the words of the SizeStatistics of pages `first` to `last` (exclusive); append its items."""
    if sizes.is_empty:
        return NO_SIZES
    counts = sizes.byte_array_bytes
    words = [ABSENT if counts is None else sum(counts[first:last])]
    for histograms in (sizes.repetition_histograms, sizes.definition_histograms):
        if histograms is None:
            words += (ABSENT, 0)
        else:
            words += (len(items), histograms.shape[1])
            items += histograms[first:last].sum(axis=0).tolist()
    return tuple(words)
