"""Matchers of byte strings: key ranges, LIKE patterns, big-endian decimals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.key_ranges import TOP, KeyRanges
from numparq.expr.like import ANY_CHARACTER, LikePattern
from numparq.kernels import predicate_kernels
from numparq.kernels.predicates.binary import (
    HEAD,
    HEAD_MASK,
    NUM_WILDCARDS,
    PREFIXED,
    SEGMENT_END,
    SEGMENT_FIELDS,
    SEGMENT_START,
    WHOLE_HEAD,
)

from .vectors import ColumnVector, RowMask

_WORD = 8
_TOP_BIT = 1 << 63
_NO_OFFSETS = np.zeros(1, np.uint8)
_NO_WORDS, _NO_EDGES = np.zeros(1, np.uint64), np.zeros(1, np.int64)
_SLOTS_A_WORD = 2  # per edge; the two edges of a single string mostly share their word

_CHUNK_BYTES = 1 << 24


class ByteStrings(NamedTuple):
    """Byte strings as kernels take them.

    Attributes
    ----------
    data, size : numpy.ndarray, int
        uint8, and its length.
    offsets, item : numpy.ndarray, int
        uint8 view of offsets of `item` bytes each (4 or 8), one more than strings, or of starts if it is PREFIXED;
        unused if `item` is 0.
    width : int
        Bytes of each string if `item` is 0.
    """

    data: np.ndarray
    size: int
    offsets: np.ndarray
    item: int
    width: int

    @classmethod
    def from_offsets(cls, data: np.ndarray, offsets: np.ndarray) -> ByteStrings:
        """Build from Arrow-style offsets."""
        if offsets.dtype.itemsize not in (4, 8):
            offsets = offsets.astype(np.int64)
        data = np.ascontiguousarray(data).view(np.uint8)
        return cls(data, len(data), np.ascontiguousarray(offsets).view(np.uint8), offsets.dtype.itemsize, 0)

    @classmethod
    def from_starts(cls, data: np.ndarray, starts: np.ndarray) -> ByteStrings:
        """Build from strings in PLAIN pages, whose lengths lie before their starts (int64)."""
        return cls(data, len(data), starts.view(np.uint8), PREFIXED, 0)

    @classmethod
    def from_fixed_width(cls, data: np.ndarray, width: int) -> ByteStrings:
        """Build from contiguous strings of one width."""
        data = np.ascontiguousarray(data).view(np.uint8)
        return cls(data, len(data), _NO_OFFSETS, 0, width)


class BytesMatcher:
    """Matcher of byte strings in ascending key ranges.

    With `signed`, strings are big-endian two's complement of one width, and the ranges have the sign bit inverted.
    """

    __slots__ = ("_arguments", "_kernel")

    def __init__(self, ranges: KeyRanges, signed: bool = False) -> None:
        edges = [edge for pair in ranges for edge in pair if edge is not TOP]
        string = None if signed else _only_string(edges)
        if string is not None:
            self._kernel, data = "match_string", np.frombuffer(string, np.uint8)
            self._arguments: tuple[Any, ...] = data, len(data), int(len(edges) % 2)
        else:
            self._kernel, self._arguments = "match_byte_ranges", _range_arguments(ranges, edges, signed)

    def match(self, strings: ByteStrings, mask: RowMask) -> None:
        """Combine into the mask which strings are in the ranges."""
        getattr(predicate_kernels, self._kernel)(*strings, *self._arguments, *mask.kernel_arguments)


def _only_string(edges: Sequence[bytes]) -> bytes | None:
    """Return the one string that is in the ranges with these edges, or the only one that is not; else None."""
    if len(edges) == 3 and edges[0] == b"":  # all strings below it, and those above
        edges = edges[1:]
    return edges[0] if len(edges) == 2 and edges[1] == edges[0] + b"\0" else None


def _range_arguments(ranges: KeyRanges, edges: Sequence[bytes], signed: bool) -> tuple[Any, ...]:
    """Return the arguments of `match_byte_ranges`."""
    shared = 0 if signed or not edges else _shared_bytes(edges[0], edges[-1])
    steps = len(edges).bit_length()
    words = np.full((1 << steps) - 1, ~np.uint64(0))
    heads = b"".join(edge[shared : shared + _WORD].ljust(_WORD, b"\0") for edge in edges)
    words[: len(edges)] = np.frombuffer(heads, ">u8")
    joined = np.frombuffer(b"".join(edges), np.uint8)
    places = np.cumsum([0, *map(len, edges)], dtype=np.int64)
    single = len(ranges) > 1 and all(high is not TOP and high == low + b"\0" for low, high in ranges)
    table = _word_table(words, len(edges)) if single else (_NO_WORDS, _NO_EDGES, 0)
    return joined, len(joined), places, len(edges), words, steps, *table, shared, -_TOP_BIT if signed else 0


def _word_table(words: np.ndarray, num_edges: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Build a hash table of the range edges' leading words."""
    bits = (_SLOTS_A_WORD * num_edges).bit_length()
    table, firsts = np.full(1 << bits, words[0]), np.zeros(1 << bits, np.int64)
    predicate_kernels.fill_word_table(words, num_edges, table, firsts, 64 - bits)
    return table, firsts, 64 - bits


