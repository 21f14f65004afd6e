"""Locate and decode the dictionary page of a column chunk by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import filterfalse

import numpy as np

from numparq.column.jobs.byte_array_sink import ByteArraySink
from numparq.column.jobs.codes_sink import CodesSink
from numparq.column.jobs.task import DecodeTask
from numparq.column.read.chunk_table import ChunkTables
from numparq.column.read.context import ReadContext
from numparq.column.read.dictionary import EMPTY_DICTIONARY
from numparq.column.read.page_sources import ScannedPages
from numparq.column.read.row_selection import RowSlices
from numparq.errors import ParquetError
from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.arrow_type import ArrowType
from numparq.format.module_reader import ModuleReader
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf
from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.io.local_source import BytesSource
from numparq.kernels.enums import (
    DATA_PAGE,
    DATA_PAGE_V2,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
)
from numparq.kernels.tables import C_DICTIONARY_UNREAD, C_END, C_START, SLACK
from numparq.plan.chunk_pages import ChunkPages
from numparq.types.output_type import OutputType
from numparq.util.worker_pool import WorkerPool

# Other types have no dictionary, or entries that do not compare as they are stored.
_DTYPES = {INT32: "<i4", INT64: "<i8", FLOAT: "<f4", DOUBLE: "<f8", FIXED_LEN_BYTE_ARRAY: "u1", BYTE_ARRAY: "u1"}
_TARGET = OutputType("dictionary", "", ArrowType("binary"), np.dtype("i4"))


@lru_cache(maxsize=1)
def _page_offset_layout() -> ThriftLayout:
    return thrift_layout("ColumnChunk", "meta_data.data_page_offset")


def supports_dictionary(leaf: Leaf) -> bool:
    """Whether dictionary entries of the column's type compare as they are stored."""
    return leaf.physical in _DTYPES


def first_data_pages(file: OpenFile, row_groups: Sequence[int], leaf: Leaf) -> dict[int, int]:
    """Return `data_page_offset` of a column's chunks by row group, kept with the footer; without damaged chunks."""
    known = file.footer.cache.get_or_make(("data page offsets", leaf.index), dict[int, int])
    missing = [*filterfalse(known.__contains__, row_groups)]
    if missing:
        try:
            words = file.footer.chunks.read_words(_page_offset_layout(), missing, [leaf.index] * len(missing))
        except ParquetError:
            return {}
        offsets = words[:, _page_offset_layout().slot("meta_data.data_page_offset")]
        if file.footer.data_bounds is not None:
            offsets = offsets + file.footer.data_bounds[missing, 0]
        known.update(zip(missing, offsets.tolist(), strict=True))
    return known


def dictionary_range(pages: ChunkPages, first_page: int) -> tuple[int, int] | None:
    """Return start and exclusive end of a chunk's dictionary page in the file; None if it has none."""
    return (pages.start, first_page) if pages.start < first_page < pages.end else None


def is_fully_dictionary_encoded(file: OpenFile, row_group: int, leaf: Leaf) -> bool:
    """Whether `encoding_stats` prove that all data pages of a chunk hold dictionary indices; kept with the footer."""
    known = file.footer.cache.get_or_make("fully dictionary-encoded", dict[tuple[int, int], bool])
    found: bool | None = known.get((row_group, leaf.index))
    if found is None:
        found = known[row_group, leaf.index] = _is_fully_dictionary_encoded(file, row_group, leaf)
    return found


def _is_fully_dictionary_encoded(file: OpenFile, row_group: int, leaf: Leaf) -> bool:
    try:
        chunk = file.footer.chunks.chunk_record(row_group, leaf.index).meta_data
    except ParquetError:
        return False
    stats = [] if chunk is None else chunk.encoding_stats or []
    encodings = {stat.encoding for stat in stats if stat.page_type in (DATA_PAGE, DATA_PAGE_V2) and stat.count > 0}
    return bool(encodings) and not encodings - {PLAIN_DICTIONARY, RLE_DICTIONARY}


def decode_dictionary(
    data: np.ndarray, row_group: int, place: int, leaf: Leaf, tables: ChunkTables
) -> ColumnVector | None:
    """Decode a dictionary page (uint8, with SLACK after it) to its entries; None if it is not a valid one.

    `place` is the column's position in `tables`.
    """
    table = tables.chunk_table([place], [_TARGET], RowSlices.single(row_group, 0, 0))
    table[0, C_START], table[0, C_END] = 0, len(data) - SLACK
    with WorkerPool(1) as crew:
        reader = ModuleReader(BytesSource(memoryview(data)), keys=tables.keys)  # type: ignore[arg-type]
        context = ReadContext(reader, [leaf.name], crew, True)
        sink = CodesSink(False, partial(ByteArraySink, False, 0))
        try:
            DecodeTask(context, [row_group], [0], ScannedPages(context.reader, table), sink)()
        except ParquetError:
            return None
        finally:
            context.close()
    found = sink.arrays[0].dictionary
    # Without a dictionary page the chunk may hold any value, and bytes behind the entries may be entries, too.
    if found is EMPTY_DICTIONARY or table[0, C_DICTIONARY_UNREAD]:
        return None
    dtype = f"V{leaf.type_length}" if leaf.physical == FIXED_LEN_BYTE_ARRAY else _DTYPES[leaf.physical]
    values = found.data[: int(found.offsets[-1])].view(dtype)
    return ColumnVector(values, found.offsets if leaf.physical == BYTE_ARRAY else None)
