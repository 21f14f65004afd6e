"""Walk the pages of a column chunk, or of a file without a footer."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numparq.column.read.page_walk import PageEvent, walk_chunk
from numparq.errors import InvalidFileError
from numparq.format.footer.checkpoints import find_last_footer_in
from numparq.format.thrift.idl import enum_value
from numparq.io.source import Source, read_bytes
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, INDEX_PAGE

from .deviations import WHOLE_FILE, Findings, Location
from .thrift import ThriftDecodeError, read_struct

NOT_COUNTED = -1  # num_nulls as parquet-java wrote it
_MIN_COUNTS = {
    "num_values": 0,
    "num_nulls": NOT_COUNTED,
    "num_rows": 0,
    "definition_levels_byte_length": 0,
    "repetition_levels_byte_length": 0,
}
_FIRST_READ_BYTES, _MAX_HEADER_BYTES = 1 << 12, 1 << 26
_TYPE_HEADERS = {
    DATA_PAGE: "data_page_header",
    INDEX_PAGE: "index_page_header",
    DICTIONARY_PAGE: "dictionary_page_header",
    DATA_PAGE_V2: "data_page_header_v2",
}

_KINDS = (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2)
_BLOCK = 1 << 16
_MAX_METADATA_BYTES = 1 << 16

_MAGIC_BYTES = 4


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
        PageHeader struct.
    """

    ordinal: int
    offset: int
    body_offset: int
    header: dict[str, Any]

    @property
    def end(self) -> int:
        """Exclusive end of the page in the file."""
        return self.body_offset + int(self.header["compressed_page_size"])

    @property
    def type_header(self) -> dict[str, Any]:
        """Header of the page's type."""
        type_header: dict[str, Any] = self.header[_TYPE_HEADERS[self.header["type"]]]
        return type_header


def has_negative_counts(type_header: dict[str, Any]) -> bool:
    """Whether a page header has a negative count or length; -1 nulls (not counted) are allowed."""
    return any(type_header.get(name, 0) < least for name, least in _MIN_COUNTS.items())


