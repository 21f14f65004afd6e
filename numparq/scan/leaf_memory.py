"""Memory of a leaf column: what its values take decoded, and as the array that they become, by counts of the footer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from numparq.column.read.chunk_table import MAGIC_BYTES
from numparq.format.schema import Leaf
from numparq.types.output_type import OutputType

_Numbers = Any  # a number, or a NumPy array of them by row group
_POINTER = 8
# Bytes of a Python object by `array_kind`. Those that many rows share (small integers, dates) are counted for each,
# since their number is unknown.
_OBJECTS = {"decimals": 112, "dates": 32, "times": 48 + 8, "uuids": 64 + 48}
_HEADERS = {"bytes": 33, "text_objects": 49, "text": 49}
_BUILT_ROWS, _BUILT_ROW = 1 << 16, 48  # lists and tables of the rows whose objects are built together
_NUMBER = 32  # an int or float, in a dict or tuple
_LIST_ROW = _POINTER + 152  # an array of a row's values
_LIST_VALUE = 56  # arrays of inner lists, their number unknown
_DICT, _DICT_FIELD = 184, 32
_PAIRS_ROW, _PAIR = _POINTER + 72, 64 + 2 * _POINTER  # a map: list of tuples
_MARK = 1  # validity mask
_OFFSET = 8
_CODES = 4 + 4  # dictionary codes: decoded, and in the Categorical
_ENTRY = 2 * _OFFSET  # a category's places in the decoded dictionary and in that of the Categorical
_MERGED_ENTRY = 64  # in the hash table that finds equal categories of several row groups
_FIXED_ENTRY = 48
_HEADER = 13  # of a page, at least
_COMPRESSIBILITY = 4  # of a dictionary: what is left beside compressed codes may be pages of values that follow it


class LargestPages(NamedTuple):
    """Bytes of the largest column chunk, compressed and decompressed, and of the largest dictionary, decompressed."""

    chunk: int = 0
    dictionary: int = 0

    @classmethod
    def of_chunks(cls, chunks: Mapping[str, np.ndarray]) -> LargestPages:
        """Return those of a footer's table."""
        stored, compressed = (
            np.maximum(chunks[name], 0).astype(np.float64)
            for name in ("total_uncompressed_size", "total_compressed_size")
        )
        start, data = chunks["dictionary_page_offset"], chunks["data_page_offset"]
        size = np.where((start >= MAGIC_BYTES) & (start < data), data - start, 0).clip(0, compressed)
        dictionary = np.minimum(stored - (compressed - size), _COMPRESSIBILITY * size)
        return cls(int((stored + compressed).max(initial=0)), int(dictionary.max(initial=0)))

    @classmethod
    def of_all(cls, pages: Iterable[LargestPages]) -> LargestPages:
        """Return the largest of each kind."""
        return cls(*map(max, zip(cls(), *pages, strict=True)))


class ChunkCounts(NamedTuple):
    """Counts of a leaf's column chunks, float64, an item a row group.

    `sizes`: bytes of all strings, if not known those of the pages. `entries` and `entry_bytes`: of the dictionary or of
    all distinct values, at most. `has_dictionary`: bool.
    """

    rows: _Numbers
    values: _Numbers
    sizes: _Numbers
    entries: _Numbers
    entry_bytes: _Numbers
    has_dictionary: _Numbers

    @classmethod
    def of_chunks(cls, chunks: Mapping[str, _Numbers], at: int, rows: _Numbers, width: int) -> ChunkCounts:
        """Return the counts of the leaf at a position of a footer's table; `width` is of a value, 0 for strings."""
        stored, compressed, values, known, data, dictionary = (
            np.maximum(chunks[name][:, at], 0).astype(np.float64)
            for name in (
                "total_uncompressed_size",
                "total_compressed_size",
                "num_values",
                "unencoded_byte_array_data_bytes",
                "data_page_offset",
                "dictionary_page_offset",
            )
        )
        # Each value is at most as long as all bytes that are stored: a larger total is wrong, and no reason to refuse.
        most = values * np.maximum(stored, compressed)
        is_known = (chunks["unencoded_byte_array_data_bytes"][:, at] >= 0) & (known <= most)
        has_dictionary = (dictionary >= MAGIC_BYTES) & (dictionary < data)
        # Codes take as much decompressed as compressed, at least; the rest may be the dictionary.
        codes = np.where(has_dictionary, np.maximum(compressed - (data - dictionary), 0), 0)
        entry_bytes = np.clip(stored - codes - 2 * _HEADER * has_dictionary, 0, None)
        mean = width if width else 4 + np.where(is_known, known / np.maximum(values, 1), 8)
        sizes = np.where(is_known, known, stored)
        return cls(rows, values, sizes, np.minimum(values, entry_bytes / mean), entry_bytes, has_dictionary)

    @classmethod
    def of_rows(cls, rows: _Numbers) -> ChunkCounts:
        """Return the counts of rows that no file stores."""
        return cls(rows, rows, 0 * rows, 0 * rows, 0 * rows, False)


def leaf_bytes(target: OutputType, counts: ChunkCounts, as_objects: bool, leaf: Leaf | None, siblings: int) -> _Numbers:
    """Return the bytes of a leaf by row group; `siblings` leaves share the dicts of a nested column."""
    if target.nested if leaf is None else leaf.is_nested:
        return _nested(target, counts, as_objects, leaf, siblings)
    return _RULES[target.storage](target, counts)


