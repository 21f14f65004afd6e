"""VARIANT columns: the conformance suite, random shredded values, invalid files, DuckDB's files."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import uuid
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import InvalidFileError, SchemaError, read_parquet, to_parquet, variant
from numparq.format.physical_type import INT32
from numparq.format.schema import OPTIONAL
from support.data.variants import (
    EMPTY,
    IDS,
    LEAVES,
    NAMES,
    NO_TYPE,
    exact_value,
    nested_file,
    schemas,
    values,
    variant_node,
)
from support.files.edited_footers import THRIFT, write_with_footer
from support.oracles import variant as oracle

# --- the conformance suite --------------------------------------------------------------------------------------------

CONFLICT = "a variant has both value and typed_value, but typed_value is not an object", "var", 0
SHREDDED = "field 'b' of a variant is in value and also shredded in typed_value", "var", 0
NO_OBJECT = "a variant has both value and typed_value, but value is not an object", "var", 0
# Message, column and row. Files that the suite names INVALID may be read or refused.
REFUSED = {
    "case-040.parquet": CONFLICT,
    "case-042.parquet": CONFLICT,
    "case-043-INVALID.parquet": SHREDDED,
    "case-087.parquet": NO_OBJECT,
    "case-125-INVALID.parquet": SHREDDED,
    "case-127.parquet": (NO_TYPE.format("int32 (INTEGER(32, unsigned))"), "var.typed_value", None),
    "case-128.parquet": NO_OBJECT,
    "case-137.parquet": (NO_TYPE.format("fixed_len_byte_array(4)"), "var.typed_value", None),
}


def cases(folder):
    """Return the cases whose files exist."""
    found = [case for case in json.loads((folder / "cases.json").read_text()) if "parquet_file" in case]
    return [case for case in found if (folder / case["parquet_file"]).exists()]


def split_variant(data):
    """Split a file of the suite into metadata and value."""
    width = (data[0] >> 6) + 1
    first = 1 + width * (2 + int.from_bytes(data[1 : 1 + width], "little"))
    end = first + int.from_bytes(data[first - width : first], "little")
    return {"metadata": data[:end], "value": data[end:]}


def test_conformance_suite_cases(parquet_testing):
    folder = parquet_testing / "shredded_variant"
    count = 0
    for case in cases(folder):
        path = folder / case["parquet_file"]
        if path.name in REFUSED:
            continue
        names = case.get("variant_files", [case.get("variant_file")])
        expected = [None if name is None else split_variant((folder / name).read_bytes()) for name in names]
        assert read_parquet(path, variants="bytes")["var"].tolist() == expected, path.name
        arrow = read_parquet(path, dtype_backend="pyarrow")["var"]
        assert pa.array(arrow).to_pylist() == expected
        decoded = [None if item is None else oracle.decode(**item) for item in expected]
        assert exact_all(read_parquet(path)["var"]) == exact_all(decoded), path.name
        count += 1
    assert count >= 59


def exact_all(items):
    return [exact_value(item) for item in items]


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_conformance_suite_cases(parquet_testing, name):
    folder = parquet_testing / "shredded_variant"
    path = folder / name
    if not path.exists():
        pytest.skip("this copy of the suite does not have the case")
    (case,) = (case for case in cases(folder) if case["parquet_file"] == name)
    assert "error_message" in case or "implementations can choose to error" in case["notes"]
    message, column, row = REFUSED[name]
    place = f"file {str(path)!r}, column {column!r}" + (f", row {row}" if row is not None else "")
    for form in ({}, {"variants": "bytes"}, {"dtype_backend": "pyarrow"}):
        with pytest.raises(InvalidFileError) as caught:
            read_parquet(path, **form)
        assert str(caught.value) == f"{message} ({place})"
    parts = [leaf.path for leaf in numparq.ParquetFile(path).schema][1:]
    assert len(read_parquet(path, columns=["id", *parts])) == 1  # the stored leaves are readable


def test_conformance_suite_is_covered(parquet_testing):
    folder = parquet_testing / "shredded_variant"
    assert {case["parquet_file"] for case in cases(folder)} == {path.name for path in folder.glob("*.parquet")}
    refused = {case["parquet_file"] for case in cases(folder) if "error_message" in case or "notes" in case}
    assert refused <= set(REFUSED)


# --- random values with random shredding ------------------------------------------------------------------------------


def without_typed(parts, schema):
    """Drop the typed fields that a schema lacks from the oracle's shredded value."""
    if schema is None:
        return {"value": parts["value"]}
    typed = parts["typed_value"]
    if isinstance(schema, dict) and typed is not None:
        typed = {key: without_typed(typed[key], inner) for key, inner in schema.items()}
    if isinstance(schema, list) and typed is not None:
        typed = [without_typed(item, schema[0]) for item in typed]
    return {"value": parts["value"], "typed_value": typed}


