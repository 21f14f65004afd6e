"""Property test of the schema merge: random files read as one table give the written values in the common type."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.open_file import OpenFile

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
types = pa.types

# Each row has types with a common type, in any order.
FAMILIES = [
    [pa.int8(), pa.int16(), pa.int32(), pa.int64()],
    [pa.uint8(), pa.int32(), pa.float32(), pa.float64()],
    [pa.uint16(), pa.uint32(), pa.int64()],
    [pa.date32(), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
    [pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")],
    [pa.bool_()],
    [pa.time32("ms"), pa.time64("us")],
    [pa.decimal128(5, 2), pa.decimal128(9, 0), pa.decimal128(20, 5), pa.int16()],
    [pa.null(), pa.int32()],
    [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    [pa.binary(), pa.binary(3)],
]
MakeType = Callable[[], Any]


class Schemas:
    """Writer of files of one dataset, each with another schema."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def column(self, depth: int) -> MakeType:
        """Return a function that makes a type for a column, one per file."""
        kind = self.random.random()
        if depth == 0 or kind < 0.5:
            family = self.random.choice(FAMILIES)
            return lambda: self.random.choice(family)
        inner = self.column(depth - 1)
        if kind < 0.7:
            return lambda: self.random.choice([pa.list_, pa.large_list])(inner())
        if kind < 0.8:
            return lambda: pa.map_(pa.string(), inner())
        fields = [(name, self.column(depth - 1)) for name in "xyz"]
        return lambda: pa.struct([(name, make()) for name, make in self.sample(fields)])

    def sample(self, items: list) -> list:
        found = [item for item in items if self.random.random() < 0.8] or items[:1]
        self.random.shuffle(found)
        return found

    def value(self, kind: Any) -> Any:
        pick = self.random.choice
        if self.random.random() < 0.15 or types.is_null(kind):
            return None
        if types.is_list(kind) or types.is_large_list(kind):
            return [self.value(kind.value_type) for _ in range(self.random.randrange(4))]
        if types.is_map(kind):
            return [(key, self.value(kind.item_type)) for key in "pqr"[: self.random.randrange(4)]]
        if types.is_struct(kind):
            return {field.name: self.value(field.type) for field in kind}
        if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
            return pick(["", "a", "üx"])
        if types.is_integer(kind):
            limits = np.iinfo(kind.to_pandas_dtype())
            return pick([int(limits.min), int(limits.max), 7])
        if types.is_decimal(kind):
            return Decimal(pick([1, -5, 12])).scaleb(-kind.scale).quantize(Decimal(1).scaleb(-kind.scale))
        if types.is_timestamp(kind):
            moment = pick([datetime.datetime(1900, 1, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 5000)])
            return moment.replace(tzinfo=datetime.UTC if kind.tz else None)
        return pick(next(values for test, values in SIMPLE if test(kind)))

    def write(self, folder: Path) -> list[Any]:
        """Write files and return their tables."""
        columns = {name: self.column(self.random.randrange(3)) for name in "abc"}
        tables = []
        for number in range(self.random.choice([2, 3])):
            count = self.random.choice([0, 1, 4])
            fields = [(name, make()) for name, make in self.sample(list(columns.items()))]
            arrays = [pa.array([self.value(kind) for _ in range(count)], kind) for _, kind in fields]
            tables.append(pa.table(arrays, names=[name for name, _ in fields]))
            pq.write_table(
                tables[-1],
                folder / f"{number}.parquet",
                store_schema=self.random.random() < 0.8,
                row_group_size=self.random.choice([1, 3]),
                use_compliant_nested_type=self.random.random() < 0.7,
            )
        return tables


SIMPLE = [
    (types.is_floating, [1.5, -2.25]),
    (types.is_boolean, [True, False]),
    (types.is_time, [datetime.time(1, 2, 3, 4000)]),
    (types.is_date, [datetime.date(1900, 1, 1), datetime.date(2024, 2, 29)]),
    (types.is_fixed_size_binary, [b"abc"]),
    (types.is_binary, [b"", b"ab"]),
]


def plain(value: Any) -> Any:
    """Return a value as plain Python: lists for arrays, None for missing values."""
    if isinstance(value, np.ndarray | list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, datetime.date | np.datetime64):
        moment = pd.Timestamp(value)
        return None if moment is pd.NaT else moment.tz_convert(None) if moment.tzinfo else moment
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    return value


def as_type(value: Any, kind: Any) -> Any:
    """Return a plain value as one of another type."""
    if value is None:
        return None
    if types.is_list(kind) or types.is_large_list(kind):
        return [as_type(item, kind.value_type) for item in value]
    if types.is_map(kind):
        return [(key, as_type(item, kind.item_type)) for key, item in value]
    if types.is_struct(kind):
        return {field.name: as_type(value.get(field.name), field.type) for field in kind}
    if types.is_decimal(kind):
        return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
    if types.is_timestamp(kind) and isinstance(value, int):  # nanoseconds, which datetime does not have
        return pd.Timestamp(value, unit=kind.unit)
    return value


def exact(value: Any) -> Any:
    """Return a value that compares exactly: 1.20 differs from 1.2."""
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return [(name, exact(item)) for name, item in value.items()]
    return value.as_tuple() if isinstance(value, Decimal) else value


def arrow_type(schema: DatasetSchema, name: str) -> Any:
    """Return the type of a column in the dataset, read from the schema of a file without rows."""
    frame = schema.schema_file.source
    data = np.empty(frame.size, np.uint8)
    frame.read_into(0, data)
    found = pq.read_schema(pa.BufferReader(data.tobytes())).field(name).type
    return found.value_type if types.is_dictionary(found) else found


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("seed", range(12))
def test_merged_read_returns_written_values(seed: int, backend: str, tmp_path: Path) -> None:
    tables = Schemas(seed).write(tmp_path)
    files = [OpenFile(tmp_path / f"{number}.parquet") for number in range(len(tables))]
    schema = DatasetSchema.from_files(files)
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    assert schema.schema.columns == names
    frame = numparq.Dataset(tmp_path).read(dtype_backend=backend)
    assert list(frame.columns) == names
    for name in names:
        kind = arrow_type(schema, name)
        written = []
        for table in tables:
            written += table[name].to_pylist() if name in table.column_names else [None] * len(table)
        series = frame[name]
        read = series.array.__arrow_array__().to_pylist() if backend == "pyarrow" else series.tolist()
        expected = [exact(as_type(plain(value), kind)) for value in written]
        assert [exact(as_type(plain(value), kind)) for value in read] == expected
