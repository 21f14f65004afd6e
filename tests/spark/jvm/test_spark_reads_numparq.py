"""Spark and parquet-java read files of numparq and skip by their indexes; a separate stage of .ci/run."""

from __future__ import annotations

import datetime
import decimal
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from support.data import write_matrix as matrix

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Types missing in Spark 4: FLOAT16, TIME in milliseconds, nanoseconds, decimals above 38 digits.
WITHOUT = {"float16", "time-ms", "timestamp-ns", "decimal-60-5"}
# Spark has no brotli codec.
CASES = [case for case in matrix.all_cases() if case.kind not in WITHOUT and case.codec != "brotli"]
FILES = matrix.group_by_file(dict.fromkeys([*matrix.covering_subset(CASES, 2), *matrix.full_columns_only(CASES)]))
ROWS = 600


# --- the matrix -------------------------------------------------------------------------------------------------------


def readable(case, vectorized):
    """Whether Spark reads the case: its vectorized reader lacks BYTE_STREAM_SPLIT of unsigned integers."""
    return not (vectorized and case.kind in ("uint32", "uint64") and case.encoding == "BYTE_STREAM_SPLIT")


@pytest.mark.parametrize("file", FILES, ids=lambda file: "-".join(str(part) for part in file))
def test_write_matrix(spark, tmp_path, file):
    path = str(tmp_path / "a.parquet")
    table = matrix.write(FILES[file], path)[2]
    for vectorized in (True, False):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
        spark.conf.set("spark.sql.parquet.enableNestedColumnVectorizedReader", vectorized)
        names = [case.column for case in FILES[file] if readable(case, vectorized)]
        got = spark.read.parquet(path).select(*(f"`{name}`" for name in names)).toArrow()
        assert matrix.differences(got, table.select(names)) == {}, vectorized


# --- filters ----------------------------------------------------------------------------------------------------------

LONG = "key of more than 64 bytes, of which readers get no more than the first: "
MOMENT = datetime.datetime(2020, 1, 1)


def scaled(unit):
    return decimal.Decimal(unit).scaleb(-2)


# Arrow type, value by row number, and SQL literals to compare with.
COLUMNS = {
    "n": (pa.int32(), int, ["17", "-1", "2147483647", "599"]),
    "u": (pa.uint32(), lambda row: row * 7_000_000, ["7000000", "4193000000", "2147483648"]),
    "l": (pa.int64(), lambda row: (row - 300) * 10**16, ["0", "10000000000000000", "7"]),
    "f": (pa.float64(), lambda row: [-7.0, -0.25, 1.5, float(row)][row % 4], ["-7D", "1.5D", "598D", "599D"]),
    "s": (pa.string(), lambda row: f"{LONG}{row // 10:03}", [f"'{LONG}017'", f"'{LONG}'", f"'{LONG}0171'", "'l'"]),
    "h": (pa.string(), lambda row: chr(0x10FFFF) * (row // 10), ["'a'", "''", f"'{chr(0x10FFFF) * 20}'"]),
    "b": (pa.binary(), lambda row: bytes([row % 256]) * 70, ["X'7F'", "X'80'", f"X'{'80' * 70}'", f"X'{'FF' * 70}'"]),
    "d7": (pa.decimal128(7, 2), lambda row: scaled((row - 300) * 33), ["0.00", "-99.00", "0.33", "1.00"]),
    "d18": (pa.decimal128(18, 2), lambda row: scaled((row - 300) * 10**14), ["0.00", "-1000000000000.00", "5.00"]),
    "d38": (pa.decimal128(38, 2), lambda row: scaled((row - 300) * 10**30), ["0.00", f"-1{'0' * 28}.00", "5.00"]),
    "t": (
        pa.timestamp("us"),
        lambda row: MOMENT + datetime.timedelta(hours=row - 300),
        ["timestamp_ntz'2020-01-01 05:00:00'", "timestamp_ntz'2019-12-31 23:30:00'"],
    ),
    "tz": (
        pa.timestamp("us", "UTC"),
        lambda row: MOMENT + datetime.timedelta(hours=row - 300),
        ["timestamp'2020-01-01 05:00:00'", "timestamp'2019-12-31 23:30:00'"],
    ),
    "day": (
        pa.date32(),
        lambda row: datetime.date(1970, 1, 1) + datetime.timedelta(days=row - 300),
        ["date'1970-01-01'", "date'1969-12-31'", "date'1999-12-31'"],
    ),
    "flag": (pa.bool_(), lambda row: row > 400, ["true", "false"]),
}
OPERATIONS = ("=", "<", "<=", ">", ">=", "!=", "<=>")


@pytest.fixture(scope="module")
def stored_file(tmp_path_factory):
    """Write a file of several row groups and many pages, with nulls and indexes; return path and table."""
    path = tmp_path_factory.mktemp("filters") / "a.parquet"
    rows = np.random.default_rng(3).permutation(ROWS).tolist()[:300] + list(range(300))  # shuffled, then in order
    columns = {"row": pa.array(range(ROWS), pa.int64())}
    for name, (arrow, value, _) in COLUMNS.items():
        columns[name] = pa.array([None if place % 11 == 5 else value(row) for place, row in enumerate(rows)], arrow)
    table = pa.table(columns)
    write(table, path, bloom_filter_options={name: True for name in COLUMNS if name != "flag"})
    return path, table


def write(table, path, **options):
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})
    numparq.to_parquet(frame, path, index=False, row_group_size=200, max_rows_per_page=20, **options)


