"""Nested Arrow data as nested arrays: offsets, bitmaps and values out of pyarrow's buffers, no Python objects.

pyarrow is imported nowhere at the top: who has such a column has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrow import pyarrow_type
from ..arrow_schema import ArrowType
from ..errors import SchemaError
from .arrow_columns import arrow_source, arrow_type_of
from .nested_fields import ELEMENT, LIST_KINDS, NESTED
from .nested_tree import LeafArray, ListArray, NestedArray, StructArray
from .source import ArrowField, validity_of

__all__ = ["arrow_field", "arrow_nested", "converted", "data_type_of", "one_dictionary"]

_STORED_AS = {"list_view": "list", "large_list_view": "large_list"}


def arrow_field(name: str, data_type: Any, nullable: bool = True) -> ArrowField:
    """Describe a type of pyarrow's, with what is in it.

    Parameters
    ----------
    name : str
        What to call it.
    data_type : pyarrow.DataType
        Any. List views become lists, dictionaries of nested values and run-end encoded ones become those values.
    nullable : bool
        Whether there may be nulls.

    Raises
    ------
    SchemaError
        When Parquet has no such type.
    """
    import pyarrow as pa

    storage = data_type
    while isinstance(storage, pa.BaseExtensionType):
        storage = storage.storage_type
    if isinstance(storage, pa.RunEndEncodedType) or _is_nested_dictionary(storage):
        return arrow_field(name, storage.value_type, nullable)
    if not pa.types.is_nested(storage):
        return ArrowField(name, arrow_type_of(data_type), nullable=nullable)
    arrow_type = arrow_type_of(data_type)
    arrow_type = replace(arrow_type, kind=_STORED_AS.get(arrow_type.kind, arrow_type.kind))
    if arrow_type.kind not in NESTED:
        raise SchemaError(f"values of Arrow's type {data_type} cannot be written", column=name)
    if pa.types.is_map(storage):
        key = arrow_field("key", storage.key_type, False)
        item = arrow_field("value", storage.item_type, storage.item_field.nullable)
        children: tuple[ArrowField, ...] = (ArrowField("key_value", ArrowType("struct"), (key, item), False),)
    elif pa.types.is_struct(storage):
        children = tuple(arrow_field(inner.name, inner.type, inner.nullable) for inner in storage)
    else:
        if pa.types.is_fixed_size_list(storage):
            arrow_type = replace(arrow_type, byte_width=storage.list_size)
        inner = storage.value_field
        children = (arrow_field(ELEMENT, inner.type, inner.nullable),)
    return ArrowField(name, arrow_type, children, nullable)


def _is_nested_dictionary(data_type: Any) -> bool:
    import pyarrow as pa

    return isinstance(data_type, pa.DictionaryType) and pa.types.is_nested(data_type.value_type)


def data_type_of(field: ArrowField) -> Any:
    """Give pyarrow's type of a field."""
    import pyarrow as pa

    inner = [pa.field(child.name, data_type_of(child), child.nullable) for child in field.children]
    kind = field.type.kind
    if kind == "struct":
        return pa.struct(inner)
    if kind == "map":
        key, item = inner[0].type
        return pa.map_(key.type, item)
    if kind == "fixed_size_list":
        return pa.list_(inner[0], field.type.byte_width)
    if kind in LIST_KINDS:
        return pa.large_list(inner[0]) if kind == "large_list" else pa.list_(inner[0])
    return pyarrow_type(field.type)


def converted(field: ArrowField, data_type: Any) -> Callable[[Any], NestedArray]:
    """Say how arrays become nested arrays of another type.

    Parameters
    ----------
    field : ArrowField
        What they are to be.
    data_type : pyarrow.DataType
        What they are.

    Raises
    ------
    SchemaError
        When one cannot be the other; the function that is returned raises it where a value does not fit.
    """
    import pyarrow as pa

    wanted = data_type_of(field)
    _refuse_lossy(data_type, wanted, field.name)

    def convert(array: Any) -> NestedArray:
        try:
            return arrow_nested(array.cast(wanted))
        except (pa.ArrowException, NotImplementedError) as error:
            raise SchemaError(f"{data_type} cannot be written as {wanted}: {error}", column=field.name) from error

    convert(pa.nulls(0, data_type))
    return convert


def _refuse_lossy(have: Any, wanted: Any, column: str) -> None:
    """Raise SchemaError where pyarrow's cast loses something without a word: numbers to infinity, a time zone."""
    import pyarrow as pa

    known, asked = (one.value_type if pa.types.is_dictionary(one) else one for one in (have, wanted))
    if pa.types.is_floating(known) and pa.types.is_floating(asked) and asked.bit_width < known.bit_width:
        lost = "large numbers would become infinite"
    elif pa.types.is_timestamp(known) and pa.types.is_timestamp(asked) and (known.tz is None) != (asked.tz is None):
        lost = "moments of a time zone are no local times"
    else:
        for place in range(min(known.num_fields, asked.num_fields)):
            _refuse_lossy(known.field(place).type, asked.field(place).type, column)
        return
    raise SchemaError(f"{known} within nested data is not written as {asked}: {lost}", column=column)


