"""Checksums of tables: equal to a slow reference for any layout, and different for other values."""

from __future__ import annotations

import datetime
import decimal
import math
import struct

import numpy as np
import pandas as pd
import pytest
import xxhash

pa = pytest.importorskip("pyarrow")

import numparq  # noqa: E402
from numparq.errors import UnsupportedError  # noqa: E402
from numparq.tools.optimize.checksum import Checksum, checksum, row_hashes  # noqa: E402
from support.data.arrow_columns import COLUMNS, TABLE, D  # noqa: E402

MASK = (1 << 64) - 1

# --- the slow reference: Python values and types, one at a time -------------------------------------------------------


def h(number):
    return xxhash.xxh64_intdigest((number & MASK).to_bytes(8, "little"))


def pair(one, two):
    return (h(one) + h(two ^ 0x9E3779B97F4A7C15)) & MASK


def kind(arrow_type):
    t = pa.types
    if t.is_dictionary(arrow_type):
        return kind(arrow_type.value_type)
    if isinstance(arrow_type, pa.BaseExtensionType):
        return kind(arrow_type.storage_type)
    if t.is_decimal(arrow_type):
        return f"decimal of scale {arrow_type.scale}"
    named = {
        "integer": t.is_integer,
        "float": t.is_floating,
        "bool": t.is_boolean,
        "null": t.is_null,
        "date": t.is_date,
        "timestamp": t.is_timestamp,
        "time": t.is_time,
        "duration": t.is_duration,
        "struct": t.is_struct,
        "map": t.is_map,
        "list": lambda o: t.is_list(o) or t.is_large_list(o) or t.is_fixed_size_list(o),
    }
    return next((name for name, test in named.items() if test(arrow_type)), "bytes")


def seed(name, arrow_type):
    return xxhash.xxh64_intdigest(f"{arrow_type if isinstance(arrow_type, str) else kind(arrow_type)}\0{name}".encode())


def field_hash(name, scalar):
    start = seed(name, scalar.type)
    return 0x7FB5D329728EA185 ^ start if scalar.as_py() is None else h(word(scalar) ^ start)


def list_hash(hashes):
    total = sum(h(pair(one, index)) for index, one in enumerate(hashes))
    return h(total + len(hashes))


def word(scalar):
    arrow_type, what = scalar.type, kind(scalar.type)
    if pa.types.is_dictionary(arrow_type):
        return word(scalar.value)
    if isinstance(arrow_type, pa.BaseExtensionType):
        return word(scalar.value)
    if what in ("integer", "bool"):
        return int(scalar.as_py()) & MASK
    if what == "float":
        value = float(scalar.as_py())
        return 0x7FF8000000000000 if math.isnan(value) else int.from_bytes(struct.pack("<d", value), "little")
    if what == "date":
        return (scalar.as_py() - datetime.date(1970, 1, 1)).days & MASK
    if what in ("timestamp", "time", "duration"):
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[arrow_type.unit]
        seconds, parts = divmod(scalar.value, unit)
        return pair(seconds, parts * (10**9 // unit))
    if what.startswith("decimal"):
        number = int(scalar.as_py().scaleb(arrow_type.scale, decimal.Context(prec=100)))
        words = [number >> shift & MASK for shift in (0, 64, 128, 192)]
        short = pair(*words[:2])
        return short if -(1 << 127) <= number < 1 << 127 else (h(short) + pair(*words[2:])) & MASK
    if what == "bytes":
        value = scalar.as_py()
        return xxhash.xxh64_intdigest(value.encode() if isinstance(value, str) else value)
    if what == "struct":
        return h(sum(field_hash(field.name, scalar[index]) for index, field in enumerate(arrow_type)))
    if what == "list":
        return list_hash([field_hash("element", each) for each in scalar.values])
    assert what == "map"
    entries = scalar.values
    return list_hash([pair(field_hash("key", each[0]), field_hash("value", each[1])) for each in entries])


def reference_checksum(table):
    total = 0
    for row in range(table.num_rows):
        hashed = 0
        for name in table.column_names:
            value = table[name][row]
            is_null = value.as_py() is None
            hashed += seed(name, "null") if is_null else h(word(value) ^ seed(name, value.type))
        total += h(hashed)
    return Checksum(table.num_rows, total & MASK)


@pytest.mark.parametrize("name", COLUMNS)
def test_checksum_equals_reference(name):
    column = TABLE.select([name])
    assert checksum([column]) == reference_checksum(column)
    for start, stop in ((0, 2), (1, 4), (3, 6), (2, 2)):  # slices of one buffer
        assert checksum([column.slice(start, stop - start)]) == reference_checksum(column.slice(start, stop - start))


def test_checksum_of_all_columns_equals_reference():
    assert checksum([TABLE]) == reference_checksum(TABLE)
    assert checksum(TABLE.to_batches()) == reference_checksum(TABLE)


def test_checksum_is_independent_of_row_column_and_batch_order():
    parts = [TABLE.slice(4), TABLE.slice(0, 1), TABLE.slice(1, 3)]
    assert checksum(parts) == checksum([TABLE])
    assert checksum([pa.concat_tables(parts)]) == checksum([TABLE])
    assert checksum([TABLE.select(TABLE.column_names[::-1])]) == checksum([TABLE])
    assert checksum(parts[:1]) + checksum(parts[1:]) == checksum([TABLE])
    assert checksum([]) == Checksum(0, 0)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "nothing"])