SKIPPING = (
    "spark.sql.parquet.filterPushdown",
    "parquet.filter.stats.enabled",
    "parquet.filter.columnindex.enabled",
    "parquet.filter.bloom.enabled",
    "parquet.filter.dictionary.enabled",
)


def answers(spark, path, conditions, *, skipping, vectorized=True):
    """Return the rows of each condition, with all means of skipping or with none; one job for all."""
    for name in SKIPPING:
        spark.conf.set(name, skipping)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    spark.read.parquet(str(path)).createOrReplaceTempView("stored")
    parts = [f"select {place} as place, row from stored where {each}" for place, each in enumerate(conditions)]
    found = spark.sql(" union all ".join(parts)).toArrow().to_pydict()
    rows = {each: [] for each in conditions}
    for place, row in zip(found["place"], found["row"], strict=True):
        rows[conditions[place]].append(row)
    return {each: sorted(of) for each, of in rows.items()}


def conditions_on(name, literals):
    compared = [f"{name} {operation} {literal}" for operation, literal in itertools.product(OPERATIONS, literals)]
    return [*compared, f"{name} in ({', '.join(literals)})", f"{name} is null", f"{name} is not null"]


@pytest.mark.parametrize("name", COLUMNS)
def test_filters_skip_no_matching_rows(spark, stored_file, name):
    conditions = conditions_on(name, COLUMNS[name][2])
    expected = answers(spark, stored_file[0], conditions, skipping=False)
    assert any(expected.values())
    for vectorized in (True, False):
        assert answers(spark, stored_file[0], conditions, skipping=True, vectorized=vectorized) == expected


@pytest.mark.parametrize("of", [[-0.0], [0.0], [-0.0, 0.0, -1.0, 1.0]], ids=str)
def test_filters_on_signed_zeros(spark, tmp_path, of):
    """No dictionary: parquet-java compares its entries by their bits, whichever writer made them."""
    values = pa.array(of * 40, pa.float64())
    table = pa.table({"row": pa.array(range(len(values)), pa.int64()), "x": values, "y": values.cast(pa.float32())})
    write(table, tmp_path / "a", use_dictionary=False, bloom_filter_options={"x": True, "y": True})
    conditions = conditions_on("x", ["0.0D", "-0.0D"]) + conditions_on("y", ["float('0.0')", "float('-0.0')"])
    assert answers(spark, tmp_path / "a", conditions, skipping=True) == answers(
        spark, tmp_path / "a", conditions, skipping=False
    )


def test_filters_on_nan_under_total_order(spark, tmp_path):
    """Spark sorts NaN last and ignores bounds of the total order, so it skips nothing.

    Under the type-defined order bounds exclude NaN, and Spark skips NaN rows of any writer.
    """
    table = pa.table({"row": pa.array(range(80), pa.int64()), "x": pa.array([1.0, float("nan"), 2.0, -1.0] * 20)})
    write(table, tmp_path / "a", column_order="ieee754", bloom_filter_options={"x": True})
    conditions = conditions_on("x", ["1D", "5D", "double('nan')"])
    expected = answers(spark, tmp_path / "a", conditions, skipping=False)
    assert len(expected["x > 5D"]) == 20
    assert answers(spark, tmp_path / "a", conditions, skipping=True) == expected


# --- parquet-java -----------------------------------------------------------------------------------------------------


class Java:
    """Classes of parquet-java through Spark's bridge."""

    def __init__(self, spark):
        self.jvm = spark._jvm
        self.configuration = spark._jsc.hadoopConfiguration()
        self.hadoop = self.jvm.org.apache.parquet.hadoop

    def file(self, path):
        place = self.jvm.org.apache.hadoop.fs.Path(str(path))
        return self.hadoop.util.HadoopInputFile.fromPath(place, self.configuration)

    def open(self, path):
        return self.hadoop.ParquetFileReader.open(self.file(path))


