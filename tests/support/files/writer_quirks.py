"""Files with known quirks of writers, built by hand: `QUIRKS`, by the warnings of `numparq verify`."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pandas as pd

import numparq
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.oracles import delta

from . import builder as h
from .builder import FileColumn, data_page, data_page_v2, encode_plain, extended_idl

DELTAS, PREFIXES, GZIP = 5, 7, 2
PARQUET_CPP, PARQUET_MR = "parquet-cpp version 1.5.1-SNAPSHOT", "parquet-mr version 1.7.0 (build 0)"
PRESENT = [1, 0, 0, 1, 1, 0, 1, 1, 0, 1]
WORDS = [[b"straw", b"strawberry"], [b"strawberry", b"strange"], [], [b"strangest"], [b"other"]]


def one(
    pages: list[h.FilePage],
    rows: int,
    created_by: str | None,
    physical: int = h.INT64,
    repetition: int = h.REQUIRED,
    **facts: Any,
) -> bytes:
    """Build a file of one column ``a`` with its encodings listed."""
    listed = sorted(
        {
            page.header.data_page_header.encoding
            if page.header.data_page_header is not None
            else page.header.data_page_header_v2.encoding
            for page in pages
        }
        | {h.RLE}
    )
    element = facts.pop("element", {})
    column = FileColumn("a", physical, [pages], repetition, element, {"encodings": listed, "num_values": rows, **facts})

    def settle(footer: Any) -> None:
        group = footer.row_groups[0]
        meta = group.columns[0].meta_data
        if meta.codec:
            meta.total_uncompressed_size = sum(
                len(page.stored()) + page.header.uncompressed_page_size - len(page.body) for page in pages
            )
        group.total_byte_size = meta.total_uncompressed_size

    orders = [extended_idl().ColumnOrder(TYPE_ORDER=extended_idl().TypeDefinedOrder())]
    return h.build_file([facts.pop("num_rows", rows)], [column], created_by=created_by, column_orders=orders).stored(
        settle
    )


def nulls(created_by: str | None, said: int = 0) -> bytes:
    page = data_page_v2(4, said, h.encode_indices([1, 0, 1, 1], 1), encode_plain(h.INT64, [7, 8, 9]))
    return one([page], 4, created_by, repetition=h.OPTIONAL)


def list_nulls(created_by: str | None, said: int = 2, null_count: int = 2) -> bytes:
    """Build a repeated column of one entry and two empty lists, by a page of version 2."""
    section = h.encode_indices([1, 0, 0], 1)
    page = data_page_v2(3, said, h.encode_indices([0, 0, 0], 1) + section, encode_plain(h.INT64, [7]))
    header = page.header.data_page_header_v2
    header.repetition_levels_byte_length = header.definition_levels_byte_length - len(section)
    header.definition_levels_byte_length = len(section)
    statistics = extended_idl().Statistics(null_count=null_count)
    return one([page], 3, created_by, repetition=h.REPEATED, statistics=statistics)


def list_index_nulls(created_by: str | None) -> bytes:
    """Build a column index with too few nulls of a list column."""
    from .spec_violations import edit_footer, index_with, item

    data = index_with("ColumnIndex", item(0, "null_counts", 1), column=3)
    return edit_footer(data, lambda footer: setattr(footer, "created_by", created_by))


def rows(created_by: str | None, said: int = 0) -> bytes:
    page = data_page_v2(3, 0, b"", encode_plain(h.INT64, [1, 2, 3]))
    page.header.data_page_header_v2.num_rows = said
    return one([page], 3, created_by)


def deltas(created_by: str | None) -> bytes:
    numbers = [0, 2**31 - 1, -(2**31), 2**31 - 1, -1, -(2**31), -(2**31), 7] * 40
    page = data_page(len(numbers), delta.encode(numbers, 64), DELTAS)
    return one([page], len(numbers), created_by, h.INT32)


def array(created_by: str | None) -> bytes:
    """Build lists [1, 2], none and [3, 4], the second with an entry for each of two elements, as a null ARRAY(2)."""
    levels = h.encode_levels([0, 1, 0, 1, 0, 1]) + h.encode_levels([1, 1, 0, 0, 1, 1])
    page = data_page(6, levels + encode_plain(h.INT64, [1, 2, 3, 4]))
    return one([page], 3, created_by, repetition=h.REPEATED, num_values=6)


def padding(created_by: str | None) -> bytes:
    """Add eight zero bytes to the values of a page."""
    stats = extended_idl().Statistics(null_count=0, min_value=struct.pack("<q", 7), max_value=struct.pack("<q", 9))
    return one([data_page(3, encode_plain(h.INT64, [7, 8, 9]) + bytes(8))], 3, created_by, statistics=stats)


def checksum(created_by: str | None) -> bytes:
    pages = [data_page(2, encode_plain(h.INT64, [1, 2])) for _ in range(2)]
    for page in pages:
        page.header.crc = 0
    return one(pages, 4, created_by)


def level_bits(created_by: str | None) -> bytes:
    """Build BIT_PACKED levels packed from the lowest bit instead of the highest."""
    section = int("".join(map(str, reversed(PRESENT))), 2).to_bytes(2, "little")
    body = section + encode_plain(h.INT64, [value for value, present in enumerate(PRESENT) if present])
    stats = extended_idl().Statistics(null_count=4, min_value=struct.pack("<q", 0), max_value=struct.pack("<q", 9))
    return one(
        [data_page(10, body, h.PLAIN, h.BIT_PACKED)],
        10,
        created_by,
        repetition=h.OPTIONAL,
        statistics=stats,
        encodings=[h.PLAIN, h.RLE, h.BIT_PACKED],
    )


def encoded(values: list[bytes], before: bytes = b"") -> bytes:
    """Encode strings, the first with its common prefix with `before`."""
    prefixes = [delta.common_prefix_length(one, other) for one, other in zip([before, *values], values, strict=False)]
    suffixes = [value[shared:] for shared, value in zip(prefixes, values, strict=True)]
    return delta.encode(prefixes, 32) + delta.encode_length(suffixes)


def prefixes(created_by: str | None, spoilt: int | None = None) -> bytes:
    """Build strings whose prefixes carry over between pages; one page cannot be decoded."""
    pages, before = [], b""
    for number, part in enumerate(WORDS):
        body = b"\x80" if number == spoilt else encoded(part, before)
        pages.append(data_page(len(part), body, PREFIXES))
        before = part[-1] if part else before
    words = sorted(word for part in WORDS for word in part)
    stats = extended_idl().Statistics(min_value=words[0], max_value=words[-1])
    return one(pages, len(words), created_by, h.BYTE_ARRAY, statistics=stats)


def compressed(created_by: str | None, is_compressed: bool = False) -> bytes:
    """Build a compressed page whose header says uncompressed."""
    section, values = h.encode_indices([1, 0, 1, 1], 1), encode_plain(h.INT64, [7, 8, 9])
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    page = data_page_v2(4, 1, section, deflate.compress(values) + deflate.flush())
    page.header.compressed_page_size = len(page.body)
    page.header.uncompressed_page_size = len(section) + len(values)
    page.header.data_page_header_v2.is_compressed = is_compressed
    stats = extended_idl().Statistics(null_count=1, min_value=struct.pack("<q", 7), max_value=struct.pack("<q", 9))
    return one([page], 4, created_by, repetition=h.OPTIONAL, codec=GZIP, statistics=stats)


def boolean(created_by: str | None) -> bytes:
    """Write OPTIONAL as a bool in field 3 of the SchemaElement."""
    page = data_page(3, h.encode_levels([1, 0, 1]) + encode_plain(h.INT64, [1, 3]))
    data = one([page], 3, created_by, repetition=h.OPTIONAL)
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = data[-8 - length : -8].replace(b"\x15\x04\x25\x02\x18\x01a", b"\x15\x04\x21\x18\x01a")
    return data[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def converted(created_by: str | None) -> bytes:
    page = data_page(3, h.encode_levels([0, 0, 0]))
    return one([page], 3, created_by, h.INT32, h.OPTIONAL, element={"converted_type": 24})


def shredded(created_by: str | None, of_metadata: int = REQUIRED, of_field: int = OPTIONAL) -> bytes:
    value, typed = SchemaNode("value", OPTIONAL, BYTE_ARRAY), SchemaNode("typed_value", OPTIONAL, INT64)
    field = SchemaNode("f", of_field, children=(value, typed))
    node = SchemaNode(
        "v",
        OPTIONAL,
        None,
        0,
        LogicalType("VARIANT"),
        (
            SchemaNode("metadata", of_metadata, BYTE_ARRAY),
            value,
            SchemaNode("typed_value", OPTIONAL, children=(field,)),
        ),
    )
    row = {"metadata": b"\1\0\0", "value": None, "typed_value": {"f": {"value": None, "typed_value": 5}}}
    data = numparq.to_parquet(pd.DataFrame({"v": pd.Series([row, None], dtype=object)}), schema=[node])
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    footer.created_by = created_by
    return h.with_footer(data[: -8 - length], footer)


# By the warning: what makes a file, one who is known for that, and which errors others make by it.
QUIRKS: dict[str, tuple[Callable[[str | None], bytes], str, set[str]]] = {
    "writer-bool": (boolean, "fastparquet-python version 2024.11.0 (build 0)", {"thrift-type"}),
    "writer-converted": (converted, PARQUET_CPP, {"thrift-enum"}),
    "writer-variant": (shredded, "DuckDB version v1.5.1 (build 0)", {"schema-variant"}),
    "writer-null-count": (nulls, "parquet-cpp-arrow version 11.0.0", {"page-null-count"}),
    "writer-list-page-nulls": (
        lambda created_by: list_nulls(created_by, said=0),
        "parquet-cpp-arrow version 25.0.1",
        {"page-null-count"},
    ),
    "writer-list-nulls": (
        lambda created_by: list_nulls(created_by, null_count=1),
        "parquet-cpp-arrow version 25.0.1",
        {"stats-null-count"},
    ),
    "writer-list-index-nulls": (
        list_index_nulls,
        "parquet-cpp-arrow version 25.0.1",
        {"column-index-null-counts"},
    ),
    "writer-row-count": (rows, "parquet-go version latest", {"page-row-count"}),
    "writer-deltas": (deltas, "DuckDB version v1.4.0 (build 0)", {"page-deltas"}),
    "writer-array": (array, "DuckDB version v2.0.0 (build 0)", {"page-levels"}),
    "writer-padding": (padding, "fastparquet-python version 2026.9.0 (build 0)", {"page-bytes"}),
    "writer-checksum": (checksum, "Parquet.jl 0.6.0", {"page-crc"}),
    "writer-level-bits": (
        level_bits,
        "impala version 2.11.0-SNAPSHOT (build 0)",
        {"page-bytes", "stats-null-count", "stats-max", "page-levels", "page-values"},
    ),
    "writer-prefixes": (prefixes, PARQUET_MR, {"page-values"}),
    "writer-compressed": (compressed, PARQUET_CPP, {"page-bytes", "page-values", "stats-min", "stats-max"}),
}
OTHER = "numparq version 1.0.0"
