"""The RLE / bit-packed hybrid and the deprecated BIT_PACKED encoding (Encodings.md).

Runs are ``("rle", value, count)`` and ``("packed", values)``. Decoders accept a last bit-packed run without padding
(polars before 0.20.6) or with too much of it (DuckDB), and any run longer than needed; they refuse empty runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from . import Damaged

Run = tuple


def uleb(number: int) -> bytes:
    """Encode an unsigned LEB128 number."""
    out = bytearray()
    while number > 127:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


def pack(values: Sequence[int], width: int) -> bytes:
    """Pack numbers from the lowest bit of each byte; zero bits fill the last byte."""
    bits = "".join(format(value, f"0{width}b")[::-1] if width else "" for value in values)
    return bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))


def unpack(data: bytes, width: int, count: int) -> list[int]:
    """Unpack numbers packed by `pack`."""
    if width == 0:
        return [0] * count
    bits = "".join(format(byte, "08b")[::-1] for byte in data[: (count * width + 7) // 8])
    if len(bits) < count * width:
        raise Damaged("too few packed bytes")
    return [int(bits[i * width : (i + 1) * width][::-1], 2) for i in range(count)]


def pack_high(values: Sequence[int], width: int = 1) -> bytes:
    """Pack numbers from the highest bit of each byte (BIT_PACKED)."""
    bits = "".join(format(value, f"0{width}b") for value in values)
    return bytes(int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(bits), 8))


def unpack_high(data: bytes, width: int, count: int) -> list[int]:
    """Unpack numbers packed by `pack_high`."""
    bits = "".join(format(byte, "08b") for byte in data)
    if len(bits) < count * width:
        raise Damaged("too few packed bytes")
    return [int(bits[i * width : (i + 1) * width], 2) for i in range(count)]


def encode(runs: Sequence[Run], width: int) -> bytes:
    """Encode runs as given; packed runs have a multiple of eight values."""
    out = b""
    for kind, *about in runs:
        if kind == "rle":
            value, count = about
            out += uleb(count << 1) + value.to_bytes((width + 7) // 8, "little")
        else:
            (values,) = about
            assert len(values) % 8 == 0
            out += uleb(len(values) // 8 << 1 | 1) + pack(values, width)
    return out


def decode(data: bytes, width: int, count: int) -> list[int]:
    """Decode `count` values; what follows them is ignored."""
    return decode_runs(data, width, count)[0]


def decode_all(data: bytes, width: int, count: int) -> list[int]:
    """Decode `count` values, which take all of the bytes."""
    values, end = decode_runs(data, width, count)
    if end < len(data):
        raise Damaged("bytes follow the last run")
    return values


def decode_runs(data: bytes, width: int, count: int) -> tuple[list[int], int]:
    """Decode `count` values; return them, and where their last run ends."""
    out: list[int] = []
    pos = 0
    while len(out) < count:
        header = shift = 0
        while True:
            if pos >= len(data) or shift == 35:
                raise Damaged("run header")
            byte = data[pos]
            pos += 1
            header += (byte % 128) << shift
            shift += 7
            if byte < 128:
                break
        left = count - len(out)
        if header < 2:
            raise Damaged("a run of nothing")
        if header % 2:
            here = min(header // 2 * 8, left)
            out += unpack(data[pos:], width, here)
            pos += header // 2 * width
        else:
            size = (width + 7) // 8
            if len(data) - pos < size:
                raise Damaged("repeated value")
            out += [int.from_bytes(data[pos : pos + size], "little")] * min(header // 2, left)
            pos += size
    return out, pos


def random_runs(rng: np.random.Generator, values: Sequence[int], width: int) -> list[Run]:
    """Split values into random runs; padding of the last may be longer than needed."""
    return list(_random_runs(rng, list(values), width))


def _random_runs(rng: np.random.Generator, values: list[int], width: int) -> Iterator[Run]:
    pos = 0
    while pos < len(values):
        left = len(values) - pos
        same = 1
        while same < left and values[pos + same] == values[pos]:
            same += 1
        longest = int(rng.choice([1, 8, 40, 600]))
        if rng.random() < (0.9 if same >= 8 else 0.15):
            count = int(rng.integers(1, min(same, longest) + 1)) if rng.random() < 0.5 else same
            pos += count
            yield "rle", values[pos - 1], count
        else:
            groups = int(rng.integers(1, longest // 8 + 2))
            part = values[pos : pos + 8 * groups]
            pos += len(part)
            if pos == len(values):
                padding = -len(part) % 8 + 8 * int(rng.integers(0, 3))
                part = part + rng.integers(0, 1 << width, padding).tolist()
            yield "packed", part


def random_encoding(rng: np.random.Generator, values: Sequence[int], width: int) -> bytes:
    """Encode values in random runs, sometimes without padding of the last one, as some writers do."""
    runs = random_runs(rng, values, width)
    data = encode(runs, width)
    if runs and runs[-1][0] == "packed" and rng.random() < 0.5:
        before = sum(len(about[0]) if kind == "packed" else about[1] for kind, *about in runs[:-1])
        used = (len(values) - before) * width + 7 >> 3
        data = data[: len(data) - (len(runs[-1][1]) * width // 8 - used)]
    return data
