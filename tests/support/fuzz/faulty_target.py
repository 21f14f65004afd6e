"""A fuzz target whose cases misbehave, for the test that the runner notices."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from .case import FuzzCase

KINDS = ("nothing", "crash", "hang", "leak", "memory")


def case(rng: np.random.Generator) -> FuzzCase:
    """Draw a case whose text names the fault."""
    return FuzzCase(KINDS[int(rng.integers(0, len(KINDS)))], "pages", rng.bytes(20))


def _read(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    while case.what == "hang":
        pass
    if case.what == "crash":
        ctypes.string_at(0)
    if case.what == "leak":
        raise KeyError("a leak")
    if case.what == "memory":
        bytearray(b"x") * (600 << 20)
    return 0


USES = (("read", _read),)
