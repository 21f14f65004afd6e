"""Parts of a file that a read touches, by name: pages, dictionaries, indexes and Bloom filters."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from unittest import mock

import numparq
from numparq.format.footer import tail as footer_module
from support.files.forged_metadata import FileParts

Region = tuple[Any, ...]  # ("page", row group, column, ordinal), or ("dictionary" and the like, row group, column)


def count_io(data: Any, read: Callable[[numparq.ParquetFile], Any]) -> tuple[Any, int, int]:
    """Return the result of a read, or its error's text, with the bytes and requests that it took."""
    with numparq.ParquetFile(data) as file:
        try:
            found = read(file)
        except numparq.ParquetError as error:
            found = str(error)
        return found, file._file.source.num_bytes, file._file.source.num_requests


class RecordingFile(io.BytesIO):
    """A file object that records the bytes read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.ranges: list[tuple[int, int]] = []

    def readinto(self, out: Any) -> int:
        start = self.tell()
        count = super().readinto(out)
        self.ranges.append((start, start + count))
        return count

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        found = super().read(size)
        self.ranges.append((start, start + len(found)))
        return found


def file_regions(data: bytes) -> dict[Region, tuple[int, int]]:
    """Return the byte ranges (end exclusive) of every part of a file with offset indexes."""
    parts = FileParts(data)
    found: dict[Region, tuple[int, int]] = {}
    for group, place, chunk in parts.chunks():
        name, about = parts.leaves[place].path[0], chunk.meta_data
        for kind in ("column_index", "offset_index"):
            start = getattr(chunk, f"{kind}_offset")
            if start is not None:
                found[kind.replace("_", " "), group, name] = start, start + getattr(chunk, f"{kind}_length")
        if about.bloom_filter_offset is not None:
            found["bloom", group, name] = (
                about.bloom_filter_offset,
                about.bloom_filter_offset + about.bloom_filter_length,
            )
        index = parts.indexes[group, place]["OffsetIndex"]
        locations = index.page_locations if index is not None else ()
        for number, page in enumerate(locations):
            found["page", group, name, number] = page.offset, page.offset + page.compressed_page_size
        if about.dictionary_page_offset:
            stop = locations[0].offset if locations else about.data_page_offset
            found["dictionary", group, name] = about.dictionary_page_offset, stop
        if index is None:
            found["chunk", group, name] = about.data_page_offset, about.data_page_offset + 1
    return found


def read_regions(
    data: bytes, where: dict[Region, tuple[int, int]] | None = None, **options: Any
) -> tuple[Any, set[Region]]:
    """Read; return the frame and the regions read. The footer request fetches nothing else."""
    where = file_regions(data) if where is None else where
    source = RecordingFile(data)
    with mock.patch.object(footer_module, "TAIL_BYTES", 16):
        frame = numparq.read_parquet(source, **options)
    return frame, {
        name
        for name, (start, stop) in where.items()
        if any(first < stop and start < last for first, last in source.ranges)
    }


def data_pages_of(found: set[Region], column: str | None = None) -> set[Region]:
    """Return only data pages, as (row group, ordinal) of one column or (row group, column, ordinal)."""
    some = {region[1:] for region in found if region[0] == "page"}
    return some if column is None else {(group, page) for group, name, page in some if name == column}
