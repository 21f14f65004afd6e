"""SizeStatistics: level histograms and byte counts of pages and column chunks."""

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
    """What SizeStatistics are made of, page by page; what may be left out without loss is None.

    Parameters
    ----------
    definition, repetition : int64, (num_pages, max level + 1), or None
        How often each level occurs. None of definition levels up to 1 (the null count says it all), and of
        repetition levels that are all 0.
    byte_array_bytes : int64, (num_pages,), or None
        Of BYTE_ARRAY: the bytes of the values, without nulls and without lengths.
    """

    definition: np.ndarray | None = None
    repetition: np.ndarray | None = None
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
    """Count the levels of each page, and the bytes of its values.

    Parameters
    ----------
    leaf : Leaf
        Its physical type and largest levels count.
    bounds : int64, (num_pages + 1,)
        Page p has the values (without nulls) ``bounds[p]`` to ``bounds[p + 1]``.
    level_bounds : int64, (num_pages + 1,), optional
        The same for levels.
    definition, repetition : uint8, optional
        The levels, none above the leaf's largest.
    starts, ends : int64, optional
        Of BYTE_ARRAY: where each value lies, or with `codes` each dictionary entry.
    codes : int32, optional
        The dictionary entry of each value.

    Returns
    -------
    PageSizeStatistics
    """
    found = PageSizeStatistics()
    if level_bounds is not None:
        if leaf.max_definition_level > 1 and definition is not None:
            found.definition = _histograms(definition, level_bounds, leaf.max_definition_level + 1)
        if leaf.max_repetition_level > 0 and repetition is not None:
            found.repetition = _histograms(repetition, level_bounds, leaf.max_repetition_level + 1)
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
    """Make the SizeStatistics of a column chunk.

    Parameters
    ----------
    sizes : PageSizeStatistics
        Those of its pages.

    Returns
    -------
    dict or None
        By the field names of the IDL; None where all fields may be left out.
    """
    fields = {
        "unencoded_byte_array_data_bytes": sizes.byte_array_bytes,
        "repetition_level_histogram": sizes.repetition,
        "definition_level_histogram": sizes.definition,
    }
    return {name: pages.sum(axis=0).tolist() for name, pages in fields.items() if pages is not None} or None
