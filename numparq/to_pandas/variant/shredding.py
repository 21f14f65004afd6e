"""Check the groups of shredded VARIANTs, and reassemble their values column by column (VariantShredding.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray, StructArray
from numparq.column.nested.nested_type import NestedType
from numparq.errors import InvalidFileError, ParquetError, UnsupportedError
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.variant.primitives import OBJECT, VERSION
from numparq.to_pandas.columns import to_array
from numparq.types.output_type import OutputType

from .shredded_types import shredded_type


def _check_leaf(shape: NestedType) -> None:
    assert shape.leaf is not None
    shredded_type(shape.leaf)


def _check_array(shape: NestedType) -> None:
    (element,) = shape.children
    if element.nullable:
        raise _invalid("the elements of a shredded array must be required", element)
    _check_values(element, _parts(element, ("value", "typed_value")))


def _check_object(shape: NestedType) -> None:
    names = [child.name for child in shape.children]
    if len(set(names)) != len(names):
        raise _invalid("two fields of a shredded object have the same name", shape)
    for child in shape.children:
        if any("\ud800" <= letter <= "\udfff" for letter in child.name):
            raise _invalid("the name of a shredded field is not valid UTF-8", shape)
        parts = _parts(child, ("value", "typed_value"))
        _check_values(child, parts)


def _refuse_map(shape: NestedType) -> None:
    raise _invalid("a VARIANT cannot be shredded as a MAP", shape)


_CHECKS = {"leaf": _check_leaf, "list": _check_array, "struct": _check_object, "map": _refuse_map}

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()  # no value, not even a Variant null


def check_variant_group(shape: NestedType) -> None:
    """Check the group of a VARIANT and all of its descendants.

    Raises InvalidFileError if it violates the specification, UnsupportedError for another version.
    """
    version = shape.logical.version if shape.logical is not None else None
    if version not in (None, VERSION):
        message = f"the VARIANT has specification version {version}, but numparq supports version {VERSION}"
        raise UnsupportedError(message, column=".".join(shape.path))
    parts = _parts(shape, ("metadata", "value", "typed_value"))
    metadata = parts.get("metadata")
    # Some writers make metadata optional, and DuckDB up to 1.5 the groups of shredded fields: null means missing.
    if metadata is None or not _is_binary(metadata):
        raise _invalid("a VARIANT must have a binary field metadata", shape)
    _check_values(shape, parts)


def _check_values(shape: NestedType, parts: dict[str, NestedType]) -> None:
    """Check ``value`` and ``typed_value``, of which at least one is needed."""
    value, typed = parts.get("value"), parts.get("typed_value")
    if value is None and typed is None:
        raise _invalid("the group has neither value nor typed_value", shape)
    if value is not None and not _is_binary(value):
        raise _invalid("the field value must be binary", shape)
    if typed is not None:
        _CHECKS[typed.kind](typed)


def _is_binary(shape: NestedType) -> bool:
    leaf = shape.leaf
    return leaf is not None and leaf.physical == BYTE_ARRAY and leaf.logical is None


def _parts(shape: NestedType, known: tuple[str, ...]) -> dict[str, NestedType]:
    """Return the fields of a group by name; InvalidFileError for one that is not in `known`."""
    parts = {child.name: child for child in shape.children}
    unknown = [name for name in parts if name not in known]
    if shape.kind != "struct" or unknown or len(parts) != len(shape.children):
        raise _invalid(f"the node must be a group with the fields {', '.join(known)} only, each at most once", shape)
    return parts


def _invalid(message: str, shape: NestedType) -> InvalidFileError:
    return InvalidFileError(message, column=".".join(shape.path))


class VariantBuilder(Protocol):
    """Builder of items from VARIANT values; `owner` is the ordinal of the variant that contains a value."""

    null: Any  # item of a Variant null

    def from_value(self, value: bytes, owner: int) -> Any:
        """Build the item of an encoded value."""

    def from_typed_value(self, array: LeafArray) -> list[Any]:
        """Build the items of a leaf's values that are not null."""

    def build_array(self, items: list[Any]) -> Any:
        """Build the item of an array from its items."""

    def build_object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> Any:
        """Build the item of an object whose names are sorted by their bytes, without MISSING fields."""

    def merge_fields(self, item: Any, value: bytes, names: frozenset[str], owner: int) -> Any:
        """Add the fields of an encoded object, none of them in `names`, to an object's item."""


