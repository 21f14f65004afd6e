"""Records: decoded metadata, under the names of the specification."""

from __future__ import annotations

import copy
import pickle

import pandas as pd
import pytest

import numparq
from numparq.format.thrift import idl
from numparq.format.thrift.idl import FormatEnum, load_idl
from numparq.format.thrift.layout import thrift_layout
from support.data.thrift_structs import IDL
from support.kernels.engines import COMPILED
from support.kernels.thrift_structs import read_struct
from support.oracles import thrift as oracle
from support.thrift_definition import TABLES, tables_text


def to_record(thing):
    """Return an object of thriftpy2 as a record."""
    encoded = oracle.encode_struct(oracle.fields_of(thing))
    taken, found = read_struct(COMPILED, thrift_layout(type(thing).__name__), encoded, seed=3)
    assert taken == len(encoded)
    return found


META = IDL.ColumnMetaData(
    type=1,
    encodings=[0, 8, 77],
    path_in_schema=["a", "é"],
    codec=6,
    num_values=5,
    total_uncompressed_size=6,
    total_compressed_size=7,
    data_page_offset=4,
    statistics=IDL.Statistics(max_value=b"\xff" * 60, is_max_value_exact=True),
    key_value_metadata=[IDL.KeyValue("k", "v")] * 9,
    geospatial_statistics=IDL.GeospatialStatistics(IDL.BoundingBox(-0.5, 2.0, 1e300, 0.0), [1, 3001]),
)


def test_fields_by_name():
    meta = to_record(META)
    assert meta.type is idl.Type.INT32
    assert meta.type == 1
    assert isinstance(meta.type, FormatEnum)
    assert meta.encodings == [idl.Encoding.PLAIN, 8, 77]
    assert not isinstance(meta.encodings[2], FormatEnum)
    assert meta.path_in_schema == ["a", "é"]
    assert meta.statistics.max_value == b"\xff" * 60
    assert meta.statistics.is_max_value_exact is True
    assert meta.statistics.null_count is None
    assert meta.size_statistics is None
    assert meta.encoding_stats is None
    assert meta.geospatial_statistics.bbox.ymin == 1e300
    assert meta.geospatial_statistics.bbox.xmin == -0.5
    assert meta.geospatial_statistics.geospatial_types == [1, 3001]
    with pytest.raises(AttributeError, match="ColumnMetaData has no field 'compression'; it has type, encodings"):
        meta.compression  # noqa: B018


def test_default_values():
    header = IDL.DataPageHeaderV2(
        num_values=1,
        num_nulls=0,
        num_rows=1,
        encoding=0,
        definition_levels_byte_length=0,
        repetition_levels_byte_length=0,
        is_compressed=None,
    )
    assert to_record(header).is_compressed is True
    assert "is_compressed" not in to_record(header).to_dict()


def test_lists_are_sequences():
    pairs = to_record(META).key_value_metadata
    assert len(pairs) == 9
    assert pairs[-1].key == "k"
    assert [pair.value for pair in pairs] == ["v"] * 9
    assert pairs[2:4] == [pairs[0], pairs[1]]
    assert pairs == list(pairs)
    assert pairs != pairs[1:]
    assert pairs[0] in pairs
    assert next(reversed(pairs)) == pairs[0]
    with pytest.raises(IndexError):
        pairs[9]


def test_unions():
    element = to_record(IDL.SchemaElement(name="x", logicalType=IDL.LogicalType(DECIMAL=IDL.DecimalType(2, 9))))
    assert element.logicalType.which() == "DECIMAL"
    assert element.logicalType.DECIMAL.precision == 9
    assert element.logicalType.STRING is None
    assert to_record(IDL.SchemaElement(name="x", logicalType=IDL.LogicalType())).logicalType.which() is None


def test_repr_of_a_footer_is_short():
    frame = pd.DataFrame({f"c{number}": range(100) for number in range(50)})
    metadata = numparq.ParquetFile(numparq.to_parquet(frame, row_group_size=10)).metadata
    shown = repr(metadata).splitlines()
    assert shown[0] == "FileMetaData("
    assert shown[2:5] == ["    schema=<51 SchemaElement>,", "    num_rows=100,", "    row_groups=<10 RowGroup>,"]
    row_groups = repr(metadata.row_groups).splitlines()
    assert len(row_groups) == 9
    assert row_groups[1].startswith("    RowGroup(columns=<50 ColumnChunk>, total_byte_size=")
    assert max(map(len, shown + row_groups)) < 130
    assert repr(metadata.schema[1]).startswith("SchemaElement(type=Type.INT64, ")
    assert repr(metadata.row_groups[0].columns[0]).splitlines()[2] == "    meta_data=ColumnMetaData(...),"


def test_to_dict_and_repr():
    meta = to_record(META)
    found = meta.to_dict()
    assert found["statistics"] == {"max_value": b"\xff" * 60, "is_max_value_exact": True}
    assert found["key_value_metadata"][0] == {"key": "k", "value": "v"}
    assert "size_statistics" not in found
    shown = repr(meta)
    assert shown.startswith("ColumnMetaData(\n    type=Type.INT32,\n    encodings=[Encoding.PLAIN, ")
    assert "    codec=CompressionCodec.ZSTD,\n" in shown
    assert "statistics=Statistics(...)" in shown
    assert "... (60 in all)" in repr(meta.statistics)
    assert "    key_value_metadata=<9 KeyValue>,\n" in shown
    assert "... (9 in all)" in repr(meta.key_value_metadata)
    assert {"type", "codec", "to_dict"} <= set(dir(meta))
    assert str(idl.CompressionCodec.ZSTD) == "ZSTD"


def test_records_compare_copy_and_pickle():
    meta = to_record(META)
    assert meta == to_record(META)
    assert meta != to_record(IDL.KeyValue("k", "v"))
    assert meta != 5
    for copied in (pickle.loads(pickle.dumps(meta)), copy.deepcopy(meta), copy.copy(meta)):
        assert copied == meta
        assert copied.codec is idl.CompressionCodec.ZSTD
    with pytest.raises(TypeError):
        hash(meta)


def test_enums_equal_the_idl():
    assert {name: int(member) for name, member in idl.Type.__members__.items()} == load_idl().enums["Type"]
    with pytest.raises(AttributeError, match="Nothing"):
        idl.Nothing  # noqa: B018


def test_tables_are_those_of_the_definition():
    """Else run tests/support/thrift_definition.py."""
    assert TABLES.read_text() == tables_text()
    assert len(load_idl().structs) > 50
