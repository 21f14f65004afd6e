"""Expressions: syntax, repr, errors, pandas filters, and binding to flat and nested columns."""

from __future__ import annotations

import datetime
import io
import pickle
import uuid

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.errors import SchemaError
from numparq.expr.bind import bind
from numparq.expr.bound import ContainsPredicate, NullPredicate, ValuePredicate
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import And, ColumnPredicate, Constant, Not, Or
from numparq.expr.filters import as_expression
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.normalize import normalize
from numparq.format.arrow_type import ArrowType
from support.filters.leaf_kinds import StubFlatSchema, leaf

X, Y = ColumnPredicate("x", "==", 1), ColumnPredicate("y", "<", 2)


def test_col_is_public():
    assert numparq.col is col


def test_repr_of_expressions():
    shown = (col("x") > 3) & ~col("y").isin([1, None, 2]) | col(("s", "a")).like("a%", escape="!")
    assert repr(shown) == "(((col('x') > 3) & ~col('y').isin([1, 2])) | col(('s', 'a')).like('a%', escape='!'))"
    assert repr(col("x").isin(range(20))) == "col('x').isin([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... of 20])"
    assert repr(col("x").is_not_null()) == "col('x').is_not_null()"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: bool(X), TypeError, "combine expressions by &, [|] and ~"),
        (lambda: 1 < col("x") < 3, TypeError, "between"),
        (lambda: bool(col("x")), TypeError, "combine conditions by &, [|] and ~"),
        (lambda: col("x") & X > 1, TypeError, "put these in parentheses"),
        (lambda: col("x").endswith(3), TypeError, "endswith"),
        (lambda: col("x").str.upper(), AttributeError, r"'str'; call startswith\(\), endswith\(\) or like\(\)"),
        (lambda: col("x").is_in([1]), AttributeError, r"'is_in'; use isin\(\)"),
        (lambda: col("x").beetween(1, 2), AttributeError, "'beetween'; did you mean 'between'"),
        (lambda: col("x")._name, AttributeError, "no attribute '_name'$"),
        (lambda: col("x").contains(col("y")), TypeError, "a column takes a literal here"),
        (lambda: col("x").isin([col("y")]), TypeError, "is a column"),
        (lambda: col("x") != None, TypeError, "is_null"),  # noqa: E711
        (lambda: col("x") > pd.NaT, TypeError, "is_null"),
        (lambda: col("x") == np.datetime64("NaT"), TypeError, "is_null"),
        (lambda: col("x") == pd.NA, TypeError, "is_null"),
        (lambda: col("x").isin("abc"), TypeError, "list of values"),
        (lambda: col("x").isin(3), TypeError, "list of values"),
        (lambda: col("x").startswith(3), TypeError, "startswith"),
        (lambda: col("x").like(3), TypeError, "like"),
        (lambda: col("x").like("a", escape="ab"), ValueError, "one character"),
        (lambda: col("x").like("a", escape=b"a"), ValueError, "one character"),
        (lambda: col(3), TypeError, "a column name must be"),
        (lambda: col(()), TypeError, "path"),
        (lambda: X & 3, TypeError, "predicates on both sides"),
    ],
)
def test_invalid_expressions_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("x", "=", 1), X),
        ([("x", "==", 1)], X),
        ([("x", "==", 1), ("y", "<", 2)], And((X, Y))),
        ([[("x", "==", 1), ("y", "<", 2)], [("y", "<", 2)]], Or((And((X, Y)), Y))),
        ([[("x", "==", 1)]], X),
        ([("x", "in", {1})], ColumnPredicate("x", "in", (1,))),
        ([("x", "not in", [1, None])], ColumnPredicate("x", "not in", (1,))),
        ([(("s", "a"), ">=", 1)], ColumnPredicate(("s", "a"), ">=", 1)),
        ((("x", "==", 1), ("y", "<", 2)), And((X, Y))),
        (X, X),
    ],
)
def test_pandas_filters_become_expressions(filters, expected):
    assert as_expression(filters) == expected


