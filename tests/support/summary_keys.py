"""Values of summaries as keys that compare, and those of a full read."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.expr.sort_keys import key_domain
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.skipping.summary.chunk_values import ReadOptions, read_chunk


def key_of(leaf: Leaf, plain: bytes) -> Any:
    """Return a PLAIN value as a key that compares with those of `keys_of`."""
    if key_domain(leaf).is_float:
        return np.frombuffer(plain, {2: "f2", 4: "f4", 8: "f8"}[len(plain)]).astype(float)[0]
    return key_domain(leaf).key(plain)


def keys_of(leaf: Leaf, values: np.ndarray | BinaryArray) -> list:
    """Return distinct values as keys."""
    if isinstance(values, BinaryArray):
        data, ends = values.data.tobytes(), values.offsets.tolist()
        return [key_of(leaf, data[start:end]) for start, end in pairwise(ends)]
    size = values.dtype.itemsize
    data = values.tobytes()
    return [key_of(leaf, data[at : at + size]) for at in range(0, len(data), size)]


def true_keys(leaf: Leaf, file: OpenFile) -> tuple[list, int]:
    """Return the keys of all values by a full read, and the number of NaNs."""
    keys: list = []
    for group in range(file.num_row_groups):
        chunk = read_chunk(file, leaf, group, ReadOptions())
        found = chunk.distinct(10**9)
        assert found is not None
        keys += keys_of(leaf, found)
    if key_domain(leaf).is_float:
        return [key for key in keys if not math.isnan(key)], sum(map(math.isnan, keys))
    return keys, 0
