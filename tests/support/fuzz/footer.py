"""Fuzz target of footers: changed fields of any struct, and changed bytes."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from support.hostile import byte_damage

from . import corpus
from .case import FuzzCase
from .mutations import Field, mutate, parse_struct


@cache
def split(name: str) -> tuple[bytes, bytes, list[Field]]:
    """Return the bytes before a sample's footer, the footer, and its fields."""
    data = corpus.sample(name).data
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = data[-8 - length : -8]
    return data[: -8 - length], footer, parse_struct(footer)[0]


def case(rng: np.random.Generator) -> FuzzCase:
    """Draw a case."""
    name = corpus.NAMES[int(rng.integers(0, len(corpus.NAMES)))]
    body, footer, tree = split(name)
    if rng.random() < 0.8:
        what, changed = "fields", mutate(rng, tree)
    else:
        ((what, changed),) = byte_damage.flipped_bytes(footer, int(rng.integers(0, 1 << 32)), 0, 1)
        if rng.random() < 0.2:
            start, stop = sorted(rng.integers(0, len(changed) + 1, 2).tolist())
            what, changed = "bytes left out", changed[:start] + changed[stop:]
    length = len(changed) if rng.random() < 0.97 else int(rng.integers(0, 2 * len(changed) + 1))
    return FuzzCase(f"{name}: {what}", name, body + changed + struct.pack("<I", length) + b"PAR1")
