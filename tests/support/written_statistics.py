"""Statistics and page indexes as the writer encodes them, read back as dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.format.page_bounds import DEFAULT_TRUNCATE_LENGTH, PageBounds
from numparq.format.page_index import (
    ColumnIndexWriter,
    add_offset_index,
    column_index_template,
    offset_index_template,
)
from numparq.format.size_statistics import SIZE_FIELDS, PageSizeStatistics, size_words
from numparq.format.statistics import STATISTICS_FIELDS, PageStatistics
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.layout import thrift_layout
from numparq.format.thrift.templates import RecordStrings, StructRecords, StructTemplate
from support.kernels.thrift_structs import to_dict


def read_back(struct: str, encoded: bytes) -> dict[str, Any]:
    """Decode a struct into dicts and lists, without absent fields."""
    data = np.frombuffer(bytes(encoded) + bytes(8), np.uint8)
    layout = thrift_layout(struct)
    found = to_dict(root_record(layout, read_record(data, len(encoded), layout), data))
    return {name: value for name, value in found.items() if value is not None}


def _decode(
    struct: str, template: StructTemplate, words: Any, items: list[int], strings: RecordStrings
) -> dict[str, Any]:
    encoded, ends = template.encode(words, items, strings)
    assert ends == [len(encoded)]
    return read_back(struct, encoded)


def chunk_statistics(pages: PageBounds, null_count: int, length: int = DEFAULT_TRUNCATE_LENGTH) -> dict[str, Any]:
    """Return the Statistics of a column chunk."""
    count, strings = len(pages.num_values), RecordStrings()
    null_counts = [null_count] + [0] * (count - 1)
    words = PageStatistics(pages, null_counts, length).words(0, count, strings)
    return _decode("Statistics", StructTemplate("Statistics", STATISTICS_FIELDS), words, [], strings)


def page_statistics(
    pages: PageBounds, page: int, null_count: int, length: int = DEFAULT_TRUNCATE_LENGTH
) -> dict[str, Any]:
    """Return the Statistics of a page header."""
    strings = RecordStrings()
    null_counts = [null_count] * len(pages.num_values)
    words = PageStatistics(pages, null_counts, length).words(page, page + 1, strings)
    return _decode("Statistics", StructTemplate("Statistics", STATISTICS_FIELDS), words, [], strings)


def column_index(
    pages: PageBounds,
    null_counts: list[int],
    sizes: PageSizeStatistics | None = None,
    length: int = DEFAULT_TRUNCATE_LENGTH,
) -> dict[str, Any] | None:
    """Return the ColumnIndex of a column chunk; None if it has none."""
    records, statistics = StructRecords(column_index_template()), PageStatistics(pages, null_counts, length)
    if not ColumnIndexWriter(records, statistics, sizes or PageSizeStatistics()).add(0, len(pages.num_values)):
        return None
    return read_back("ColumnIndex", next(records.encode()))


def offset_index(locations: list[tuple[int, int, int]], byte_counts: list[int] | None = None) -> dict[str, Any]:
    """Return the OffsetIndex of pages with offset, size and first row."""
    records = StructRecords(offset_index_template())
    add_offset_index(records, [word for page in locations for word in page], byte_counts)
    return read_back("OffsetIndex", next(records.encode()))


def size_statistics(sizes: PageSizeStatistics, num_pages: int) -> dict[str, Any]:
    """Return the SizeStatistics of a column chunk."""
    items: list[int] = []
    words = size_words(sizes, 0, num_pages, items)
    return _decode("SizeStatistics", StructTemplate("SizeStatistics", SIZE_FIELDS), words, items, RecordStrings())
