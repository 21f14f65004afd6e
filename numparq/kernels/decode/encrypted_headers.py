"""Page headers as they lie in a chunk: plain, or in modules that are decrypted in place before they are read."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load32
from numparq.kernels.registry import helper
from numparq.kernels.status import BAD_LENGTH, TRUNCATED
from numparq.kernels.tables import GCM_OVERHEAD, PLAINTEXT_OFFSET, TAG_BYTES
from numparq.kernels.thrift.records import read_struct

CLOSED = -10_000  # instead of the end of a header: its module is complete, and has not been decrypted


@helper
def header_module_end(raw, pos, end):
    """Return the end of the encrypted page header at `pos`, by the length before it; or a status."""
    if end - pos < GCM_OVERHEAD:
        return np.int64(TRUNCATED)
    length = load32(raw, pos)
    if length < GCM_OVERHEAD - 4 or length > end - pos - 4:
        return np.int64(BAD_LENGTH)
    return pos + 4 + length


@helper
def next_header(raw, pos, end, available, sealed, is_opened, table, record, stack):
    """Read the page header at `pos` of a chunk up to `end` into the record, as far as `available` bytes go.

    Return its end, a status or CLOSED; and, if that takes more bytes, up to where (-1: unknown), else 0. `sealed` is
    C_SEALED of the chunk.
    """
    if sealed == 0:
        body = read_struct(raw, pos, min(end, available), table, record, 0, stack)
        # An incomplete header ends too early, or within a string whose length then seems too large.
        is_cut = (body == TRUNCATED or body == BAD_LENGTH) and available < end
        return body, -np.int64(is_cut)
    if min(end, available) - pos < GCM_OVERHEAD and available < end:
        return np.int64(TRUNCATED), np.int64(-1)
    stop = header_module_end(raw, pos, end)
    if stop > available:
        return np.int64(TRUNCATED), stop
    if stop < 0:
        return stop, np.int64(0)
    if is_opened == 0:
        return np.int64(CLOSED), np.int64(0)
    body = read_struct(raw, pos + PLAINTEXT_OFFSET, stop - TAG_BYTES, table, record, 0, stack)
    return (body if body < 0 else stop), np.int64(0)
