"""Byte ranges that a reader needs with the page index, read by thriftpy2."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

DEFINITION = Path(__file__).resolve().parents[1] / "thrift" / "parquet.thrift"
Range = tuple[int, int]
"""First byte in the file, and the one behind the last."""


def thrift_struct(raw: BinaryIO, position: int, length: int, name: str) -> tuple[Any, int]:
    """Read a struct of the format.

    Returns
    -------
    object
        The struct.
    int
        How many of the `length` bytes it takes.
    """
    import thriftpy2
    from thriftpy2.protocol.compact import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    definition = thriftpy2.load(str(DEFINITION), module_name="numparq_parquet_thrift")
    raw.seek(position)
    buffer = TMemoryBuffer(raw.read(length))
    made = getattr(definition, name)()
    made.read(TCompactProtocol(buffer))
    return made, length - len(buffer.read(length))


def offset_index(chunk: Any) -> Range:
    """Return the byte range of a chunk's offset index."""
    return chunk.offset_index_offset, chunk.offset_index_offset + chunk.offset_index_length


def column_index(chunk: Any) -> Range:
    """Return the byte range of a chunk's column index."""
    return chunk.column_index_offset, chunk.column_index_offset + chunk.column_index_length


def pages(raw: BinaryIO, chunk: Any, start: int, stop: int) -> list[Range]:
    """Return the byte ranges of a chunk's dictionary page and its data pages with rows `start` to `stop`."""
    index, _ = thrift_struct(raw, chunk.offset_index_offset, chunk.offset_index_length, "OffsetIndex")
    locations = index.page_locations
    following = [page.first_row_index for page in locations[1:]] + [stop]
    data = [
        (page.offset, page.offset + page.compressed_page_size)
        for page, end in zip(locations, following, strict=True)
        if page.first_row_index < stop and end > start
    ]
    first = chunk.meta_data.dictionary_page_offset
    return [(first, locations[0].offset), *data] if first else data


def chunk_bytes(raw: BinaryIO, chunk: Any, start: int, stop: int) -> int:
    """Return the bytes of a chunk's offset index, dictionary page and data pages with rows `start` to `stop`."""
    ranges = [offset_index(chunk), *pages(raw, chunk, start, stop)]
    return sum(stop - start for start, stop in ranges)
