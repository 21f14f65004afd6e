"""VARIANT columns that break the specification: groups, values, damaged bytes."""

from __future__ import annotations

import random
import re

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import InvalidFileError, ParquetError, UnsupportedError, read_parquet, to_parquet
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.data.variants import EMPTY, LIST, METADATA, NO_TYPE, STRING, VARIANT, nested_file, variant_node
from support.files.schema_only_files import build_empty_file
from support.files.spec_violations import edit_footer, logical
from support.oracles import variant as oracle

# --- invalid groups ---------------------------------------------------------------------------------------------------

BINARY = SchemaNode("value", OPTIONAL, BYTE_ARRAY)
LEAF = SchemaNode("typed_value", OPTIONAL, INT64)


def group(*children, **more):
    return SchemaNode("v", OPTIONAL, None, 0, LogicalType("VARIANT", **more), children)


def obj(*children):
    return SchemaNode("typed_value", OPTIONAL, children=children)


def array(element, name="element"):
    return SchemaNode("typed_value", OPTIONAL, None, 0, LIST, (SchemaNode("list", REPEATED, children=(element,)),))


NO_OTHERS = "the node must be a group with the fields metadata, value, typed_value only"
INNER = "the node must be a group with the fields value, typed_value only"
GROUPS = [
    (group(BINARY), "a VARIANT must have a binary field metadata", "v"),
    (group(SchemaNode("metadata", REQUIRED, INT32), BINARY), "a VARIANT must have a binary field metadata", "v"),
    (
        group(SchemaNode("metadata", REQUIRED, BYTE_ARRAY, 0, STRING), BINARY),
        "a VARIANT must have a binary field metadata",
        "v",
    ),
    (group(METADATA), "the group has neither value nor typed_value", "v"),
    (group(METADATA, SchemaNode("value", OPTIONAL, INT32)), "the field value must be binary", "v"),
    (group(METADATA, SchemaNode("value", REPEATED, BYTE_ARRAY)), "the field value must be binary", "v"),
    (group(METADATA, BINARY, SchemaNode("more", OPTIONAL, INT32)), NO_OTHERS, "v"),
    (group(METADATA, BINARY, BINARY), NO_OTHERS, "v"),
    (
        group(METADATA, BINARY, array(SchemaNode("element", OPTIONAL, children=(BINARY,)))),
        "the elements of a shredded array must be required",
        "v.typed_value.list.element",
    ),
    (group(METADATA, BINARY, array(SchemaNode("element", REQUIRED, INT64))), INNER, "v.typed_value.list.element"),
    (
        group(METADATA, BINARY, array(SchemaNode("element", REQUIRED, children=(METADATA, BINARY)))),
        INNER,
        "v.typed_value.list.element",
    ),
    (group(METADATA, BINARY, obj(SchemaNode("a", REQUIRED, INT64))), INNER, "v.typed_value.a"),
    (group(METADATA, BINARY, obj(SchemaNode("a", REPEATED, children=(BINARY,)))), INNER, "v.typed_value.a"),
    (
        group(METADATA, BINARY, obj(*[SchemaNode("a", REQUIRED, children=(BINARY,))] * 2)),
        "two fields of a shredded object have the same name",
        "v.typed_value",
    ),
    (
        group(
            METADATA,
            BINARY,
            SchemaNode(
                "typed_value",
                OPTIONAL,
                None,
                0,
                LogicalType("MAP"),
                (
                    SchemaNode(
                        "key_value",
                        REPEATED,
                        children=(SchemaNode("key", REQUIRED, BYTE_ARRAY), SchemaNode("value", REQUIRED, INT32)),
                    ),
                ),
            ),
        ),
        "a VARIANT cannot be shredded as a MAP",
        "v.typed_value",
    ),
    *[
        (
            group(METADATA, BINARY, SchemaNode("typed_value", OPTIONAL, physical, length, logical)),
            NO_TYPE.format(name),
            "v.typed_value",
        )
        for physical, length, logical, name in [
            (INT64, 0, LogicalType("TIMESTAMP", unit="MILLIS", utc=True), "int64 (TIMESTAMP(MILLIS, utc))"),
            (INT64, 0, LogicalType("TIME", unit="MICROS", utc=True), "int64 (TIME(MICROS, utc))"),
            (INT64, 0, LogicalType("TIME", unit="NANOS", utc=False), "int64 (TIME(NANOS, local))"),
            (INT32, 0, LogicalType("TIME", unit="MILLIS", utc=False), "int32 (TIME(MILLIS, local))"),
            (INT64, 0, LogicalType("INTEGER", bit_width=64, signed=False), "int64 (INTEGER(64, unsigned))"),
            (BYTE_ARRAY, 0, LogicalType("JSON"), "binary (JSON)"),
            (BYTE_ARRAY, 0, LogicalType("DECIMAL", precision=39, scale=0), "binary (DECIMAL(39, 0))"),
            (FIXED_LEN_BYTE_ARRAY, 2, LogicalType("FLOAT16"), "fixed_len_byte_array(2) (FLOAT16)"),
            (FIXED_LEN_BYTE_ARRAY, 16, None, "fixed_len_byte_array(16)"),
            (3, 0, None, "int96"),
        ]
    ],
]


