"""Nested columns as Arrow lists, structs and maps, without Python objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray, StructArray
from numparq.column.nested.nested_type import NestedType, child_hints, is_variant
from numparq.column.scratch import allocate
from numparq.errors import UnsupportedError
from numparq.format.key_values.arrow import ArrowHint
from numparq.to_pandas.arrow import validity_bitmap
from numparq.types.output_type import OutputType
from numparq.types.pyarrow import registered_extension_type
from numparq.util.optional import import_pyarrow

_MAX_ELEMENTS = _MAX_BYTES = (1 << 31) - 1
_MAX_PADDED = 1 << 26  # elements of all-null fixed-size lists: only ARROW:schema claims their size
_LARGE = {"utf8": "large_utf8", "binary": "large_binary"}


def widen_offsets(target: OutputType, array: LeafArray) -> OutputType:
    """Return the output type of a nested leaf with 64-bit offsets if its bytes exceed 31 bits.

    Within lists and structs a leaf must be one array, while a flat column may be several.
    """
    kind = _LARGE.get(target.type.kind)
    if kind is None or isinstance(array.values, np.ndarray):
        return target
    size = sum(int(piece.offsets[-1] - piece.offsets[0]) for piece in array.values)
    return replace(target, type=replace(target.type, kind=kind)) if size > _MAX_BYTES else target


# Returns the Arrow array of VARIANTs, given a function that returns that of a binary leaf.
VariantBuilder = Callable[[StructArray, Callable[[LeafArray], Any]], Any]


def nested_to_arrow(
    array: NestedArray,
    hint: ArrowHint | None,
    leaf_to_column: Callable[[LeafArray], Any],
    variants: VariantBuilder | None = None,
) -> Any:
    """Return a nested column as an ArrowExtensionArray; without `variants`, a VARIANT stays the struct it is stored as.

    Raises UnsupportedError if a leaf's strings exceed the offsets of their Arrow type.
    """
    return pd.arrays.ArrowExtensionArray(
        import_pyarrow().chunked_array([_NestedArrowBuilder(leaf_to_column, variants).array(array, hint)])
    )


class _NestedArrowBuilder:
    def __init__(self, column_of: Callable[[LeafArray], Any], variants: VariantBuilder | None) -> None:
        self._column_of = column_of
        self._variants = variants
        self._builders: dict[str, Callable[[Any, ArrowHint | None], Any]] = {
            "leaf": lambda array, hint: self._leaf(array),
            "struct": self._struct,
            "list": self._list,
            "map": self._map,
        }

    def array(self, array: NestedArray, hint: ArrowHint | None) -> Any:
        """Return a node and its descendants as a pyarrow array."""
        made = self._builders[array.type.kind](array, hint)
        arrow_type = hint.type if hint is not None and array.type.kind != "leaf" else None
        if arrow_type is None or arrow_type.extension is None:
            return made
        pa = import_pyarrow()
        wanted = registered_extension_type(pa, made.type, arrow_type)
        return pa.ExtensionArray.from_storage(wanted, made) if isinstance(wanted, pa.BaseExtensionType) else made

    def _leaf(self, array: LeafArray) -> Any:
        pa = import_pyarrow()
        column = self._column_of(array).__arrow_array__()
        try:
            made = column.combine_chunks()
            if isinstance(made, pa.ChunkedArray):
                made = pa.concat_arrays(made.chunks) if made.num_chunks else pa.array([], made.type)
        except pa.ArrowInvalid as error:
            raise UnsupportedError(f"the values do not fit one Arrow array; read fewer rows: {error}") from error
        return made

    def _children(self, array: StructArray | ListArray, hint: ArrowHint | None) -> tuple[list[Any], list[Any]]:
        hints = child_hints(array.type, hint)
        arrays = [self.array(child, inner) for child, inner in zip(array.children, hints, strict=True)]
        fields = [_field(child.type, made) for child, made in zip(array.children, arrays, strict=True)]
        return fields, arrays

    def _struct(self, array: StructArray, hint: ArrowHint | None) -> Any:
        if self._variants is not None and is_variant(array.type):
            return self._variants(array, self._leaf)
        pa = import_pyarrow()
        fields, arrays = self._children(array, hint)
        return pa.Array.from_buffers(
            pa.struct(fields), array.length, [validity_bitmap(array.validity)], children=arrays
        )

    def _list(self, array: ListArray, hint: ArrowHint | None) -> Any:
        pa = import_pyarrow()
        known = hint.type if hint is not None else None
        size = known.byte_width if known is not None and known.kind == "fixed_size_list" else -1
        is_fixed = _have_size(array, size)
        if is_fixed:
            array = _pad_null_lists(array, size)
        (field,), elements = self._children(array, hint)
        if is_fixed:
            validity = validity_bitmap(array.validity)
            return pa.Array.from_buffers(pa.list_(field, size), array.length, [validity], children=elements)
        large = array.offsets[-1] > _MAX_ELEMENTS or (known is not None and known.kind == "large_list")
        return _with_offsets(array, pa.large_list(field) if large else pa.list_(field), elements, large)

    def _map(self, array: ListArray, hint: ArrowHint | None) -> Any:
        pa = import_pyarrow()
        (key, item), children = self._children(array, hint)
        entries = pa.Array.from_buffers(pa.struct([key, item]), len(children[0]), [None], children=children)
        has_nulls = children[0].null_count or pa.types.is_null(key.type)
        if has_nulls or array.offsets[-1] > _MAX_ELEMENTS:  # Arrow maps have no null keys and 32-bit offsets
            return _with_offsets(array, pa.large_list(pa.field("key_value", entries.type, False)), [entries], True)
        entries = pa.Array.from_buffers(
            pa.struct([key.with_nullable(False), item]), len(children[0]), [None], children=children
        )
        return _with_offsets(array, pa.map_(key.type, item), [entries], False)


def _have_size(array: ListArray, size: int) -> bool:
    """Whether all lists but null ones have a size; padding bounds the size that only a hint claims."""
    lengths = np.diff(array.offsets)
    if array.validity is not None:
        lengths = lengths[array.validity.view(bool)]
    return size > 0 and bool((lengths == size).all()) and (len(lengths) > 0 or array.length * size <= _MAX_PADDED)


def _pad_null_lists(array: ListArray, size: int) -> ListArray:
    """Return lists of one size with null elements in null lists, which are empty otherwise."""
    if array.validity is None:
        return array
    present = allocate(array.length * size)
    present.reshape(-1, size)[:] = array.validity[:, np.newaxis]
    return replace(array, children=[_with_null_gaps(child, present) for child in array.children])


def _with_null_gaps(array: NestedArray, present: np.ndarray) -> NestedArray:
    """Return an array with a null wherever `present`, uint8 of its new length, is 0."""
    validity = present.copy()
    if array.validity is not None:
        validity[present.view(bool)] = array.validity
    padded = replace(array, length=len(present), validity=validity)
    if isinstance(padded, StructArray):
        padded.children = [_with_null_gaps(child, present) for child in padded.children]
    elif isinstance(padded, ListArray):
        lengths = allocate(len(present), "i8")
        lengths[:] = 0
        lengths[present.view(bool)] = np.diff(padded.offsets)
        padded.offsets = np.append(0, np.cumsum(lengths))
    return padded


def _field(shape: NestedType, made: Any) -> Any:
    name = shape.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # may not be valid UTF-8
    pa = import_pyarrow()
    # Arrow's null type must be nullable; files have it REQUIRED in Spark's empty arrays.
    return pa.field(name, made.type, shape.nullable or pa.types.is_null(made.type))


def _with_offsets(array: ListArray, list_type: Any, children: list[Any], large: bool) -> Any:
    pa = import_pyarrow()
    offsets = pa.py_buffer(array.offsets if large else array.offsets.astype(np.int32))
    return pa.Array.from_buffers(list_type, array.length, [validity_bitmap(array.validity), offsets], children=children)
