"""Runtime filters: binding, arrival and Bloom filter membership."""

from __future__ import annotations

import io
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.errors import SchemaError
from numparq.expr.bind import bind, bind_bloom_filter
from numparq.expr.bound import BloomPredicate, bound_predicates, filter_leaves
from numparq.expr.column import col
from numparq.expr.evaluate import evaluate, evaluate_predicate
from numparq.expr.expression import Constant
from numparq.expr.runtime_filter import RuntimeFilter
from numparq.format.bloom_filter import BloomFilter, hash_values
from numparq.prune.bloom_filters import bloom_hashes
from numparq.prune.statistics import ContainerStatistics
from support.filters.leaf_kinds import KINDS, StubFlatSchema
from support.oracles.match_one import may_match, must_match
from support.oracles.pruning import may_contain

UNPROBED_KINDS = {"int8", "uint16", "int96", "bool", "decimal bytes"}
FULL = np.full(32, 0xFF, np.uint8)


def schema_of(name):
    return StubFlatSchema([replace(KINDS[name].leaf, index=0, column=0, path=(name,))])


def filter_of(name, items):
    kind = KINDS[name]
    plain = [kind.plain(item) for item in items]
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    starts = ends - np.array([len(value) for value in plain], np.int64)
    return BloomFilter.build(hash_values(kind.leaf, np.frombuffer(b"".join(plain), np.uint8), starts, ends), fpp=0.001)


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def bound_bloom(name, bloom_filter):
    test = bind_bloom_filter(name, bloom_filter, schema_of(name))
    assert isinstance(test, BloomPredicate)
    return test


# --- Bloom filter membership ------------------------------------------------------------------------------------------


@pytest.mark.quick_cases(9)
@pytest.mark.parametrize("name", sorted(KINDS))
@given(data=st.data())
def test_values_in_the_bloom_filter_pass(name, data):
    kind = KINDS[name]
    members = data.draw(st.lists(kind.stored, max_size=4), "in the filter")
    items = data.draw(st.lists(st.one_of(kind.stored, *([st.sampled_from(members)] if members else [])), max_size=8))
    validity = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    bloom_filter = BloomFilter(FULL[:] * 0) if name in UNPROBED_KINDS else filter_of(name, members)
    test = bound_bloom(name, bloom_filter)
    found = evaluate_predicate(test, kind.values(items, validity))
    for item, there, passes in zip(items, validity, found.tolist(), strict=True):
        if not there:
            assert not passes
        elif name in UNPROBED_KINDS or is_nan(item) or kind.worth(item) in [kind.worth(one) for one in members]:
            assert passes
    if name not in UNPROBED_KINDS:
        hashes = hash_values(kind.leaf, *stored_of(kind, items))
        may = bloom_filter.might_contain(hashes)
        zeros = [kind.worth(item) == 0 and name in ("float", "double", "float16") for item in items]
        exact = [not is_nan(item) and not zero for item, zero in zip(items, zeros, strict=True)]
        assert found[exact].tolist() == (may & np.array(validity, bool))[exact].tolist()
    codes = data.draw(st.lists(st.integers(-1, len(items) - 1), max_size=9))
    values = kind.values(items)
    values.codes = np.array(codes, np.int32)
    entries = evaluate_predicate(test, kind.values(items)).tolist()
    assert evaluate(test, {0: values}, len(codes)).tolist() == [code >= 0 and entries[code] for code in codes]


def stored_of(kind, items):
    plain = [kind.plain(item) for item in items]
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    return np.frombuffer(b"".join(plain), np.uint8), ends - np.array([len(v) for v in plain], np.int64), ends


def test_signed_zeros_and_nans_in_bloom_filters():
    for name, other in (("double", 0.0), ("double", -0.0), ("float", -0.0), ("float16", 0.0)):
        test = bound_bloom(name, filter_of(name, [other, 3.0]))
        found = evaluate_predicate(test, KINDS[name].values([0.0, -0.0, math.nan, 3.0, 5.0]))
        assert found.tolist() == [True, True, True, True, False]
        test = bound_bloom(name, filter_of(name, [3.0]))
        found = evaluate_predicate(test, KINDS[name].values([0.0, -0.0, math.nan, 3.0]))
        assert found.tolist() == [False, False, True, True]


def test_many_values_against_a_bloom_filter():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10**6, 100_000)
    members = np.arange(0, 10**6, 7)
    schema = schema_of("int64")
    test = bind_bloom_filter("int64", BloomFilter.build(hash_values(schema.leaves[0], members)), schema)
    column = KINDS["int64"].values([])
    column.values = values
    validity = rng.random(len(values)) < 0.9
    column.validity = validity.view(np.uint8)
    found = evaluate_predicate(test, column)
    assert found[validity & (values % 7 == 0)].all()
    assert not found[~validity].any()
    assert found[values % 7 != 0].mean() < 0.05
    texts = [b"%d" % value for value in values]
    schema = schema_of("string")
    strings = KINDS["string"].values([])
    strings.values, strings.offsets = np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])
    bloom_filter = filter_of("string", [str(number) for number in range(0, 10**6, 700)])
    found = evaluate_predicate(bind_bloom_filter("string", bloom_filter, schema), strings)
    assert found[values % 700 == 0].all()
    assert found[values % 700 != 0].mean() < 0.05


