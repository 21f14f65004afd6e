"""Checksums of tables: equal to a slow twin, whatever the layout; other values, other sums."""

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

# --- the slow twin: Python values and types, one at a time ------------------------------------------------------------


def h(number):
    return xxhash.xxh64_intdigest((number & MASK).to_bytes(8, "little"))


def pair(one, two):
    return (h(one) + h(two ^ 0x9E3779B97F4A7C15)) & MASK


def kind(of):
    t = pa.types
    if t.is_dictionary(of):
        return kind(of.value_type)
    if isinstance(of, pa.BaseExtensionType):
        return kind(of.storage_type)
    if t.is_decimal(of):
        return f"decimal of scale {of.scale}"
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
    return next((name for name, test in named.items() if test(of)), "bytes")


def seed(name, of):
    return xxhash.xxh64_intdigest(f"{of if isinstance(of, str) else kind(of)}\0{name}".encode())


def within(name, scalar):
    start = seed(name, scalar.type)
    return 0x7FB5D329728EA185 ^ start if scalar.as_py() is None else h(word(scalar) ^ start)


def summed(hashes):
    total = sum(h(pair(one, place)) for place, one in enumerate(hashes))
    return h(total + len(hashes))


def word(scalar):
    of, what = scalar.type, kind(scalar.type)
    if pa.types.is_dictionary(of):
        return word(scalar.value)
    if isinstance(of, pa.BaseExtensionType):
        return word(scalar.value)
    if what in ("integer", "bool"):
        return int(scalar.as_py()) & MASK
    if what == "float":
        value = float(scalar.as_py())
        return 0x7FF8000000000000 if math.isnan(value) else int.from_bytes(struct.pack("<d", value), "little")
    if what == "date":
        return (scalar.as_py() - datetime.date(1970, 1, 1)).days & MASK
    if what in ("timestamp", "time", "duration"):
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[of.unit]
        seconds, parts = divmod(scalar.value, unit)
        return pair(seconds, parts * (10**9 // unit))
    if what.startswith("decimal"):
        number = int(scalar.as_py().scaleb(of.scale, decimal.Context(prec=100)))
        words = [number >> shift & MASK for shift in (0, 64, 128, 192)]
        short = pair(*words[:2])
        return short if -(1 << 127) <= number < 1 << 127 else (h(short) + pair(*words[2:])) & MASK
    if what == "bytes":
        value = scalar.as_py()
        return xxhash.xxh64_intdigest(value.encode() if isinstance(value, str) else value)
    if what == "struct":
        return h(sum(within(field.name, scalar[place]) for place, field in enumerate(of)))
    if what == "list":
        return summed([within("element", each) for each in scalar.values])
    assert what == "map"
    entries = scalar.values
    return summed([pair(within("key", each[0]), within("value", each[1])) for each in entries])


def twin(table):
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
def test_twin(name):
    column = TABLE.select([name])
    assert checksum([column]) == twin(column)
    for start, stop in ((0, 2), (1, 4), (3, 6), (2, 2)):  # slices of one memory
        assert checksum([column.slice(start, stop - start)]) == twin(column.slice(start, stop - start))


def test_all_columns():
    assert checksum([TABLE]) == twin(TABLE)
    assert checksum(TABLE.to_batches()) == twin(TABLE)


def test_order_of_rows_and_columns_and_batches_do_not_matter():
    parts = [TABLE.slice(4), TABLE.slice(0, 1), TABLE.slice(1, 3)]
    assert checksum(parts) == checksum([TABLE])
    assert checksum([pa.concat_tables(parts)]) == checksum([TABLE])
    assert checksum([TABLE.select(TABLE.column_names[::-1])]) == checksum([TABLE])
    assert checksum(parts[:1]) + checksum(parts[1:]) == checksum([TABLE])
    assert checksum([]) == Checksum(0, 0)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "nothing"])
def test_swapped_values_are_noticed(name):
    """The values of one column in other rows, and a row less."""
    rows = pa.array(range(6))
    column = TABLE[name].combine_chunks()
    whole = checksum([pa.table({"row": rows, name: column})])
    swapped = pa.concat_arrays([column.slice(1, 1), column.slice(0, 1), column.slice(2)])
    assert checksum([pa.table({"row": rows, name: swapped})]) != whole
    assert checksum([pa.table({"row": rows, name: column}).slice(1)]) != whole


def test_what_is_told_apart():
    f8, text, lists = pa.float64(), pa.string(), pa.list_(pa.int64())
    apart = [
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
    sums = {checksum([pa.table({"a": each})]) for each in apart}
    assert len(sums) == len(apart) - 1  # null has no type
    assert checksum([pa.table({"a": [1]})]) != checksum([pa.table({"b": [1]})])


def test_what_is_the_same():
    """Widths, units, dictionaries, NaNs of other bits."""
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


def test_equal_rows_count():
    """A sum, not a set, nor what two equal rows would cancel."""
    one = pa.table({"a": [1]})
    assert len({checksum([one] * count).value for count in range(4)}) == 4


def test_layouts_of_files_do_not_matter(tmp_path):
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


def test_other_types():
    with pytest.raises(UnsupportedError, match=r"values of Arrow type .*union.* have no checksum"):
        checksum([pa.table({"a": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])})])