def walk_chunk_pages(
    source: Source,
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

    def read_page(position: int, ordinal: int) -> PageEvent:
        here = location._replace(page=ordinal)
        header, body = _read_header(source, position, data_end, findings, here)
        if header is None or not _is_valid(header, body, data_end, findings, here):
            return PageEvent(position)
        page = StoredPage(ordinal, position, body, header)
        return PageEvent(position, page, page.end)

    return (event.page for event in walk_chunk(read_page, start, end, page_offsets))


def _read_header(
    source: Source, position: int, data_end: int, findings: Findings, location: Location
) -> tuple[dict[str, Any] | None, int]:
    size = _FIRST_READ_BYTES
    noted: list[tuple[str, str]] = []

    def note(check: str, text: str) -> None:
        noted.append((check, text))

    while True:
        size = min(size, data_end - position)
        noted.clear()
        try:
            header, end = read_struct("PageHeader", read_bytes(source, position, size), note)
        except ThriftDecodeError as error:
            if size < min(data_end - position, _MAX_HEADER_BYTES):
                size *= 8
                continue
            findings.add(
                "page-header", f"the page header at byte {position:,} of the file cannot be read: {error}", location
            )
            return None, 0
        findings.add_all(noted, location)
        return header, position + end


def _is_valid(header: dict[str, Any], body: int, data_end: int, findings: Findings, location: Location) -> bool:
    """Check that a header has a type and a valid size."""
    size, name = header.get("compressed_page_size"), _TYPE_HEADERS.get(header.get("type", -1))
    if size is None or "type" not in header or "uncompressed_page_size" not in header:
        return False  # reported as thrift-required
    if size < 0 or header["uncompressed_page_size"] < 0:
        findings.add(
            "page-counts",
            f"a page size is negative: {size:,} bytes, decompressed {header['uncompressed_page_size']:,}",
            location,
        )
        return False
    if size > data_end - body:
        findings.add(
            "page-size",
            f"the page has {size:,} bytes by its header, but the file has only {data_end - body:,} more",
            location,
        )
        return False
    if name is not None and name not in header:
        findings.add(
            "page-type",
            f"the page has type {enum_value('PageType', header['type'])!s}, but its header has no {name}",
            location,
        )
        return False
    return True


class StoredPages:
    """Pages of a file, kept as offsets: a decoded header takes far more memory than a small page."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._offsets = array("q")

    def append(self, page: StoredPage) -> None:
        """Append a page."""
        self._offsets.append(page.offset)

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[StoredPage]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> StoredPage:
        offset = self._offsets[number]
        header, body = _read_header(self._source, offset, self._source.size, Findings(), WHOLE_FILE)
        assert header is not None
        return StoredPage(number, offset, body, header)


@dataclass(frozen=True)
class PageSequence:
    """Consecutive intact pages of a file.

    Attributes
    ----------
    pages : StoredPages
        Complete pages whose checksum, if any, is right.
    chunk_boundaries : set of int
        Indices of pages before which a column chunk certainly ends, because its metadata is stored there.
    end : int
        End of the last page, with the zeros and chunk metadata after it.
    reason : str
        Why the sequence ends.
    num_checksums : int
        Number of pages with a checksum.
    """

    pages: StoredPages
    chunk_boundaries: set[int]
    end: int
    reason: str
    num_checksums: int


def walk_file_pages(source: Source, start: int, progress: Callable[[int], None] = lambda count: None) -> PageSequence:
    """Find intact pages from `start` on (after the magic number or a checkpoint's footer).

    Skips zeros, with which writers align row groups, and the column chunk metadata that old writers put after a chunk.
    """
    pages = StoredPages(source)
    breaks: set[int] = set()
    position, checksums, reason = start, 0, ""
    while not reason:
        findings = Findings()
        for page in walk_chunk_pages(source, position, source.size, source.size, (), findings, WHOLE_FILE):
            trouble = "its header is damaged" if page is None or findings.deviations else _page_defect(source, page)
            if page is None or trouble:
                break
            pages.append(page)
            checksums += page.header.get("crc") is not None
            progress(page.end - position)
            position = page.end
        else:
            reason = "the file ends"
            break
        behind = _skip_zeros(source, position)
        if behind == position:
            behind = _skip_chunk_metadata(source, position) or position
            breaks.add(len(pages))
        if behind == position:
            reason = f"no intact page begins at byte {position:,}: {trouble}"
        position = behind
    return PageSequence(pages, breaks, position, reason, checksums)


def _page_defect(source: Source, page: StoredPage) -> str:
    """Return the defect of a page in words; empty if it is sound."""
    if page.header["type"] not in _KINDS:
        return "its page type is unknown"
    if has_negative_counts(page.type_header):
        return "its header is damaged"
    crc = page.header.get("crc")
    if (
        crc is not None
        and zlib.crc32(read_bytes(source, page.body_offset, page.end - page.body_offset)) != crc & 0xFFFFFFFF
    ):
        return "its checksum does not match its bytes"
    return ""


def _skip_zeros(source: Source, position: int) -> int:
    while position < source.size:
        data = read_bytes(source, position, min(_BLOCK, source.size - position))
        left = data.lstrip(b"\0")
        if left:
            return position + len(data) - len(left)
        position += len(data)
    return position


def _skip_chunk_metadata(source: Source, position: int) -> int | None:
    """Return the end of the column chunk metadata stored at `position`; None if there is none."""
    data = read_bytes(source, position, min(_MAX_METADATA_BYTES, source.size - position))
    for name in ("ColumnChunk", "ColumnMetaData"):
        noted: list[str] = []
        try:
            found, end = read_struct(name, data, lambda check, text, noted=noted: noted.append(check))  # type: ignore[misc]
        except ThriftDecodeError:
            continue
        if not noted and (name == "ColumnMetaData" or "meta_data" in found):
            return position + end
    return None


def describe_remains(source: Source) -> list[str]:
    """Return report lines on what could be saved of a file without a footer."""
    start = _MAGIC_BYTES
    try:
        checkpoint = find_last_footer_in(source)
    except InvalidFileError as error:
        lines = [error.message]
    else:
        start = checkpoint.end
        lines = [
            f"the last checkpoint's footer ends at byte {start:,}: the file is complete up to there, with "
            f"{checkpoint.num_rows:,} rows in {checkpoint.num_row_groups:,} row groups"
        ]
    walk = walk_file_pages(source, start)
    if not walk.pages:
        return [*lines, f"no page follows the checkpoint, from byte {start:,} on"] if start > _MAGIC_BYTES else lines
    dictionaries = values = 0
    for page in walk.pages:
        is_dictionary = page.header["type"] == DICTIONARY_PAGE
        dictionaries += is_dictionary
        values += 0 if is_dictionary else page.type_header["num_values"]
    lines.append(
        f"bytes {start:,} to {walk.end:,} hold {len(walk.pages):,} intact pages with {values:,} values "
        f"({dictionaries:,} dictionary pages; {walk.num_checksums:,} pages have a correct checksum)"
    )
    if walk.end < source.size:
        lines.append(f"{source.size - walk.end:,} bytes follow these pages; {walk.reason}")
    return [*lines, "numparq salvage can write the intact pages to a new file"]
