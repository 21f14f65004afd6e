"""Chunks damaged in header fields and in bytes that control decoding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from numparq.kernels import tables as t
from support.oracles import Damaged, Inexact, delta, snappy
from support.oracles.hybrid_rle import uleb
from support.oracles.pages import (
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    PLAIN,
    RLE,
    RLE_DICTIONARY,
    SNAPPY,
    UNCOMPRESSED,
    Chunk,
    Page,
    data_page,
    dictionary_page,
    read_dictionary,
    read_rows,
)
from support.oracles.plain import (
    BOOLEAN,
    BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    INT64,
    INT96,
    ColumnType,
    int96_to_us,
    keep,
    random_values,
)

from .chunk_tables import DecodeRequest, chunk_table, page_table, pages_with_rows, scan_page_headers
from .decode_pages import DecodeOutcome
from .guarded_buffers import with_slack

NUMBERS = (*range(10), 31, 32, 33, 63, 127, 128, 255, 256, 65535, (1 << 31) - 1, (1 << 31) - 8, -1, -(1 << 31))
FIELDS = (
    "encoding",
    "definition_level_encoding",
    "repetition_level_encoding",
    "num_nulls",
    "num_rows",
    "is_compressed",
    "definition_levels_byte_length",
    "repetition_levels_byte_length",
)


def damage_chunk(rng: np.random.Generator, chunk: Chunk) -> Chunk:
    """Damage one or two pages of a chunk; its `num_values` stays."""
    pages = list(chunk.pages)
    for _ in range(int(rng.integers(1, 3))):
        number = int(rng.integers(0, len(pages)))
        way = WAYS[int(rng.integers(0, len(WAYS)))]
        if way is _move_values:
            _move_values(rng, pages)
        else:
            pages[number] = way(rng, pages[number], chunk.codec)
    return replace(chunk, pages=pages)


def _number(rng: np.random.Generator, now: int) -> int:
    return int(rng.choice([*NUMBERS, now + 1, now - 1, now + 8, now - 8]).clip(-(1 << 31), (1 << 31) - 1))


def _field(rng: np.random.Generator, page: Page, codec: int) -> Page:
    more = dict(page.more)
    name = str(rng.choice([name for name in FIELDS if name in more]))
    more[name] = bool(rng.integers(0, 2)) if name == "is_compressed" else _number(rng, more[name])
    return replace(page, more=more)


def _size(rng: np.random.Generator, page: Page, codec: int) -> Page:
    return replace(page, uncompressed=_number(rng, page.uncompressed))


def _count(rng: np.random.Generator, page: Page, codec: int) -> Page:
    """Change the number of dictionary entries; `_move_values` does data pages."""
    return replace(page, num_values=_number(rng, page.num_values)) if page.type == DICTIONARY_PAGE else page


def _move_values(rng: np.random.Generator, pages: list[Page]) -> None:
    """Declare more values in one page and fewer in another."""
    data = [number for number, page in enumerate(pages) if page.type != DICTIONARY_PAGE]
    one, other = rng.choice(data, 2).tolist()
    moved = int(rng.integers(0, pages[one].num_values + 1))
    for number, change in ((one, -moved), (other, moved)):
        page = pages[number]
        more = {**page.more, "num_rows": page.num_values + change} if page.type == DATA_PAGE_V2 else page.more
        pages[number] = replace(page, num_values=page.num_values + change, more=more)


def _stored_bytes(rng: np.random.Generator, page: Page, codec: int) -> Page:
    return replace(page, body=change_bytes(rng, page.body))


def _plain_bytes(rng: np.random.Generator, page: Page, codec: int) -> Page:
    """Change the decompressed bytes, including levels of V2 pages."""
    if codec != SNAPPY:
        return _stored_bytes(rng, page, codec)
    levels = page.more.get("definition_levels_byte_length", 0) + page.more.get("repetition_levels_byte_length", 0)
    levels = max(min(levels, len(page.body)), 0)
    try:
        plain = snappy.decompress(page.body[levels:], page.uncompressed - levels)
    except Damaged:
        return _stored_bytes(rng, page, codec)
    plain = change_bytes(rng, plain)
    block = uleb(len(plain)) + (snappy.literal(plain, 4) if plain else b"")
    return replace(page, body=change_bytes(rng, page.body[:levels], 0.2) + block, uncompressed=levels + len(plain))


def change_bytes(rng: np.random.Generator, data: bytes, chance: float = 1.0) -> bytes:
    """Change, insert or remove bytes, mostly at the start."""
    if not data or rng.random() > chance:
        return data
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(0, len(data) if rng.random() < 0.4 else min(len(data), 12)))
        out[place] = int(
            rng.choice(
                [
                    int(rng.integers(0, 256)),
                    out[place] ^ 1 << int(rng.integers(0, 8)),
                    0,
                    1,
                    2,
                    3,
                    255,
                    out[place] + 1 & 255,
                    out[place] - 1 & 255,
                ]
            )
        )
    kind = rng.random()
    if kind < 0.15:
        place = int(rng.integers(0, len(out) + 1))
        out[place:place] = rng.bytes(int(rng.integers(1, 9)))
    elif kind < 0.3:
        place = int(rng.integers(0, len(out)))
        del out[place : place + int(rng.integers(1, 9))]
    elif kind < 0.4:
        del out[int(rng.integers(0, len(out))) :]
    return bytes(out)


WAYS = (_field, _field, _size, _count, _move_values, _stored_bytes, _plain_bytes, _plain_bytes, _plain_bytes)


def oracle_verdict(chunk: Chunk, request: DecodeRequest, convert=keep) -> DecodeOutcome | None:
    """Return the oracle's rows, or None if the bytes are invalid."""
    entries, rows = None, []
    try:
        for page in chunk.pages:
            if page.type == DICTIONARY_PAGE:
                entries = read_dictionary(chunk.column, page, chunk.codec)
                for entry in entries:
                    convert(entry)
            else:
                rows += read_rows(chunk.column, page, chunk.codec, entries)
        if chunk.column.physical == BYTE_ARRAY:
            return DecodeOutcome(0, -1, tuple(rows), bytes(row is not None for row in rows), rows.count(None))
        null = b"\xff" * request.item if request.item in (1, 2, 4, 8) else bytes(request.item)
        made = tuple(null if row is None else convert(row) for row in rows)
        return DecodeOutcome(0, -1, made, bytes(row is not None for row in rows), rows.count(None))
    except (Damaged, Inexact):
        return None


