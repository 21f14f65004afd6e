"""Record batches for Spark from row ranges of a table, and join keys that compare alike in both. Needs no Java."""

from __future__ import annotations

from functools import partial

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
T = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed (the extra 'spark')")

import numparq.spark  # noqa: E402
from numparq.dataset.splits.table import split_table  # noqa: E402
from numparq.errors import SchemaError  # noqa: E402
from numparq.spark.data_source.read_options import parse_read_options  # noqa: E402
from numparq.spark.jobs.pandas_jobs import plan_job_splits  # noqa: E402
from numparq.spark.scan.arrow_batches import RecordBatchBuilder  # noqa: E402
from numparq.spark.scan.plan import SparkScan  # noqa: E402
from numparq.spark.scan.request import ReadRequest  # noqa: E402
from numparq.spark.schema.comparison import compares_exactly  # noqa: E402
from numparq.spark.schema.user_schema import find_fields  # noqa: E402

pytestmark = pytest.mark.pyspark


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("rows", [1, 2, None])
def test_slices_that_begin_with_empty_lists(start, rows):
    """Their offsets start at 0, but not at the array's first offset."""
    lists = [[], [], None, [], [1, None], None, [2]]
    maps = [value if value is None else [(str(each), each) for each in value] for value in lists]
    kinds = {"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}
    table = pa.table({"l": pa.array(lists, kinds["l"]), "m": pa.array(maps, kinds["m"])})
    kinds = {"l": T.ArrayType(T.LongType()), "m": T.MapType(T.StringType(), T.LongType())}
    schema = T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])
    batches = list(RecordBatchBuilder(schema, rows).from_table(table.slice(start)))
    for batch in batches:
        batch.validate(full=True)
    assert [row for batch in batches for row in batch.to_pylist()] == table.slice(start).to_pylist()


def test_duplicate_column_names_are_refused(tmp_path):
    """Struct fields keep the names that they have in the file."""
    table = pa.table({"x": [1], "s": [{"x": 2}], "t": [{"x": 3}]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=r"two columns have this name.*'x'"):
        SparkScan.plan(ReadRequest(str(tmp_path), ["t.x", "x"]))
    assert find_fields(["x", "x"], ["x", "x"]) == [0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nanoseconds": "round"}, ValueError, "'exact' or 'floor', not 'round'"),
        ({"rows_per_batch": 0}, ValueError, "rows_per_batch must be at least 1"),
        ({"rows_per_batch": "3"}, TypeError, "rows_per_batch must be an int"),
    ],
)
def test_invalid_read_requests_are_refused(options, error, message):
    """The error is raised before any task runs."""
    with pytest.raises(error, match=message):
        ReadRequest("a", **options)


@pytest.mark.parametrize("name", ["columns", "storageOptions"])
def test_deeply_nested_options_are_refused(name):
    with pytest.raises(ValueError, match=f"the option '{name}' must be"):
        parse_read_options({"path": "a", name: "[" * 100_000})


def test_string_of_columns_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "a.parquet")
    for read in (split_table, partial(numparq.spark.read, None), partial(plan_job_splits, None, filters=None)):
        with pytest.raises(TypeError, match="use \\['ab'\\] for one column"):
            read(str(tmp_path), columns="ab")


D = T.DecimalType
INT, LONG, FLOAT, DOUBLE, TEXT = T.IntegerType(), T.LongType(), T.FloatType(), T.DoubleType(), T.StringType()
DATE, LOCAL, INSTANT, BYTES = T.DateType(), T.TimestampNTZType(), T.TimestampType(), T.BinaryType()
SAME = [
    (T.ByteType(), LONG),
    (INT, D(20, 2)),
    (D(9, 1), D(12, 2)),
    (FLOAT, DOUBLE),
    (TEXT, TEXT),
    (DATE, LOCAL),
    (INSTANT, INSTANT),
    (BYTES, BYTES),
]
OTHERS = [
    (D(3, 1), DOUBLE),
    (LONG, DOUBLE),
    (INT, FLOAT),
    (D(38, 37), LONG),
    (D(38, 0), D(38, 10)),
    (TEXT, DATE),
    (TEXT, INT),
    (DATE, INSTANT),
    (LOCAL, INSTANT),
    (TEXT, BYTES),
    (T.BooleanType(), INT),
    (T.ArrayType(INT), T.ArrayType(INT)),
]


@pytest.mark.parametrize(("first", "second"), SAME + OTHERS, ids=str)
def test_join_key_types_that_compare_exactly(first, second):
    expected = (first, second) in SAME
    assert compares_exactly(first, second) == compares_exactly(second, first) == expected