@pytest.fixture(scope="module")
def java(spark):
    return Java(spark)


def pages_of(table, name, group):
    part = table[name].slice(200 * group, 200).combine_chunks()
    return [part.slice(start, 20) for start in range(0, 200, 20)]


@pytest.mark.parametrize("name", ["n", "l", "row"])
def test_parquet_java_reads_page_indexes(java, stored_file, name):
    path, table = stored_file
    reader = java.open(path)
    try:
        place = table.column_names.index(name)
        for group, block in enumerate(reader.getFooter().getBlocks()):
            chunk = block.getColumns()[place]
            pages = pages_of(table, name, group)
            statistics = chunk.getStatistics()
            values = [value.as_py() for page in pages for value in page if value.is_valid]
            assert (statistics.genericGetMin(), statistics.genericGetMax()) == (min(values), max(values))
            assert statistics.getNumNulls() == 200 - len(values)
            index = reader.readColumnIndex(chunk)
            assert list(index.getNullCounts()) == [page.null_count for page in pages]
            assert list(index.getNullPages()) == [False] * 10
            width = pages[0].type.bit_width // 8
            for method, bound in (("getMinValues", min), ("getMaxValues", max)):
                found = [
                    int.from_bytes(bytes(each.array())[-width:], "little", signed=True)
                    for each in getattr(index, method)()
                ]
                assert found == [bound(value.as_py() for value in page if value.is_valid) for page in pages]
            offsets = reader.readOffsetIndex(chunk)
            assert [offsets.getFirstRowIndex(page) for page in range(offsets.getPageCount())] == list(range(0, 200, 20))
            assert offsets.getOffset(0) == chunk.getFirstDataPageOffset()
    finally:
        reader.close()


def test_parquet_java_finds_an_index_for_every_column(java, stored_file):
    """Columns whose maximum has no 64-byte upper bound lack a column index; all have an offset index."""
    path, table = stored_file
    reader = java.open(path)
    try:
        for block in reader.getFooter().getBlocks():
            for name, chunk in zip(table.column_names, block.getColumns(), strict=True):
                index = reader.readColumnIndex(chunk)
                assert index is not None or name in ("h", "b")
                assert reader.readOffsetIndex(chunk).getPageCount() == 10
                assert chunk.getStatistics().isNumNullsSet()
    finally:
        reader.close()


def test_parquet_java_reads_bloom_filters(java, stored_file):
    """The bridge passes small numbers as int, so INT64 columns are probed only with large ones."""
    path, table = stored_file
    reader = java.open(path)
    binary = java.jvm.org.apache.parquet.io.api.Binary.fromString
    absent = {"n": range(10**6, 10**6 + 300), "l": range(2**40, 2**40 + 300), "s": [f"no {row}" for row in range(300)]}
    try:
        for group, block in enumerate(reader.getFooter().getBlocks()):
            for name, others in absent.items():
                found = reader.readBloomFilter(block.getColumns()[table.column_names.index(name)])
                values = table[name].slice(200 * group, 200).drop_null().unique().to_pylist()
                hashes = [
                    [found.hash(binary(each) if name == "s" else each) for each in of if name != "l" or each]
                    for of in (values, others)
                ]
                assert all(found.findHash(each) for each in hashes[0]), name
                assert sum(found.findHash(each) for each in hashes[1]) <= 12, name
    finally:
        reader.close()


def test_parquet_java_skips_pages(java, tmp_path):
    """For sorted values one page of one row group is read."""
    numbers = pa.array(range(2**40, 2**40 + ROWS), pa.int64())
    write(pa.table({"row": numbers}), tmp_path / "a")
    api = java.jvm.org.apache.parquet.filter2.predicate.FilterApi
    expected = java.jvm.org.apache.parquet.filter2.compat.FilterCompat.get(api.eq(api.longColumn("row"), 2**40 + 555))
    options = java.jvm.org.apache.parquet.ParquetReadOptions.builder().withRecordFilter(expected)
    options = options.useColumnIndexFilter(True).useStatsFilter(True).build()
    reader = java.hadoop.ParquetFileReader.open(java.file(tmp_path / "a"), options)
    try:
        assert reader.getRecordCount() == 200
        assert reader.getFilteredRecordCount() == 20
        assert reader.readNextFilteredRowGroup().getRowCount() == 20
        assert reader.readNextFilteredRowGroup() is None
    finally:
        reader.close()
