"""Results of pandas functions are converted to the schema exactly, or refused with a reason. Needs no Java."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from numparq.spark.jobs.results import ResultBatchBuilder
from numparq.spark.scan.arrow_batches import worker_arrow_schema

pa = pytest.importorskip("pyarrow")
T = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed (the extra 'spark')")

pytestmark = pytest.mark.pyspark

Row = T.Row

DECIMAL = decimal.Decimal
DAY, NOON = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)
PAIRS = T.MapType(T.StringType(), T.LongType())
POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("tags", T.ArrayType(T.StringType()))])


def schema(**types):
    return T.StructType([T.StructField(name, kind) for name, kind in types.items()])


def rows(frame, result_schema, *, is_utc=True):
    """Convert a frame, check that the batches have Spark's schema, and return the rows."""
    batches = list(ResultBatchBuilder(result_schema, "the function", is_utc=is_utc).from_frame(frame))
    assert all(batch.schema == worker_arrow_schema(result_schema) for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def column(values, kind, **options):
    values = values if isinstance(values, pd.Series) else pd.Series(values)
    return [value for (value,) in rows(pd.DataFrame({"a": values}), schema(a=kind), **options)]


GOOD = [
    (pd.Series([1, 2], dtype="Int64"), T.LongType(), [1, 2]),
    (pd.Series([1, None], dtype="Int64"), T.IntegerType(), [1, None]),
    (pd.Series([1.0, np.nan]), T.LongType(), [1, None]),
    (pd.Series([2**63 - 1]), T.LongType(), [2**63 - 1]),
    (pd.Series([2**64 - 1], dtype="uint64"), T.DecimalType(20, 0), [DECIMAL(2**64 - 1)]),
    (pd.Series([5]), T.DecimalType(10, 2), [DECIMAL("5.00")]),
    (pd.Series([1, 2], dtype="int64"), T.DoubleType(), [1.0, 2.0]),
    (pd.Series([0.5, np.nan]), T.FloatType(), [0.5, None]),
    (pd.Series([True, None], dtype="boolean"), T.BooleanType(), [True, None]),
    (pd.Series([True, None], dtype=object), T.BooleanType(), [True, None]),
    (pd.Series(["é", None], dtype="str"), T.StringType(), ["é", None]),
    (pd.Series(["é", None], dtype=object), T.StringType(), ["é", None]),
    (pd.Series(["b", "a", "b"], dtype="category"), T.StringType(), ["b", "a", "b"]),
    (pd.Series([1, 2, 1], dtype="category"), T.LongType(), [1, 2, 1]),
    (pd.Series([b"x", None], dtype=object), T.BinaryType(), [b"x", None]),
    (pd.Series([DECIMAL("1.25"), None], dtype=object), T.DecimalType(10, 2), [DECIMAL("1.25"), None]),
    (pd.Series([DAY, None], dtype=object), T.DateType(), [DAY, None]),
    (pd.Series([pd.Timestamp(DAY)]), T.DateType(), [DAY]),
    (pd.Series([pd.Timestamp(NOON)]), T.TimestampNTZType(), [NOON]),
    (
        pd.Series([pd.Timestamp(NOON, tz="UTC").tz_convert("Asia/Tokyo")]),
        T.TimestampType(),
        [NOON.replace(tzinfo=datetime.UTC)],
    ),
    (pd.Series([pd.Timestamp(NOON)]), T.TimestampType(), [NOON.replace(tzinfo=datetime.UTC)]),
    (pd.Series([pd.Timedelta(90, "s"), None]), T.DayTimeIntervalType(), [datetime.timedelta(seconds=90), None]),
    (pd.Series([np.array([1, 2]), None, []], dtype=object), T.ArrayType(T.LongType()), [[1, 2], None, []]),
    (pd.Series([{"p": 1}, [("q", None)], None], dtype=object), PAIRS, [[("p", 1)], [("q", None)], None]),
    (
        pd.Series([{"x": 1.5, "tags": ["t"]}, Row(x=2.0, tags=None), np.nan], dtype=object),
        POINT,
        [{"x": 1.5, "tags": ["t"]}, {"x": 2.0, "tags": None}, None],
    ),
    (pd.Series([[{"p": 1}], None], dtype=object), T.ArrayType(PAIRS), [[[("p", 1)]], None]),
    (pd.Series([None, None], dtype=object), T.LongType(), [None, None]),
    (pd.Series([np.nan, np.nan]), T.StringType(), [None, None]),
    (pd.Series([pd.NaT, pd.NaT]), T.TimestampType(), [None, None]),
]


@pytest.mark.parametrize(
    ("values", "kind", "expected"), GOOD, ids=lambda value: str(getattr(value, "dtype", value))[:30]
)
def test_values_convert_to_the_schema(values, kind, expected):
    assert column(values, kind) == expected


UNFIT = [
    (pd.Series(["1"]), T.LongType(), "is string, but the schema has bigint"),
    (pd.Series([1]), T.StringType(), "is integer, but the schema has string"),
    (pd.Series([1]), T.BooleanType(), "is integer"),
    (pd.Series([True]), T.LongType(), "is boolean"),
    (pd.Series([0.5]), T.DecimalType(10, 2), "is float"),
    (pd.Series([pd.Timestamp(NOON)]), T.LongType(), "is timestamp without a time zone"),
    (pd.Series([pd.Timestamp(NOON, tz="UTC")]), T.TimestampNTZType(), "tz_localize"),
    (pd.Series([pd.Timestamp(NOON, tz="UTC")]), T.DateType(), "is timestamp"),
    (pd.Series([b"x"], dtype=object), T.StringType(), "is binary"),
]
LOST = [
    (pd.Series([1.5]), T.LongType(), "float64. has values that do not fit bigint"),
    (pd.Series([2**31]), T.IntegerType(), "not fit int"),
    (pd.Series([300]), T.ByteType(), "not fit tinyint"),
    (pd.Series([2**53 + 1]), T.DoubleType(), "not fit double"),
    (pd.Series([10**9]), T.DecimalType(5, 0), "not fit decimal"),
    (pd.Series([DECIMAL("1.255")], dtype=object), T.DecimalType(10, 2), "not fit decimal"),
    (pd.Series([pd.Timestamp(NOON)]), T.DateType(), "has a time of day"),
    (pd.Series([pd.Timestamp(1, unit="ns")]), T.TimestampNTZType(), "not fit timestamp_ntz"),
    (pd.Series([1, "x"], dtype=object), T.LongType(), "not fit bigint"),
    (pd.Series([[1, "x"]], dtype=object), T.ArrayType(T.LongType()), "not fit array"),
    (pd.Series([{"z": 1}], dtype=object), POINT, "unexpected field 'z'"),
]


@pytest.mark.parametrize(("values", "kind", "message"), UNFIT)
def test_incompatible_types_are_refused(values, kind, message):
    with pytest.raises(TypeError, match=message) as caught:
        column(values, kind)
    assert "column 'a' in the result of the function" in str(caught.value)


@pytest.mark.parametrize(("values", "kind", "message"), LOST)
def test_lossy_conversions_are_refused(values, kind, message):
    with pytest.raises(ValueError, match=message) as caught:
        column(values, kind)
    assert "column 'a' in the result of the function" in str(caught.value)


def test_naive_timestamps_are_not_guessed():
    """INT96 decodes without a zone and means UTC; Spark would assume the session's zone."""
    values = pd.Series([pd.Timestamp(NOON)])
    with pytest.raises(TypeError, match="without a time zone"):
        column(values, T.TimestampType(), is_utc=False)
    assert column(values.dt.tz_localize("UTC"), T.TimestampType(), is_utc=False)[0].hour == 12


def test_columns_and_index_levels_by_name():
    frame = pd.DataFrame({"b": [1, 2], "k": [3, 4], "a": ["x", "y"]})
    result_schema = schema(a=T.StringType(), b=T.LongType(), k=T.LongType())
    assert rows(frame, result_schema) == [("x", 1, 3), ("y", 2, 4)]
    assert rows(frame.set_index("k"), result_schema) == [("x", 1, 3), ("y", 2, 4)]
    assert rows(frame.groupby(["k", "a"])[["b"]].sum(), result_schema) == [("x", 1, 3), ("y", 2, 4)]
    other_index = frame.set_axis(pd.Index([7, 8], name="other"))
    assert rows(other_index, result_schema) == [("x", 1, 3), ("y", 2, 4)]


def test_missing_extra_and_duplicate_columns():
    frame = pd.DataFrame({"a": [1], "z": [2]})
    with pytest.raises(ValueError, match="lacks 'b' and has unexpected 'z'; the schema is a bigint, b bigint"):
        rows(frame, schema(a=T.LongType(), b=T.LongType()))
    with pytest.raises(ValueError, match="has duplicate 'a'"):
        rows(pd.DataFrame([[1, 2]], columns=["a", "a"]), schema(a=T.LongType()))
    with pytest.raises(ValueError, match="lacks 'a' and has unexpected 0"):
        rows(pd.DataFrame([[1]]), schema(a=T.LongType()))


@pytest.mark.parametrize("result", [None, 3, pd.Series([1]), {"a": [1]}])
def test_results_other_than_frames_are_refused(result):
    with pytest.raises(TypeError, match=r"the function must return DataFrames, not (None|a )"):
        rows(result, schema(a=T.LongType()))


def test_empty_frames_are_checked():
    assert rows(pd.DataFrame({"a": []}), schema(a=T.StringType())) == []
    with pytest.raises(ValueError, match="lacks"):
        rows(pd.DataFrame(), schema(a=T.StringType()))


def test_nulls_in_required_columns_are_refused():
    result_schema = T.StructType([T.StructField("a", T.LongType(), nullable=False)])
    assert rows(pd.DataFrame({"a": [1]}), result_schema) == [(1,)]
    with pytest.raises(ValueError, match="has nulls"):
        rows(pd.DataFrame({"a": pd.array([1, None], "Int64")}), result_schema)
