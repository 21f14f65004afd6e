"""Keys of a join's small side whose type is another one than the column's: what Spark casts finds its partners."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

pytestmark = [pytest.mark.spark, pytest.mark.slow]

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra 'spark')")

D = decimal.Decimal
MIDNIGHT = datetime.datetime(2020, 1, 1)  # in UTC
COLUMNS = {
    "i": pa.array([0, 2**53, 2**53 + 1], pa.int64()),
    "x": pa.array([0.1, 2.0**53, -0.0]),
    "d": pa.array([D("0.1"), D("1.0"), D("0.0")], pa.decimal128(5, 1)),
    "day": pa.array([MIDNIGHT.date(), None, None]),
    "moment": pa.array([MIDNIGHT, MIDNIGHT - datetime.timedelta(hours=9), None], pa.timestamp("us", "UTC")),
    "local": pa.array([MIDNIGHT, MIDNIGHT - datetime.timedelta(hours=9), None], pa.timestamp("us")),
}
# A column and a key; the places of the rows that have a partner, with a session in Tokyo.
CASES = [
    ("x", "0.1BD", [0]),
    ("x", "9007199254740993L", [1]),
    ("x", "0D", [2]),
    ("x", "0", [2]),
    ("d", "0.1D", [0]),
    ("d", "1", [1]),
    ("i", "9007199254740992D", [1, 2]),
    ("i", "0.0BD", [0]),
    ("moment", "date'2020-01-01'", [1]),
    ("moment", "timestamp_ntz'2020-01-01 00:00:00'", [1]),
    ("moment", "timestamp'2020-01-01 00:00:00'", [1]),
    ("day", "timestamp'2020-01-01 00:00:00'", [0]),
    ("moment", "'2020-01-01'", [1]),
    ("local", "date'2020-01-01'", [0]),
    ("day", "'2020-01-01'", [0]),
]


def test_partners_are_read(spark, tmp_path):
    """Each row in a row group of its own, which statistics would leave out."""
    pq.write_table(pa.table({"id": [0, 1, 2], **COLUMNS}), tmp_path / "a.parquet", row_group_size=1)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for column, key, wanted in CASES:
            small = spark.sql(f"select {key} as key")
            found = numparq.spark.read(spark, str(tmp_path), ["id", column], runtime_filters={column: small})
            joined = found.join(small, found[column] == small.key).select("id").collect()
            assert sorted(row.id for row in joined) == wanted, (column, key)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
