"""Byte strings for the kernels: where they lie, sets of them, and patterns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import predicate_kernels
from ..kernels.byte_tests import FIRST, HEAD, HEAD_MASK, NUM_ONES, PIECE_FIELDS, STOP, WHOLE_HEAD
from .joining import Mask
from .pattern import ONE, Pattern
from .ranges import TOP, Ranges

_WORD = 8
_TOP_BIT = 1 << 63
_NO_OFFSETS = np.zeros(1, np.uint8)
_NO_WORDS, _NO_EDGES = np.zeros(1, np.uint64), np.zeros(1, np.int64)
_SLOTS_A_WORD = 2  # of an edge; a string has two edges, most often with the same word


class Strings(NamedTuple):
    """Byte strings, as kernels take them.

    Attributes
    ----------
    data, size : uint8 array, int
        The bytes, and how many.
    offsets, item : uint8 array, int
        One number more than there are strings, of `item` bytes (4 or 8); or, if `item` is 0, anything.
    width : int
        The bytes of each string, if `item` is 0.
    """

    data: np.ndarray
    size: int
    offsets: np.ndarray
    item: int
    width: int

    @classmethod
    def between(cls, data: np.ndarray, offsets: np.ndarray) -> Strings:
        """Make them of offsets, as Arrow has them."""
        if offsets.dtype.itemsize not in (4, 8):
            offsets = offsets.astype(np.int64)
        data = np.ascontiguousarray(data).view(np.uint8)
        return cls(data, len(data), np.ascontiguousarray(offsets).view(np.uint8), offsets.dtype.itemsize, 0)

    @classmethod
    def of_width(cls, data: np.ndarray, width: int) -> Strings:
        """Make them of bytes that are cut into pieces of one size."""
        data = np.ascontiguousarray(data).view(np.uint8)
        return cls(data, len(data), _NO_OFFSETS, 0, width)


class ByteSet:
    """A set of byte strings.

    Parameters
    ----------
    ranges : Ranges
        Of bytes, ascending.
    signed : bool
        Whether the strings are big-endian two's complement of one width, and the ranges have the sign bit turned round.
    """

    __slots__ = ("_arguments",)

    def __init__(self, ranges: Ranges, signed: bool = False) -> None:
        edges = [edge for pair in ranges for edge in pair if edge is not TOP]
        shared = 0 if signed or not edges else _shared_bytes(edges[0], edges[-1])
        steps = len(edges).bit_length()
        words = np.full((1 << steps) - 1, ~np.uint64(0))
        heads = b"".join(edge[shared : shared + _WORD].ljust(_WORD, b"\0") for edge in edges)
        words[: len(edges)] = np.frombuffer(heads, ">u8")
        joined = np.frombuffer(b"".join(edges), np.uint8)
        places = np.cumsum([0, *map(len, edges)], dtype=np.int64)
        flip = -_TOP_BIT if signed else 0
        # Of one string, all that its two edges share is compared first, which is quicker still.
        single = len(ranges) > 1 and all(high is not TOP and high == low + b"\0" for low, high in ranges)
        table = _word_table(words, len(edges)) if single else (_NO_WORDS, _NO_EDGES, 0)
        self._arguments = joined, len(joined), places, len(edges), words, steps, *table, shared, flip

    def join(self, strings: Strings, into: Mask) -> None:
        """Join with a mask whether strings are in the set."""
        predicate_kernels.join_byte_ranges(*strings, *self._arguments, *into.tail)


def _word_table(words: np.ndarray, num_edges: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Make a table of the words of edges."""
    bits = (_SLOTS_A_WORD * num_edges).bit_length()
    table, firsts = np.full(1 << bits, words[0]), np.zeros(1 << bits, np.int64)
    predicate_kernels.fill_word_table(words, num_edges, table, firsts, 64 - bits)
    return table, firsts, 64 - bits


def _shared_bytes(first: bytes, second: bytes) -> int:
    """Count the bytes with which both begin."""
    size = min(len(first), len(second))
    return next((place for place in range(size) if first[place] != second[place]), size)


class LikeSet:
    """The byte strings that fit a pattern, or if negated do not.

    Parameters
    ----------
    pattern : Pattern
        What they have to fit.
    negated : bool
        Whether they must not.
    """

    __slots__ = ("_arguments",)

    def __init__(self, pattern: Pattern, negated: bool) -> None:
        letters, ones = bytearray(), bytearray()
        pieces = np.zeros((len(pattern.pieces), PIECE_FIELDS), np.int64)
        for row, piece in zip(pieces, pattern.pieces, strict=True):
            row[FIRST] = len(letters)
            for token in piece:
                letters += b"_" if token is ONE else token
                ones += b"\1" if token is ONE else bytes(len(token))
            head = piece[0][:_WORD] if piece and piece[0] is not ONE else b""
            row[STOP] = len(letters)
            row[HEAD] = int.from_bytes(head.ljust(_WORD, b"\0"), "little", signed=True)
            row[HEAD_MASK] = int.from_bytes((b"\xff" * len(head)).ljust(_WORD, b"\0"), "little", signed=True)
            row[WHOLE_HEAD] = len(head) == len(letters) - row[FIRST]
            row[NUM_ONES] = piece.count(ONE)
        self._arguments = (
            np.frombuffer(bytes(letters), np.uint8), np.frombuffer(bytes(ones), np.uint8), pieces.reshape(-1),
            len(pieces), int(pattern.is_text), int(negated),
        )  # fmt: skip

    def join(self, strings: Strings, into: Mask) -> None:
        """Join with a mask whether strings are in the set."""
        predicate_kernels.join_like(*strings, *self._arguments, *into.tail)
