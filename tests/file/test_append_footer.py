"""Footers after an append: row groups and unknown fields byte for byte, schemas compared, indexes continued."""

from __future__ import annotations

import base64
import io
import json
import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import InvalidFileError, SchemaError, UnsupportedError
from numparq.file.append import extend_key_values
from numparq.file.append_schema import conform_to_file
from numparq.file.reader import ParquetFile
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.rewrite import row_groups_with_file_path, split_footer
from numparq.format.footer.tail import read_footer
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, DOUBLE, INT32, INT64
from numparq.format.schema import REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode, to_schema_elements
from numparq.format.thrift.encode import encode_struct
from numparq.io.local_source import BytesSource
from support.files.edited_footers import THRIFT, write_with_footer
from support.oracles import thrift as oracle


def write_by_pandas(df: pd.DataFrame, **options) -> bytes:
    buffer = io.BytesIO()
    df.to_parquet(buffer, engine="pyarrow", **options)
    return buffer.getvalue()


def footer_of(raw: bytes) -> tuple[Footer, int]:
    return read_footer(BytesSource(raw))


def replace_footer(raw: bytes, start: int, footer: bytes) -> bytes:
    return raw[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def doubled(raw: bytes, metadata: dict | None = None) -> bytes:
    """List every row group twice, as if a file were appended to itself without copying rows."""
    footer, start = footer_of(raw)
    parts = split_footer(footer)
    encoded = parts.encode(parts.row_groups * 2, parts.num_rows * 2, metadata or {}, "numparq")
    return replace_footer(raw, start, encoded)


FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"], "c": pd.Categorical(["u", "v", "u"])})


# --- splitting and encoding footers ---------------------------------------------------------------------------------


def test_footer_round_trip():
    for options in ({}, {"row_group_size": 1, "write_page_index": True}, {"store_schema": False, "version": "1.0"}):
        raw = write_by_pandas(FRAME, **options)
        footer, start = footer_of(raw)
        parts = split_footer(footer)
        assert len(parts.row_groups) == len(footer.row_group_num_rows)
        assert parts.num_rows == 3
        assert parts.key_value_metadata == footer.key_value_metadata
        assert parts.column_orders == ["TYPE_ORDER"] * 3
        encoded = parts.encode(parts.row_groups, parts.num_rows, {}, "somebody else")
        assert replace_footer(raw, start, encoded) == raw, "pyarrow writes its fields in the same order"


def test_appended_row_groups():
    raw = doubled(write_by_pandas(FRAME, row_group_size=2), {"new": "value"})
    table = pq.read_table(io.BytesIO(raw))
    assert table.column("a").to_pylist() == [1, 2, 3, 1, 2, 3]
    metadata = pq.read_metadata(io.BytesIO(raw))
    assert metadata.num_rows == 6
    assert metadata.num_row_groups == 4
    assert metadata.metadata[b"new"] == b"value"
    assert metadata.created_by.startswith("parquet-cpp"), "the writer of the statistics"
    with ParquetFile(raw) as file:
        assert file.read()["b"].fillna("-").tolist() == ["x", "-", "z"] * 2


def test_key_values_keep_their_order():
    def edit(footer) -> None:
        pair = THRIFT.KeyValue
        footer.key_value_metadata = [pair("k", "1"), pair("none"), pair("k", "2"), pair("other", "3")]
        footer.created_by = None
        footer.column_orders = None

    raw = write_with_footer(pa.table({"a": [1]}), edit)
    parts = split_footer(footer_of(raw)[0])
    assert parts.key_values == [(b"k", b"1"), (b"none", None), (b"k", b"2"), (b"other", b"3")]
    assert parts.column_orders is None
    encoded = parts.encode(parts.row_groups, 1, {"k": "new", "z": b"\xff"}, "numparq version 1")
    again = Footer(np.frombuffer(encoded, np.uint8), len(encoded))
    pairs = [(pair.key, pair.value) for pair in again.record.key_value_metadata]
    assert pairs == [("k", "new"), ("none", None), ("k", "2"), ("other", "3"), ("z", "\udcff")]
    assert again.created_by == "numparq version 1"


UNKNOWN = [
    (10, oracle.I64, -5),
    (11, oracle.TRUE, True),
    (12, oracle.FALSE, False),
    (13, oracle.DOUBLE, 1.5),
    (14, oracle.I8, -3),
    (15, oracle.LIST, (oracle.TRUE, [True, False])),
    (16, oracle.SET, (oracle.BINARY, [b"a" * 200, b""])),
    (17, oracle.I16, 300),
    (18, oracle.MAP, (oracle.BINARY, oracle.LIST, [(b"k", (oracle.I32, [1, 2]))])),
    (19, oracle.UUID, bytes(16)),
    (40, oracle.STRUCT, [(1, oracle.I32, 7), (300, oracle.STRUCT, []), (301, oracle.FALSE, False)]),
    (41, oracle.BINARY, b"b"),
    (60, oracle.MAP, (oracle.I32, oracle.I32, [])),
    (32767, oracle.BINARY, b"an extension"),
]


def test_unknown_fields_are_preserved():
    raw = write_by_pandas(FRAME)
    footer, start = footer_of(raw)
    size = footer.length
    plain = raw[start : start + size]
    last = 7  # column_orders
    future = bytearray()
    for number, kind, value in UNKNOWN:
        body = oracle.encode_struct([(number - last, kind, value)])[:-1] if number - last < 16 else None
        future += body if body is not None else oracle.encode_struct([(number, kind, value)])[:-1]
        last = number
    encoded = plain[:-1] + bytes(future) + b"\0"
    parts = split_footer(Footer(np.frombuffer(encoded, np.uint8), len(encoded)))
    assert {number: kind for number, kind, _ in UNKNOWN}.items() <= {n: k for n, (k, _) in parts.fields.items()}.items()
    again = parts.encode(parts.row_groups, parts.num_rows, {}, "x")
    assert again == encoded
    assert len(parts.encode(parts.row_groups * 2, 6, {}, "x")) == len(encoded) + len(parts.row_groups[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: setattr(f, "encryption_algorithm", THRIFT.EncryptionAlgorithm(AES_GCM_V1=THRIFT.AesGcmV1())),
            "encrypted or",
        ),
        (lambda f: setattr(f, "footer_signing_key_metadata", b"k"), "encrypted or signed"),
        (lambda f: setattr(f.row_groups[0].columns[0], "file_path", "other"), "row groups of other files"),
        (lambda f: setattr(f.row_groups[0].columns[0], "encrypted_column_metadata", b"x"), "encrypted columns"),
    ],
)
def test_files_that_cannot_be_appended_to(change, message):
    raw = write_with_footer(pa.table({"a": [1]}), change)
    with pytest.raises(UnsupportedError, match=f"{message}.*: nothing can be appended to it"):
        split_footer(footer_of(raw)[0])
    with pytest.raises(UnsupportedError, match=f"{message}.*: a _metadata file cannot describe it; use write_"):
        row_groups_with_file_path(footer_of(raw)[0], "part.parquet")


