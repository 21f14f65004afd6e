"""Comparisons of two columns: rows against a row-by-row reference, over pairs of leaf kinds."""

from __future__ import annotations

import io
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.errors import SchemaError
from numparq.expr.bind import bind
from numparq.expr.column import col
from numparq.expr.evaluate import evaluate
from support.filters.leaf_kinds import KINDS
from support.filters.strategies import columns, rows_of, schema_of_pair
from support.oracles.expressions import truth

GROUPS = {
    "numbers": [name for name in KINDS if name.startswith(("int", "uint", "bool", "float", "double", "decimal"))],
    "local times": ["date", "timestamp ms", "timestamp ns", "int96"],
    "instants": ["timestamp us utc"],
    "times of day": ["time ms", "time ns"],
    "text": ["string", "enum"],
    "bytes": ["binary", "fixed"],
    "UUIDs": ["uuid"],
}
GROUPS["numbers"].remove("int96")
OPERATORS = st.sampled_from([eq, ne, lt, le, gt, ge])


def as_dictionary(vector, validity, rng):
    """Return the same column as dictionary codes, its values in another order."""
    count = len(validity)
    order = rng.permutation(count)
    codes = np.where(validity, np.argsort(order), -1).astype(np.int32)
    if vector.offsets is None:
        item = len(vector.values) // max(count, 1)
        values = vector.values.reshape(count, item)[order].reshape(-1) if count else vector.values
        return replace(vector, values=values, validity=None, codes=codes)
    pieces = [vector.values[start:end] for start, end in zip(vector.offsets[:-1], vector.offsets[1:], strict=True)]
    pieces = [pieces[place] for place in order]
    data = np.concatenate([np.empty(0, np.uint8), *pieces])
    return replace(vector, values=data, offsets=np.cumsum([0, *map(len, pieces)]), validity=None, codes=codes)


@pytest.mark.parametrize("group", GROUPS)
@given(data=st.data())
def test_mask_matches_row_by_row_reference(group, data):
    kinds = [data.draw(st.sampled_from(GROUPS[group])) for _ in "ab"]
    drawn = [data.draw(columns(kind, 6)) for kind in kinds]
    count = min(len(items) for items, _ in drawn)
    drawn = [(items[:count], validity[:count]) for items, validity in drawn]
    if data.draw(st.booleans()) and kinds[0] == kinds[1]:
        drawn[1] = drawn[0]
    expression = data.draw(OPERATORS)(col("a"), col("b"))
    expression = ~expression if data.draw(st.booleans()) else expression
    vectors = [KINDS[kind].values(*column) for kind, column in zip(kinds, drawn, strict=True)]
    if data.draw(st.booleans()):
        vectors[0] = as_dictionary(vectors[0], np.array(drawn[0][1], bool), np.random.default_rng(0))
    rows = zip(*(rows_of(kind, *column) for kind, column in zip(kinds, drawn, strict=True)), strict=True)
    expected = [truth(expression, {"a": a, "b": b}, None) is True for a, b in rows]
    found = evaluate(bind(expression, schema_of_pair(*kinds)), dict(enumerate(vectors)), count)
    assert found.tolist() == expected


def test_columns_of_different_groups_cannot_be_compared():
    for first in GROUPS:
        for second in GROUPS:
            pair = GROUPS[first][-1], GROUPS[second][0]
            if first == second or pair == ("enum", "binary") or (first == "bytes" and second == "text"):
                continue
            with pytest.raises(SchemaError, match=r"\(col\('a'\) < col\('b'\)\): a column of type .* with 'b' of type"):
                bind(col("a") < col("b"), schema_of_pair(*pair))
    assert bind(col("a") < col("b"), schema_of_pair("enum", "binary")).leaves[1].name == "b"


def test_isna_is_that_of_pandas():
    floats = [1.0, None, float("nan"), 2.0]
    table = pa.table({"f": pa.array(floats), "s": ["a", None, "b", None], "l": [[1], None, [], [None]]})
    table = table.append_column("struct", pa.array([{"x": 1.0}, None, {"x": float("nan")}, {"x": None}]))
    data = io.BytesIO()
    pq.write_table(table, data)
    frame = table.to_pandas()
    for name in table.column_names:
        missing = frame[name].isna().to_numpy()
        for test, expected in ((col(name).isna(), missing), (col(name).notna(), ~missing)):
            found = numparq.read_parquet(data, [], test, include=["row_number"])["row_number"]
            assert found.tolist() == np.flatnonzero(expected).tolist(), test
    assert len(numparq.read_parquet(data, filters=col("struct.x").isna())) == 3
    assert len(numparq.read_parquet(data, filters="f is not nan")) == 2
    assert len(numparq.read_parquet(data, filters="s is nan")) == 0
