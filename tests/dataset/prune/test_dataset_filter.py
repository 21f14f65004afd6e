"""Dataset filters: bound once to the columns of the dataset, then to each file."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numparq import RuntimeFilter, SchemaError, col
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.dataset.prune.dataset_filter import DatasetFilter
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.expr.bound import bound_predicates
from numparq.expr.expression import Constant
from numparq.format.bloom_filter import BloomFilter, hash_values
from numparq.format.open_file import OpenFile
from support.dataset_stubs import StubPartitionKeys, StubSchemaByName, matching_row_numbers, stub_partition
from support.filters.leaf_kinds import leaf

YEARS = StubPartitionKeys(year=(leaf(1, name="year"), int), zone=(leaf(6, "STRING", name="zone"), str))
NO_KEYS = StubPartitionKeys()


def open_columns(**columns):
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return OpenFile(out.getvalue())


def open_empty(**types):
    return open_columns(**{name: pa.array([], kind) for name, kind in types.items()})


def rows(expression, file, prototype, keys=NO_KEYS, values=(), runtime=()):
    """Return the numbers of the rows of a file that match a filter."""
    dataset_filter = DatasetFilter(expression, StubSchemaByName(prototype), keys)
    return matching_row_numbers(file, dataset_filter.scan_predicate(file, stub_partition(*values), runtime))


# --- narrower columns -------------------------------------------------------------------------------------------------

x = col("x")
NAN = float("nan")
NOON = "2024-01-01T12:00"
DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), None]
# Values of the file, type of the dataset, and filters with their matching rows.
WIDENED = {
    "int32 in int64": (
        pa.array([1, 5, None, -7], "i4"),
        pa.int64(),
        [
            (x == 5, [1]),
            (x < 2**40, [0, 1, 3]),
            (x > 2**40, []),
            (x >= -(2**40), [0, 1, 3]),
            (x == 5.5, []),
            (~(x == 2**40), [0, 1, 3]),
            (x.isin([5, 2**33, None]), [1]),
            (x.not_in([5, 2**33]), [0, 3]),
            (x.is_null(), [2]),
        ],
    ),
    "float in double": (
        pa.array([0.1, 0.5, NAN, None, -0.0], "f4"),
        pa.float64(),
        [
            (x == 0.1, []),
            (x == 0.5, [1]),
            (float(np.float32(0.1)) == x, [0]),
            (x > 0.1, [0, 1]),
            (x == 0, [4]),
            (x != 0.1, [0, 1, 2, 4]),
            (~(x > 0.2), [0, 2, 4]),
            (x < 1e300, [0, 1, 4]),
        ],
    ),
    "int32 in double": (
        pa.array([1, 2, None], "i4"),
        pa.float64(),
        [
            (x > 1.5, [1]),
            (x == 1.0, [0]),
            (x != 1.5, [0, 1]),
            (float("inf") >= x, [0, 1]),
        ],
    ),
    "date in timestamp": (
        pa.array(DAYS),
        pa.timestamp("us"),
        [
            (x > "2024-01-01", [1]),
            (x > "2024-01-01T00:00:01", [1]),
            (x == NOON, []),
            (x <= NOON, [0]),
            (datetime.datetime(2024, 1, 2) == x, [1]),
        ],
    ),
    "ms in ns": (
        pa.array([0, 1, 2, None], pa.timestamp("ms")),
        pa.timestamp("ns"),
        [
            (x > np.datetime64(1, "ns"), [1, 2]),
            (x == np.datetime64(10**6, "ns"), [1]),
            (x == np.datetime64(10**6 + 1, "ns"), []),
            (x != np.datetime64(10**6 + 1, "ns"), [0, 1, 2]),
        ],
    ),
    "decimal": (
        pa.array([Decimal("1.25"), Decimal("-3.00"), None], pa.decimal128(5, 2)),
        pa.decimal128(30, 4),
        [
            (x == "1.2500", [0]),
            (x > "1.2499", [0]),
            (x >= "1.2501", []),
            (x < 10**20, [0, 1]),
            (x == "1.2501", []),
            (x != "1.2501", [0, 1]),
        ],
    ),
}
CASES = [(name, expression, expected) for name, (_, _, cases) in WIDENED.items() for expression, expected in cases]


@pytest.mark.parametrize(("name", "expression", "expected"), CASES, ids=lambda part: repr(part)[:60])
def test_literals_compare_by_dataset_type(name, expression, expected):
    array, wide, _ = WIDENED[name]
    assert rows(expression, open_columns(x=array), open_empty(x=wide)) == expected


def test_contains_on_narrower_lists():
    file, prototype = (
        open_columns(x=pa.array([[1, 2], [], None, [None, 7]], pa.list_(pa.int32()))),
        open_empty(x=pa.list_(pa.int64())),
    )
    assert rows(col("x").contains(7), file, prototype) == [3]
    assert rows(~col("x").contains(7), file, prototype) == [0, 1]
    assert rows(col("x").contains(2**40), file, prototype) == []
    assert rows(~col("x").contains(2**40), file, prototype) == [0, 1, 3]
    assert rows(col("x").is_null(), file, prototype) == [2]


def test_incompatible_type_raises_with_file_and_column():
    file = open_columns(x=pa.array(["a"]))
    with pytest.raises(SchemaError, match=r"values of type utf8 are not comparable with type int.*column 'x'"):
        rows(col("x") == 1, file, open_empty(x=pa.int64()))


# --- missing columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("b") == 1, []),
        (~(col("b") == 1), []),
        (col("b").is_null(), [0, 1, 2]),
        (~col("b").is_null(), []),
        (col("b").is_not_null(), []),
        (col("b").not_in([1]), []),
        (col("b").like("%"), []),
        (col("l").contains(1), []),
        (~col("l").contains(1), []),
        (col("l").is_null(), [0, 1, 2]),
        ((col("b") == 1) | (col("a") > 1), [1, 2]),
        (col("b").is_null() & (col("a") > 1), [1, 2]),
        (~((col("b") == 1) & (col("a") > 1)), [0]),
        (~((col("b") == 1) | (col("a") > 1)), []),
    ],
    ids=repr,
)
def test_missing_column_is_null_in_every_row(expression, expected):
    kind = pa.string() if "like" in repr(expression) else pa.int64()
    file, prototype = open_columns(a=[1, 2, 3]), open_empty(a=pa.int64(), b=kind, l=pa.list_(pa.int64()))
    assert rows(expression, file, prototype) == expected


def test_missing_structs_and_struct_fields():
    prototype = open_empty(s=pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.int32()})}))
    file = open_columns(s=pa.array([{"a": 1}, None, {"a": None}], pa.struct({"a": pa.int32()})))
    assert rows(col("s.a") == 1, file, prototype) == [0]
    assert rows(col("s.a").is_null(), file, prototype) == [1, 2]
    assert rows(col("s").is_null(), file, prototype) == [1]
    assert rows(col("s.b").is_null(), file, prototype) == [0, 1, 2]
    assert rows(col("s.b.c") > 0, file, prototype) == []
    assert rows(~(col("s.b.c") > 0) | col("s").is_not_null(), file, prototype) == [0, 2]
    assert rows(col("s").is_null(), open_columns(a=[1, 2]), prototype) == [0, 1]


def test_required_column_may_have_nulls_in_other_files():
    prototype = open_columns(x=pa.array([1, 2]))
    required = OpenFile(required_file())
    assert rows(col("x").is_null(), open_columns(x=pa.array([1, None])), prototype) == [1]
    assert rows(col("x").is_null(), open_columns(x=pa.array([1, None])), required) == [1]
    assert rows(col("x").is_null(), required, prototype) == []
    assert rows(col("x") > -1, open_columns(x=pa.array([1, None])), required) == [0]


def required_file():
    out = io.BytesIO()
    pq.write_table(pa.table({"x": [1, 2]}, schema=pa.schema([pa.field("x", pa.int64(), False)])), out)
    return out.getvalue()


def test_null_type_column_is_null_in_every_row():
    file, prototype = open_columns(x=pa.nulls(2)), open_empty(x=pa.string())
    assert rows(col("x") == "a", file, prototype) == []
    assert rows(col("x").is_null(), file, prototype) == [0, 1]


# --- partition keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        (col("year") == 2024, ("2024", "a"), True),
        (col("year") == 2024, ("2023", "a"), False),
        (col("year") > 2023.5, ("2024", "a"), True),
        (~(col("year") == 2024), ("2024", "a"), False),
        (col("year") == 2024, (None, "a"), False),
        (~(col("year") == 2024), (None, "a"), False),
        (col("year").is_null(), (None, "a"), True),
        (col("year").is_null(), ("2024", "a"), False),
        (~col("year").is_null(), (None, "a"), False),
        (col("zone").like("a%"), ("1", "abc"), True),
        (~col("zone").like("a%"), ("1", "abc"), False),
        (col("zone").isin(["b", "abc"]), ("1", "abc"), True),
        (col("zone").startswith("b") | (col("year") < 2), ("1", "abc"), True),
        (col("zone") >= "é", ("1", "z"), False),
        (col("zone") == "", ("1", ""), True),
        (col("year").between(2000, 2030), ("2024", "a"), True),
    ],
    ids=repr,
)
def test_partition_key_filters_become_constants(expression, values, expected):
    file = open_columns(a=[1, 2])
    found = DatasetFilter(expression, StubSchemaByName(file), YEARS).bind_file(file, stub_partition(*values))
    assert found == Constant(expected)


def test_partition_key_wins_over_column():
    file = open_columns(year=[1, 2], a=[1, 2])
    assert rows((col("year") == 2024) & (col("a") == 2), file, file, YEARS, ("2024", "x")) == [1]
    assert rows((col("year") == 1) & (col("a") == 2), file, file, YEARS, ("2024", "x")) == []


def test_filter_on_partition_key_and_column():
    file = open_columns(a=[1, 2, None])
    dataset_filter = DatasetFilter((col("year") == 2024) | (col("a") == 2), StubSchemaByName(file), YEARS)
    assert dataset_filter.bind_file(file, stub_partition("2024", "x")) == Constant(True)
    assert dataset_filter.scan_predicate(file, stub_partition("2024", "x")) is None
    bound = dataset_filter.bind_file(file, stub_partition("2023", "x"))
    assert [test.leaf.path for test in bound_predicates(bound)] == [("a",)]
    assert matching_row_numbers(file, dataset_filter.scan_predicate(file, stub_partition("2023", "x"))) == [1]
    assert (dataset_filter.keys, dataset_filter.names) == (["year"], ["a"])


def test_partition_keys_of_other_types():
    keys = StubPartitionKeys(
        d=(leaf(1, "DATE", name="d"), datetime.date.fromisoformat),
        f=(leaf(5, name="f"), float),
        b=(leaf(0, name="b"), lambda raw: raw == "true"),
        t=(leaf(2, "TIMESTAMP", name="t", unit="MICROS", utc=False), datetime.datetime.fromisoformat),
        n=(leaf(1, "DECIMAL", name="n", precision=5, scale=2), Decimal),
    )
    file, partition = open_columns(a=[1]), stub_partition("2024-05-01", "nan", "true", "2024-05-01T10:00:00", "1.50")
    for expression, expected in [
        (col("d") >= "2024-05-01", True),
        (col("d") < "2024-05-01", False),
        (col("f") == 1.0, False),
        (~(col("f") == 1.0), True),
        (col("f").is_null(), False),
        (col("b") == 1, True),
        (col("b") == 0, False),
        (col("t") == "2024-05-01 10:00", True),
        (col("t") > "2024-05-01 10:00", False),
        (col("n") == "1.5", True),
    ]:
        assert DatasetFilter(expression, StubSchemaByName(file), keys).bind_file(file, partition) == Constant(
            expected
        ), expression


# --- errors before a file is read -------------------------------------------------------------------------------------


def test_names_and_literals_are_checked_on_construction():
    schema = StubSchemaByName(open_columns(amount=[1], s=[{"a": 1}]))
    with pytest.raises(SchemaError, match=r"the dataset has no column 'yaer'; did you mean 'year'\?"):
        DatasetFilter(col("yaer") == 1, schema, YEARS)
    with pytest.raises(SchemaError, match="has no column 'amoun'; did you mean 'amount'"):
        DatasetFilter([("amoun", "=", 1)], schema, YEARS)
    with pytest.raises(SchemaError, match=r"has no column 'year\.x'"):
        DatasetFilter(col("year.x") == 1, schema, YEARS)
    with pytest.raises(SchemaError, match=r"has no column 's\.b'"):
        DatasetFilter(col("s.b") == 1, schema, YEARS)
    with pytest.raises(SchemaError, match="'x' cannot be compared with the column 'year'"):
        DatasetFilter(col("year") == "x", schema, YEARS)
    with pytest.raises(SchemaError, match="'x' cannot be compared with the column 'amount'"):
        DatasetFilter(col("amount") == "x", schema, YEARS)
    with pytest.raises(SchemaError, match="needs a list of simple values"):
        DatasetFilter(col("zone").contains("x"), schema, YEARS)


def test_files_with_one_schema_share_bound_filter():
    files = [open_columns(a=[1, number]) for number in range(3)]
    dataset_filter = DatasetFilter(col("a") > 1, StubSchemaByName(files[0]), YEARS)
    found = [dataset_filter.bind_file(file, stub_partition("2024", "x")) for file in files]
    assert found[1] is found[0]
    assert found[2] is found[0]


# --- runtime filters --------------------------------------------------------------------------------------------------


def test_runtime_filters_on_partition_keys_and_missing_columns():
    file, prototype = open_columns(a=[1, 2]), open_empty(a=pa.int64(), b=pa.int64())
    runtime_filters = [RuntimeFilter("year"), RuntimeFilter("b")]
    dataset_filter = DatasetFilter(None, StubSchemaByName(prototype), YEARS)
    conditions = [
        dataset_filter.scan_predicate(file, stub_partition(year, "x"), runtime_filters[:1])
        for year in ("2024", "2023", None)
    ]
    missing = dataset_filter.scan_predicate(file, stub_partition("2024", "x"), runtime_filters[1])
    assert [condition.current() for condition in conditions] == [None] * 3
    assert [condition.leaves for condition in (*conditions, missing)] == [[]] * 4
    assert matching_row_numbers(file, missing) == [0, 1]
    runtime_filters[0].arrive([2024, 2025])
    runtime_filters[1].arrive(low=0)
    assert [condition.current() for condition in conditions] == [Constant(True), Constant(False), Constant(False)]
    assert [matching_row_numbers(file, condition) for condition in conditions] == [[0, 1], [], []]
    assert matching_row_numbers(file, missing) == []


def test_runtime_filters_on_narrower_columns():
    file, prototype = open_columns(x=pa.array([1, 2, None, 3], "i4")), open_empty(x=pa.int64())
    assert rows(None, file, prototype, runtime=RuntimeFilter("x", [2, 2**40])) == [1]
    assert rows(col("x") < 3, file, prototype, runtime=RuntimeFilter("x", low=2, high=2**40)) == [1]


def test_bloom_filters_do_not_apply_to_narrower_columns():
    prototype = open_columns(x=pa.array([2], "i8"))
    hashes = hash_values(prototype.schema.leaf(0), np.array([2], "i8"))
    bloom = BloomFilter.build(hashes)
    same, narrow = open_columns(x=pa.array([1, 2, None], "i8")), open_columns(x=pa.array([1, 2, None], "i4"))
    assert rows(None, same, prototype, runtime=RuntimeFilter("x", bloom_filter=bloom)) == [1]
    assert rows(None, narrow, prototype, runtime=RuntimeFilter("x", bloom_filter=bloom)) == [0, 1]


def test_runtime_filters_on_invalid_columns_raise():
    file = open_columns(a=[1], s=[{"a": 1}])
    dataset_filter = DatasetFilter(None, StubSchemaByName(file), YEARS)
    with pytest.raises(SchemaError, match="has no column 'c'"):
        dataset_filter.scan_predicate(file, stub_partition("1", "x"), RuntimeFilter("c"))
    with pytest.raises(SchemaError, match="a column of simple values"):
        dataset_filter.scan_predicate(file, stub_partition("1", "x"), RuntimeFilter("s"))
    with pytest.raises(TypeError, match=r"a list of numparq\.RuntimeFilter"):
        dataset_filter.scan_predicate(file, stub_partition("1", "x"), [3])


def test_no_filter_binds_to_no_predicate():
    file = open_columns(a=[1])
    assert DatasetFilter(None, StubSchemaByName(file), YEARS).scan_predicate(file, stub_partition("1", "x")) is None
    assert DatasetFilter(col("year") == 1, StubSchemaByName(file), YEARS).bind_file(
        file, stub_partition("1", "x")
    ) == Constant(True)


def test_filter_agrees_with_pandas_comparison():
    frame = pd.DataFrame({"a": [1.5, None, 3.0]})
    file = open_columns(a=pa.array(frame["a"], "f4", from_pandas=True))
    assert rows(col("a") >= 1.5, file, open_empty(a=pa.float64())) == frame.index[frame["a"] >= 1.5].tolist()


# --- real schemas and partitions --------------------------------------------------------------------------------------


def matching_rows(files, expression, **options):
    """Return the numbers of the matching rows of each file, by the merged schema."""
    dataset_filter = DatasetFilter(
        expression, DatasetSchema.from_files(files, **options), DatasetPartitions((), [()] * len(files))
    )
    return [matching_row_numbers(file, dataset_filter.scan_predicate(file, stub_partition())) for file in files]


def test_columns_resolved_by_position_and_field_id():
    first = open_columns(a=pa.array([1, 2]), b=pa.array(["x", "y"]))
    second = open_columns(p=pa.array([2, 1], "i4"), q=pa.array(["y", None]))
    assert matching_rows([first, second], col("a") == 1, resolve="position") == [[0], [1]]
    assert matching_rows([first, second], col("b").is_null(), resolve="position") == [[], [1]]
    assert matching_rows([first, second], col("a") == 1, resolve="name") == [[0], []]
    files = [numbered({"a": 1, "b": 2}, [[1, 2], [3, 4]]), numbered({"b": 1, "c": 3}, [[2, 1], [0, 0]])]
    assert matching_rows(files, col("a") == 1, resolve="field_id") == [[0], [1]]
    assert matching_rows(files, col("c") == 0, resolve="field_id") == [[], [0, 1]]
    assert matching_rows(files, col("b").is_null(), resolve="field_id") == [[], [0, 1]]


def numbered(ids, columns):
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)}) for name, number in ids.items()]
    out = io.BytesIO()
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), out)
    return OpenFile(out.getvalue())


def test_struct_fields_resolved_by_position():
    first = open_columns(s=pa.array([{"a": 1, "b": {"c": 5}}, None]))
    second = open_columns(t=pa.array([{"x": 3, "y": {"z": 5}}, {"x": 1, "y": None}]))
    assert matching_rows([first, second], col("s.a") == 1, resolve="position") == [[0], [1]]
    assert matching_rows([first, second], col("s.b.c") == 5, resolve="position") == [[0], [0]]
    assert matching_rows([first, second], col("s.b").is_null(), resolve="position") == [[1], [1]]


def test_user_schema_sets_types():
    files = [open_columns(x=pa.array([0.1, 0.5], "f4")), open_columns(y=[1])]
    wide = pa.schema([("x", pa.float64())])
    assert matching_rows(files, col("x") == 0.1, schema=wide) == [[], []]
    assert matching_rows(files, col("x") == 0.1) == [[0], []]
    with pytest.raises(SchemaError, match="no column 'y'"):
        matching_rows(files, col("y") == 1, schema=wide)


def test_lists_of_old_writers():
    new = open_columns(l=pa.array([[1, 2], None, []], pa.list_(pa.int64())))
    old = io.BytesIO()
    pq.write_table(
        pa.table({"l": pa.array([[2], [], None], pa.list_(pa.int32()))}), old, use_compliant_nested_type=False
    )
    files = [new, OpenFile(old.getvalue())]
    assert matching_rows(files, col("l").contains(2)) == [[0], [0]]
    assert matching_rows(files, ~col("l").contains(2)) == [[2], [1]]
    assert matching_rows(files, col("l").is_null()) == [[1], [2]]


def test_partition_types_are_inferred():
    values = [("2024", "07"), ("2023", "x"), (None, "é")]
    partitions = DatasetPartitions(("year", "zone"), values)
    file = open_columns(a=[1])
    schema = DatasetSchema.from_files([file])

    def evaluate(expression):
        dataset_filter = DatasetFilter(expression, schema, partitions)
        return [dataset_filter.bind_file(file, stub_partition(*each)).value for each in values]

    assert evaluate(col("year") >= 2024) == [True, False, False]
    assert evaluate(col("zone") == "07") == [True, False, False]
    assert evaluate(col("zone") > "x") == [False, False, True]
    with pytest.raises(SchemaError, match="'2024' cannot be compared with the column 'year'"):
        evaluate(col("year") == "2024")


TYPES = {
    "int8": ("-5", -5),
    "uint8": ("200", 200),
    "int16": ("300", 300),
    "uint32": ("4000000000", 4_000_000_000),
    "int64": ("-9000000000", -9_000_000_000),
    "uint64": ("18446744073709551615", 2**64 - 1),
    "float64": ("0.1", 0.1),
    "float32": ("0.1", 0.1),
    "bool": ("true", True),
    "str": ("a%b", "a%b"),
    "date": ("2024-02-29", "2024-02-29"),
    "timestamp[ms]": ("2024-02-29 10:00:00.125", "2024-02-29T10:00:00.125"),
    "timestamp[ns]": ("1969-12-31 23:59:59.999999999", np.datetime64(-1, "ns")),
    "timestamp[us, Europe/Berlin]": ("2024-02-29 10:00+01:00", "2024-02-29T09:00Z"),
    "decimal(5, 2)": ("-1.25", "-1.25"),
    "decimal(15, 2)": ("123456789.01", "123456789.01"),
    "decimal(30, 4)": ("-12345678901234567890.0001", "-12345678901234567890.0001"),
}


@pytest.mark.parametrize("name", TYPES)
def test_partition_values_of_every_type(name):
    raw, literal = TYPES[name]
    file = open_columns(a=[1])
    partitions = DatasetPartitions(("k",), [(raw,), (None,)], {"k": name})

    def evaluate(expression):
        dataset_filter = DatasetFilter(expression, DatasetSchema.from_files([file]), partitions)
        return [dataset_filter.bind_file(file, stub_partition(value)).value for value in (raw, None)]

    assert evaluate(col("k") == literal) == [True, False]
    assert evaluate(col("k") != literal) == [False, False]
    assert evaluate(col("k") <= literal) == [True, False]
    assert evaluate(col("k") < literal) == [False, False]
    assert evaluate(col("k").isin([literal])) == [True, False]
    assert evaluate(~col("k").isin([literal])) == [False, False]
    assert evaluate(col("k").is_null()) == [False, True]


def test_partition_values_are_tested_against_bloom_filters():
    partitions = DatasetPartitions(("k",), [("7",), ("8",), (None,)])
    bloom = BloomFilter.build(hash_values(partitions.leaf("k"), np.array([7], "i4")))
    file, runtime_filter = open_columns(a=[1]), RuntimeFilter("k", bloom_filter=bloom)
    dataset_filter = DatasetFilter(None, DatasetSchema.from_files([file]), partitions)
    found = [
        dataset_filter.scan_predicate(file, stub_partition(value), runtime_filter).current()
        for value in ("7", "8", None)
    ]
    assert found == [Constant(True), Constant(False), Constant(False)]


# --- two columns ------------------------------------------------------------------------------------------------------


def test_columns_are_compared_as_the_file_stores_them():
    prototype = open_empty(x=pa.int64(), y=pa.float64(), gone=pa.int64(), day=pa.timestamp("us"), word=pa.string())
    file = open_columns(
        x=pa.array([1, 2, None, 4], "i1"),
        y=pa.array([1, 1.5, 2, NAN], "f4"),
        day=pa.array([DAYS[0], DAYS[1], None, DAYS[1]]),
        word=pa.array(["a", "b", "c", None]),
    )
    assert rows(x <= col("y"), file, prototype) == [0]
    assert rows(~(x <= col("y")), file, prototype) == [1, 3]
    assert rows(x == col("gone"), file, prototype) == []
    assert rows(~(col("gone") == x), file, prototype) == []
    assert rows((col("day") == col("day")) & (col("word") != "a"), file, prototype) == [1]


@pytest.mark.parametrize("negated", [False, True])
def test_columns_are_compared_with_partition_keys(negated):
    prototype = open_empty(x=pa.int64(), z=pa.string())
    file = open_columns(x=pa.array([2023, 2024, None, 2025], "i2"), z=pa.array(["a", None, "b", "a"]))
    for expression, matching, known in (
        (x < col("year"), [0], [0, 1, 3]),
        (x >= col("year"), [1, 3], [0, 1, 3]),
        (col("year") < x, [3], [0, 1, 3]),
        (col("year") <= x, [1, 3], [0, 1, 3]),
        (col("zone") == col("z"), [0, 3], [0, 2, 3]),
        (col("year") == col("year"), [0, 1, 2, 3], [0, 1, 2, 3]),
        (col("year") > col("year"), [], [0, 1, 2, 3]),
    ):
        expected = [row for row in known if row not in matching] if negated else matching
        assert rows(~expression if negated else expression, file, prototype, YEARS, ("2024", "a")) == expected
        assert rows(~expression if negated else expression, file, prototype, YEARS, (None, None)) == []


def test_incomparable_columns_are_an_error():
    file = open_columns(x=pa.array([1]), z=pa.array(["a"]))
    for expression in (x < col("z"), x < col("zone"), col("year") < col("zone")):
        with pytest.raises(SchemaError, match="cannot be compared with"):
            rows(expression, file, file, YEARS, ("2024", "a"))
