"""Small files that declare too much: more rows, longer strings or deeper schemas than their bytes can hold."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from support.files.builder import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    OPTIONAL,
    RLE_DICTIONARY,
    FileColumn,
    FilePage,
    HandmadeFile,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
    extended_idl,
)
from support.oracles import delta
from support.oracles.hybrid_rle import uleb

MOST = 2**31 - 1
BODY = encode_plain(INT64, [1, 2, 3, 4])
UTF8 = {"converted_type": 0}


def _one(pages: list[FilePage], rows: int = 4, physical: int = INT64, repetition: int = 0, **more: Any) -> HandmadeFile:
    sound = FileColumn("sound", INT64, [[data_page(4, BODY)]])
    return build_file(
        [rows],
        [sound, FileColumn("a", physical, [pages], repetition, **more)]
        if rows == 4
        else [FileColumn("a", physical, [pages], repetition, **more)],
    )


def _run(count: int, value: int) -> bytes:
    """Return an RLE run of a 1-bit value."""
    head = count << 1
    out = b""
    while head > 127:
        out += bytes([head & 127 | 128])
        head >>= 7
    return out + bytes([head, value])


def nulls(count: int) -> bytes:
    section = _run(count, 0)
    return struct.pack("<I", len(section)) + section


def _rows(count: int) -> bytes:
    return _one([data_page(4, BODY)], count).stored()


def _strings(lengths: list[int]) -> bytes:
    body = b"".join(struct.pack("<I", length) + b"x" for length in lengths)
    return _one([data_page(4, body.ljust(40, b"x"))], physical=BYTE_ARRAY, element=UTF8).stored()


def _deltas(*header: int) -> bytes:
    """Return zero deltas in a header and the start of a block."""
    return b"".join(map(uleb, header)) + b"\x02\x00" + bytes(header[1])


def _equal_floats(count: int) -> bytes:
    """Return ALP vectors whose integers have no bits: 17 bytes for 32,768 values."""
    number = -(-count // 32768)
    offsets = b"".join(struct.pack("<I", 4 * number + 13 * i) for i in range(number))
    return struct.pack("<BBBi", 0, 0, 15, count) + offsets + bytes(13) * number


def _prefixes(count: int, length: int) -> list[FilePage]:
    """Return a page of one long string that all other strings repeat."""
    prefixes = delta.encode([0, *[length] * (count - 1)], 32)
    return [data_page(count, prefixes + delta.encode([length, *[0] * (count - 1)], 32) + b"x" * length, 7)]


def _dictionary(count: int, body: bytes, physical: int = INT64) -> bytes:
    pages = [dictionary_page(count, body), data_page(4, b"\x01" + encode_indices([0, 1, 0, 1], 1), RLE_DICTIONARY)]
    return _one(pages, physical=physical).stored()


def _bomb(codec: int, body: bytes) -> bytes:
    page = data_page(4, body)
    page.header.uncompressed_page_size = MOST
    return _one([page], facts={"codec": codec}).stored()


def _schema(elements: list[Any]) -> bytes:
    made = _one([data_page(4, BODY)])
    made.footer.schema = elements
    return made.stored()


def _group(children: int | None, name: str = "g") -> Any:
    return extended_idl().SchemaElement(name=name, num_children=children, repetition_type=0)


def _leaf(**more: Any) -> Any:
    return extended_idl().SchemaElement(**{"name": "a", "type": INT64, "repetition_type": 0, **more})


def _changed(change: Callable[[Any], None]) -> bytes:
    return _one([data_page(4, BODY)]).stored(change)


def _facts(name: str, value: Any) -> bytes:
    return _changed(lambda footer: setattr(footer.row_groups[0].columns[1].meta_data, name, value))


def _everything(footer: Any) -> None:
    """Extend every chunk over all pages."""
    for chunk in footer.row_groups[0].columns:
        chunk.meta_data.data_page_offset = 4
        chunk.meta_data.total_compressed_size *= 2


def _bytes_behind(data: bytes, footer: bytes) -> bytes:
    return data + footer + struct.pack("<I", len(footer)) + b"PAR1"


OVERSIZED: dict[str, Callable[[], bytes]] = {
    **{f"{count} rows": lambda count=count: _rows(count) for count in (5, MOST, 2**31, 2**40, 2**47, 2**62, 2**63 - 1)},
    **{
        f"{count} rows, and no columns": lambda count=count: build_file([count], []).stored()
        for count in (2**40, 2**63 - 1)
    },
    "many row groups of many rows, and no columns": lambda: build_file([2**47] * 20_000, [], num_rows=0).stored(),
    "many rows in the page too": lambda: _one([data_page(MOST, BODY)], MOST).stored(),
    "many rows of version 2": lambda: _one([data_page_v2(MOST, 0, b"", BODY)], MOST).stored(),
    "many rows by levels": lambda: _one([data_page(MOST, nulls(100) + BODY)], MOST, INT64, OPTIONAL).stored(),
    "many strings": lambda: _one([data_page(MOST, BODY)], MOST, BYTE_ARRAY, element=UTF8).stored(),
    "many indices": lambda: _one(
        [dictionary_page(1, BODY[:8]), data_page(MOST, b"\x00" + _run(100, 0), RLE_DICTIONARY)], MOST
    ).stored(),
    "many empty pages": lambda: _one([data_page(0, b"")] * 20_000 + [data_page(4, BODY)]).stored(),
    "many pages of one value": lambda: _one([data_page(1, BODY[:8])] * 20_000, 20_000).stored(),
    "many dictionaries": lambda: _one([dictionary_page(1, BODY[:8])] * 9 + [data_page(4, BODY)]).stored(),
    "a count that is negative": lambda: _one([data_page(-1, BODY), data_page(5, BODY)]).stored(),
    "counts that overflow": lambda: _one([data_page(MOST, BODY)] * 5, 2**31 + 3).stored(),
    "a long string": lambda: _strings([MOST, 1, 1, 1]),
    "a string of negative length": lambda: _strings([1, 2**32 - 1, 1, 1]),
    "long strings": lambda: _strings([2**30] * 4),
    "a string to the end": lambda: _strings([1, 1, 1, 26]),
    "many deltas": lambda: _one([data_page(MOST, _deltas(128, 4, MOST), 5)], MOST).stored(),
    "more deltas than values": lambda: _one([data_page(4, _deltas(128, 4, 5), 5)]).stored(),
    "many floats": lambda: _one([data_page(4, _equal_floats(MOST)[:40], 10)], 4, DOUBLE).stored(),
    "more floats than vectors": lambda: _one([data_page(MOST, _equal_floats(MOST)[:40], 10)], MOST, DOUBLE).stored(),
    "many miniblocks": lambda: _one([data_page(4, _deltas(2**30, 4, 4)[:4], 5)]).stored(),
    "many lengths": lambda: _one([data_page(MOST, _deltas(128, 4, MOST), 6)], MOST, BYTE_ARRAY).stored(),
    "long lengths": lambda: _one([data_page(4, delta.encode([MOST] * 4, 32) + b"x" * 9, 6)], 4, BYTE_ARRAY).stored(),
    "long prefixes": lambda: _one(
        [data_page(4, delta.encode([0, MOST, MOST, MOST], 32) + delta.encode([1] * 4, 32) + b"x" * 9, 7)], 4, BYTE_ARRAY
    ).stored(),
    "streams of long values": lambda: _one(
        [data_page(4, BODY, 9)], physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": MOST}
    ).stored(),
    "streams of no values": lambda: _one(
        [data_page(4, BODY, 9)], physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": 0}
    ).stored(),
    "a large dictionary": lambda: _dictionary(MOST, BODY),
    "a large dictionary of strings": lambda: _dictionary(MOST, b"\x01\x00\x00\x00x" * 4, BYTE_ARRAY),
    "a large dictionary of booleans": lambda: _dictionary(MOST, BODY, BOOLEAN),
    "a dictionary of a negative number": lambda: _dictionary(-5, BODY),
    "a dictionary of long strings": lambda: _dictionary(2, b"\xff\xff\xff\x7fx" * 2, BYTE_ARRAY),
    "an empty dictionary that is used": lambda: _dictionary(0, b""),
    "wide indices": lambda: _one([dictionary_page(4, BODY), data_page(4, b"\xff" + BODY, RLE_DICTIONARY)]).stored(),
    "long values": lambda: _one(
        [data_page(4, BODY)], physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": MOST}
    ).stored(),
    "values of no length": lambda: _one(
        [data_page(4, b"")], physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": 0}
    ).stored(),
    "values of negative length": lambda: _one(
        [data_page(4, BODY)], physical=FIXED_LEN_BYTE_ARRAY, element={"type_length": -1}
    ).stored(),
    "many values of no length": lambda: _one(
        [data_page(MOST, b"")], MOST, FIXED_LEN_BYTE_ARRAY, element={"type_length": 0}
    ).stored(),
    **{f"a bomb of codec {codec}": lambda codec=codec: _bomb(codec, BODY) for codec in range(8)},
    "a bomb of codec 4 in a few bytes": lambda: _bomb(4, b"\x1b\xff\xff\xff"),
    "levels that go on": lambda: _one([data_page(4, b"\xff\xff\xff\x7f" + BODY)], repetition=OPTIONAL).stored(),
    "levels of version 2 that go on": lambda: _one([_long_levels(MOST)], repetition=OPTIONAL).stored(),
    "levels of version 2 of negative length": lambda: _one([_long_levels(-8)], repetition=OPTIONAL).stored(),
    "a level of 3": lambda: _one(
        [data_page(4, encode_levels([1, 1, 1, 1])[:4] + b"\x08\x03" + BODY)], repetition=OPTIONAL
    ).stored(),
    "no schema": lambda: _schema([]),
    "a root alone": lambda: _schema([_group(0)]),
    "a root of many": lambda: _schema([_group(MOST), _leaf(), _leaf()]),
    "a root of fewer than none": lambda: _schema([_group(-1), _leaf(), _leaf()]),
    "a root that does not say": lambda: _schema([_group(None), _leaf(), _leaf()]),
    "a deep schema": lambda: _schema([_group(2), *[_group(1)] * 20_000, _leaf(), _leaf()]),
    "a wide schema": lambda: _schema([_group(20_002), *[_leaf()] * 20_002]),
    "groups of nothing": lambda: _schema([_group(1002), *[_group(0)] * 1000, _leaf(), _leaf()]),
    "leaves with children": lambda: _schema([_group(2), _leaf(num_children=1), _leaf()]),
    "leaves without a type": lambda: _schema([_group(2), _leaf(type=None), _leaf()]),
    "leaves repeated, and of no repetition": lambda: _schema(
        [_group(2), _leaf(repetition_type=9), _leaf(repetition_type=None)]
    ),
    "decimals of any size": lambda: _schema(
        [
            _group(2),
            _leaf(converted_type=5, precision=MOST, scale=-MOST),
            _leaf(converted_type=5, precision=-1, scale=5),
        ]
    ),
    "names of a megabyte": lambda: _schema([_group(2), _leaf(name="x" * 1_000_000), _leaf(name="y" * 1_000_000)]),
    "a chunk over all": lambda: _changed(_everything),
    "a chunk of nothing": lambda: _facts("total_compressed_size", 0),
    "a chunk that begins in the footer": lambda: _facts("data_page_offset", 10_000_000),
    "a chunk that begins before the file": lambda: _facts("data_page_offset", -(2**63)),
    "a chunk that ends beyond any number": lambda: _facts("total_compressed_size", 2**63 - 1),
    "a dictionary offset beyond any number": lambda: _facts("dictionary_page_offset", -(2**63)),
    "a chunk that begins within a page": lambda: _facts("data_page_offset", 9),
    "a chunk in another file": lambda: _changed(
        lambda footer: setattr(footer.row_groups[0].columns[1], "file_path", "../../etc/passwd")
    ),
    "statistics of nothing": lambda: _facts(
        "statistics", extended_idl().Statistics(null_count=-(2**63), min_value=b"", max=b"")
    ),
    "sizes of nothing": lambda: _facts(
        "size_statistics", extended_idl().SizeStatistics(unencoded_byte_array_data_bytes=2**63 - 1)
    ),
    "many row groups": lambda: build_file([0] * 2000, [FileColumn("a", INT64, [[]] * 2000)]).stored(),
    "row groups without chunks": lambda: _changed(lambda footer: setattr(footer.row_groups[0], "columns", [])),
    "many keys": lambda: build_file(
        [4],
        [FileColumn("a", INT64, [[data_page(4, BODY)]])],
        key_value_metadata=[extended_idl().KeyValue(key="pandas", value="[" * 100_000)] * 50,
    ).stored(),
    "a large Arrow schema": lambda: build_file(
        [4],
        [FileColumn("a", INT64, [[data_page(4, BODY)]])],
        key_value_metadata=[extended_idl().KeyValue(key="ARROW:schema", value="A" * 3_000_000)],
    ).stored(),
    "a footer of zeros": lambda: _bytes_behind(b"PAR1", bytes(3_000_000)),
    "a footer of lists": lambda: _bytes_behind(b"PAR1", b"\x19" * 1_000_000),
    "a footer of structs": lambda: _bytes_behind(b"PAR1", b"\x1c" * 1_000_000),
    "a footer of long lists": lambda: _bytes_behind(b"PAR1", b"\x15\x02\x19\xfc\xff\xff\xff\xff\x07" + bytes(1000)),
    "a footer of long strings": lambda: _bytes_behind(b"PAR1", b"\x15\x02\x58\xff\xff\xff\xff\x07" + bytes(1000)),
    "a footer of long maps": lambda: _bytes_behind(b"PAR1", b"\x15\x02\xdb\xff\xff\xff\xff\x07\x11" + bytes(1000)),
    "a footer of unions": lambda: _changed(
        lambda footer: setattr(footer, "column_orders", [extended_idl().ColumnOrder()] * 100_000)
    ),
}


def _long_levels(length: int) -> FilePage:
    page = data_page_v2(4, 0, encode_indices([1] * 4, 1), BODY)
    page.header.data_page_header_v2.definition_levels_byte_length = length
    return page


# Files that are what they say, and too large for the memory that a test allows.
OVERSIZED_SLOW: dict[str, Callable[[], bytes]] = {
    "nulls": lambda: _one([data_page(MOST, nulls(MOST))], MOST, INT64, OPTIONAL).stored(),
    "null strings": lambda: _one([data_page(MOST, nulls(MOST))], MOST, BYTE_ARRAY, OPTIONAL, element=UTF8).stored(),
    "one number": lambda: _one(
        [dictionary_page(1, BODY[:8]), data_page(MOST, b"\x00" + _run(MOST, 0)[:-1], RLE_DICTIONARY)], MOST
    ).stored(),
    "one string": lambda: _one(
        [
            dictionary_page(1, encode_plain(BYTE_ARRAY, [b"x" * 1_000_000])),
            data_page(100_000, b"\x00" + _run(100_000, 0)[:-1], RLE_DICTIONARY),
        ],
        100_000,
        BYTE_ARRAY,
        element=UTF8,
    ).stored(),
    "deltas": lambda: _one([data_page(MOST, _deltas(2**30, 1, MOST) + bytes(2), 5)], MOST).stored(),
    "equal floats": lambda: _one([data_page(MOST, _equal_floats(MOST), 10)], MOST, DOUBLE).stored(),
    "prefixes": lambda: _one(_prefixes(10_000, 1_000_000), 10_000, BYTE_ARRAY, element=UTF8).stored(),
    "nothing": lambda: build_file(
        [2**47],
        [
            FileColumn(
                "a",
                INT32,
                [[]],
                OPTIONAL,
                element={"logicalType": extended_idl().LogicalType(UNKNOWN=extended_idl().NullType())},
            )
        ],
    ).stored(),
}