@pytest.mark.parametrize(
    ("filters", "error", "message"),
    [
        ([], ValueError, "filters is empty"),
        ([[]], ValueError, r"filters\[0\] is empty"),
        (b"x > 3", TypeError, "filters must be a list"),
        (3, TypeError, "filters must be a list"),
        (False, TypeError, "not False; & and [|] bind tighter than =="),
        ([("x", "==")], ValueError, r"filters\[0\] must have three items"),
        ([("x", "~", 3)], ValueError, r"filters\[0\]: operator '~' is not one of ==, !=, <, <=, >, >=, =, in, not in$"),
        ([("x", "=>", 3)], ValueError, "operator '=>' is not one of .*; write '>='$"),
        ([("x", "LIKE", "a%")], ValueError, r"operator 'LIKE' is not one of .*; use numparq.col\(...\).like\(...\)$"),
        ([("x", "in", 3)], TypeError, r"filters\[0\]: isin.* takes a list"),
        ([("x", "==", None)], TypeError, r"filters\[0\]: .*is_null"),
        ([[("x", "==", 1)], ("y", "==", 1)], TypeError, r"filters\[1\]"),
        ([[("x", "==", 1), 7]], TypeError, r"filters\[0\]\[1\]"),
        ([[[("x", "==", 1)]]], TypeError, r"filters\[0\]\[0\]"),
        ([3], TypeError, r"filters\[0\]"),
    ],
)
def test_invalid_pandas_filters_are_refused(filters, error, message):
    with pytest.raises(error, match=message):
        as_expression(filters)


def test_normalize_pushes_negations_to_predicates():
    more = col("x") > 3
    assert normalize(~(more & (Y | ~X))) == Or((Not(more), And((Not(Y), X))))
    assert normalize(~(col("x") != 1)) == X
    assert normalize(col("x").not_in([1])) == Not(col("x").isin([1]))
    assert normalize(~(X & (Y & more))) == Or((Not(X), Not(Y), Not(more)))
    assert normalize(And((X, Constant(False)))) == Constant(False)
    assert normalize(Or((X, Not(Constant(True))))) == X


INTEGER, REQUIRED = StubFlatSchema([leaf(1, name="x")]), StubFlatSchema([leaf(1, name="x", optional=0)])
NOT_NULL, NEVER, ALWAYS = NullPredicate(leaf(1, name="x"), 1, True), Constant(False), Constant(True)


@pytest.mark.parametrize(
    ("expression", "nullable", "required"),
    [
        (col("x") < 2**70, NOT_NULL, ALWAYS),
        (col("x") > 2**31 - 1, NEVER, NEVER),
        (col("x") == 3.5, NEVER, NEVER),
        (~(col("x") == 3.5), NOT_NULL, ALWAYS),
        (col("x").isin([]), NEVER, NEVER),
        (col("x").not_in([]), NOT_NULL, ALWAYS),
        (col("x") == float("nan"), NEVER, NEVER),
        (col("x") != float("nan"), NOT_NULL, ALWAYS),
        ((col("x") > 3) & (col("x") < 3), NEVER, NEVER),
        ((col("x") >= 3) | (col("x") < 3), NOT_NULL, ALWAYS),
        (col("x").is_null(), NullPredicate(leaf(1, name="x"), 1), NEVER),
    ],
)
def test_predicates_constant_by_type(expression, nullable, required):
    assert bind(expression, INTEGER) == nullable
    assert bind(expression, REQUIRED) == required


def test_predicates_on_one_column_merge():
    (bound,) = [bind((col("x") > 3.5) & (col("x") != 6) & (col("x") <= 8), INTEGER)]
    assert isinstance(bound, ValuePredicate)
    assert bound.ranges == ((4, 6), (7, 9))
    assert bind((col("x") == 3) | (col("x") == 4), INTEGER).ranges == ((3, 5),)


