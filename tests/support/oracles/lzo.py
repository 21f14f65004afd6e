"""LZO1X: blocks from instructions, and a byte-by-byte decompressor."""

from __future__ import annotations

import numpy as np

from . import Damaged

END = b"\x11\x00\x00"


def extended(first: int, length: int, most: int) -> bytes:
    """Encode a length of at least 1 in an instruction's low bits, or in bytes after it."""
    if length <= most:
        return bytes([first | length])
    zeros, rest = divmod(length - most - 1, 255)
    return bytes([first]) + bytes(zeros) + bytes([rest + 1])


def run(data: bytes) -> bytes:
    """Encode four literals or more."""
    return extended(0, len(data) - 3, 15) + data


def first_run(data: bytes) -> bytes:
    """Encode the first literals of a block, at most 238."""
    return bytes([17 + len(data)]) + data


def forms(length: int, distance: int, before: int) -> list[str]:
    """Return the instructions for such a copy after `before` literals (4 means more)."""
    found = []
    if length == 2 and distance <= 1024 and 1 <= before <= 3:
        found.append("two")
    if length == 3 and 2049 <= distance <= 3072 and before == 4:
        found.append("three")
    if 3 <= length <= 8 and distance <= 2048:
        found.append("near")
    if length >= 3 and distance <= 16384:
        found.append("middle")
    if length >= 3 and 16385 <= distance <= 49151:
        found.append("far")
    return found


def copy(form: str, length: int, distance: int, literals: bytes) -> bytes:
    """Encode a copy and up to three literals after it."""
    count = len(literals)
    if form in ("two", "three"):
        high, low = divmod(distance - (1 if form == "two" else 2049), 4)
        return bytes([low << 2 | count, high]) + literals
    if form == "near":
        high, low = divmod(distance - 1, 8)
        return bytes([(length - 1) << 5 | low << 2 | count, high]) + literals
    if form == "middle":
        return extended(32, length - 2, 31) + ((distance - 1) << 2 | count).to_bytes(2, "little") + literals
    high, low = divmod(distance - 16384, 16384)
    return extended(16 | high << 3, length - 2, 7) + (low << 2 | count).to_bytes(2, "little") + literals


def random_block(rng: np.random.Generator, instructions: int, longest: int = 300) -> tuple[bytes, bytes]:
    """Return a block of random instructions as (compressed, decompressed)."""
    out = bytearray()
    stream = b""
    before = 0
    for number in range(instructions):
        if number == 0 and rng.random() < 0.5:
            data = rng.bytes(int(rng.integers(1, 239)))
            stream += first_run(data)
            out += data
            before = min(len(data), 4)
            continue
        if before == 0 and (not out or rng.random() < 0.5):
            data = rng.bytes(int(rng.integers(4, longest + 4)))
            stream += run(data)
            out += data
            before = 4
            continue
        distance = min(int(rng.choice([rng.integers(1, 20), rng.integers(1, 50000)])), len(out))
        length = int(rng.choice([2, 3, rng.integers(3, 12), rng.integers(3, longest)]))
        able = forms(length, distance, before) or forms(3, distance, before)
        if not able:
            continue
        form = str(rng.choice(able))
        length = length if forms(length, distance, before) else 3
        literals = rng.bytes(int(rng.integers(0, 4)))
        stream += copy(form, length, distance, literals)
        for _ in range(length):
            out.append(out[-distance])
        out += literals
        before = len(literals)
    return stream + END, bytes(out)


def decompress(block: bytes, room: int) -> bytes:
    """Decompress a block of at most `room` bytes."""
    try:
        return _decompress(block, room)
    except IndexError:
        raise Damaged("the block ends too early") from None


def _decompress(block: bytes, room: int) -> bytes:
    pos = before = 0
    out = bytearray()

    def take(count: int) -> bytes:
        nonlocal pos
        if pos + count > len(block):
            raise Damaged("the block ends too early")
        pos += count
        return block[pos - count : pos]

    def length_of(bits: int) -> int:
        length = code & (1 << bits) - 1
        if length:
            return length
        length = (1 << bits) - 1
        while (byte := take(1)[0]) == 0:
            length += 255
        return length + byte

    if block[0] > 17:
        out += take(take(1)[0] - 17)
        before = min(len(out), 4)
    while len(out) <= room:
        code = take(1)[0]
        binary = f"{code:08b}"
        if binary.startswith("0000") and before == 0:
            out += take(length_of(4) + 3)
            before = 4
            continue
        if binary.startswith("0000"):
            length, distance = (3, 2049) if before == 4 else (2, 1)
            distance += (take(1)[0] << 2) + int(binary[4:6], 2)
            before = code & 3
        elif binary.startswith(("0001", "001")):
            far = binary.startswith("0001")
            length = length_of(3 if far else 5) + 2
            low = int.from_bytes(take(2), "little")
            distance = (16384 + 16384 * int(binary[4]) if far else 1) + (low >> 2)
            before = low & 3
            if code == 17 and distance == 16384:
                if pos < len(block):
                    raise Damaged("something behind the end")
                return bytes(out)
        else:
            length = int(binary[2]) + 3 if binary.startswith("01") else int(binary[1:3], 2) + 5
            distance = (take(1)[0] << 3) + int(binary[3:6], 2) + 1
            before = code & 3
        if distance > len(out) or len(out) + length > room:
            raise Damaged("a copy of nothing, or too long")
        for _ in range(length):
            out.append(out[-distance])
        out += take(before)
    raise Damaged("too many bytes")
