"""Masks of expressions: output buffers, conjuncts, wrong lengths, dictionary codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr import evaluate as module
from numparq.expr.bind import bind
from numparq.expr.bound import ContainsPredicate, NullPredicate
from numparq.expr.column import col
from numparq.expr.evaluate import evaluate, evaluate_predicate
from numparq.expr.expression import And, Constant, Or
from numparq.expr.matchers import compile
from numparq.expr.matchers.vectors import ColumnVector
from support.filters.leaf_kinds import KINDS, StubFlatSchema
from support.kernels.guarded_buffers import GuardedBuffer

NAMES = ("int64", "string", "bool", "double")
SCHEMA = StubFlatSchema([replace(KINDS[name].leaf, index=i, column=i, path=(name,)) for i, name in enumerate(NAMES)])


def table(numbers):
    """Return columns built from small numbers; every third row is null in two of them."""
    validity = [number % 3 != 0 for number in range(len(numbers))]
    return {
        0: KINDS["int64"].values(numbers),
        1: KINDS["string"].values([chr(97 + number) for number in numbers], validity),
        2: KINDS["bool"].values([number % 2 == 1 for number in numbers], validity),
        3: KINDS["double"].values([float(number) for number in numbers]),
    }


TESTS = [
    col("int64") > 2,
    col("int64") != 3,
    col("string") < "d",
    col("string").like("%c"),
    ~col("string").like("_"),
    col("bool") > 0,
    col("double").isin([1.0, 2.0, 4.0]),
    col("string").is_null(),
    col("bool").is_not_null(),
]
BOUND = [bind(test, SCHEMA) for test in TESTS]
TREES = st.recursive(
    st.sampled_from([*BOUND, Constant(True), Constant(False)]),
    lambda inner: st.builds(
        lambda kind, parts: kind(tuple(parts)), st.sampled_from([And, Or]), st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=10,
)


def reference_mask(bound, columns, count):
    if isinstance(bound, (And, Or)):
        answers = [reference_mask(part, columns, count) for part in bound.parts]
        return np.all(answers, axis=0) if isinstance(bound, And) else np.any(answers, axis=0)
    return evaluate(bound, columns, count)


@given(bound=TREES, numbers=st.lists(st.integers(0, 5), max_size=12), dtype=st.sampled_from(["u1", "?"]))
def test_conjuncts_combine_in_the_output_buffer(bound, numbers, dtype):
    columns = table(numbers)
    out = GuardedBuffer(np.random.default_rng(0), len(numbers))
    found = evaluate(bound, columns, len(numbers), out.array.view(dtype))
    out.check()
    assert found.dtype == bool
    assert not len(found) or np.shares_memory(found, out.array)
    assert out.array.tolist() == reference_mask(bound, columns, len(numbers)).astype(int).tolist()


def test_decided_conjuncts_skip_the_rest(monkeypatch):
    evaluated = []

    def recorded(test, column, into):
        evaluated.append(test.leaf.path[0])
        compile.match_values(test, column, into)

    monkeypatch.setattr(module, "match_values", recorded)
    columns = table([1, 2, 3])
    never, always = bind(col("int64") > 9, SCHEMA), bind(col("int64") < 9, SCHEMA)
    like, text = bind(col("string").like("%c%"), SCHEMA), bind(col("string") > "a", SCHEMA)
    for bound, expected in (
        (And((like, never)), ["int64"]),
        (And((like, text, always)), ["int64", "string", "string"]),
        (Or((like, always)), ["int64"]),
        (Or((like, And((never, text)))), ["int64", "string"]),  # no row is left in the AND, but in the OR
        (And((like, Or((text, always)))), ["int64", "string"]),  # likewise for an OR in an AND
    ):
        evaluated.clear()
        evaluate(bound, columns, 3)
        assert evaluated == expected, bound


def test_output_buffer_of_wrong_size_is_refused():
    columns = table([1, 2, 3])
    for out in (np.zeros(2, np.uint8), np.zeros(3, np.int64), np.zeros(6, bool)[::2], np.zeros((3, 1), bool)):
        with pytest.raises(ValueError, match="3 rows"):
            evaluate(BOUND[0], columns, 3, out)
    out = np.ones(3, bool)
    assert evaluate(BOUND[0], columns, 3, out).tolist() == [False, False, True]
    assert out.tolist() == [False, False, True]


def test_short_arrays_are_refused():
    """Kernels check no lengths."""
    text, number = BOUND[2], BOUND[0]
    strings, numbers = table([1, 2, 3])[1], table([1, 2, 3])[0]
    for test, values in (
        (number, replace(numbers, values=numbers.values[:2])),
        (text, replace(strings, offsets=strings.offsets[:3])),
        (text, replace(strings, validity=strings.validity[:2])),
        (text, replace(strings, codes=np.zeros(2, np.int32))),
    ):
        with pytest.raises(ValueError, match=r"3 are needed|for 3 rows"):
            evaluate(test, {test.leaf.index: values}, 3)
    leaf = replace(KINDS["int64"].leaf, max_repetition_level=1, max_definition_level=2)
    inside = ContainsPredicate(leaf, 1, number)
    for offsets in ([0, 1, 2], [0, 1, 2, 9]):
        with pytest.raises(ValueError, match=r"4 are needed|3 elements"):
            evaluate(inside, {0: replace(numbers, list_offsets=np.array(offsets))}, 3)


def test_rows_beyond_count_are_ignored():
    columns = table([1, 2, 3, 4, 5])
    for bound in BOUND:
        assert evaluate(bound, columns, 3).tolist() == evaluate(bound, columns, 5)[:3].tolist()


def test_null_predicate_over_dictionary_codes():
    values = KINDS["string"].values(["a", "b"])
    values.codes = np.array([0, -1, 1, 1], np.int32)
    test = NullPredicate(SCHEMA.leaves[1], 1)
    assert evaluate(test, {1: values}, 4).tolist() == [False, True, False, False]
    values.validity = np.array([1, 1, 0, 1], np.uint8)
    assert evaluate(test, {1: values}, 4).tolist() == [False, True, True, False]
    assert evaluate(replace(test, negated=True), {1: values}, 4).tolist() == [True, False, False, True]


def test_contains_over_dictionary_codes():
    leaf = replace(SCHEMA.leaves[1], max_repetition_level=1, max_definition_level=2)
    element = replace(BOUND[2], leaf=leaf, text="")
    values = KINDS["string"].values(["a", "z"])
    values.codes = np.array([1, 0, -1, 1], np.int32)
    values.list_offsets = np.array([0, 2, 2, 3, 4, 4], np.int32)
    values.levels = {1: np.array([1, 1, 1, 1, 0], np.uint8)}
    for negated, expected in ((False, [1, 0, 0, 0, 0]), (True, [0, 1, 1, 1, 0])):
        assert evaluate(ContainsPredicate(leaf, 1, element, negated), {1: values}, 5).astype(int).tolist() == expected


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "i2"])
def test_offsets_of_any_integer_dtype(dtype):
    values = ColumnVector(np.frombuffer(b"abbccc", np.uint8), np.array([0, 1, 3, 6], dtype))
    assert evaluate_predicate(bind(col("string") == "bb", SCHEMA), values).tolist() == [False, True, False]


def test_strided_unaligned_and_narrow_values():
    test = bind(col("int64") > 2, SCHEMA)
    raw = np.zeros(8 * 4 + 1, np.uint8)
    unaligned = raw[1:].view("i8")
    unaligned[:] = [1, 3, 5, 2]
    for values in (np.array([1, 0, 3, 0, 5, 0, 2])[::2], unaligned, np.array([1, 3, 5, 2], "i1")):
        assert evaluate_predicate(test, ColumnVector(values)).tolist() == [False, True, True, False]