class ShreddedVariants:
    """Reassembly of VARIANTs into items of a builder; `targets` holds the output types of the leaves, by ordinal."""

    def __init__(self, builder: VariantBuilder, targets: Mapping[int, OutputType]) -> None:
        self._maker = builder
        self._targets = targets
        self._typed: dict[str, Callable[[Any, np.ndarray], list[Any]]] = {
            "leaf": self._leaf,
            "list": self._arrays,
            "struct": self._objects,
        }

    def assemble(self, array: StructArray) -> list[Any]:
        """Return an item for each slot of a variant; a missing value is a Variant null (VariantShredding.md).

        Raises InvalidFileError, its ``where["row"]`` set, for a value that violates the specification.
        """
        found = self._group(array, np.arange(array.length))
        return [self._maker.null if item is MISSING else item for item in found]

    def _group(self, group: StructArray, variant_rows: np.ndarray) -> list[Any]:
        """Return the items of ``value`` and ``typed_value``, MISSING where there is neither."""
        parts = {child.type.name: child for child in group.children}
        typed = parts.get("typed_value")
        items = [MISSING] * group.length if typed is None else self._typed[typed.type.kind](typed, variant_rows)
        if "value" in parts:
            self._add_stored(parts["value"], typed, items, variant_rows)
        return items

    def _add_stored(
        self, value: NestedArray, typed: NestedArray | None, items: list[Any], variant_rows: np.ndarray
    ) -> None:
        """Add the stored values of ``value`` to `assemble`, in place."""
        assert isinstance(value, LeafArray)
        places = range(value.length) if value.validity is None else np.flatnonzero(value.validity).tolist()
        names = None
        if isinstance(typed, StructArray):
            names = frozenset(child.type.name for child in typed.children)
        for place, stored in zip(places, binary_values(value, self._targets), strict=True):
            owner, item = int(variant_rows[place]), items[place]
            try:
                if item is MISSING:
                    if names is not None and _is_object(stored):
                        raise InvalidFileError("the value of a variant is an object, but its typed_value is null")
                    items[place] = self._maker.from_value(stored, owner)
                elif names is None:
                    raise InvalidFileError("a variant has both value and typed_value, but typed_value is not an object")
                elif not _is_object(stored):
                    raise InvalidFileError("a variant has both value and typed_value, but value is not an object")
                else:
                    items[place] = self._maker.merge_fields(item, stored, names, owner)
            except ParquetError as error:
                error.where.setdefault("row", owner)
                raise

    def _leaf(self, array: LeafArray, variant_rows: np.ndarray) -> list[Any]:
        return _expand(self._maker.from_typed_value(array), array)

    def _arrays(self, array: ListArray, variant_rows: np.ndarray) -> list[Any]:
        (elements,) = array.children
        assert isinstance(elements, StructArray)
        found = self._group(elements, np.repeat(variant_rows, np.diff(array.offsets)))
        found = [self._maker.null if item is MISSING else item for item in found]
        offsets, make = array.offsets.tolist(), self._maker.build_array
        made = [make(found[start:stop]) for start, stop in pairwise(offsets)]
        return _without_nulls(made, array)

    def _objects(self, array: StructArray, variant_rows: np.ndarray) -> list[Any]:
        children = sorted(array.children, key=lambda child: child.type.name.encode())
        names = [child.type.name for child in children]
        columns = [self._group(child, variant_rows) for child in children if isinstance(child, StructArray)]
        make = self._maker.build_object
        there = np.ones(array.length, bool) if array.validity is None else array.validity.view(bool)
        made = [
            make(names, items, owner) if is_there else MISSING
            for items, owner, is_there in zip(
                zip(*columns, strict=True), variant_rows.tolist(), there.tolist(), strict=True
            )
        ]
        return made


def _is_object(value: bytes) -> bool:
    return bool(value) and value[0] & 3 == OBJECT


def _expand(dense: list[Any], array: LeafArray) -> list[Any]:
    """Return a leaf's items with MISSING at null slots."""
    if array.validity is None:
        return dense
    values = iter(dense)
    return [next(values) if there else MISSING for there in array.validity.tolist()]


def _without_nulls(made: list[Any], array: ListArray) -> list[Any]:
    if array.validity is None:
        return made
    return [item if there else MISSING for item, there in zip(made, array.validity.tolist(), strict=True)]


def binary_values(array: LeafArray, targets: Mapping[int, OutputType]) -> list[bytes]:
    """Return the values of a binary leaf that are not null."""
    assert array.type.leaf is not None
    values = to_array(targets[array.type.leaf.index], DecodedColumn(arrays=array.values), array.num_values)
    found: list[bytes] = values.tolist()
    return found