def test_duplicate_field():
    raw = write_by_pandas(FRAME)
    footer, start = footer_of(raw)
    plain = raw[start : start + footer.length]
    encoded = plain[:-1] + oracle.encode_struct([(3, oracle.I64, 99)])[:-1].replace(b"\x36", b"\x06\x06", 1) + b"\0"
    with pytest.raises(InvalidFileError, match="the footer has field 3 twice"):
        split_footer(Footer(np.frombuffer(encoded, np.uint8), len(encoded)))


def test_no_row_groups_and_many():
    empty = split_footer(footer_of(write_by_pandas(FRAME.iloc[:0]))[0])
    assert empty.num_rows == 0
    meta = {"version": 1, "schema": [{"name": "s", "num_children": 0}], "num_rows": 0, "row_groups": []}
    meta["row_groups"] = [{"columns": [], "total_byte_size": 0, "num_rows": 1}] * 40_000
    encoded = encode_struct("FileMetaData", meta)
    parts = split_footer(Footer(np.frombuffer(encoded, np.uint8), len(encoded)))
    assert len(parts.row_groups) == 40_000
    assert parts.encode(parts.row_groups, 40_000, {}, "x")[-3:-1] == b"\x01x"


# --- schemas --------------------------------------------------------------------------------------------------------


def footer_with(columns: list[SchemaNode]) -> Footer:
    encoded = encode_struct(
        "FileMetaData", {"version": 1, "schema": to_schema_elements(columns), "num_rows": 0, "row_groups": []}
    )
    return Footer(np.frombuffer(encoded, np.uint8), len(encoded))