DATE, UTC = leaf(1, "DATE"), leaf(2, "TIMESTAMP", unit="MILLIS", utc=True)
LOCAL, TIME = leaf(2, "TIMESTAMP", unit="MILLIS", utc=False), leaf(2, "TIME", unit="NANOS")
NOON = datetime.datetime(2020, 1, 1, 12)


@pytest.mark.parametrize(
    ("column", "literal", "why"),
    [
        (leaf(1), "3", "not a number"),
        (leaf(1), NOON, "not a number"),
        (leaf(6, "STRING"), 3, "not a string"),
        (leaf(6, "STRING"), b"a", "not a string"),
        (leaf(6, "STRING"), "\udc80", "UTF-8"),
        (leaf(6), "a", "not bytes"),
        (leaf(7, "UUID", 16), "1234", "not a UUID"),
        (leaf(1, "DECIMAL", precision=5, scale=2), "x", "not a decimal"),
        (LOCAL, NOON.replace(tzinfo=datetime.UTC), "has a time zone"),
        (LOCAL, "2020-01-01T00:00Z", "has a time zone"),
        (UTC, "today", "not a date"),
        (UTC, 3, "not a date"),
        (LOCAL, "2020-13-01", "not a date"),
        (TIME, np.timedelta64(3), "unit"),
        (DATE, pd.Timestamp(NOON, tz="UTC"), "dates have none"),
        (TIME, "25:00", "not a time of day"),
        (TIME, 3, "not a time of day"),
        (TIME, datetime.time(1, tzinfo=datetime.UTC), "time zone"),
        (TIME, np.timedelta64(1, "M"), "no fixed length"),
    ],
)
def test_literals_of_the_wrong_type_are_refused(column, literal, why):
    with pytest.raises(SchemaError, match=why) as caught:
        bind(col("x") == literal, StubFlatSchema([column]))
    assert "'x'" in str(caught.value)
    assert repr(literal) in str(caught.value)


BERLIN = ArrowType("timestamp", unit="ms", timezone="Europe/Berlin")


@pytest.mark.parametrize(
    "literals",
    [
        ("2024-03-31 04:30", datetime.datetime(2024, 3, 31, 4, 30), np.datetime64("2024-03-31T04:30")),
        ("2024-03-31", datetime.date(2024, 3, 31), pd.Timestamp("2024-03-31")),
        ("1890-01-01 00:00", np.datetime64("1890-01-01T00:00"), datetime.datetime(1890, 1, 1)),
    ],
)
def test_literals_without_a_zone_are_in_that_of_the_column_in_every_spelling(literals):
    instant = pd.Timestamp(literals[0]).tz_localize("Europe/Berlin").value // 10**6
    for literal in literals:
        schema = StubFlatSchema([UTC])
        assert bind(col("x") == literal, schema, {0: BERLIN}).ranges == ((instant, instant + 1),), literal
        assert bind(col("x").isin([literal]), schema, {0: BERLIN}).ranges == ((instant, instant + 1),), literal


@pytest.mark.parametrize("text", ["2024-03-31 02:30", "2024-10-27 02:30"])
def test_literals_that_clocks_show_twice_or_never_are_refused(text):
    for literal in (text, datetime.datetime.fromisoformat(text)):
        with pytest.raises(SchemaError, match="Europe/Berlin, show this time twice or never"):
            bind(col("x") > literal, StubFlatSchema([UTC]), {0: BERLIN})


def test_a_column_alone_is_a_condition_only_if_it_is_boolean():
    schema = StubFlatSchema([leaf(0, name="x")])
    assert bind(as_expression(col("x")), schema) == bind(col("x") == True, schema)  # noqa: E712
    assert bind(~col("x"), schema) == bind(col("x") == False, schema)  # noqa: E712
    assert repr(~col("x") & (col("y") > 1)) == "(~(col('x') == True) & (col('y') > 1))"
    for condition in (as_expression(col("x")), ~col("x"), col("x") | (col("x") > 3)):
        with pytest.raises(SchemaError, match="a column alone is a condition only if it is boolean; compare it with a"):
            bind(condition, INTEGER)
    assert pickle.loads(pickle.dumps(~col("x"))) == ~col("x")


