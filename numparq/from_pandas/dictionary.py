"""Dictionary-encoded columns: codes of Categoricals and Arrow dictionaries, passed on as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import DictionaryIndex

from .column_values import ColumnValues, validity_bytes

_MAX_DEFINITION = 2  # definition level of a struct's leaf where neither is null


def dictionary_values(
    slice_codes: Callable[[int, int], np.ndarray], dictionary: ColumnValues, size: int, index: DictionaryIndex
) -> ColumnValues:
    """Return the values of a dictionary-encoded column; `dictionary` has `size` entries, none of them null.

    `slice_codes` returns the codes of rows `start` to `stop` (exclusive): int32, negative at nulls.
    """
    leaves_of_codes = (
        _struct_leaves if dictionary.children else _boolean_leaves if dictionary.type.kind == "bool" else _flat_leaves
    )

    entries = cache(partial(dictionary.read_leaves, 0, size))  # converted at the first access

    def leaves(start: int, stop: int) -> list[LeafValues]:
        leaves = leaves_of_codes(slice_codes(start, stop), entries())
        for leaf in leaves:
            leaf.keep_dictionary = start == 0  # the first row group stores all categories, used or not
        return leaves

    # Structs and extension types are no dictionaries in ARROW:schema: pyarrow has no Parquet columns of such.
    plain = bool(dictionary.children or dictionary.type.extension or dictionary.type.kind == "uuid")
    arrow_type = dictionary.type if plain else replace(dictionary.type, dictionary=index)
    return ColumnValues(arrow_type, leaves, dictionary.children)


def lookup_values(slice_codes: Callable[[int, int], np.ndarray], dictionary: ColumnValues, size: int) -> ColumnValues:
    """Return values that are looked up by code when their rows are read, such as levels of a MultiIndex.

    Parameters are those of `dictionary_values`, but the column is not dictionary-encoded for readers.
    """
    entries = cache(partial(dictionary.read_leaves, 0, size))  # converted at the first access

    def leaves(start: int, stop: int) -> list[LeafValues]:
        codes = slice_codes(start, stop)
        return [_lookup_leaf(leaf, size, codes) for leaf in entries()]

    return ColumnValues(dictionary.type, leaves)


def _lookup_leaf(leaf: LeafValues, size: int, codes: np.ndarray) -> LeafValues:
    """Return the value of each code; `leaf` is flat and has `size` values."""
    present = codes >= 0
    if leaf.validity is not None:
        present &= np.take(leaf.validity, codes, mode="clip").view(bool)
    validity = validity_bytes(present)
    if leaf.starts is not None and leaf.ends is not None:
        starts, ends = (np.take(offsets, codes, mode="clip") for offsets in (leaf.starts, leaf.ends))
        return LeafValues(leaf.values, starts, ends, validity)
    items = leaf.values.reshape(size, -1)
    return LeafValues(np.take(items, codes, axis=0, mode="clip").reshape(-1), validity=validity)


def _flat_leaves(codes: np.ndarray, dictionary: list[LeafValues]) -> list[LeafValues]:
    (values,) = dictionary
    return [LeafValues(values.values, values.starts, values.ends, validity_bytes(codes >= 0), codes=codes)]


def _boolean_leaves(codes: np.ndarray, dictionary: list[LeafValues]) -> list[LeafValues]:
    """Return booleans without codes: readers do not expect a dictionary of booleans."""
    (values,) = dictionary
    table = values.values if len(values.values) else np.zeros(1, np.uint8)
    return [LeafValues(np.take(table, codes, mode="clip"), validity=validity_bytes(codes >= 0))]


def _struct_leaves(codes: np.ndarray, dictionary: list[LeafValues]) -> list[LeafValues]:
    """Return the leaves of a struct: definition levels, and codes of the rows that are not null."""
    present = codes >= 0
    definition = present.view(np.uint8) * np.uint8(_MAX_DEFINITION)
    kept = codes[present]
    return [
        LeafValues(leaf.values, leaf.starts, leaf.ends, definition_levels=definition, codes=kept) for leaf in dictionary
    ]


def categorical_values(array: Any, array_values: Callable[[Any], ColumnValues]) -> ColumnValues:
    """Return the values of a Categorical: its own codes, and all categories, used or not, as the dictionary."""
    codes = array.codes
    index = DictionaryIndex(8 * codes.dtype.itemsize, True, bool(array.ordered))
    categories = array.categories
    return dictionary_values(
        lambda start, stop: codes[start:stop].astype(np.int32), array_values(categories.array), len(categories), index
    )
