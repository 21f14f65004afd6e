"""FILE groups (LogicalTypes.md) replaced by the bytes that they refer to."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray, StructArray
from numparq.column.nested.nested_type import NestedType
from numparq.errors import InvalidFileError, LimitError, ParquetError
from numparq.format.file_reference import FileRange, FileReferenceReader, resolve_reference
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import OPTIONAL, Leaf
from numparq.util.pluralize import pluralize

# Field -> physical type and allowed logical types; None is no logical type.
_FIELD_TYPES: dict[str, tuple[int, tuple[str | None, ...]]] = {
    "uri": (BYTE_ARRAY, ("STRING",)),
    "offset": (INT64, (None, "INTEGER")),
    "size": (INT64, (None, "INTEGER")),
    "content_type": (BYTE_ARRAY, ("STRING",)),
    "checksum": (BYTE_ARRAY, ("STRING",)),
    "inline": (BYTE_ARRAY, (None,)),
}

# Leaf that replaces a FILE group; no leaf of the file has its ordinal.
BYTES_LEAF = Leaf(-1, -1, (), BYTE_ARRAY, None, None, 0, 0)


def is_file_group(shape: NestedType) -> bool:
    """Whether a node is a group of the FILE type."""
    return shape.kind == "struct" and shape.logical is not None and shape.logical.kind == "FILE"


def check_fields(shape: NestedType) -> None:
    """Check type and repetition of the specified fields of a FILE group; others are ignored."""
    for child in shape.children:
        if child.name not in _FIELD_TYPES:
            continue
        physical, kinds = _FIELD_TYPES[child.name]
        leaf = child.leaf
        kind = leaf.logical.kind if leaf is not None and leaf.logical is not None else None
        if leaf is None or leaf.physical != physical or kind not in kinds:
            raise InvalidFileError(
                f"the field {child.name} of a FILE group does not have the type of the specification"
            )
        if leaf.repetition != OPTIONAL:
            raise InvalidFileError(f"the field {child.name} of a FILE group is not optional")


def resolve_references(array: NestedArray, fetcher: FileReferenceReader) -> NestedArray:
    """Replace each FILE group of a nested column by a BYTE_ARRAY leaf with the bytes; a null reference is null.

    Raises ParquetError for an invalid reference or bytes that cannot be read.
    """
    if isinstance(array, LeafArray):
        return array
    if isinstance(array, StructArray) and is_file_group(array.type):
        check_fields(array.type)
        return _fetch_bytes(array, fetcher)
    children = [resolve_references(child, fetcher) for child in array.children]
    shape = replace(array.type, children=tuple(child.type for child in children))
    if isinstance(array, ListArray):
        return ListArray(shape, array.length, array.validity, array.offsets, children)
    return StructArray(shape, array.length, array.validity, children)


def _fetch_bytes(array: StructArray, fetcher: FileReferenceReader) -> LeafArray:
    """Return the leaf of bytes that replaces a FILE group."""
    present = range(array.length) if array.validity is None else np.flatnonzero(array.validity).tolist()
    fields = {child.type.name: _field_values(child) for child in array.children if child.type.name in _FIELD_TYPES}
    found: list[tuple[int, bytes | int, Any]] = []  # size; bytes or position; checksum
    offsets = np.zeros(len(present) + 1, np.int64)
    for place in present:
        reference = {name: values[place] for name, values in fields.items()}
        try:
            found.append(_resolve(reference, fetcher))
        except ParquetError as error:
            raise _with_reference(error, place) from None
    sizes = [size for size, _, _ in found]
    if sum(sizes) >= 1 << 62:
        raise LimitError(f"FILE references of {pluralize(sum(sizes), 'byte')} in total exceed the limit of {1 << 62:,}")
    np.cumsum(sizes, out=offsets[1:])
    try:
        data = np.empty(int(offsets[-1]), np.uint8)
    except MemoryError:
        raise LimitError(
            f"not enough memory for {pluralize(offsets[-1], 'byte')} of FILE references; read fewer rows"
        ) from None
    for (size, content, checksum), start, place in zip(found, offsets.tolist(), present, strict=False):
        out = data[start : start + size]
        try:
            if isinstance(content, bytes):
                out[:] = np.frombuffer(content, np.uint8)
                fetcher.check(checksum, out)
            else:
                fetcher.read(content, out, checksum)
        except ParquetError as error:
            raise _with_reference(error, place) from None
    shape = _leaf_shape(array.type)
    return LeafArray(shape, array.length, array.validity, [BinaryArray(offsets, data)], len(present))


def _resolve(reference: dict[str, Any], fetcher: FileReferenceReader) -> tuple[int, bytes | int, Any]:
    where = resolve_reference(reference)
    checksum = reference.get("checksum")
    if not isinstance(where, FileRange):
        return len(where), where, checksum
    position, size = fetcher.locate(where)
    return size, position, checksum


def _with_reference(error: ParquetError, place: int) -> ParquetError:
    error.message += f", in reference {place} of the column"
    return error


def _field_values(array: NestedArray) -> list[Any]:
    """Return the values of a field as Python objects, None at nulls."""
    assert isinstance(array, LeafArray)
    logical = array.type.leaf.logical if array.type.leaf is not None else None
    if isinstance(array.values, np.ndarray):
        values: list[Any] = array.values.tolist()
    else:
        values = [item for piece in array.values for item in _byte_strings(piece)]
        if logical is not None:
            values = [str(item, "utf-8", "replace") for item in values]
    if array.validity is None:
        return values
    out: list[Any] = [None] * array.length
    for place, value in zip(np.flatnonzero(array.validity).tolist(), values, strict=True):
        out[place] = value
    return out


def _byte_strings(piece: BinaryArray) -> list[bytes]:
    data, offsets = piece.data.data, piece.offsets.tolist()
    return [bytes(data[start:stop]) for start, stop in pairwise(offsets)]


def _leaf_shape(shape: NestedType) -> NestedType:
    """Return the nested type of the leaf that replaces a FILE group."""
    leaf = replace(
        BYTES_LEAF,
        path=(shape.name,),
        max_definition_level=shape.definition_level,
        max_repetition_level=shape.repetition_level,
    )
    return replace(shape, kind="leaf", children=(), leaf=leaf, logical=None)
