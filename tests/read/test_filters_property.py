"""A filtered read equals a full read that is filtered: random tables, writers, predicates, options and statistics.

The oracle in `support.filters.predicates` evaluates predicates in plain Python.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from numparq.errors import ParquetError
from support.files.forged_metadata import BUGGY, LEGAL, LIES
from support.filters.case import check_seed, random_cases
from support.filters.column_kinds import KINDS
from support.filters.literals import Literal
from support.filters.predicates import COMPARE, AllOf, AnyOf, Comparison, NotOf
from support.filters.reads import filtered_frame

FUZZ = int(os.environ.get("NUMPARQ_FUZZ", "1"))  # factor for the number of cases of the slow tests
OWN = ("numparq", "pyarrow")
QUICK, MANY = 15, 150


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(5))
def test_random_filtered_reads(part):
    for seed in range(part * QUICK, part * QUICK + QUICK):
        check_seed(seed, OWN)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["polars", "duckdb"])
def test_files_of_other_writers(writer):
    pytest.importorskip(writer)
    for seed in range(1000, 1000 + QUICK):
        check_seed(seed, (writer,))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_weakened_statistics(part):
    for seed in range(2000 + part * QUICK, 2000 + part * QUICK + QUICK):
        check_seed(seed, OWN, forging=True)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", [*LEGAL, *BUGGY])
def test_each_forgery(name):
    for seed in range(3000, 3002):
        check_seed(seed, OWN, asks=3, forgeries=(name,))


def check_lies(seed, names):
    """Check that files with wrong statistics are read, or refused with a ParquetError."""
    for number, case in enumerate(random_cases(seed, OWN, asks=3)):
        lying = replace(case, forgeries=tuple(names))
        try:
            filtered_frame(lying.data(), {**case.read, "row_groups": None}, case.predicate.expression())
        except ParquetError:
            pass
        except Exception as error:
            error.add_note(f"seed {seed}, case {number}\n{lying}")
            raise


@pytest.mark.parametrize("name", LIES)
def test_wrong_statistics(name):
    for seed in range(4000, 4002):
        check_lies(seed, [name])


# --- more seeds -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4 * FUZZ))
def test_many_filtered_reads(part):
    for seed in range(100_000 + part * MANY, 100_000 + part * MANY + MANY):
        check_seed(seed, OWN)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["polars", "duckdb"])
@pytest.mark.parametrize("part", range(FUZZ))
def test_many_files_of_other_writers(part, writer):
    pytest.importorskip(writer)
    for seed in range(200_000 + part * MANY, 200_000 + part * MANY + MANY):
        check_seed(seed, (writer,))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3 * FUZZ))
def test_many_weakened_statistics(part):
    for seed in range(300_000 + part * MANY, 300_000 + part * MANY + MANY):
        check_seed(seed, (*OWN, "polars"), forging=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(FUZZ))
def test_many_wrong_statistics(part):
    for seed in range(400_000 + part * MANY, 400_000 + part * MANY + MANY):
        rng = np.random.default_rng(seed)
        check_lies(seed, rng.permutation(list(LIES))[: int(rng.integers(1, 4))].tolist())


# --- the oracle and the generators themselves -------------------------------------------------------------------------


def comparison(op, literal=None):
    if isinstance(literal, tuple):
        return Comparison("x", op, tuple(Literal(part, part) for part in literal))
    return Comparison("x", op, None if literal is None else Literal(literal, literal))


NAN = float("nan")
THREE = {"x": [1, 3.0, NAN, None]}


@pytest.mark.parametrize(
    ("question", "truths"),
    [
        (comparison("!=", 3), [True, False, True, None]),
        (NotOf(comparison(">", 2)), [True, False, True, None]),
        (comparison("<=", 3), [True, True, False, None]),
        (comparison("isin", (1, NAN, None)), [True, False, False, None]),
        (comparison("not_in", (1, NAN, None)), [False, True, True, None]),
        (comparison("not_in", ()), [True, True, True, None]),
        (comparison("is_null"), [False, False, False, True]),
        (NotOf(comparison("is_null")), [True, True, True, False]),
        (AnyOf((comparison("is_null"), comparison("==", 1))), [True, False, False, True]),
        (AllOf((comparison("is_null"), comparison("==", 1))), [False, False, False, None]),
        (comparison("between", (1, 2.5)), [True, False, False, None]),
    ],
)
def test_oracle_truths_per_row(question, truths):
    assert question.truths(THREE) == truths


@pytest.mark.parametrize(
    ("question", "value", "truth"),
    [
        (comparison("like", ("a_c%",)), "abc\nd", True),
        (comparison("like", ("a_c",)), "a\U00010348c", True),
        (comparison("like", (b"a_c",)), "a\U00010348c".encode(), False),
        (comparison("like", ("a!%c", "!")), "a%c", True),
        (comparison("like", ("a!%c", "!")), "abc", False),
        (comparison("like", ("",)), "", True),
        (comparison("<", "\U00010348"), "\uffff", True),
        (comparison("contains", 3), [None, 3], True),
        (comparison("contains", 3), [None], False),
        (comparison("contains", NAN), [NAN], False),
        (comparison("startswith", ""), "", True),
    ],
)
def test_oracle_truth_for_one_value(question, value, truth):
    assert question.truths({"x": [value]}) == [truth]


def test_random_cases_cover_all_features():
    """Column kinds, operators, options and sources all occur."""
    kinds, ops, options, sources = set(), set(), set(), set()

    def walk(predicate):
        ops.add(getattr(predicate, "op", type(predicate).__name__))
        for part in predicate.parts:
            walk(part)

    for seed in range(250):
        for case in random_cases(seed, OWN, asks=2):
            kinds.update(column.kind for column in case.table.values())
            options.update(case.read)
            sources.add(case.read["source"])
            walk(case.predicate)
    assert kinds == set(KINDS)
    assert ops >= {
        *COMPARE,
        "isin",
        "not_in",
        "between",
        "is_null",
        "is_not_null",
        "startswith",
        "like",
        "contains",
        "AllOf",
        "AnyOf",
        "NotOf",
        "DnfFilter",
    }
    assert options >= {
        "columns",
        "row_range",
        "row_groups",
        "nrows",
        "include",
        "dtype_backend",
        "categories",
        "small",
        "runtime",
    }
    assert sources == {"bytes", "path", "file", "memory"}
