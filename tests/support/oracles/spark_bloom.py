"""Spark's Bloom filter from its definition, an item and a bit at a time."""

from __future__ import annotations

import math

_WORD = 0xFFFFFFFF


def _mix(state: int, word: int) -> int:
    word = word * 0xCC9E2D51 & _WORD
    word = (word << 15 | word >> 17) & _WORD
    state ^= word * 0x1B873593 & _WORD
    state = (state << 13 | state >> 19) & _WORD
    return (state * 5 + 0xE6546B64) & _WORD


def _finish(state: int, length: int) -> int:
    state ^= length
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        state = (state ^ state >> shift) * factor & _WORD
    return state ^ state >> 16


def hash_item(item: int | bytes, seed: int) -> int:
    """Return Spark's MurmurHash3 of an int64 or of bytes, as an unsigned number."""
    if isinstance(item, int):
        words = [item & _WORD, item >> 32 & _WORD]
        length = 8
    else:
        whole = len(item) // 4 * 4
        words = [int.from_bytes(item[at : at + 4], "little") for at in range(0, whole, 4)]
        words += [byte if byte < 128 else byte + 0xFFFFFF00 for byte in item[whole:]]
        length = len(item)
    state = seed
    for word in words:
        state = _mix(state, word)
    return _finish(state, length)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def bits_of(item: int | bytes, num_hashes: int, num_bits: int) -> set[int]:
    """Return the bits of an item."""
    first = hash_item(item, 0)
    second = hash_item(item, first)
    bits = set()
    for number in range(1, num_hashes + 1):
        combined = _signed((_signed(first) + number * _signed(second)) & _WORD)
        bits.add((~combined if combined < 0 else combined) % num_bits)
    return bits


def shape_of(expected: int, error_rate: float) -> tuple[int, int]:
    """Return hash functions and 64-bit words for a number of items."""
    num_bits = max(int(-expected * math.log(error_rate) / math.log(2) ** 2), 1)
    return max(1, int(num_bits / expected * math.log(2) + 0.5)), (num_bits + 63) // 64


def payload_of(items: list[int] | list[bytes], expected: int, error_rate: float) -> bytes:
    """Return a filter as Spark serializes it: version, hash functions, words, and the words, big endian."""
    num_hashes, num_words = shape_of(expected, error_rate)
    words = [0] * num_words
    for item in items:
        for bit in bits_of(item, num_hashes, 64 * num_words):
            words[bit >> 6] |= 1 << (bit & 63)
    head = b"".join(number.to_bytes(4, "big") for number in (1, num_hashes, num_words))
    return head + b"".join(word.to_bytes(8, "big") for word in words)
