"""Pruning of files by partition values, and pruners of users."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq import RuntimeFilter, SchemaError, col
from numparq.dataset.prune.pruners import PartitionPruner, apply_pruner
from support.dataset_stubs import StubPartitionKeys, stub_partition
from support.filters.leaf_kinds import leaf

KEYS = StubPartitionKeys(year=(leaf(1, name="year"), int), zone=(leaf(6, "STRING", name="zone"), str))
COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
FILES = [stub_partition(year, zone) for year in ("2022", "2023", "2024", None) for zone in ("a", "b", None)]


def kept(filters, runtime=()):
    mask = PartitionPruner(filters, KEYS, runtime).keep(FILES)
    assert mask.dtype == np.bool_
    return [file.values for file, keep in zip(FILES, mask.tolist(), strict=True) if keep]


def test_files_with_matching_partitions_are_kept():
    assert kept((col("year") == 2023) & (col("zone") == "b")) == [("2023", "b")]
    assert kept([("year", ">", 2023), ("zone", "in", ["a", "c"])]) == [("2024", "a")]
    assert kept([[("year", "=", 2022), ("zone", "=", "a")], [("zone", "=", "b"), ("year", "<", 2023)]]) == [
        ("2022", "a"),
        ("2022", "b"),
    ]
    assert kept(col("year").is_null() & col("zone").is_not_null()) == [(None, "a"), (None, "b")]
    assert kept(~(col("year") > 2022) & ~col("zone").like("b%")) == [("2022", "a")]
    assert len(kept(None)) == len(FILES)


def test_predicates_on_columns_do_not_prune():
    assert kept((col("year") == 2023) & (col("x") == 1) & (col("zone") == "b")) == [("2023", "b")]
    assert len(kept((col("year") == 2023) | (col("x") == 1))) == len(FILES)
    assert len(kept(~(col("x") == "anything"))) == len(FILES)
    assert PartitionPruner(col("x") == 1, KEYS).keeps_all
    assert PartitionPruner((col("year") == 2023) & (col("x") == 1), KEYS).reason == "(col('year') == 2023)"


def test_incompatible_literals_raise():
    with pytest.raises(SchemaError, match="'a' cannot be compared with the column 'year'"):
        PartitionPruner(col("year") == "a", KEYS)
    with pytest.raises(SchemaError, match="needs a list of simple values"):
        PartitionPruner(col("zone").contains("a"), KEYS)


def test_arrived_runtime_filters_prune():
    runtime_filter = RuntimeFilter("year")
    assert len(kept(None, runtime_filter)) == len(FILES)
    runtime_filter.arrive([2024, 1999])
    assert kept(col("zone") == "a", [runtime_filter, RuntimeFilter("x", [1])]) == [("2024", "a")]


@given(data=st.data())
def test_pruning_matches_three_valued_oracle(data):
    comparison = st.one_of(
        st.builds(lambda op, n: getattr(col("year"), op)(n), st.sampled_from(OPS), st.integers(2020, 2025)),
        st.builds(lambda op, n: getattr(col("zone"), op)(n), st.sampled_from(OPS), st.sampled_from("abc")),
        st.sampled_from([col("year").is_null(), col("zone").is_not_null(), col("x") == 1]),
    )
    expression = data.draw(
        st.recursive(
            comparison,
            lambda inner: st.one_of(
                st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
                st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
                inner.map(lambda one: ~one),
            ),
            max_leaves=6,
        )
    )
    pruner = PartitionPruner(expression, KEYS)
    assert pruner.keep(FILES).tolist() == [bool(pruner.keep([file])[0]) for file in FILES]
    kept_files, needed = (
        set(kept(expression)),
        {
            file.values
            for file in FILES
            if any(truth(expression, file.values, guess) is True for guess in (True, False, None))
        },
    )
    assert kept_files >= needed
    assert kept_files == needed or "col('x')" in repr(expression)


OPS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def truth(expression, values, guess):
    """Return the three-valued truth of an expression in a partition, with predicates on `x` as guessed."""
    kind = type(expression).__name__
    if kind == "Not":
        inner = truth(expression.part, values, guess)
        return None if inner is None else not inner
    if kind in ("And", "Or"):
        truths = [truth(part, values, guess) for part in expression.parts]
        return (kind == "Or") if (kind == "Or") in truths else None if None in truths else kind == "And"
    if expression.name == "x":
        return guess
    raw = values[KEYS.keys.index(expression.name)]
    if expression.op.endswith("null"):
        return (raw is None) == (expression.op == "is null")
    if raw is None:
        return None
    return COMPARE[expression.op](int(raw) if expression.name == "year" else raw, expression.operand)


class UserPruner:
    name = "own"

    def __init__(self, answer):
        self.answer = answer

    def keep(self, files):
        return self.answer


def test_masks_of_user_pruners_are_checked():
    assert apply_pruner(UserPruner([True, False]), FILES[:2]).tolist() == [True, False]
    assert apply_pruner(UserPruner([]), []).tolist() == []
    for wrong in ([True], [1, 0], [[True, False]], None):
        with pytest.raises(ValueError, match="pruner 'own' must return a bool for each of 2 files"):
            apply_pruner(UserPruner(wrong), FILES[:2])


def test_partition_value_is_parsed_once():
    class Counting(StubPartitionKeys):
        num_parsed = 0

        def value(self, key, raw):
            self.num_parsed += 1
            return super().value(key, raw)

    keys = Counting(year=(leaf(1, name="year"), int), zone=(leaf(6, "STRING", name="zone"), str))
    files = [stub_partition(str(2000 + number % 50), f"z{number % 7}") for number in range(5000)]
    pruner = PartitionPruner((col("year") >= 2025) & (col("zone") != "z3") | (col("year") == 2001), keys)
    mask = pruner.keep(files)
    assert mask.sum() == sum((n % 50 >= 25 and n % 7 != 3) or n % 50 == 1 for n in range(5000))
    assert keys.num_parsed <= 2 * 50 + 7
    pruner.keep(files[::-1])
    assert keys.num_parsed <= 2 * 50 + 7
