"""Variants put together out of the columns that they are shredded into (VariantShredding.md).

The columns are gone through one by one, not row by row: `Shredded` makes an item for each place of a group, by what a
`Maker` makes of values, be it Python objects or the bytes of the binary encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..column.buffer import ColumnBuffer
from ..column.nested_arrays import LeafArray, ListArray, NestedArray, StructArray
from ..errors import InvalidFileError, ParquetError
from ..frame.finish import finish
from ..targets import Target
from .scalars import OBJECT

__all__ = ["MISSING", "Maker", "Shredded", "binary_items"]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()  # there is no value, not even a null


class Maker(Protocol):
    """What items are made of values; `owner` is the ordinal of the whole variant that a value is in."""

    null: Any  #: the item of a Variant null

    def stored(self, value: bytes, owner: int) -> Any:
        """Make an item of an encoded value."""

    def typed(self, array: LeafArray) -> list:
        """Make items of those values of a leaf that are there."""

    def array(self, items: list) -> Any:
        """Make an item of an array's."""

    def object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> Any:
        """Make an item of an object's, whose names are in the order of their bytes; those MISSING are left out."""

    def united(self, item: Any, value: bytes, names: frozenset[str], owner: int) -> Any:
        """Add the fields of an encoded object to an object's item; none of them may be one of `names`."""


class Shredded:
    """Makes the items of a VARIANT.

    Parameters
    ----------
    maker : Maker
        What they are.
    targets : mapping of int to Target
        How the leaves were decoded, by their ordinals.
    """

    def __init__(self, maker: Maker, targets: Mapping[int, Target]) -> None:
        self._maker = maker
        self._targets = targets
        self._typed: dict[str, Callable[[Any, np.ndarray], list]] = {
            "leaf": self._leaf,
            "list": self._arrays,
            "struct": self._objects,
        }

    def items(self, array: StructArray) -> list:
        """Make an item for each place of a variant; a value that is missing is a Variant null, as readers have to.

        Raises
        ------
        InvalidFileError
            When a value breaks the specification; ``where["row"]`` says which place it is at.
        """
        found = self._group(array, np.arange(array.length))
        return [self._maker.null if item is MISSING else item for item in found]

    def _group(self, group: StructArray, owners: np.ndarray) -> list:
        """Make items of ``value`` and ``typed_value``; MISSING where there is neither."""
        parts = {child.shape.name: child for child in group.children}
        typed = parts.get("typed_value")
        items = [MISSING] * group.length if typed is None else self._typed[typed.shape.kind](typed, owners)
        if "value" in parts:
            self._add_stored(parts["value"], typed, items, owners)
        return items

    def _add_stored(self, value: NestedArray, typed: NestedArray | None, items: list, owners: np.ndarray) -> None:
        """Put what ``value`` holds in its places."""
        assert isinstance(value, LeafArray)
        places = range(value.length) if value.validity is None else np.flatnonzero(value.validity).tolist()
        names = None
        if isinstance(typed, StructArray):
            names = frozenset(child.shape.name for child in typed.children)
        for place, stored in zip(places, binary_items(value, self._targets), strict=True):
            owner, item = int(owners[place]), items[place]
            try:
                if item is MISSING:
                    if names is not None and _is_object(stored):
                        raise InvalidFileError("a variant is an object, but has no typed_value, which is one")
                    items[place] = self._maker.stored(stored, owner)
                elif names is None:
                    raise InvalidFileError("a variant has both a value and a typed_value, which is no object")
                elif not _is_object(stored):
                    raise InvalidFileError("a variant has a value that is no object beside shredded fields")
                else:
                    items[place] = self._maker.united(item, stored, names, owner)
            except ParquetError as error:
                error.where.setdefault("row", owner)
                raise

    def _leaf(self, array: LeafArray, owners: np.ndarray) -> list:
        return _spread(self._maker.typed(array), array)

    def _arrays(self, array: ListArray, owners: np.ndarray) -> list:
        (elements,) = array.children
        assert isinstance(elements, StructArray)
        found = self._group(elements, np.repeat(owners, np.diff(array.offsets)))
        found = [self._maker.null if item is MISSING else item for item in found]
        offsets, make = array.offsets.tolist(), self._maker.array
        made = [make(found[start:stop]) for start, stop in pairwise(offsets)]
        return _without_nulls(made, array)

    def _objects(self, array: StructArray, owners: np.ndarray) -> list:
        children = sorted(array.children, key=lambda child: child.shape.name.encode())
        names = [child.shape.name for child in children]
        columns = [self._group(child, owners) for child in children if isinstance(child, StructArray)]
        make = self._maker.object
        there = np.ones(array.length, bool) if array.validity is None else array.validity.view(bool)
        made = [
            make(names, items, owner) if is_there else MISSING
            for items, owner, is_there in zip(zip(*columns, strict=True), owners.tolist(), there.tolist(), strict=True)
        ]
        return made


def _is_object(value: bytes) -> bool:
    return bool(value) and value[0] & 3 == OBJECT


def _spread(dense: list, array: LeafArray) -> list:
    """Put values in their places."""
    if array.validity is None:
        return dense
    values = iter(dense)
    return [next(values) if there else MISSING for there in array.validity.tolist()]


def _without_nulls(made: list, array: ListArray) -> list:
    if array.validity is None:
        return made
    return [item if there else MISSING for item, there in zip(made, array.validity.tolist(), strict=True)]


def binary_items(array: LeafArray, targets: Mapping[int, Target]) -> list[bytes]:
    """Give those values of a binary leaf that are there."""
    assert array.shape.leaf is not None
    return finish(targets[array.shape.leaf.index], ColumnBuffer(pieces=array.values), array.num_values).tolist()
