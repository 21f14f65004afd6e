"""Walk the pages of a column chunk; read page headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numparq.column.read.page_walk import PageEvent, walk_chunk
from numparq.format.thrift.idl import enum_value
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, INDEX_PAGE
from numparq.util.pluralize import pluralize

from .deviations import Findings, Location
from .stored_chunk import StoredChunk
from .thrift import ThriftDecodeError

NOT_COUNTED = -1  # num_nulls as parquet-java wrote it
_MIN_COUNTS = {
    "num_values": 0,
    "num_nulls": NOT_COUNTED,
    "num_rows": 0,
    "definition_levels_byte_length": 0,
    "repetition_levels_byte_length": 0,
}
_MAX_HEADER_BYTES = 1 << 26
_TYPE_HEADERS = {
    DATA_PAGE: "data_page_header",
    INDEX_PAGE: "index_page_header",
    DICTIONARY_PAGE: "dictionary_page_header",
    DATA_PAGE_V2: "data_page_header_v2",
}


@dataclass(frozen=True)
class StoredPage:
    """Page as stored in the file.

    Attributes
    ----------
    ordinal : int
        Ordinal within its chunk.
    offset, body_offset : int
        Offset of the header and of the body.
    header : dict
        PageHeader struct; `compressed_page_size` does not count `overhead`.
    overhead : int
        Bytes by which encryption makes the body longer.
    """

    ordinal: int
    offset: int
    body_offset: int
    header: dict[str, Any]
    overhead: int = 0

    @property
    def end(self) -> int:
        """Exclusive end of the page in the file."""
        return self.body_offset + int(self.header["compressed_page_size"]) + self.overhead

    @property
    def type_header(self) -> dict[str, Any]:
        """Header of the page's type."""
        type_header: dict[str, Any] = self.header[_TYPE_HEADERS[self.header["type"]]]
        return type_header


def has_negative_counts(type_header: dict[str, Any]) -> bool:
    """Whether a page header has a negative count or length; -1 nulls (not counted) are allowed."""
    return any(type_header.get(name, 0) < least for name, least in _MIN_COUNTS.items())


def walk_chunk_pages(
    chunk: StoredChunk,
    start: int,
    end: int,
    data_end: int,
    page_offsets: Sequence[int],
    findings: Findings,
    location: Location,
) -> Iterator[StoredPage | None]:
    """Yield the pages from `start` to `end`; after a damaged header, None, then go on at the next of `page_offsets`.

    `page_offsets` come from the offset index, ascending. No page may end beyond `data_end`.
    """

    def read_event(position: int, ordinal: int) -> PageEvent:
        page = read_page(chunk, position, data_end, findings, location._replace(page=ordinal))
        return PageEvent(position) if page is None else PageEvent(position, page, page.end)

    return (event.page for event in walk_chunk(read_event, start, end, page_offsets))


def read_page(
    chunk: StoredChunk, position: int, data_end: int, findings: Findings, location: Location
) -> StoredPage | None:
    """Read the header of a page that ends before `data_end`; None if it is damaged, which `findings` records."""
    header, body = _read_header(chunk, position, data_end, findings, location)
    overhead = chunk.page_overhead
    if header is None or not _is_valid(header, body, data_end, overhead, findings, location):
        return None
    if overhead:
        header = {**header, "compressed_page_size": header["compressed_page_size"] - overhead}
    return StoredPage(location.page or 0, position, body, header, overhead)


def _read_header(
    chunk: StoredChunk, position: int, data_end: int, findings: Findings, location: Location
) -> tuple[dict[str, Any] | None, int]:
    limit = min(data_end - position, _MAX_HEADER_BYTES)
    noted: list[tuple[str, str]] = []
    try:
        header, length = chunk.read_struct(
            "PageHeader", position, limit, lambda check, text: noted.append((check, text)), location.page or 0
        )
    except ThriftDecodeError as error:
        findings.add(
            error.check or "page-header",
            f"the page header at byte {position:,} of the file cannot be read: {error}",
            location,
        )
        return None, 0
    findings.add_all(noted, location)
    return header, position + length


def _is_valid(
    header: dict[str, Any], body: int, data_end: int, overhead: int, findings: Findings, location: Location
) -> bool:
    """Check that a header has a type and a valid size."""
    size, name = header.get("compressed_page_size"), _TYPE_HEADERS.get(header.get("type", -1))
    if size is None or "type" not in header or "uncompressed_page_size" not in header:
        return False  # reported as thrift-required
    if size < 0 or header["uncompressed_page_size"] < 0:
        findings.add(
            "page-counts",
            f"a page size is negative: {pluralize(size, 'byte')}, decompressed {header['uncompressed_page_size']:,}",
            location,
        )
        return False
    if size > data_end - body:
        findings.add(
            "page-size",
            f"the page has {pluralize(size, 'byte')} by its header, but the file has only {data_end - body:,} more",
            location,
        )
        return False
    if size < overhead:
        findings.add("module-length", f"the page has {pluralize(size, 'byte')}, too few for a module", location)
        return False
    if name is not None and name not in header:
        findings.add(
            "page-type",
            f"the page has type {enum_value('PageType', header['type'])!s}, but its header has no {name}",
            location,
        )
        return False
    return True
