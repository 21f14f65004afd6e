"""Spark's Bloom filter, version 1, in the cells of a store: hash items, build a cell, probe many cells."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from numparq.kernels.kernel_groups import spark_bloom_kernels

from .java_stream import format_stream, parse_header

_VERSION = 1
_MOST_HEADERS = 8  # distinct headers in one column: of other versions of Spark
_HEADER_BYTES = 4096
_MOST_BITS = 2**31 - 1  # Spark computes with int32


def hash_integers(values: np.ndarray) -> np.ndarray:
    """Return both hashes of integers, one pair an item (int64)."""
    items = np.ascontiguousarray(values, np.int64)
    hashes = np.empty(2 * len(items), np.int64)
    spark_bloom_kernels.hash_spark_longs(items, len(items), hashes)
    return hashes


def hash_strings(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return both hashes of strings ``data[start:end]``, one pair an item (int64)."""
    hashes = np.empty(2 * len(starts), np.int64)
    first, end = (np.ascontiguousarray(each, np.int64) for each in (starts, ends))
    spark_bloom_kernels.hash_spark_strings(np.ascontiguousarray(data), first, end, len(first), hashes)
    return hashes


def hash_texts(texts: Sequence[bytes]) -> np.ndarray:
    """Return both hashes of some strings."""
    ends = np.cumsum([0, *map(len, texts)])
    return hash_strings(np.frombuffer(b"".join(texts) + bytes(8), np.uint8), ends[:-1], ends[1:])


def build_cell(hashes: np.ndarray, expected: int, error_rate: float) -> bytes:
    """Build the cell of items by their hashes, sized for `expected` distinct items, at least 1."""
    num_bits = min(max(int(-expected * math.log(error_rate) / math.log(2) ** 2), 1), _MOST_BITS)
    num_words = -(-num_bits // 64)
    num_hashes = max(1, int(num_bits / expected * math.log(2) + 0.5))
    payload = np.zeros(12 + 8 * num_words, np.uint8)
    payload[:12] = np.frombuffer(struct.pack(">iii", _VERSION, num_hashes, num_words), np.uint8)
    spark_bloom_kernels.put_spark_items(hashes, len(hashes) // 2, num_hashes, num_words, payload)
    return format_stream(payload.tobytes())


def probe_cells(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Return which cells ``data[start:end]`` may hold any of the items (bool); true for cells that cannot be read."""
    count = len(starts)
    may = np.ones(count, np.uint8)
    first, end = (np.ascontiguousarray(each, np.int64) for each in (starts, ends))
    left = np.ones(count, np.uint8)
    for _ in range(_MOST_HEADERS):
        if not left.any():
            break
        cell = int(left.argmax())
        header = np.ascontiguousarray(data[first[cell] : min(end[cell], first[cell] + _HEADER_BYTES)])
        length = parse_header(header.tobytes())
        left[cell] = 0 if not length else 1
        if not length:
            continue
        shapes = np.empty(2 * count, np.int64)
        spark_bloom_kernels.locate_spark_cells(data, first, end, left, header, length, count, shapes)
        answers = np.empty(count, np.uint8)
        spark_bloom_kernels.probe_spark_cells(hashes, len(hashes) // 2, data, first, shapes, length, count, answers)
        is_known = shapes[1::2] > 0
        may[is_known] = answers[is_known]
        left[is_known] = 0
        left[cell] = 0
    return may.view(np.bool_)
