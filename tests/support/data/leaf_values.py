"""Leaf values as plain Python lists, for comparison with pyarrow's files."""

from __future__ import annotations

import decimal
import io

import numpy as np

EXACT = decimal.Context(prec=100)
PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def leaf_to_list(leaf, node, num_rows):
    """Return the leaf's value for each row: None, or the stored value (bytes for byte arrays)."""
    for array, dtype in (
        (leaf.starts, "i8"),
        (leaf.ends, "i8"),
        (leaf.validity, "u1"),
        (leaf.definition_levels, "u1"),
        (leaf.codes, "i4"),
        (leaf.values, DTYPES[node.physical]),
    ):
        assert array is None or (array.dtype == dtype and array.flags.c_contiguous and array.ndim == 1)
    values = leaf_items(leaf, node)
    if leaf.codes is not None:
        values = [values[code] if 0 <= code < len(values) else "nonsense" for code in leaf.codes.tolist()]
    if leaf.definition_levels is not None:
        assert leaf.validity is None
        assert leaf.repetition_levels is None
        rest = iter(values)
        rows = [next(rest) if level == 2 else None for level in leaf.definition_levels.tolist()]
        assert next(rest, None) is None
    elif leaf.validity is not None:
        assert len(values) == len(leaf.validity)
        assert set(leaf.validity.tolist()) <= {0, 1}
        assert not leaf.validity.all()
        rows = [value if there else None for value, there in zip(values, leaf.validity.tolist(), strict=True)]
    else:
        rows = values
    assert len(rows) == num_rows
    return rows


DTYPES = ("u1", "i4", "i8", "u1", "f4", "f8", "u1", "u1")


def leaf_items(leaf, node):
    if node.physical == 6:
        assert len(leaf.starts) == len(leaf.ends)
        data = leaf.values.tobytes()
        return [data[start:end] for start, end in zip(leaf.starts.tolist(), leaf.ends.tolist(), strict=True)]
    if node.physical in (3, 7):
        data, length = leaf.values.tobytes(), node.type_length or 12
        assert len(data) % length == 0
        return [data[at : at + length] for at in range(0, len(data), length)]
    if node.physical in (4, 5):
        return [value.tobytes() for value in leaf.values]
    return leaf.values.tolist()


def pyarrow_file(table):
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False)
    buffer.seek(0)
    return pq.ParquetFile(buffer)


def pyarrow_schema(file):
    """Return path, physical type, length, logical type and maximum levels of each leaf, read by pyarrow."""
    columns = [file.schema.column(number) for number in range(len(file.schema))]
    return [
        (
            column.path,
            column.physical_type,
            column.length,
            pyarrow_logical_type(column.logical_type),
            column.max_definition_level,
            column.max_repetition_level,
        )
        for column in columns
    ]


def pyarrow_logical_type(logical_type):
    import json

    found = json.loads(logical_type.to_json())
    found.pop("is_from_converted_type", None)
    found.pop("force_set_converted_type", None)
    return found


UNITS = {"MILLIS": "milliseconds", "MICROS": "microseconds", "NANOS": "nanoseconds"}
KINDS = {"STRING": "String", "DATE": "Date", "UUID": "UUID", "FLOAT16": "Float16", "UNKNOWN": "Null", "JSON": "JSON"}


def logical_type_json(logical_type):
    """Return a logical type in pyarrow's JSON form."""
    if logical_type is None:
        return {"Type": "None"}
    if logical_type.kind in KINDS:
        return {"Type": KINDS[logical_type.kind]}
    if logical_type.kind == "INTEGER":
        return {"Type": "Int", "bitWidth": logical_type.bit_width, "isSigned": logical_type.signed}
    if logical_type.kind == "DECIMAL":
        return {"Type": "Decimal", "precision": logical_type.precision, "scale": logical_type.scale}
    kind = {"TIME": "Time", "TIMESTAMP": "Timestamp"}[logical_type.kind]
    return {"Type": kind, "isAdjustedToUTC": logical_type.utc, "timeUnit": UNITS[logical_type.unit]}


def stored_values(array):
    """Return the stored values of a pyarrow array that was read without an Arrow schema."""
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = pa.chunked_array([chunk.storage for chunk in array.chunks], type=kind.storage_type), None
        return stored_values(array)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return array.cast(width).to_pylist()
    if pa.types.is_unsigned_integer(kind):
        bits = 64 if kind.bit_width == 64 else 32
        return [None if v is None else (v - (1 << bits) if v >> (bits - 1) else v) for v in array.to_pylist()]
    if pa.types.is_floating(kind):
        dtype = {16: np.float16, 32: np.float32, 64: np.float64}[kind.bit_width]
        return [None if v is None else dtype(v).tobytes() for v in array.to_pylist()]
    if pa.types.is_decimal(kind):
        length = next(n for n in range(1, 40) if 10**kind.precision <= 1 << (8 * n - 1))
        return [
            None if v is None else int(EXACT.scaleb(v, kind.scale)).to_bytes(length, "big", signed=True)
            for v in array.to_pylist()
        ]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if v is None else v.encode() for v in array.to_pylist()]
    return array.to_pylist()