def test_values_of_another_dtype_pass_the_bloom_filter():
    column = KINDS["int32"].values([1, 2])
    column.values = column.values.astype(np.int64)
    assert evaluate_predicate(bound_bloom("int32", BloomFilter(FULL * 0)), column).all()


def test_bloom_predicate_is_not_pruned_by_bounds():
    test = bound_bloom("int32", filter_of("int32", [5]))
    low, high = KINDS["int32"].plain(1), KINDS["int32"].plain(2)
    assert may_match(test, {0: ContainerStatistics(10, low, high, 0)})
    assert may_match(test, {})
    assert not must_match(test, {0: ContainerStatistics(10, low, high, 0)})
    assert not may_match(test, {0: ContainerStatistics(10, null_count=10)})
    assert not may_match(test, {0: ContainerStatistics(10, all_null=True)})
    assert bloom_hashes(test) is None
    assert may_contain(test, {0: BloomFilter(FULL * 0)})
    assert list(bound_predicates(test)) == [test]
    assert [leaf.name for leaf in filter_leaves(test)] == ["int32"]
    assert "Bloom" in repr(test)


# --- binding and arrival ----------------------------------------------------------------------------------------------


def rows(runtime_filter, name, items):
    bound = runtime_filter._bind(schema_of(name))
    return evaluate(
        bound, {0: KINDS[name].values([item or 0 for item in items], [item is not None for item in items])}, len(items)
    ).tolist()


def test_rows_that_pass_each_form():
    items = [None, 1, 2, 3, 4]
    assert rows(RuntimeFilter("int64", [2, None, 4, 2.5]), "int64", items) == [False, False, True, False, True]
    assert rows(RuntimeFilter("int64", low=2), "int64", items) == [False, False, True, True, True]
    assert rows(RuntimeFilter("int64", high=2), "int64", items) == [False, True, True, False, False]
    assert rows(RuntimeFilter("int64", low=2, high=3), "int64", items) == [False, False, True, True, False]
    assert rows(RuntimeFilter("int64", [2, 4], high=3), "int64", items) == [False, False, True, False, False]
    combined = RuntimeFilter("int64", low=3, bloom_filter=filter_of("int64", [2, 4]))
    assert rows(combined, "int64", items) == [False, False, False, False, True]
    assert rows(RuntimeFilter("int64", low=-(2**70)), "int64", items) == [False, True, True, True, True]
    everything = RuntimeFilter("int64", bloom_filter=BloomFilter(FULL))
    assert rows(everything, "int64", items) == [False, True, True, True, True]


def test_empty_values_pass_no_row():
    for values in ([], [None, pd.NaT], ["x"][:0]):
        assert RuntimeFilter("int64", values)._bind(schema_of("int64")) == Constant(False)


@given(
    numbers=st.lists(st.one_of(st.integers(-(2**65), 2**65), st.integers(-9, 9)), max_size=30),
    name=st.sampled_from(["int32", "int64", "int8", "uint16", "uint32", "uint64", "double"]),
)
def test_vectorized_binding_of_integers_matches_scalar(numbers, name):
    check_many(name, numbers, Decimal("0.3"))


@given(
    numbers=st.lists(st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 5e-324])), max_size=30),
    typed=st.booleans(),
    name=st.sampled_from(["double", "float", "int64"]),
)
def test_vectorized_binding_of_floats_matches_scalar(numbers, typed, name):
    check_many(name, [np.float64(number) for number in numbers] if typed else numbers, Decimal("0.3"))


def check_many(name, literals, equals_nothing):
    """Compare with scalar binding, which a literal of another type forces."""
    vectorized = bind(col(name).isin(literals), schema_of(name))
    scalar = bind(col(name).isin([*literals, equals_nothing]), schema_of(name))
    assert getattr(vectorized, "ranges", vectorized) == getattr(scalar, "ranges", scalar)


def test_values_of_numpy_pandas_and_iterators():
    items = [None, 1, 2, 3, 4]
    for values in (np.array([2, 3]), pd.Series([2, 3]), pd.Index([2, 3], dtype="Int64"), {2, 3}, iter([2, 3])):
        assert rows(RuntimeFilter("int64", values), "int64", items) == [False, False, True, True, False]


