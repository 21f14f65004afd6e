"""Chunk tables and page tables, filled as the reader does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.page_headers import HEADER_FIELDS, SCAN_FIELDS
from numparq.kernels.tables import L_END, L_IN_CHUNK, L_ROW, L_ROWS, L_START, LOCATION_FIELDS
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS
from support.oracles.pages import DICTIONARY_PAGE, SNAPPY, UNCOMPRESSED, Chunk, random_chunk
from support.oracles.plain import BYTE_ARRAY, INT64, ColumnType, random_values

from .engines import Engine
from .guarded_buffers import GuardedBuffer


@dataclass(frozen=True)
class DecodeRequest:
    """What is wanted of a chunk.

    Parameters
    ----------
    conversion, item : int
        C_CONVERSION and C_ITEM_SIZE.
    nulls, fill : int
        C_NULLS and C_FILL.
    start, stop : int
        The rows.
    """

    conversion: int = t.COPY
    item: int = 0
    nulls: int = t.NULLS_FILL
    fill: int = 0
    start: int = 0
    stop: int = 0

    def rows(self, start: int, stop: int) -> DecodeRequest:
        return replace(self, start=start, stop=stop)


def chunk_table(
    column: ColumnType, codec: int, num_values: int, size: int, request: DecodeRequest, start: int = 0
) -> np.ndarray:
    """Return the table of one flat chunk with pages at `start`, `size` bytes long."""
    row = np.zeros(t.CHUNK_FIELDS, np.int64)
    row[t.C_START], row[t.C_END], row[t.C_NUM_VALUES], row[t.C_CODEC] = start, start + size, num_values, codec
    row[t.C_TYPE], row[t.C_TYPE_LENGTH], row[t.C_MAX_DEFINITION] = column.physical, column.size, column.optional
    row[t.C_CAST], row[t.C_ITEM_SIZE] = request.conversion, request.item
    row[t.C_NULLS], row[t.C_FILL] = request.nulls, request.fill
    row[t.C_ROW_START], row[t.C_ROW_STOP], row[t.C_DICTIONARY_SIZE] = request.start, request.stop, -1
    row[t.C_MAX_RATIO] = 22 if codec == enums.SNAPPY else 0
    return row


@lru_cache(maxsize=1)
def _header() -> tuple[ThriftLayout, np.ndarray]:
    header = thrift_layout("PageHeader", *HEADER_FIELDS)
    return header, np.array([header.slot(name) for name in HEADER_FIELDS], np.int64)


def scan_page_headers(
    engine: Engine,
    raw: np.ndarray,
    available: int,
    chunks: np.ndarray,
    room: int,
    state: np.ndarray | None = None,
    pages: np.ndarray | None = None,
) -> tuple[int, np.ndarray, np.ndarray]:
    """Scan page headers; return the status, the page table as (pages, PAGE_FIELDS), and the state."""
    header, slots = _header()
    if state is None:
        state = np.zeros(SCAN_FIELDS, np.int64)
    rng = np.random.default_rng(room)
    table = GuardedBuffer(rng, room * t.PAGE_FIELDS, "i8")
    if pages is not None:
        table.array[: pages.size] = pages.reshape(-1)
    record, stack = GuardedBuffer(rng, header.words, "i8"), GuardedBuffer(rng, STACK_WORDS, "i8")
    stack.array[S_TOP] = stack.array[S_ROOM] = header.words
    status = engine.scan_pages(
        raw,
        available,
        chunks,
        len(chunks) // t.CHUNK_FIELDS,
        table.array,
        room,
        header.table,
        slots,
        record.array,
        stack.array,
        state,
    )
    for buffer in (table, record, stack):
        buffer.check()
    return status, table.array.reshape(room, t.PAGE_FIELDS)[: state[0]].copy(), state


def page_table(chunk: Chunk, start: int = 0) -> np.ndarray:
    """Build the page table of a chunk from its pages, without the kernel."""
    rows, pos, row = [], start, 0
    for number, page in enumerate(chunk.pages):
        header = len(page.header)
        entry = np.zeros(t.PAGE_FIELDS, np.int64)
        more = page.more
        entry[t.P_TYPE], entry[t.P_ENCODING], entry[t.P_NUM_VALUES] = page.type, more["encoding"], page.num_values
        entry[t.P_NUM_NULLS] = -1
        entry[t.P_HEADER], entry[t.P_BODY] = pos, pos + header
        entry[t.P_COMPRESSED], entry[t.P_UNCOMPRESSED] = len(page.body), page.uncompressed
        entry[t.P_DEFINITION_BYTES] = more.get("definition_levels_byte_length", 0)
        entry[t.P_REPETITION_BYTES] = more.get("repetition_levels_byte_length", 0)
        entry[t.P_DEFINITION_ENCODING] = more.get("definition_level_encoding", 0)
        entry[t.P_REPETITION_ENCODING] = more.get("repetition_level_encoding", 0)
        levels = entry[t.P_DEFINITION_BYTES] + entry[t.P_REPETITION_BYTES]
        entry[t.P_IS_COMPRESSED] = (
            chunk.codec != enums.UNCOMPRESSED and more.get("is_compressed") is not False and len(page.body) > levels
        )
        if not entry[t.P_IS_COMPRESSED]:
            entry[t.P_UNCOMPRESSED] = entry[t.P_COMPRESSED]
        entry[t.P_CRC] = more["crc"] & 0xFFFFFFFF if "crc" in more else -1
        entry[t.P_ROW], entry[t.P_IN_CHUNK] = row, number
        if page.type != enums.DICTIONARY_PAGE:
            row += page.num_values
        rows.append(entry)
        pos += header + len(page.body)
    return np.array(rows, np.int64).reshape(-1, t.PAGE_FIELDS)


def pages_with_rows(pages: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the data pages with rows in `start` to `stop`, after the dictionary page."""
    is_dictionary = pages[:, t.P_TYPE] == enums.DICTIONARY_PAGE
    first, last = pages[:, t.P_ROW], pages[:, t.P_ROW] + pages[:, t.P_NUM_VALUES]
    return np.concatenate([pages[is_dictionary], pages[~is_dictionary & (first < stop) & (last > start)]])


def make_chunks(rng, count, rows=20):
    chunks = []
    for number in range(count):
        column = ColumnType(int(rng.choice([INT64, BYTE_ARRAY])), 0, bool(rng.random() < 0.5))
        values = random_values(rng, column, 9)
        chunk = random_chunk(
            rng,
            column,
            values,
            int(rng.integers(1, 5)),
            rows,
            0.3,
            number % 2 == 0,
            int(rng.choice([UNCOMPRESSED, SNAPPY])),
        )
        pages = [page.with_crc() if rng.random() < 0.5 else page for page in chunk.pages]
        chunks.append(replace(chunk, pages=pages))
    return chunks


def page_locations(pages):
    """Return the page locations of a page table, as in an offset index."""
    table = np.empty((len(pages), LOCATION_FIELDS), np.int64)
    ends = pages[:, t.P_BODY] + pages[:, t.P_COMPRESSED]
    is_data = pages[:, t.P_TYPE] != DICTIONARY_PAGE
    table[:, L_START], table[:, L_END], table[:, L_IN_CHUNK] = pages[:, t.P_HEADER], ends, pages[:, t.P_IN_CHUNK]
    table[:, L_ROW], table[:, L_ROWS] = np.where(is_data, pages[:, t.P_ROW], -1), pages[:, t.P_NUM_VALUES] * is_data
    return table
