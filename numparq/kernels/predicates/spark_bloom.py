"""Spark's Bloom filters (`org.apache.spark.util.sketch`, version 1): hash items, put them, probe cells in position."""

from __future__ import annotations

import numpy as np

from numparq.kernels.memory import load8, load32
from numparq.kernels.registry import helper, inlined, kernel
from numparq.kernels.status import BAD_LENGTH

_WORD = 0xFFFFFFFF
_BLOCK = 1024  # bytes of a whole block of Java's block data
_LONG_BLOCK, _SHORT_BLOCK, _END = 0x7A, 0x77, 0x78
_HEAD = 12  # payload before the bits: version, hash functions, number of 64-bit words
_MOST_HASHES = 100


@inlined
def multiply32(first, second):
    """Multiply two numbers below 2^32 modulo 2^32, without overflow of 64 bits."""
    return ((first & 0xFFFF) * second + ((((first >> 16) * second) & 0xFFFF) << 16)) & _WORD


@inlined
def mix_word(state, word):
    """Mix four bytes into the state of MurmurHash3 (x86, 32 bits)."""
    word = multiply32(word, 0xCC9E2D51)
    word = multiply32(((word << 15) | (word >> 17)) & _WORD, 0x1B873593)
    state ^= word
    return (multiply32(((state << 13) | (state >> 19)) & _WORD, 5) + 0xE6546B64) & _WORD


@inlined
def finish_hash(state, length):
    """Return the hash of the state after `length` bytes."""
    state ^= length & _WORD
    state = multiply32(state ^ (state >> 16), 0x85EBCA6B)
    state = multiply32(state ^ (state >> 13), 0xC2B2AE35)
    return state ^ (state >> 16)


@helper
def hash_long(value, seed):
    """Return Spark's hash of an int64: low, then high half."""
    return finish_hash(mix_word(mix_word(seed, value & _WORD), (value >> 32) & _WORD), 8)


@helper
def hash_text(data, start, end, seed):
    """Return Spark's hash of ``data[start:end]``; each byte after the last four whole ones is mixed alone, signed."""
    state, position = seed, start
    while end - position >= 4:
        state = mix_word(state, load32(data, position))
        position += 4
    while position < end:
        byte = load8(data, position)
        state = mix_word(state, byte if byte < 128 else byte | 0xFFFFFF00)
        position += 1
    return finish_hash(state, end - start)


@kernel("i8 x i8")
def hash_spark_longs(values, count, out):
    """Write both hashes of each int64, one pair an item."""
    for i in range(count):
        out[2 * i] = hash_long(values[i], 0)
        out[2 * i + 1] = hash_long(values[i], out[2 * i])
    return count


@kernel("u1 i8 i8 x i8")
def hash_spark_strings(data, starts, ends, count, out):
    """Write both hashes of each string ``data[starts[i]:ends[i]]``, one pair an item."""
    for i in range(count):
        out[2 * i] = hash_text(data, starts[i], ends[i], 0)
        out[2 * i + 1] = hash_text(data, starts[i], ends[i], out[2 * i])
    return count


@inlined
def bit_position(first, second, number, num_bits):
    """Return the bit that hash function `number` (from 1) selects."""
    combined = (first + number * second) & _WORD
    return (combined if combined < 0x80000000 else _WORD - combined) % num_bits


@inlined
def byte_of_bit(bit):
    """Return the byte of a bit in the filter's payload: words are big endian."""
    return _HEAD + 8 * (bit >> 6) + 7 - ((bit & 63) >> 3)


@kernel("i8 x x x u1")
def put_spark_items(hashes, count, num_hashes, num_words, payload):
    """Set the bits of items, by their pairs of hashes, in a payload of ``12 + 8 * num_words`` bytes."""
    for i in range(count):
        for number in range(1, num_hashes + 1):
            bit = bit_position(hashes[2 * i], hashes[2 * i + 1], number, 64 * num_words)
            position = byte_of_bit(bit)
            payload[position] = np.uint8(load8(payload, position) | (1 << (bit & 7)))
    return count


@inlined
def load_big32(data, position):
    """Return a big-endian number of four bytes."""
    first = (load8(data, position) << 24) | (load8(data, position + 1) << 16)
    return first | (load8(data, position + 2) << 8) | load8(data, position + 3)


@helper
def has_blocks(data, position, end):
    """Return the length of block data from a position to one byte before the end; BAD_LENGTH if there are none.

    All blocks but the last have 1,024 bytes, so that a byte of the payload is found without a walk.
    """
    length = 0
    while True:
        if end - position >= 5 and load8(data, position) == _LONG_BLOCK:
            size, head = load_big32(data, position + 1), 5
            if size < 256 or size > _BLOCK:
                return BAD_LENGTH
        elif end - position >= 2 and load8(data, position) == _SHORT_BLOCK:
            size, head = load8(data, position + 1), 2
        else:
            return BAD_LENGTH
        if end - position < head + size + 1:
            return BAD_LENGTH
        position += head + size
        length += size
        if position == end - 1:
            return length if load8(data, position) == _END else BAD_LENGTH
        if size != _BLOCK:
            return BAD_LENGTH


@kernel("u1 i8 i8 u1 u1 x x i8")
def locate_spark_cells(data, starts, ends, selected, header, header_length, count, out):
    """Write hash functions and 64-bit words of the selected cells that begin with a header and are whole; else 0 and 0.

    A cell is a Java stream: the header, block data, and an end mark.
    """
    num_cells = 0
    for i in range(count):
        out[2 * i] = out[2 * i + 1] = 0
        start, end, position = starts[i], ends[i], 0
        if selected[i] == 0 or end - start <= header_length + 2 + _HEAD:
            continue
        while position < header_length and load8(data, start + position) == load8(header, position):
            position += 1
        if position < header_length:
            continue
        length = has_blocks(data, start + header_length, end)
        if length < _HEAD + 8:
            continue
        first = start + header_length + (5 if length > 255 else 2)  # the first block has the whole head
        num_hashes, num_words = load_big32(data, first + 4), load_big32(data, first + 8)
        is_sound = load_big32(data, first) == 1 and 0 < num_hashes <= _MOST_HASHES
        if is_sound and num_words > 0 and length == _HEAD + 8 * num_words:
            out[2 * i], out[2 * i + 1] = num_hashes, num_words
            num_cells += 1
    return num_cells


@kernel("i8 x u1 i8 i8 x x u1")
def probe_spark_cells(hashes, num_items, data, starts, shapes, header_length, count, out):
    """Write for each cell whether any of the items may be in it (1 or 0); 1 for cells without shape.

    `shapes` are those of `locate_spark_cells`, of cells with the same header.
    """
    num_cells = 0
    for i in range(count):
        num_hashes, num_words = shapes[2 * i], shapes[2 * i + 1]
        may = 1 if num_words == 0 else 0
        first = starts[i] + header_length
        length = _HEAD + 8 * num_words
        item = 0
        while may == 0 and item < num_items:
            may, number = 1, 1
            while may == 1 and number <= num_hashes:
                bit = bit_position(hashes[2 * item], hashes[2 * item + 1], number, 64 * num_words)
                byte = byte_of_bit(bit)
                block = byte >> 10
                left = length - (block << 10)  # bytes of the payload from this block on
                position = first + block * (_BLOCK + 5) + (5 if left > 255 else 2) + (byte & (_BLOCK - 1))
                may = (load8(data, position) >> (bit & 7)) & 1
                number += 1
            item += 1
        out[i] = may
        num_cells += may
    return num_cells
