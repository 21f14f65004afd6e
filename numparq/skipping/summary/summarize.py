"""Summarize the columns of a file: bounds, nulls, NaNs and distinct values over all its row groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.errors import error_context
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf

from .chunk_values import ChunkValues, empty_values
from .column_climb import ColumnClimb, SummaryNeeds, merge_sources
from .distinct_values import merge_distinct
from .value_kind import plain_value


@dataclass(frozen=True)
class Wish:
    """Needs of a leaf column: bounds, and distinct values unless they are more than `max_distinct` (None: none)."""

    bounds: bool = True
    max_distinct: int | None = None


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a leaf column in one file.

    Attributes
    ----------
    low, high : bytes or None
        PLAIN bounds; no value but NaN lies beyond. Zeros are -0.0 and 0.0. None without values other than NaN, or if
        bounds are not needed or the type has no order.
    has_values, has_nulls, has_nans : bool or None
        Whether there are values, nulls, NaNs; None if unknown. NaNs may be unused entries of dictionaries. `has_nans`
        is known if bounds are needed.
    bounds_source, values_source : str
        Farthest source that was needed: ``"footer"``, ``"dictionary"``, ``"data"``.
    values : numpy.ndarray, BinaryArray or None
        Distinct values as stored, INT96 and FIXED_LEN_BYTE_ARRAY as ``V{n}``; unused dictionary entries may be among
        them. At most one NaN; both zeros may be there. None if there are too many, or they are not needed.
    """

    low: bytes | None
    high: bytes | None
    has_values: bool | None
    has_nulls: bool | None
    has_nans: bool | None
    bounds_source: str
    values: np.ndarray | BinaryArray | None
    values_source: str


def summarize_file(file: OpenFile, wishes: Mapping[int, Wish]) -> dict[int, ColumnSummary]:
    """Return the summaries of leaf columns by ordinal; raise ParquetError if a chunk that is needed cannot be read.

    A chunk is decoded at most once, and only if neither the footer nor its dictionary is enough.
    """
    with error_context(file=file.source.name):
        return {index: _summarize(file, file.schema.leaf(index), wish) for index, wish in wishes.items()}


def _summarize(file: OpenFile, leaf: Leaf, wish: Wish) -> ColumnSummary:
    with error_context(column=leaf.name):
        column = ColumnClimb(file, leaf)
    column.drop_truncated_bounds()
    most = wish.max_distinct
    parts: list[np.ndarray | BinaryArray] = []
    for group in range(file.num_row_groups):
        collect = None if most is None else partial(ChunkValues.distinct, most=most)
        column.climb(group, SummaryNeeds(counts=False, bounds=wish.bounds, distinct=collect))
        if most is not None:
            merged = _merge(parts, column.distinct[group][0], most)
            parts = [] if merged is None else [merged]
            most = None if merged is None else most
    if most is not None and not parts:
        parts = [value for value in [empty_values(leaf).distinct(most)] if value is not None]
    present = ~column.is_empty
    bounded = present & ~column.is_all_nan
    hull = column.bounds.hull(bounded) if wish.bounds else None
    low, high = (None, None) if hull is None else (plain_value(leaf, key) for key in hull)
    return ColumnSummary(
        low,
        high,
        bool(present.any()),
        None if (column.nulls < 0).any() else bool((column.nulls > 0).any()),
        _merge_nans(column, present),
        merge_sources(column.sources),
        parts[0] if parts else None,
        merge_sources([source for _, source in column.distinct.values()]),
    )


def _merge_nans(column: ColumnClimb, present: np.ndarray) -> bool | None:
    if ((column.nans > 0) | column.has_nan_entry).any():
        return True
    return None if (column.nans[present] < 0).any() else False


def _merge(
    parts: list[np.ndarray | BinaryArray], more: np.ndarray | BinaryArray | None, most: int
) -> np.ndarray | BinaryArray | None:
    return None if more is None else merge_distinct([*parts, more], most)
