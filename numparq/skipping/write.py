"""Write rows of a store as a part: cells become the leaf values of Spark's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from numparq.column.dense_values import PHYSICAL_DTYPES
from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.dataset.write.shared_job import SharedJob
from numparq.dataset.write.task_writer import TaskMessage
from numparq.format.key_values.spark import ROW_METADATA, VERSION
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import OPTIONAL, REPEATED
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.frame import ShreddedFrame
from numparq.types.arrow_fields import field_from_node

from .cell_types import CellType
from .indexes.definitions import BloomFilter, GapList, MinMax, PrefixList, SuffixList, ValueList
from .metadata import OBJECT_NAME, PARTITION_PREFIX, Json, StoreIndex, StoreSchema, format_store_schema
from .own_metadata import OWN_KEY, OwnMetadata
from .rows import Cell, StoreRow

_SPARK_VERSION = "3.5.0"  # any from 3.1 on says that instants are in today's calendar
_STRING = CellType("string", BYTE_ARRAY, 0, LogicalType("STRING"))
_MAX_ROWS, _MAX_BYTES = 50_000, 32 << 20  # of a part, before compression
_FILTER_TYPE = {
    "type": "udt",
    "class": "io.xskipper.metadatastore.parquet.ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT",
    "pyClass": None,
    "sqlType": "binary",
}


@dataclass(frozen=True)
class PartLayout:
    """Columns of a part: partition columns and indexes, with the types of their values.

    Attributes
    ----------
    identifier : str
        Table identifier of the dataset.
    partitions : dict of str to CellType
        Partition columns by name.
    indexes : sequence of StoreIndex
        The indexes; their types are those that Spark's schema names.
    types : sequence of CellType
        For each index, the type of its values.
    """

    identifier: str
    partitions: dict[str, CellType]
    indexes: Sequence[StoreIndex]
    types: Sequence[CellType]

    @property
    def nodes(self) -> list[SchemaNode]:
        """Schema of the part."""
        return [column.node for column in self._columns()]

    @property
    def local_times(self) -> tuple[str, ...]:
        """Columns whose INT96 hold local times."""
        return tuple(index.column for index, kind in zip(self.indexes, self.types, strict=True) if kind.is_local)

    @property
    def schema(self) -> StoreSchema:
        """Schema as Spark's JSON has it."""
        partitions = {name: kind.spark for name, kind in self.partitions.items()}
        return StoreSchema(4, self.identifier, partitions, tuple(self.indexes))

    def shred(self, rows: Sequence[StoreRow]) -> ShreddedFrame:
        """Return rows, ready to be written."""
        columns = [
            SourceColumn(column.node, field_from_node(column.node), partial(column.slice_leaves, rows))
            for column in self._columns()
        ]
        return ShreddedFrame(columns, len(rows), [column.field for column in columns])

    def _columns(self) -> list[_CellColumn]:
        columns = [_flat(OBJECT_NAME, _STRING, _object_name)]
        for name, kind in self.partitions.items():
            columns.append(_flat(PARTITION_PREFIX + name, kind, partial(_partition_value, name)))
        for position, (index, kind) in enumerate(zip(self.indexes, self.types, strict=True)):
            columns.append(_COLUMNS[index.name](index.column, kind, partial(_cell, position)))
        return columns


def cells_type(name: str, kind: CellType) -> Json:
    """Return Spark's type of the cells of an index, as JSON."""
    if name == BloomFilter.name:
        return _FILTER_TYPE
    if name in (ValueList.name, PrefixList.name, SuffixList.name):
        return {"type": "array", "elementType": kind.spark, "containsNull": True}
    fields = [{"name": bound, "type": kind.spark, "nullable": True, "metadata": {}} for bound in ("min", "max")]
    struct = {"type": "struct", "fields": fields}
    return {"type": "array", "elementType": struct, "containsNull": True} if name == GapList.name else struct


# --- columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CellColumn:
    """A column of a part, and the leaf values of rows."""

    node: SchemaNode
    leaves: Callable[[Sequence[StoreRow]], list[LeafValues]]

    def slice_leaves(self, rows: Sequence[StoreRow], start: int, stop: int) -> list[LeafValues]:
        """Return the leaf values of some of the rows."""
        return self.leaves(rows[start:stop])


def _object_name(row: StoreRow) -> bytes:
    return row.object_name.encode()


def _partition_value(name: str, row: StoreRow) -> bytes | None:
    return row.partitions.get(name)


def _cell(position: int, row: StoreRow) -> Cell:
    return row.cells[position]


_Value = Callable[[StoreRow], Any]


def _leaf(name: str, kind: CellType) -> SchemaNode:
    return SchemaNode(name, OPTIONAL, kind.physical, kind.type_length, kind.logical)


def _flat(name: str, kind: CellType, value: _Value) -> _CellColumn:
    def leaves(rows: Sequence[StoreRow]) -> list[LeafValues]:
        values = [value(row) for row in rows]
        validity = np.array([each is not None for each in values], np.uint8)
        empty = b"" if kind.physical == BYTE_ARRAY else bytes(_width(kind))
        leaf = _dense(kind, [empty if each is None else each for each in values])
        leaf.validity = None if validity.all() else validity
        return [leaf]

    return _CellColumn(_leaf(name, kind), leaves)


