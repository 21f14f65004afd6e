"""Matchers of byte strings: key ranges, LIKE patterns, big-endian decimals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.expr.key_arrays import KeyGaps, StringPoints
from numparq.expr.key_ranges import TOP, KeyRanges, RangeTuple
from numparq.expr.like import ANY_CHARACTER, LikePattern
from numparq.kernels.kernel_groups import predicate_kernels
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
_SLOTS_A_STRING = 2

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
        self._kernel, self._arguments = _choose_kernel(ranges, signed)

    def match(self, strings: ByteStrings, mask: RowMask) -> None:
        """Combine into the mask which strings are in the ranges."""
        getattr(predicate_kernels, self._kernel)(*strings, *self._arguments, *mask.kernel_arguments)


def _choose_kernel(ranges: KeyRanges, signed: bool) -> tuple[str, tuple[Any, ...]]:
    """Choose the kernel for the ranges, and build its arguments."""
    points = ranges.excluded if isinstance(ranges, KeyGaps) else ranges
    if isinstance(points, StringPoints):
        return "match_strings", _string_table(points, negated=int(points is not ranges))
    edges = [edge for pair in ranges for edge in pair if edge is not TOP]
    # Edges by turns begin and end a range: an odd number of them leaves the last range open.
    negated = len(edges) % 2
    strings = _single_strings(edges[1:] if negated and edges[0] == b"" else edges)
    if not strings:
        return "match_byte_ranges", _range_arguments(edges, signed)
    if signed:
        strings = [bytes([string[0] ^ 0x80]) + string[1:] for string in strings]
    if len(strings) == 1:
        return "match_string", (np.frombuffer(strings[0], np.uint8), len(strings[0]), negated)
    return "match_strings", _string_table(StringPoints.from_strings(strings), negated)


def _single_strings(edges: Sequence[bytes]) -> Sequence[bytes]:
    """Return the strings of ranges that hold one each, by their edges; none if any range holds more."""
    starts, ends = edges[::2], edges[1::2]
    single = len(starts) == len(ends) and all(end == string + b"\0" for string, end in zip(starts, ends, strict=True))
    return starts if single else ()


def _range_arguments(edges: Sequence[bytes], signed: bool) -> tuple[Any, ...]:
    """Return the arguments of `match_byte_ranges`."""
    shared = 0 if signed or not edges else _shared_bytes(edges[0], edges[-1])
    steps = len(edges).bit_length()
    words = np.full((1 << steps) - 1, ~np.uint64(0))
    heads = b"".join(edge[shared : shared + _WORD].ljust(_WORD, b"\0") for edge in edges)
    words[: len(edges)] = np.frombuffer(heads, ">u8")
    joined = np.frombuffer(b"".join(edges), np.uint8)
    places = np.cumsum([0, *map(len, edges)], dtype=np.int64)
    return joined, len(joined), places, len(edges), words, steps, shared, -_TOP_BIT if signed else 0


def _string_table(strings: StringPoints, negated: int) -> tuple[Any, ...]:
    """Return the arguments of `match_strings`."""
    bits = (_SLOTS_A_STRING * len(strings)).bit_length()
    table, shift, marks = np.zeros(1 << bits, np.uint64), 64 - bits, np.zeros(1 << bits, np.uint8)
    keys = strings.data, len(strings.data), strings.offsets
    predicate_kernels.fill_string_table(*keys, len(strings), table, shift, marks)
    return *keys, table, shift, marks, negated


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
    """Return ranges of ints as ranges of big-endian bytes with inverted sign bit; ints that do not fit are clipped.

    The range of a single int ends behind its bytes, of which there are `width`.
    """
    half = 1 << 8 * width - 1

    def edge(key: Any) -> Any:
        if key >= half:
            return TOP
        return b"" if key <= -half else (key + half).to_bytes(width, "big")

    def end(low: Any, high: Any) -> Any:
        return edge(low) + b"\0" if high == low + 1 and low >= -half else edge(high)

    return RangeTuple((edge(low), end(low, high)) for low, high in ranges if low < half and high > -half)


def big_endian_points(keys: np.ndarray, width: int) -> StringPoints:
    """Return keys (int64) as big-endian two's complement of `width` bytes."""
    data = np.empty((len(keys), max(width, _WORD)), np.uint8)
    data[:, :-_WORD] = np.where(keys < 0, 0xFF, 0)[:, None]
    data[:, -_WORD:] = keys.astype(">i8").view(np.uint8).reshape(-1, _WORD)
    data = np.ascontiguousarray(data[:, data.shape[1] - width :])
    return StringPoints(data.reshape(-1), np.arange(len(keys) + 1, dtype=np.int64) * width)


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