def test_nesting_depth_is_limited():
    def nested(count):
        whole = col("x") == 0
        for number in range(1, count):
            whole = (whole & (col("x") != -number)) if number % 2 else (whole | (col("x") == number))
        return whole

    data = numparq.to_parquet(pd.DataFrame({"x": range(300)}))
    assert numparq.read_parquet(data, filters=nested(100))["x"].tolist() == list(range(0, 100, 2))
    assert len(numparq.read_parquet(data, filters=~nested(99))) == 250
    for whole in (nested(101), ~nested(100), nested(100_000)):
        with pytest.raises(ValueError, match="nested more than 100 levels deep"):
            numparq.read_parquet(data, filters=whole)
    flat = col("x") == 0
    for number in range(1000):
        flat = flat | (col("x") == number)
    assert len(numparq.read_parquet(data, filters=flat)) == 300


def test_invalid_patterns_are_refused():
    for test in (col("x").like("a!b", escape="!"), col("x").like("a!", escape="!"), col("x").startswith(b"a")):
        with pytest.raises(SchemaError):
            bind(test, StubFlatSchema([leaf(6, "STRING")]))
    for column in (leaf(1), leaf(7, "UUID", 16)):
        with pytest.raises(SchemaError, match="strings and bytes"):
            bind(col("x").startswith("a"), StubFlatSchema([column]))


def ranges(column, expression):
    return bind(expression, StubFlatSchema([column])).ranges


def test_equal_literals_of_different_types():
    day, midnight = 18262, 18262 * 86_400_000
    for literal in ("2020-01-01", datetime.date(2020, 1, 1), np.datetime64("2020"), pd.Timestamp("2020-01-01")):
        assert ranges(DATE, col("x") == literal) == ((day, day + 1),)
        assert ranges(LOCAL, col("x") == literal) == ((midnight, midnight + 1),)
    assert ranges(DATE, col("x") > NOON)[0][0] == day + 1
    east = datetime.timezone(datetime.timedelta(hours=2))
    assert ranges(UTC, col("x") == datetime.datetime(2020, 1, 1, 2, tzinfo=east)) == ((midnight, midnight + 1),)
    assert ranges(UTC, col("x") == "2020-01-01") == ((midnight, midnight + 1),)
    assert ranges(LOCAL, col("x") > np.datetime64(1, "ns"))[0][0] == 1
    assert ranges(LOCAL, col("x") < np.datetime64(1, "ps"))[0][1] == 1
    assert ranges(TIME, col("x") == "00:00:01.000000001") == ((10**9 + 1, 10**9 + 2),)
    value = uuid.UUID(int=5)
    for literal in (value, str(value), value.bytes):
        assert ranges(leaf(7, "UUID", 16), col("x") == literal) == ((value.bytes, value.bytes + b"\0"),)


@pytest.mark.parametrize("unit", ["Y", "M"])
def test_month_and_year_literals_match_numpy(unit):
    for count in (*range(-30_000, 30_000, 61), -12, -1, 0, 1, 11, 12):
        month = np.datetime64(count, unit)
        day = int(month.astype("M8[D]").astype(np.int64))
        assert ranges(DATE, col("x") == month) == ((day, day + 1),)


def test_timestamps_beyond_python_and_numpy():
    for late in (np.datetime64(3 * 10**16, "Y"), np.datetime64(2**62, "M")):
        assert bind(col("x") < late, StubFlatSchema([LOCAL])) == bind(col("x").is_not_null(), StubFlatSchema([LOCAL]))
        assert bind(col("x") > late, StubFlatSchema([LOCAL])) == NEVER
    hours = datetime.timedelta(hours=23)
    last = datetime.datetime.max.replace(microsecond=0, tzinfo=datetime.timezone(-hours))
    first = datetime.datetime.min.replace(tzinfo=datetime.timezone(hours))
    assert ranges(UTC, col("x") == last)[0][0] == (253_402_300_799 + 23 * 3600) * 1000
    assert ranges(UTC, col("x") == first)[0][0] == (-62_135_596_800 - 23 * 3600) * 1000


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= 1024, reason="numpy.longdouble is a double here")
def test_longdouble_beyond_double_is_not_infinite():
    assert bind(col("x") == np.longdouble("1e4000"), StubFlatSchema([leaf(5)])) == NEVER
    assert ranges(leaf(5), col("x") < np.longdouble("1e4000")) == ranges(leaf(5), col("x") < 10**400)


