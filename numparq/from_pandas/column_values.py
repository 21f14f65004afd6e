"""Values of a column as leaf values by row ranges, and the columns built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from numparq.column.leaf_values import JoinableRows, LeafValues, SourceColumn
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.format.schema_node import SchemaNode
from numparq.types.parquet_type import parquet_type

Convert = Callable[[np.ndarray], LeafValues]
LeafSlicer = Callable[[int, int], list[LeafValues]]
# Returns the leaf values of objects, nulls included, by a kernel; None if it does not know all of them.
ObjectReader = Callable[[np.ndarray], LeafValues | None]

_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Values of a column, without its name.

    Attributes
    ----------
    read_leaves : callable
        Returns the leaf values of rows `start` to `stop` (exclusive), as `SourceColumn.read_leaves` does.
    children : tuple of (str, ArrowType)
        Names and types of the leaves of a struct; empty for a flat column.
    """

    type: ArrowType
    read_leaves: LeafSlicer
    children: tuple[tuple[str, ArrowType], ...] = ()
    joinable: JoinableRows | None = None

    def node(self, name: str) -> SchemaNode:
        """Return the schema node of the column under a name."""
        if self.children:
            return SchemaNode(
                name,
                children=tuple(ColumnValues(child, self.read_leaves).node(label) for label, child in self.children),
            )
        physical, length, logical = parquet_type(self.type)
        return SchemaNode(name, physical=physical, type_length=length, logical=logical)

    def field(self, name: str) -> ArrowField:
        """Return the Arrow field of the column under a name."""
        return ArrowField(name, self.type, tuple(ArrowField(label, child) for label, child in self.children))

    def column(self, name: str, node: SchemaNode | None = None, field: ArrowField | None = None) -> SourceColumn:
        """Return the column of the file; `node` and `field` override those of the values, which must fit them."""
        return SourceColumn(node or self.node(name), field or self.field(name), self.read_leaves, self.joinable)


def flat_values(arrow_type: ArrowType, slice_rows: Callable[[int, int], np.ndarray], convert: Convert) -> ColumnValues:
    """Return the values of one leaf: `slice_rows` returns the array of rows, and `convert` its leaf values."""
    return ColumnValues(arrow_type, lambda start, stop: [convert(slice_rows(start, stop))])


def sliced_values(arrow_type: ArrowType, values: np.ndarray, convert: Convert) -> ColumnValues:
    """Return the values of one leaf that lie in an array; `convert` returns the leaf values of a slice of it."""
    joinable = JoinableRows(
        (convert, values.dtype),
        lambda start, stop: [values[start:stop]],
        lambda parts: convert(np.concatenate(parts)),
    )
    return ColumnValues(arrow_type, lambda start, stop: [convert(values[start:stop])], (), joinable)


def native_contiguous(values: np.ndarray) -> np.ndarray:
    """Return an array as a contiguous one of native byte order; itself if it is one."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def validity_bytes(present: np.ndarray) -> np.ndarray | None:
    """Return a bool array, False at nulls, as validity bytes; None if there are no nulls."""
    return None if present.all() else present.view(np.uint8)


class NestedValuesError(Exception):
    """The values are nested and need a nested column."""


def drop_nulls(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the objects that are not null (None, NaN, NaT, NA), and a mask of them; the mask is None if all are."""
    missing = pd.isna(values)
    if not missing.any():
        return values, None
    return values[~missing], ~missing


def flat_object_values(
    arrow_type: ArrowType,
    values: np.ndarray,
    convert: Callable[[np.ndarray], np.ndarray],
    width: int = 0,
    read: ObjectReader | None = None,
) -> ColumnValues:
    """Return the values of a flat column of objects, converted when their rows are read.

    `read` is tried first. `convert` gets objects without nulls; `width` is the bytes of a value if it returns bytes,
    else 0.
    """

    def leaves(start: int, stop: int) -> list[LeafValues]:
        known = None if read is None else read(values[start:stop])
        if known is not None:
            return [known]
        present, mask = drop_nulls(values[start:stop])
        found = convert(present)
        if mask is None:
            return [LeafValues(found)]
        if width:
            spread = np.zeros((stop - start, width), np.uint8)
            spread[mask] = found.reshape(-1, width)
            return [LeafValues(spread.reshape(-1), validity=mask.view(np.uint8))]
        out = np.zeros(stop - start, found.dtype)
        out[mask] = found
        return [LeafValues(out, validity=mask.view(np.uint8))]

    return ColumnValues(arrow_type, leaves)


def can_read_all(values: np.ndarray, read: ObjectReader) -> bool:
    """Whether a reader knows all objects."""
    return all(read(part) is not None for part in _chunks(values))


def present_chunks(values: np.ndarray) -> Iterable[np.ndarray]:
    """Yield the objects that are not null, a chunk of rows at a time."""
    return (drop_nulls(part)[0] for part in _chunks(values))


def _chunks(values: np.ndarray) -> Iterable[np.ndarray]:
    return (values[start : start + _CHUNK_ROWS] for start in range(0, len(values), _CHUNK_ROWS))
