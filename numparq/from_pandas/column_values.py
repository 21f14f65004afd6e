"""Values of a column as leaf values by row ranges, and the columns built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.format.schema_node import SchemaNode
from numparq.types.parquet_type import parquet_type

Convert = Callable[[np.ndarray], LeafValues]
LeafSlicer = Callable[[int, int], list[LeafValues]]

_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column without its name.

    Parameters
    ----------
    type : ArrowType
        What they are in Arrow's terms.
    leaves : callable
        As `numparq.column.leaf_values.SourceColumn.leaves`: gives the values of rows `start` to `stop`.
    children : tuple of (str, ArrowType)
        Names and types of the leaves of a struct; empty for a flat column.
    """

    type: ArrowType
    leaves: LeafSlicer
    children: tuple[tuple[str, ArrowType], ...] = ()

    def node(self, name: str) -> SchemaNode:
        """Give the schema of the column, under a name."""
        if self.children:
            return SchemaNode(
                name, children=tuple(ColumnValues(child, self.leaves).node(label) for label, child in self.children)
            )
        physical, length, logical = parquet_type(self.type)
        return SchemaNode(name, physical=physical, type_length=length, logical=logical)

    def field(self, name: str) -> ArrowField:
        """Give the column as Arrow describes it, under a name."""
        return ArrowField(name, self.type, tuple(ArrowField(label, child) for label, child in self.children))


class FlatColumn:
    """A column of the file: a `numparq.column.leaf_values.SourceColumn`.

    Parameters
    ----------
    name : str
        Its name in the file.
    source : ColumnValues
        Its values.
    node : SchemaNode or None
        Its schema, where that is not just what the source has; the values have to fit it.
    field : ArrowField or None
        The same in Arrow's terms.

    Attributes
    ----------
    node : SchemaNode
        Its schema.
    field : ArrowField
        The same in Arrow's terms.
    """

    def __init__(
        self, name: str, source: ColumnValues, node: SchemaNode | None = None, field: ArrowField | None = None
    ) -> None:
        self.node = source.node(name) if node is None else node
        self.field = source.field(name) if field is None else field
        self._leaves = source.leaves

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Give the values of rows `start` to `stop`, as `numparq.column.leaf_values.SourceColumn.leaves` says."""
        with error_context(column=self.node.name):
            return self._leaves(start, stop)


def flat_values(arrow_type: ArrowType, slice_rows: Callable[[int, int], np.ndarray], convert: Convert) -> ColumnValues:
    """Give a source of one leaf, whose values are taken by ranges of rows and converted.

    Parameters
    ----------
    arrow_type : ArrowType
        What the values are.
    slice_rows : callable
        Gives the array of rows `start` to `stop`.
    convert : callable
        Makes the leaf's values of such an array.
    """
    return ColumnValues(arrow_type, lambda start, stop: [convert(slice_rows(start, stop))])


def row_slicer(values: np.ndarray) -> Callable[[int, int], np.ndarray]:
    """Give the function that takes rows of an array."""
    return lambda start, stop: values[start:stop]


def native_contiguous(values: np.ndarray) -> np.ndarray:
    """Give an array's values as a contiguous array of native byte order; itself where it is one."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def validity_bytes(present: np.ndarray) -> np.ndarray | None:
    """Give a bool array, False at nulls, as a validity; None where there are no nulls."""
    return None if present.all() else present.view(np.uint8)


class NestedValuesError(Exception):
    """The values have an inner structure: they are not for this module."""


def drop_nulls(values: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Leave nulls out.

    Parameters
    ----------
    values : object
        None, NaN, NaT and NA are nulls.

    Returns
    -------
    present : object
        Those that are none; the array itself, where all are.
    mask : bool or None
        True where there is a value; None where there is one everywhere.
    """
    missing = pd.isna(values)
    if not missing.any():
        return values, None
    return values[~missing], ~missing


def flat_object_values(
    arrow_type: ArrowType, values: np.ndarray, convert: Callable[[np.ndarray], np.ndarray], width: int = 0
) -> ColumnValues:
    """Give a source of objects that are converted by ranges of rows.

    Parameters
    ----------
    arrow_type : ArrowType
        What they become.
    values : object
        All of them.
    convert : callable
        Gives the array of a leaf's values, of objects none of which is null.
    width : int
        Bytes of a value, where those of the leaf are bytes.
    """

    def leaves(start: int, stop: int) -> list[LeafValues]:
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


def present_chunks(values: np.ndarray) -> Iterable[np.ndarray]:
    """Give the values that there are, some at a time."""
    for start in range(0, len(values), _CHUNK_ROWS):
        yield drop_nulls(values[start : start + _CHUNK_ROWS])[0]