def leaf(name: str, physical: int = INT64, kind: LogicalType | None = None, **more) -> SchemaNode:
    return SchemaNode(name, physical=physical, logical=kind, **more)


def list_of(name: str, inner: str, element: SchemaNode) -> SchemaNode:
    return SchemaNode(name, logical=LogicalType("LIST"), children=(SchemaNode(inner, REPEATED, children=(element,)),))


SECONDS = LogicalType("TIMESTAMP", unit="MILLIS", utc=True)


def test_equal_schemas():
    columns = [
        leaf("a"),
        leaf("b", BYTE_ARRAY, LogicalType("STRING")),
        list_of("c", "list", leaf("element")),
        SchemaNode("d", children=(leaf("x"), leaf("y", DOUBLE))),
    ]
    assert conform_to_file(footer_with(columns), columns) == columns
    assert conform_to_file(footer_with([]), []) == []


def test_schema_details_come_from_the_file():
    file = [list_of("a", "bag", leaf("item", field_id=4)), leaf("b", INT32), leaf("c", field_id=9)]
    frame = [
        list_of("a", "list", leaf("element")),
        leaf("b", INT32, LogicalType("INTEGER", bit_width=32, signed=True)),
        leaf("c", repetition=REQUIRED),
    ]
    conformed = conform_to_file(footer_with(file), frame)
    assert conformed[0] == file[0]
    assert conformed[2] == file[2]
    assert conformed[1] == frame[1], "an explicit annotation of the same values"


@pytest.mark.parametrize(
    ("file", "frame", "message", "column"),
    [
        ([leaf("a"), leaf("b")], [leaf("a")], "the file has the column 'b', but the frame does not", "b"),
        ([leaf("a")], [leaf("a"), leaf("b")], "the frame has the column 'b', but the file does not", "b"),
        (
            [leaf("a"), leaf("b")],
            [leaf("b"), leaf("a")],
            "the order of the columns differs: at 0 the file has 'a'",
            "b",
        ),
        ([leaf("a"), leaf("a")], [leaf("a")], "2 columns, the frame 1, by the same names", None),
        ([leaf("a"), leaf("b")], [leaf("a"), leaf("b", DOUBLE)], "the file has INT64, the frame DOUBLE", "b"),
        (
            [leaf("a", INT64, SECONDS)],
            [leaf("a")],
            r"INT64 TIMESTAMP\(MILLIS, utc\), the frame INT64$|INT64 \(column",
            "a",
        ),
        ([leaf("a", 7, type_length=3)], [leaf("a", 7, type_length=4)], r"FIXED_LEN_BYTE_ARRAY\(3\), the frame", "a"),
        ([leaf("a", repetition=REQUIRED)], [leaf("a")], "REQUIRED in the file, and OPTIONAL in the frame", "a"),
        ([leaf("a")], [SchemaNode("a", children=(leaf("x"),))], "the file has INT64, the frame a group", "a"),
        (
            [SchemaNode("a", children=(leaf("x"),))],
            [SchemaNode("a", children=(leaf("y"),))],
            "the file has the field 'x', the frame 'y'",
            "a.y",
        ),
        (
            [SchemaNode("a", children=(leaf("x"),))],
            [SchemaNode("a", children=(leaf("x"), leaf("y")))],
            "1 in the file, 2 in",
            "a",
        ),
        (
            [SchemaNode("a", children=(leaf("x"),))],
            [SchemaNode("a", children=(leaf("x", repetition=REQUIRED),))],
            "OPTIONAL in the f",
            "a.x",
        ),
    ],
)
def test_schema_differences_are_refused(file, frame, message, column):
    with pytest.raises(SchemaError, match=message) as raised:
        conform_to_file(footer_with(file), frame)
    assert raised.value.where.get("column") == column


def test_pyarrow_schema():
    raw = write_by_pandas(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"]).as_unit("us"), "s": ["x"]}))
    frame = [
        leaf("t", INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=False)),
        leaf("s", BYTE_ARRAY, LogicalType("STRING")),
    ]
    assert conform_to_file(footer_of(raw)[0], frame) == frame


# --- the index ------------------------------------------------------------------------------------------------------


def keys_of(df: pd.DataFrame, **options) -> dict[str, bytes]:
    return dict(footer_of(write_by_pandas(df, **options))[0].key_value_metadata)


