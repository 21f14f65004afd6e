"""Positions of a file's pages by its headers, and damage to a page or to the footer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .builder import from_bytes, to_bytes

DICTIONARY = 2


@dataclass
class StoredPage:
    """Positions of a page's header, body and end, and its rows (flat columns)."""

    header: Any
    start: int
    body: int
    end: int
    first_value: int

    @property
    def is_dictionary(self) -> bool:
        return self.header.type == DICTIONARY

    @property
    def num_values(self) -> int:
        return (self.header.data_page_header or self.header.data_page_header_v2).num_values


def footer_of(data: bytes) -> Any:
    (length,) = struct.unpack("<I", data[-8:-4])
    return from_bytes("FileMetaData", data[-8 - length : -8])[0]


def footer_start(data: bytes) -> int:
    return len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]


def pages_of(data: bytes, row_group: int, column: str) -> list[StoredPage]:
    """Return the pages of a chunk of a valid file by the leaf's dotted path, including the dictionary page."""
    chunks = footer_of(data).row_groups[row_group].columns
    path = column.encode().split(b".")
    facts = next(chunk.meta_data for chunk in chunks if chunk.meta_data.path_in_schema == path)
    position = min(filter(None, (facts.dictionary_page_offset, facts.data_page_offset)))
    found, values = [], 0
    while values < facts.num_values:
        header, length = from_bytes("PageHeader", data[position : position + 10_000])
        page = StoredPage(header, position, position + length, position + length + header.compressed_page_size, values)
        values += 0 if page.is_dictionary else page.num_values
        found.append(page)
        position = page.end
    return found


def data_pages(data: bytes, row_group: int, column: str) -> list[StoredPage]:
    return [page for page in pages_of(data, row_group, column) if not page.is_dictionary]


def dictionary_page(data: bytes, row_group: int, column: str) -> StoredPage:
    return next(page for page in pages_of(data, row_group, column) if page.is_dictionary)


def flip_bytes(data: bytes, *positions: int, by: int = 0xFF) -> bytes:
    """Flip bits of some bytes."""
    out = bytearray(data)
    for position in positions:
        out[position] ^= by
    return bytes(out)


def damage_body(data: bytes, page: StoredPage) -> bytes:
    """Damage the body of a page."""
    return flip_bytes(data, (page.body + page.end) // 2)


def damage_header(data: bytes, page: StoredPage) -> bytes:
    """Damage the header of a page: its first field gets an invalid type."""
    return flip_bytes(data, page.start, by=0x0E ^ 0x05)


def edit_header(data: bytes, page: StoredPage, edit: Callable[[Any], None]) -> bytes:
    """Change a page header without changing its length."""
    header, length = from_bytes("PageHeader", data[page.start : page.body])
    edit(header)
    encoded = to_bytes(header)
    assert len(encoded) == length
    return data[: page.start] + encoded + data[page.body :]


def edit_footer(data: bytes, edit: Callable[[Any], None]) -> bytes:
    """Change the footer."""
    footer = footer_of(data)
    edit(footer)
    encoded = to_bytes(footer)
    return data[: footer_start(data)] + encoded + struct.pack("<I", len(encoded)) + data[-4:]
