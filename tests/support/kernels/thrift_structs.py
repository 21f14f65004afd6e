"""Reads structs with kernels, in a guarded arena of minimal size."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.format.thrift.decode import Record, root_record
from numparq.format.thrift.layout import ThriftLayout
from numparq.kernels.status import NEED_ROOM
from numparq.kernels.thrift.wire import S_ROOM, S_TOP, STACK_WORDS

from .engines import Engine
from .guarded_buffers import GuardedBuffer, with_slack


def read_struct(engine: Engine, layout: ThriftLayout, encoded: bytes, seed: int = 0) -> tuple[int, Record | None]:
    """Read a struct at some position of a buffer; return bytes taken or status, and the value."""
    rng = np.random.default_rng(seed)
    before = int(rng.integers(0, 9))
    data = with_slack(rng, rng.bytes(before) + encoded)
    room = layout.words
    while True:
        arena, stack = GuardedBuffer(rng, room, "i8"), GuardedBuffer(rng, STACK_WORDS, "i8")
        stack.array[S_TOP], stack.array[S_ROOM] = layout.words, room
        status = engine.read_thrift_struct(
            data, before, before + len(encoded), layout.table, arena.array, 0, stack.array
        )
        arena.check()
        stack.check()
        assert status <= before + len(encoded)
        if status == NEED_ROOM:
            assert room < 1000 * (len(encoded) + 1), "an arena that grows without end"
            room += room // 2 + 1
        elif status < 0:
            return status, None
        else:
            return status - before, root_record(layout, arena.array, data)


def to_dict(value: Any) -> Any:
    """Convert records to dicts and lists, and enums to ints."""
    if isinstance(value, Record):
        return {name: to_dict(item) for name, item in value.to_dict().items()}
    if isinstance(value, dict):
        return {name: to_dict(item) for name, item in value.items()}
    if isinstance(value, list):
        return [to_dict(item) for item in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
