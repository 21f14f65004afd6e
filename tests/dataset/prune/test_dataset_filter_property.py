"""Random datasets and filters: the filter of each file against an oracle over all rows as one table."""

from __future__ import annotations

import datetime
import io
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.prune.pruners import PartitionPruner, StatisticsPruner
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.format.open_file import OpenFile
from support.dataset_stubs import matching_row_numbers, stub_partition
from support.filters.literals import (
    EPOCH,
    Literal,
    exact,
    near_decimal,
    near_float,
    near_integer,
    near_moment,
    near_text,
    pattern_for,
    pick,
)
from support.filters.predicates import COMPARE, AllOf, AnyOf, Comparison, NotOf

Rng = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """A kind of column: its file types, a value by number, the comparable value, and literals."""

    types: tuple[pa.DataType, ...]
    make: Any
    to_comparable: Any
    near: Any
    text: bool = False


def _moment(n: int, kind: pa.DataType) -> Any:
    """Return a day for dates, milliseconds or microseconds for timestamps."""
    if pa.types.is_date(kind):
        return datetime.date(2020, 1, 1) + datetime.timedelta(days=n % 4)
    steps = {"ms": 1000, "us": 1}[kind.unit]
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(days=n % 3, microseconds=n % 2 * steps)


def _since(value: Any) -> int:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value - EPOCH) // datetime.timedelta(microseconds=1) * 1000


def _number(n: int, kind: pa.DataType) -> Any:
    return n % 2 == 1 if kind == pa.bool_() else n % 4


def _real(n: int, kind: pa.DataType) -> float:
    value = (0.1 * n, math.nan, 0.5, -0.0, math.inf, 0.1)[n % 6]
    return float(np.float32(value)) if kind == pa.float32() else value


def kinds(wide_floats: bool) -> dict[str, Kind]:
    """Return the column kinds; float64 only if `wide_floats`."""
    return {
        "i": Kind((pa.int8(), pa.int32(), pa.int64()), lambda n, kind: n % 9 - 4, exact, near_integer),
        "u": Kind((pa.uint16(), pa.uint32(), pa.int64()), lambda n, kind: n * 7 % 50, exact, near_integer),
        "f": Kind(
            (pa.float32(), pa.float64()) if wide_floats else (pa.float32(),),
            _real,
            exact,
            near_float(8 if wide_floats else 4),
        ),
        "m": Kind((pa.bool_(), pa.int64(), pa.uint64(), pa.float64()), _number, exact, near_float(8)),
        "t": Kind((pa.date32(), pa.timestamp("ms"), pa.timestamp("us")), _moment, _since, near_moment(1, None)),
        "d": Kind(
            (pa.decimal128(5, 2), pa.decimal128(9, 4), pa.decimal128(30, 3)),
            lambda n, kind: Decimal(n % 7 - 3) / 2,
            exact,
            near_decimal(4),
        ),
        "s": Kind((pa.string(), pa.large_string()), lambda n, kind: "abcab"[n % 4 : n % 5 + 2], str, near_text, True),
    }


# --- a dataset --------------------------------------------------------------------------------------------------------


