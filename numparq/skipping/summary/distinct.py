"""Count distinct values: hashes that agree across storage types, in a mergeable HyperLogLog sketch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32
from numparq.format.schema import Leaf
from numparq.kernels.kernel_groups import statistics_kernels

from .value_kind import ValueKind

_WIDE_DECIMAL_BYTES = 32  # width in which decimals beyond 64 bits are hashed

_MAX_HASHES = 1024  # as many bytes as the registers
_REGISTER_BITS = 13
_REGISTERS = 1 << _REGISTER_BITS
_RANK_BITS = 64 - _REGISTER_BITS  # bits of a hash whose leading zeros a register counts
_NO_HASHES = np.empty(0, np.uint64)


def hash_stored_values(
    leaf: Leaf, kind: ValueKind, values: np.ndarray, starts: np.ndarray | None = None, ends: np.ndarray | None = None
) -> np.ndarray:
    """Return a uint64 hash of each stored value; nulls and NaNs are excluded.

    INT96 values are datetime64; BYTE_ARRAY values are the bytes between `starts` and `ends`.
    """
    if values.dtype.kind == "M":
        return _hash_timestamps(values)
    if kind.name.startswith("decimal"):
        return _hash_decimals(leaf, values, starts, ends)
    if leaf.physical == BYTE_ARRAY:
        assert starts is not None
        assert ends is not None
        hashes = np.empty(len(starts), np.uint64)
        statistics_kernels.xxh64_binary(
            values, np.ascontiguousarray(starts), np.ascontiguousarray(ends), len(starts), hashes
        )
        return hashes
    if kind.key_dtype == "float64":
        floats = values.view("<f2") if leaf.physical == FIXED_LEN_BYTE_ARRAY else values
        return _hash_words(floats.astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    if leaf.physical == FIXED_LEN_BYTE_ARRAY:
        return _hash_fixed(values, leaf.type_length or 0)
    is_unsigned = leaf.physical == INT32 and leaf.logical is not None and leaf.logical.signed is False
    return _hash_words((values.view(np.uint32) if is_unsigned else values).astype(np.int64))


def _hash_words(values: np.ndarray) -> np.ndarray:
    return _hash_fixed(values, 8)


def _hash_fixed(values: np.ndarray, width: int) -> np.ndarray:
    data = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    hashes = np.empty(len(data) // width if width else len(values), np.uint64)
    statistics_kernels.xxh64_fixed(data, width, len(hashes), hashes)
    return hashes


def _hash_timestamps(values: np.ndarray) -> np.ndarray:
    """Hash timestamps in nanoseconds or microseconds as pairs: microseconds, remaining nanoseconds."""
    numbers = values.view(np.int64)
    pairs = np.zeros((len(values), 2), np.int64)
    if np.datetime_data(values.dtype)[0] == "ns":
        pairs[:, 0], pairs[:, 1] = numbers // 1000, numbers % 1000
    else:
        pairs[:, 0] = numbers
    return _hash_fixed(pairs, 16)


def _hash_decimals(leaf: Leaf, values: np.ndarray, starts: np.ndarray | None, ends: np.ndarray | None) -> np.ndarray:
    if leaf.physical == BYTE_ARRAY:
        assert starts is not None
        assert ends is not None
        data = values.tobytes()
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return _hash_integers([int.from_bytes(data[start:end], "big", signed=True) for start, end in spans])
    if leaf.physical != FIXED_LEN_BYTE_ARRAY:
        return _hash_words(values.astype(np.int64))
    width = leaf.type_length or 0
    rows = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)
    if width > _WIDE_DECIMAL_BYTES:
        data = rows.tobytes()
        return _hash_integers(
            [int.from_bytes(data[at : at + width], "big", signed=True) for at in range(0, len(data), width)]
        )
    wide = np.empty((len(rows), _WIDE_DECIMAL_BYTES), np.uint8)
    sign = np.where(rows[:, 0] >= 128, 255, 0).astype(np.uint8)
    wide[:, : _WIDE_DECIMAL_BYTES - width] = sign[:, None]
    wide[:, _WIDE_DECIMAL_BYTES - width :] = rows
    hashes = _hash_fixed(wide, _WIDE_DECIMAL_BYTES)
    last = np.ascontiguousarray(wide[:, -8:]).view(">i8").reshape(-1).astype(np.int64)
    fits = (wide[:, : _WIDE_DECIMAL_BYTES - 8] == np.where(last < 0, 255, 0)[:, None]).all(axis=1)
    hashes[fits] = _hash_words(last[fits])
    return hashes


def _hash_integers(numbers: list[int]) -> np.ndarray:
    hashes = np.empty(len(numbers), np.uint64)
    small = np.array([-(1 << 63) <= number < 1 << 63 for number in numbers], np.bool_)
    hashes[small] = _hash_words(np.array([number for number in numbers if -(1 << 63) <= number < 1 << 63], np.int64))
    for position in np.flatnonzero(~small).tolist():
        number = numbers[position]
        plain = number.to_bytes(max(_WIDE_DECIMAL_BYTES, (number.bit_length() + 8) // 8), "big", signed=True)
        hashes[position] = _hash_fixed(np.frombuffer(plain, np.uint8), len(plain))[0]
    return hashes


@dataclass
class DistinctSketch:
    """Counts distinct values by 64-bit hashes (sorted, unique); the order of hashes and of merges does not matter.

    Exact up to 1,024 hashes (collision: 3e-14), then HyperLogLog registers: 8 KiB, standard error 1.2 %.
    """

    hashes: np.ndarray = field(default_factory=lambda: _NO_HASHES)
    registers: np.ndarray | None = None

    @classmethod
    def from_hashes(cls, hashes: np.ndarray) -> DistinctSketch:
        """Build a sketch of uint64 hashes, in any order, with any repeats."""
        some = np.unique(hashes[: 2 * _MAX_HASHES])
        if len(some) <= _MAX_HASHES:
            some = np.unique(hashes) if len(hashes) > 2 * _MAX_HASHES else some
        if len(some) <= _MAX_HASHES:
            return cls(some)
        return cls(_NO_HASHES, _fill_registers(hashes))

    @property
    def is_exact(self) -> bool:
        """Whether the sketch still has every hash."""
        return self.registers is None

    def __add__(self, other: DistinctSketch) -> DistinctSketch:
        if self.registers is None and other.registers is None:
            return DistinctSketch.from_hashes(np.concatenate([self.hashes, other.hashes]))
        one, two = (
            each.registers if each.registers is not None else _fill_registers(each.hashes) for each in (self, other)
        )
        return DistinctSketch(_NO_HASHES, np.maximum(one, two))

    def count(self) -> float:
        """Return the number of distinct hashes, exact or estimated."""
        return float(len(self.hashes)) if self.registers is None else _estimate(self.registers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DistinctSketch) or self.is_exact != other.is_exact:
            return False
        if self.registers is None or other.registers is None:
            return np.array_equal(self.hashes, other.hashes)
        return np.array_equal(self.registers, other.registers)

    __hash__ = None  # type: ignore[assignment]


def _fill_registers(hashes: np.ndarray) -> np.ndarray:
    """Return the registers: the largest rank (leading zeros plus one) of the other bits for each leading 13 bits."""
    registers = np.zeros(_REGISTERS, np.uint8)
    register = (hashes >> np.uint64(_RANK_BITS)).astype(np.intp)
    rest = hashes & np.uint64((1 << _RANK_BITS) - 1)  # 51 bits, exact in float64
    _, length = np.frexp(rest.astype(np.float64))
    np.maximum.at(registers, register, (_RANK_BITS + 1 - length).astype(np.uint8))
    return registers


def _estimate(registers: np.ndarray) -> float:
    """Estimate the count by Ertl's improved estimator, unbiased up to 2**64 and without tables.

    O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
    """
    counts = np.bincount(registers, minlength=_RANK_BITS + 2).tolist()
    total = _REGISTERS * _tau(1 - counts[_RANK_BITS + 1] / _REGISTERS)
    for rank in range(_RANK_BITS, 0, -1):
        total = 0.5 * (total + counts[rank])
    total += _REGISTERS * _sigma(counts[0] / _REGISTERS)
    return _REGISTERS * _REGISTERS / (2 * math.log(2) * total)


def _sigma(share: float) -> float:
    """Return Ertl's sigma: the correction for the share of empty registers."""
    if share == 1:
        return math.inf
    factor, total = 1.0, share
    while True:
        share *= share
        more = total + share * factor
        if more == total:
            return total
        total, factor = more, factor * 2


def _tau(share: float) -> float:
    """Return Ertl's tau: the correction for the share of saturated registers."""
    if share in (0, 1):
        return 0.0
    factor, total = 1.0, 1 - share
    while True:
        share = math.sqrt(share)
        factor *= 0.5
        less = total - (1 - share) ** 2 * factor
        if less == total:
            return total / 3
        total = less