def _shared_bytes(first: bytes, second: bytes) -> int:
    """Return the length of the common prefix."""
    size = min(len(first), len(second))
    return next((place for place in range(size) if first[place] != second[place]), size)


class LikeMatcher:
    """Matcher of byte strings that match a LIKE pattern, or do not if `negated`."""

    __slots__ = ("_arguments",)

    def __init__(self, pattern: LikePattern, negated: bool) -> None:
        letters, ones = bytearray(), bytearray()
        pieces = np.zeros((len(pattern.segments), SEGMENT_FIELDS), np.int64)
        for row, piece in zip(pieces, pattern.segments, strict=True):
            row[SEGMENT_START] = len(letters)
            for token in piece:
                letters += b"_" if token is ANY_CHARACTER else token
                ones += b"\1" if token is ANY_CHARACTER else bytes(len(token))
            head = piece[0][:_WORD] if piece and piece[0] is not ANY_CHARACTER else b""
            row[SEGMENT_END] = len(letters)
            row[HEAD] = int.from_bytes(head.ljust(_WORD, b"\0"), "little", signed=True)
            row[HEAD_MASK] = int.from_bytes((b"\xff" * len(head)).ljust(_WORD, b"\0"), "little", signed=True)
            row[WHOLE_HEAD] = len(head) == len(letters) - row[SEGMENT_START]
            row[NUM_WILDCARDS] = piece.count(ANY_CHARACTER)
        self._arguments = (
            np.frombuffer(bytes(letters), np.uint8),
            np.frombuffer(bytes(ones), np.uint8),
            pieces.reshape(-1),
            len(pieces),
            int(pattern.is_text),
            int(negated),
        )

    def match(self, strings: ByteStrings, mask: RowMask) -> None:
        """Combine into the mask which strings match."""
        predicate_kernels.match_like(*strings, *self._arguments, *mask.kernel_arguments)


def offset_binary(ranges: KeyRanges, width: int) -> KeyRanges:
    """Return ranges of ints as ranges of big-endian bytes with inverted sign bit; ints that do not fit are clipped."""
    half = 1 << 8 * width - 1

    def edge(key: Any) -> Any:
        if key >= half:
            return TOP
        return b"" if key <= -half else (key + half).to_bytes(width, "big")

    return tuple((edge(low), edge(high)) for low, high in ranges if low < half and high > -half)


def match_unscaled_decimals(column: ColumnVector, ranges: KeyRanges, mask: RowMask) -> None:
    """Combine into the mask which decimals of any length are in int ranges.

    They are big-endian two's complement; no bytes are 0.
    """
    starts, ends = column.string_bounds()
    sizes = ends - starts
    data = np.ascontiguousarray(column.values).view(np.uint8)
    width = max(int(sizes.max(initial=1)), 1)
    step = max(_CHUNK_BYTES // width, 1)
    wanted = BytesMatcher(offset_binary(ranges, width))
    for start in range(0, len(sizes), step):
        rows = slice(start, start + step)
        wide = _widened(data, starts[rows], sizes[rows], width)
        wanted.match(ByteStrings.from_fixed_width(wide, width), mask.slice(start, start + step))


def _widened(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, width: int) -> np.ndarray:
    """Sign-extend numbers to one width, and invert their sign bits."""
    if not len(data):
        data = np.zeros(1, np.uint8)
    last = len(data) - 1
    negative = (sizes > 0) & (data[np.minimum(starts, last)] >= 0x80)
    wide = np.empty((len(sizes), width), np.uint8)
    for column in range(width):
        place = column - (width - sizes)  # index in the number; negative: sign extension
        stored = data[np.clip(starts + place, 0, last)]
        wide[:, column] = np.where(place >= 0, stored, np.where(negative, 0xFF, 0))
    wide[:, 0] ^= 0x80
    return wide.reshape(-1)
