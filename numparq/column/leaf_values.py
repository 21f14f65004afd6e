"""Values of leaf columns to be written: the interface between conversion and encoding."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numparq.errors import error_context

if TYPE_CHECKING:
    from numparq.format.key_values.arrow import ArrowField
    from numparq.format.schema_node import SchemaNode


@dataclass(slots=True)
class LeafValues:
    """Values of one leaf in a range of rows.

    Attributes
    ----------
    values : numpy.ndarray
        C-contiguous, one-dimensional. BOOLEAN uint8 (0 or 1), INT32 int32, INT64 int64, FLOAT float32,
        DOUBLE float64; uint8 for INT96, FIXED_LEN_BYTE_ARRAY (float16 is one of length 2) and BYTE_ARRAY.
    starts, ends : numpy.ndarray or None
        int64, only for BYTE_ARRAY: value i is ``values[starts[i]:ends[i]]``.
    validity : numpy.ndarray or None
        uint8, one item a row, 0 for a null, whose slot in the values is ignored; None if there are no nulls.
    definition_levels, repetition_levels : numpy.ndarray or None
        uint8 levels of a leaf that the schema nests. The values then have no null slots, and `validity` is
        None. `repetition_levels` is None if its maximum is 0.
    codes : numpy.ndarray or None
        int32, of dictionary-encoded columns (Categorical, Arrow dictionary): the index into `values` for each
        row, or with levels for each value. Codes of nulls are ignored.
    keep_dictionary : bool
        Whether to write all of `values`, however large: they are the categories.
    """

    values: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    validity: np.ndarray | None = None
    definition_levels: np.ndarray | None = None
    repetition_levels: np.ndarray | None = None
    codes: np.ndarray | None = None
    keep_dictionary: bool = False


class JoinableRows(NamedTuple):
    """Rows of a flat column that can be converted together with those of other columns.

    Attributes
    ----------
    kind : hashable
        Equal for columns that one call of `convert` takes.
    slice_rows : callable
        Returns the arrays of rows `start` to `stop` (exclusive), one or more.
    convert : callable
        Returns the leaf values of such arrays, one after another, without codes and levels.
    """

    kind: Hashable
    slice_rows: Callable[[int, int], list[Any]]
    convert: Callable[[list[Any]], LeafValues]


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """Top-level column to be written.

    Attributes
    ----------
    slice_leaves : callable
        What `read_leaves` returns.
    joinable : JoinableRows or None
        None unless the column can be converted together with others.
    """

    node: SchemaNode
    field: ArrowField
    slice_leaves: Callable[[int, int], list[LeafValues]]
    joinable: JoinableRows | None = None

    def read_leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Return the values of each leaf, in schema order, for rows `start` to `stop` (exclusive).

        Called from several threads, in any order, repeatedly. The arrays may be read-only views of the caller's data.
        """
        with error_context(column=self.node.name):
            return self.slice_leaves(start, stop)

    def from_row(self, first: int) -> SourceColumn:
        """Return the column without the rows before `first`."""
        slice_leaves = self.slice_leaves
        return SourceColumn(self.node, self.field, lambda start, stop: slice_leaves(first + start, first + stop))
