"""VARIANT columns as Python objects, as pairs of bytes, or as Arrow structs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray, StructArray
from numparq.column.nested.nested_type import NestedType, is_variant, iter_leaves
from numparq.errors import InvalidFileError, ParquetError, UnsupportedError
from numparq.format.variant.decoder import decode_metadata, decode_value, read_fields
from numparq.format.variant.encoder import encode_array, encode_object
from numparq.to_pandas.arrow import validity_bitmap
from numparq.types.output_type import OutputType
from numparq.util.optional import import_pyarrow

from .shredded_types import shredded_type
from .shredding import MISSING, ShreddedVariants, binary_values, check_variant_group

_MAX_CACHED = 4096  # dictionaries cached at once


class MetadataDictionaries:
    """Field names of each variant, by its position; equal metadata are decoded once."""

    def __init__(self, metadata: Sequence[bytes | None]) -> None:
        self._metadata = metadata
        self._names: dict[bytes, list[str]] = {}
        self._ids: dict[bytes, dict[str, int]] = {}

    def names(self, owner: int) -> list[str]:
        """Return the field names of a variant, by id."""
        metadata = self._metadata[owner]
        assert metadata is not None
        found = self._names.get(metadata)
        if found is None:
            if len(self._names) >= _MAX_CACHED:
                self._names.clear()
            found = self._names[metadata] = decode_metadata(metadata)
        return found

    def ids(self, owner: int) -> dict[str, int]:
        """Return the ids of a variant's field names; the first of equal names counts."""
        metadata = self._metadata[owner]
        assert metadata is not None
        found = self._ids.get(metadata)
        if found is None:
            if len(self._ids) >= _MAX_CACHED:
                self._ids.clear()
            names = self.names(owner)
            ids = zip(reversed(names), range(len(names) - 1, -1, -1), strict=True)
            found = self._ids[metadata] = dict(ids)
        return found


class VariantObjectBuilder:
    """Builder of Python objects, as `numparq.variant.decode` returns them."""

    null = None

    def __init__(self, dictionaries: MetadataDictionaries, targets: Mapping[int, OutputType]) -> None:
        self._dictionaries = dictionaries
        self._targets = targets

    def from_value(self, value: bytes, owner: int) -> Any:
        """Decode an encoded value."""
        return decode_value(value, self._dictionaries.names(owner))

    def from_typed_value(self, array: LeafArray) -> list[Any]:
        """Return the objects of a leaf's values."""
        assert array.type.leaf is not None
        return shredded_type(array.type.leaf).to_objects(array, self._targets[array.type.leaf.index])

    def build_array(self, items: list[Any]) -> list[Any]:
        """Return the items of an array as they are, a list."""
        return items

    def build_object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> dict[str, Any]:
        """Build a dict of the fields that are not MISSING."""
        return {name: item for name, item in zip(names, items, strict=True) if item is not MISSING}

    def merge_fields(self, item: dict[str, Any], value: bytes, names: frozenset[str], owner: int) -> dict[str, Any]:
        """Merge two dicts, sorted by the bytes of their keys."""
        rest = decode_value(value, self._dictionaries.names(owner))
        _check_disjoint(names, rest)
        return _sorted({**item, **rest}) if rest else item


class VariantBytesBuilder:
    """Builder of values in the binary encoding, with ids of the variant's own metadata."""

    null = b"\0"

    def __init__(self, dictionaries: MetadataDictionaries, targets: Mapping[int, OutputType]) -> None:
        self._dictionaries = dictionaries
        self._targets = targets

    def from_value(self, value: bytes, owner: int) -> bytes:
        """Return an encoded value as it is."""
        return value

    def from_typed_value(self, array: LeafArray) -> list[bytes]:
        """Encode a leaf's values."""
        assert array.type.leaf is not None
        known = shredded_type(array.type.leaf)
        return known.to_variant_bytes(array, self._targets[array.type.leaf.index], known.kind)

    def build_array(self, items: list[bytes]) -> bytes:
        """Encode an array."""
        return encode_array(items)

    def build_object(self, names: Sequence[str], items: Sequence[Any], owner: int) -> bytes:
        """Encode an object of the fields that are not MISSING."""
        ids = self._dictionaries.ids(owner)
        fields = [(name, item) for name, item in zip(names, items, strict=True) if item is not MISSING]
        try:
            return encode_object([ids[name] for name, _ in fields], [item for _, item in fields])
        except KeyError as error:
            message = f"shredded field {error.args[0]!r} is missing from the variant's metadata"
            raise InvalidFileError(message, row=owner) from None

    def merge_fields(self, item: bytes, value: bytes, names: frozenset[str], owner: int) -> bytes:
        """Encode an object of the fields of two."""
        known = self._dictionaries.names(owner)
        ours, theirs = _encoded_fields(item, known), _encoded_fields(value, known)
        _check_disjoint(names, theirs)
        fields = _sorted({**ours, **theirs})
        return self.build_object(list(fields), list(fields.values()), owner)


