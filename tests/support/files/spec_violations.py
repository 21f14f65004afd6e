"""Files with one deviation from the specification each: `VIOLATIONS`, by the check that finds it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import numparq
from numparq.format.thrift.decode import read_record, root_record
from numparq.format.thrift.encode import encode_struct
from numparq.format.thrift.layout import thrift_layout

from . import builder as h
from .builder import FileColumn, data_page, data_page_v2, dictionary_page, encode_plain, extended_idl
from .writer_quirks import OTHER, QUIRKS, deltas

Change = Callable[[Any], None]


# --- a sound file with everything in it, and one made by hand ---------------------------------------------------------


@lru_cache(maxsize=1)
def sound_file() -> bytes:
    """Return a valid file: two row groups, three pages a column, sorted by ``i``, indexes and checksums."""
    frame = pd.DataFrame(
        {
            "i": np.arange(120),
            "s": [None if i % 7 == 0 else f"key {i % 11:03}" for i in range(120)],
            "f": [np.nan if i % 5 == 0 else float(i) for i in range(120)],
            "l": [list(range(i % 4)) for i in range(120)],
        }
    ).astype({"s": "str"})
    return numparq.to_parquet(
        frame,
        row_group_size=60,
        max_rows_per_page=20,
        data_page_version="2.0",
        use_dictionary=["s"],
        bloom_filter_options={"i": {}, "s": {}},
        sorting_columns=["i"],
        index=False,
    )


def edit_footer(data: bytes, change: Change) -> bytes:
    """Change a file's footer."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    change(footer)
    return h.with_footer(data[: -8 - length], footer)


def sound_file_with(change: Change) -> bytes:
    return edit_footer(sound_file(), change)


def chunk_with(change: Change, column: int = 0, group: int = 0) -> bytes:
    """Change a ColumnChunk of the valid file."""
    return sound_file_with(lambda footer: change(footer.row_groups[group].columns[column]))


def index_with(kind: str, change: Callable[[dict], Any], column: int = 0) -> bytes:
    """Change an index of the valid file; the new one is appended."""
    data = sound_file()
    (length,) = struct.unpack("<I", data[-8:-4])
    chunk = numparq.ParquetFile(data).metadata.row_groups[0].columns[column]
    stem = {"ColumnIndex": "column_index", "OffsetIndex": "offset_index"}[kind]
    start, size = getattr(chunk, f"{stem}_offset"), getattr(chunk, f"{stem}_length")
    raw = np.frombuffer(data[start : start + size], np.uint8)
    index = root_record(thrift_layout(kind), read_record(raw, size, thrift_layout(kind)), raw).to_dict()
    change(index)
    made = encode_struct(kind, index)
    place = len(data) - 8 - length

    def point(footer: Any) -> None:
        about = footer.row_groups[0].columns[column]
        setattr(about, f"{stem}_offset", place)
        setattr(about, f"{stem}_length", len(made))

    return edit_footer(data[:place] + made + data[place:], point)


def item(number: int, name: str, value: Any) -> Callable[[dict], Any]:
    """Return a change to one item of an index's list."""
    return lambda index: index[name].__setitem__(number, value)


def handmade_file(*columns: FileColumn, rows: int = 3, change: Change = lambda footer: None, **footer: Any) -> bytes:
    """Build a file of one row group by hand, with consistent sizes."""

    def settle(about: Any) -> None:
        group = about.row_groups[0]
        group.total_byte_size = sum(chunk.meta_data.total_uncompressed_size for chunk in group.columns)
        change(about)

    return h.build_file([rows], columns, **footer).stored(settle)


def one_column(change: Change = lambda footer: None, pages: Any = None, physical: int = h.INT64, **about: Any) -> bytes:
    """Build a file of one REQUIRED column ``a`` with values 1, 2, 3."""
    about.setdefault("column_orders", [extended_idl().ColumnOrder(TYPE_ORDER=extended_idl().TypeDefinedOrder())])
    element, facts, repetition = about.pop("element", {}), about.pop("facts", {}), about.pop("repetition", h.REQUIRED)
    pages = [data_page(3, encode_plain(physical, [1, 2, 3]))] if pages is None else pages
    return handmade_file(FileColumn("a", physical, [pages], repetition, element, facts), change=change, **about)


