"""Values of leaf columns on their way to a file: the interface between conversion and encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numparq.format.schema_node import SchemaNode

__all__ = ["LeafValues", "SourceColumn"]


@dataclass(slots=True)
class LeafValues:
    """The values of one leaf in a range of rows.

    Parameters
    ----------
    values : np.ndarray
        C-contiguous and one-dimensional. By physical type: BOOLEAN uint8 (0 or 1), INT32 int32, INT64 int64, FLOAT
        float32, DOUBLE float64, INT96 and FIXED_LEN_BYTE_ARRAY uint8, value after value as stored, BYTE_ARRAY uint8,
        cut up by `starts` and `ends`. A float16 is FIXED_LEN_BYTE_ARRAY of length 2.
    starts, ends : int64, or None
        Of BYTE_ARRAY: value i is ``values[starts[i]:ends[i]]``.
    validity : uint8, or None
        1 where there is a value; it has an item for every row, and so have the values, whatever stands for a null.
        None where there are no nulls.
    definition, repetition : uint8, or None
        The levels of a leaf that is nested, or is so by its schema; the values are then those that there are, without
        placeholders, and `validity` is None. `repetition` is None where its maximum is 0.
    codes : int32, or None
        Of a column that is dictionary-encoded already (Categorical, Arrow dictionaries): for each row (or, with
        levels, each value that there is) the index of its value in `values`; what it is at a null does not matter.
    keep_dictionary : bool
        Whether all of `values` are to be in the file, however large a dictionary they make: they are the categories.
    """

    values: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    validity: np.ndarray | None = None
    definition: np.ndarray | None = None
    repetition: np.ndarray | None = None
    codes: np.ndarray | None = None
    keep_dictionary: bool = False


class SourceColumn(Protocol):
    """A top-level column that can be written: its schema, and its values by ranges of rows.

    Attributes
    ----------
    node : SchemaNode
        Its schema.
    """

    node: SchemaNode

    def leaves(self, start: int, stop: int) -> list[LeafValues]:
        """Give the values of each of its leaves, in the order of the schema, for rows `start` to `stop`.

        It may be called from any thread, several at once, in any order, and more than once for the same rows. What
        it gives may be a view of the caller's data, and is not written to.
        """
        ...
