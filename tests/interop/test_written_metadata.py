"""pyarrow and duckdb read footers, page indexes and Bloom filters as numparq means them."""

from __future__ import annotations

import decimal
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.format.bloom_filter import hash_values
from numparq.format.logical_type import LogicalType
from numparq.format.schema import Leaf
from numparq.kernels.enums import BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64
from support.files.bloom_filters import read_bloom_filters

ABSENT = 120_000
ROWS = 5_000


def leaf(physical, length=None, logical=None):
    return Leaf(0, 0, ("a",), physical, length, logical, 1, 0)


def texts(numbers):
    """Return strings of numbers as their data, starts and ends."""
    parts = [b"text of %d" % number for number in numbers]
    ends = np.cumsum([len(part) for part in parts])
    return np.frombuffer(b"".join(parts), np.uint8), np.concatenate([[0], ends[:-1]]), ends


# --- Bloom filters ------------------------------------------------------------------------------------------------

HASHES = {
    "int32": lambda numbers: hash_values(leaf(INT32), numbers.astype("i4")),
    "int64": lambda numbers: hash_values(leaf(INT64), numbers.astype("i8")),
    "float32": lambda numbers: hash_values(leaf(FLOAT), numbers.astype("f4")),
    "float64": lambda numbers: hash_values(leaf(DOUBLE), numbers.astype("f8")),
    "text": lambda numbers: hash_values(leaf(BYTE_ARRAY), *texts(numbers)),
    "fixed": lambda numbers: hash_values(leaf(FIXED_LEN_BYTE_ARRAY, 8), numbers.astype(">i8").view("u1")),
}
COLUMNS = {
    **{dtype: lambda numbers, dtype=dtype: numbers.astype(dtype) for dtype in ("int32", "int64", "float32", "float64")},
    "text": lambda numbers: pd.array([f"text of {number}" for number in numbers], "str"),
    "fixed": lambda numbers: pd.array([int(number).to_bytes(8) for number in numbers], pd.ArrowDtype(pa.binary(8))),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("fpp", "count", "with_ndv"),
    # Counts that fill the filter's size, so that the rate is near the requested one. In small filters the spread over
    # blocks changes the rate by several percent, more so for low rates: hence many blocks.
    [(0.1, 10_900, False), (0.01, 6_200, False), (0.01, 6_200, True), (0.001, 124_000, False), (0.05, 1_000, True)],
)
def test_bloom_filter_false_positive_rate(tmp_path, fpp, count, with_ndv):
    """No false negatives, and a measured rate of false positives of at most 1.1 times the requested one."""
    path = tmp_path / "a.parquet"
    numbers = np.random.default_rng(count).permutation(count)
    frame = pd.DataFrame({name: make(numbers) for name, make in COLUMNS.items()})
    options = {"fpp": fpp, "ndv": count} if with_ndv else {"fpp": fpp}
    numparq.to_parquet(frame, path, index=False, bloom_filter_options=dict.fromkeys(COLUMNS, options))
    filters = read_bloom_filters(path)
    assert set(filters) == set(COLUMNS)
    absent = np.arange(count, count + max(ABSENT, int(2000 / fpp)))  # 2,000 hits are no more than 10 % off
    for name, hashes in HASHES.items():
        assert filters[name].might_contain(hashes(numbers)).all(), name
        assert filters[name].might_contain(hashes(absent)).mean() <= 1.1 * fpp, name


def test_duckdb_probes_bloom_filters(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    numbers = np.arange(0, 3000, 3)
    frame = pd.DataFrame({name: make(numbers) for name, make in COLUMNS.items()})
    numparq.to_parquet(frame, path, index=False, bloom_filter_options=dict.fromkeys(COLUMNS, True))
    literals = {
        name: (lambda number, kind=kind: f"{number}::{kind}")
        for name, kind in {"int32": "integer", "int64": "bigint", "float32": "float", "float64": "double"}.items()
    }
    literals["text"] = lambda number: f"'text of {number}'"
    filters = read_bloom_filters(path)
    with duckdb.connect() as connection:
        for name, literal in literals.items():
            for number in (0, 3, 1500, 2997, 1, 2, 1501, 2998, 10**6):
                query = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', '{name}', {literal(number)})"
                excluded = connection.sql(query).fetchall()[0][0]
                assert excluded != filters[name].might_contain(HASHES[name](np.array([number])))[0], (name, number)
                got = connection.sql(f"select count(*) from '{path}' where \"{name}\" = {literal(number)}")
                assert got.fetchall() == [(int(number in numbers),)]


@pytest.mark.parametrize("use_dictionary", [False, True])
@pytest.mark.parametrize(("dtype", "bits"), [("f2", "u2"), ("f4", "u4"), ("f8", "u8")])
def test_bloom_filters_match_zeros_and_nans_by_value(tmp_path, dtype, bits, use_dictionary):
    """Readers probe with equal values: the zero of the other sign, and a NaN with other bits."""
    nan = np.array([np.nan], dtype).view(bits) | 1
    values = {"a": np.array([-0.0, nan.view(dtype)[0], 2] * 9, dtype), "b": np.array([1, 2, 3] * 9, dtype)}
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(pa.array(each)) for name, each in values.items()})
    numparq.to_parquet(
        frame, tmp_path / "a", use_dictionary=use_dictionary, bloom_filter_options={"a": True, "b": True}
    )
    filters = read_bloom_filters(tmp_path / "a")
    about = {"f2": leaf(FIXED_LEN_BYTE_ARRAY, 2, LogicalType("FLOAT16")), "f4": leaf(FLOAT), "f8": leaf(DOUBLE)}[dtype]
    assert filters["a"].might_contain(hash_values(about, np.array([0.0, -0.0, np.nan, 2], dtype))).all()
    assert not filters["b"].might_contain(hash_values(about, np.array([0.0, -0.0, np.nan], dtype))).any()


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_bloom_filters_of_other_writers(tmp_path, writer):
    path = tmp_path / "a.parquet"
    numbers = np.arange(4000)
    table = pa.table({"int64": numbers, "float64": numbers.astype("f8"), "text": [f"text of {n}" for n in numbers]})
    if writer == "pyarrow":
        options = {name: {"ndv": 4000, "fpp": 0.01} for name in table.column_names}
        try:
            pq.write_table(table, path, bloom_filter_options=options)
        except TypeError:
            pytest.skip("this pyarrow writes no Bloom filters")
    else:
        duckdb = pytest.importorskip("duckdb")
        repeated = pa.concat_tables([table] * 20)  # duckdb writes filters for dictionary-encoded columns only
        with duckdb.connect() as connection:
            connection.register("repeated", repeated)
            connection.sql(f"copy repeated to '{path}' (format parquet, dictionary_size_limit 100000)")
    filters = read_bloom_filters(path)
    assert set(filters) == set(table.column_names)
    for name, filter_ in filters.items():
        assert filter_.might_contain(HASHES[name](numbers)).all()
        assert filter_.might_contain(HASHES[name](np.arange(10**6, 10**6 + ABSENT))).mean() < 0.02