def one_dictionary(data: Any, field: ArrowField) -> Any:
    """Give all chunks of nested data the same dictionaries; none where pyarrow cannot, or makes other numbers.

    Parameters
    ----------
    data : pyarrow.ChunkedArray or pyarrow.Array
        Of any type that `arrow_field` takes.
    field : ArrowField
        What it says of that.
    """
    import pyarrow as pa

    if getattr(data, "num_chunks", 1) < 2:
        return data
    if not _has_half_floats(field):
        try:
            return data.unify_dictionaries()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return data.cast(data_type_of(_without_dictionaries(field)))


def _has_half_floats(field: ArrowField) -> bool:
    """Whether there are dictionaries of them, whose values pyarrow takes for other ones when it unifies these."""
    here = field.type.dictionary is not None and field.type.kind == "float" and field.type.bit_width == 16
    return here or any(map(_has_half_floats, field.children))


def _without_dictionaries(field: ArrowField) -> ArrowField:
    children = tuple(map(_without_dictionaries, field.children))
    return replace(field, type=replace(field.type, dictionary=None), children=children)


def arrow_nested(array: Any) -> NestedArray:
    """Give Arrow data as a nested array.

    Parameters
    ----------
    array : pyarrow.Array
        Of any type that `arrow_field` takes.

    Returns
    -------
    NestedArray
        Views of its buffers, where they have the right width.
    """
    import pyarrow as pa

    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array.type, pa.RunEndEncodedType):
        import pyarrow.compute

        return arrow_nested(pyarrow.compute.run_end_decode(array))
    if _is_nested_dictionary(array.type):
        return arrow_nested(array.dictionary.take(array.indices))
    return _MAKERS.get(type(array).__name__, _leaf)(array)


def _leaf(array: Any) -> LeafArray:
    (values,) = arrow_source(array).leaves(0, len(array))
    return LeafArray(len(array), values)


def _validity(array: Any) -> np.ndarray | None:
    """Give the bitmap of an array as bytes; None where there are no nulls."""
    buffer, offset = array.buffers()[0], array.offset
    if buffer is None or not len(array) or not array.null_count:
        return None
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + len(array) + 7) // 8]
    bits = np.unpackbits(octets, bitorder="little")[offset % 8 : offset % 8 + len(array)]
    return validity_of(bits.view(bool))


def _struct(array: Any) -> StructArray:
    children = tuple(arrow_nested(array.field(number)) for number in range(array.type.num_fields))
    return StructArray(len(array), _validity(array), children)


def _span(array: Any) -> tuple[np.ndarray, Any]:
    """Give the offsets of lists into their elements, from 0 on, and just those elements."""
    offsets = np.asarray(array.offsets)
    if not len(offsets):
        offsets = np.zeros(1, np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return np.subtract(offsets, first, dtype=np.int64), array.values.slice(first, last - first)


def _list(array: Any) -> ListArray:
    offsets, elements = _span(array)
    return ListArray(len(array), _validity(array), offsets, (arrow_nested(elements),))


def _map(array: Any) -> ListArray:
    offsets, pairs = _span(array)
    children = arrow_nested(pairs.field(0)), arrow_nested(pairs.field(1))
    return ListArray(len(array), _validity(array), offsets, children)


def _fixed_size_list(array: Any) -> ListArray:
    size, count = array.type.list_size, len(array)
    elements = array.values.slice(array.offset * size, count * size)
    offsets = np.arange(count + 1, dtype=np.int64) * size
    return ListArray(count, _validity(array), offsets, (arrow_nested(elements),))


def _list_view(array: Any) -> ListArray:
    """Put the elements of views in order: they may overlap, or leave some out."""
    import pyarrow as pa

    validity = _validity(array)
    starts, sizes = np.asarray(array.offsets).astype(np.int64), np.asarray(array.sizes).astype(np.int64)
    if validity is not None:
        sizes = np.where(validity, sizes, 0)
    offsets = np.append(0, np.cumsum(sizes))
    places = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], sizes)
    return ListArray(len(array), validity, offsets, (arrow_nested(array.values.take(pa.array(places))),))


# How the arrays of nested types are taken apart, by pyarrow's classes.
_MAKERS: dict[str, Callable[[Any], NestedArray]] = {
    "ListArray": _list,
    "LargeListArray": _list,
    "ListViewArray": _list_view,
    "LargeListViewArray": _list_view,
    "FixedSizeListArray": _fixed_size_list,
    "StructArray": _struct,
    "MapArray": _map,
}