def with_index(index) -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(len(index))}, index=index)


def named(index: pd.Index, name: str) -> pd.Index:
    return index.rename(name)


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        (pd.RangeIndex(3), pd.RangeIndex(3, 5), pd.RangeIndex(5)),
        (pd.RangeIndex(3), pd.RangeIndex(4), pd.RangeIndex(7)),
        (pd.RangeIndex(3), pd.RangeIndex(0), pd.RangeIndex(3)),
        (pd.RangeIndex(0), pd.RangeIndex(5, 9), pd.RangeIndex(5, 9)),
        (pd.RangeIndex(0), pd.RangeIndex(0), pd.RangeIndex(0)),
        (pd.RangeIndex(10, 16, 2), pd.RangeIndex(16, 20, 2), pd.RangeIndex(10, 20, 2)),
        (pd.RangeIndex(10, 15, 2), pd.RangeIndex(16, 19, 2), pd.RangeIndex(10, 20, 2)),
        (pd.RangeIndex(10, 16, 2), pd.RangeIndex(3), pd.RangeIndex(10, 22, 2)),
        (pd.RangeIndex(10, 16, 2), pd.RangeIndex(10, 14, 2), pd.RangeIndex(10, 20, 2)),
        (pd.RangeIndex(5, 2, -1), pd.RangeIndex(2, -1, -1), pd.RangeIndex(5, -1, -1)),
        (pd.RangeIndex(3), pd.RangeIndex(3, 4), pd.RangeIndex(4)),
        (pd.RangeIndex(0, 9, 3), pd.RangeIndex(9, 10), pd.RangeIndex(0, 12, 3)),
        (named(pd.RangeIndex(3), "n"), named(pd.RangeIndex(3, 5), "n"), named(pd.RangeIndex(5), "n")),
        (named(pd.RangeIndex(3), "n"), pd.RangeIndex(2), named(pd.RangeIndex(5), "n")),
        (named(pd.RangeIndex(3), "n"), named(pd.RangeIndex(3, 5), "m"), pd.RangeIndex(5)),
    ],
)
@pytest.mark.parametrize("arrow", [True, False])
def test_range_indexes_continue(before, after, result, arrow):
    """As pandas.concat if the second index continues the first, and as with ignore_index if it starts anew."""
    metadata = keys_of(with_index(before))
    if not arrow:
        del metadata["ARROW:schema"]
    raw = with_keys(np.arange(len(result)), extend_key_values(metadata, keys_of(with_index(after))))
    for got in (pd.read_parquet(io.BytesIO(raw), engine="pyarrow"), ParquetFile(raw).read()):
        assert isinstance(got.index, pd.RangeIndex)
        pd.testing.assert_index_equal(got.index, result, exact=True)


def with_keys(values: np.ndarray, keys: dict) -> bytes:
    """Build a file with one column and these key-value metadata."""
    raw = write_by_pandas(pd.DataFrame({"a": values}))
    footer, start = footer_of(raw)
    parts = split_footer(footer)
    parts.key_values.clear()
    return replace_footer(raw, start, parts.encode(parts.row_groups, parts.num_rows, keys, "x"))


def test_many_appends():
    metadata = keys_of(with_index(pd.RangeIndex(10)))
    for _ in range(12):
        metadata = extend_key_values(metadata, keys_of(with_index(pd.RangeIndex(100_000))))
    assert json.loads(metadata["pandas"])["index_columns"][0]["stop"] == 1_200_010
    raw = with_keys(np.zeros(1_200_010, np.int64), metadata)
    table = pq.read_table(io.BytesIO(raw))
    assert json.loads(table.schema.metadata[b"pandas"])["index_columns"][0]["stop"] == 1_200_010, "in ARROW:schema too"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            pd.RangeIndex(3),
            pd.RangeIndex(7, 9),
            r"the frame, RangeIndex\(7, 9, 1\), neither continues .* RangeIndex\(0, 3, 1\)",
        ),
        (pd.RangeIndex(3), pd.RangeIndex(3, 9, 2), "neither continues"),
        (named(pd.RangeIndex(3), "n"), named(pd.RangeIndex(7, 9), "n"), "name='n'"),
        (
            pd.Index([5, 7]),
            pd.RangeIndex(2),
            r"the file has the column '__index_level_0__', the frame RangeIndex\(0, 2, 1\)",
        ),
        (
            pd.RangeIndex(2),
            pd.Index([5, 7]),
            r"the file has RangeIndex.*, the frame the column '__index_level_0__'",
        ),
        (pd.Index([5, 7], name="n"), pd.Index([5, 7], name="m"), "the index columns differ"),
    ],
)
def test_indexes_that_do_not_continue(before, after, message):
    with pytest.raises(SchemaError, match=message):
        extend_key_values(keys_of(with_index(before)), keys_of(with_index(after)))


