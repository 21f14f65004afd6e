"""Random Arrow types and arrays of them, to be written by pyarrow: nested, with nulls at each level."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Rng = np.random.Generator
_TEXTS = ["", "a", "grün", "longer than a view of twelve bytes", "{}", "[1]"]
_MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5)


def _integers(low: int, high: int) -> Callable[[Rng], int]:
    return lambda rng: int(rng.integers(low, high, endpoint=True))


def _text(rng: Rng) -> str:
    return _TEXTS[int(rng.integers(len(_TEXTS)))]


def _decimal(digits: int, scale: int) -> Callable[[Rng], decimal.Decimal]:
    context = decimal.Context(prec=100)
    return lambda rng: decimal.Decimal(int(rng.integers(-(10**digits) + 1, 10**digits))).scaleb(-scale, context)


# Flat types, with a function that draws a value.
FLAT: list[tuple[Any, Callable[[Rng], Any]]] = [
    (pa.bool_(), lambda rng: bool(rng.integers(2))),
    *((kind, _integers(0, 100)) for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint32(), pa.uint64())),
    (pa.int32(), _integers(-(1 << 31), (1 << 31) - 1)),
    (pa.int64(), _integers(-(1 << 63), (1 << 63) - 1)),
    (pa.float16(), lambda rng: np.float16(rng.integers(-9, 9))),
    (pa.float32(), lambda rng: float(rng.integers(-9, 9)) / 4),
    (pa.float64(), lambda rng: float(rng.random())),
    (pa.decimal32(7, 2), _decimal(7, 2)),
    (pa.decimal64(15, 3), _decimal(15, 3)),
    (pa.decimal128(30, 5), _decimal(18, 5)),
    (pa.decimal256(60, 0), _decimal(18, 0)),
    (pa.date32(), lambda rng: datetime.date(1960 + int(rng.integers(100)), 1, 2)),
    (pa.time32("ms"), _integers(0, 86_399_999)),
    (pa.time64("us"), _integers(0, 86_399_999_999)),
    (pa.time64("ns"), _integers(0, 86_399_999_999_999)),
    *((pa.timestamp(unit), _integers(-(10**9), 10**9)) for unit in ("ms", "us", "ns")),
    (pa.timestamp("us", "Europe/Paris"), _integers(-(10**9), 10**9)),
    *((pa.duration(unit), _integers(-(10**9), 10**9)) for unit in ("s", "ns")),
    *((kind, _text) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, lambda rng: _text(rng).encode()) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(3), lambda rng: rng.bytes(3)),
    *((pa.dictionary(index, pa.string()), _text) for index in (pa.int8(), pa.int32(), pa.uint16())),
    (pa.dictionary(pa.int32(), pa.binary(), ordered=True), lambda rng: _text(rng).encode()),
    (pa.null(), lambda rng: None),
    (pa.uuid(), lambda rng: rng.bytes(16)),
    (pa.json_(), lambda rng: _TEXTS[int(rng.integers(4, 6))]),
    (pa.bool8(), lambda rng: int(rng.integers(2))),
    (pa.opaque(pa.int64(), "a", "b"), _integers(0, 9)),
]
_VALUES = dict(FLAT)


def random_type(rng: Rng, depth: int) -> Any:
    """Draw a type, nested at most `depth` deep."""
    kind = int(rng.integers(0, 8)) if depth else 0
    if kind in (0, 7):
        return FLAT[int(rng.integers(len(FLAT)))][0]
    if kind == 6:
        names = "abc"[: int(rng.integers(1, 4))]
        return pa.struct([_field(rng, name, depth) for name in names])
    if kind == 5:
        key = [pa.string(), pa.int32(), pa.binary(3), pa.date32()][int(rng.integers(4))]
        return pa.map_(key, _field(rng, "value", depth))
    element = _field(rng, "element", depth)
    if kind == 4:
        return pa.list_(element, int(rng.integers(1, 4)))  # pyarrow divides by a size of 0
    return (pa.list_, pa.large_list, pa.list_view)[kind - 1](element)


def _field(rng: Rng, name: str, depth: int) -> Any:
    kind = random_type(rng, depth - 1)
    return pa.field(name, kind, nullable=bool(rng.random() < 0.8) or pa.types.is_null(kind))


def random_array(rng: Rng, kind: Any, count: int, nulls: float, nullable: bool = True) -> Any:
    """Draw an array of a type; `nulls` is their share at each level."""
    valid = np.array(rng.random(count) >= nulls) if nullable else np.ones(count, bool)
    if kind in _VALUES:
        return _flat(kind, [_VALUES[kind](rng) if there else None for there in valid])
    mask = pa.array(~valid)
    if pa.types.is_struct(kind):
        children = [random_array(rng, field.type, count, nulls, field.nullable) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        elements = random_array(rng, kind.value_type, count * kind.list_size, nulls, kind.value_field.nullable)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(kind, count, [bitmap], children=[elements])
    sizes = rng.integers(0, 4, count) * valid
    offsets = np.append(0, np.cumsum(sizes))
    elements = int(offsets[-1])
    if pa.types.is_map(kind):
        keys = random_array(rng, kind.key_type, elements, 0)
        items = random_array(rng, kind.item_type, elements, nulls, kind.item_field.nullable)
        ends = pa.array(offsets, pa.int32(), mask=np.append(~valid, False))
        return pa.MapArray.from_arrays(ends, keys, items, type=kind)
    values = random_array(rng, kind.value_type, elements, nulls, kind.value_field.nullable)
    if pa.types.is_list_view(kind):
        return pa.ListViewArray.from_arrays(
            pa.array(offsets[:-1], pa.int32()), pa.array(sizes, pa.int32()), values, type=kind, mask=mask
        )
    array, width = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(kind) else (pa.ListArray, pa.int32())
    return array.from_arrays(pa.array(offsets, width), values, type=kind, mask=mask)


def _flat(kind: Any, values: list[Any]) -> Any:
    if pa.types.is_dictionary(kind):
        encoded = pa.array(values, kind.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(kind.index_type), encoded.dictionary, ordered=kind.ordered
        )
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def random_table(rng: Rng, columns: int = 3, depth: int = 3) -> Any:
    """Draw a table: empty, sliced, of nulls alone or of few, in one chunk or two."""
    count = int(rng.choice([0, 1, 5, 20]))
    arrays, fields = [], []
    for number in range(columns):
        kind, nulls = random_type(rng, depth), float(rng.choice([0, 0.3, 1]))
        nullable = bool(rng.random() < 0.8) or pa.types.is_null(kind)
        array = random_array(rng, kind, count + 3, nulls, nullable)
        arrays.append(array.slice(int(rng.integers(0, 4)), count))
        fields.append(pa.field(f"c{number}", kind, nullable))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