def test_filter_arrives_only_once():
    late = RuntimeFilter("int64")
    assert not late.has_arrived
    assert late._bind(schema_of("int64")) is None
    assert "not yet arrived" in repr(late)
    with pytest.raises(ValueError, match="ranges or bloom_filter"):
        late.arrive()
    with pytest.raises(TypeError, match="BloomFilter"):
        late.arrive(bloom_filter=b"")
    with pytest.raises(TypeError, match="list of values"):
        late.arrive("abc")
    assert not late.has_arrived
    late.arrive(low=3)
    assert late.has_arrived
    assert rows(late, "int64", [1, 3]) == [False, True]
    with pytest.raises(ValueError, match="already arrived"):
        late.arrive(low=3)
    with pytest.raises(ValueError, match="already arrived"):
        RuntimeFilter("x", [1]).arrive(values=[2])


def test_ranges_are_half_open_and_merge():
    """Ranges are half-open; overlapping ranges merge into one set of keys."""
    runtime_filter = RuntimeFilter("int64", ranges=[(1, 3), (7, 8), (2, 5), (9, 9)])
    assert [at for at, passes in enumerate(rows(runtime_filter, "int64", list(range(10)))) if passes] == [1, 2, 3, 4, 7]
    assert runtime_filter._bind(schema_of("int64")).ranges == ((1, 5), (7, 8))
    assert rows(RuntimeFilter("int64", ranges=[]), "int64", [0, 1]) == [False, False]
    assert rows(RuntimeFilter("int64", [1, 7], ranges=[(0, 7)]), "int64", [0, 1, 7]) == [False, True, False]


def test_first_of_many_threads_arrives():
    late, schema = RuntimeFilter("int64"), schema_of("int64")

    def arrive_with(number):
        try:
            late.arrive(values=[number])
        except ValueError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        (first,) = [number for number in pool.map(arrive_with, range(64)) if number is not None]
        bounds = list(pool.map(lambda _: late._bind(schema), range(64)))
    assert all(bound is bounds[0] for bound in bounds)
    assert bounds[0].ranges == ((first, first + 1),)


def test_binding_is_reused_for_the_same_schema_only():
    runtime_filter = RuntimeFilter("x", [3])
    first, second = (StubFlatSchema([replace(KINDS[name].leaf, path=("x",))]) for name in ("int64", "double"))
    bound = runtime_filter._bind(first)
    assert runtime_filter._bind(first) is bound
    assert runtime_filter._bind(second).domain.is_float
    assert runtime_filter._bind(first) == bound


@pytest.mark.parametrize(
    ("one", "other", "conditions", "passing"),
    [
        (pa.duration("ms"), pa.duration("us"), {"values": [pd.Timedelta(milliseconds=3)]}, ([3], [3000])),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC"), {"low": "1970-01-01 00:30"}, ([3, 3000], [])),
    ],
)
def test_binding_follows_the_arrow_type_of_the_file(one, other, conditions, passing):
    runtime_filter = RuntimeFilter("x", **conditions)
    for arrow_type, passing_values in zip((one, other) * 2, passing * 2, strict=True):
        sink = io.BytesIO()
        pq.write_table(pa.table({"x": pa.array([3, 3000], pa.int64()).cast(arrow_type)}), sink)
        frame = numparq.read_parquet(sink.getvalue(), runtime_filters=[runtime_filter], include=["row_number"])
        assert frame["row_number"].tolist() == [[3, 3000].index(value) for value in passing_values]


def test_invalid_filters_are_refused():
    with pytest.raises(SchemaError, match="no column 'y'"):
        RuntimeFilter("y", bloom_filter=BloomFilter(FULL))._bind(schema_of("int64"))
    with pytest.raises(SchemaError, match="'three' cannot be compared"):
        RuntimeFilter("int64", ["three"])._bind(schema_of("int64"))
    with pytest.raises(TypeError, match="must be a string"):
        RuntimeFilter(3)
    with pytest.raises(TypeError, match="is_null"):
        RuntimeFilter("x", low=pd.NaT)


def test_repr_of_runtime_filters():
    assert numparq.RuntimeFilter is RuntimeFilter
    assert repr(RuntimeFilter("x", low=3)) == "<RuntimeFilter (col('x') >= 3)>"
    assert repr(RuntimeFilter("x", bloom_filter=BloomFilter(FULL))).startswith("<RuntimeFilter col('x') in <Bloom")
    assert repr(RuntimeFilter("x", [1], bloom_filter=BloomFilter(FULL))).count(" & ") == 1


@pytest.mark.parametrize("span", [pd.Timedelta(3), np.timedelta64(3, "ns")])
def test_timedelta_against_integer_column_is_refused(span):
    for filter_ in (RuntimeFilter("int64", [span]), RuntimeFilter("int64", low=span)):
        with pytest.raises(SchemaError, match="it is not a number"):
            filter_._bind(schema_of("int64"))