def meta_with(change: Change, **about: Any) -> bytes:
    """Change the ColumnMetaData of the one-column file."""
    return one_column(lambda footer: change(footer.row_groups[0].columns[0].meta_data), **about)


def dictionary_column(change: Change = lambda footer: None, first: Any = None, **about: Any) -> bytes:
    """Build a file of one column with a dictionary."""
    first = first or dictionary_page(3, encode_plain(h.INT64, [1, 2, 3]))
    pages = [first, data_page(3, b"\x02" + h.encode_indices([0, 1, 2], 2), h.RLE_DICTIONARY)]
    return one_column(
        change, pages, facts={"encodings": [h.PLAIN, h.RLE_DICTIONARY], **about.pop("facts", {})}, **about
    )


def run_of_indices(count: int) -> bytes:
    """Build a column of three values, whose indices are a run of `count`."""
    pages = [dictionary_page(1, encode_plain(h.INT64, [5])), data_page(3, bytes([1, count << 1, 0]), h.RLE_DICTIONARY)]
    return one_column(pages=pages, facts={"encodings": [h.PLAIN, h.RLE_DICTIONARY]})


def run_of_levels(count: int, make: Callable[..., Any] = data_page) -> bytes:
    """Build a column of three values, whose definition levels are a run of `count`."""
    run = bytes([count << 1, 1])
    page = data_page(3, len(run).to_bytes(4, "little") + run + encode_plain(h.INT64, [1, 2, 3]))
    if make is data_page_v2:
        page = data_page_v2(3, 0, run, encode_plain(h.INT64, [1, 2, 3]))
    return one_column(pages=[page], repetition=h.OPTIONAL, facts={"encodings": [h.PLAIN, h.RLE]})


def decimals_without_bytes() -> bytes:
    """Build a column of DECIMALs, two of which have no bytes."""
    element = {**logical("DECIMAL", scale=0, precision=5), "scale": 0, "precision": 5}
    pages = [data_page(3, encode_plain(h.BYTE_ARRAY, [b"", b"\1", b""]))]
    return one_column(pages=pages, physical=h.BYTE_ARRAY, element=element)


def bytes_behind_pages(count: int) -> bytes:
    """Build a column whose chunk has zeros behind its last page, which its size counts."""
    page = data_page(3, encode_plain(h.INT64, [1, 2, 3]))
    data = one_column(pages=[page])
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = h.from_bytes("FileMetaData", data[-8 - length : -8])
    footer.row_groups[0].columns[0].meta_data.total_compressed_size += count
    footer.row_groups[0].columns[0].meta_data.total_uncompressed_size += count
    footer.row_groups[0].total_byte_size = footer.row_groups[0].columns[0].meta_data.total_uncompressed_size
    return h.with_footer(data[: -8 - length] + bytes(count), footer)


def column_with_statistics(physical: int = h.INT64, **fields: Any) -> bytes:
    """Build a file of one column with statistics; numbers are encoded as PLAIN."""
    bounds = ("min", "max", "min_value", "max_value")
    fields = {
        name: encode_plain(physical, [value]) if name in bounds and not isinstance(value, bytes) else value
        for name, value in fields.items()
    }
    return one_column(physical=physical, facts={"statistics": extended_idl().Statistics(**fields)})


def sizes(**fields: Any) -> bytes:
    pages = [data_page(3, encode_plain(h.BYTE_ARRAY, [b"a", b"b", b"c"]))]
    return one_column(
        pages=pages, physical=h.BYTE_ARRAY, facts={"size_statistics": extended_idl().SizeStatistics(**fields)}
    )


def logical(kind: str, **fields: Any) -> dict:
    types = {about[1]: about[2] for about in extended_idl().LogicalType.thrift_spec.values()}
    return {"logicalType": extended_idl().LogicalType(**{kind: types[kind](**fields)})}


