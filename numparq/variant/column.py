"""VARIANT columns of a read: Python objects, or metadata and value, as dicts of bytes or in an Arrow struct."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..arrow import bitmap, pyarrow
from ..column.nested_arrays import LeafArray, ListArray, NestedArray, StructArray
from ..column.shape import Shape, is_variant, leaves_of
from ..errors import InvalidFileError, ParquetError, UnsupportedError
from ..targets import Target
from .groups import check_variant
from .makers import BytesMaker, Dictionaries, ObjectsMaker
from .shredding import Shredded, binary_items

__all__ = ["FORMS", "VariantColumns", "leaves_in_variants"]

FORMS = ("values", "bytes")


def leaves_in_variants(shape: Shape) -> Iterator[int]:
    """Give the ordinals of the leaves of all VARIANTs in a column, and check their groups.

    Raises
    ------
    InvalidFileError, UnsupportedError
        As `check_variant` does.
    """
    if is_variant(shape):
        check_variant(shape)
        yield from (leaf.index for leaf in leaves_of(shape))
        return
    for child in shape.children:
        yield from leaves_in_variants(child)


class VariantColumns:
    """Makes the VARIANTs of a column, wherever in it they are.

    Parameters
    ----------
    form : {"values", "bytes"}
        What they become.
    targets : mapping of int to Target
        How the leaves were decoded, by their ordinals.
    root : NestedArray
        The whole column.
    """

    def __init__(self, form: str, targets: Mapping[int, Target], root: NestedArray) -> None:
        self._form = form
        self._targets = targets
        self._root = root

    def objects(self, array: StructArray) -> list:
        """Make an object for each place; those at nulls are of no meaning.

        Raises
        ------
        InvalidFileError
            When a variant breaks the specification; ``where["row"]`` says which.
        """
        metadata = self._metadata(array)
        if self._form == "values":
            return self._items(array, ObjectsMaker, metadata)
        values = self._bytes(array, metadata)
        return [{"metadata": key, "value": value} for key, value in zip(metadata, values, strict=True)]

    def arrow(self, array: StructArray, binary_of: Callable[[LeafArray], Any]) -> Any:
        """Make an Arrow array of structs of metadata and value.

        Parameters
        ----------
        array : StructArray
            The variants.
        binary_of : callable
            Gives the Arrow array of a binary leaf.
        """
        pa = pyarrow()
        parts = {child.shape.name: child for child in array.children}
        metadata, value = parts["metadata"], parts.get("value")
        assert isinstance(metadata, LeafArray)
        checked = metadata.shape.nullable or "typed_value" in parts
        if not checked and isinstance(value, LeafArray) and value.num_values == metadata.num_values:
            values = binary_of(value)
        else:
            found = self._bytes(array, self._metadata(array))
            if array.validity is not None:
                found = [item if there else None for item, there in zip(found, array.validity.tolist(), strict=True)]
            try:
                values = pa.array(found, pa.binary())
            except pa.ArrowInvalid as error:
                raise UnsupportedError(f"the values are too many for one Arrow array: {error}") from error
            if isinstance(values, pa.ChunkedArray):
                values = pa.array(found, pa.large_binary())
        children = [binary_of(metadata), values]
        fields = [
            pa.field(name, child.type, False) for name, child in zip(("metadata", "value"), children, strict=True)
        ]
        return pa.Array.from_buffers(pa.struct(fields), array.length, [bitmap(array.validity)], children=children)

    def _bytes(self, array: StructArray, metadata: list[bytes | None]) -> list:
        """Make the one encoded value of each place."""
        return self._items(array, BytesMaker, metadata)

    def _items(self, array: StructArray, kind: type[ObjectsMaker | BytesMaker], metadata: list) -> list:
        try:
            return Shredded(kind(Dictionaries(metadata), self._targets), self._targets).items(array)
        except ParquetError as error:
            place = error.where.get("row")
            if isinstance(place, int):
                error.where["row"] = _row_of(self._root, array, place)
            raise

    def _metadata(self, array: StructArray) -> list[bytes | None]:
        """Give the metadata of each place; None where the variant is null."""
        (metadata,) = (child for child in array.children if child.shape.name == "metadata")
        assert isinstance(metadata, LeafArray)
        found: list[Any] = list(binary_items(metadata, self._targets))
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
    """Find the row that a place of a node somewhere in a column is in; None where the node is not in it."""
    if node is array:
        return place
    if isinstance(node, LeafArray):
        return None
    for child in node.children:
        found = _row_of(child, array, place)
        if found is not None:
            return int(np.searchsorted(node.offsets, found, "right")) - 1 if isinstance(node, ListArray) else found
    return None
