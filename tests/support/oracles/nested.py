"""Definition and repetition levels from rows, and rows from levels."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import hybrid_rle
from .pages import idl
from .thrift import StructReader


def entries_at_depth(levels: list[tuple[int, int]], depth: int, place_level: int) -> list[int]:
    """Return the level entries that start an element at a depth."""
    return [
        number
        for number, (definition, repetition) in enumerate(levels)
        if repetition <= depth and definition >= place_level
    ]


def validity(levels: list[tuple[int, int]], depth: int, place_level: int, level: int) -> list[int]:
    """Return whether each element at a depth is present."""
    return [int(levels[number][0] >= level) for number in entries_at_depth(levels, depth, place_level)]


def offsets(levels: list[tuple[int, int]], depth: int, place_level: int, element_level: int) -> list[int]:
    """Return the offsets of the lists at a depth."""
    starts = entries_at_depth(levels, depth, place_level)
    elements = entries_at_depth(levels, depth + 1, element_level)
    return [sum(element < start for element in elements) for start in starts] + [len(elements)]


def are_valid_levels(levels: list[tuple[int, int]], most_definition: int, element_levels: list[int]) -> bool:
    """Whether the levels are possible: no list continues without an element."""
    before: int | None = None
    for definition, repetition in levels:
        if definition > most_definition or repetition >= len(element_levels):
            return False
        if repetition and (before is None or min(before, definition) < element_levels[repetition]):
            return False
        before = definition
    return True


REQUIRED, OPTIONAL, REPEATED = range(3)
Levels = list[tuple[int, int]]  # (definition, repetition)


def shred_rows(node: Any, rows: list) -> list[list[tuple[int, int, Any]]]:
    """Return (definition level, repetition level, value or None) for each leaf of a column."""
    columns: dict[tuple, list] = {path: [] for path in _paths(node, ())}
    for row in rows:
        _put(columns, node, row, (), 0, 0, 0)
    return list(columns.values())


def _paths(node: Any, above: tuple) -> list[tuple]:
    here = (*above, node.name)
    if not node.children:
        return [here]
    return [path for child in node.children for path in _paths(child, here)]


def _put(columns: dict, node: Any, value: Any, above: tuple, d: int, r: int, depth: int) -> None:
    """Append a value; `d` is the level reached, `r` the first repetition level, `depth` the repeated nodes above."""
    if node.repetition == REPEATED:
        if not value:
            _absent(columns, node, above, d, r)
        for number, item in enumerate(value):
            _content(columns, node, item, above, d + 1, r if number == 0 else depth + 1, depth + 1)
    elif node.repetition == OPTIONAL:
        if value is None:
            _absent(columns, node, above, d, r)
        else:
            _content(columns, node, value, above, d + 1, r, depth)
    else:
        assert value is not None
        _content(columns, node, value, above, d, r, depth)


def _content(columns: dict, node: Any, value: Any, above: tuple, d: int, r: int, depth: int) -> None:
    here = (*above, node.name)
    if not node.children:
        columns[here].append((d, r, value))
        return
    kind = node.logical.kind if node.logical else ""
    if kind == "LIST" and node.repetition != REPEATED:
        (repeated,) = node.children
        wrap = len(repeated.children) == 1 and repeated.children[0].repetition != REPEATED
        items = [{repeated.children[0].name: item} if wrap else item for item in value]
        _put(columns, repeated, items, here, d, r, depth)
    elif kind == "MAP" and node.repetition != REPEATED:
        (pair,) = node.children
        names = [child.name for child in pair.children]
        _put(columns, pair, [dict(zip(names, item, strict=False)) for item in value], here, d, r, depth)
    else:
        for child in node.children:
            _put(columns, child, value.get(child.name), here, d, r, depth)


def _absent(columns: dict, node: Any, above: tuple, d: int, r: int) -> None:
    for path in _paths(node, above):
        columns[path].append((d, r, None))


def levels_by_pyarrow(table: pa.Table) -> list[tuple[Levels, list]]:
    """Write a table with pyarrow; return each leaf's levels from its pages, and the bytes of its values."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="NONE", use_dictionary=False, column_encoding=None, data_page_version="1.0")
    return levels_in_file(sink.getvalue())


def levels_in_file(data: bytes) -> list[tuple[Levels, bytes]]:
    """Return each leaf's levels and remaining bytes, for uncompressed V1 pages without dictionaries."""
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    found: list[tuple[Levels, bytes]] = [([], b"") for _ in range(metadata.num_columns)]
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            about, leaf = metadata.row_group(group).column(column), metadata.schema.column(column)
            most = leaf.max_definition_level, leaf.max_repetition_level
            levels, values = _chunk(data, about.data_page_offset, about.num_values, *most)
            found[column] = found[column][0] + levels, found[column][1] + values
    return found


def _chunk(data: bytes, pos: int, count: int, most_definition: int, most_repetition: int) -> tuple[Levels, bytes]:
    levels: Levels = []
    values = b""
    while len(levels) < count:
        reader = StructReader(data[pos:], set())
        header = reader.struct(idl().PageHeader)
        pos += reader.pos
        body = data[pos : pos + header["compressed_page_size"]]
        pos += header["compressed_page_size"]
        here = header["data_page_header"]["num_values"]
        repetition, body = _section(body, most_repetition, here)
        definition, body = _section(body, most_definition, here)
        levels += zip(definition, repetition, strict=True)
        values += body
    return levels, values


def _section(body: bytes, most: int, count: int) -> tuple[list[int], bytes]:
    if not most:
        return [0] * count, body
    size = int.from_bytes(body[:4], "little")
    return hybrid_rle.decode(body[4 : 4 + size], most.bit_length(), count), body[4 + size :]