def storable(value):
    """Whether to_parquet accepts a value for a leaf: no NumPy times and no NaT."""
    if isinstance(value, oracle.TypedScalar):
        return not isinstance(value.value, (np.datetime64, np.timedelta64)) and value.value is not pd.NaT
    return all(map(storable, value.values() if isinstance(value, dict) else value))


@given(st.lists(st.none() | values.filter(storable), min_size=1, max_size=6), schemas, st.integers(1, 3))
def test_random_shredded_values(rows, schema, group_size):
    metadata = oracle.metadata(NAMES)
    stored = [
        row if row is None else {"metadata": metadata, **without_typed(oracle.shred(row, schema, IDS), schema)}
        for row in rows
    ]
    data = to_parquet(
        pd.DataFrame({"v": pd.Series(stored, dtype=object)}), schema=[variant_node(schema)], row_group_size=group_size
    )
    expected = [None if row is None else oracle.to_python(row) for row in rows]
    assert exact_all(read_parquet(data)["v"]) == exact_all(expected)
    encoded = read_parquet(data, variants="bytes")["v"]
    assert [item is None for item in encoded] == [row is None for row in rows]
    assert exact_all(None if item is None else oracle.decode(**item) for item in encoded) == exact_all(expected)
    arrow = pa.array(read_parquet(data, dtype_backend="pyarrow")["v"])
    assert arrow.to_pylist() == encoded.tolist()
    raw = pq.read_table(io.BytesIO(data))["v"].to_pylist()
    for row, item in zip(raw, expected, strict=True):
        if row is not None and not has_uuid(schema):
            rebuilt = oracle.reassemble(row["metadata"], row["value"], row.get("typed_value"))
            assert plain(rebuilt) == plain(item)


def has_uuid(schema):
    if isinstance(schema, (list, dict)):
        return any(map(has_uuid, schema.values() if isinstance(schema, dict) else schema))
    return schema == 20


