"""Encode Arrow columns of any type as types that Spark has, and decode them bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from numparq.errors import UnsupportedError

# Types encoded as others of the same bits.
_SAME_BITS = {
    pa.uint8(): pa.int8(),
    pa.uint16(): pa.int16(),
    pa.uint32(): pa.int32(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.int16(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
}
_UNCHANGED = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
)
# Types encoded by a cast that is lossless both ways.
_CAST = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


class _TypeTransport(NamedTuple):
    """Transport of a type: the type that Spark carries, and the functions that encode and decode arrays."""

    type: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


class ArrowTransport:
    """Transport of a schema's columns through Spark: encoded as `encoded_schema`, nullable columns ``c0``, ``c1``, ...

    `schema` is that of decoded columns, without dictionaries. Raises UnsupportedError for types that cannot be encoded.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([field.with_type(_without_dictionaries(field.type)) for field in schema])
        self._ways = [_type_transport(field.type) for field in self.schema]
        self.encoded_schema = pa.schema([(f"c{place}", way.type) for place, way in enumerate(self._ways)])

    def encode(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """Encode the schema's columns of a table, found by name."""
        columns = (_cast(table.column(field.name), field.type) for field in self.schema)
        return [_over(way.encode, column, way.type) for column, way in zip(columns, self._ways, strict=True)]

    def decode(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        """Decode columns, whatever Spark did to the order of rows."""
        # With useLargeVarTypes, Spark returns strings and bytes with 64-bit offsets.
        arrays = [
            _over(way.decode, _cast(column, way.type), field.type)
            for field, way, column in zip(self.schema, self._ways, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _over(make: Callable[[Any], Any], column: Any, arrow_type: Any) -> pa.ChunkedArray:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([make(chunk) for chunk in chunks], type=arrow_type)


def _cast(column: Any, arrow_type: Any) -> Any:
    return column if column.type == arrow_type else column.cast(arrow_type)


def _without_dictionaries(arrow_type: Any) -> Any:
    """Return a type with dictionaries replaced by their value types."""
    if t.is_dictionary(arrow_type):
        return _without_dictionaries(arrow_type.value_type)
    if t.is_struct(arrow_type):
        return pa.struct([field.with_type(_without_dictionaries(field.type)) for field in arrow_type])
    if t.is_map(arrow_type):
        key, item = arrow_type.key_field, arrow_type.item_field
        return pa.map_(key.with_type(_without_dictionaries(key.type)), item.with_type(_without_dictionaries(item.type)))
    if t.is_list(arrow_type) or t.is_large_list(arrow_type):
        inner = arrow_type.value_field
        return (pa.list_ if t.is_list(arrow_type) else pa.large_list)(
            inner.with_type(_without_dictionaries(inner.type))
        )
    if t.is_fixed_size_list(arrow_type):
        inner = arrow_type.value_field
        return pa.list_(inner.with_type(_without_dictionaries(inner.type)), arrow_type.list_size)
    return arrow_type


# --- transport by type ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _type_transport(arrow_type: Any) -> _TypeTransport:
    if arrow_type in _UNCHANGED:
        return _TypeTransport(arrow_type, _same, _same)
    if arrow_type in _SAME_BITS:
        return _view_as(arrow_type, _SAME_BITS[arrow_type])
    if arrow_type in _CAST:
        return _cast_as(arrow_type, _CAST[arrow_type])
    if t.is_null(arrow_type):
        return _TypeTransport(pa.bool_(), lambda array: array.cast(pa.bool_()), lambda array: pa.nulls(len(array)))
    for test, make in _FAMILIES:
        if test(arrow_type):
            return make(arrow_type)
    raise UnsupportedError(f"Spark cannot carry values of the Arrow type {arrow_type}")


def _same(array: Any) -> Any:
    return array


def _view_as(arrow_type: Any, other: Any) -> _TypeTransport:
    return _TypeTransport(other, lambda array: array.view(other), lambda array: array.view(arrow_type))


def _cast_as(arrow_type: Any, other: Any) -> _TypeTransport:
    return _TypeTransport(other, lambda array: array.cast(other), lambda array: array.cast(arrow_type))


def _temporal(arrow_type: Any) -> _TypeTransport:
    return _view_as(arrow_type, pa.int32() if arrow_type.bit_width == 32 else pa.int64())


def _decimal(arrow_type: Any) -> _TypeTransport:
    if arrow_type.bit_width < 128:
        return _cast_as(arrow_type, pa.decimal128(arrow_type.precision, arrow_type.scale))
    if arrow_type.bit_width == 128 and 0 <= arrow_type.scale <= arrow_type.precision:
        return _TypeTransport(arrow_type, _same, _same)
    width = arrow_type.bit_width // 8
    fixed = pa.binary(width)
    return _TypeTransport(
        pa.binary(), lambda array: array.view(fixed).cast(pa.binary()), lambda array: array.cast(fixed).view(arrow_type)
    )


def _extension(arrow_type: Any) -> _TypeTransport:
    inner = _type_transport(arrow_type.storage_type)
    return _TypeTransport(
        inner.type,
        lambda array: inner.encode(array.storage),
        lambda array: pa.ExtensionArray.from_storage(arrow_type, inner.decode(array)),
    )


def _struct(arrow_type: Any) -> _TypeTransport:
    ways = [_type_transport(field.type) for field in arrow_type]
    if not ways:
        raise UnsupportedError("Spark cannot carry a struct without fields")
    carried = pa.struct([(f"f{place}", way.type) for place, way in enumerate(ways)])

    def convert(array: Any, to: Any, converters: list[Callable[[Any], Any]]) -> Any:
        children = [convert_field(array.field(place)) for place, convert_field in enumerate(converters)]
        return pa.Array.from_buffers(to, len(array), [_validity(array)], children=children)

    return _TypeTransport(
        carried,
        lambda array: convert(array, carried, [way.encode for way in ways]),
        lambda array: convert(array, arrow_type, [way.decode for way in ways]),
    )


def _list(arrow_type: Any) -> _TypeTransport:
    inner = _type_transport(arrow_type.value_type)
    carried = pa.list_(inner.type)

    def there(array: Any) -> Any:
        elements, offsets = _elements(array)
        return _list_of(carried, array, offsets, inner.encode(elements))

    def back(array: Any) -> Any:
        elements, offsets = _elements(array)
        return _list_of(arrow_type, array, offsets, inner.decode(elements))

    return _TypeTransport(carried, there, back)


def _fixed_list(arrow_type: Any) -> _TypeTransport:
    """Encode lists of one length without the hidden elements of null lists."""
    inner = _list(pa.list_(arrow_type.value_type))
    plain, size = pa.list_(arrow_type.value_type), arrow_type.list_size

    def there(array: Any) -> Any:
        return inner.encode(array.cast(plain))

    def back(array: Any) -> Any:
        elements = inner.decode(array).flatten()  # flatten drops hidden elements of null lists
        is_there = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), size)
        if not is_there.all():
            elements = elements.take(pa.array(np.cumsum(is_there) - 1, pa.int64(), mask=~is_there))
        return pa.Array.from_buffers(arrow_type, len(array), [_validity(array)], children=[elements])

    return _TypeTransport(inner.type, there, back)


def _map(arrow_type: Any) -> _TypeTransport:
    """Encode maps as lists of pairs, so that Spark keeps order and duplicate keys."""
    key, item = _type_transport(arrow_type.key_type), _type_transport(arrow_type.item_type)
    pair = pa.struct([("f0", key.type), ("f1", item.type)])
    carried = pa.list_(pair)
    entry = pa.struct([arrow_type.key_field, arrow_type.item_field])

    def there(array: Any) -> Any:
        bounds, start, count = _bounds(array)
        keys, items = key.encode(array.keys.slice(start, count)), item.encode(array.items.slice(start, count))
        pairs = pa.Array.from_buffers(pair, count, [None], children=[keys, items])
        return _list_of(carried, array, bounds, pairs)

    def back(array: Any) -> Any:
        pairs, offsets = _elements(array)
        children = [key.decode(pairs.field(0)), item.decode(pairs.field(1))]
        return _list_of(arrow_type, array, offsets, pa.Array.from_buffers(entry, len(pairs), [None], children=children))

    return _TypeTransport(carried, there, back)


# --- buffers of arrays ------------------------------------------------------------------------------------------------


def _validity(array: Any) -> Any:
    """Return the validity bitmap of an array, starting at its first value."""
    return array.is_valid().buffers()[1] if array.null_count else None


def _bounds(array: Any) -> tuple[Any, int, int]:
    """Return the int32 offsets of lists from 0 on, and start and count of their elements."""
    offsets = array.offsets.to_numpy() if len(array) else array.offsets.to_numpy()[:1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    moved = (offsets - first).astype("int32") if len(offsets) else offsets
    return moved, first, last - first


def _elements(array: Any) -> tuple[Any, Any]:
    offsets, start, count = _bounds(array)
    return array.values.slice(start, count), offsets


def _list_of(arrow_type: Any, like: Any, offsets: Any, elements: Any) -> Any:
    """Build lists (or maps) of elements, null where `like` is null."""
    wide = offsets.astype("int64") if t.is_large_list(arrow_type) else offsets
    return pa.Array.from_buffers(arrow_type, len(like), [_validity(like), pa.py_buffer(wide)], children=[elements])


_FAMILIES: tuple[tuple[Callable[[Any], bool], Callable[[Any], _TypeTransport]], ...] = (
    (lambda of: isinstance(of, pa.BaseExtensionType), _extension),
    (t.is_temporal, _temporal),
    (t.is_decimal, _decimal),
    (t.is_fixed_size_binary, lambda of: _cast_as(of, pa.binary())),
    (t.is_struct, _struct),
    (lambda of: t.is_list(of) or t.is_large_list(of), _list),
    (t.is_fixed_size_list, _fixed_list),
    (t.is_map, _map),
)
