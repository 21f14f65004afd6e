"""Nested Arrow data as nested arrays: offsets, validity and values of pyarrow's buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.nested.shred import UnshreddedArray, UnshreddedLeaf, UnshreddedList, UnshreddedStruct
from numparq.errors import SchemaError
from numparq.format.key_values.arrow import ArrowField
from numparq.from_pandas.arrow import arrow_values
from numparq.from_pandas.column_values import validity_bytes
from numparq.types.pyarrow import field_to_pyarrow, is_nested_dictionary


def cast_then_convert(field: ArrowField, data_type: Any) -> Callable[[Any], UnshreddedArray]:
    """Return a function that casts arrays of `data_type` to the type of `field` and converts them to nested arrays.

    Raises SchemaError if there is no such cast; so does the function for a value that does not fit.
    """
    import pyarrow as pa

    wanted = field_to_pyarrow(field)
    _check_lossless(data_type, wanted, field.name)

    def convert(array: Any) -> UnshreddedArray:
        try:
            return nested_from_arrow(array.cast(wanted))
        except (pa.ArrowException, NotImplementedError) as error:
            raise SchemaError(f"{data_type} cannot be written as {wanted}: {error}", column=field.name) from error

    convert(pa.nulls(0, data_type))
    return convert


def _check_lossless(have: Any, wanted: Any, column: str) -> None:
    """Raise SchemaError where pyarrow's cast would silently lose something: floats to infinity, a time zone."""
    import pyarrow as pa

    known, asked = (one.value_type if pa.types.is_dictionary(one) else one for one in (have, wanted))
    if pa.types.is_floating(known) and pa.types.is_floating(asked) and asked.bit_width < known.bit_width:
        lost = "large numbers would become infinite"
    elif pa.types.is_timestamp(known) and pa.types.is_timestamp(asked) and (known.tz is None) != (asked.tz is None):
        lost = "a time zone would be added or lost"
    elif pa.types.is_struct(known) and pa.types.is_struct(asked):
        extra = next((field.name for field in known if field.name not in asked.names), None)
        if extra is None:
            for field in known:
                place = asked.get_field_index(field.name)  # -1 for two fields of a name, which pyarrow refuses to cast
                _check_lossless(field.type, asked.field(place).type, f"{column}.{field.name}")
            return
        lost = f"it has no field {extra!r}"
    else:
        for place in range(min(known.num_fields, asked.num_fields)):
            _check_lossless(known.field(place).type, asked.field(place).type, column)
        return
    raise SchemaError(f"{known} within nested data cannot be written as {asked}: {lost}", column=column)


def unify_dictionaries(data: Any, field: ArrowField) -> Any:
    """Return nested data with the same dictionaries in all chunks, or without any if pyarrow cannot unify them."""
    import pyarrow as pa

    if getattr(data, "num_chunks", 1) < 2:
        return data
    if not _has_half_floats(field):
        try:
            return data.unify_dictionaries()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return data.cast(field_to_pyarrow(_without_dictionaries(field)))


def _has_half_floats(field: ArrowField) -> bool:
    """Whether any dictionary holds half floats, which pyarrow changes when it unifies dictionaries."""
    here = field.type.dictionary is not None and field.type.kind == "float" and field.type.bit_width == 16
    return here or any(map(_has_half_floats, field.children))


def _without_dictionaries(field: ArrowField) -> ArrowField:
    children = tuple(map(_without_dictionaries, field.children))
    return replace(field, type=replace(field.type, dictionary=None), children=children)


def nested_from_arrow(array: Any) -> UnshreddedArray:
    """Return a pyarrow array as a nested array, with views of its buffers where their width is right."""
    import pyarrow as pa

    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array.type, pa.RunEndEncodedType):
        import pyarrow.compute

        return nested_from_arrow(pyarrow.compute.run_end_decode(array))
    if is_nested_dictionary(array.type):
        return nested_from_arrow(array.dictionary.take(array.indices))
    return _BY_CLASS.get(type(array).__name__, _leaf)(array)


def _leaf(array: Any) -> UnshreddedLeaf:
    (values,) = arrow_values(array).read_leaves(0, len(array))
    return UnshreddedLeaf(len(array), values)


def _validity(array: Any) -> np.ndarray | None:
    """Return the validity bitmap of an array as bytes; None if there are no nulls."""
    buffer, offset = array.buffers()[0], array.offset
    if buffer is None or not len(array) or not array.null_count:
        return None
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + len(array) + 7) // 8]
    bits = np.unpackbits(octets, bitorder="little")[offset % 8 : offset % 8 + len(array)]
    return validity_bytes(bits.view(bool))


def _struct(array: Any) -> UnshreddedStruct:
    children = tuple(nested_from_arrow(array.field(number)) for number in range(array.type.num_fields))
    return UnshreddedStruct(len(array), _validity(array), children)


def _span(array: Any) -> tuple[np.ndarray, Any]:
    """Return the offsets of lists, starting at 0, and only the elements that they refer to."""
    offsets = np.asarray(array.offsets)
    if not len(offsets):
        offsets = np.zeros(1, np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return np.subtract(offsets, first, dtype=np.int64), array.values.slice(first, last - first)


def _list(array: Any) -> UnshreddedList:
    offsets, elements = _span(array)
    return UnshreddedList(len(array), _validity(array), offsets, (nested_from_arrow(elements),))


def _map(array: Any) -> UnshreddedList:
    offsets, pairs = _span(array)
    children = nested_from_arrow(pairs.field(0)), nested_from_arrow(pairs.field(1))
    return UnshreddedList(len(array), _validity(array), offsets, children)


def _fixed_size_list(array: Any) -> UnshreddedList:
    size, count = array.type.list_size, len(array)
    elements = array.values.slice(array.offset * size, count * size)
    offsets = np.arange(count + 1, dtype=np.int64) * size
    return UnshreddedList(count, _validity(array), offsets, (nested_from_arrow(elements),))


def _list_view(array: Any) -> UnshreddedList:
    """Return a list view as a list: its elements in order, as views may overlap or have gaps."""
    import pyarrow as pa

    validity = _validity(array)
    starts, sizes = np.asarray(array.offsets).astype(np.int64), np.asarray(array.sizes).astype(np.int64)
    if validity is not None:
        sizes = np.where(validity, sizes, 0)
    offsets = np.append(0, np.cumsum(sizes))
    places = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], sizes)
    return UnshreddedList(len(array), validity, offsets, (nested_from_arrow(array.values.take(pa.array(places))),))


# Converters of nested arrays, by pyarrow class.
_BY_CLASS: dict[str, Callable[[Any], UnshreddedArray]] = {
    "ListArray": _list,
    "LargeListArray": _list,
    "ListViewArray": _list_view,
    "LargeListViewArray": _list_view,
    "FixedSizeListArray": _fixed_size_list,
    "StructArray": _struct,
    "MapArray": _map,
}
