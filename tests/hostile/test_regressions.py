"""Regressions that the fuzz targets found, each with the smallest file that shows it."""

from __future__ import annotations

import base64
import json
import struct

import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, ParquetError, UnsupportedError
from support.files import page_damage
from support.files.builder import (
    INT64,
    OPTIONAL,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_plain,
    parse_file,
)
from support.files.samples import SAMPLES, write_by_pyarrow


def page_with(**fields):
    """Build a page of version 2 with changed header fields."""
    page = data_page_v2(4, 0, b"", encode_plain(INT64, [1, 2, 3, 4]))
    for name, value in fields.items():
        setattr(page.header.data_page_header_v2, name, value)
    return page


def one_column(*pages):
    return build_file([4], [FileColumn("a", INT64, [list(pages)])])


# Levels longer than their page made the decoder of `verify` and `salvage` read beyond its buffer.
WRONG_LEVELS = [
    {"repetition_levels_byte_length": 1 << 30},
    {"definition_levels_byte_length": (1 << 31) - 1},
    {"definition_levels_byte_length": 20, "repetition_levels_byte_length": 20},
    {"repetition_levels_byte_length": -(1 << 30)},
    {"num_values": -(1 << 31)},
]


@pytest.mark.parametrize("fields", WRONG_LEVELS, ids=str)
def test_levels_longer_than_the_page(tmp_path, fields):
    data = one_column(page_with(**fields)).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    with pytest.raises(CorruptPageError):
        numparq.read_parquet(data)
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)


def test_negative_dictionary_size(tmp_path):
    pages = dictionary_page(-7, encode_plain(INT64, [1])), page_with()
    data = one_column(*pages).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)


# The list size in ARROW:schema is only a hint. Negative sizes were passed to Arrow, and for null lists room for that
# many elements was allocated.
@pytest.mark.parametrize("size", [-2, -(1 << 31), -1, 3, 1 << 28, (1 << 31) - 1])
@pytest.mark.parametrize("values", [[[1, 2], None], [None, None], []], ids=str)
def test_wrong_list_size_in_arrow_schema(size, values):
    pa = pytest.importorskip("pyarrow")
    lists = pa.table({"a": pa.array(values, pa.list_(pa.int64()))})
    mark = 0x01020304
    schema = pa.schema([pa.field("a", pa.list_(pa.int64(), mark))]).serialize().to_pybytes()
    assert schema.count(struct.pack("<i", mark)) == 1
    schema = schema.replace(struct.pack("<i", mark), struct.pack("<i", size))
    whole = parse_file(write_by_pyarrow(lists))
    (pair,) = (pair for pair in whole.footer.key_value_metadata if pair.key in ("ARROW:schema", b"ARROW:schema"))
    pair.value = base64.b64encode(schema)
    got = numparq.read_parquet(whole.stored(), dtype_backend="pyarrow")["a"]
    assert pa.array(got).nbytes < 1000
    assert [None if value is None else list(value) for value in pa.array(got).to_pylist()] == values


def test_index_levels_of_unsupported_types():
    """The pandas metadata may name index levels of types that Arrow cannot compare."""
    pytest.importorskip("pyarrow")
    whole = parse_file(SAMPLES["pairs"]())
    (pair,) = (pair for pair in whole.footer.key_value_metadata if pair.key in ("pandas", b"pandas"))
    document = json.loads(pair.value)
    document["index_columns"] = ["i", *document["index_columns"]]
    pair.value = json.dumps(document)
    data = whole.stored()
    assert numparq.read_parquet(data).index.nlevels == 2
    with pytest.raises(UnsupportedError, match="cannot build an index of these levels"):
        numparq.read_parquet(data, dtype_backend="pyarrow")


def test_struct_end_with_extra_bits(tmp_path):
    """Readers end there, but the function that splits a footer read on."""
    data = numparq.to_parquet(pd.DataFrame({"a": [1, 2]}))
    assert data[-9:-8] == b"\0"
    assert data[-12:-8] == b"\x1c\0\0\0"
    path = tmp_path / "file.parquet"
    for place in (-9, -10, -11):
        changed = bytearray(data)
        changed[place] = 0x20
        assert numparq.read_parquet(bytes(changed))["a"].tolist() == [1, 2]
        path.write_bytes(changed)
        numparq.to_parquet(pd.DataFrame({"a": [3]}), path, append=True)
        assert numparq.read_parquet(path)["a"].tolist() == [1, 2, 3]


def test_unknown_types_in_arrow_schema():
    """Arrow raises neither a ValueError nor an OSError for them, so its error was not caught."""
    pa = pytest.importorskip("pyarrow")
    whole = parse_file(numparq.to_parquet(pd.DataFrame({"a": pd.array([1, 2], pd.ArrowDtype(pa.int64()))})))
    (pair,) = (pair for pair in whole.footer.key_value_metadata if pair.key in ("ARROW:schema", b"ARROW:schema"))
    schema = pa.schema([pa.field("a", pa.int64())]).serialize().to_pybytes()
    assert schema.count(struct.pack("<i", 64)) == 1
    pair.value = base64.b64encode(schema.replace(struct.pack("<i", 64), struct.pack("<i", 128)))
    data = whole.stored()
    assert numparq.read_parquet(data)["a"].tolist() == [1, 2]
    with numparq.ParquetFile(data) as file:
        assert pa.table(file.iter_batches()).to_pydict() == {"a": [1, 2]}


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_dictionary_header_that_counts_too_few_entries(kind):
    """Without a checksum, filters must not take the entries counted for all: rows would be missing."""
    values = [i % 5 for i in range(100)] if kind == "int64" else [f"t{i % 5}" for i in range(100)]
    data = numparq.to_parquet(pd.DataFrame({"a": values, "k": range(100)}), write_page_checksum=False)
    page = page_damage.dictionary_page(data, 0, "a")

    def lower(header):
        header.dictionary_page_header.num_values -= 1

    damaged = page_damage.edit_header(data, page, lower)
    for options in ({}, {"filters": [("a", "==", values[4])]}, {"filters": [("a", "in", [values[4], values[0]])]}):
        with pytest.raises(CorruptPageError, match="outside of the dictionary"):
            numparq.read_parquet(damaged, **options)
    file = numparq.ParquetFile(damaged)
    assert file.read(["a"], filters=[("k", "==", 3)])["a"].tolist() == [values[3]]  # its page is read in part
    with pytest.raises(CorruptPageError, match="outside of the dictionary"):
        file.read(filters=[("a", "==", values[4])])


@pytest.mark.parametrize("version", [1, 2])
def test_runs_longer_than_their_page_take_no_memory(version):
    """A run of two billion levels, or indices, counts as far as the page has values."""
    longest = b"\xfe\xff\xff\xff\x0f"  # the header of a run of 2**31 - 1 values
    levels, indices = longest + b"\1", b"\1" + longest + b"\1"
    pages = [dictionary_page(2, encode_plain(INT64, [7, 8]))]
    if version == 1:
        pages.append(data_page(4, struct.pack("<I", len(levels)) + levels + indices, RLE_DICTIONARY))
    else:
        pages.append(data_page_v2(4, 0, levels, indices, RLE_DICTIONARY))
    data = build_file([4], [FileColumn("a", INT64, [pages], OPTIONAL)]).stored()
    assert numparq.read_parquet(data)["a"].tolist() == [8] * 4
    assert numparq.read_parquet(data, filters=[("a", "==", 8)])["a"].tolist() == [8] * 4
    assert numparq.read_parquet(data, filters=[("a", "==", 7)])["a"].tolist() == []