def _encoded_fields(value: bytes, names: Sequence[str]) -> dict[str, bytes]:
    """Return the encoded values of an object's fields, by name."""
    fields = read_fields(value, 0, len(value), names)
    places = zip(fields.keys, fields.starts, fields.ends, strict=True)
    return {str(name): value[start:end] for name, start, end in places}


def _sorted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields sorted by the bytes of their names."""
    return dict(sorted(fields.items(), key=lambda field: field[0].encode()))


def _check_disjoint(names: frozenset[str], stored: Mapping[str, Any]) -> None:
    """Raise InvalidFileError if a stored field is shredded too."""
    if not names.isdisjoint(stored):
        name = min(names.intersection(stored))
        raise InvalidFileError(f"field {name!r} of a variant is in value and also shredded in typed_value")


def variant_leaves(shape: NestedType) -> Iterator[int]:
    """Yield the ordinals of the leaves within VARIANTs, after checking their groups as `check_variant_group` does."""
    if is_variant(shape):
        check_variant_group(shape)
        yield from (leaf.index for leaf in iter_leaves(shape))
        return
    for child in shape.children:
        yield from variant_leaves(child)


class VariantColumns:
    """VARIANTs of one column, at any depth; `targets` holds the output types of its leaves, by ordinal.

    `form` is "values" (Python objects) or "bytes"; `root` is the nested array of the whole column.
    """

    def __init__(self, form: str, targets: Mapping[int, OutputType], root: NestedArray) -> None:
        self._form = form
        self._targets = targets
        self._root = root

    def to_objects(self, array: StructArray) -> list[Any]:
        """Return an object for each slot of a variant, arbitrary at nulls.

        Raises InvalidFileError, its ``where["row"]`` set, for a variant that violates the specification.
        """
        metadata = self._metadata(array)
        if self._form == "values":
            return self._items(array, VariantObjectBuilder, metadata)
        values = self._bytes(array, metadata)
        return [{"metadata": key, "value": value} for key, value in zip(metadata, values, strict=True)]

    def to_arrow(self, array: StructArray, binary_of: Callable[[LeafArray], Any]) -> Any:
        """Return an Arrow array of structs of metadata and value; `binary_of` returns that of a binary leaf."""
        pa = import_pyarrow()
        parts = {child.type.name: child for child in array.children}
        metadata, value = parts["metadata"], parts.get("value")
        assert isinstance(metadata, LeafArray)
        checked = metadata.type.nullable or "typed_value" in parts
        if not checked and isinstance(value, LeafArray) and value.num_values == metadata.num_values:
            values = binary_of(value)
        else:
            found = self._bytes(array, self._metadata(array))
            if array.validity is not None:
                found = [item if there else None for item, there in zip(found, array.validity.tolist(), strict=True)]
            try:
                values = pa.array(found, pa.binary())
            except pa.ArrowInvalid as error:
                raise UnsupportedError(f"the values do not fit one Arrow array; read fewer rows: {error}") from error
            if isinstance(values, pa.ChunkedArray):
                values = pa.array(found, pa.large_binary())
        children = [binary_of(metadata), values]
        fields = [
            pa.field(name, child.type, False) for name, child in zip(("metadata", "value"), children, strict=True)
        ]
        return pa.Array.from_buffers(
            pa.struct(fields), array.length, [validity_bitmap(array.validity)], children=children
        )

    def _bytes(self, array: StructArray, metadata: list[bytes | None]) -> list[Any]:
        """Return the encoded value of each slot."""
        return self._items(array, VariantBytesBuilder, metadata)

    def _items(
        self, array: StructArray, kind: type[VariantObjectBuilder | VariantBytesBuilder], metadata: list[bytes | None]
    ) -> list[Any]:
        try:
            return ShreddedVariants(kind(MetadataDictionaries(metadata), self._targets), self._targets).assemble(array)
        except ParquetError as error:
            place = error.where.get("row")
            if isinstance(place, int):
                error.where["row"] = _row_of(self._root, array, place)
            raise

    def _metadata(self, array: StructArray) -> list[bytes | None]:
        """Return the metadata of each slot, None where the variant is null."""
        (metadata,) = (child for child in array.children if child.type.name == "metadata")
        assert isinstance(metadata, LeafArray)
        found: list[Any] = list(binary_values(metadata, self._targets))
        if metadata.validity is None:
            return found
        values = iter(found)
        found = [next(values) if there else None for there in metadata.validity.tolist()]
        present = [True] * len(found) if array.validity is None else array.validity.tolist()
        for place, (item, there) in enumerate(zip(found, present, strict=True)):
            if item is None and there:
                raise InvalidFileError("a variant has no metadata", row=_row_of(self._root, array, place))
        return found


def _row_of(node: NestedArray, array: StructArray, place: int) -> int | None:
    """Return the row of a slot of `array`, a descendant of `node`; None if it is not one."""
    if node is array:
        return place
    if isinstance(node, LeafArray):
        return None
    for child in node.children:
        found = _row_of(child, array, place)
        if found is not None:
            return int(np.searchsorted(node.offsets, found, "right")) - 1 if isinstance(node, ListArray) else found
    return None
