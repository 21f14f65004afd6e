"""Filters as pyarrow expressions: the rows that pyarrow returns, or an error that names the function."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.expr.filters import as_expression
from numparq.expr.pyarrow_expression import from_pyarrow

a = pc.field("a")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (a > 1, col("a") > 1),
        (pc.scalar(1) > a, col("a") < 1),
        (a != pc.field("b"), col("a") != col("b")),
        (pc.field("s", "x.y") == "z", col(("s", "x.y")) == "z"),
        (pc.field("x.y").is_valid(), col(("x.y",)).is_not_null()),
        (a & ~pc.field("b"), (col("a") == True) & ~(col("b") == True)),  # noqa: E712
        ((a > 1) | (a < 0) & (a.is_null()), (col("a") > 1) | ((col("a") < 0) & col("a").is_null())),
        (pc.and_not_kleene(a > 1, a < 5), (col("a") > 1) & ~(col("a") < 5)),
        (a.is_null(nan_is_null=True), col("a").isna()),
        (a.isin([1, 2]), col("a").is_not_null() & col("a").isin([1, 2])),
        (a.isin([1, None]), col("a").is_null() | col("a").isin([1])),
        (pc.is_in(a, pa.array([1, None]), skip_nulls=True), col("a").is_not_null() & col("a").isin([1])),
        (a.isin([1.5, np.nan]), col("a").is_not_null() & (col("a").isin([1.5, np.nan]) | col("a").is_nan())),
        (pc.starts_with(a, "x%"), col("a").startswith("x%")),
        (pc.ends_with(a, "x%"), col("a").like(r"%x\%", "\\")),
        (pc.match_substring(a, "_\\"), col("a").like("%\\_\\\\%", "\\")),
        (pc.match_like(a, r"a\_%\\"), col("a").like(r"a\_%\\", "\\")),
        (Decimal("1.10") <= a, col("a") >= Decimal("1.10")),
        (pa.scalar(1, pa.timestamp("ns")) == a, col("a") == np.datetime64(1, "ns")),
        (pa.scalar(5, pa.time64("ns")) == a, col("a") == np.timedelta64(5, "ns")),
        (datetime.date(2024, 1, 1) > a, col("a") < datetime.date(2024, 1, 1)),
    ],
    ids=str,
)
def test_expressions_are_translated(given, expected):
    assert repr(as_expression(given)) == repr(expected)


def test_a_float_literal_is_exact_beside_narrower_floats():
    assert type((literal := from_pyarrow(a == 0.1)).operand) is np.float64, literal


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (a.cast("int64") > 1, ValueError, r"'cast' has no exact counterpart.*; compare the column itself"),
        (a + 1 > 2, ValueError, "'add_checked' has no exact .* filter the frame after reading"),
        (pc.and_(a, a), ValueError, "'and_' has no exact .* combine expressions by &"),
        (pc.starts_with(a, "x", ignore_case=True), ValueError, "'starts_with' has no exact"),
        (pc.match_like(a, r"\x"), ValueError, "'match_like' has no exact"),
        ((a > 1) == (a < 5), ValueError, "'equal' has no exact"),
        ((a > 1).is_null(), ValueError, "'is_null' has no exact"),
        (pc.field(0) > 1, ValueError, "cannot be translated: .*field_refs"),
        (pc.scalar(3), ValueError, "the literal 3 is no condition"),
        (pa.scalar(None, pa.int64()) == a, TypeError, r"matches no row; use is_null\(\)"),
    ],
    ids=str,
)
def test_what_has_no_exact_counterpart_is_an_error(given, error, message):
    with pytest.raises(error, match=message):
        as_expression(given)


VALUES = {
    "i": ([*range(-3, 4), None], pa.int64()),
    "j": ([*range(-3, 4), None], pa.int8()),
    "f": ([-1.5, 0.1, 1.0, 2.0, float("nan"), float("inf"), None], pa.float64()),
    "g": ([-1.5, 0.1, 1.0, 2.0, float("nan"), None], pa.float32()),
    "s": (["", "a", "a_", "ab", "b%", "é\\", None], pa.string()),
    "b": ([True, False, None], pa.bool_()),
    "t": ([datetime.datetime(2024, 1, day) for day in (1, 2, 3)] + [None], pa.timestamp("us")),
    "d": ([Decimal("1.10"), Decimal("-2.00"), Decimal("3.25"), None], pa.decimal128(9, 2)),
}
NUMBERS = "ijfg"


def random_test(rng):
    """Return a random pyarrow predicate on one or two columns."""
    name = rng.choice(list(VALUES))
    field, (values, kind) = pc.field(name), VALUES[name]
    value = rng.choice([value for value in values if value is not None])
    some = pa.array(rng.sample(values, 2), kind)
    tests = [field.is_null(), field.is_valid(), field.isin(some), pc.is_in(field, some, skip_nulls=True)]
    if name == "b":
        return rng.choice([*tests, field, field == value, field != pc.field("b")])
    if name in "fg":
        tests += [field.is_nan(), field.is_null(nan_is_null=True)]
    if name == "s":
        text = rng.choice([value, "%", "a%", "_"])
        likes = [pc.starts_with(field, text), pc.ends_with(field, text), pc.match_substring(field, text)]
        tests += [*likes, pc.match_like(field, text)] if not text.endswith("\\") else likes
    other = pc.field(rng.choice(NUMBERS if name in NUMBERS else name))
    for side in (pa.scalar(value, kind), other):
        compared = [field == side, field != side, field < side, field <= side, field > side, field >= side]
        tests += rng.sample(compared, 2)
    return rng.choice(tests)


def random_expression(rng, depth):
    if depth == 0:
        return random_test(rng)
    first, second = random_expression(rng, depth - 1), random_expression(rng, rng.randrange(depth))
    return rng.choice([first & second, first | second, ~first, first])


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.slow)])
def test_rows_are_those_of_pyarrow(tmp_path, count):
    rng = random.Random(0)
    columns = {name: pa.array(rng.choices(values, k=60), kind) for name, (values, kind) in VALUES.items()}
    table = pa.table({"row": range(60), **columns})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=7, data_page_size=16, write_page_index=True)
    dataset = ds.dataset(table)  # in memory: by the statistics of a file, pyarrow prunes NaNs that match
    for _ in range(count):
        expression = random_expression(rng, rng.randrange(4))
        expected = dataset.to_table(columns=["row"], filter=expression)["row"].to_pylist()
        found = numparq.read_parquet(tmp_path / "x.parquet", ["row"], expression)["row"].tolist()
        assert found == expected, str(expression)
