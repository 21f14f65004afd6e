"""Bloom filters: hashes, bits and sizes; equal to those of pyarrow and DuckDB."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from numparq.errors import SchemaError
from numparq.format import bloom_filter
from numparq.format.bloom_filter import MAX_BYTES, BloomFilter, false_positive_rate, hash_values, optimal_num_bytes
from numparq.format.schema import Leaf
from numparq.format.thrift.encode import encode_struct
from support.files.bloom_filters import read_bloom_filters, read_header
from support.kernels.engines import ENGINES
from support.oracles import statistics as oracle

# In plain Python, NumPy's integers warn where compiled ones wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

RATES = [(6, 0.1), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41, 0.00001)]  # bits per value, false positive rate


def leaf(physical, length=None):
    return Leaf(0, 0, ("a",), physical, length, None, 1, 0)


def numbers(first, count):
    return hash_values(leaf(2), np.arange(first, first + count, dtype=np.int64))


@pytest.fixture(params=ENGINES, ids=repr)
def engine(request, monkeypatch):
    monkeypatch.setattr(bloom_filter, "statistics_kernels", request.param)
    return request.param


@pytest.mark.parametrize(("physical", "dtype"), [(1, "i4"), (2, "i8"), (4, "f4"), (5, "f8")])
def test_hashes_of_numbers(engine, physical, dtype):
    values = np.random.default_rng(0).standard_normal(engine.size(500, 9)).astype(dtype)
    assert hash_values(leaf(physical), values).tolist() == [xxhash.xxh64_intdigest(value.tobytes()) for value in values]
    assert len(hash_values(leaf(physical), values[:0])) == 0


def test_hashes_of_every_length(engine):
    rng = np.random.default_rng(1)
    lengths = range(0, 140, 1 if engine.name == "compiled" else 7)
    values = [rng.bytes(length) for length in lengths]
    ends = np.cumsum(lengths, dtype=np.int64)
    data = np.frombuffer(b"".join(values), np.uint8)
    expected = [xxhash.xxh64_intdigest(value) for value in values]
    assert hash_values(leaf(6), data, ends - np.array(lengths), ends).tolist() == expected
    for length in (1, 2, 3, 5, 12, 16, 31, 32, 33, 64):
        data = np.frombuffer(rng.bytes(3 * length), np.uint8)
        expected = [
            xxhash.xxh64_intdigest(data[place : place + length].tobytes()) for place in range(0, 3 * length, length)
        ]
        assert hash_values(leaf(7, length), data).tolist() == expected
    assert len(hash_values(leaf(3), np.zeros(24, np.uint8))) == 2


def test_unhashable_columns_are_refused():
    with pytest.raises(SchemaError, match="BOOLEAN"):
        hash_values(leaf(0), np.zeros(3, np.uint8))
    with pytest.raises(TypeError, match="starts"):
        hash_values(leaf(6), np.zeros(3, np.uint8))


@given(
    hashes=st.lists(st.integers(0, (1 << 64) - 1), max_size=20),
    others=st.lists(st.integers(0, (1 << 64) - 1), max_size=20),
    num_blocks=st.integers(1, 9),
)
def test_insert_and_probe_bits(hashes, others, num_blocks):
    for each in ENGINES:
        bloom = BloomFilter(np.zeros(32 * num_blocks, np.uint8))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bloom_filter, "statistics_kernels", each)
            bloom.insert(np.array(hashes, np.uint64))
            assert bloom.to_bytes() == oracle.bloom_filter(hashes, num_blocks)
            probes = np.array(hashes + others, np.uint64)
            assert bloom.might_contain(probes).tolist() == [
                oracle.bloom_may_contain(bloom.to_bytes(), value) for value in probes.tolist()
            ]
            assert all(bloom.might_contain(value) is True for value in hashes)


def test_bitset_must_be_whole_blocks():
    for size in (0, 31, 33):
        with pytest.raises(ValueError, match="32 bytes"):
            BloomFilter(np.zeros(size, np.uint8))


@pytest.mark.parametrize(("bits", "rate"), RATES)
def test_specification_false_positive_table(bits, rate):
    assert false_positive_rate(8 * MAX_BYTES / bits, MAX_BYTES) == pytest.approx(rate, rel=0.02)


def test_specification_example():
    rates = [false_positive_rate(count, 1024 * 32) for count in (26_214, 52_428, 13_107)]
    assert rates == pytest.approx([0.0126, 0.18, 0.0004], rel=0.06)
    assert false_positive_rate(0, 32) == 0
    assert false_positive_rate(1e9, 32) == 1


def test_optimal_num_bytes():
    assert optimal_num_bytes(0) == optimal_num_bytes(1, 0.5) == 32
    assert optimal_num_bytes(1 << 40) == MAX_BYTES
    assert optimal_num_bytes(1 << 40, max_bytes=1000) == 512
    for count in (10, 1000, 123_456, 10_000_000):
        for _, rate in RATES:
            size = optimal_num_bytes(count, rate)
            assert false_positive_rate(count, size) <= rate
            assert size == 32 or false_positive_rate(count, size / 2) > rate
    for fpp in (0, 1, -1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            optimal_num_bytes(10, fpp)
    with pytest.raises(ValueError, match="at least 32"):
        optimal_num_bytes(10, 0.1, 16)


@pytest.mark.parametrize(("fpp", "count"), [(0.1, 10_900), (0.01, 6_200), (0.001, 15_500), (0.01, 200)])
def test_measured_false_positive_rate(fpp, count):
    """Counts that just fit a power of two, so that little is rounded up."""
    inserted = numbers(0, count)
    bloom = BloomFilter.build(inserted, fpp)
    assert bloom.might_contain(inserted).all()
    measured = bloom.might_contain(numbers(1 << 40, 1_000_000)).mean()
    assert measured <= 1.1 * fpp
    assert measured == pytest.approx(false_positive_rate(count, len(bloom.bitset)), rel=0.15)


def test_size_follows_the_distinct_values():
    inserted = np.tile(numbers(0, 5_000), 100)
    bloom = BloomFilter.build(inserted, 0.01)
    explicit = BloomFilter.build(inserted[:5_000], 0.01, num_distinct=5_000)
    assert bloom.to_bytes() == explicit.to_bytes()
    assert bloom.estimate_distinct() == pytest.approx(5_000, rel=0.02)
    assert len(BloomFilter.build(inserted, 0.01, num_distinct=100_000).bitset) == optimal_num_bytes(100_000, 0.01)
    assert len(BloomFilter.build(inserted, 0.01, max_bytes=1024).bitset) == 1024
    assert len(BloomFilter.build(np.empty(0, np.uint64)).bitset) == 32
    assert "8192 bytes, about 49" in repr(bloom)


def test_header_roundtrip():
    bloom = BloomFilter.build(numbers(0, 100))
    assert read_header(encode_struct("BloomFilterHeader", bloom.header))[0] == bloom.header


def test_equal_to_pyarrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"n": list(range(3000)), "s": [f"value {i}" for i in range(3000)]})
    options = {name: {"ndv": 3000, "fpp": 0.01} for name in table.column_names}
    try:
        pq.write_table(table, tmp_path / "a.parquet", bloom_filter_options=options)
    except TypeError:
        pytest.skip("this pyarrow writes no Bloom filters")
    found = read_bloom_filters(tmp_path / "a.parquet")
    text = np.array([xxhash.xxh64_intdigest(b"value %d" % i) for i in range(3000)], np.uint64)
    for name, hashes in (("n", numbers(0, 3000)), ("s", text)):
        mine = BloomFilter(np.zeros(len(found[name].bitset), np.uint8))
        mine.insert(hashes)
        assert mine.to_bytes() == found[name].to_bytes()


def test_duckdb_filters_are_read(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    duckdb.sql(
        "copy (select (i % 500)::bigint n, 'v' || (i % 500) s, (i % 500)::double f from range(20000) t(i)) "
        f"to '{path}' (format parquet, bloom_filter_false_positive_ratio 0.01)"
    )
    found = read_bloom_filters(path)
    inserted = {
        "n": numbers(0, 500),
        "s": [xxhash.xxh64_intdigest(b"v%d" % i) for i in range(500)],
        "f": [xxhash.xxh64_intdigest(struct.pack("<d", i)) for i in range(500)],
    }
    assert set(found) == set(inserted)
    for name, hashes in inserted.items():
        assert found[name].might_contain(np.array(hashes, np.uint64)).all()
        assert found[name].might_contain(numbers(1 << 40, 100_000)).mean() < 0.011


@given(values=st.lists(st.binary(max_size=70), max_size=9), width=st.integers(1, 40), data=st.binary(max_size=200))
def test_any_hashes(values, width, data):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    starts = ends - np.array([len(value) for value in values], np.int64)
    data = data[: len(data) // width * width]
    fixed = [data[place : place + width] for place in range(0, len(data), width)]
    for engine in ENGINES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bloom_filter, "statistics_kernels", engine)
            found = bloom_filter.hash_values(leaf(6), np.frombuffer(b"".join(values), np.uint8), starts, ends)
            assert found.tolist() == [xxhash.xxh64_intdigest(value) for value in values]
            found = bloom_filter.hash_values(leaf(7, width), np.frombuffer(data, np.uint8))
            assert found.tolist() == [xxhash.xxh64_intdigest(value) for value in fixed]
