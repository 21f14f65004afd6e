"""The page index of a column chunk, and its size statistics (PageIndex.md, SizeStatistics in parquet.thrift)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .kernels import statistics_kernels
from .schema import BYTE_ARRAY, Leaf
from .statistics import DEFAULT_LENGTH, Order, PageBounds, truncate_max, truncate_min

UNORDERED, ASCENDING, DESCENDING = range(3)  # BoundaryOrder
_EMPTY4 = np.empty(0, np.int32)

__all__ = ["ASCENDING", "DESCENDING", "UNORDERED", "PageSizes", "boundary_order", "column_index", "offset_index",
           "page_sizes", "size_statistics"]  # fmt: skip


@dataclass(slots=True)
class PageSizes:
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


def page_sizes(
    leaf: Leaf,
    bounds: np.ndarray,
    level_bounds: np.ndarray | None = None,
    *,
    definition: np.ndarray | None = None,
    repetition: np.ndarray | None = None,
    starts: np.ndarray | None = None,
    ends: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> PageSizes:
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
    PageSizes
    """
    found = PageSizes()
    if level_bounds is not None:
        if leaf.max_definition_level > 1 and definition is not None:
            found.definition = _histograms(definition, level_bounds, leaf.max_definition_level + 1)
        if leaf.max_repetition_level > 0 and repetition is not None:
            found.repetition = _histograms(repetition, level_bounds, leaf.max_repetition_level + 1)
    if leaf.physical == BYTE_ARRAY and starts is not None and ends is not None:
        found.byte_array_bytes = np.empty(len(bounds) - 1, np.int64)
        coded = (_EMPTY4, 0) if codes is None else (codes, len(starts))
        statistics_kernels.sum_lengths(starts, ends, *coded, bounds, len(bounds) - 1, found.byte_array_bytes)
    return found


def _histograms(levels: np.ndarray, bounds: np.ndarray, num_levels: int) -> np.ndarray:
    counts = np.zeros((len(bounds) - 1, num_levels), np.int64)
    statistics_kernels.count_levels(levels, bounds, len(bounds) - 1, num_levels, counts.reshape(-1))
    return counts


def size_statistics(sizes: PageSizes) -> dict[str, Any] | None:
    """Make the SizeStatistics of a column chunk.

    Parameters
    ----------
    sizes : PageSizes
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


def offset_index(
    offsets: Sequence[int],
    compressed_page_sizes: Sequence[int],
    first_row_indexes: Sequence[int],
    sizes: PageSizes | None = None,
) -> dict[str, Any]:
    """Make the OffsetIndex of a column chunk.

    Parameters
    ----------
    offsets : sequence of int
        Where the header of each data page begins in the file.
    compressed_page_sizes : sequence of int
        Bytes of each data page, its header counted.
    first_row_indexes : sequence of int
        The first row of each data page, counted within the row group.
    sizes : PageSizes, optional
        Those of its pages.

    Returns
    -------
    dict
        By the field names of the IDL.
    """
    locations = zip(offsets, compressed_page_sizes, first_row_indexes, strict=True)
    found: dict[str, Any] = {
        "page_locations": [
            {"offset": int(offset), "compressed_page_size": int(size), "first_row_index": int(row)}
            for offset, size, row in locations
        ]
    }
    if sizes is not None and sizes.byte_array_bytes is not None:
        found["unencoded_byte_array_data_bytes"] = sizes.byte_array_bytes.tolist()
    return found


def column_index(
    pages: PageBounds,
    null_counts: Sequence[int],
    sizes: PageSizes | None = None,
    *,
    length: int = DEFAULT_LENGTH,
) -> dict[str, Any] | None:
    """Make the ColumnIndex of a column chunk.

    Parameters
    ----------
    pages : PageBounds
        The bounds of its pages.
    null_counts : sequence of int
        The nulls of each page.
    sizes : PageSizes, optional
        Those of its pages.
    length : int
        Bytes above which bounds are cut, as in `truncate_min`.

    Returns
    -------
    dict or None
        By the field names of the IDL. None where there can be none: the type has no order, a page has only NaNs under
        the order of the type, or a bound that had to be cut has none that is larger.
    """
    if pages.order.kind == "none":
        return None
    null_pages = [not count for count in pages.num_values]
    lows = [_bound(low, length, pages.order, truncate_min) for low in pages.min_values]
    highs = [_bound(high, length, pages.order, truncate_max) for high in pages.max_values]
    if any(
        (low is None or high is None) and not empty for low, high, empty in zip(lows, highs, null_pages, strict=True)
    ):
        return None
    found: dict[str, Any] = {
        "null_pages": null_pages,
        "min_values": [low or b"" for low in lows],
        "max_values": [high or b"" for high in highs],
        "boundary_order": boundary_order(
            pages.order, [low for low in lows if low is not None], [high for high in highs if high is not None]
        ),
        "null_counts": [int(count) for count in null_counts],
    }
    if sizes is not None:
        for name, counts in (("repetition", sizes.repetition), ("definition", sizes.definition)):
            if counts is not None:
                found[f"{name}_level_histograms"] = counts.reshape(-1).tolist()
    if pages.nan_counts is not None:
        found["nan_counts"] = list(pages.nan_counts)
    return found


def _bound(value: bytes | None, length: int, order: Order, truncate: Any) -> bytes | None:
    return None if value is None else truncate(value, length, order)[0]


def boundary_order(order: Order, min_values: Sequence[bytes], max_values: Sequence[bytes]) -> int:
    """Say how the bounds of the pages of a chunk follow each other.

    Parameters
    ----------
    order : Order
        How they compare.
    min_values, max_values : sequence of bytes
        As they are written, without those of null pages.

    Returns
    -------
    int
        ASCENDING, also where all are equal or there are none, DESCENDING or UNORDERED.
    """
    if len(min_values) < 2 and len(max_values) < 2:
        return ASCENDING
    lows, highs = [order.key(low) for low in min_values], [order.key(high) for high in max_values]
    if all(a <= b for keys in (lows, highs) for a, b in pairwise(keys)):
        return ASCENDING
    return DESCENDING if all(a >= b for keys in (lows, highs) for a, b in pairwise(keys)) else UNORDERED