def _bounds(name: str, kind: CellType, value: _Value) -> _CellColumn:
    def leaves(rows: Sequence[StoreRow]) -> list[LeafValues]:
        cells = [value(row) for row in rows]
        leaf_values = []
        for side in (0, 1):
            bounds = [cell[side] for cell in cells]
            leaf = _dense(kind, [bound for bound in bounds if bound is not None])
            leaf.definition_levels = np.array([1 if bound is None else 2 for bound in bounds], np.uint8)
            leaf_values.append(leaf)
        return leaf_values

    return _CellColumn(SchemaNode(name, OPTIONAL, children=(_leaf("min", kind), _leaf("max", kind))), leaves)


def _list(name: str, kind: CellType, value: _Value) -> _CellColumn:
    def leaves(rows: Sequence[StoreRow]) -> list[LeafValues]:
        cells = [value(row) for row in rows]
        leaf = _dense(kind, [each for cell in cells for each in cell])
        leaf.definition_levels, leaf.repetition_levels = _list_levels(cells, 3)
        return [leaf]

    elements = SchemaNode("list", REPEATED, children=(_leaf("element", kind),))
    return _CellColumn(SchemaNode(name, OPTIONAL, logical=LogicalType("LIST"), children=(elements,)), leaves)


def _list_levels(cells: Sequence[Sequence[object]], deepest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the definition and repetition levels of lists without nulls."""
    counts = np.array([len(cell) for cell in cells], np.int64)
    entries = np.maximum(counts, 1)  # an empty list has one
    starts = np.cumsum(entries) - entries
    repetition = np.ones(int(entries.sum()), np.uint8)
    repetition[starts] = 0
    definition = np.full(len(repetition), deepest, np.uint8)
    definition[starts[counts == 0]] = 1
    return definition, repetition


def _intervals(name: str, kind: CellType, value: _Value) -> _CellColumn:
    def leaves(rows: Sequence[StoreRow]) -> list[LeafValues]:
        cells = [value(row) for row in rows]
        leaf_values = []
        for side in (0, 1):
            leaf = _dense(kind, [each[side] for cell in cells for each in cell])
            leaf.definition_levels, leaf.repetition_levels = _list_levels(cells, 4)
            leaf_values.append(leaf)
        return leaf_values

    struct = SchemaNode("element", OPTIONAL, children=(_leaf("min", kind), _leaf("max", kind)))
    elements = SchemaNode("list", REPEATED, children=(struct,))
    return _CellColumn(SchemaNode(name, OPTIONAL, logical=LogicalType("LIST"), children=(elements,)), leaves)


def _binary(name: str, kind: CellType, value: _Value) -> _CellColumn:
    return _flat(name, CellType("binary", BYTE_ARRAY), value)


_COLUMNS: dict[str, Callable[[str, CellType, _Value], _CellColumn]] = {
    MinMax.name: _bounds,
    ValueList.name: _list,
    PrefixList.name: _list,
    SuffixList.name: _list,
    GapList.name: _intervals,
    BloomFilter.name: _binary,
}


def _width(kind: CellType) -> int:
    return kind.type_length or _WIDTHS[kind.physical]


_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}


def _dense(kind: CellType, values: Sequence[bytes]) -> LeafValues:
    """Return PLAIN values as leaf values."""
    data = np.frombuffer(b"".join(values), np.uint8)
    if kind.physical == BYTE_ARRAY:
        ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
        return LeafValues(np.concatenate([data, np.zeros(8, np.uint8)]), ends[:-1].copy(), ends[1:].copy())
    return LeafValues(data.view(PHYSICAL_DTYPES.get(kind.physical, np.uint8)))


# --- parts ------------------------------------------------------------------------------------------------------------


def divide_rows(rows: Sequence[StoreRow]) -> list[list[StoreRow]]:
    """Divide rows into parts, in the order of their object names."""
    parts: list[list[StoreRow]] = []
    num_bytes = 0
    for row in sorted(rows, key=lambda row: row.object_name):
        if not parts or len(parts[-1]) == _MAX_ROWS or num_bytes + row.num_bytes > _MAX_BYTES:
            parts.append([])
            num_bytes = 0
        parts[-1].append(row)
        num_bytes += row.num_bytes
    return parts


def write_part(
    job: SharedJob, number: int, layout: PartLayout, rows: Sequence[StoreRow], dataset: OwnMetadata
) -> TaskMessage:
    """Stage a part with some rows; `dataset` has what is known of all files."""
    own = OwnMetadata.from_records(dataset, layout.local_times, [row.columns for row in rows])
    keys = {ROW_METADATA: format_store_schema(layout.schema), VERSION: _SPARK_VERSION, OWN_KEY: own.encode()}
    writer = job.task(f"{number:05}", key_value_metadata=keys)
    with writer:
        writer.write_shredded(layout.shred(rows))
    assert writer.message is not None
    return writer.message
