"""Where the footer and the offset index say that pages are, held against the pages: flat and nested columns."""

from __future__ import annotations

import pandas as pd
import pytest
import thriftpy2.protocol.compact as compact
import thriftpy2.transport as transport

import numparq
from numparq.format.thrift.idl import thrift_module


def struct_at(kind: str, data: bytes, position: int):
    found = getattr(thrift_module(), kind)()
    found.read(compact.TCompactProtocol(transport.TMemoryBuffer(data[position:])))
    return found


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_places_of_pages(version: str):
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
            assert struct_at("PageHeader", data, meta.dictionary_page_offset).dictionary_page_header
        pages = struct_at("OffsetIndex", data, chunk.offset_index_offset).page_locations
        assert pages[0].offset == meta.data_page_offset
        assert [page.first_row_index for page in pages] == list(range(0, 1000, 130))
        ends = [page.offset + page.compressed_page_size for page in pages]
        assert ends[:-1] == [page.offset for page in pages[1:]]
        headers = [struct_at("PageHeader", data, page.offset) for page in pages]
        if version == "2.0":
            assert [header.data_page_header_v2.num_rows for header in headers] == [130] * 7 + [90]
        else:
            assert all(header.data_page_header for header in headers)
