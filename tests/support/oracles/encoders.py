"""References of the writer's kernels, one value at a time."""

from __future__ import annotations

from collections.abc import Sequence


def build_dictionary(values: Sequence[bytes]) -> tuple[list[bytes], list[int]]:
    """Return the distinct values in order of first occurrence, and each value's index."""
    numbers: dict[bytes, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return list(numbers), codes


def exceeds_dictionary_limit(
    values: Sequence[bytes], room: int, probe_count: int, probe_entries: int, room_bytes: int = 1 << 62
) -> bool:
    """Whether the dictionary is too large, as a whole or after the first values."""
    entries = set(values)
    size = sum(len(entry) + 4 for entry in entries)
    return len(entries) > room or size > room_bytes or len(set(values[:probe_count])) > probe_entries


def encode_plain_binary(values: Sequence[bytes]) -> bytes:
    """Encode binary values with length prefixes."""
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def pack_booleans(values: Sequence[int]) -> bytes:
    """Pack booleans from the lowest bit."""
    return bytes(sum(bit << k for k, bit in enumerate(values[i : i + 8])) for i in range(0, len(values), 8))


def split_pages(lengths: Sequence[int], extra: int, max_bytes: int, max_rows: int) -> list[int]:
    """Return the first value and the end of each page."""
    bounds = [0]
    for i in range(len(lengths)):
        here = lengths[bounds[-1] : i + 1]
        if len(here) > 1 and (len(here) > max_rows or sum(here) + extra * len(here) > max_bytes):
            bounds.append(i)
    return [*bounds, len(lengths)] if lengths else bounds
