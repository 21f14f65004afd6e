"""Chunk tables and page tables, filled in as the reader does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from twins.pages import Chunk
from twins.values import Column

from numparq.format.thrift.layout import ThriftLayout, thrift_layout
from numparq.kernels import enums
from numparq.kernels import tables as t
from numparq.kernels.decode.page_headers import HEADER_FIELDS, SCAN_FIELDS
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

from .buffers import Guarded
from .engines import Engine


@dataclass(frozen=True)
class Request:
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

    def rows(self, start: int, stop: int) -> Request:
        return replace(self, start=start, stop=stop)


def chunk_table(column: Column, codec: int, num_values: int, size: int, request: Request, start: int = 0) -> np.ndarray:
    """Make a chunk table of one chunk, flat, whose pages lie at `start` and take `size` bytes."""
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


def scan(
    engine: Engine,
    raw: np.ndarray,
    available: int,
    chunks: np.ndarray,
    room: int,
    state: np.ndarray | None = None,
    pages: np.ndarray | None = None,
) -> tuple[int, np.ndarray, np.ndarray]:
    """Walk over pages: the status, the page table as (pages, PAGE_FIELDS), and the state."""
    header, slots = _header()
    if state is None:
        state = np.zeros(SCAN_FIELDS, np.int64)
    rng = np.random.default_rng(room)
    table = Guarded(rng, room * t.PAGE_FIELDS, "i8")
    if pages is not None:
        table.array[: pages.size] = pages.reshape(-1)
    record, stack = Guarded(rng, header.words, "i8"), Guarded(rng, STACK_WORDS, "i8")
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
    """Make the page table of a chunk from its pages, without the kernel that is there for that."""
    rows, pos, row = [], start, 0
    for number, page in enumerate(chunk.pages):
        header = len(page.header)
        entry = np.zeros(t.PAGE_FIELDS, np.int64)
        more = page.more
        entry[t.P_TYPE], entry[t.P_ENCODING], entry[t.P_NUM_VALUES] = page.type, more["encoding"], page.num_values
        entry[t.P_NUM_NULLS] = max(more["num_nulls"], 0) if "num_nulls" in more else -1
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


def wanted(pages: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Give the pages of a chunk that have a row from `start` to `stop`, behind its dictionary page."""
    is_dictionary = pages[:, t.P_TYPE] == enums.DICTIONARY_PAGE
    first, last = pages[:, t.P_ROW], pages[:, t.P_ROW] + pages[:, t.P_NUM_VALUES]
    return np.concatenate([pages[is_dictionary], pages[~is_dictionary & (first < stop) & (last > start)]])
