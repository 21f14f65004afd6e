"""Walk the pages of a file without a footer, and go on behind damage."""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from numparq.errors import InvalidFileError
from numparq.format.footer.checkpoints import find_last_footer_in
from numparq.format.footer.tail import MAGIC
from numparq.io.source import Source, read_bytes
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE
from numparq.util.pluralize import agree_verb, pluralize

from .deviations import WHOLE_FILE, Findings
from .page_walk import StoredPage, has_negative_counts, read_page
from .stored_chunk import PlainChunk
from .thrift import ThriftDecodeError, read_struct

_KINDS = (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2)
_BLOCK = 1 << 16
_MAX_METADATA_BYTES = 1 << 16

# A page header begins with its type (field 1), followed by the uncompressed size (field 2): all writers keep the order.
_HEADER_START = re.compile(rb"\x15[\x00\x04\x06]\x15", re.DOTALL)
_MAX_CANDIDATE_BYTES = 1 << 12


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
        location = WHOLE_FILE._replace(page=number)
        page = read_page(PlainChunk(self._source), self._offsets[number], self._source.size, Findings(), location)
        assert page is not None
        return page


class LostBytes(NamedTuple):
    """Bytes of a file in which no page can be found, with an exclusive end, and why."""

    start: int
    end: int
    reason: str


@dataclass
class PageSequence:
    """Pages of a file in order, as far as their headers are intact.

    Attributes
    ----------
    pages : StoredPages
        Complete pages.
    damaged : dict of int to str
        Indices of pages whose bytes do not match their checksum, and what is wrong. Their headers are intact: the next
        page begins where they end.
    gaps : dict of int to LostBytes
        What is lost before pages, by their indices. Any number of pages may have been there.
    chunk_boundaries : set of int
        Indices of pages before which a column chunk certainly ends, because its metadata is stored there.
    end : int
        End of the last page, with the zeros and chunk metadata after it.
    reason : str
        Why the sequence ends.
    num_checksums : int
        Number of pages with a correct checksum.
    """

    pages: StoredPages
    damaged: dict[int, str] = field(default_factory=dict)
    gaps: dict[int, LostBytes] = field(default_factory=dict)
    chunk_boundaries: set[int] = field(default_factory=set)
    end: int = 0
    reason: str = ""
    num_checksums: int = 0

    def next_gap(self, page: int) -> int:
        """Return the index of the first page from `page` on with a gap before it, or the number of pages."""
        return min((at for at in self.gaps if at > page), default=len(self.pages))


def walk_file_pages(source: Source, start: int, progress: Callable[[int], None] = lambda count: None) -> PageSequence:
    """Find the pages from `start` on (after the magic number or a checkpoint's footer).

    Skips zeros, with which writers align row groups, and the column chunk metadata that old writers put after a chunk.
    Behind a damaged header, the walk goes on at the next bytes that are a page without doubt.
    """
    walk = PageSequence(StoredPages(source), end=start)
    search = _PageSearch(source)
    while walk.end < source.size:
        position = walk.end
        page, defect = _read_page(source, position)
        if page is not None and (not defect or _begins_page(source, _skip_padding(source, page.end))):
            if defect:
                walk.damaged[len(walk.pages)] = defect
            walk.num_checksums += not defect and page.header.get("crc") is not None
            walk.pages.append(page)
            walk.end = page.end
        elif (following := _skip_padding(source, position)) > position:
            walk.end = following
        elif (after := _skip_chunk_metadata(source, position)) is not None:
            walk.chunk_boundaries.add(len(walk.pages))
            walk.end = after
        else:
            reason = f"no intact page begins at byte {position:,}: {defect}"
            found = search.find(position + 1)
            if found is None:
                walk.reason = reason
                return walk
            walk.gaps[len(walk.pages)] = LostBytes(position, found, reason)
            walk.end = found
        progress(walk.end - position)
    walk.reason = "the file ends"
    return walk


def _read_page(source: Source, position: int) -> tuple[StoredPage | None, str]:
    """Return the page at a position, None if its header is damaged, and its defect in words (empty: it is sound)."""
    findings = Findings()
    page = read_page(PlainChunk(source), position, source.size, findings, WHOLE_FILE)
    if page is None or findings.deviations or page.header["type"] not in _KINDS:
        is_unknown = page is not None and not findings.deviations
        return None, "its page type is unknown" if is_unknown else "its header is damaged"
    if has_negative_counts(page.type_header):
        return None, "its header is damaged"
    crc = page.header.get("crc")
    if crc is not None:
        body = read_bytes(source, page.body_offset, page.end - page.body_offset)
        if zlib.crc32(body) != crc & 0xFFFFFFFF:
            return page, "its checksum does not match its bytes"
    return page, ""


