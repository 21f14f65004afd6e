"""Schemas: trees and logical types, against pyarrow on real files and against drawn trees."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import ParquetFile
from numparq.errors import InvalidFileError
from numparq.format import column_names
from numparq.format.footer.file_metadata import Footer
from numparq.format.logical_type import LogicalType
from numparq.format.schema import MAX_SCHEMA_DEPTH, Schema
from support.data.thrift_structs import IDL
from support.oracles import thrift as oracle


def schema_of(elements: list[Any]) -> Schema:
    """Return the schema of SchemaElements, in a file without row groups."""
    thing = IDL.FileMetaData(version=1, schema=elements, num_rows=0, row_groups=[])
    encoded = oracle.encode_struct(oracle.fields_of(thing))
    return Schema(Footer(np.frombuffer(encoded, np.uint8), len(encoded)).schema_elements)


def group(name: str, num_children: int, repetition: int | None = 1, **more: Any) -> Any:
    return IDL.SchemaElement(name=name, num_children=num_children, repetition_type=repetition, **more)


def value(name: str, physical: int = 2, repetition: int | None = 1, **more: Any) -> Any:
    return IDL.SchemaElement(name=name, type=physical, repetition_type=repetition, **more)


ROOT = group("root", 1, None)

# --- against pyarrow --------------------------------------------------------------------------------------------------

_UNITS = {"milliseconds": "MILLIS", "microseconds": "MICROS", "nanoseconds": "NANOS"}
_KINDS = {"Null": "UNKNOWN", "Int": "INTEGER"}


def from_pyarrow_json(logical: dict[str, Any]) -> LogicalType | None:
    kind = logical.pop("Type")
    if kind in ("None", "Unknown", "Undefined"):
        return None
    logical.pop("is_from_converted_type", None)
    logical.pop("force_set_converted_type", None)
    names = {"bitWidth": "bit_width", "isSigned": "signed", "isAdjustedToUTC": "utc", "timeUnit": "unit"}
    found = {names.get(name, name): item for name, item in logical.items()}
    if "unit" in found:
        found["unit"] = _UNITS[found["unit"]]
    if found.get("crs") == "":
        found.pop("crs")
    if "algorithm" in found:
        found["algorithm"] = found["algorithm"].upper()
    return LogicalType(_KINDS.get(kind, kind.upper()), **found)


def test_schemas_of_all_files_equal_pyarrow(parquet_testing):
    parquet = pytest.importorskip("pyarrow.parquet")
    compared = 0
    for path in sorted(parquet_testing.rglob("*.parquet")):
        try:
            theirs = parquet.ParquetFile(path).schema
        except (OSError, ValueError):
            continue
        with ParquetFile(path) as file:
            schema = file.schema
        assert schema.num_leaves == len(theirs), path
        for leaf in schema:
            other = theirs.column(leaf.index)
            physical = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
            assert (leaf.name, physical[leaf.physical]) == (other.path, other.physical_type)
            levels = other.max_definition_level, other.max_repetition_level
            assert (leaf.max_definition_level, leaf.max_repetition_level) == levels, (path, leaf)
            expected = from_pyarrow_json(json.loads(other.logical_type.to_json()))
            ours = leaf.logical
            if ours is not None and ours.algorithm == "SPHERICAL":  # pyarrow omits the default
                ours = replace(ours, algorithm=None)
            assert ours == expected, (path, leaf)
            compared += 1
        for position, name in enumerate(schema.columns):
            flat = schema.flat_leaf(position)
            leaves = schema.column_leaves(position)
            assert all(schema.leaf(index).path[0] == name and schema.leaf(index).column == position for index in leaves)
            assert flat is None or (list(leaves) == [flat.index] and schema.leaf(flat.index) == flat)
            assert (flat is None) == (
                len(leaves) != 1 or len(schema.leaf(leaves[0]).path) > 1 or schema.leaf(leaves[0]).repetition == 2
            )
        assert schema.is_flat == all(schema.flat_leaf(i) is not None for i in range(len(schema.columns)))
    assert compared > 500


# --- trees ------------------------------------------------------------------------------------------------------------

TREES = st.recursive(st.just(()), lambda inner: st.lists(inner, min_size=1, max_size=4).map(tuple), max_leaves=25)


@given(st.lists(st.tuples(TREES, st.integers(0, 2)), min_size=1, max_size=6))
def test_random_trees(columns):
    elements: list[Any] = []
    expected: list[tuple] = []
    text: list[str] = ["schema {"]
    words = ("required", "optional", "repeated")

    def add(tree: tuple, repetition: int, path: tuple[str, ...], levels: tuple[int, int], column: int) -> None:
        levels = levels[0] + (repetition > 0), levels[1] + (repetition == 2)
        indent = "  " * len(path)
        if not tree:
            expected.append((len(expected), column, path, *levels, repetition, len(elements)))
            elements.append(value(path[-1], repetition=repetition))
            text.append(f"{indent}{words[repetition]} int64 {path[-1]};")
            return
        elements.append(group(path[-1], len(tree), repetition))
        text.append(f"{indent}{words[repetition]} group {path[-1]} {{")
        for number, inner in enumerate(tree):
            add(inner, (repetition + number) % 3, (*path, f"é{number}"), levels, column)
        text.append(f"{indent}}}")

    elements.append(group("root", len(columns), None))
    for column, (tree, repetition) in enumerate(columns):
        add(tree, repetition, (f"c{column}",), (0, 0), column)
    schema = schema_of(elements)
    assert [
        (
            leaf.index,
            leaf.column,
            leaf.path,
            leaf.max_definition_level,
            leaf.max_repetition_level,
            leaf.repetition,
            leaf.element,
        )
        for leaf in schema
    ] == expected
    assert schema.columns == [f"c{i}" for i in range(len(columns))]
    assert str(schema) == "\n".join([*text, "}"])
    elements.pop()
    with pytest.raises(InvalidFileError):
        schema_of(elements).leaf(0)


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([], "the schema is empty"),
        ([ROOT], "root claims .* columns?, but has"),
        ([ROOT, value("a"), value("b")], "root claims .* columns?, but has"),
        ([group("root", 2, None), group("g", 2), value("a"), value("b")], "ends before all groups have their children"),
        ([ROOT, group("g", 1), value("a"), value("b")], "more elements than its groups have children"),
        ([ROOT, group("g", (1 << 31) - 1), value("a")], "ends before"),
        (
            [ROOT, *(group("g", 1) for _ in range(MAX_SCHEMA_DEPTH + 1)), value("a")],
            f"nested more than {MAX_SCHEMA_DEPTH} levels deep",
        ),
    ],
)
def test_invalid_trees_are_refused(elements, message):
    with pytest.raises(InvalidFileError, match=message):
        schema_of(elements)


def test_invalid_columns_raise_only_when_read():
    elements = [
        group("root", 5, None),
        value("a", 99),
        value("b", 7),
        value("c", 2, 9),
        value("d", 2, None),
        value("e", 7, type_length=-4),
    ]
    schema = schema_of(elements)
    for position, message in enumerate(["physical type 99 is unknown", "no valid type_length", "repetition type 9"]):
        with pytest.raises(InvalidFileError, match=message) as caught:
            schema.flat_leaf(position)
        assert caught.value.where == {"column": "abc"[position]}
    assert schema.flat_leaf(3).max_definition_level == 0, "a column without repetition type is required"
    with pytest.raises(InvalidFileError, match="no valid type_length"):
        schema.leaf(4)
    assert "optional ? a;" in str(schema)


def test_empty_group_has_no_leaves():
    schema = schema_of([group("root", 3, None), value("a"), IDL.SchemaElement(name="g", repetition_type=1), value("b")])
    assert schema.num_leaves == 2
    assert schema.columns == ["a", "g", "b"]
    assert schema.flat_leaf(1) is None
    assert list(schema.column_leaves(1)) == []
    assert list(schema.column_leaves(2)) == [1]
    assert "optional group g {}" in str(schema)
    assert not schema.is_flat


def test_first_of_equal_names_is_found():
    schema = schema_of([group("root", 3, None), value("a"), value("b"), value("a")])
    assert schema.positions == {"a": 0, "b": 1}
    assert schema.leaf(2).name == "a"


def test_names_that_are_not_utf8_are_preserved():
    fields = [(4, oracle.BINARY, b"\xff\xfeA"), (1, oracle.I32, 1), (3, oracle.I32, 0)]
    whole = [
        (1, oracle.I32, 1),
        (2, oracle.LIST, (oracle.STRUCT, [oracle.fields_of(ROOT), fields])),
        (3, oracle.I64, 0),
        (4, oracle.LIST, (oracle.STRUCT, [])),
    ]
    encoded = oracle.encode_struct(whole)
    schema = Schema(Footer(np.frombuffer(encoded, np.uint8), len(encoded)))
    assert schema.columns[0].encode("utf-8", "surrogateescape") == b"\xff\xfeA"


# --- logical types ----------------------------------------------------------------------------------------------------

L = IDL.LogicalType


@pytest.mark.parametrize(
    ("fields", "expected", "text"),
    [
        ({}, None, ""),
        ({"converted_type": 0}, LogicalType("STRING"), " (STRING)"),
        ({"converted_type": 99}, None, ""),
        ({"converted_type": 21}, LogicalType("INTERVAL"), " (INTERVAL)"),
        ({"converted_type": 5}, LogicalType("DECIMAL", precision=-1, scale=0), " (DECIMAL(-1, 0))"),
        ({"converted_type": 5, "precision": 9}, LogicalType("DECIMAL", precision=9, scale=0), " (DECIMAL(9, 0))"),
        (
            {"converted_type": 5, "precision": 9, "scale": 2},
            LogicalType("DECIMAL", precision=9, scale=2),
            " (DECIMAL(9, 2))",
        ),
        ({"converted_type": 10}, LogicalType("TIMESTAMP", unit="MICROS", utc=True), " (TIMESTAMP(MICROS, utc))"),
        ({"converted_type": 12}, LogicalType("INTEGER", bit_width=16, signed=False), " (INTEGER(16, unsigned))"),
        ({"converted_type": 0, "logicalType": L(ENUM=IDL.EnumType())}, LogicalType("ENUM"), " (ENUM)"),
        ({"converted_type": 0, "logicalType": L()}, None, ""),
        (
            {"precision": 1, "logicalType": L(DECIMAL=IDL.DecimalType(2, 12))},
            LogicalType("DECIMAL", precision=12, scale=2),
            " (DECIMAL(12, 2))",
        ),
        (
            {"logicalType": L(TIME=IDL.TimeType(False, IDL.TimeUnit(NANOS=IDL.NanoSeconds())))},
            LogicalType("TIME", unit="NANOS", utc=False),
            " (TIME(NANOS, local))",
        ),
        (
            {"logicalType": L(TIMESTAMP=IDL.TimestampType(True, IDL.TimeUnit()))},
            LogicalType("TIMESTAMP", unit=None, utc=True),
            " (TIMESTAMP(None, utc))",
        ),
        (
            {"logicalType": L(INTEGER=IDL.IntType(8, True))},
            LogicalType("INTEGER", bit_width=8, signed=True),
            " (INTEGER(8, signed))",
        ),
        (
            {"logicalType": L(GEOMETRY=IDL.GeometryType("OGC:CRS84"))},
            LogicalType("GEOMETRY", crs="OGC:CRS84"),
            " (GEOMETRY(OGC:CRS84))",
        ),
        ({"logicalType": L(GEOMETRY=IDL.GeometryType())}, LogicalType("GEOMETRY"), " (GEOMETRY)"),
        (
            {"logicalType": L(GEOGRAPHY=IDL.GeographyType("x", 4))},
            LogicalType("GEOGRAPHY", crs="x", algorithm="KARNEY"),
            " (GEOGRAPHY(x, KARNEY))",
        ),
        (
            {"logicalType": L(GEOGRAPHY=IDL.GeographyType(None, 44))},
            LogicalType("GEOGRAPHY", algorithm="44"),
            " (GEOGRAPHY(44))",
        ),
        *(
            ({"logicalType": L(**{kind: getattr(IDL, struct)()})}, LogicalType(kind), f" ({kind})")
            for kind, struct in [
                ("STRING", "StringType"),
                ("MAP", "MapType"),
                ("LIST", "ListType"),
                ("DATE", "DateType"),
                ("UNKNOWN", "NullType"),
                ("JSON", "JsonType"),
                ("BSON", "BsonType"),
                ("UUID", "UUIDType"),
                ("FLOAT16", "Float16Type"),
                ("VARIANT", "VariantType"),
                ("FILE", "FileType"),
            ]
        ),
    ],
)
def test_logical_types(fields, expected, text):
    schema = schema_of([ROOT, value("a", **fields)])
    assert schema.leaf(0).logical == expected
    assert str(schema) == f"schema {{\n  optional int64 a{text};\n}}"


# --- many columns -----------------------------------------------------------------------------------------------------

NAMES = ["a", "ab", "ba", "x.y", "", "a", "ü", "ÿ", "bb", "x.y", "A", "c"]


@pytest.mark.parametrize("most_sought", [0, 3, 1000])
def test_names_of_many_columns_are_found_without_decoding_them(monkeypatch, most_sought):
    elements = [group("root", len(NAMES), None)]
    elements += [value(name) for name in NAMES]
    few = schema_of(elements)
    expected = few.positions
    assert type(expected) is dict
    monkeypatch.setattr(column_names, "MAX_DECODED", 4)
    monkeypatch.setattr(column_names, "_MAX_SOUGHT", most_sought)
    many = schema_of(elements)
    unknown = ["b", "xy", "aa", "\ud800", "\udcc3\udcbc", "ab ", 3, None, ("a",)]
    for name in [*few.columns, *unknown, *few.columns]:
        assert many.positions.get(name) == expected.get(name), name
        assert (name in many.positions) == (name in expected)
    assert ("columns" in many.__dict__) == (most_sought < 1000)
    assert [many.column_name(place) for place in range(many.num_columns)] == few.columns
    assert many.columns == few.columns
    assert dict(many.positions) == expected


def test_three_of_many_columns_are_read_without_decoding_names(tmp_path, monkeypatch):
    monkeypatch.setattr(column_names, "MAX_DECODED", 4)
    path = tmp_path / "wide.parquet"
    frame = pd.DataFrame({f"c{number}": [number, number + 1] for number in range(40)} | {"x.y": ["p", "q"]})
    numparq.to_parquet(frame, path)
    with ParquetFile(path) as file:
        pd.testing.assert_frame_equal(file.read(["c7", "x.y", "c39"]), frame[["c7", "x.y", "c39"]])
        assert "columns" not in file.schema.__dict__
        with pytest.raises(numparq.SchemaError, match="c40"):
            file.read(["c40"])
        pd.testing.assert_frame_equal(file.read(), frame)
