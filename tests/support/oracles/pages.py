"""Pages of flat columns: headers by thriftpy2, bodies by the other oracles, and their decoding."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from . import Damaged, delta, hybrid_rle, snappy
from .plain import BOOLEAN, ColumnType, Value, decode_plain, encode_plain

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
UNCOMPRESSED, SNAPPY = 0, 1

Row = Value | None


@lru_cache(maxsize=1)
def idl() -> ModuleType:
    import thriftpy2

    from support.thrift_definition import idl_text

    return thriftpy2.load_fp(io.StringIO(idl_text()), module_name="twins_parquet_thrift")


def to_bytes(struct_: Any) -> bytes:
    """Write a Thrift struct in the compact protocol."""
    from thriftpy2.protocol.compact import TCompactProtocol
    from thriftpy2.transport import TMemoryBuffer

    buffer = TMemoryBuffer()
    struct_.write(TCompactProtocol(buffer))
    return buffer.getvalue()


@dataclass(frozen=True)
class Page:
    """One page.

    Parameters
    ----------
    type : int
        PageType.
    body : bytes
        What follows the header, compressed.
    num_values : int
        Values, or entries of a dictionary.
    uncompressed : int
        Bytes of the body once decompressed.
    rows : list
        What is in it; None is a null.
    more : dict
        Fields of the header of this type of page; `crc`, where wanted, is among them.
    """

    type: int
    body: bytes
    num_values: int
    uncompressed: int
    rows: Sequence[Row]
    more: dict[str, Any]

    @cached_property
    def header(self) -> bytes:
        module = idl()
        more = dict(self.more)
        crc = more.pop("crc", None)
        name, kind = {
            DATA_PAGE: ("data_page_header", module.DataPageHeader),
            DICTIONARY_PAGE: ("dictionary_page_header", module.DictionaryPageHeader),
            DATA_PAGE_V2: ("data_page_header_v2", module.DataPageHeaderV2),
            INDEX_PAGE: ("index_page_header", module.IndexPageHeader),
        }[self.type]
        if self.type != INDEX_PAGE:
            more["num_values"] = self.num_values
        return to_bytes(
            module.PageHeader(
                type=self.type,
                uncompressed_page_size=self.uncompressed,
                compressed_page_size=len(self.body),
                crc=crc,
                **{name: kind(**more)},
            )
        )

    def with_crc(self) -> Page:
        crc = zlib.crc32(self.body)
        return replace(self, more={**self.more, "crc": crc - (1 << 32) if crc >> 31 else crc})

    def stored(self) -> bytes:
        return self.header + self.body


@dataclass(frozen=True)
class Chunk:
    """A column chunk: its pages, with the dictionary page first if present."""

    column: ColumnType
    codec: int
    pages: Sequence[Page]

    @property
    def rows(self) -> list[Row]:
        return [row for page in self.pages if page.type != DICTIONARY_PAGE for row in page.rows]

    def stored(self) -> bytes:
        return b"".join(page.stored() for page in self.pages)


def dictionary_page(column: ColumnType, entries: Sequence[Value], codec: int, rng: np.random.Generator) -> Page:
    plain = encode_plain(column, entries)
    encoding = int(rng.choice([PLAIN, PLAIN_DICTIONARY]))
    return Page(
        DICTIONARY_PAGE, _compressed(plain, codec, rng), len(entries), len(plain), entries, {"encoding": encoding}
    )


def data_page(
    column: ColumnType,
    rows: Sequence[Row],
    encoding: int,
    codec: int,
    version: int,
    rng: np.random.Generator,
    entries: Sequence[Value] = (),
    level_encoding: int = RLE,
) -> Page:
    present = [row for row in rows if row is not None]
    values = _encode_values(column, present, encoding, entries, rng)
    levels = [int(row is not None) for row in rows]
    nulls = len(rows) - len(present)
    if version == 2:
        definition = hybrid_rle.random_encoding(rng, levels, 1) if column.optional else b""
        section, is_compressed = values, None
        if codec != UNCOMPRESSED:
            is_compressed = bool(rng.random() < 0.7)
            section = _compressed(values, codec, rng) if is_compressed else values
            is_compressed = None if is_compressed and rng.random() < 0.5 else is_compressed  # true is the default
        more = {
            "num_nulls": nulls,
            "num_rows": len(rows),
            "encoding": encoding,
            "repetition_levels_byte_length": 0,
            "definition_levels_byte_length": len(definition),
            "is_compressed": is_compressed,
        }
        return Page(DATA_PAGE_V2, definition + section, len(rows), len(definition) + len(values), rows, more)
    body = values
    if column.optional:
        body = _v1_levels(levels, level_encoding, rng) + values
    more = {"encoding": encoding, "definition_level_encoding": level_encoding, "repetition_level_encoding": RLE}
    return Page(DATA_PAGE, _compressed(body, codec, rng), len(rows), len(body), rows, more)


def _v1_levels(levels: list[int], encoding: int, rng: np.random.Generator) -> bytes:
    if encoding == BIT_PACKED:
        return hybrid_rle.pack_high(levels)
    section = hybrid_rle.random_encoding(rng, levels, 1)
    return struct.pack("<I", len(section)) + section


def _encode_values(
    column: ColumnType, present: Sequence[Value], encoding: int, entries: Sequence[Value], rng: np.random.Generator
) -> bytes:
    if encoding == PLAIN:
        return encode_plain(column, present)
    if encoding == RLE:
        assert column.physical == BOOLEAN
        section = hybrid_rle.random_encoding(rng, [int(value) for value in present], 1)
        return struct.pack("<I", len(section)) + section
    if encoding in delta.ENCODINGS.get(column.physical, ()):
        return delta.encode_values(column, present, encoding, rng)
    indices = {value: index for index, value in enumerate(entries)}
    least = max(len(entries) - 1, 0).bit_length()
    width = least if rng.random() < 0.7 else int(rng.integers(least, 33))
    return bytes([width]) + hybrid_rle.random_encoding(rng, [indices[value] for value in present], width)


def _compressed(data: bytes, codec: int, rng: np.random.Generator) -> bytes:
    return snappy.compress(rng, data) if codec == SNAPPY else data


def read_dictionary(column: ColumnType, page: Page, codec: int) -> list[Value]:
    if page.more["encoding"] not in (PLAIN, PLAIN_DICTIONARY):
        raise Damaged("an encoding that dictionary pages do not have")
    data = _decompressed(page.body, page.uncompressed, codec)
    return decode_plain(column, data, page.num_values)


def read_rows(column: ColumnType, page: Page, codec: int, entries: Sequence[Value] | None) -> list[Row]:
    """Decode a data page from header and bytes alone (not its `rows`); raises Damaged."""
    if page.num_values == 0:
        return []
    body, more = page.body, page.more
    definition = b""
    if page.type == DATA_PAGE_V2:
        size = more["definition_levels_byte_length"]
        skipped = more["repetition_levels_byte_length"]
        definition, absent, body = body[skipped : skipped + size], body[:skipped], body[skipped + size :]
        _check_zero_levels([absent, *([] if column.optional else [definition])], page.num_values)
        if more["is_compressed"] is not False and body:
            body = _decompressed(body, page.uncompressed - size - skipped, codec)
    else:
        if body:
            body = _decompressed(body, page.uncompressed, codec)
        if column.optional:
            definition, body = _split_levels(body, page.num_values, more["definition_level_encoding"])
    levels = [1] * page.num_values
    if column.optional:
        read: Callable = hybrid_rle.decode_all if page.type == DATA_PAGE_V2 else hybrid_rle.decode
        if page.type == DATA_PAGE and more["definition_level_encoding"] == BIT_PACKED:
            read = hybrid_rle.unpack_high
        levels = read(definition, 1, page.num_values)
    if any(level > 1 for level in levels):
        raise Damaged("a level")
    values = iter(_decode_values(column, body, more["encoding"], levels.count(1), entries, page.num_values))
    return [next(values) if level else None for level in levels]


def _check_zero_levels(sections: list[bytes], count: int) -> None:
    """Check levels of zero bits, which the schema makes superfluous."""
    for section in filter(None, sections):
        hybrid_rle.decode_all(section, 0, count)


def _split_levels(body: bytes, count: int, encoding: int) -> tuple[bytes, bytes]:
    if encoding == BIT_PACKED:
        size = (count + 7) // 8
        if size > len(body):
            raise Damaged("levels")
        return body[:size], body[size:]
    if encoding != RLE or len(body) < 4:
        raise Damaged("levels")
    (size,) = struct.unpack_from("<I", body)
    if size > len(body) - 4:
        raise Damaged("levels")
    return body[4 : 4 + size], body[4 + size :]


def _decode_values(
    column: ColumnType, data: bytes, encoding: int, count: int, entries: Sequence[Value] | None, most: int
) -> list[Value]:
    if encoding == PLAIN:
        return decode_plain(column, data, count)
    if encoding in delta.ENCODINGS.get(column.physical, ()):
        values = delta.decode_values(column, data, encoding, most) if data else []
        # Where a value lies in BYTE_STREAM_SPLIT depends on how many there are.
        if len(values) < count or (data and encoding == delta.BYTE_STREAM_SPLIT and len(values) != count):
            raise Damaged("the number of values")
        return values[:count]
    if encoding not in (PLAIN_DICTIONARY, RLE_DICTIONARY) and (encoding != RLE or column.physical != BOOLEAN):
        raise Damaged("an encoding that is not read")
    if encoding == RLE:
        bits = hybrid_rle.decode(_split_levels(data, count, RLE)[0] if count else b"", 1, count)
        if any(bit > 1 for bit in bits):
            raise Damaged("a boolean")
        return [bit == 1 for bit in bits]
    if count == 0:
        return []
    if entries is None:
        raise Damaged("no dictionary")
    if not data or data[0] > 32:
        raise Damaged("bit width")
    indices = hybrid_rle.decode(data[1:], data[0], count)
    if any(index >= len(entries) for index in indices):
        raise Damaged("index")
    return [entries[index] for index in indices]


def _decompressed(data: bytes, size: int, codec: int) -> bytes:
    if codec == UNCOMPRESSED:
        return data
    return snappy.decompress(data, size)


def random_chunk(
    rng: np.random.Generator,
    column: ColumnType,
    values: Sequence[Value],
    num_pages: int,
    num_rows: int,
    null_share: float = 0.0,
    dictionary: bool = False,
    codec: int = UNCOMPRESSED,
    more: bool = False,
) -> Chunk:
    """Build a chunk of random pages of all kinds with values drawn from `values`.

    With a dictionary, some last data pages may be PLAIN, as after a writer's fallback, or with `more` in other
    encodings.
    """
    pages = []
    entries = list(dict.fromkeys(values)) if dictionary else []
    if dictionary:
        pages.append(dictionary_page(column, entries, codec, rng))
    plain_from = int(rng.integers(0, 2 * num_pages)) if dictionary else 0
    plain = [PLAIN, RLE] if column.physical == BOOLEAN else [PLAIN]
    plain += delta.ENCODINGS.get(column.physical, ()) if more else ()
    for number in range(num_pages):
        drawn = [values[i] for i in _draw(rng, len(values), num_rows)]
        rows = [
            None if column.optional and null else value
            for value, null in zip(drawn, _nulls(rng, num_rows, null_share), strict=True)
        ]
        version = int(rng.integers(1, 3))
        encoding = int(rng.choice(plain if number >= plain_from else [PLAIN_DICTIONARY, RLE_DICTIONARY]))
        level_encoding = int(rng.choice([RLE, BIT_PACKED]))
        pages.append(data_page(column, rows, encoding, codec, version, rng, entries, level_encoding))
    return Chunk(column, codec, pages)


def _draw(rng: np.random.Generator, choices: int, count: int) -> list[int]:
    """Draw indices, in runs half of the time."""
    repeat = int(rng.choice([1, 1, 5, 50]))
    return np.repeat(rng.integers(0, choices, count // repeat + 1), repeat)[:count].tolist()


def _nulls(rng: np.random.Generator, count: int, share: float) -> list[bool]:
    repeat = int(rng.choice([1, 1, 30]))
    return np.repeat(rng.random(count // repeat + 1) < share, repeat)[:count].tolist()
