"""Thrift encoder: byte for byte as thriftpy2 and the oracle, and read back by numparq."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocolFactory
from thriftpy2.utils import serialize

from numparq.format.thrift.encode import EncodedThrift, encode_struct
from numparq.format.thrift.layout import thrift_layout
from support.data.thrift_structs import KNOWN, UNIONS, WITH_FIELDS, structs
from support.kernels.engines import COMPILED
from support.kernels.thrift_structs import read_struct, to_dict
from support.oracles import thrift as oracle

PROTOCOL = TCompactProtocolFactory()
PAGE = {"type": 0, "uncompressed_page_size": 300, "compressed_page_size": 200}
DATA = {"num_values": 7, "encoding": 8, "definition_level_encoding": 3, "repetition_level_encoding": 3}
META = {
    "type": 1,
    "encodings": [0, 8],
    "path_in_schema": ["a"],
    "codec": 1,
    "num_values": 5,
    "total_uncompressed_size": 6,
    "total_compressed_size": 7,
    "data_page_offset": 4,
}


def plain_of(thing):
    """Convert an object of thriftpy2 to dicts and lists; rejects unions without a field, which are not written."""
    if type(thing) in KNOWN.values():
        found = {name: plain_of(value) for name, value in vars(thing).items() if value is not None}
        assume(type(thing) not in UNIONS or len(found) == 1)
        return found
    return [plain_of(item) for item in thing] if isinstance(thing, list) else thing


@given(st.sampled_from(WITH_FIELDS).flatmap(lambda name: structs(KNOWN[name])))
def test_equal_to_thriftpy2_and_oracle(thing):
    value = plain_of(thing)
    written = encode_struct(type(thing).__name__, value)
    assert written == oracle.encode_struct(oracle.fields_of(thing))
    assert written == serialize(thing, PROTOCOL)
    length, found = read_struct(COMPILED, thrift_layout(type(thing).__name__), written)
    assert length == len(written)
    assert to_dict(found) == value


@given(st.sampled_from([0, 1, 4, 5, 14, 15, 16, 127, 128, 300]), st.binary(max_size=3))
def test_lists_of_any_length(count, item):
    index = {
        "null_pages": [True, False, True] * count,
        "min_values": [item] * count,
        "max_values": [],
        "nan_counts": [count],
        "boundary_order": 0,
        "null_counts": list(range(-count, count)),
    }
    written = encode_struct("ColumnIndex", index)
    assert to_dict(read_struct(COMPILED, thrift_layout("ColumnIndex"), written)[1]) == index
    assert written == serialize(KNOWN["ColumnIndex"](**index), PROTOCOL)


def test_numpy_scalars_and_arrays():
    index = {
        "null_pages": np.array([True, False]),
        "min_values": (b"", b"a"),
        "max_values": [bytearray(b"x"), b""],
        "boundary_order": np.int8(1),
        "null_counts": np.array([1 << 40, 2]),
    }
    same = {
        "null_pages": [True, False],
        "min_values": [b"", b"a"],
        "max_values": [b"x", b""],
        "boundary_order": 1,
        "null_counts": [1 << 40, 2],
    }
    assert encode_struct("ColumnIndex", index) == encode_struct("ColumnIndex", same)
    sorting = {"column_idx": np.uint8(3), "descending": np.bool_(True), "nulls_first": False}
    assert encode_struct("SortingColumn", sorting) == encode_struct(
        "SortingColumn", dict(sorting, column_idx=3, descending=True)
    )
    box = {"xmin": np.float32(0.5), "xmax": 1, "ymin": -0.0, "ymax": float("nan")}
    assert encode_struct("BoundingBox", box) == encode_struct("BoundingBox", dict(box, xmin=0.5, xmax=1.0))


def test_strings_as_str_or_bytes():
    assert encode_struct("KeyValue", {"key": "é", "value": b"\xc3\xa9"}) == encode_struct(
        "KeyValue", {"key": b"\xc3\xa9", "value": "é"}
    )
    broken = encode_struct("KeyValue", {"key": b"\xff"})
    key = read_struct(COMPILED, thrift_layout("KeyValue"), broken)[1].key
    assert encode_struct("KeyValue", {"key": key}) == broken, "invalid UTF-8 is preserved"


def test_encoded_structs_are_copied():
    meta = EncodedThrift(encode_struct("ColumnMetaData", META))
    chunk = encode_struct("ColumnChunk", {"file_offset": 0, "meta_data": META})
    assert encode_struct("ColumnChunk", {"file_offset": 0, "meta_data": meta}) == chunk
    group = {"columns": [{"file_offset": 0, "meta_data": META}], "total_byte_size": 1, "num_rows": 2}
    assert encode_struct("RowGroup", {**group, "columns": [EncodedThrift(chunk)]}) == encode_struct("RowGroup", group)
    assert encode_struct("RowGroup", {**group, "columns": EncodedThrift(b"\x1c" + chunk)}) == encode_struct(
        "RowGroup", group
    )
    assert encode_struct("RowGroup", EncodedThrift(b"as it is")) == b"as it is"
    assert encode_struct(
        "TimeType", {"isAdjustedToUTC": True, "unit": EncodedThrift(encode_struct("TimeUnit", {"MILLIS": {}}))}
    ) == encode_struct("TimeType", {"isAdjustedToUTC": True, "unit": {"MILLIS": {}}})


def test_none_means_absent():
    full = {**PAGE, "crc": None, "data_page_header": {**DATA, "statistics": None}, "index_page_header": None}
    assert encode_struct("PageHeader", full) == encode_struct("PageHeader", {**PAGE, "data_page_header": DATA})
    assert encode_struct("LogicalType", {"STRING": None, "DATE": {}}) == encode_struct("LogicalType", {"DATE": {}})


def test_required_fields_use_their_default():
    assert encode_struct("ColumnChunk", {}) == encode_struct("ColumnChunk", {"file_offset": 0})
    v2 = {
        "num_values": 1,
        "num_nulls": 0,
        "num_rows": 1,
        "encoding": 0,
        "definition_levels_byte_length": 0,
        "repetition_levels_byte_length": 0,
    }
    assert encode_struct("DataPageHeaderV2", v2) != encode_struct("DataPageHeaderV2", {**v2, "is_compressed": True})


@pytest.mark.parametrize(
    ("struct", "value", "kind", "message"),
    [
        ("PageHeader", {**PAGE, "type": None}, ValueError, "PageHeader lacks its required field type"),
        (
            "PageHeader",
            {**PAGE, "data_page_header": {}},
            ValueError,
            "DataPageHeader lacks its required field num_values",
        ),
        ("PageHeader", {**PAGE, "crc": 0xFFFFFFFF}, ValueError, "PageHeader.crc is 4294967295, which does not fit i32"),
        ("PageHeader", {**PAGE, "crc": 1.0}, TypeError, r"PageHeader.crc must be an int \(i32\), not float"),
        ("PageHeader", {**PAGE, "crc": True}, TypeError, "PageHeader.crc must be an int"),
        ("PageHeader", {**PAGE, "crc": np.zeros(2, np.int64)}, TypeError, "PageHeader.crc must be an int"),
        ("PageHeader", {**PAGE, "checksum": 1}, TypeError, "PageHeader has no field 'checksum'"),
        ("PageHeader", {**PAGE, "checksum": None}, TypeError, "PageHeader has no field 'checksum'"),
        ("PageHeader", {**PAGE, "data_page_header": 5}, TypeError, "DataPageHeader must be a mapping .*, not int"),
        ("PageHeader", [], TypeError, "PageHeader must be a mapping"),
        ("IntType", {"bitWidth": 200, "isSigned": True}, ValueError, "IntType.bitWidth is 200"),
        ("IntType", {"bitWidth": 8, "isSigned": 1}, TypeError, "IntType.isSigned must be a bool, not int"),
        ("KeyValue", {"key": 5}, TypeError, "KeyValue.key must be a str or bytes, not int"),
        ("KeyValue", {"key": "\ud800"}, ValueError, "KeyValue.key cannot be encoded as UTF-8"),
        ("Statistics", {"max_value": "text"}, TypeError, "Statistics.max_value must be bytes, not str"),
        ("BoundingBox", {"xmin": "0"}, TypeError, "BoundingBox.xmin must be a float, not str"),
        (
            "SizeStatistics",
            {"definition_level_histogram": 5},
            TypeError,
            "definition_level_histogram must be a list, not int",
        ),
        ("SizeStatistics", {"definition_level_histogram": [1, 1 << 63]}, ValueError, "does not fit i64"),
        ("EncryptionWithColumnKey", {"path_in_schema": "abc"}, TypeError, "path_in_schema must be a list, not str"),
        ("TimeUnit", {}, ValueError, "union TimeUnit must have exactly one field, not 0"),
        ("TimeUnit", {"MILLIS": {}, "NANOS": {}}, ValueError, "one field, not 2"),
        ("TimeUnit", {"DAYS": {}}, TypeError, "TimeUnit has no field 'DAYS'"),
        ("TimeUnit", {"MILLIS": 5}, TypeError, "MilliSeconds must be a mapping"),
    ],
)
def test_invalid_values_are_refused(struct, value, kind, message):
    with pytest.raises(kind, match=message):
        encode_struct(struct, value)


def test_unknown_struct_is_refused():
    with pytest.raises(KeyError, match="PageFooter"):
        encode_struct("PageFooter", {})
