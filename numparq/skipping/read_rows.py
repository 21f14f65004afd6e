"""Read the rows of a part back, to write them again: compaction, and upgrade to the latest version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from numparq.errors import ParquetError, UnsupportedError
from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.physical_type import BYTE_ARRAY, INT96
from numparq.format.schema import Leaf

from .cell_types import CellType, cell_type, int96
from .indexes.definitions import BloomFilter, GapList, MinMax, PrefixList, SuffixList, ValueList
from .java_stream import renew_header
from .metadata import PARTITION_PREFIX, StoreIndex
from .part import PartRows, StorePart
from .rows import Cell, StoreRow

_LIST_LEVEL = 1


def read_rows(part: StorePart, indexes: Sequence[StoreIndex]) -> tuple[list[StoreRow], list[CellType | None]]:
    """Return the rows of a part with the cells of these indexes, and the type of each index's values.

    A row whose cells say nothing is left out. Raises ParquetError if the part lacks an index or cannot be read.
    """
    known = {(index.name, index.columns): index for index in part.schema.indexes}
    records = [] if part.own is None else part.own.records()
    rows: list[StoreRow] = []
    types: list[CellType | None] = [None] * len(indexes)
    for group in part.row_groups:
        columns: list[list[Cell]] = []
        for position, target in enumerate(indexes):
            index = known.get((target.name, target.columns))
            if index is None:
                raise UnsupportedError(f"the part has no index {target}", file=part.name)
            types[position] = value_type(part, index)
            columns.append(_READERS[index.name](group, index))
        partitions = {name: _flat(group, PARTITION_PREFIX + name) for name in part.schema.partitions}
        for number, name in enumerate(group.object_names):
            cells = [column[number] for column in columns]
            if name is None or any(cell is _NOTHING for cell in cells):
                continue
            values = {key: column[number] for key, column in partitions.items()}
            row = group.first_row + number
            rows.append(StoreRow(name, values, cells, records[row] if row < len(records) else None))
    return rows, types


def value_type(part: StorePart, index: StoreIndex) -> CellType | None:
    """Return the type of the values of an index in a part; None if it does not show, as in Bloom filters."""
    leaves = part.leaves(index.column)
    if index.name == BloomFilter.name or not leaves:
        return None
    is_local = part.own is not None and index.column in part.own.local_times
    return replace(cell_type(leaves[0])[0], is_local=is_local)


_NOTHING: Cell = []  # by identity: a cell that says nothing


def _stored_values(leaf: Leaf, vector: ColumnVector) -> list[bytes]:
    """Return the PLAIN values of a vector, nulls among them as anything."""
    if leaf.physical == BYTE_ARRAY:
        starts, ends = vector.string_bounds()
        data = vector.values.tobytes()
        return [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    if leaf.physical == INT96:
        worth = {"ns": 1, "us": 1000}[np.datetime_data(vector.values.dtype)[0]]
        return [int96(int(value) * worth) for value in vector.values.view(np.int64).tolist()]
    values = np.ascontiguousarray(vector.values)
    width = (leaf.type_length or 1) if values.dtype == np.uint8 else values.dtype.itemsize
    data = values.tobytes()
    return [data[at : at + width] for at in range(0, len(data), width)]


def _column(group: PartRows, leaf: Leaf) -> list[bytes | None]:
    """Return the values of a leaf that is not repeated, None for nulls."""
    if leaf.rebase is not None:
        raise UnsupportedError("cells in Spark's legacy calendar have to be built again", column=leaf.name)
    vector = group.column(leaf)
    values = _stored_values(leaf, vector)
    if vector.codes is not None:
        return [values[code] if code >= 0 else None for code in vector.codes.tolist()]
    if vector.validity is None:
        return list(values)
    pairs = zip(values, vector.validity.tolist(), strict=False)
    return [value if is_there else None for value, is_there in pairs]


def _flat(group: PartRows, column: str) -> list[bytes | None]:
    (leaf,) = group.part.leaves(column)
    return _column(group, leaf)


def _bounds(group: PartRows, index: StoreIndex) -> list[Cell]:
    leaves = {leaf.path[1:]: leaf for leaf in group.part.leaves(index.column)}
    low, high = leaves[("min",)], leaves[("max",)]
    there = group.column(low).levels.get(1)
    is_there = [True] * group.num_rows if there is None else np.asarray(there, np.bool_).tolist()
    pairs = zip(_column(group, low), _column(group, high), is_there, strict=True)
    cells: list[Cell] = [
        (first, last) if known and (first is None) == (last is None) else _NOTHING for first, last, known in pairs
    ]
    return cells


def _lists(group: PartRows, index: StoreIndex) -> list[Cell]:
    (leaf,) = group.part.leaves(index.column)
    if leaf.rebase is not None:
        raise UnsupportedError("cells in Spark's legacy calendar have to be built again", column=leaf.name)
    vector = group.column(leaf)
    values = _stored_values(leaf, vector)
    assert vector.list_offsets is not None
    offsets = vector.list_offsets.tolist()
    there = vector.levels.get(_LIST_LEVEL)
    is_there = [True] * group.num_rows if there is None else np.asarray(there, np.bool_).tolist()
    cells: list[Cell] = [
        values[offsets[row] : offsets[row + 1]] if is_there[row] else _NOTHING for row in range(group.num_rows)
    ]
    return cells


def _filters(group: PartRows, index: StoreIndex) -> list[Cell]:
    cells: list[Cell] = [None if cell is None else renew_header(cell) for cell in _flat(group, index.column)]
    return cells


def _intervals(group: PartRows, index: StoreIndex) -> list[Cell]:
    sides = []
    for leaf in group.part.leaves(index.column):
        vector = group.column(leaf)
        assert vector.list_offsets is not None
        sides.append((_stored_values(leaf, vector), vector.list_offsets.tolist()))
    (lows, offsets), (highs, others) = sides
    if offsets != others:
        raise UnsupportedError("the intervals have not two ends each", file=group.part.name)
    pairs = list(zip(lows, highs, strict=False))
    return [pairs[offsets[row] : offsets[row + 1]] for row in range(group.num_rows)]


_READERS = {
    MinMax.name: _bounds,
    ValueList.name: _lists,
    PrefixList.name: _lists,
    SuffixList.name: _lists,
    BloomFilter.name: _filters,
    GapList.name: _intervals,
}


def can_be_read(part: StorePart) -> bool:
    """Whether the cells of a part can be written again, instead of built again from the files."""
    if part.schema.version == 0 or part.is_from_footers:
        return False
    try:
        return all(index.name in _READERS for index in part.schema.indexes)
    except ParquetError:
        return False