class Case:
    """A random dataset: files in memory, and the comparable values of its rows by column."""

    def __init__(self, rng: Rng) -> None:
        self.wide_floats = bool(rng.random() < 0.5)
        self.kinds = kinds(self.wide_floats)
        count = int(rng.integers(1, 6))
        partitions = [(pick(rng, "1", "2", "10", None), pick(rng, "a", "b", "ab", None)) for _ in range(count)]
        self.data_files = [stub_partition(*values, name=f"{at}.parquet") for at, values in enumerate(partitions)]
        self.tables = [self._table(rng, at == 0) for at in range(count)]
        self.files = [self._file(rng, table) for table in self.tables]
        self.schema = DatasetSchema.from_files(self.files)
        self.partitions = DatasetPartitions(("p", "q"), partitions, {"p": "int32"})
        self.comparable = self._comparable()

    def _table(self, rng: Rng, is_first: bool) -> pa.Table:
        rows = int(rng.integers(0, 13))
        arrays: dict[str, pa.Array] = {}
        for name, about in self.kinds.items():
            # The first file has every column; its float columns have the widest type, which sets the comparison.
            if is_first or rng.random() < 0.7:
                kind = about.types[-1] if is_first and name in ("f", "m") else pick(rng, *about.types)
                arrays[name] = pa.array(self._values(rng, about, kind, rows), kind)
        if is_first or rng.random() < 0.7:
            kind = pick(rng, pa.int32(), pa.int64())
            lists = [
                None if rng.random() < 0.2 else self._values(rng, self.kinds["i"], kind, int(rng.integers(0, 4)))
                for _ in range(rows)
            ]
            arrays["l"] = pa.array(lists, pa.list_(kind))
        if is_first or rng.random() < 0.7:
            arrays["st"] = self._structs(rng, rows, is_first)
        arrays["row"] = pa.array(range(rows), pa.int32())
        return pa.table(arrays).select(rng.permutation(list(arrays)).tolist())

    def _values(self, rng: Rng, about: Kind, kind: pa.DataType, rows: int) -> list[Any]:
        nulls = pick(rng, 0, 0.3, 1)
        return [None if rng.random() < nulls else about.make(int(rng.integers(0, 60)), kind) for _ in range(rows)]

    def _structs(self, rng: Rng, rows: int, is_first: bool) -> pa.Array:
        fields = {"a": pick(rng, pa.int32(), pa.int64()), "b": pa.string()}
        if not is_first and rng.random() < 0.6:
            fields.pop(pick(rng, "a", "b"))
        parts = {
            name: self._values(rng, self.kinds["i" if name == "a" else "s"], kind, rows)
            for name, kind in fields.items()
        }
        return pa.array(
            [
                None if rng.random() < 0.2 else {name: values[row] for name, values in parts.items()}
                for row in range(rows)
            ],
            pa.struct(fields),
        )

    def _file(self, rng: Rng, table: pa.Table) -> OpenFile:
        out = io.BytesIO()
        pq.write_table(table, out, row_group_size=pick(rng, 3, 100), store_schema=bool(rng.random() < 0.7))
        return OpenFile(out.getvalue())

    def _comparable(self) -> dict[Any, list[Any]]:
        """Return the comparable values of all rows, by column."""
        found: dict[Any, list[Any]] = {name: [] for name in (*self.kinds, "l", "st", ("st", "a"), "st.b", "p", "q")}
        for table, data_file in zip(self.tables, self.data_files, strict=True):
            rows = table.num_rows
            for name, about in self.kinds.items():
                found[name] += [None if v is None else about.to_comparable(v) for v in _column(table, name, rows)]
            found["l"] += _column(table, "l", rows)
            structs = _column(table, "st", rows)
            found["st"] += structs
            for name, field in ((("st", "a"), "a"), ("st.b", "b")):
                found[name] += [None if one is None else one.get(field) for one in structs]
            found["p"] += [None if data_file.values[0] is None else int(data_file.values[0])] * rows
            found["q"] += [data_file.values[1]] * rows
        return found

    def question(self, rng: Rng) -> Comparison:
        """Return a random comparison."""
        name = pick(rng, *self.kinds, *self.kinds, "l", "l", "st", ("st", "a"), "st.b", "p", "q", "p", "q")
        ops = ["is_null", "is_not_null"]
        if name in ("st", "l"):
            literal = near_integer(rng, int(rng.integers(-5, 6)))
            return (
                Comparison(name, "contains", literal)
                if name == "l" and rng.random() < 0.7
                else Comparison(name, pick(rng, *ops))
            )
        about = self.kinds[{("st", "a"): "i", "st.b": "s", "p": "i", "q": "s"}.get(name, name)]
        ops += [*COMPARE, *COMPARE, "isin", "not_in", "between"]
        op = pick(rng, *ops, *(["like", "startswith"] * 3 if about.text else []))
        if op.startswith("is_"):
            return Comparison(name, op)
        if op == "like":
            return Comparison(name, op, pattern_for(rng, self.value(rng, name)))
        if op == "startswith":
            value = self.value(rng, name)[: int(rng.integers(0, 3))]
            return Comparison(name, op, Literal(value, value))
        count = {"isin": int(rng.integers(0, 5)), "not_in": int(rng.integers(0, 5)), "between": 2}.get(op, 0)
        if not count and op not in ("isin", "not_in"):
            return Comparison(name, op, about.near(rng, self.value(rng, name)))
        return Comparison(name, op, tuple(about.near(rng, self.value(rng, name)) for _ in range(count)))

    def value(self, rng: Rng, name: Any) -> Any:
        """Return a Python value near a value of the column, to build a literal from."""
        values = [value for value in self.comparable[name] if value is not None]
        if not values:
            return {"s": "ab", "st.b": "ab", "q": "ab", "d": Decimal(1)}.get(name, 1)
        value = pick(rng, *values)
        if name == "d":
            return Decimal(value.numerator) / Decimal(value.denominator)
        return value


def _column(table: pa.Table, name: str, rows: int) -> list[Any]:
    return table[name].to_pylist() if name in table.column_names else [None] * rows


def random_predicate(rng: Rng, case: Case, depth: int = 2) -> Any:
    if depth == 0 or rng.random() < 0.3:
        return case.question(rng)
    if rng.random() < 0.25:
        return NotOf(random_predicate(rng, case, depth - 1))
    parts = tuple(random_predicate(rng, case, depth - 1) for _ in range(int(rng.integers(2, 4))))
    return pick(rng, AllOf, AnyOf)(parts)


def check(case: Case, predicate: Any) -> None:
    truths = predicate.truths(case.comparable)
    dataset_filter = DatasetFilter(predicate.expression(), case.schema, case.partitions)
    open_files = dict(zip([data_file.path for data_file in case.data_files], case.files, strict=True))
    by_partition = PartitionPruner(predicate.expression(), case.partitions).keep(case.data_files)
    by_statistics = StatisticsPruner(dataset_filter, open_files).keep(case.data_files)
    start = 0
    for at, (data_file, file, table) in enumerate(zip(case.data_files, case.files, case.tables, strict=True)):
        expected = [row for row in range(table.num_rows) if truths[start + row]]
        got = matching_row_numbers(file, dataset_filter.scan_predicate(file, data_file))
        assert got == expected, (predicate.expression(), data_file.values, table.to_pydict(), table.schema)
        if expected:
            assert by_partition[at], (predicate.expression(), data_file.values)
            assert by_statistics[at], (predicate.expression(), data_file.values, table.to_pydict())
        start += table.num_rows


@pytest.mark.parametrize("seed", range(25))
def test_filter_of_each_file_matches_oracle(seed):
    rng = np.random.default_rng([6, seed])
    case = Case(rng)
    for _ in range(10):
        check(case, random_predicate(rng, case))