@pytest.mark.parametrize(("node", "message", "column"), GROUPS, ids=range(len(GROUPS)))
def test_invalid_groups(node, message, column):
    data = build_empty_file([SchemaNode("n", OPTIONAL, INT64), node])
    for form in ({}, {"variants": "bytes"}, {"dtype_backend": "pyarrow"}):
        with pytest.raises(InvalidFileError, match=re.escape(message)) as caught:
            read_parquet(data, **form)
        assert caught.value.where["column"] == column
    assert read_parquet(data, columns=["n"]).columns.tolist() == ["n"]


FIELD_TYPES = {"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64(), "other": pa.int32()}
FIELD_VALUES = {"metadata": b"\1\0\0", "value": b"\x0c\7", "typed_value": 5, "other": 1}


def annotated_group(*fields):
    """Write a group of some fields as a VARIANT, of one row."""

    def change(footer):
        footer.schema[1].logicalType = logical("VARIANT")["logicalType"]

    kind = pa.struct([pa.field(name, FIELD_TYPES[name], nullable=name != "metadata") for name in fields])
    rows = pd.DataFrame({"v": [{name: FIELD_VALUES[name] for name in fields}]})
    return edit_footer(to_parquet(rows, schema={"v": kind}, store_schema=False), change)


MALFORMED = [("value",), ("value", "typed_value"), ("typed_value",), ("metadata",), ("metadata", "value", "other")]
READS = {
    "read": lambda dataset: dataset.read(),
    "bytes": lambda dataset: dataset.read(variants="bytes"),
    "to_arrow": lambda dataset: dataset.to_arrow(),
    "batches": lambda dataset: list(dataset.iter_batches()),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("fields", MALFORMED, ids="-".join)
def test_invalid_groups_of_one_file_of_a_dataset(tmp_path, fields, read):
    for sound in (("metadata", "value"), ("metadata", "value", "typed_value")):
        for number, group_fields in enumerate((sound, fields)):
            (tmp_path / f"{number}.parquet").write_bytes(annotated_group(*group_fields))
        with pytest.raises(ParquetError, match=r"metadata|VARIANT|value") as caught:
            READS[read](numparq.Dataset(tmp_path))
        assert caught.value.where["column"] == "v"
        assert numparq.Dataset(tmp_path).count_rows() == 2
        assert numparq.Dataset(tmp_path).read(on_error="skip").attrs["numparq.lost"]


def test_specification_versions():
    frame = pd.DataFrame({"n": [1], "v": [{"metadata": EMPTY, "value": b"\x0c\7"}]})
    for version in (None, 1):
        data = to_parquet(frame, schema={"v": group(METADATA, BINARY, version=version)})
        assert read_parquet(data)["v"].tolist() == [7]
    data = to_parquet(frame, schema={"v": group(METADATA, BINARY, version=2)})
    assert "VARIANT(2)" in str(numparq.ParquetFile(data).schema)
    with pytest.raises(UnsupportedError) as caught:
        read_parquet(data)
    assert caught.value.message == "the VARIANT has specification version 2, but numparq supports version 1"
    assert caught.value.where["column"] == "v"
    assert read_parquet(data, columns=["n"])["n"].tolist() == [1]
    assert read_parquet(data, columns=["v.value"])["value"].tolist() == [b"\x0c\7"]


# --- invalid values ---------------------------------------------------------------------------------------------------

A, B = oracle.metadata(["a"]), oracle.metadata(["a", "b"], 1)
OBJECT = oracle.encode({"a": oracle.TypedScalar(3, b"\1")}, {"a": 0})
VALUES = [
    (
        6,
        {"value": b"\0", "typed_value": 1},
        "a variant has both value and typed_value, but typed_value is not an object",
    ),
    (
        [6],
        {"value": b"\0", "typed_value": []},
        "a variant has both value and typed_value, but typed_value is not an object",
    ),
    (
        [6],
        {"value": None, "typed_value": [{"value": b"\0", "typed_value": 1}]},
        "a variant has both value and typed_value, but typed_value is not an object",
    ),
    (
        {"a": 6},
        {"value": b"\0", "typed_value": {"a": {"value": None, "typed_value": 1}}},
        "a variant has both value and typed_value, but value is not an object",
    ),
    (
        {"a": 6},
        {"value": OBJECT, "typed_value": {"a": {"value": None, "typed_value": None}}},
        "field 'a' of a variant is in value and also shredded in typed_value",
    ),
    (
        {"a": 6},
        {"value": OBJECT, "typed_value": None},
        "the value of a variant is an object, but its typed_value is null",
    ),
    (
        {"b": 6},
        {"value": b"\2\0\0", "typed_value": None},
        "the value of a variant is an object, but its typed_value is null",
    ),
    (
        {"a": 6},
        {"value": None, "typed_value": {"a": {"value": b"\0", "typed_value": 1}}},
        "a variant has both value and typed_value, but typed_value is not an object",
    ),
]


@pytest.mark.parametrize(("schema", "row", "message"), VALUES, ids=range(len(VALUES)))
def test_invalid_values(schema, row, message):
    fine = {"metadata": B, "value": None, "typed_value": None}
    rows = [None, fine, fine, {"metadata": B, **row}, fine]
    data = to_parquet(
        pd.DataFrame({"v": pd.Series(rows, dtype=object)}), schema=[variant_node(schema)], row_group_size=2
    )
    for form in ({}, {"variants": "bytes"}, {"dtype_backend": "pyarrow"}):
        with pytest.raises(InvalidFileError) as caught:
            read_parquet(data, **form)
        assert caught.value.message == message
        assert caught.value.where == {"file": "<bytes>", "column": "v", "row": 3} | {"file": caught.value.where["file"]}


def test_invalid_value_in_a_list():
    """The error names the row, not the position among the elements."""
    good, bad = {"metadata": EMPTY, "value": b"\x0c\1"}, {"metadata": EMPTY, "value": b"\x0c"}
    element = SchemaNode("element", OPTIONAL, None, 0, VARIANT, (METADATA, BINARY))
    node = SchemaNode("l", OPTIONAL, None, 0, LIST, (SchemaNode("list", REPEATED, children=(element,)),))
    rows = [[good] * 5, [], None, [good, bad], [good]]
    data = to_parquet(pd.DataFrame({"l": pd.Series(rows, dtype=object)}), schema=[node])
    with pytest.raises(InvalidFileError, match="ends at byte 2") as caught:
        read_parquet(data)
    assert caught.value.where["row"] == 3
    assert read_parquet(data, variants="bytes")["l"][3].tolist() == [good, bad]  # unshredded values are not validated


def test_damaged_metadata():
    rows = [{"metadata": EMPTY, "value": b"\x0c\1"}, {"metadata": b"\x01\x05", "value": b"\x0c\1"}]
    data = to_parquet(pd.DataFrame({"v": rows}), schema=[variant_node(None)])
    with pytest.raises(InvalidFileError, match="ends within the offsets of its 5 field names") as caught:
        read_parquet(data)
    assert (caught.value.where["column"], caught.value.where["row"]) == ("v", 1)


def test_shredded_names_missing_from_metadata():
    row = {"metadata": EMPTY, "value": None, "typed_value": {"a": {"value": None, "typed_value": 5}}}
    data = to_parquet(pd.DataFrame({"v": [row]}), schema=[variant_node({"a": 6})])
    assert read_parquet(data)["v"].tolist() == [{"a": 5}]
    with pytest.raises(InvalidFileError, match="shredded field 'a' is missing from") as caught:
        read_parquet(data, variants="bytes")
    assert caught.value.where["row"] == 0


@pytest.mark.slow
def test_damaged_files_are_read_or_refused():
    """A flipped bit ends in values or in an error with a message."""
    data, _ = nested_file()
    random.seed(9)
    num_read = num_refused = 0
    for _ in range(150):
        place = random.randrange(4, len(data) - 8)
        damaged = data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
        for form in ("values", "bytes"):
            try:
                read_parquet(damaged, variants=form, verify_crc=False)
                num_read += 1
            except ParquetError as error:
                assert error.message
                num_refused += 1
    assert num_read >= 100
    assert num_refused >= 50
