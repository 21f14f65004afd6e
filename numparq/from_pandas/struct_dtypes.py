"""Interval and complex columns to structs of two leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import ArrowType

from .column_values import ColumnValues, drop_nulls
from .numbers import number_type

MAX_DEFINITION = 2  # definition level where neither the leaf nor the struct is null
_FLOAT_NAMES = {16: "halffloat", 32: "float", 64: "double"}
_TYPE_NAMES: dict[str, Callable[[ArrowType], str]] = {
    "int": lambda type_: f"{'' if type_.signed else 'u'}int{type_.bit_width}",
    "float": lambda type_: _FLOAT_NAMES[type_.bit_width],
    "timestamp": lambda type_: f"timestamp[{type_.unit}{', tz=' + type_.timezone if type_.timezone else ''}]",
    "duration": lambda type_: f"duration[{type_.unit}]",
}


def interval_values(array: Any, array_values: Callable[[Any], ColumnValues]) -> ColumnValues:
    """Return the values of an IntervalArray: a struct of left and right, like pandas' Arrow extension type.

    A missing interval is a null struct.
    """
    left, right = (array_values(side.array) for side in (array.left, array.right))
    metadata = json.dumps({"subtype": _TYPE_NAMES[left.type.kind](left.type), "closed": array.closed})
    arrow_type = ArrowType("struct", extension="pandas.interval", extension_metadata=metadata)
    present = ~np.asarray(array.isna())

    def leaves(start: int, stop: int) -> list[LeafValues]:
        there = present[start:stop]
        return [compact_leaf(side.read_leaves(start, stop)[0], there) for side in (left, right)]

    return ColumnValues(arrow_type, leaves, (("left", left.type), ("right", right.type)))


def compact_leaf(leaf: LeafValues, present: np.ndarray) -> LeafValues:
    """Return a flat, fixed-size leaf as a struct's leaf: definition levels, and only the values that are not null.

    `present` (bool, one a row) is False where the struct is null.
    """
    there = present if leaf.validity is None else present & leaf.validity.view(bool)
    definition = present.astype(np.uint8) + there
    size = len(leaf.values) // max(len(present), 1)  # 2 for float16, stored as bytes; else 1
    values = leaf.values if there.all() else leaf.values[np.repeat(there, size)]
    return LeafValues(values, definition_levels=definition.view(np.uint8))


def complex_values(values: np.ndarray) -> ColumnValues:
    """Return the values of a NumPy array of complex numbers: a struct of two floats, ``real`` and ``imag``.

    Parquet has no complex numbers; a NaN is a value here, never a null.
    """
    dtype = values.real.dtype
    part = number_type(dtype)

    def leaves(start: int, stop: int) -> list[LeafValues]:
        numbers = values[start:stop]
        definition = np.full(len(numbers), MAX_DEFINITION, np.uint8)
        return [
            LeafValues(np.ascontiguousarray(side, dtype.newbyteorder("=")), definition_levels=definition)
            for side in (numbers.real, numbers.imag)
        ]

    return ColumnValues(ArrowType("struct"), leaves, (("real", part), ("imag", part)))


def complex_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of complex objects as a struct of ``real`` and ``imag``; a null is a null struct."""
    model = complex_values(np.empty(0, np.complex128))

    def leaves(start: int, stop: int) -> list[LeafValues]:
        present, mask = drop_nulls(values[start:stop])
        found = complex_values(present.astype(np.complex128)).read_leaves(0, len(present))
        if mask is not None:
            for leaf in found:
                leaf.definition_levels = mask.view(np.uint8) * np.uint8(MAX_DEFINITION)
        return found

    return replace(model, read_leaves=leaves)
