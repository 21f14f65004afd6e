"""Fuzz target of whole files: truncated, flipped, spliced; changed indexes, Bloom filters, footers and keys."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np

from support.files.builder import from_bytes, to_bytes
from support.hostile import byte_damage, key_value_damage

from . import corpus
from .case import FuzzCase
from .footer import split
from .mutations import mutate, parse_struct

Generator = np.random.Generator


def _flipped(rng: Generator, name: str, data: bytes) -> bytes:
    ((_, changed),) = byte_damage.flipped_bytes(data, int(rng.integers(0, 1 << 32)), 0, 1)
    return changed


def _cut(rng: Generator, name: str, data: bytes) -> bytes:
    start, stop = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    return (data[:stop], data[start:], data[:start] + data[stop:])[int(rng.choice([0, 0, 0, 1, 2]))]


def _moved(rng: Generator, name: str, data: bytes) -> bytes:
    """Copy a range over another, or fill it with one byte."""
    start, stop = sorted(rng.integers(0, len(data) - 8, 2).tolist())
    stop = min(stop, start + 400)
    piece = data[start:stop] if rng.random() < 0.6 else bytes([int(rng.choice([0, 1, 127, 128, 255]))]) * (stop - start)
    to = int(rng.integers(0, len(data) - len(piece)))
    return data[:to] + piece + data[to + len(piece) :]


def _footer(rng: Generator, name: str, data: bytes) -> bytes:
    body, _, tree = split(name)
    changed = mutate(rng, tree)
    return body + changed + struct.pack("<I", len(changed)) + b"PAR1"


def _foreign_footer(rng: Generator, name: str, data: bytes) -> bytes:
    """Use the footer of another sample."""
    _, footer, _ = split(corpus.NAMES[int(rng.integers(0, len(corpus.NAMES)))])
    return split(name)[0] + footer + struct.pack("<I", len(footer)) + b"PAR1"


@cache
def _of_thrift(name: str) -> tuple[Any, tuple[tuple[Any, str, int, int], ...]]:
    """Read a footer and locate indexes and Bloom filters: chunk, field name, offset and length."""
    footer, _ = from_bytes("FileMetaData", split(name)[1])
    found = []
    for group in footer.row_groups or ():
        for chunk in group.columns:
            for owner, field in ((chunk, "offset_index"), (chunk, "column_index"), (chunk.meta_data, "bloom_filter")):
                start, length = (getattr(owner, f"{field}_{part}", None) for part in ("offset", "length"))
                if start and length and chunk.file_path is None:
                    found.append((owner, field, start, length))
    return footer, tuple(found)


def _index(rng: Generator, name: str, data: bytes) -> bytes:
    """Append a changed struct that the footer points to, with correct offset and length."""
    footer, found = _of_thrift(name)
    if not found:
        return _flipped(rng, name, data)
    owner, field, start, length = found[int(rng.integers(0, len(found)))]
    tree, size = parse_struct(data[start : start + length])
    body = split(name)[0]
    changed = mutate(rng, tree) + data[start + size : start + length]
    names = [f"{field}_offset", f"{field}_length"]
    before = [getattr(owner, part) for part in names]
    for part, value in zip(names, (len(body), len(changed)), strict=True):
        setattr(owner, part, value)
    encoded = to_bytes(footer)
    for part, value in zip(names, before, strict=True):
        setattr(owner, part, value)
    return body + changed + encoded + struct.pack("<I", len(encoded)) + b"PAR1"


def _keys(rng: Generator, name: str, data: bytes) -> bytes:
    """Change the values of the pandas and Arrow keys, if present."""
    footer = split(name)[1]
    made = [
        make
        for make, part in (
            (key_value_damage.pandas_cases, b'"column_indexes"'),
            (key_value_damage.arrow_cases, b"ARROW:schema"),
        )
        if part in footer and data.count(part) == 1
    ]
    if not made:
        return _footer(rng, name, data)
    make = made[int(rng.integers(0, len(made)))]
    return next(make(data, int(rng.integers(0, 1 << 32)), 1))[1]


_WAYS = (_flipped, _flipped, _cut, _cut, _moved, _footer, _foreign_footer, _index, _index, _keys)


def case(rng: Generator) -> FuzzCase:
    """Draw a case."""
    name = corpus.NAMES[int(rng.integers(0, len(corpus.NAMES)))]
    way = _WAYS[int(rng.integers(0, len(_WAYS)))]
    return FuzzCase(f"{name}: {way.__name__[1:]}", name, way(rng, name, corpus.sample(name).data))
