"""Dense values of a leaf: values without null slots, with levels or validity; the input of encoders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.errors import SchemaError
from numparq.format.schema import Leaf
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from numparq.kernels.kernel_groups import writing_kernels
from numparq.util.pluralize import pluralize

from .leaf_values import LeafValues

PHYSICAL_DTYPES: dict[int, np.dtype] = {
    BOOLEAN: np.dtype("u1"),
    INT32: np.dtype("i4"),
    INT64: np.dtype("i8"),
    FLOAT: np.dtype("f4"),
    DOUBLE: np.dtype("f8"),
    INT96: np.dtype("u1"),
    FIXED_LEN_BYTE_ARRAY: np.dtype("u1"),
    BYTE_ARRAY: np.dtype("u1"),
}


@dataclass(slots=True)
class DenseValues:
    """Contiguous values without null slots.

    Attributes
    ----------
    width : int
        Bytes of a value in memory; 0 for BYTE_ARRAY.
    data : numpy.ndarray
        As `LeafValues.values`.
    starts, ends : numpy.ndarray or None
        int64, only for BYTE_ARRAY: bounds of each value in `data`, ends exclusive.
    """

    physical: int
    width: int
    count: int
    data: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None

    @property
    def raw(self) -> np.ndarray:
        """View of the data as bytes."""
        return self.data.view("u1")

    @property
    def plain_size(self) -> int:
        """Bytes of the values in PLAIN encoding."""
        if self.starts is None or self.ends is None:
            return (self.count + 7) // 8 if self.physical == BOOLEAN else self.count * self.width
        return int((self.ends - self.starts).sum()) + 4 * self.count

    def slice(self, first: int, last: int) -> DenseValues:
        """Return values `first` to `last` (exclusive), as views."""
        if self.starts is not None and self.ends is not None:
            starts, ends = self.starts[first:last], self.ends[first:last]
            return DenseValues(self.physical, 0, last - first, self.data, starts, ends)
        items = self.width // self.data.itemsize
        return DenseValues(self.physical, self.width, last - first, self.data[first * items : last * items])


@dataclass(slots=True)
class DenseLeaf:
    """Dense values of a leaf and its level entries: one for each value, null, or empty or null list.

    Attributes
    ----------
    values : DenseValues
        The values; if `codes` is set, the dictionary's.
    codes : numpy.ndarray or None
        int32, the dictionary index of each value.
    num_values : int
        Values (codes, if set); nulls do not count.
    num_entries : int
        Level entries: `num_values` of page headers.
    present : numpy.ndarray or None
        uint8, whether an entry has a value; None if all have.
    definition, repetition : numpy.ndarray or None
        uint8 levels; None if all definition levels are at their maximum, or all repetition levels 0.
    """

    values: DenseValues
    codes: np.ndarray | None
    num_values: int
    num_entries: int
    num_rows: int
    present: np.ndarray | None = None
    definition: np.ndarray | None = None
    repetition: np.ndarray | None = None


def value_width(leaf: Leaf) -> int:
    """Return the bytes of a value in memory; 0 for BYTE_ARRAY."""
    if leaf.physical == BYTE_ARRAY:
        return 0
    if leaf.physical in (FIXED_LEN_BYTE_ARRAY, INT96):
        return leaf.type_length or 12
    return int(PHYSICAL_DTYPES[leaf.physical].itemsize)


def drop_nulls(leaf: Leaf, leaf_values: LeafValues, num_rows: int) -> DenseLeaf:
    """Return the values of `num_rows` rows without null slots.

    Raises SchemaError if a REQUIRED leaf has nulls.
    """
    width = value_width(leaf)
    count = _count(leaf_values, width)
    values = DenseValues(leaf.physical, width, count, leaf_values.values, leaf_values.starts, leaf_values.ends)
    if leaf_values.definition_levels is not None:
        definition = leaf_values.definition_levels
        present = (definition == leaf.max_definition_level).view("u1")
        num_values = count if leaf_values.codes is None else len(leaf_values.codes)
        return DenseLeaf(
            values,
            leaf_values.codes,
            num_values,
            len(definition),
            num_rows,
            None if num_values == len(definition) else present,
            definition,
            leaf_values.repetition_levels,
        )
    if leaf_values.validity is None:
        return DenseLeaf(values, leaf_values.codes, num_rows, num_rows, num_rows)
    kept = writing_kernels.count_valid_by_page(leaf_values.validity, np.array([0, num_rows]), 1, np.empty(1, np.int64))
    if kept == num_rows:
        return DenseLeaf(values, leaf_values.codes, num_rows, num_rows, num_rows)
    if not leaf.max_definition_level:
        raise SchemaError(f"the column is required, but has {pluralize(num_rows - kept, 'null')}", column=leaf.name)
    if leaf_values.codes is not None:
        codes = np.empty(num_rows, np.int32)
        writing_kernels.drop_nulls_i4(leaf_values.codes, leaf_values.validity, num_rows, codes)
        return DenseLeaf(values, codes[:kept], kept, num_rows, num_rows, leaf_values.validity, leaf_values.validity)
    return DenseLeaf(
        _compact(values, leaf_values.validity, kept),
        None,
        kept,
        num_rows,
        num_rows,
        leaf_values.validity,
        leaf_values.validity,
    )


def _count(given: LeafValues, width: int) -> int:
    if given.starts is not None:
        return len(given.starts)
    return given.values.nbytes // max(width, 1)


def _compact(values: DenseValues, validity: np.ndarray, kept: int) -> DenseValues:
    """Return `values` without null slots; kernels need outputs with room for all of them."""
    count = values.count
    if values.starts is not None and values.ends is not None:
        starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
        writing_kernels.drop_nulls_i8(values.starts, validity, count, starts)
        writing_kernels.drop_nulls_i8(values.ends, validity, count, ends)
        return DenseValues(values.physical, 0, kept, values.data, starts[:kept], ends[:kept])
    out = np.empty(len(values.data), values.data.dtype)
    writing_kernels.drop_nulls_fixed(values.raw, values.width, validity, count, out.view("u1"))
    return DenseValues(values.physical, values.width, kept, out[: kept * values.width // out.itemsize])


def gather_values(values: DenseValues, codes: np.ndarray) -> DenseValues:
    """Return the value of each code, copied from a dictionary; strings stay in its buffer."""
    count = len(codes)
    if values.starts is not None and values.ends is not None:
        starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
        writing_kernels.gather_i8(values.starts, codes, count, starts)
        writing_kernels.gather_i8(values.ends, codes, count, ends)
        return DenseValues(values.physical, 0, count, values.data, starts, ends)
    out = np.empty(count * values.width // values.data.itemsize, values.data.dtype)
    writing_kernels.gather_fixed(values.raw, values.width, codes, count, out.view("u1"))
    return DenseValues(values.physical, values.width, count, out)


def concatenate_values(one: DenseValues, other: DenseValues) -> DenseValues:
    """Return the values of both, of one type; those of strings share a buffer."""
    count = one.count + other.count
    if one.starts is not None and one.ends is not None and other.starts is not None and other.ends is not None:
        starts, ends = np.concatenate((one.starts, other.starts)), np.concatenate((one.ends, other.ends))
        return DenseValues(one.physical, 0, count, one.data, starts, ends)
    return DenseValues(one.physical, one.width, count, np.concatenate((one.data, other.data)))
