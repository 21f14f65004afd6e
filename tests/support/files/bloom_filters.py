"""The Bloom filters of a file, located through its footer."""

from __future__ import annotations

import numpy as np

from numparq import ParquetFile
from numparq.format.bloom_filter import BloomFilter
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.encode import encode_struct
from numparq.format.thrift.layout import thrift_layout
from support.kernels.thrift_structs import to_dict


def without_absent(value):
    if isinstance(value, dict):
        return {name: without_absent(item) for name, item in value.items() if item is not None}
    return value


def read_header(encoded):
    """Return a Bloom filter header and its length."""
    data = np.frombuffer(encoded, np.uint8)
    words = thrift_layout("BloomFilterHeader")
    header = without_absent(to_dict(root_record(words, read_record(data, len(data), words), data)))
    return header, len(encode_struct("BloomFilterHeader", header))


def read_bloom_filters(path, row_group=0):
    """Return the Bloom filters of a row group by column name."""
    data, file = path.read_bytes(), ParquetFile(path)
    found = {}
    for each, chunk in zip(file.schema, file.metadata.row_groups[row_group].columns, strict=True):
        about = chunk.meta_data
        if about.bloom_filter_offset is not None:
            place = about.bloom_filter_offset
            header, length = read_header(data[place : place + about.bloom_filter_length])
            assert length + header["numBytes"] == about.bloom_filter_length
            bits = data[place + length : place + about.bloom_filter_length]
            found[each.name] = BloomFilter(np.frombuffer(bits, np.uint8))
            assert found[each.name].header == header
    return found
