"""Split-block Bloom filters and their XXH64 hashes (BloomFilter.md)."""

from __future__ import annotations

import numpy as np

from .memory import load8, load32, load64, store32
from .registry import helper, inlined, kernel

_PRIME1 = np.uint64(0x9E3779B185EBCA87)
_PRIME2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME3 = np.uint64(0x165667B19E3779F9)
_PRIME4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME5 = np.uint64(0x27D4EB2F165667C5)
_LANE1 = np.uint64(0x60EA27EEADC0B5D6)  # prime 1 + prime 2: the first lane's start
_LANE4 = np.uint64(0x61C8864E7A143579)  # -prime 1: the fourth lane's start
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SALT = np.array([0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
                 np.uint64)  # fmt: skip


@inlined
def rotated(word, count):
    """Rotate a uint64 to the left."""
    return (word << np.uint64(count)) | (word >> np.uint64(64 - count))


@inlined
def xxh64_round(lane, word):
    """Mix eight bytes into a lane."""
    return rotated(lane + word * _PRIME2, 31) * _PRIME1


@inlined
def xxh64_avalanche(state):
    """Mix every bit of the state into every other."""
    state = (state ^ (state >> np.uint64(33))) * _PRIME2
    state = (state ^ (state >> np.uint64(29))) * _PRIME3
    return state ^ (state >> np.uint64(32))


@inlined
def mix8(state, word):
    """Mix eight bytes into the state."""
    return rotated(state ^ xxh64_round(np.uint64(0), word), 27) * _PRIME1 + _PRIME4


@inlined
def mix4(state, word):
    """Mix four bytes into the state."""
    return rotated(state ^ (word * _PRIME1), 23) * _PRIME2 + _PRIME3


@helper
def hash_stripes(data, start, end):
    """Return the state after the whole 32-byte stripes of a value of 32 bytes or more."""
    one = _LANE1
    two = _PRIME2
    three = np.uint64(0)
    four = _LANE4
    while end - start >= 32:
        one = xxh64_round(one, load64(data, start))
        two = xxh64_round(two, load64(data, start + 8))
        three = xxh64_round(three, load64(data, start + 16))
        four = xxh64_round(four, load64(data, start + 24))
        start += 32
    state = rotated(one, 1) + rotated(two, 7) + rotated(three, 12) + rotated(four, 18)
    state = (state ^ xxh64_round(np.uint64(0), one)) * _PRIME1 + _PRIME4
    state = (state ^ xxh64_round(np.uint64(0), two)) * _PRIME1 + _PRIME4
    state = (state ^ xxh64_round(np.uint64(0), three)) * _PRIME1 + _PRIME4
    return (state ^ xxh64_round(np.uint64(0), four)) * _PRIME1 + _PRIME4


@helper
def hash_bytes(data, start, end):
    """Return the XXH64 hash, with seed 0, of ``data[start:end]``."""
    length = end - start
    state = _PRIME5
    if length >= 32:
        state = hash_stripes(data, start, end)
        start += length >> 5 << 5
    state += np.uint64(length)
    while end - start >= 8:
        state = mix8(state, load64(data, start))
        start += 8
    if end - start >= 4:
        state = mix4(state, np.uint64(load32(data, start)))
        start += 4
    while start < end:
        state = rotated(state ^ (np.uint64(load8(data, start)) * _PRIME5), 11) * _PRIME1
        start += 1
    return xxh64_avalanche(state)


@kernel("u1 x x u8")
def xxh64_fixed(values, width, count, out):
    """Hash `count` values of `width` bytes each."""
    if width == 4:
        for i in range(count):
            out[i] = xxh64_avalanche(mix4(_PRIME5 + np.uint64(4), np.uint64(load32(values, 4 * i))))
    elif width == 8:
        for i in range(count):
            out[i] = xxh64_avalanche(mix8(_PRIME5 + np.uint64(8), load64(values, 8 * i)))
    else:
        for i in range(count):
            out[i] = hash_bytes(values, i * width, (i + 1) * width)
    return count


@kernel("u1 i8 i8 x u8")
def xxh64_binary(data, starts, ends, count, out):
    """Hash `count` binary values ``data[starts[i]:ends[i]]``, without a length prefix."""
    for i in range(count):
        out[i] = hash_bytes(data, starts[i], ends[i])
    return count


@inlined
def block_position(value, num_blocks):
    """Return the byte position of the block that a hash selects."""
    return np.int64(((value >> _HALF) * np.uint64(num_blocks)) >> _HALF) * 32


@inlined
def block_bit(value, word):
    """Return the bit that a hash selects in a word of its block."""
    return np.int64(1) << np.int64((((value & _LOW) * _SALT[word]) & _LOW) >> np.uint64(27))


@kernel("u8 x u1 x")
def insert_into_bloom_filter(hashes, count, bitset, num_blocks):
    """Insert hashes into a filter of `num_blocks` blocks of 32 bytes."""
    for i in range(count):
        value = hashes[i]
        block = block_position(value, num_blocks)
        for word in range(8):
            place = block + 4 * word
            store32(bitset, place, load32(bitset, place) | block_bit(value, word))
    return count


@kernel("u8 x u1 x u1")
def probe_bloom_filter(hashes, count, bitset, num_blocks, out):
    """Write for each hash whether it may have been inserted (1 or 0); return how many may."""
    found = 0
    for i in range(count):
        value = hashes[i]
        block = block_position(value, num_blocks)
        missing = np.int64(0)
        for word in range(8):
            missing |= block_bit(value, word) & ~load32(bitset, block + 4 * word)
        out[i] = 1 if missing == 0 else 0
        found += out[i]
    return found
