"""Files built by hand from pages and a footer as thriftpy2 objects, any of which may be changed.

The IDL is numparq's with unknown fields, values and structs added (`FUTURE`).
"""

from __future__ import annotations

import copy
import io
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import Any

from support.thrift_definition import idl_text

MAGIC = b"PAR1"
DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = range(8)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
REQUIRED, OPTIONAL, REPEATED = range(3)

_FUTURE = """
struct FutureStruct {
  1: optional i64 number
  2: optional binary bytes
  3: optional list<FutureStruct> inner
  4: optional bool flag
  5: optional double fraction
  6: optional list<bool> flags
  7: optional set<i32> members
  8: optional map<string, i64> pairs
}
"""
_FUTURE_FIELDS = "  900: optional FutureStruct future\n  32767: optional binary extension\n"


@lru_cache(maxsize=1)
def extended_idl() -> ModuleType:
    """Load the IDL with a field 900 and the extension field 32767 in every struct and union."""
    import thriftpy2

    text = idl_text()
    text = re.sub(r"//.*", "", text)
    head, first, rest = text.partition("struct ")
    text = head + _FUTURE + re.sub(r"((?:struct|union) \w+ \{)", r"\1\n" + _FUTURE_FIELDS, first + rest)
    return thriftpy2.load_fp(io.StringIO(text), module_name="hostile_parquet_thrift")


def to_bytes(thing: Any) -> bytes:
    """Write a struct in the compact protocol."""
    from thriftpy2.protocol.compact import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    buffer = TMemoryBuffer()
    thing.write(TCompactProtocol(buffer))
    return buffer.getvalue()


def from_bytes(name: str, data: bytes) -> tuple[Any, int]:
    """Read a struct; return it with its length."""
    from thriftpy2.protocol.compact import TCompactProtocol

    stream = io.BytesIO(data)
    thing = getattr(extended_idl(), name)()
    thing.read(TCompactProtocol(stream, decode_response=False))
    return thing, stream.tell()


@dataclass
class FilePage:
    """A page: its header, whose sizes are filled in if None, and its body."""

    header: Any
    body: bytes

    def stored(self) -> bytes:
        if self.header.compressed_page_size is not None and self.header.uncompressed_page_size is not None:
            return to_bytes(self.header) + self.body
        header = copy.copy(self.header)
        if header.compressed_page_size is None:
            header.compressed_page_size = len(self.body)
        if header.uncompressed_page_size is None:
            header.uncompressed_page_size = len(self.body)
        return to_bytes(header) + self.body

    def with_crc(self) -> FilePage:
        header = copy.copy(self.header)
        crc = zlib.crc32(self.body)
        header.crc = crc - (1 << 32) if crc >> 31 else crc
        return FilePage(header, self.body)


@dataclass
class HandmadeFile:
    """A file: its footer, and pages by (row group, column)."""

    footer: Any
    chunks: dict[tuple[int, int], list[FilePage]] = field(default_factory=dict)

    def laid_out(self) -> tuple[bytes, Any]:
        """Return the bytes before the footer, and a footer with offsets and sizes of its chunks."""
        footer = copy.deepcopy(self.footer)
        data = MAGIC
        for (group, column), pages in self.chunks.items():
            facts = footer.row_groups[group].columns[column].meta_data
            start = len(data)
            facts.dictionary_page_offset = None
            facts.data_page_offset = start
            for page in pages:
                if page.header.type == DICTIONARY_PAGE:
                    facts.dictionary_page_offset = len(data)
                    facts.data_page_offset = len(data) + len(page.stored())
                data += page.stored()
            facts.total_compressed_size = facts.total_uncompressed_size = len(data) - start
            footer.row_groups[group].columns[column].file_offset = start
        return data, footer

    def stored(self, change: Callable[[Any], None] = lambda footer: None) -> bytes:
        """Return the bytes of the file after a change to its footer."""
        data, footer = self.laid_out()
        change(footer)
        return with_footer(data, footer)


def with_footer(data: bytes, footer: Any) -> bytes:
    """Append a footer to the pages."""
    end = to_bytes(footer)
    return data + end + struct.pack("<I", len(end)) + MAGIC


