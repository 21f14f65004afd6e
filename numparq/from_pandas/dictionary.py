"""Dictionary-encoded columns: codes of Categoricals and Arrow dictionaries, passed on as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import DictionaryIndex

from .column_values import ColumnValues, validity_bytes

_MAX_DEFINITION = 2  # the definition level of a leaf of a struct, where neither is null


def dictionary_values(
    slice_codes: Callable[[int, int], np.ndarray], dictionary: ColumnValues, size: int, index: DictionaryIndex
) -> ColumnValues:
    """Give the source of a column of codes.

    Parameters
    ----------
    slice_codes : callable
        Gives the codes of rows `start` to `stop`: int32, negative at nulls.
    dictionary : ColumnValues
        The values, none of them null.
    size : int
        How many values there are.
    index : DictionaryIndex
        How Arrow would encode the codes. Values that are structs or of an extension type are not dictionaries by
        ``ARROW:schema``: pyarrow has no Parquet columns of such.
    """
    leaves_of_codes = (
        _struct_leaves if dictionary.children else _boolean_leaves if dictionary.type.kind == "bool" else _flat_leaves
    )

    values = _CachedDictionary(dictionary, size)

    def leaves(start: int, stop: int) -> list[LeafValues]:
        leaves = leaves_of_codes(slice_codes(start, stop), values.leaves())
        for leaf in leaves:
            leaf.keep_dictionary = start == 0  # the first row group tells of all categories, used or not
        return leaves

    plain = bool(dictionary.children or dictionary.type.extension or dictionary.type.kind == "uuid")
    arrow_type = dictionary.type if plain else replace(dictionary.type, dictionary=index)
    return ColumnValues(arrow_type, leaves, dictionary.children)


def lookup_values(slice_codes: Callable[[int, int], np.ndarray], dictionary: ColumnValues, size: int) -> ColumnValues:
    """Give the source of values that are looked up by codes range by range; parameters are those of
    `dictionary_values`.

    For what is kept as codes in memory, but is no dictionary to anybody: the levels of a MultiIndex.
    """
    values = _CachedDictionary(dictionary, size)

    def leaves(start: int, stop: int) -> list[LeafValues]:
        codes = slice_codes(start, stop)
        return [_lookup_leaf(leaf, size, codes) for leaf in values.leaves()]

    return ColumnValues(dictionary.type, leaves)


class _CachedDictionary:
    """The values of a dictionary, converted when they are first asked for."""

    def __init__(self, dictionary: ColumnValues, size: int) -> None:
        self._dictionary = dictionary
        self._size = size
        self._leaves: list[LeafValues] | None = None

    def leaves(self) -> list[LeafValues]:
        """Give the leaves; threads that ask at the same time may each convert them."""
        found = self._leaves
        if found is None:
            self._leaves = found = self._dictionary.leaves(0, self._size)
        return found


def _lookup_leaf(leaf: LeafValues, size: int, codes: np.ndarray) -> LeafValues:
    """Give the value of each code, of a flat leaf of so many values."""
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
    """Give booleans as they are: readers do not expect a dictionary of them."""
    (values,) = dictionary
    table = values.values if len(values.values) else np.zeros(1, np.uint8)
    return [LeafValues(np.take(table, codes, mode="clip"), validity=validity_bytes(codes >= 0))]


def _struct_leaves(codes: np.ndarray, dictionary: list[LeafValues]) -> list[LeafValues]:
    """Give the leaves of a struct, whose values are those that there are."""
    present = codes >= 0
    definition = present.view(np.uint8) * np.uint8(_MAX_DEFINITION)
    kept = codes[present]
    return [LeafValues(leaf.values, leaf.starts, leaf.ends, definition=definition, codes=kept) for leaf in dictionary]


def categorical_values(array: Any, array_values: Callable[[Any], ColumnValues]) -> ColumnValues:
    """Give the source of a Categorical.

    Parameters
    ----------
    array : pandas.Categorical
        Its codes are taken as they are, and all of its categories make up the dictionary, used or not.
    array_values : callable
        Gives the source of an array of a pandas dtype.
    """
    codes = array.codes
    index = DictionaryIndex(8 * codes.dtype.itemsize, True, bool(array.ordered))
    categories = array.categories
    return dictionary_values(
        lambda start, stop: codes[start:stop].astype(np.int32), array_values(categories.array), len(categories), index
    )