def _begins_page(source: Source, position: int) -> bool:
    """Whether an intact page header, or the end of the file, is at a position."""
    if position == source.size:
        return True
    findings = Findings()
    page = read_page(PlainChunk(source), position, source.size, findings, WHOLE_FILE)
    is_sound = page is not None and not findings.deviations and page.header["type"] in _KINDS
    return is_sound and page is not None and not has_negative_counts(page.type_header)


class _PageSearch:
    """Finds pages behind damage. All searches in a file read a few times its bytes at most."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = 4 * source.size + (1 << 20)  # bytes that may still be read to check what looks like a page

    def find(self, position: int) -> int | None:
        """Return where the next page begins, from a position on; None if none is certain.

        A page is certain by its checksum, or without one by the header of the next page. Behind a magic number, pages
        may be those of a Parquet file that is a value of this one.
        """
        source, overlap = self._source, len(MAGIC) - 1
        while position < source.size:
            block = read_bytes(source, position, min(_BLOCK + overlap, source.size - position))
            stop = block.find(MAGIC)
            for match in _HEADER_START.finditer(block, 0, len(block) if stop < 0 else stop):
                if match.start() < _BLOCK and self._is_page(position + match.start(), block[match.start() :]):
                    return position + match.start()
                if self._left <= 0:
                    return None
            if stop >= 0:
                return None
            position += _BLOCK
        return None

    def _is_page(self, position: int, data: bytes) -> bool:
        """Whether a page is at a position; `data` are bytes from there on."""
        source = self._source
        if len(data) < _MAX_CANDIDATE_BYTES:
            data = read_bytes(source, position, min(_MAX_CANDIDATE_BYTES, source.size - position))
        self._left -= _MAX_CANDIDATE_BYTES
        noted: list[str] = []
        try:
            header, size = read_struct(
                "PageHeader", data[:_MAX_CANDIDATE_BYTES], lambda check, text: noted.append(check)
            )
        except ThriftDecodeError:
            return False
        if noted or header["compressed_page_size"] > source.size - position - size:
            return False
        self._left -= max(header["compressed_page_size"], 0)
        page, defect = _read_page(source, position)
        if page is None or defect or self._left <= 0:
            return False
        return page.header.get("crc") is not None or (page.end < source.size and _begins_page(source, page.end))


def _skip_padding(source: Source, position: int) -> int:
    """Return the end of the zeros at a position, if they align what follows, or fill the rest of the file.

    Zeros that align what follows are fewer than a power of two that divides its position. Others are lost bytes.
    """
    end = position
    while end < source.size:
        data = read_bytes(source, end, min(_BLOCK, source.size - end))
        left = data.lstrip(b"\0")
        end += len(data) - len(left)
        if left:
            break
    is_padding = end == source.size or end - position < (end & -end)
    return end if is_padding else position


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
    start = len(MAGIC)
    try:
        checkpoint = find_last_footer_in(source)
    except InvalidFileError as error:
        lines = [error.message]
    else:
        start = checkpoint.end
        lines = [
            f"the last checkpoint's footer ends at byte {start:,}: the file is complete up to there, with "
            f"{pluralize(checkpoint.num_rows, 'row')} in {pluralize(checkpoint.num_row_groups, 'row group')}"
        ]
    walk = walk_file_pages(source, start)
    if not walk.pages:
        return [*lines, f"no page follows the checkpoint, from byte {start:,} on"] if start > len(MAGIC) else lines
    dictionaries = values = 0
    for number, page in enumerate(walk.pages):
        if number not in walk.damaged:
            is_dictionary = page.header["type"] == DICTIONARY_PAGE
            dictionaries += is_dictionary
            values += 0 if is_dictionary else page.type_header["num_values"]
    lines.append(
        f"bytes {start:,} to {walk.end:,} hold {pluralize(len(walk.pages) - len(walk.damaged), 'intact page')} with "
        f"{pluralize(values, 'value')} ({pluralize(dictionaries, 'dictionary page')}; "
        f"{pluralize(walk.num_checksums, 'page')} {agree_verb(walk.num_checksums, 'have')} a correct checksum)"
    )
    lines += [f"the page at byte {walk.pages[at].offset:,} is damaged: {what}" for at, what in walk.damaged.items()]
    lines += [
        f"{pluralize(gap.end - gap.start, 'byte')} {agree_verb(gap.end - gap.start, 'are')} lost there: {gap.reason}"
        for gap in walk.gaps.values()
    ]
    if walk.end < source.size:
        lines.append(
            f"{pluralize(source.size - walk.end, 'byte')} {agree_verb(source.size - walk.end, 'follow')} "
            f"these pages; {walk.reason}"
        )
    return [*lines, "numparq salvage can write the intact pages to a new file"]
