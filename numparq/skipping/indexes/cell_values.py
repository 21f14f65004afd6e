"""Values in cells, as keys compare them: INT96 as int64, a flat leaf, and rows that an old calendar makes doubtful."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.sort_keys import KeyDomain, key_domain
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import INT64, INT96
from numparq.format.schema import Leaf

_UNITS = {"ns": "NANOS", "us": "MICROS"}


@dataclass(frozen=True)
class CellValues:
    """Values of a leaf of a store.

    Attributes
    ----------
    leaf : Leaf
        Flat leaf to bind predicates to.
    vector : ColumnVector
        The values; of INT96 as int64.
    is_doubtful : bool array or None
        Values that a legacy calendar would move; None if there are none.
    """

    leaf: Leaf
    vector: ColumnVector
    is_doubtful: np.ndarray | None = None

    @property
    def domain(self) -> KeyDomain:
        """Sort keys of the values."""
        return key_domain(self.leaf)


def cell_values(leaf: Leaf, vector: ColumnVector, is_local: bool = False) -> CellValues:
    """Return decoded values of a leaf of a store; `is_local`: INT96 hold local times."""
    physical, logical, values = leaf.physical, leaf.logical, vector.values
    if physical == INT96:
        unit = np.datetime_data(values.dtype)[0]
        physical, logical = INT64, LogicalType("TIMESTAMP", unit=_UNITS[unit], utc=not is_local)
        values = values.view(np.int64)
    flat = Leaf(leaf.index, leaf.column, ("value",), physical, leaf.type_length, logical, 1, 0)
    doubtful: np.ndarray | None = None
    if leaf.rebase is not None:
        unit = np.datetime_data(vector.values.dtype)[0] if vector.values.dtype.kind == "M" else leaf.rebase.unit
        end = int(leaf.rebase.table.starts[-1]) * leaf.rebase.per_step(unit)
        moved = values.view(f"i{values.dtype.itemsize}") < end
        doubtful = moved if moved.any() else None
    return CellValues(flat, replace(vector, values=values), doubtful)
