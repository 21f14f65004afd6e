"""What the footer says of the values of column chunks, for many row groups at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..errors import ParquetError
from ..metadata.layout import Layout, layout
from ..opened import OpenedFile
from ..schema import BYTE_ARRAY, Leaf
from ..statistics.distrust import MIN_MAX, NULL_COUNT, distrusted
from ..statistics.order import Order
from ..statistics.reading import declared_orders, deprecated_order, may_have_nans
from .runs import UNKNOWN, Runs, counts

__all__ = ["chunk_runs", "order_in"]

_STATISTICS = "meta_data.statistics"


@lru_cache(maxsize=1)
def _wanted() -> Layout:
    return layout("ColumnChunk", "meta_data.num_values", _STATISTICS)


def chunk_runs(file: OpenedFile, leaf: Leaf, row_groups: Sequence[int]) -> Runs:
    """Take from the statistics of a column's chunks what can be trusted.

    Parameters
    ----------
    file : OpenedFile
        The file; nothing but its footer is looked at.
    leaf : Leaf
        The column.
    row_groups : sequence of int
        Ordinals.

    Returns
    -------
    Runs
        A run a row group; the same for all files that have the same footer.
    """
    return file.footer.kept.get(("runs", leaf, *row_groups), lambda: _runs_of(file, leaf, row_groups))


def _runs_of(file: OpenedFile, leaf: Leaf, row_groups: Sequence[int]) -> Runs:
    wanted, wrong = _wanted(), distrusted(file.footer.created_by, leaf)
    try:
        words = file.footer.chunks.words(wanted, row_groups, [leaf.index] * len(row_groups))
    except ParquetError:
        return Runs.unknown(np.full(len(row_groups), UNKNOWN, np.int64))

    def number(path: str) -> np.ndarray:
        return words[:, wanted.slot(path)]

    def bounds(name: str, old: str) -> np.ndarray:
        slot = wanted.slot(f"{_STATISTICS}.{name}")
        found = np.full((len(words), 2), UNKNOWN) if MIN_MAX in wrong else words[:, slot : slot + 2]
        if not is_old.any():
            return found
        slot = wanted.slot(f"{_STATISTICS}.{old}")
        older = words[:, slot : slot + 2] if old_order.kind != "none" else UNKNOWN
        return np.where(is_old[:, None], older, found)

    num_values, unknown = number("meta_data.num_values"), np.full(len(words), UNKNOWN)
    order = order_in(file, leaf)
    old_order = deprecated_order(leaf, order, file.footer.created_by)  # the same, if both mean anything
    is_old = (number(f"{_STATISTICS}.min_value") < 0) & (number(f"{_STATISTICS}.max_value") < 0)
    is_old |= order.kind == "none"
    low, high = (number(f"{_STATISTICS}.is_{which}_value_exact") for which in ("min", "max"))
    is_exact = (low == 1) & (high == 1) if leaf.physical == BYTE_ARRAY else (low != 0) & (high != 0)
    return Runs(
        file.footer.chunks.data,
        bounds("min_value", "min"),
        bounds("max_value", "max"),
        num_values,
        unknown if NULL_COUNT in wrong else counts(number(f"{_STATISTICS}.null_count"), num_values),
        counts(number(f"{_STATISTICS}.nan_count"), num_values) if may_have_nans(leaf) else unknown,
        np.zeros(len(words), np.bool_),
        is_exact,
        old_order if order.kind == "none" else order,
    )


def order_in(file: OpenedFile, leaf: Leaf) -> Order:
    """Give the order of a column as the file declares it; `NO_ORDER` where bounds mean nothing but deprecated ones."""
    return file.footer.kept.get(("order", leaf), lambda: _order_in(file, leaf))


def _order_in(file: OpenedFile, leaf: Leaf) -> Order:
    names = file.footer.column_orders
    return declared_orders([leaf], None if names is None else [names[leaf.index]])[0]