def refused_by_the_walk(engine, chunk: Chunk) -> bool:
    """Whether the header scan refuses the chunk."""
    data = chunk.stored()
    rng, count = np.random.default_rng(0), len(chunk.rows)
    table = chunk_table(chunk.column, chunk.codec, count, len(data), DecodeRequest(stop=count))
    status, pages, _ = scan_page_headers(engine, with_slack(rng, data), len(data), table, len(chunk.pages))
    if status == 0:
        assert (pages == pages_with_rows(page_table(chunk), 0, count)).all()
    return status != 0


def whole_chunk(chunk: Chunk, conversion: int, item: int) -> DecodeRequest:
    return DecodeRequest(conversion, item, t.NULLS_MASK, -1, 0, len(chunk.rows))


def chunks_to_truncate():
    """Yield chunks with every kind of page, to be truncated."""
    rng = np.random.default_rng(5)
    for column, convert, conversion, item in (
        (ColumnType(BOOLEAN, 0, True), keep, t.COPY, 1),
        (ColumnType(INT64, 0, True), keep, t.COPY, 8),
        (ColumnType(INT64), keep, t.COPY, 8),
        (ColumnType(INT96, 0, True), int96_to_us, t.INT96_US, 8),
        (ColumnType(BYTE_ARRAY, 0, True), keep, t.COPY, 0),
        (ColumnType(BYTE_ARRAY), keep, t.COPY, 0),
        (ColumnType(FIXED_LEN_BYTE_ARRAY, 3, True), keep, t.COPY, 3),
    ):
        values = random_values(rng, column, 6)
        entries = list(dict.fromkeys(values))
        rows = [values[i] if not column.optional or i % 3 else None for i in rng.integers(0, len(values), 10).tolist()]
        more = (RLE,) if column.physical == BOOLEAN else delta.ENCODINGS.get(column.physical, ())
        ways = ((1, UNCOMPRESSED), (2, UNCOMPRESSED), (1 + int(column.optional), SNAPPY))
        for encoding in (PLAIN, RLE_DICTIONARY, *more):
            for version, codec in ways if encoding in (PLAIN, RLE, RLE_DICTIONARY) else ways[encoding % 3 :][:1]:
                page = data_page(column, rows, encoding, codec, version, rng, entries)
                chunk = Chunk(column, codec, [dictionary_page(column, entries, codec, rng), page])
                yield chunk, convert, whole_chunk(chunk, conversion, item)
