"""Columns with known statistics: of one type, of floats, of every type that pyarrow writes."""

from __future__ import annotations

import datetime
import decimal
import struct

import numpy as np

from numparq.format.column_order import ColumnOrder, leaf_order
from numparq.format.logical_type import LogicalType
from numparq.format.page_bounds import compute_page_bounds
from numparq.format.schema_node import SchemaNode

TEXT, BYTES, WHOLE = (
    ColumnOrder("bytes", truncation="text"),
    ColumnOrder("bytes", truncation="bytes"),
    ColumnOrder("bytes"),
)
NAN = float("nan")


def column_node(physical, kind=None, length=0, **about):
    return SchemaNode("a", 1, physical, length, LogicalType(kind, **about) if kind else None)


def float_bounds(column_order, *pages_):
    order = leaf_order(column_node(5), column_order)
    ends = np.cumsum([0, *(len(page) for page in pages_)], dtype=np.int64)
    return compute_page_bounds(order, np.array([value for page in pages_ for value in page], np.float64), ends)


def double_bytes(value):
    return struct.pack("<d", value)


def arrow_columns():
    import pyarrow as pa

    rng = np.random.default_rng(0)
    count = 200
    integers = rng.integers(-(1 << 62), 1 << 62, count)
    numbers = rng.standard_normal(count) * 1e6
    days = [datetime.date(1900, 1, 1) + datetime.timedelta(int(day)) for day in rng.integers(0, 90000, count)]
    decimals = [decimal.Decimal(int(value)).scaleb(-2) for value in rng.integers(-(10**15), 10**15, count)]
    arrays = {
        "i4": pa.array(integers >> 32, pa.int32()),
        "i8": pa.array(integers),
        "u1": pa.array(rng.integers(0, 256, count), pa.uint8()),
        "u4": pa.array(rng.integers(0, 1 << 32, count), pa.uint32()),
        "u8": pa.array(integers.view("u8")),
        "f4": pa.array(numbers, pa.float32()),
        "f8": pa.array(numbers),
        "f8 nan": pa.array([NAN, *numbers[1:]]),
        "f2": pa.array(numbers / 1e6, pa.float32()).cast(pa.float16()),
        "bool": pa.array(integers > 0),
        "str": pa.array([str(value) for value in integers]),
        "bytes": pa.array([value.tobytes() for value in integers]),
        "date": pa.array(days),
        "flba": pa.array([value.tobytes()[:7] for value in integers], pa.binary(7)),
        "decimal9": pa.array(decimals, pa.decimal128(20, 2)),
        "zero": pa.array([0.0, -0.0] * (count // 2)),
        "time": pa.array(integers % 86_400_000_000, pa.time64("us")),
    }
    return pa.table(arrays)


def to_leaf_values(array, leaf):
    """Return the values of an Arrow array as `LeafValues`."""
    import pyarrow as pa

    if leaf.physical == 6:
        texts = [value.encode() if isinstance(value, str) else value for value in array.to_pylist()]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        starts = ends - [len(text) for text in texts]
        return np.frombuffer(b"".join(texts), np.uint8), {"starts": starts, "ends": ends}
    if leaf.physical == 0:
        return np.array(array.to_pylist(), np.uint8), {}
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    if pa.types.is_decimal(array.type):
        swapped = raw.reshape(-1, 16)[:, ::-1][:, 16 - leaf.type_length :]
        return np.ascontiguousarray(swapped).reshape(-1), {}
    if pa.types.is_uint8(array.type):
        return raw[: len(array)].astype(np.int32), {}
    width = {1: 4, 2: 8, 4: 4, 5: 8}.get(leaf.physical) or leaf.type_length
    return raw[: width * len(array)].view({4: "i4", 8: "i8"}.get(width, "u1") if leaf.physical != 7 else "u1"), {}
