"""Parsing of filter strings."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.expr.expression import as_condition
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
    "a endswith '10%'": col("a").endswith("10%"),
    "a": as_condition(col("a")),
    "a and not (b or c > 1)": col("a") & ~(col("b") | (col("c") > 1)),
    "a is true or b is not false": (col("a").is_not_null() & col("a")) | ~(col("b").is_not_null() & ~col("b")),
    "a >= date '2026-07-01'": col("a") >= datetime.date(2026, 7, 1),
    "a in (TIMESTAMP '2026-07-01 12:00+02:00')": col("a").isin([pd.Timestamp("2026-07-01 12:00+02:00")]),
    "a between DATE '2026-07-01' and b": col("a").between(datetime.date(2026, 7, 1), col("b")),
    "date > 3 and a = timestamp": (col("date") > 3) & (col("a") == col("timestamp")),
}


@pytest.mark.parametrize("text", FILTERS)
def test_valid_filters(text):
    assert repr(parse_filter(text)) == repr(FILTERS[text])


def test_flags_and_endings_select_the_rows_of_sql():
    frame = pd.DataFrame({"n": range(5), "flag": pd.array([True, False, None, True, False], "boolean")})
    data = numparq.to_parquet(frame.assign(s=["a%", "ba%", "ab", None, "%a"], t=frame["n"].map(str)))
    selected = {
        "flag": [0, 3],
        "not flag": [1, 4],
        "flag is true": [0, 3],
        "flag is not true": [1, 2, 4],
        "flag is false": [1, 4],
        "flag is not false": [0, 2, 3],
        "not (flag is true)": [1, 2, 4],
        "flag and n > 0": [3],
        "s endswith 'a%'": [0, 1],
        "not s endswith 'a%'": [2, 4],
    }
    for text, rows in selected.items():
        assert numparq.read_parquet(data, filters=text)["n"].tolist() == rows, text
    for expression, rows in ((col("flag"), [0, 3]), (~col("flag"), [1, 4]), (col("flag") & (col("n") > 0), [3])):
        assert numparq.read_parquet(data, filters=expression)["n"].tolist() == rows, expression
    with pytest.raises(numparq.SchemaError, match=r"contains\(\) needs a list .*; use like\(\), with % around a part"):
        numparq.read_parquet(data, filters=col("s").contains("a"))


def test_typed_literals_are_dates_and_timestamps_not_texts():
    days = pd.to_datetime(["2026-06-30", "2026-07-01"])
    frame = pd.DataFrame({"day": days.date, "at": days, "utc": days.tz_localize("Europe/Berlin"), "s": ["a", "b"]})
    data = numparq.to_parquet(frame)
    for text in ("day >= DATE '2026-07-01'", "at = date '2026-07-01'", "utc = TIMESTAMP '2026-07-01 00:00'"):
        assert numparq.read_parquet(data, filters=text)["s"].tolist() == ["b"], text
    with pytest.raises(numparq.SchemaError, match="it is not a string"):
        numparq.read_parquet(data, filters="s = DATE '2026-07-01'")


@pytest.mark.parametrize("store_schema", [True, False])
def test_times_without_a_zone_are_those_that_the_frame_shows(store_schema):
    times = pd.date_range("2024-03-30 22:00", periods=6, freq="3h", tz="Europe/Berlin")
    frame = pd.DataFrame({"t": times})
    data = numparq.to_parquet(frame, store_schema=store_schema)
    expected = times[times > pd.Timestamp("2024-03-31 04:30", tz="Europe/Berlin")].tolist()
    for filters in ("t > '2024-03-31 04:30'", col("t") > datetime.datetime(2024, 3, 31, 4, 30)):
        assert numparq.read_parquet(data, filters=filters)["t"].tolist() == expected, filters


def test_numbers_are_decimals_beside_decimals_and_floats_beside_floats(tmp_path):
    rows = {"a": pa.array([Decimal("1.10"), Decimal("1.11")]), "b": [1.1, 1.2], "c": pa.array([1.1, 1.2], pa.float32())}
    pq.write_table(pa.table({**rows, "n": [2**53 + 1, 2**53]}), tmp_path / "x.parquet")
    for text in ("a = 1.10", "a in (1.1, 7)", "b = 1.10", "b in (1.1)", "c = 1.1", "n > 9007199254740992.5"):
        assert len(numparq.read_parquet(tmp_path / "x.parquet", filters=text)) == 1, text


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "column name is missing", 1),
        ("a 3", "an operator is missing: = == != <> < <= > >= is in between like startswith endswith contains", 3),
        ("a => 3", "'=>' is not expected; write >=", 3),
        ("a > 1 && b > 2", "'&&' is not expected; write 'and'", 7),
        ("!a", "'!' is not expected; write 'not'", 1),
        ("a > DATE 'x'", "DATE 'x': it is not a date such as 2024-01-31", 5),
        ("a > TIMESTAMP '2024'x", "'x' is not expected", 21),
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
        ("a is 3", "'null', 'nan', 'true' or 'false' is missing", 6),
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
