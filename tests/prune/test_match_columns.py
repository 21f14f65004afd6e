"""Comparisons of two columns: statistics and pages never prune a matching row, and reads return exactly the rows."""

from __future__ import annotations

from itertools import product
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numparq
from numparq import col
from numparq.expr.bind import bind
from numparq.expr.evaluate import evaluate
from numparq.prune.match import predicate_may_match, predicate_must_match
from support.filters.leaf_kinds import KINDS
from support.filters.strategies import columns, random_statistics, schema_of_pair
from support.oracles.match_one import as_arrays

OPERATORS = [eq, ne, lt, le, gt, ge]
PAIRS = [
    ("int64", "double"),
    ("double", "double"),
    ("float", "float16"),
    ("uint64", "int8"),
    ("decimal64", "decimal fixed"),
    ("decimal bytes", "int32"),
    ("date", "timestamp ns"),
    ("int96", "timestamp ms"),
    ("string", "string"),
    ("fixed", "binary"),
]


def draw_case(data, pair):
    drawn = [data.draw(columns(kind, 3)) for kind in pair]
    count = min(len(items) for items, _ in drawn)
    drawn = [(items[:count], validity[:count]) for items, validity in drawn]
    test = data.draw(st.sampled_from(OPERATORS))(col("a"), col("b"))
    bound = bind(~test if data.draw(st.booleans()) else test, schema_of_pair(*pair))
    vectors = [KINDS[kind].values(*column) for kind, column in zip(pair, drawn, strict=True)]
    statistics = [data.draw(random_statistics(kind, *column)) for kind, column in zip(pair, drawn, strict=True)]
    sides = [as_arrays(statistics[leaf.index]) for leaf in bound.leaves]
    return evaluate(bound, dict(enumerate(vectors)), count), bound, sides


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_statistics_never_prune_matching_rows_but_some_others(pair):
    pruned, whole = [], []

    @settings(max_examples=120, deadline=None)
    @given(data=st.data())
    def draw_one(data):
        expected, bound, sides = draw_case(data, pair)
        may, must = (bool(decide(bound, *sides)[0]) for decide in (predicate_may_match, predicate_must_match))
        assert may or not expected.any(), sides
        assert not must or expected.all(), sides
        pruned.append(not may)
        whole.append(must)

    draw_one()
    assert np.mean(pruned) > 0.05
    assert np.mean(whole) > 0.05


def random_table(rng, count):
    """Return a table of columns that cross each other slowly, with nulls, NaNs and both zeros."""
    base = np.sort(rng.integers(-50, 50, count))
    near = base + rng.integers(-3, 4, count)
    floats = np.where(rng.random(count) < 0.05, np.nan, near / 2)
    floats[rng.random(count) < 0.05] = -0.0

    def some(values, kind=None):
        return pa.array(values, kind, mask=rng.random(count) < 0.1, from_pandas=False)

    words = np.array([f"{value + 60:04d}" for value in base]), np.array([f"{value + 60:04d}x" for value in near])
    return pa.table(
        {
            "int": some(base),
            "float": some(floats),
            "small": some(near, pa.int8()),
            "ms": some(base * 1000, pa.timestamp("ms")),
            "ns": some(near * 10**9 + 1, pa.timestamp("ns")),
            "text": some(words[0]),
            "word": some(words[1]).dictionary_encode(),
            "fixed": some([word.encode() for word in words[0]], pa.binary(4)),
            "struct": pa.StructArray.from_arrays([some(near)], ["x"], mask=some(base).is_null()),
        }
    )


def rows_of_table(table):
    """Return the columns as lists of exactly comparable values."""
    rows = {name: table[name].to_pylist() for name in table.column_names if name not in ("struct", "ms", "ns")}
    rows["struct.x"] = [None if row is None else row["x"] for row in table["struct"].to_pylist()]
    for name, factor in (("ms", 10**6), ("ns", 1)):
        rows[name] = [None if row is None else row * factor for row in table[name].cast("int64").to_pylist()]
    return rows


SIDES = [("int", "float"), ("float", "small"), ("int", "struct.x"), ("ms", "ns"), ("text", "word"), ("float", "float")]


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3))])
def test_reads_return_the_rows_that_pandas_selects(tmp_path, seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 400)
    pq.write_table(
        table,
        tmp_path / "x.parquet",
        row_group_size=int(rng.choice([7, 100, 400])),
        data_page_size=64,
        write_batch_size=int(rng.choice([3, 16])),
        write_page_index=True,
        use_dictionary=["word"],
    )
    rows = rows_of_table(table)
    pruned = 0
    with numparq.ParquetFile(tmp_path / "x.parquet") as file:
        for (first, second), operator, negated in product(SIDES, OPERATORS, (False, True)):
            test = operator(col(first), col(second))
            pairs = zip(rows[first], rows[second], strict=True)
            expected = [
                row
                for row, (one, other) in enumerate(pairs)
                if None not in (one, other) and operator(one, other) != negated
            ]
            test = ~test if negated else test
            found = file.read([], test, include=["row_number"])["row_number"].tolist()
            assert found == expected, test
            pruned += file.plan([], test).num_rows < 400
    assert pruned > 3