def groups(*elements: dict) -> bytes:
    """Build a file of one column followed by schema groups without columns."""

    def change(footer: Any) -> None:
        footer.schema[0].num_children += 1
        footer.schema += [
            extended_idl().SchemaElement(**{"repetition_type": h.OPTIONAL, "num_children": 0, **about})
            for about in elements
        ]

    return one_column(change)


def unreadable_variant() -> bytes:
    """Write a VARIANT whose value is an object without its fields."""

    def change(footer: Any) -> None:
        footer.schema[1].logicalType = logical("VARIANT")["logicalType"]

    fields = [pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")]
    rows = pd.DataFrame({"v": [{"metadata": b"\1\0\0", "value": b"\2\1"}]})
    return edit_footer(numparq.to_parquet(rows, schema={"v": pa.struct(fields)}, store_schema=False), change)


def header(page: h.FilePage, **fields: Any) -> h.FilePage:
    """Change a page header; names unknown to PageHeader belong to the inner header."""
    inner = next(
        about
        for name in ("data_page_header", "data_page_header_v2", "dictionary_page_header")
        if (about := getattr(page.header, name)) is not None
    )
    for name, value in fields.items():
        setattr(page.header if hasattr(page.header, name) else inner, name, value)
    return page


def first_page(**fields: Any) -> bytes:
    return one_column(pages=[header(data_page(3, encode_plain(h.INT64, [1, 2, 3])), **fields)])


def version2(nulls: int = 1, **fields: Any) -> bytes:
    page = data_page_v2(3, nulls, h.encode_indices([1, 0, 1], 1), encode_plain(h.INT64, [1, 3]))
    return one_column(pages=[header(page, **fields)], repetition=h.OPTIONAL)


def with_key(key: str, value: str | bytes) -> bytes:
    pairs = [extended_idl().KeyValue(key=key, value=value)]
    return sound_file_with(lambda footer: footer.key_value_metadata.extend(pairs))


def replaced_key(key: str, value: str) -> bytes:
    def change(footer: Any) -> None:
        footer.key_value_metadata = [pair for pair in footer.key_value_metadata if pair.key != key.encode()]
        footer.key_value_metadata.append(extended_idl().KeyValue(key=key, value=value))

    return sound_file_with(change)


def swapped(place: int, size: int, content: bytes) -> bytes:
    data = sound_file()
    place %= len(data)
    return data[:place] + content + data[place + size :]


def footer_with(change: Callable[[bytes], bytes], behind: bytes = b"") -> bytes:
    """Change the footer bytes of the valid file."""
    data = sound_file()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = change(data[-8 - length : -8])
    return data[: -8 - length] + footer + behind + struct.pack("<I", len(footer) + len(behind)) + b"PAR1"


def page_spoiled() -> bytes:
    data = sound_file()
    place = numparq.ParquetFile(data).metadata.row_groups[0].columns[0].meta_data.data_page_offset
    return data[:place] + b"\xff" * 8 + data[place + 8 :]


def bloom_spoiled(at: int, size: int, content: bytes) -> bytes:
    data = sound_file()
    place = numparq.ParquetFile(data).metadata.row_groups[0].columns[0].meta_data.bloom_filter_offset + at
    size = size or numparq.ParquetFile(data).metadata.row_groups[0].columns[0].meta_data.bloom_filter_length - at
    return data[:place] + content * size + data[place + size :]


def set_meta(**fields: Any) -> Change:
    return lambda chunk: [setattr(chunk.meta_data, name, value) for name, value in fields.items()] and None


def overlapping() -> bytes:
    page = data_page(3, encode_plain(h.INT64, [1, 2, 3]))

    def change(footer: Any) -> None:
        first, second = (chunk.meta_data for chunk in footer.row_groups[0].columns)
        second.data_page_offset = first.data_page_offset

    return handmade_file(FileColumn("a", h.INT64, [[page]]), FileColumn("b", h.INT64, [[page]]), change=change)


def repeated_pages() -> bytes:
    """Build two V2 pages; the second continues a row of the first."""
    pages = [
        h.FilePage(
            extended_idl().PageHeader(
                type=h.DATA_PAGE_V2,
                data_page_header_v2=extended_idl().DataPageHeaderV2(
                    num_values=2,
                    num_nulls=0,
                    num_rows=2 - first,
                    encoding=h.PLAIN,
                    definition_levels_byte_length=2,
                    repetition_levels_byte_length=2,
                ),
            ),
            h.encode_indices([first, 0], 1) + h.encode_indices([1, 1], 1) + encode_plain(h.INT64, [1, 2]),
        )
        for first in (0, 1)
    ]
    return one_column(pages=pages, repetition=h.REPEATED, rows=3, facts={"num_values": 4})


def empty_chunk() -> bytes:
    return meta_with(lambda meta: setattr(meta, "data_page_offset", 0), pages=[], rows=0)


def int96() -> bytes:
    return one_column(
        pages=[data_page(3, bytes(36))],
        physical=h.INT96,
        facts={"statistics": extended_idl().Statistics(min_value=bytes(12))},
    )


def grown(**by: int) -> Change:
    return lambda meta: [setattr(meta, name, (getattr(meta, name) or 0) + more) for name, more in by.items()] and None


def group_with(**fields: Any) -> bytes:
    return sound_file_with(
        lambda footer: [setattr(footer.row_groups[0], name, value) for name, value in fields.items()]
    )


def first_bytes(values: list[bytes]) -> list[h.FilePage]:
    return [data_page(len(values), encode_plain(h.BYTE_ARRAY, values))]


def two_names() -> bytes:
    page = data_page(3, encode_plain(h.INT64, [1, 2, 3]))
    return handmade_file(FileColumn("a", h.INT64, [[page]]), FileColumn("a", h.INT64, [[page]]))


def sorted_by(column: int, descending: bool) -> Any:
    return extended_idl().SortingColumn(column_idx=column, descending=descending, nulls_first=False)


OPTIONAL_PAGE = data_page(3, h.encode_levels([1, 0, 1]) + encode_plain(h.INT64, [1, 3]))
STAT = extended_idl().PageEncodingStats
LIST, MAP, GROUP = logical("LIST"), logical("MAP"), {"name": "x"}
REPEATED_PAIR = {"name": "kv", "repetition_type": h.REPEATED, "num_children": 2}

# Check -> what makes a file that fails it, and which other checks the same damage has to fail.
VIOLATIONS: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "magic-head": (lambda: swapped(0, 4, b"PARX"), set()),
    "magic-tail": (lambda: swapped(-4, 4, b"PARX"), set()),
    "footer-length": (lambda: swapped(-8, 4, b"\xff\xff\xff\x7f"), set()),
    "thrift-struct": (lambda: footer_with(lambda footer: footer[:-30]), set()),
    "thrift-required": (lambda: one_column(lambda footer: setattr(footer, "num_rows", None)), set()),
    "thrift-type": (lambda: footer_with(lambda footer: b"\x16" + footer[1:]), {"thrift-required"}),
    "thrift-type-optional": (lambda: footer_with(lambda footer: footer[:-1] + b"\x15\x02\x00"), set()),
    "thrift-enum": (lambda: meta_with(lambda meta: meta.encodings.append(77)), {"chunk-encodings-unused"}),
    "thrift-union": (lambda: one_column(column_orders=[extended_idl().ColumnOrder()]), set()),
    "footer-rows": (lambda: one_column(lambda footer: setattr(footer, "num_rows", 4)), set()),
    "footer-bytes": (lambda: footer_with(lambda footer: footer, b"\0\0\0"), set()),
    "footer-version": (lambda: one_column(lambda footer: setattr(footer, "version", 3)), set()),
    "column-orders": (lambda: sound_file_with(lambda footer: footer.column_orders.pop()), set()),
    "column-orders-bounds": (lambda: sound_file_with(lambda footer: setattr(footer, "column_orders", None)), set()),
    "not-checked": (
        lambda: one_column(lambda footer: setattr(footer.row_groups[0].columns[0], "file_path", "other")),
        set(),
    ),
    "schema-root": (lambda: one_column(lambda footer: setattr(footer.schema[0], "type", h.INT64)), set()),
    "schema-tree": (lambda: one_column(lambda footer: setattr(footer.schema[0], "num_children", 2)), set()),
    "schema-repetition": (lambda: one_column(lambda footer: setattr(footer.schema[1], "repetition_type", None)), set()),
    "schema-type": (lambda: groups({"name": "g", "num_children": None}), set()),
    "schema-length": (lambda: one_column(pages=[data_page(3, b"abc")], physical=h.FIXED_LEN_BYTE_ARRAY), set()),
    "schema-logical": (lambda: one_column(element=logical("STRING")), set()),
    "schema-decimal": (lambda: one_column(element=logical("DECIMAL", precision=40, scale=2)), set()),
    "schema-converted": (
        lambda: one_column(element={"converted_type": 10, **logical("INTEGER", bitWidth=64, isSigned=True)}),
        set(),
    ),
    "schema-list": (lambda: groups({"name": "l", "num_children": 1, **LIST}, GROUP), {"schema-empty-group"}),
    "schema-map": (lambda: groups({"name": "m", "num_children": 1, **MAP}, GROUP), {"schema-empty-group"}),
    "schema-variant": (
        lambda: groups({"name": "v", "num_children": 1, **logical("VARIANT")}, GROUP),
        {"schema-empty-group"},
    ),
    "variant-values": (unreadable_variant, set()),
    "schema-names": (two_names, set()),
    "schema-list-legacy": (
        lambda: groups({"name": "l", "num_children": 1, **LIST}, {"name": "array", "repetition_type": h.REPEATED}),
        {"schema-empty-group"},
    ),
    "schema-map-legacy": (
        lambda: groups({"name": "m", "num_children": 1, **MAP}, REPEATED_PAIR, {"name": "key"}, {"name": "value"}),
        {"schema-empty-group"},
    ),
    "schema-empty-group": (lambda: groups({"name": "g"}), set()),
    "group-columns": (
        lambda: sound_file_with(lambda footer: footer.row_groups[0].columns.pop()),
        {"group-size", "group-compressed-size"},
    ),
    "group-rows": (
        lambda: one_column(lambda footer: setattr(footer.row_groups[0], "num_rows", -3)),
        {"footer-rows", "chunk-rows"},
    ),
    "group-ordinal": (lambda: group_with(ordinal=7), set()),
    "group-size": (lambda: group_with(total_byte_size=7), set()),
    "group-compressed-size": (lambda: group_with(total_compressed_size=7), set()),
    "group-offset": (lambda: group_with(file_offset=7), set()),
    "chunk-metadata": (
        lambda: one_column(lambda footer: setattr(footer.row_groups[0].columns[0], "meta_data", None)),
        set(),
    ),
    "chunk-type": (lambda: meta_with(lambda meta: setattr(meta, "type", h.DOUBLE)), set()),
    "chunk-path": (lambda: meta_with(lambda meta: setattr(meta, "path_in_schema", ["b"])), set()),
    "chunk-place": (lambda: meta_with(grown(total_compressed_size=10**6)), {"chunk-compressed-size"}),
    "overlap": (overlapping, set()),
    "chunk-data-offset": (
        lambda: dictionary_column(lambda f: grown(data_page_offset=1)(f.row_groups[0].columns[0].meta_data)),
        set(),
    ),
    "chunk-dictionary-offset": (lambda: meta_with(lambda meta: setattr(meta, "dictionary_page_offset", 9)), set()),
    "chunk-values": (lambda: meta_with(grown(num_values=1)), set()),
    "chunk-rows": (
        lambda: one_column(
            lambda footer: [setattr(footer, "num_rows", 4), setattr(footer.row_groups[0], "num_rows", 4)]
        ),
        set(),
    ),
    "chunk-compressed-size": (lambda: meta_with(grown(total_compressed_size=-1)), set()),
    "chunk-uncompressed-size": (lambda: meta_with(grown(total_uncompressed_size=1)), {"group-size"}),
    "chunk-encodings": (lambda: one_column(facts={"encodings": []}), set()),
    "chunk-encoding-stats": (
        lambda: one_column(facts={"encoding_stats": [STAT(page_type=0, encoding=0, count=2)]}),
        set(),
    ),
    "encoding-stats-version": (lambda: version2_stats([STAT(page_type=0, encoding=0, count=1)]), set()),
    "dictionary-offset-legacy": (lambda: meta_with(lambda meta: setattr(meta, "dictionary_page_offset", 0)), set()),
    "data-offset-legacy": (empty_chunk, set()),
    "size-legacy": (lambda: meta_with(grown(total_compressed_size=-15), created_by="parquet-mr version 1.2.8"), set()),
    "chunk-encodings-unused": (lambda: one_column(facts={"encodings": [0, 5]}), set()),
    "chunk-encodings-beside": (lambda: one_column(pages=[OPTIONAL_PAGE], repetition=h.OPTIONAL), set()),
    "page-header": (page_spoiled, set()),
    "page-type": (lambda: first_page(type=h.DATA_PAGE_V2), set()),
    "page-size": (lambda: first_page(compressed_page_size=10**6, uncompressed_page_size=24), set()),
    "page-counts": (lambda: first_page(num_values=-1), {"chunk-values", "chunk-rows"}),
    "page-crc": (lambda: first_page(crc=77), set()),
    "page-decompressed": (lambda: one_column(facts={"codec": 1}), set()),
    "page-dictionary": (
        lambda: one_column(
            pages=[data_page(3, b"\x02" + h.encode_indices([0, 1, 2], 2), h.RLE_DICTIONARY)],
            facts={"encodings": [h.RLE_DICTIONARY]},
        ),
        set(),
    ),
    "page-encoding": (lambda: one_column(pages=[data_page(3, b"", h.RLE)], facts={"encodings": [h.RLE]}), set()),
    "page-levels": (
        lambda: one_column(
            pages=[data_page(3, b"\xff\xff\0\0")], repetition=h.OPTIONAL, facts={"encodings": [h.PLAIN, h.RLE]}
        ),
        set(),
    ),
    "page-values": (lambda: one_column(pages=[data_page(3, bytes(20))]), set()),
    "page-deltas": (lambda: deltas(OTHER), set()),
    "page-utf8": (
        lambda: one_column(pages=first_bytes([b"a", b"\xff", b"c"]), physical=h.BYTE_ARRAY, element=logical("STRING")),
        set(),
    ),
    "page-range": (
        lambda: one_column(
            pages=[data_page(3, encode_plain(h.INT32, [1, 2, 128]))],
            physical=h.INT32,
            element=logical("INTEGER", bitWidth=8, isSigned=True),
        ),
        set(),
    ),
    "page-null-count": (lambda: version2(nulls=2), set()),
    "page-row-count": (lambda: version2(num_rows=2), set()),
    "page-row-start": (repeated_pages, set()),
    "dictionary-sorted": (
        lambda: dictionary_column(first=header(dictionary_page(3, encode_plain(h.INT64, [1, 3, 2])), is_sorted=True)),
        set(),
    ),
    "page-uncompressed-size": (
        lambda: first_page(compressed_page_size=24, uncompressed_page_size=25),
        {"chunk-uncompressed-size"},
    ),
    "page-bytes": (lambda: one_column(pages=[data_page(3, bytes(25))]), set()),
    "page-run": (lambda: run_of_indices(10), set()),
    "page-decimal": (decimals_without_bytes, set()),
    "chunk-bytes": (lambda: bytes_behind_pages(16), set()),
    "stats-bound": (lambda: column_with_statistics(min_value=b"\1"), set()),
    "stats-min": (lambda: column_with_statistics(min_value=2), set()),
    "stats-max": (lambda: column_with_statistics(max_value=2), set()),
    "stats-exact": (lambda: column_with_statistics(max_value=4, is_max_value_exact=True), set()),
    "stats-null-count": (lambda: column_with_statistics(null_count=1), set()),
    "stats-nan-count": (lambda: column_with_statistics(h.DOUBLE, nan_count=1), set()),
    "stats-size": (lambda: sizes(unencoded_byte_array_data_bytes=4), set()),
    "stats-histogram": (lambda: sizes(definition_level_histogram=[4]), set()),
    "stats-distinct-count": (lambda: column_with_statistics(distinct_count=2), set()),
    "stats-nan": (lambda: column_with_statistics(h.DOUBLE, max_value=float("nan")), set()),
    "stats-zero": (lambda: column_with_statistics(h.DOUBLE, min_value=0.0), set()),
    "stats-unknown": (lambda: column_with_statistics(null_count=-1), set()),
    "stats-order": (int96, set()),
    "stats-legacy": (lambda: column_with_statistics(min=2), set()),
    "index-place": (lambda: chunk_with(lambda chunk: setattr(chunk, "column_index_offset", 10**9)), set()),
    "index-pages": (lambda: index_with("OffsetIndex", lambda index: index["page_locations"].pop()), set()),
    "offset-index-offset": (
        lambda: index_with("OffsetIndex", lambda index: grow(index["page_locations"][1], "offset")),
        set(),
    ),
    "offset-index-size": (
        lambda: index_with("OffsetIndex", lambda index: grow(index["page_locations"][1], "compressed_page_size")),
        set(),
    ),
    "offset-index-row": (
        lambda: index_with("OffsetIndex", lambda index: grow(index["page_locations"][1], "first_row_index")),
        set(),
    ),
    "offset-index-bytes": (
        lambda: index_with("OffsetIndex", item(1, "unencoded_byte_array_data_bytes", 7), column=1),
        set(),
    ),
    "column-index-null-pages": (lambda: index_with("ColumnIndex", item(1, "null_pages", True)), set()),
    "column-index-min": (lambda: index_with("ColumnIndex", item(0, "min_values", (1).to_bytes(8, "little"))), set()),
    "column-index-max": (lambda: index_with("ColumnIndex", item(1, "max_values", (38).to_bytes(8, "little"))), set()),
    "column-index-bound": (lambda: index_with("ColumnIndex", item(0, "min_values", b"\0")), set()),
    "column-index-order": (lambda: index_with("ColumnIndex", lambda index: index.update(boundary_order=2)), set()),
    "column-index-null-counts": (lambda: index_with("ColumnIndex", item(1, "null_counts", 7)), set()),
    "column-index-nan-counts": (lambda: index_with("ColumnIndex", item(1, "nan_counts", 7), column=2), set()),
    "column-index-histograms": (
        lambda: index_with("ColumnIndex", item(1, "definition_level_histograms", 77), column=3),
        set(),
    ),
    "column-index-alone": (
        lambda: chunk_with(
            lambda chunk: [setattr(chunk, "offset_index_offset", None), setattr(chunk, "offset_index_length", None)]
        ),
        set(),
    ),
    "bloom-place": (lambda: chunk_with(set_meta(bloom_filter_offset=10**9)), set()),
    "bloom-header": (lambda: bloom_spoiled(0, 4, b"\xff"), set()),
    "bloom-length": (lambda: chunk_with(set_meta(bloom_filter_length=7)), set()),
    "bloom-value": (lambda: bloom_spoiled(20, 0, b"\0"), set()),
    "sorting-column": (lambda: group_with(sorting_columns=[sorted_by(77, False)]), set()),
    "sorting-rows": (lambda: group_with(sorting_columns=[sorted_by(0, True)]), set()),
    "key-arrow-schema": (lambda: replaced_key("ARROW:schema", "no base64!"), set()),
    "key-pandas": (lambda: replaced_key("pandas", "{"), set()),
    "key-utf8": (lambda: with_key("x", b"\xff"), set()),
    "key-duplicate": (lambda: with_key("pandas", "{}"), set()),
    "key-columns": (lambda: replaced_key("pandas", '{"columns": [{"field_name": "z"}]}'), set()),
    **{check: (partial(make, writer), set()) for check, (make, writer, _) in QUIRKS.items()},
}


def grow(about: dict, name: str) -> None:
    about[name] += 1


def version2_stats(counts: list) -> bytes:
    page = data_page_v2(3, 1, h.encode_indices([1, 0, 1], 1), encode_plain(h.INT64, [1, 3]))
    return one_column(pages=[page], repetition=h.OPTIONAL, facts={"encoding_stats": counts})