def plain(value):
    """Replace NaN by a string, which equals itself."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    return "nan" if isinstance(value, float) and value != value else value


@pytest.mark.parametrize(("precision", "kind"), [(9, 8), (18, 9), (38, 10), ("binary", 10)])
def test_shredded_decimals(precision, kind):
    numbers = [decimal.Decimal(f"{n}E-2") for n in (0, 1, -1, 123_456_789, -987_654_321)]
    if precision == "binary":
        typed, logical = pa.array([b"\0", b"\1", b"\xff", b"\0\7\x5b\xcd\x15", b"\xc5\x21\x97\x4f"]), True
    else:
        numbers[3:] = [decimal.Decimal(f"{sign}{'9' * precision}E-2") for sign in ("", "-")]
        typed, logical = pa.array(numbers, pa.decimal128(precision, 2)), None
    data = write_shredded_column(typed, [None] * 5, edit=as_decimal if logical else lambda footer: None)
    assert exact_all(read_parquet(data)["v"]) == exact_all(numbers)
    encoded = read_parquet(data, variants="bytes")["v"].tolist()
    assert {item["value"][0] for item in encoded} == {kind << 2}
    assert exact_all(oracle.decode(**item) for item in encoded) == exact_all(numbers)


def as_decimal(footer):
    footer.schema[4].logicalType = THRIFT.LogicalType(DECIMAL=THRIFT.DecimalType(precision=38, scale=2))


def test_decimals_beyond_128_bits():
    data = write_shredded_column(pa.array([b"\1" + bytes(16)]), [None], edit=as_decimal)
    assert read_parquet(data)["v"].tolist() == [decimal.Decimal(f"{1 << 128}E-2")]
    with pytest.raises(InvalidFileError, match="a decimal exceeds the 128 bits of a VARIANT decimal"):
        read_parquet(data, variants="bytes")


# --- beyond the range of Python types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (11, [0, 2**31 - 1, -(2**31)]),
        (12, [0, 2**62, -(2**62)]),
        (13, [0, 2**62, -(2**62)]),
        (17, [0, -1, 86_400_000_000, 86_399_999_999]),
        (18, [2**63 - 1, -(2**63) + 1]),
        (19, [2**63 - 1, -(2**63) + 1]),
    ],
)
def test_dates_and_times_beyond_python_types(kind, numbers):
    """Shredded and unshredded values are equal. pyarrow writes them as plain integers."""
    physical, logical, _ = LEAVES[kind]
    numbers_type = pa.int32() if physical == INT32 else pa.int64()
    typed = pa.array([*numbers, None], numbers_type)
    raw = [None] * len(numbers) + [
        oracle.TypedScalar(kind, numbers[1].to_bytes(4 if physical == INT32 else 8, "little", signed=True)).encoded
    ]
    data = write_shredded_column(typed, raw, logical)
    width = 4 if physical == INT32 else 8
    expected = [
        oracle.primitive_to_python(kind, n.to_bytes(width, "little", signed=True)) for n in [*numbers, numbers[1]]
    ]
    assert exact_all(read_parquet(data)["v"]) == exact_all(expected)
    encoded = read_parquet(data, variants="bytes")["v"]
    assert exact_all(oracle.decode(**item) for item in encoded) == exact_all(expected)


THRIFT_UNITS = {"MICROS": "MicroSeconds", "NANOS": "NanoSeconds"}


def write_shredded_column(typed, raw, logical=None, edit=lambda footer: None):
    """Write a column ``v`` whose ``typed_value`` is a pyarrow array, annotated in the footer."""
    fields = [
        pa.field("metadata", pa.binary(), False),
        pa.field("value", pa.binary()),
        pa.field("typed_value", typed.type),
    ]
    parts = [pa.array([EMPTY] * len(typed), pa.binary()), pa.array(raw, pa.binary()), typed]
    table = pa.table({"v": pa.StructArray.from_arrays(parts, fields=fields)})

    def annotate(footer):
        footer.schema[1].logicalType = THRIFT.LogicalType(VARIANT=THRIFT.VariantType(specification_version=1))
        leaf = footer.schema[4]
        if logical is not None and logical.kind == "DATE":
            leaf.logicalType = THRIFT.LogicalType(DATE=THRIFT.DateType())
        elif logical is not None:
            name = THRIFT_UNITS[logical.unit]
            unit = THRIFT.TimeUnit(**{logical.unit: getattr(THRIFT, name)()})
            kind = {"TIME": THRIFT.TimeType, "TIMESTAMP": THRIFT.TimestampType}[logical.kind]
            leaf.logicalType = THRIFT.LogicalType(**{logical.kind: kind(isAdjustedToUTC=logical.utc, unit=unit)})
        edit(footer)

    return write_with_footer(table, annotate, store_decimal_as_integer=True)


# --- missing values and nulls -----------------------------------------------------------------------------------------


def test_sql_and_variant_nulls():
    """Both nulls read as None, and differ as bytes. A missing value is a Variant null."""
    rows = [
        None,
        {"metadata": EMPTY, "value": b"\0", "typed_value": None},
        {"metadata": EMPTY, "value": None, "typed_value": None},
        {"metadata": EMPTY, "value": None, "typed_value": 0},
    ]
    data = to_parquet(pd.DataFrame({"v": pd.Series(rows, dtype=object)}), schema=[variant_node(6)])
    assert read_parquet(data)["v"].tolist() == [None, None, None, 0]
    encoded = read_parquet(data, variants="bytes")["v"].tolist()
    null = {"metadata": EMPTY, "value": b"\0"}
    assert encoded == [None, null, null, {"metadata": EMPTY, "value": b"\x18" + bytes(8)}]
    arrow = read_parquet(data, dtype_backend="pyarrow")["v"]
    assert arrow.isna().tolist() == [True, False, False, False]
    assert str(arrow.dtype) == "struct<metadata: binary not null, value: binary not null>[pyarrow]"


def test_missing_elements_are_nulls():
    rows = [
        {
            "metadata": EMPTY,
            "value": None,
            "typed_value": [
                {"value": None, "typed_value": 1},
                {"value": None, "typed_value": None},
                {"value": b"\0", "typed_value": None},
            ],
        }
    ]
    data = to_parquet(pd.DataFrame({"v": rows}), schema=[variant_node([6])])
    assert read_parquet(data)["v"].tolist() == [[1, None, None]]
    encoded = read_parquet(data, variants="bytes")["v"][0]
    assert variant.decode(**encoded) == [1, None, None]


def test_object_fields_are_sorted_by_name():
    names = ["z", "é", "a"]
    ids = {name: number for number, name in enumerate(names)}
    value = {"z": oracle.TypedScalar(3, b"\1"), "é": oracle.TypedScalar(3, b"\2"), "a": oracle.TypedScalar(3, b"\3")}
    parts = oracle.shred(value, {"z": 3, "é": 3}, ids)
    data = to_parquet(
        pd.DataFrame({"v": [{"metadata": oracle.metadata(names), **parts}]}), schema=[variant_node({"z": 3, "é": 3})]
    )
    assert list(read_parquet(data)["v"][0].items()) == [("a", 3), ("z", 1), ("é", 2)]
    encoded = read_parquet(data, variants="bytes")["v"][0]
    assert list(variant.decode(**encoded)) == ["a", "z", "é"]


# --- nested variants, leaf paths, row ranges --------------------------------------------------------------------------


def test_lists_of_variants():
    data, expected = nested_file()
    got = read_parquet(data)["l"]
    assert [None if items is None else items.tolist() for items in got] == expected
    for rows in ((3, 30), (7, 14), (39, 40)):
        part = read_parquet(data, row_range=rows)["l"]
        assert [None if items is None else items.tolist() for items in part] == expected[slice(*rows)]
    encoded = read_parquet(data, variants="bytes")["l"]
    assert [
        None if items is None else [None if item is None else variant.decode(**item) for item in items]
        for items in encoded
    ] == expected
    arrow = pa.array(read_parquet(data, dtype_backend="pyarrow")["l"])
    assert arrow.type == pa.list_(
        pa.field(
            "element", pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
        )
    )
    assert arrow.to_pylist() == [None if items is None else items.tolist() for items in encoded]


def test_leaf_paths_return_stored_values():
    data, expected = nested_file()
    got = read_parquet(data, columns=["l.list.element.typed_value.a.typed_value"])["l"]
    for items, expected_items in zip(got, expected, strict=True):
        if expected_items is not None:
            typed = [item and item["typed_value"] for item in items]
            assert [item and item["a"]["typed_value"] for item in typed] == [
                item["a"] if isinstance(item, dict) else None for item in expected_items
            ]
    schema = [variant_node({"a": 6})]
    row = {"metadata": oracle.metadata(["a"]), "value": None, "typed_value": {"a": {"value": None, "typed_value": 5}}}
    data = to_parquet(pd.DataFrame({"v": [row]}), schema=schema)
    assert read_parquet(data, columns=["v.typed_value.a.typed_value"]).iloc[0].tolist() == [5]
    assert read_parquet(data, columns=["v.typed_value"])["typed_value"].tolist() == [row["typed_value"]]
    assert read_parquet(data, columns=["v.metadata"])["metadata"].tolist() == [row["metadata"]]
    with pytest.raises(SchemaError):
        read_parquet(data, columns=["v.a"])


def test_unannotated_groups_stay_structs():
    metadata, value = variant.encode({"a": 1})
    frame = pd.DataFrame({"v": [{"metadata": metadata, "value": value}]})
    got = read_parquet(to_parquet(frame))["v"][0]
    assert got == {"metadata": metadata, "value": value}
    assert variant.decode(**got) == {"a": 1}


def test_no_rows_and_only_nulls():
    data = to_parquet(pd.DataFrame({"v": pd.Series([None], dtype=object)}), schema=[variant_node({"a": [6]})])
    for form in ({}, {"variants": "bytes"}, {"dtype_backend": "pyarrow"}, {"dtype_backend": "numpy_nullable"}):
        assert len(read_parquet(data, nrows=0, **form)["v"]) == 0
        assert read_parquet(data, **form)["v"].isna().tolist() == [True]


def test_invalid_variants_option():
    data = to_parquet(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="variants must be one of 'values', 'bytes', not 'json'"):
        read_parquet(data, variants="json")


# --- other writers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "select case when i % 5 = 0 then null when i % 5 = 1 then i::variant when i % 5 = 2 then ('s' || i)::variant "
        "else {'a': i, 'b': [i, i + 1], 'c': {'d': i / 2}}::variant end v from range(300) t(i)",
        "select {'a': i, 'b': ['x' || i], 'c': date '2020-01-01' + i::int, 'd': i::decimal(9, 2)}::variant v "
        "from range(300) t(i)",
        "select {'t': make_timestamp(i * 1000003), 'u': uuid(), 'f': i::float, "
        "'b': i % 2 = 0, 'x': 'y'::blob, 'h': i::hugeint}::variant v from range(300) t(i)",
    ],
)
def test_duckdb_files(tmp_path, query):
    """DuckDB shreds by the values. It is the oracle except where its types differ."""
    connection = pytest.importorskip("duckdb").connect()
    for number, options in enumerate(["", ", row_group_size 100", ", shredding {v: 'struct(a bigint, q varchar)'}"]):
        path = str(tmp_path / f"{number}.parquet")
        connection.execute("create or replace table t as " + query)
        connection.execute(f"copy t to '{path}' (format parquet{options})")
        expected = [row[0] for row in connection.execute(f"select v from read_parquet('{path}')").fetchall()]
        got = read_parquet(path)["v"].tolist()
        assert list(map(loose, got)) == list(map(loose, expected))
        encoded = read_parquet(path, variants="bytes")["v"].tolist()
        assert [item and variant.decode(**item) for item in encoded] == got


def loose(value):
    """Normalise what DuckDB returns differently: naive timestamps, UUIDs as strings."""
    if isinstance(value, dict):
        return {key: loose(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(loose, value))
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    return str(value) if isinstance(value, uuid.UUID) else value


def nullable(node):
    """Return a VARIANT node with all nodes optional."""
    return replace(node, repetition=OPTIONAL, children=tuple(nullable(child) for child in node.children))


def test_optional_metadata_and_field_groups():
    """Some writers make the metadata optional, DuckDB up to 1.5 the field groups: a null group is a missing field."""
    field = {"value": None, "typed_value": 5}
    rows = [
        {"metadata": EMPTY, "value": None, "typed_value": {"a": field, "b": None}},
        None,
        {"metadata": EMPTY, "value": None, "typed_value": {"a": None, "b": None}},
        {"metadata": EMPTY, "value": b"\x0c\7", "typed_value": None},
    ]
    frame = pd.DataFrame({"v": pd.Series(rows, dtype=object)})
    data = to_parquet(frame, schema=[nullable(variant_node({"a": 6, "b": 6}))])
    assert read_parquet(data)["v"].tolist() == [{"a": 5}, None, {}, 7]
    rows[2]["metadata"] = None
    plain_rows = [None if row is None else {"metadata": row["metadata"], "value": b"\x0c\7"} for row in rows]
    parts = pd.ArrowDtype(pa.struct({"metadata": pa.binary(), "value": pa.binary()}))
    for typed, items, dtype in (({"a": 6, "b": 6}, rows, object), (None, plain_rows, parts)):
        frame = pd.DataFrame({"v": pd.Series(items, dtype=dtype)})
        data = to_parquet(frame, schema=[nullable(variant_node(typed))])
        for form in ({}, {"variants": "bytes"}, {"dtype_backend": "pyarrow"}):
            with pytest.raises(InvalidFileError, match="a variant has no metadata") as caught:
                read_parquet(data, **form)
            assert (caught.value.where["column"], caught.value.where["row"]) == ("v", 2)
