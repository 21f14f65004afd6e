"""Column and offset indexes: contents, when they are omitted, and page locations in a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import thriftpy2.protocol.compact as compact
import thriftpy2.transport as transport

import numparq
from numparq import ParquetFile
from numparq.format.column_order import ColumnOrder, leaf_order
from numparq.format.logical_type import LogicalType
from numparq.format.page_bounds import PageBounds, compute_page_bounds
from numparq.format.page_index import (
    ASCENDING,
    DESCENDING,
    UNORDERED,
    boundary_order,
)
from numparq.format.schema_node import SchemaNode
from numparq.format.size_statistics import PageSizeStatistics
from support.data.statistics_columns import (
    BYTES,
    NAN,
    arrow_columns,
    column_node,
    double_bytes,
    float_bounds,
    to_leaf_values,
)
from support.thrift_definition import thrift_module
from support.written_statistics import column_index, offset_index, read_back, size_statistics


def test_column_index():
    sizes = PageSizeStatistics(np.array([[1, 2], [3, 4], [5, 6]]), np.array([[1], [2], [3]]), [3, 0, 9])
    found = column_index(float_bounds("type", [1.0, NAN], [], [2.0]), [0, 5, 1], sizes)
    assert found == {
        "null_pages": [False, True, False],
        "min_values": [double_bytes(1.0), b"", double_bytes(2.0)],
        "max_values": [double_bytes(1.0), b"", double_bytes(2.0)],
        "boundary_order": ASCENDING,
        "null_counts": [0, 5, 1],
        "nan_counts": [1, 0, 0],
        "definition_level_histograms": [1, 2, 3, 4, 5, 6],
        "repetition_level_histograms": [1, 2, 3],
    }
    assert size_statistics(sizes, 3) == {
        "unencoded_byte_array_data_bytes": 12,
        "definition_level_histogram": [9, 12],
        "repetition_level_histogram": [6],
    }


def test_offset_index():
    found = offset_index([(4, 86, 0), (90, 20, 7)], [3, 4])
    assert found == {
        "page_locations": [
            {"offset": 4, "compressed_page_size": 86, "first_row_index": 0},
            {"offset": 90, "compressed_page_size": 20, "first_row_index": 7},
        ],
        "unencoded_byte_array_data_bytes": [3, 4],
    }
    assert offset_index([(4, 86, 0)]) == {"page_locations": found["page_locations"][:1]}


def test_column_index_is_omitted():
    assert column_index(float_bounds("type", [1.0], [NAN, NAN]), [0, 0]) is None
    assert column_index(float_bounds("type", [1.0], []), [0, 3]) is not None
    assert (
        column_index(compute_page_bounds(leaf_order(column_node(3)), np.zeros(12, "u1"), np.array([0, 1])), [0]) is None
    )
    no_successor = PageBounds(BYTES, [1, 1], [b"a", b"b"], [b"a", b"\xff" * 65])
    assert column_index(no_successor, [0, 0]) is None
    assert column_index(no_successor, [0, 0], length=65) is not None
    document = ColumnOrder("bytes")
    assert column_index(PageBounds(document, [1], [b"{}"], [b"{" * 2000]), [0]) is None


def test_nan_pages_in_total_order():
    found = column_index(float_bounds("ieee754", [1.0, NAN], [NAN, -NAN]), [0, 0])
    assert found["min_values"] == [double_bytes(1.0), double_bytes(-NAN)]
    assert found["max_values"] == [double_bytes(1.0), double_bytes(NAN)]
    assert found["nan_counts"] == [1, 2]
    assert found["boundary_order"] == UNORDERED


@pytest.mark.parametrize(
    ("kind", "lows", "highs", "expected"),
    [
        ("signed", [-1, 0, 5], [0, 0, 6], ASCENDING),
        ("signed", [5, 0, -1], [6, 0, 0], DESCENDING),
        ("signed", [0, 1], [5, 4], UNORDERED),
        ("signed", [0, 1, 0], [5, 6, 7], UNORDERED),
        ("signed", [3, 3], [4, 4], ASCENDING),
        ("signed", [3], [4], ASCENDING),
        ("signed", [], [], ASCENDING),
        ("unsigned", [1, -1], [1, -1], ASCENDING),
        ("decimal", [1, 255, 256], [1, 255, 256], ASCENDING),
        ("decimal", [1, -1, -256], [1, -1, -256], DESCENDING),
    ],
)
def test_boundary_order(kind, lows, highs, expected):
    ends = "big" if kind == "decimal" else "little"
    low, high = ([value.to_bytes(4, ends, signed=True) for value in values] for values in (lows, highs))
    assert boundary_order(ColumnOrder(kind, 4), low, high) == expected


def test_equal_to_pyarrow(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = arrow_columns()
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, write_page_index=True, data_page_size=200, write_batch_size=16, use_dictionary=False)
    file, data = ParquetFile(path), path.read_bytes()
    for leaf, array, chunk in zip(file.schema, table.columns, file.metadata.row_groups[0].columns, strict=True):
        start, length = chunk.column_index_offset, chunk.column_index_length
        theirs = read_back("ColumnIndex", data[start : start + length])
        start, length = chunk.offset_index_offset, chunk.offset_index_length
        pages = read_back("OffsetIndex", data[start : start + length])
        bounds = np.array([*(page["first_row_index"] for page in pages["page_locations"]), 200], np.int64)
        values, places = to_leaf_values(array.combine_chunks(), leaf)
        mine = column_index(compute_page_bounds(leaf_order(leaf), values, bounds, **places), [0] * (len(bounds) - 1))
        assert len(bounds) > 2 or leaf.name == "bool"
        for name in ("null_pages", "min_values", "max_values", "null_counts", "boundary_order"):
            assert mine[name] == theirs[name], (leaf.name, name)


def test_intervals_have_no_column_index():
    interval = SchemaNode("a", 1, 7, 12, LogicalType("INTERVAL"))
    assert column_index(compute_page_bounds(leaf_order(interval), np.zeros(12, "u1"), np.array([0, 1])), [0]) is None


def read_struct_at(kind: str, data: bytes, position: int):
    found = getattr(thrift_module(), kind)()
    found.read(compact.TCompactProtocol(transport.TMemoryBuffer(data[position:])))
    return found


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_page_locations_match_the_written_pages(version: str):
    lists = [[i, i + 1] if i % 3 else [] for i in range(1000)]
    df = pd.DataFrame({"coded": [f"v{i % 9}" for i in range(1000)], "plain": range(1000), "lists": lists})
    data = numparq.to_parquet(
        df, max_rows_per_page=130, data_page_version=version, column_encoding={"plain": "PLAIN", "lists": "PLAIN"}
    )
    assert data is not None
    with numparq.ParquetFile(data) as file:
        chunks = list(file.metadata.row_groups[0].columns)
    assert chunks[0].meta_data.dictionary_page_offset is not None
    for chunk in chunks:
        meta = chunk.meta_data
        if meta.dictionary_page_offset is not None:
            assert read_struct_at("PageHeader", data, meta.dictionary_page_offset).dictionary_page_header
        pages = read_struct_at("OffsetIndex", data, chunk.offset_index_offset).page_locations
        assert pages[0].offset == meta.data_page_offset
        assert [page.first_row_index for page in pages] == list(range(0, 1000, 130))
        ends = [page.offset + page.compressed_page_size for page in pages]
        assert ends[:-1] == [page.offset for page in pages[1:]]
        headers = [read_struct_at("PageHeader", data, page.offset) for page in pages]
        if version == "2.0":
            assert [header.data_page_header_v2.num_rows for header in headers] == [130] * 7 + [90]
        else:
            assert all(header.data_page_header for header in headers)