def test_stored_indexes_are_preserved():
    index = pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["n", None])
    metadata = keys_of(with_index(index))
    assert extend_key_values(metadata, keys_of(with_index(index[::-1]))) == metadata


def test_frames_written_without_their_index():
    none = keys_of(with_index(pd.RangeIndex(3)), index=False)
    default, other = keys_of(with_index(pd.RangeIndex(3))), keys_of(with_index(pd.RangeIndex(5, 8)))
    assert extend_key_values(none, none) == none
    assert extend_key_values(none, default) == none
    assert json.loads(extend_key_values(default, none)["pandas"])["index_columns"] == []
    assert json.loads(extend_key_values(other, none, num_rows=3)["pandas"])["index_columns"][0]["stop"] == 11
    with pytest.raises(SchemaError, match="has no index"):
        extend_key_values(none, other)
    with pytest.raises(SchemaError, match="was written without one"):
        extend_key_values(other, none)


@pytest.mark.parametrize("value", [None, b"", b"no JSON", b"[]", b'{"index_columns": 5}', b"\xff" * 9, b"[" * 100_000])
def test_files_without_valid_pandas_metadata(value):
    metadata = {} if value is None else {"pandas": value}
    assert extend_key_values(metadata, keys_of(FRAME)).keys() == metadata.keys()
    assert extend_key_values(metadata | {"k": "v"}, {}) == metadata | {"k": "v"}


# --- categories -----------------------------------------------------------------------------------------------------


def categories(count: int, ordered: bool = False) -> dict[str, bytes]:
    return keys_of(
        pd.DataFrame({"a": [1], "c": pd.Categorical(["0"], [str(i) for i in range(count)], ordered=ordered)})
    )


def test_category_counts_grow():
    extended = extend_key_values(categories(3), categories(300))
    entry = json.loads(extended["pandas"])["columns"][1]
    assert entry["metadata"] == {"num_categories": 300, "ordered": False}
    assert entry["numpy_type"] == "int16"
    entry = json.loads(extend_key_values(categories(300), categories(3))["pandas"])["columns"][1]
    assert entry["metadata"]["num_categories"] == 300
    assert entry["numpy_type"] == "int16"


def test_ordered_and_unordered_categories_are_refused():
    with pytest.raises(SchemaError, match="ordered in the file, but unordered in the frame") as raised:
        extend_key_values(categories(3, True), categories(3))
    assert raised.value.where == {"column": "c"}


def test_invalid_arrow_schema_is_preserved():
    metadata = {"pandas": '{"index_columns":[{"kind":"range","name":null,"start":0,"stop":9,"step":1}],"columns":[]}'}
    metadata["ARROW:schema"] = base64.b64encode(b"....").decode()
    extended = extend_key_values(metadata, keys_of(with_index(pd.RangeIndex(1))))
    assert extended["ARROW:schema"] == metadata["ARROW:schema"]
    assert json.loads(extended["pandas"])["index_columns"][0]["stop"] == 10


def test_metadata_about_the_old_rows_is_removed(tmp_path):
    notes = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [0, 0, 1, 1], "crs": None}
    geo = json.dumps({"version": "1.0.0", "primary_column": "g", "columns": {"g": notes}})
    frame = pd.DataFrame({"g": [b"point"]})
    keys = {"geo": geo, "numparq.layout": '{"job": "1"}', "who": "me"}
    numparq.to_parquet(frame, tmp_path / "a.parquet", key_value_metadata=keys)
    numparq.to_parquet(frame, tmp_path / "a.parquet", append=True)
    with numparq.ParquetFile(tmp_path / "a.parquet") as file:
        key_values = file._file.footer.key_value_metadata
    assert json.loads(key_values["geo"])["columns"] == {"g": {"encoding": "WKB", "geometry_types": [], "crs": None}}
    assert (key_values["numparq.layout"], key_values["who"]) == (b"", b"me")
