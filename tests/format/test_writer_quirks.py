"""Trusted statistics: by the column's order, by the writer's version, and by their consistency."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from numparq import ParquetFile
from numparq.format.column_order import NO_ORDER, ColumnOrder, declared_orders, leaf_order
from numparq.format.logical_type import LogicalType
from numparq.format.schema import Leaf
from numparq.format.statistics import is_nan
from numparq.format.writer_quirks import (
    STATISTICS_QUIRKS,
    ApplicationVersion,
    parse_created_by,
    statistics_quirks,
    untrusted_statistics,
)
from support.data.statistics_columns import column_node
from support.files.builder import INT96, FileColumn, build_file, data_page, extended_idl
from support.oracles.pruning import TrustedStatistics, trusted_statistics


def leaf(physical, kind=None, length=None, repeated=0, **parameters):
    logical = LogicalType(kind, **parameters) if kind else None
    return Leaf(0, 0, ("a",), physical, length, logical, 1 + repeated, repeated)


DECIMAL = {"kind": "DECIMAL", "precision": 9, "scale": 2}
NUMBERS, TEXT, DOUBLES, DECIMALS = leaf(2), leaf(6, "STRING"), leaf(5), leaf(7, length=5, **DECIMAL)
UNSIGNED, LISTS = leaf(1, "INTEGER", bit_width=32, signed=False), leaf(1, repeated=1)


@pytest.mark.parametrize(
    ("text", "writer"),
    [
        (None, ApplicationVersion("", None)),
        ("", ApplicationVersion("", None)),
        ("parquet-mr", ApplicationVersion("parquet-mr", None)),
        ("parquet-mr version", ApplicationVersion("parquet-mr", None)),
        ("parquet-mr version 1.8.0 (build 0fda28af84b9)", ApplicationVersion("parquet-mr", (1, 8, 0, 1))),
        ("parquet-mr version 1.8.0-SNAPSHOT", ApplicationVersion("parquet-mr", (1, 8, 0, 0))),
        ("parquet-mr version 1.6.0rc3 (build d4d)", ApplicationVersion("parquet-mr", (1, 6, 0, 0))),
        ("parquet-mr version 1.10.99.7.1.7.0-551", ApplicationVersion("parquet-mr", (1, 10, 99, 1))),
        ("parquet-cpp-arrow version 26.0.0", ApplicationVersion("parquet-cpp-arrow", (26, 0, 0, 1))),
        ("impala version 2.9.0-cdh5.12.0 (build 03c)", ApplicationVersion("impala", (2, 9, 0, 0))),
        ("DuckDB version v1.1.0 (build fa5c2fe15f)", ApplicationVersion("duckdb", (1, 1, 0, 1))),
        ("DuckDB", ApplicationVersion("duckdb", None)),
        ("ClickHouse v25.3.2.39", ApplicationVersion("clickhouse", (25, 3, 2, 1))),
        ("cudf version 24.02", ApplicationVersion("cudf", (24, 2, 0, 1))),
        ("parquet-go version latest", ApplicationVersion("parquet-go", None)),
        (
            "github.com/parquet-go/parquet-go version 0.25.0(build )",
            ApplicationVersion("github.com/parquet-go/parquet-go", (0, 25, 0, 1)),
        ),
        (
            "Arrow2 - Native Rust implementation of Arrow",
            ApplicationVersion("arrow2 - native rust implementation of arrow", None),
        ),
        ("\n \udcff 1" * 2000, ApplicationVersion("\udcff", (1, 0, 0, 1))),
    ],
)
def test_parse_created_by(text, writer):
    assert parse_created_by(text) == writer


def test_version_comparison():
    before = [
        parse_created_by(f"w version {version}").is_before((1, 8, 0)) for version in ("1.7.9", "1.8.0-SNAPSHOT", "0.9")
    ]
    after = [
        parse_created_by(f"w version {version}").is_before((1, 8, 0)) for version in ("1.8.0", "1.8.1-rc1", "1.10", "2")
    ]
    assert all(before)
    assert not any(after)
    assert parse_created_by("w").is_before((0, 0, 1))
    assert parse_created_by("w version 9.9").is_before(None)


@pytest.mark.parametrize(
    ("created_by", "column", "untrusted"),
    [
        ("parquet-mr version 1.7.0", TEXT, "min_max deprecated_min_max"),
        ("parquet-mr version 1.7.0", leaf(7, length=3), "min_max deprecated_min_max"),
        ("parquet-mr version 1.7.0", NUMBERS, ""),
        ("parquet-mr", TEXT, "min_max deprecated_min_max"),
        ("parquet-mr version 1.9.0", UNSIGNED, "min_max deprecated_min_max"),
        ("parquet-mr version 1.10.0", TEXT, "deprecated_min_max"),
        ("parquet-mr version 1.10.0", DOUBLES, ""),
        ("parquet-cpp version 1.2.0", TEXT, "min_max deprecated_min_max"),
        ("parquet-cpp version 1.3.1-SNAPSHOT", TEXT, "deprecated_min_max"),
        ("parquet-cpp version 1.3.1", DOUBLES, "min_max deprecated_min_max"),
        ("parquet-cpp version 1.5.1-SNAPSHOT", DOUBLES, ""),
        ("parquet-cpp version 1.5.1-SNAPSHOT", DECIMALS, "min_max deprecated_min_max"),
        ("parquet-cpp-arrow version 3.0.0", DECIMALS, "min_max deprecated_min_max"),
        ("parquet-cpp-arrow version 4.0.0", DECIMALS, "deprecated_min_max"),
        ("parquet-cpp-arrow version 26.0.0", LISTS, "null_count"),
        ("parquet-cpp-arrow version 26.0.0", NUMBERS, ""),
        ("parquet-rs version 5.1.0", TEXT, "min_max deprecated_min_max offset_index column_index"),
        ("parquet-rs version 12.0.0", UNSIGNED, "min_max deprecated_min_max offset_index column_index"),
        ("parquet-rs version 52.0.0", TEXT, "deprecated_min_max column_index"),
        ("parquet-rs version 59.0.0", leaf(6, **DECIMAL), "min_max deprecated_min_max"),
        ("parquet-rs version 59.0.0", DECIMALS, "deprecated_min_max"),
        ("Polars", NUMBERS, "null_count"),
        ("Polars", UNSIGNED, "null_count min_max deprecated_min_max"),
        ("Arrow2 - Native Rust implementation of Arrow", NUMBERS, "min_max deprecated_min_max"),
        ("DuckDB version v1.3.0 (build 71c5c07cdd)", LISTS, "null_count"),
        ("DuckDB version v1.3.0 (build 71c5c07cdd)", TEXT, "deprecated_min_max"),
        ("ClickHouse v25.7.1.1", DECIMALS, "min_max deprecated_min_max"),
        ("ClickHouse v25.7.1.1", LISTS, "offset_index"),
        ("ClickHouse v25.8.1.1", LISTS, ""),
        ("ClickHouse v26.4.1.1", TEXT, "deprecated_min_max column_index"),
        ("github.com/parquet-go/parquet-go version 0.32.0(build )", DECIMALS, "min_max deprecated_min_max"),
        ("parquet-go version latest", NUMBERS, "offset_index"),
        ("parquet-go version 18.0.0", UNSIGNED, "min_max deprecated_min_max"),
        ("parquet-go version 18.7.0", UNSIGNED, "deprecated_min_max"),
        ("hyparquet", leaf(1, **DECIMAL), "min_max deprecated_min_max"),
        (None, TEXT, "deprecated_min_max"),
        (None, NUMBERS, ""),
        ("numparq version 1.0.0", NUMBERS, ""),
        ("parquet-mrs version 0.1.0", TEXT, "deprecated_min_max"),
    ],
)
def test_untrusted_statistics_by_writer(created_by, column, untrusted):
    assert untrusted_statistics(created_by, column) == frozenset(untrusted.split())
    assert {part for bug in statistics_quirks(created_by, column) for part in bug.untrusted} == set(untrusted.split())


def test_every_quirk_applies_to_some_column():
    columns = [NUMBERS, TEXT, DOUBLES, DECIMALS, UNSIGNED, LISTS, leaf(6, **DECIMAL)]
    for bug in STATISTICS_QUIRKS:
        assert any(bug in statistics_quirks(bug.name or "whoever", column) for column in columns), bug
        assert bug.name == bug.name.lower() == parse_created_by(bug.name).name


def test_numparq_statistics_are_trusted():
    import pandas as pd

    import numparq

    frame = pd.DataFrame({"a": ["x", None], "b": [1, 2]})
    with ParquetFile(numparq.to_parquet(frame)) as opened:
        created_by = opened.metadata.created_by
        assert parse_created_by(created_by).name == "numparq"
    assert "min_max" not in untrusted_statistics(created_by, TEXT)


# --- orders -----------------------------------------------------------------------------------------------------------


def test_int96_order():
    order = leaf_order(column_node(3), "int96")
    assert order == ColumnOrder("int96", 12)
    assert order.thrift_union == {"INT96_TIMESTAMP_ORDER": {}}
    moments = [
        struct.pack("<qi", nanoseconds, day)
        for day, nanoseconds in [
            (-(2**31), 5),
            (-1, -7),
            (-1, 0),
            (0, 0),
            (0, 2**62),
            (2440588, -1),
            (2440588, 86399999999999),
            (2440589, 0),
            (2**31 - 1, 0),
        ]
    ]
    assert sorted(set(moments), key=order.sort_key) == moments
    assert leaf_order(column_node(4), "int96") == leaf_order(column_node(4))


def test_declared_orders():
    leaves = [NUMBERS, TEXT, DOUBLES, leaf(3), UNSIGNED, DECIMALS]
    kinds = [order.kind for order in declared_orders(leaves, ["TYPE_ORDER"] * 6)]
    assert kinds == ["signed", "bytes", "float", "none", "unsigned", "decimal"]
    orders = declared_orders(leaves, ["IEEE_754_TOTAL_ORDER"] * 6)
    assert [order.kind for order in orders] == ["none", "none", "float", "none", "none", "none"]
    assert orders[2].total
    kinds = [order.kind for order in declared_orders(leaves, ["INT96_TIMESTAMP_ORDER"] * 6)]
    assert kinds == ["none", "none", "none", "int96", "none", "none"]
    assert declared_orders(leaves, ["SOME_ORDER", None, "", "x", "y", "z"]) == [NO_ORDER] * 6
    for orders in (None, [], ["TYPE_ORDER"] * 5, ["TYPE_ORDER"] * 7):
        assert declared_orders(leaves, orders) == [NO_ORDER] * 6


# --- trusted statistics -----------------------------------------------------------------------------------------------

FIELDS = ("min", "max", "min_value", "max_value", "null_count", "nan_count")
SOUND = "numparq version 1.0.0"


def statistics(**fields):
    return SimpleNamespace(**(dict.fromkeys(FIELDS) | fields))


def long(number):
    return struct.pack("<q", number)


def double(number):
    return struct.pack("<d", number)


def trust_with_order(column, order="TYPE_ORDER", created_by=SOUND, **fields):
    declared = declared_orders([column], None if order is None else [order])
    return trusted_statistics(statistics(**fields), 100, column, declared[0], created_by)


def trust(column, order="TYPE_ORDER", created_by=SOUND, **fields):
    """Return the trusted statistics, without the order of the bounds."""
    return trust_with_order(column, order, created_by, **fields)._replace(order=NO_ORDER)


def test_bounds_and_counts():
    assert trusted_statistics(None, 100, NUMBERS, leaf_order(NUMBERS), SOUND) == TrustedStatistics()
    assert trust(NUMBERS, min_value=long(-3), max_value=long(4), null_count=2) == TrustedStatistics(
        long(-3), long(4), 2
    )
    assert trust(NUMBERS, max_value=long(4)) == TrustedStatistics(None, long(4))
    assert trust(TEXT, min_value=b"a", max_value=b"\xff") == TrustedStatistics(b"a", b"\xff")


def test_deprecated_bounds():
    assert trust(NUMBERS, min=long(-3), max=long(4)) == TrustedStatistics(long(-3), long(4))
    assert trust(NUMBERS, min=long(-3), max=long(4), min_value=long(1), max_value=long(2)) == TrustedStatistics(
        long(1), long(2)
    )
    assert trust(NUMBERS, min=long(-3), max=long(4), min_value=long(1)) == TrustedStatistics(long(1))
    for other in (TEXT, UNSIGNED, DECIMALS, leaf(3)):
        for order in ("TYPE_ORDER", "SOME_ORDER", None):
            assert trust_with_order(other, order, min=b"aaaa", max=b"bbbb")[:2] == (None, None)


@pytest.mark.parametrize("order", [None, "", "SOME_ORDER", "INT96_TIMESTAMP_ORDER"])
def test_bounds_without_declared_order(order):
    """They are ignored and discredit no deprecated bounds; counts need no order."""
    lie = {"min_value": long(1), "max_value": long(2)}
    assert trust_with_order(NUMBERS, order, **lie, null_count=3)[:4] == (None, None, 3, None)
    found = TrustedStatistics(long(-3), long(4), order=leaf_order(NUMBERS))
    assert trust_with_order(NUMBERS, order, min=long(-3), max=long(4)) == found
    assert trust_with_order(NUMBERS, order, min=long(-3), max=long(4), **lie) == found
    assert trust_with_order(NUMBERS, order, **lie, min=long(5), max=long(4))[:2] == (None, None)
    lie = {"min_value": double(1.0), "max_value": double(2.0)}
    assert trust_with_order(DOUBLES, order, **lie, nan_count=4)[:4] == (None, None, None, 4)
    zeros = trust_with_order(DOUBLES, order, **lie, min=double(0.0), max=double(-0.0), nan_count=4)
    assert zeros == TrustedStatistics(double(-0.0), double(0.0), None, 4, leaf_order(DOUBLES))
    for low, high in ((double(float("nan")), double(2.0)), (double(1.0), double(float("nan")))):
        assert trust_with_order(DOUBLES, order, **lie, min=low, max=high)[:2] == (None, None)
    flags = leaf(0)
    assert trust_with_order(flags, order, min_value=b"\1", max_value=b"\1", min=b"\0", max=b"\1")[:2] == (b"\0", b"\1")
    for other in (TEXT, UNSIGNED, DECIMALS, leaf(3)):
        assert trust_with_order(other, order, min_value=b"aaaa", max_value=b"bbbb", null_count=1)[:3] == (None, None, 1)


def test_order_of_trusted_bounds():
    total = "IEEE_754_TOTAL_ORDER"
    bounds = {"min_value": double(1.0), "max_value": double(2.0)}
    assert trust_with_order(DOUBLES, total, **bounds).order == leaf_order(DOUBLES, "ieee754")
    assert trust_with_order(DOUBLES, **bounds).order == leaf_order(DOUBLES)
    assert trust_with_order(DOUBLES, None, min=double(1.0)).order == leaf_order(DOUBLES)
    # All row groups of a column have one order; the deprecated bounds would have another.
    assert trust_with_order(DOUBLES, total, min=double(1.0), max=double(2.0), nan_count=3) == TrustedStatistics(
        nan_count=3
    )
    for other in (TEXT, UNSIGNED, DECIMALS, leaf(3)):
        assert trust_with_order(other, None).order == NO_ORDER


def test_contradictory_statistics():
    for low, high in ((long(5), long(4)), (b"123", long(4))):
        assert trust(NUMBERS, min_value=low, max_value=high).min_value is None
    assert trust(NUMBERS, min_value=long(5), max_value=long(4)).max_value is None
    assert trust(UNSIGNED, min_value=b"\xff" * 4, max_value=bytes(4)) == TrustedStatistics()
    for count in (-1, 101, 1 << 40):
        assert trust(NUMBERS, null_count=count).null_count is None
        assert trust(DOUBLES, nan_count=count).nan_count is None


def test_writers_with_quirks():
    assert trust(NUMBERS, created_by="Polars", min_value=long(1), null_count=2) == TrustedStatistics(long(1))
    assert trust(
        TEXT, created_by="parquet-mr version 1.6.0", min_value=b"a", max_value=b"b", null_count=2
    ) == TrustedStatistics(null_count=2)
    assert trust(DECIMALS, created_by="Polars", min_value=bytes(5), max_value=bytes(5)) == TrustedStatistics()


def test_float_bounds():
    nan, zero, minus_zero = double(float("nan")), double(0.0), double(-0.0)
    assert trust(DOUBLES, min_value=double(1.0), max_value=double(2.0), nan_count=3) == TrustedStatistics(
        double(1.0), double(2.0), None, 3
    )
    for low, high in ((nan, double(2.0)), (double(1.0), nan), (nan, nan)):
        assert trust(DOUBLES, min_value=low, max_value=high) == TrustedStatistics()
        assert trust(DOUBLES, min=low, max=high) == TrustedStatistics()
    for low in (zero, minus_zero):
        for high in (zero, minus_zero):
            assert trust(DOUBLES, min_value=low, max_value=high) == TrustedStatistics(minus_zero, zero)
    total = "IEEE_754_TOTAL_ORDER"
    assert trust(DOUBLES, total, min_value=nan, max_value=nan) == TrustedStatistics(nan, nan)
    assert trust(DOUBLES, total, min_value=zero, max_value=zero) == TrustedStatistics(zero, zero)
    assert trust(DOUBLES, total, min_value=zero, max_value=minus_zero) == TrustedStatistics()


@pytest.mark.parametrize(("form", "infinity"), [("<e", b"\x00\x7c"), ("<f", b"\x00\x00\x80\x7f"), ("<d", None)])
def test_is_nan(form, infinity):
    for number in (0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf")):
        assert not is_nan(struct.pack(form, number))
    assert is_nan(struct.pack(form, float("nan")))
    infinity = infinity or struct.pack("<d", float("inf"))
    signalling = bytes([1]) + infinity[1:]
    assert is_nan(signalling)
    assert is_nan(signalling[:-1] + bytes([signalling[-1] | 0x80]))


@pytest.mark.parametrize(("order", "trusted"), [("INT96_TIMESTAMP_ORDER", True), ("TYPE_ORDER", False), (None, False)])
def test_int96_in_a_file(order, trusted):
    """Trusted only if the file declares the order of INT96 timestamps."""
    module = extended_idl()
    early, late = struct.pack("<qi", 5, 2440588), struct.pack("<qi", 1, 2440589)
    bounds = module.Statistics(min_value=early, max_value=late, min=early, max=late, null_count=0)
    declared = {"TYPE_ORDER": module.TypeDefinedOrder, "INT96_TIMESTAMP_ORDER": module.Int96TimestampOrder}
    orders = None if order is None else [module.ColumnOrder(**{order: declared[order]()})]
    made = build_file(
        [2],
        [FileColumn("a", INT96, [[data_page(2, early + late)]], facts={"statistics": bounds})],
        column_orders=orders,
        created_by="parquet-mr version 1.14.0",
    )
    with ParquetFile(made.stored()) as opened:
        metadata = opened.metadata
        names = None if metadata.column_orders is None else [union.which() for union in metadata.column_orders]
        (found,) = declared_orders([leaf(3)], names)
        facts = metadata.row_groups[0].columns[0].meta_data
        got = trusted_statistics(facts.statistics, facts.num_values, leaf(3), found, metadata.created_by)
    assert got == (
        TrustedStatistics(early, late, 0, order=leaf_order(leaf(3), "int96"))
        if trusted
        else TrustedStatistics(null_count=0)
    )
