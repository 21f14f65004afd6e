"""Parsing of filter strings."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.expr.parse import parse_filter
from support.differential.call_counts import count_calls

FILTERS = {
    "a = 3": col("a") == 3,
    "a == -3.5": col("a") == -3.5,
    "a<>3": col("a") != 3,
    "a >= .5 AND b < 'x'": (col("a") >= 0.5) & (col("b") < "x"),
    "a>3 or b=1 and not c=2": (col("a") > 3) | ((col("b") == 1) & ~(col("c") == 2)),
    "(a>3 or b=1) and c=2": ((col("a") > 3) | (col("b") == 1)) & (col("c") == 2),
    "a in (1, 2,3)": col("a").isin([1, 2, 3]),
    "a not in ('x')": ~col("a").isin(["x"]),
    "a between 1 and 2 and b = true": col("a").between(1, 2) & (col("b") == True),  # noqa: E712
    "a not between '2024-01-01' and '2024-02-01'": ~col("a").between("2024-01-01", "2024-02-01"),
    "a is null or s.b is not null": col("a").is_null() | col("s.b").is_not_null(),
    "a like 'x%'": col("a").like("x%"),
    "a not like '10!%' escape '!'": ~col("a").like("10!%", escape="!"),
    "a startswith 'it''s'": col("a").startswith("it's"),
    "tags contains 'x'": col("tags").contains("x"),
    '"the ""fare""" = "x"': col('the "fare"') == "x",
    "`not` != 1": col("not") != 1,
    "größe > 1": col("größe") > 1,
    "not not a = 1": ~~(col("a") == 1),
    "a < b and a<>s.b": (col("a") < col("b")) & (col("a") != col("s.b")),
    "a >= `not b`": col("a") >= col("not b"),
    "a between b and 3": col("a").between(col("b"), 3),
    "a is nan or b is not nan": col("a").is_nan() | ~col("b").is_nan(),
}


@pytest.mark.parametrize("text", FILTERS)
def test_valid_filters(text):
    assert repr(parse_filter(text)) == repr(FILTERS[text])


def test_numbers_are_decimals_beside_decimals_and_floats_beside_floats(tmp_path):
    rows = {"a": pa.array([Decimal("1.10"), Decimal("1.11")]), "b": [1.1, 1.2], "c": pa.array([1.1, 1.2], pa.float32())}
    pq.write_table(pa.table({**rows, "n": [2**53 + 1, 2**53]}), tmp_path / "x.parquet")
    for text in ("a = 1.10", "a in (1.1, 7)", "b = 1.10", "b in (1.1)", "c = 1.1", "n > 9007199254740992.5"):
        assert len(numparq.read_parquet(tmp_path / "x.parquet", filters=text)) == 1, text


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "column name is missing", 1),
        ("a", "an operator is missing", 2),
        ("a >", "a number, true, false or a string", 4),
        ("a > 3 b", "'b' is not expected", 7),
        ("a > (b)", "a column, a number, true, false or a string", 5),
        ("a = null", "nothing equals null, write 'is null'", 5),
        ("a like 3", "like() takes a string", 3),
        ("a like 'x' escape 'ab'", "escape must be one character", 19),
        ("a in (b)", "a number, true, false or a string", 7),
        ("3 < a", "column name is missing", 1),
        ("(a > 3", "')' is missing", 7),
        ("a in 3", "'(' is missing", 6),
        ("a in ()", "a number, true, false or a string", 7),
        ("a between 1 or 2", "'and' is missing", 13),
        ("a is 3", "'null' is missing", 6),
        ("a = 'x", '"\'" is not expected', 5),
        ("a = 3; import os", "';' is not expected", 6),
        ("a.__class__()", "an operator is missing", 12),
        ("a = 3x", "is not expected", 5),
        ("and = 3", "column name is missing", 1),
        ("a not = 3", "an operator is missing", 7),
        ("(" * 200 + "a = 1" + ")" * 200, "nested more than 100 levels deep", 102),
        ("not " * 5000 + "a = 1", "nested more than 100 levels deep", 405),
    ],
)
def test_invalid_filters_name_the_character(text, message, place):
    with pytest.raises(ValueError, match="at character") as caught:
        parse_filter(text)
    assert message in str(caught.value)
    assert f"at character {place} of" in str(caught.value)


@pytest.mark.parametrize("test", ["number != {}", "text != 't{}'", "number = {} or text = 't{}'"])
def test_cost_of_many_conjuncts_is_proportional(test):
    """Calls of Python functions; two by two, predicates on one column would take a hundred times as many."""
    count = 1000
    table = pa.table({"number": range(count), "text": [f"t{number}" for number in range(count)]})
    pq.write_table(table, sink := pa.BufferOutputStream())
    data = sink.getvalue().to_pybytes()
    join = " or " if " or " in test else " and "

    def calls(number_of_tests: int) -> int:
        text = join.join(test.format(number, number) for number in range(number_of_tests))
        frame = numparq.read_parquet(data, filters=text)
        numbers = list(range(number_of_tests) if join == " or " else range(number_of_tests, count))
        assert frame["number"].tolist() == numbers
        return count_calls(lambda: numparq.read_parquet(data, filters=text))

    assert calls(900) < 15 * calls(90)
