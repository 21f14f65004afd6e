"""The pages of a column chunk as they lie in the file: each begins where the one before ends (parquet.thrift)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..io.source import Source
from ..kernels.tables import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, INDEX_PAGE
from ..metadata.enums import enum_value
from .deviations import Findings, Place
from .footer import read_bytes
from .thrift import Unreadable, read_struct

__all__ = ["NOT_COUNTED", "StoredPage", "has_negative_counts", "stored_pages"]

NOT_COUNTED = -1  # num_nulls, as parquet-java wrote it
_LEAST = {"num_values": 0, "num_nulls": NOT_COUNTED, "num_rows": 0, "definition_levels_byte_length": 0,
          "repetition_levels_byte_length": 0}  # fmt: skip
_FIRST_LOOK, _LONGEST_HEADER = 1 << 12, 1 << 26
_STRUCTS = {DATA_PAGE: "data_page_header", INDEX_PAGE: "index_page_header", DICTIONARY_PAGE: "dictionary_page_header",
            DATA_PAGE_V2: "data_page_header_v2"}  # fmt: skip


@dataclass(frozen=True)
class StoredPage:
    """A page as it lies in the file.

    Parameters
    ----------
    ordinal : int
        Among the pages of its chunk.
    offset : int
        Where its header begins.
    body : int
        Where its header ends.
    header : dict
        The PageHeader.
    """

    ordinal: int
    offset: int
    body: int
    header: dict[str, Any]

    @property
    def end(self) -> int:
        """Where the page ends."""
        return self.body + self.header["compressed_page_size"]

    @property
    def about(self) -> dict[str, Any]:
        """The header of its type."""
        return self.header[_STRUCTS[self.header["type"]]]


def has_negative_counts(about: dict[str, Any]) -> bool:
    """Tell whether a header claims what cannot be counted or measured, of nulls but that they were not."""
    return any(about.get(name, 0) < least for name, least in _LEAST.items())


def stored_pages(
    source: Source, start: int, end: int, limit: int, resume: Sequence[int], findings: Findings, place: Place
) -> Iterator[StoredPage | None]:
    """Walk over the pages that begin between two places; where a header is damaged, go on where an index says.

    In place of each page that was passed over there is None.

    Parameters
    ----------
    source : Source
        The file.
    start, end : int
        The chunk.
    limit : int
        Where the file's data end: no page goes beyond.
    resume : sequence of int
        Where pages begin by the offset index, ascending.
    findings : Findings
        Headers that are damaged are noted.
    place : Place
        Of the chunk.
    """
    position, ordinal = start, 0
    while position < end:
        here = place._replace(page=ordinal)
        header, body = _read_header(source, position, limit, findings, here)
        if header is not None and _is_sound(header, body, limit, findings, here):
            page = StoredPage(ordinal, position, body, header)
            yield page
            position = page.end
        else:
            yield None
            position = next((offset for offset in resume if offset > position), end)
        ordinal += 1


def _read_header(
    source: Source, position: int, limit: int, findings: Findings, place: Place
) -> tuple[dict[str, Any] | None, int]:
    size = _FIRST_LOOK
    noted: list[tuple[str, str]] = []

    def note(check: str, text: str) -> None:
        noted.append((check, text))

    while True:
        size = min(size, limit - position)
        noted.clear()
        try:
            header, end = read_struct("PageHeader", read_bytes(source, position, size), note)
        except Unreadable as error:
            if size < min(limit - position, _LONGEST_HEADER):
                size *= 8
                continue
            findings.add("page-header", f"at byte {position:,} of the file there is no page header: {error}", place)
            return None, 0
        findings.add_all(noted, place)
        return header, position + end


def _is_sound(header: dict[str, Any], body: int, limit: int, findings: Findings, place: Place) -> bool:
    """Check what has to be right before a page can be looked at."""
    size, name = header.get("compressed_page_size"), _STRUCTS.get(header.get("type", -1))
    if size is None or "type" not in header or "uncompressed_page_size" not in header:
        return False  # which has been said already
    if size < 0 or header["uncompressed_page_size"] < 0:
        findings.add("page-counts", f"the page has {size:,} bytes, decompressed {header['uncompressed_page_size']:,}",
                     place)  # fmt: skip
        return False
    if size > limit - body:
        findings.add("page-size", f"the page claims {size:,} bytes where the file has {limit - body:,} more", place)
        return False
    if name is not None and name not in header:
        findings.add("page-type", f"the page is a {enum_value('PageType', header['type'])!s}, and has no {name}", place)
        return False
    return True
