"""Headers of DELTA_BINARY_PACKED sections: first value, and the widest miniblock (Encodings.md)."""

from __future__ import annotations

__all__ = ["first_delta_value", "max_delta_bits"]

_MAX_BLOCKS = 1 << 16  # per page; later blocks are not checked


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while pos < len(data):
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        pos, shift = pos + 1, shift + 7
        if byte < 0x80 or shift > 63:
            break
    return value, pos


def first_delta_value(data: bytes) -> int:
    """Return the first value of a section that could be decoded; 0 if it is empty."""
    pos, numbers = 0, []
    for _ in range(4 if data else 0):
        number, pos = _varint(data, pos)
        numbers.append(number)
    return numbers[3] >> 1 ^ -(numbers[3] & 1) if numbers and numbers[2] else 0


def max_delta_bits(data: bytes) -> int:
    """Return the largest bit width of the deltas of a section that could be decoded."""
    if not data:
        return 0
    block, pos = _varint(data, 0)
    miniblocks, pos = _varint(data, pos)
    total, pos = _varint(data, pos)
    _, pos = _varint(data, pos)
    each, left, widest = max(block // max(miniblocks, 1), 1), total - 1, 0
    for _ in range(_MAX_BLOCKS):
        if left <= 0 or pos >= len(data):
            break
        _, pos = _varint(data, pos)
        used = min(-(-left // each), miniblocks)  # widths of unused miniblocks are arbitrary
        widths = data[pos : pos + used]
        widest = max([widest, *widths])
        pos += miniblocks + sum((each * width + 7) >> 3 for width in widths)
        left -= block
    return widest