def dictionary_bytes(target: OutputType, counts: ChunkCounts) -> tuple[_Numbers, _Numbers]:
    """Return the bytes, of those of a leaf, that any row takes: of its dictionaries, and of merging these."""
    if target.nested or target.storage != "dictionary":
        return 0 * counts.rows, 0 * counts.rows
    held = counts.has_dictionary * (counts.entries * _ENTRY + 2 * counts.entry_bytes)
    return held, counts.has_dictionary * counts.entries * _MERGED_ENTRY


def builds_objects(target: OutputType) -> bool:
    """Whether values become Python objects of their own."""
    kind = target.array_kind
    if kind == "text":
        return bool((target.pandas_dtype or pd.StringDtype(na_value=np.nan)).storage == "python")
    return kind in _OBJECTS or kind in _HEADERS


def built_bytes(output_types: Iterable[OutputType], num_rows: int) -> int:
    """Return the bytes of what is temporary while objects are built, column by column."""
    return min(num_rows, _BUILT_ROWS) * _BUILT_ROW if any(map(builds_objects, output_types)) else 0


def _fixed(target: OutputType, counts: ChunkCounts) -> _Numbers:
    assert target.dtype is not None
    width = target.dtype.itemsize
    row = width + (_MARK if target.nulls == "mask" else 0) + _conversion(target, width)
    needed = counts.rows * row
    if builds_objects(target):
        needed = needed + counts.rows * (_POINTER + _object(target, width))
    if target.categorical:
        needed = needed + counts.rows * (8 + 4) + counts.entries * (_FIXED_ENTRY + width)
    return needed


def _conversion(target: OutputType, width: int) -> int:
    """Return the bytes of a row that another array than the decoded one takes, objects excluded."""
    kind = target.array_kind
    if kind == "arrow":
        size = (target.type.bit_width or 128) // 8 if target.type.kind == "decimal" else int(bool(target.unit)) * width
        return size + _MARK
    bytes_by_kind = {
        "bool_objects": _POINTER + 2 * _MARK,
        "masked": _MARK,
        "masked_floats": _MARK,
        "narrow_floats": 8,
        "timestamp_tz": 8 * bool(target.unit),
    }
    size = bytes_by_kind.get(kind, 0)
    if kind == "widened" and target.narrow_dtype is not None and target.narrow_dtype.itemsize != width:
        size += target.narrow_dtype.itemsize
    if target.cast_to is not None:
        is_object = target.cast_to.dtype is not None and getattr(target.cast_to.dtype, "kind", "") == "O"
        size += 2 * (_POINTER + _NUMBER) if is_object else 2 * width
    return size


def _object(target: OutputType, size: float | _Numbers) -> float | _Numbers:
    """Return the bytes of an object that a value of `size` bytes becomes."""
    if target.array_kind in _OBJECTS:
        return _OBJECTS[target.array_kind]
    return np.ceil((_HEADERS[target.array_kind] + size) / 16) * 16


def _binary(target: OutputType, counts: ChunkCounts) -> _Numbers:
    needed = counts.rows * (_OFFSET + _MARK) + counts.sizes
    kind = target.array_kind
    if builds_objects(target) and kind in _HEADERS:
        return needed + counts.rows * (2 * _POINTER + _object(target, counts.sizes / counts.rows))
    if target.type.kind == "decimal":
        return needed + counts.rows * (48 + (16 if kind == "arrow" else 2 * _POINTER + _OBJECTS["decimals"]))
    return needed + counts.rows * (4 + _MARK) if kind == "arrow" else needed


def _dictionary(target: OutputType, counts: ChunkCounts) -> _Numbers:
    return counts.rows * _CODES + counts.entries * (_ENTRY + _MERGED_ENTRY) + 2 * counts.entry_bytes


def _null(target: OutputType, counts: ChunkCounts) -> _Numbers:
    return counts.rows * _POINTER


_RULES = {"fixed": _fixed, "binary": _binary, "dictionary": _dictionary, "null": _null}


def _nested(target: OutputType, counts: ChunkCounts, as_objects: bool, leaf: Leaf | None, siblings: int) -> _Numbers:
    """Return the bytes of levels, values, their arrays, and the Python objects if there are any."""
    width = _OFFSET if target.dtype is None else target.dtype.itemsize
    sizes = counts.sizes if target.dtype is None else 0
    decoded = counts.values * (2 + width) + sizes
    if not as_objects:
        return 3 * decoded + counts.rows * _OFFSET  # Arrow's builders hold a copy more
    path, repetition = ((), 1) if leaf is None else (leaf.path, leaf.max_repetition_level)
    is_map = len(path) > 1 and path[-2] in ("key_value", "map")
    structs = max(len(path) - 1 - 2 * repetition, 0)
    value = 2 * _POINTER if repetition else 0  # in the array of all rows, and in that of its list
    needed = 2 * decoded
    if builds_objects(target):
        objects = counts.values
        if target.keep_codes:
            objects = np.where(counts.entries * 4 < counts.values, counts.entries, counts.values)
        mean = counts.sizes / np.maximum(counts.values, 1) if target.dtype is None else width
        needed = needed + objects * _object(target, mean) + counts.values * _POINTER
    elif structs or is_map:
        value += _POINTER + _NUMBER
    value += structs * (max(_DICT // siblings, _DICT_FIELD) + 2 * _POINTER) + is_map * _PAIR // 2
    value += max(repetition - 1, 0) * _LIST_VALUE
    row = (_PAIRS_ROW // 2 if is_map else _LIST_ROW) if repetition else _POINTER
    return needed + counts.values * value + counts.rows * row