def test_swapped_values_change_checksum(name):
    """Swap the values of two rows in one column, and remove a row."""
    rows = pa.array(range(6))
    column = TABLE[name].combine_chunks()
    whole = checksum([pa.table({"row": rows, name: column})])
    swapped = pa.concat_arrays([column.slice(1, 1), column.slice(0, 1), column.slice(2)])
    assert checksum([pa.table({"row": rows, name: swapped})]) != whole
    assert checksum([pa.table({"row": rows, name: column}).slice(1)]) != whole


def test_different_values_have_different_checksums():
    f8, text, lists = pa.float64(), pa.string(), pa.list_(pa.int64())
    different = [
        pa.array([0.0], f8),
        pa.array([-0.0], f8),
        pa.array([None], f8),
        pa.array([float("nan")], f8),
        pa.array([0]),
        pa.array([""], text),
        pa.array([None], text),
        pa.array(["\0"], text),
        pa.array([False]),
        pa.array([[]], lists),
        pa.array([[None]], lists),
        pa.array([[0]], lists),
        pa.array([[0, 0]], lists),
        pa.array([0], pa.date32()),
        pa.array([0], pa.timestamp("us")),
        pa.array([D("0")], pa.decimal128(3, 0)),
        pa.array([{"x": None}], pa.struct({"x": pa.int64()})),
    ]
    sums = {checksum([pa.table({"a": each})]) for each in different}
    assert len(sums) == len(different) - 1  # nulls of all types are equal
    assert checksum([pa.table({"a": [1]})]) != checksum([pa.table({"b": [1]})])


def test_equal_values_of_different_types_have_equal_checksums():
    """Widths, units, dictionaries and NaN payloads do not matter."""
    plain = TABLE.select(["int8", "text", "tms", "f4", "list", "dec9"])
    nans = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    wide = pa.table(
        {
            "int8": plain["int8"].cast(pa.int64()),
            "text": plain["text"].dictionary_encode(),
            "tms": plain["tms"].cast(pa.timestamp("us")),
            "f4": plain["f4"].cast(pa.float64()),
            "list": plain["list"].cast(pa.large_list(pa.int32())),
            "dec9": plain["dec9"].cast(pa.decimal128(20, 2)),
        }
    )
    assert checksum([wide]) == checksum([plain])
    assert len(set(row_hashes(pa.table({"a": nans})).tolist())) == 1


def test_duplicate_rows_change_checksum():
    """Duplicate rows must neither be ignored nor cancel out."""
    one = pa.table({"a": [1]})
    assert len({checksum([one] * count).value for count in range(4)}) == 4


def test_checksum_is_independent_of_file_layout(tmp_path):
    columns = TABLE.select(["int32", "f8", "text", "bool", "tus", "dec38", "list", "struct", "map"])
    frame = columns.to_pandas(types_mapper=pd.ArrowDtype)
    sums = set()
    for number, options in enumerate(
        (
            {},
            {"row_group_size": 2, "use_dictionary": False, "compression": "zstd"},
            {"max_rows_per_page": 1, "data_page_version": "2.0", "column_encoding": {"int32": "DELTA_BINARY_PACKED"}},
        )
    ):
        path = str(tmp_path / f"{number}.parquet")
        numparq.to_parquet(frame, path, index=False, **options)
        with numparq.ParquetFile(path) as file:
            sums.add(checksum(pa.RecordBatchReader.from_stream(file.iter_batches(dtype_backend="pyarrow"))))
    assert sums == {checksum([columns])}


def test_unsupported_types_raise():
    with pytest.raises(UnsupportedError, match=r"values of Arrow type .*union.* have no checksum"):
        checksum([pa.table({"a": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])})])
