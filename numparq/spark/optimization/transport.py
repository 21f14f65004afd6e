"""Encode Arrow columns of any type as types that Spark has, and decode them bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from numparq.errors import UnsupportedError

__all__ = ["ArrowTransport"]

# Types whose values travel as others of the same bits.
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
# Types that travel as others by a cast that loses nothing, nor does the one back.
_CAST = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


class _TypeTransport(NamedTuple):
    """How the arrays of a type travel: as what type, and what makes one out of the other."""

    type: Any
    there: Callable[[Any], Any]
    back: Callable[[Any], Any]


class ArrowTransport:
    """The columns of a schema, on their way through Spark.

    Parameters
    ----------
    schema : pyarrow.Schema
        What is to be carried.

    Attributes
    ----------
    schema : pyarrow.Schema
        What comes out: the same, but for dictionaries, which are their values.
    carried : pyarrow.Schema
        As which it travels: columns ``c0``, ``c1``, ..., all nullable.

    Raises
    ------
    UnsupportedError
        When a column is of a type that does not even travel as bytes.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([field.with_type(_without_dictionaries(field.type)) for field in schema])
        self._ways = [_type_transport(field.type) for field in self.schema]
        self.carried = pa.schema([(f"c{place}", way.type) for place, way in enumerate(self._ways)])

    def pack(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """Give the columns of a table as they travel; there may be others in it.

        Parameters
        ----------
        table : pyarrow.Table
            With the columns of the schema, by name.

        Returns
        -------
        list of pyarrow.ChunkedArray
        """
        columns = (_cast(table.column(field.name), field.type) for field in self.schema)
        return [_over(way.there, column, way.type) for column, way in zip(columns, self._ways, strict=True)]

    def unpack(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
        """Give a table of what has travelled.

        Parameters
        ----------
        columns : sequence of pyarrow.ChunkedArray or pyarrow.Array
            As `pack` made them, whatever Spark did to the order of rows.
        """
        # Where Spark is told so (useLargeVarTypes), it gives texts and bytes with wide offsets.
        arrays = [
            _over(way.back, _cast(column, way.type), field.type)
            for field, way, column in zip(self.schema, self._ways, columns, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _over(make: Callable[[Any], Any], column: Any, arrow_type: Any) -> pa.ChunkedArray:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([make(chunk) for chunk in chunks], type=arrow_type)


def _cast(column: Any, arrow_type: Any) -> Any:
    return column if column.type == arrow_type else column.cast(arrow_type)


def _without_dictionaries(arrow_type: Any) -> Any:
    """Give a type without the dictionaries in it."""
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


# --- ways -------------------------------------------------------------------------------------------------------------


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
        lambda array: inner.there(array.storage),
        lambda array: pa.ExtensionArray.from_storage(arrow_type, inner.back(array)),
    )


def _struct(arrow_type: Any) -> _TypeTransport:
    ways = [_type_transport(field.type) for field in arrow_type]
    if not ways:
        raise UnsupportedError("Spark cannot carry a struct without fields")
    carried = pa.struct([(f"f{place}", way.type) for place, way in enumerate(ways)])

    def made(array: Any, of: Any, makers: list[Callable[[Any], Any]]) -> Any:
        children = [make(array.field(place)) for place, make in enumerate(makers)]
        return pa.Array.from_buffers(of, len(array), [_validity(array)], children=children)

    return _TypeTransport(
        carried,
        lambda array: made(array, carried, [way.there for way in ways]),
        lambda array: made(array, arrow_type, [way.back for way in ways]),
    )


def _list(arrow_type: Any) -> _TypeTransport:
    inner = _type_transport(arrow_type.value_type)
    carried = pa.list_(inner.type)

    def there(array: Any) -> Any:
        elements, offsets = _elements(array)
        return _list_of(carried, array, offsets, inner.there(elements))

    def back(array: Any) -> Any:
        elements, offsets = _elements(array)
        return _list_of(arrow_type, array, offsets, inner.back(elements))

    return _TypeTransport(carried, there, back)


def _fixed_list(arrow_type: Any) -> _TypeTransport:
    """Carry lists of one length: of those that are null, the elements that are not seen do not travel."""
    inner = _list(pa.list_(arrow_type.value_type))
    plain, size = pa.list_(arrow_type.value_type), arrow_type.list_size

    def there(array: Any) -> Any:
        return inner.there(array.cast(plain))

    def back(array: Any) -> Any:
        elements = inner.back(array).flatten()  # without what null lists may have
        is_there = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), size)
        if not is_there.all():
            elements = elements.take(pa.array(np.cumsum(is_there) - 1, pa.int64(), mask=~is_there))
        return pa.Array.from_buffers(arrow_type, len(array), [_validity(array)], children=[elements])

    return _TypeTransport(inner.type, there, back)


def _map(arrow_type: Any) -> _TypeTransport:
    """Carry maps as lists of pairs: neither their order nor a key that is there twice is Spark's business."""
    key, item = _type_transport(arrow_type.key_type), _type_transport(arrow_type.item_type)
    pair = pa.struct([("f0", key.type), ("f1", item.type)])
    carried = pa.list_(pair)
    entry = pa.struct([arrow_type.key_field, arrow_type.item_field])

    def there(array: Any) -> Any:
        bounds, start, count = _bounds(array)
        keys, items = key.there(array.keys.slice(start, count)), item.there(array.items.slice(start, count))
        pairs = pa.Array.from_buffers(pair, count, [None], children=[keys, items])
        return _list_of(carried, array, bounds, pairs)

    def back(array: Any) -> Any:
        pairs, offsets = _elements(array)
        children = [key.back(pairs.field(0)), item.back(pairs.field(1))]
        return _list_of(arrow_type, array, offsets, pa.Array.from_buffers(entry, len(pairs), [None], children=children))

    return _TypeTransport(carried, there, back)


# --- parts of arrays --------------------------------------------------------------------------------------------------


def _validity(array: Any) -> Any:
    """Give the bitmap of an array, from its first value on."""
    return array.is_valid().buffers()[1] if array.null_count else None


def _bounds(array: Any) -> tuple[Any, int, int]:
    """Give the offsets of lists from 0 on, as a buffer of int32, and where in their memory the elements are."""
    offsets = array.offsets.to_numpy() if len(array) else array.offsets.to_numpy()[:1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    moved = (offsets - first).astype("int32") if len(offsets) else offsets
    return moved, first, last - first


def _elements(array: Any) -> tuple[Any, Any]:
    offsets, start, count = _bounds(array)
    return array.values.slice(start, count), offsets


def _list_of(arrow_type: Any, like: Any, offsets: Any, elements: Any) -> Any:
    """Make lists (or maps) of elements, null where others are."""
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
