"""What the fuzz targets found, each as the smallest file that shows it."""

from __future__ import annotations

import base64
import json
import struct

import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, ParquetError, UnsupportedError
from support.files.builder import INT64, FileColumn, build_file, data_page_v2, dictionary_page, encode_plain, parse_file
from support.files.samples import SAMPLES, write_by_pyarrow


def page_with(**fields):
    """Make a page of version 2 whose header says something else."""
    page = data_page_v2(4, 0, b"", encode_plain(INT64, [1, 2, 3, 4]))
    for name, value in fields.items():
        setattr(page.header.data_page_header_v2, name, value)
    return page


def one_column(*pages):
    return build_file([4], [FileColumn("a", INT64, [list(pages)])])


# Levels longer than their page sent the decoder of `verify` and `salvage` over the end of its buffer.
LYING_LEVELS = [
    {"repetition_levels_byte_length": 1 << 30},
    {"definition_levels_byte_length": (1 << 31) - 1},
    {"definition_levels_byte_length": 20, "repetition_levels_byte_length": 20},
    {"repetition_levels_byte_length": -(1 << 30)},
    {"num_values": -(1 << 31)},
    {"num_rows": -1},
]


@pytest.mark.parametrize("fields", LYING_LEVELS, ids=str)
def test_levels_that_are_longer_than_the_page(tmp_path, fields):
    data = one_column(page_with(**fields)).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    with pytest.raises(CorruptPageError):
        numparq.read_parquet(data)
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)


def test_dictionaries_of_a_negative_number_of_values(tmp_path):
    pages = dictionary_page(-7, encode_plain(INT64, [1])), page_with()
    data = one_column(*pages).stored()
    assert "page-counts" in {deviation.check for deviation in numparq.verify(data)}
    path = tmp_path / "cut"
    path.write_bytes(data[:-30])
    with pytest.raises(ParquetError):
        numparq.salvage(path, tmp_path / "out", one_column(page_with()).stored(), force=True)


# The length that ARROW:schema gives lists is only a hint: below 0 it was handed to Arrow, and where all lists are null,
# room was made for as many elements as it said.
@pytest.mark.parametrize("size", [-2, -(1 << 31), -1, 3, 1 << 28, (1 << 31) - 1])
@pytest.mark.parametrize("values", [[[1, 2], None], [None, None], []], ids=str)
def test_lists_of_a_size_that_the_arrow_schema_has_wrong(size, values):
    pa = pytest.importorskip("pyarrow")
    lists = pa.table({"a": pa.array(values, pa.list_(pa.int64()))})
    mark = 0x01020304
    schema = pa.schema([pa.field("a", pa.list_(pa.int64(), mark))]).serialize().to_pybytes()
    assert schema.count(struct.pack("<i", mark)) == 1
    schema = schema.replace(struct.pack("<i", mark), struct.pack("<i", size))
    whole = parse_file(write_by_pyarrow(lists))
    (pair,) = (pair for pair in whole.footer.key_value_metadata if pair.key in ("ARROW:schema", b"ARROW:schema"))
    pair.value = base64.b64encode(schema)
    found = numparq.read_parquet(whole.stored(), dtype_backend="pyarrow")["a"]
    assert pa.array(found).nbytes < 1000
    assert [None if value is None else list(value) for value in pa.array(found).to_pylist()] == values


def test_levels_that_pandas_cannot_make():
    """The pandas metadata may name columns as levels of the index that Arrow cannot tell the values apart of."""
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


def test_an_end_of_a_struct_with_other_bits_in_it(tmp_path):
    """What takes a footer apart went on behind it, where the readers end."""
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


def test_types_of_the_arrow_schema_that_arrow_does_not_have():
    """What Arrow says of them is neither a ValueError nor an OSError, and went out as it was."""
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