def test_literals_rounded_to_float_columns():
    single = leaf(4)
    (rounded,) = ranges(single, col("x") == 0.1)
    assert ranges(single, col("x") == np.float32(0.1)) == (rounded,)
    assert bind(col("x") == np.float64(0.1), StubFlatSchema([single])) == NEVER
    assert bind(np.float64(0.1) == col("x"), StubFlatSchema([single])) == NEVER
    assert ranges(leaf(5), col("x") == 2**53 + 1) == ranges(leaf(5), col("x") == 2.0**53)
    pandas = pd.Series(np.array([0.1], "f4"))
    assert (pandas == 0.1).all()
    assert not (pandas == np.float64(0.1)).any()


@pytest.fixture(scope="module")
def nested():
    frame = pd.DataFrame(
        {
            "l": [[1, 2], [], None, [None, 3]],
            "s": [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}, {"a": 3, "b": {"c": "y"}}],
            "s.a": [9, 8, 7, 6],
        }
    )
    return numparq.ParquetFile(io.BytesIO(numparq.to_parquet(frame))).schema


def test_column_names_and_dotted_paths(nested):
    assert bind(col("s.a") == 9, nested).leaf.path == ("s.a",)
    assert bind(col(("s", "a")) == 9, nested).leaf.path == ("s", "a")
    assert bind(col("s.b.c") == "x", nested).leaf.path == ("s", "b", "c")
    with pytest.raises(SchemaError, match=r"no column .s\.b\.d.; did you mean .s\.b\.c."):
        bind(col("s.b.d") == "x", nested)
    with pytest.raises(SchemaError, match="no column 'q'"):
        bind(col("q") == 1, nested)
    with pytest.raises(SchemaError, match="nested"):
        bind(col("s") == 1, nested)
    with pytest.raises(SchemaError, match="is a list"):
        bind(col("l") == 1, nested)
    with pytest.raises(SchemaError, match="needs a list of simple values"):
        bind(col("s.b").contains(1), nested)
    for predicate in (col(nested.leaf(0).path) == 1, col(nested.leaf(0).path) < col("s.b.c")):
        with pytest.raises(SchemaError, match="inside a list"):
            bind(predicate, nested)


def test_is_null_binds_definition_level_of_groups(nested):
    levels = [bind(col(name).is_null(), nested).definition_level for name in ("l", "s", "s.b", "s.b.c")]
    assert levels == [1, 1, 2, 3]
    with pytest.raises(SchemaError, match="inside a list"):
        bind(col(nested.leaf(0).path).is_null(), nested)


def test_contains_over_lists_with_nulls(nested):
    there = np.array([1, 1, 0, 1])
    column = ColumnVector(
        np.array([1, 2, 0, 3]),
        validity=np.array([1, 1, 0, 1]),
        levels={1: there},
        list_offsets=np.array([0, 2, 2, 2, 4]),
    )
    bound = bind(col("l").contains(3), nested)
    assert isinstance(bound, ContainsPredicate)
    assert evaluate(bound, {0: column}, 4).tolist() == [False, False, False, True]
    assert evaluate(bind(~col("l").contains(3), nested), {0: column}, 4).tolist() == [True, True, False, False]
    assert evaluate(bind(~col("l").contains(3.5), nested), {0: column}, 4).tolist() == [True, True, False, True]
    assert evaluate(bind(col("l").is_null(), nested), {0: column}, 4).tolist() == [False, False, True, False]
