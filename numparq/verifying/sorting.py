"""Rows held against the order that a row group says they are in (SortingColumn in parquet.thrift)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ParquetError
from ..schema import BYTE_ARRAY, Leaf
from ..statistics import Order
from .deviations import Findings, Place
from .values import PageValues

__all__ = ["SortKeys", "check_sorting", "sort_keys"]

_INTEGERS = {("signed", 4): "i4", ("signed", 8): "i8", ("unsigned", 4): "u4", ("unsigned", 8): "u8",
             ("boolean", 1): "u1"}  # fmt: skip
_FLOATS = {2: "f2", 4: "f4", 8: "f8"}


class SortKeys:
    """Gathers what the rows of a sorting column compare by, page by page.

    Parameters
    ----------
    leaf : Leaf
        The column, which is not repeated.
    order : Order
        How its values compare.
    """

    def __init__(self, leaf: Leaf, order: Order) -> None:
        self._leaf = leaf
        self._order = order
        self._present: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []

    def __call__(self, page: PageValues) -> None:
        """Take the values of a page."""
        keys = self._of_values(page)
        if page.codes is not None:
            keys = keys[page.codes]
        most = self._leaf.max_definition_level
        present = np.ones(page.num_entries, bool) if page.definition is None else page.definition == most
        self._present.append(present)
        self._keys.append(keys)

    def _of_values(self, page: PageValues) -> np.ndarray:
        kind, width = self._order.kind, self._order.width
        if (kind, width) in _INTEGERS:
            return page.values.view(_INTEGERS[kind, width])
        if kind == "float":
            return page.values.view(_FLOATS[width])
        if self._leaf.physical == BYTE_ARRAY and page.starts is not None and page.ends is not None:
            places = zip(page.starts.tolist(), page.ends.tolist(), strict=True)
            items = [page.values[start:end].tobytes() for start, end in places]
        else:
            data = page.values.tobytes()
            items = [data[place : place + width] for place in range(0, len(data), width)] if width else []
        keys = np.empty(len(items), object)
        keys[:] = [self._order.key(item) for item in items]
        return keys

    def ranks(self, descending: bool, nulls_first: bool) -> tuple[np.ndarray, np.ndarray]:
        """Give, row by row, what comes first (nulls or values), and the places of values in the order asked for."""
        present = np.concatenate(self._present) if self._present else np.empty(0, bool)
        values = np.concatenate(self._keys) if self._keys else np.empty(0, np.int64)
        _, places = np.unique(values, return_inverse=True)  # NaNs are one, and the largest
        rank = np.zeros(len(present), np.int64)
        rank[present] = -places if descending else places
        return np.where(present, int(nulls_first), int(not nulls_first)), rank


def sort_keys(
    group: dict[str, Any], leaves: list[Leaf | None], orders: list[Order], findings: Findings, place: Place
) -> dict[int, SortKeys]:
    """Give what gathers the keys of each sorting column of a row group, by the ordinals of the leaves."""
    found: dict[int, SortKeys] = {}
    for column in group.get("sorting_columns") or ():
        number = column.get("column_idx", -1)
        if not 0 <= number < len(leaves):
            findings.add("sorting-column", f"the row group is sorted by column {number}, which there is not", place)
            return {}
        leaf = leaves[number]
        if leaf is None or leaf.max_repetition_level or orders[number].kind in ("none", "int96"):
            return found  # what comes behind decides only between rows that are equal in it
        found[number] = SortKeys(leaf, orders[number])
    return found


def check_sorting(group: dict[str, Any], keys: dict[int, SortKeys], findings: Findings, place: Place) -> None:
    """Check that the rows are in the order that the row group says, once all pages have been taken."""
    columns = [column for column in group.get("sorting_columns") or () if column.get("column_idx") in keys]
    parts: list[np.ndarray] = []
    try:
        for column in columns:
            parts += keys[column["column_idx"]].ranks(column.get("descending", False), column.get("nulls_first", False))
    except (MemoryError, ParquetError):
        findings.add("not-checked", "there is not enough memory to check the order of the rows", place)
        return
    if not parts or len({len(part) for part in parts}) > 1 or len(parts[0]) < 2:
        return  # of a column, not all pages could be decoded
    less, equal = np.zeros(len(parts[0]) - 1, bool), np.ones(len(parts[0]) - 1, bool)
    for part in parts:
        less |= equal & (part[1:] < part[:-1])
        equal &= part[1:] == part[:-1]
    if less.any():
        row = int(np.argmax(less)) + 1
        findings.add("sorting-rows", f"the row group is called sorted, and row {row:,} of it comes before the row in "
                                     f"front of it ({int(less.sum()):,} such rows)", place)  # fmt: skip