def parse_file(data: bytes) -> HandmadeFile:
    """Parse a valid file; indexes and Bloom filters are dropped."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    chunks: dict[tuple[int, int], list[FilePage]] = {}
    for group, facts in enumerate(footer.row_groups):
        for column, chunk in enumerate(facts.columns):
            chunks[group, column] = _pages(data, chunk.meta_data)
            for name in ("offset_index", "column_index"):
                setattr(chunk, f"{name}_offset", None)
                setattr(chunk, f"{name}_length", None)
    return HandmadeFile(footer, chunks)


def _pages(data: bytes, facts: Any) -> list[FilePage]:
    if not facts.num_values:
        return []
    position = min(filter(None, (facts.dictionary_page_offset, facts.data_page_offset)))
    end = position + facts.total_compressed_size
    pages = []
    while position < end:
        header, length = from_bytes("PageHeader", data[position:end])
        position += length + header.compressed_page_size
        pages.append(FilePage(header, data[position - header.compressed_page_size : position]))
    return pages


# --- pieces ---------------------------------------------------------------------------------------


def encode_plain(physical: int, values: Sequence[Any]) -> bytes:
    """Encode values as PLAIN: bytes for BYTE_ARRAY, numbers for other types."""
    if physical == BYTE_ARRAY:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    form = {INT32: "i", INT64: "q", FLOAT: "f", DOUBLE: "d"}[physical]
    return struct.pack(f"<{len(values)}{form}", *values)


def encode_indices(values: Sequence[int], width: int) -> bytes:
    """Encode small numbers in one bit-packed run of the RLE hybrid."""
    groups = (len(values) + 7) // 8
    packed = sum(value << width * place for place, value in enumerate(values))
    header, start = groups << 1 | 1, b""
    while header > 127:
        start, header = start + bytes([header & 127 | 128]), header >> 7
    return start + bytes([header]) + packed.to_bytes(groups * width, "little")


def encode_levels(present: Sequence[int]) -> bytes:
    """Encode definition levels for a V1 page."""
    section = encode_indices(present, 1)
    return struct.pack("<I", len(section)) + section


def data_page(num_values: int, body: bytes, encoding: int = PLAIN, level_encoding: int = RLE) -> FilePage:
    """Build a V1 data page."""
    return FilePage(
        extended_idl().PageHeader(
            type=DATA_PAGE,
            data_page_header=extended_idl().DataPageHeader(
                num_values=num_values,
                encoding=encoding,
                definition_level_encoding=level_encoding,
                repetition_level_encoding=RLE,
            ),
        ),
        body,
    )


def data_page_v2(num_values: int, nulls: int, section: bytes, values: bytes, encoding: int = PLAIN) -> FilePage:
    """Build a V2 data page; `section` is its definition levels."""
    return FilePage(
        extended_idl().PageHeader(
            type=DATA_PAGE_V2,
            data_page_header_v2=extended_idl().DataPageHeaderV2(
                num_values=num_values,
                num_nulls=nulls,
                num_rows=num_values,
                encoding=encoding,
                definition_levels_byte_length=len(section),
                repetition_levels_byte_length=0,
            ),
        ),
        section + values,
    )


def dictionary_page(num_values: int, body: bytes, encoding: int = PLAIN) -> FilePage:
    """Build a dictionary page."""
    return FilePage(
        extended_idl().PageHeader(
            type=DICTIONARY_PAGE,
            dictionary_page_header=extended_idl().DictionaryPageHeader(num_values=num_values, encoding=encoding),
        ),
        body,
    )


def other_page(page_type: int, body: bytes) -> FilePage:
    """Build a page that is neither a data page nor a dictionary page."""
    header = extended_idl().IndexPageHeader() if page_type == INDEX_PAGE else None
    return FilePage(extended_idl().PageHeader(type=page_type, index_page_header=header), body)


@dataclass
class FileColumn:
    """A column of a handmade file: one list of pages per row group."""

    name: str
    physical: int
    pages: Sequence[list[FilePage]]
    repetition: int = REQUIRED
    element: dict[str, Any] = field(default_factory=dict)  # further fields of its SchemaElement
    facts: dict[str, Any] = field(default_factory=dict)  # and of its ColumnMetaData


def build_file(rows: Sequence[int], columns: Sequence[FileColumn], **footer: Any) -> HandmadeFile:
    """Make a file.

    Parameters
    ----------
    rows : sequence of int
        Rows of each row group.
    columns : sequence of Column
        The columns.
    **footer
        Fields of FileMetaData.
    """
    module = extended_idl()
    schema = [module.SchemaElement(name="schema", num_children=len(columns))]
    schema += [
        module.SchemaElement(
            name=column.name, type=column.physical, repetition_type=column.repetition, **column.element
        )
        for column in columns
    ]
    groups = [
        module.RowGroup(columns=[_chunk(column, count) for column in columns], total_byte_size=0, num_rows=count)
        for count in rows
    ]
    fields = {"version": 2, "schema": schema, "num_rows": sum(rows), "row_groups": groups, **footer}
    chunks = {(group, place): column.pages[group] for group in range(len(rows)) for place, column in enumerate(columns)}
    return HandmadeFile(module.FileMetaData(**fields), chunks)


def _chunk(column: FileColumn, num_values: int) -> Any:
    fields = {
        "type": column.physical,
        "encodings": [PLAIN],
        "path_in_schema": [column.name],
        "codec": 0,
        "num_values": num_values,
        "total_uncompressed_size": 0,
        "total_compressed_size": 0,
        "data_page_offset": 0,
        **column.facts,
    }
    return extended_idl().ColumnChunk(file_offset=0, meta_data=extended_idl().ColumnMetaData(**fields))