# --- statistics and indexes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "n": np.arange(ROWS),
            "f": draw.normal(size=ROWS),
            "u": draw.integers(0, 2**64, ROWS, "u8", endpoint=False),
            "s": pd.array([None if row % 7 == 0 else f"key {row:05}" for row in range(ROWS)], "str"),
            "t": pd.date_range("2020-01-01", periods=ROWS, freq="h", unit="us"),
            "d": pd.array(
                [decimal.Decimal(int(unit)).scaleb(-2) for unit in draw.integers(-(10**6), 10**6, ROWS)],
                pd.ArrowDtype(pa.decimal128(20, 2)),
            ),
            "l": pd.array([[row, row + 1] for row in range(ROWS)], pd.ArrowDtype(pa.list_(pa.int64()))),
        }
    )


def in_memory(frame, **options):
    return io.BytesIO(numparq.to_parquet(frame, index=False, row_group_size=2000, max_rows_per_page=300, **options))


def test_pyarrow_reads_statistics(frame):
    file = pq.ParquetFile(in_memory(frame, sorting_columns=["n", ("s", True, True)]))
    assert file.metadata.format_version == "1.0"
    assert file.metadata.created_by.startswith("numparq version ")
    for group in range(file.num_row_groups):
        about = file.metadata.row_group(group)
        part = frame.iloc[2000 * group : 2000 * (group + 1)]
        assert [(each.column_index, each.descending, each.nulls_first) for each in about.sorting_columns] == [
            (0, False, False),
            (3, True, True),
        ]
        for index, name in enumerate(frame.columns[:-1]):
            chunk = about.column(index)
            values = part[name].dropna()
            assert (chunk.statistics.min, chunk.statistics.max) == (values.min(), values.max()), name
            assert chunk.statistics.null_count == part[name].isna().sum()
            assert chunk.statistics.num_values == len(values)
            assert chunk.has_column_index
            assert chunk.has_offset_index
        chunk = about.column(6)
        assert chunk.num_values == 2 * len(part)
        assert (chunk.statistics.min, chunk.statistics.max) == (part.index[0], part.index[-1] + 1)
        assert about.total_byte_size == sum(about.column(index).total_uncompressed_size for index in range(7))


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("n") == 2345,
        pc.field("n") > 4990,
        (pc.field("n") < 10) | (pc.field("n") == 4999),
        pc.field("f") > 3,
        pc.field("u") >= pa.scalar(2**63, pa.uint64()),
        pc.field("s") == "key 01234",
        pc.field("s").is_null(),
        pc.field("t") < pd.Timestamp("2020-01-02"),
        pc.field("d") > decimal.Decimal("9990.00"),
    ],
    ids=str,
)
def test_pyarrow_filters(frame, condition):
    file = in_memory(frame)
    whole = pq.read_table(file)
    got = pq.read_table(file, filters=condition)
    assert 0 < len(got) < ROWS
    assert got.equals(whole.filter(condition))


def test_duckdb_reads_statistics(frame, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    path.write_bytes(in_memory(frame, bloom_filter_options={"s": True}).getvalue())
    with duckdb.connect() as connection:
        rows = connection.sql(
            "select path_in_schema, stats_min_value, stats_max_value, stats_null_count, bloom_filter_offset "
            f"from parquet_metadata('{path}') where row_group_id = 1"
        ).fetchall()
    about = {name: rest for name, *rest in rows}
    part = frame.iloc[2000:4000]
    assert about["n"] == ["2000", "3999", 0, None]
    assert about["u"][:3] == [str(part["u"].min()), str(part["u"].max()), 0]
    assert about["s"][:3] == [part["s"].min(), part["s"].max(), part["s"].isna().sum()]
    assert about["s"][3] > 0
    assert about["d"][:3] == [str(part["d"].min()), str(part["d"].max()), 0]
