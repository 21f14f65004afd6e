"""Split-block Bloom filters (BloomFilter.md): size, hashing, insertion and look-up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numparq.errors import SchemaError
from numparq.kernels.kernel_groups import kernels, statistics_kernels
from numparq.kernels.tables import SLACK
from numparq.util.bounded_cache import fork_safe_lru_cache
from numparq.util.pluralize import agree_noun

from .physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96
from .schema import Leaf
from .thrift.decode import decoder_stack
from .thrift.layout import thrift_layout

BLOCK_BYTES = 32
MAX_BYTES = 128 << 20
DEFAULT_FPP = 0.01
_WIDTHS = {INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
_FLOATS: dict[int, np.dtype] = {FLOAT: np.dtype("f4"), DOUBLE: np.dtype("f8")}
_SATURATED = 4096.0  # mean values per block above which every probe succeeds


def false_positive_rate(num_distinct: float, num_bytes: int) -> float:
    """Return the share of values not inserted for which a filter answers "maybe".

    Block occupancy is Poisson; with k values, a probe's 8 bits are set with probability (1 - (31/32)**k)**8.
    """
    mean = num_distinct * BLOCK_BYTES / num_bytes
    if mean <= 0:
        return 0.0
    if mean > _SATURATED:
        return 1.0
    last = int(mean + 12 * math.sqrt(mean) + 40)
    counts = np.arange(last + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    shares = np.exp(counts * math.log(mean) - mean - log_factorials)
    return float(shares @ (1 - (31 / 32) ** counts) ** 8)


def optimal_num_bytes(num_distinct: float, fpp: float = DEFAULT_FPP, max_bytes: int = MAX_BYTES) -> int:
    """Return the smallest power of two, from 32 to `max_bytes`, that reaches a false-positive rate.

    pyarrow reads no filter above 128 MiB, the default limit.
    """
    if not 0 < fpp < 1:
        raise ValueError(f"the false-positive rate must be between 0 and 1, not {fpp}")
    if max_bytes < BLOCK_BYTES:
        raise ValueError(f"the size limit of a Bloom filter must be at least {BLOCK_BYTES} bytes, not {max_bytes}")
    size = BLOCK_BYTES
    while 2 * size <= max_bytes and false_positive_rate(num_distinct, size) > fpp:
        size *= 2
    return size


def hash_values(
    leaf: Leaf, values: np.ndarray, starts: np.ndarray | None = None, ends: np.ndarray | None = None
) -> np.ndarray:
    """Hash values as Bloom filters do: XXH64, seed 0, of the PLAIN bytes without length prefix; uint64.

    BYTE_ARRAY values need `starts` and `ends` (int64). SchemaError for BOOLEAN, which has no bytes per value.
    """
    if leaf.physical == BOOLEAN:
        raise SchemaError("a BOOLEAN column cannot have a Bloom filter", column=leaf.name)
    if leaf.physical == BYTE_ARRAY:
        if starts is None or ends is None:
            raise TypeError("BYTE_ARRAY values need `starts` and `ends`")
        hashes = np.empty(len(starts), np.uint64)
        statistics_kernels.xxh64_binary(values, starts, ends, len(starts), hashes)
        return hashes
    width = leaf.type_length or 0 if leaf.physical == FIXED_LEN_BYTE_ARRAY else _WIDTHS[leaf.physical]
    hashes = np.empty(values.nbytes // width if width else 0, np.uint64)
    statistics_kernels.xxh64_fixed(values.view(np.uint8), width, len(hashes), hashes)
    return hashes


def hash_equal_values(leaf: Leaf, values: np.ndarray) -> np.ndarray:
    """Hash floats equal to some value but with other bits, so that probes for them succeed; uint64.

    These are both zeros if there is a zero, and the canonical NaN if there is a NaN.
    """
    dtype: np.dtype | None = _FLOATS.get(leaf.physical)
    if leaf.logical is not None and leaf.logical.kind == "FLOAT16":
        dtype = np.dtype("f2")
    if dtype is None:
        return np.empty(0, np.uint64)
    floats = values.view(dtype)
    more = [*([0.0, -0.0] if (floats == 0).any() else []), *([np.nan] if np.isnan(floats).any() else [])]
    return hash_values(leaf, np.array(more, dtype))


class BloomFilter:
    """A split-block Bloom filter.

    Attributes
    ----------
    bitset : uint8 array
        The bits; a multiple of 32 bytes.
    """

    __slots__ = ("bitset",)

    def __init__(self, bitset: np.ndarray) -> None:
        if not len(bitset) or len(bitset) % BLOCK_BYTES:
            raise ValueError(f"the size of a Bloom filter must be a multiple of {BLOCK_BYTES} bytes, not {len(bitset)}")
        self.bitset = bitset

    def __reduce__(self) -> tuple[type[BloomFilter], tuple[np.ndarray]]:
        return BloomFilter, (self.bitset,)

    @classmethod
    def build(
        cls,
        hashes: np.ndarray,
        fpp: float = DEFAULT_FPP,
        num_distinct: int | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> BloomFilter:
        """Build a filter from hashes, sized by the number of distinct ones.

        Parameters
        ----------
        hashes : uint64 array
            Hashes from `hash_values`.
        fpp : float, default 0.01
            False-positive rate, above 0 and below 1.
        num_distinct : int, optional
            Number of distinct values to size it for; by default that of the hashes.
        max_bytes : int
            Maximum size of the filter.

        Returns
        -------
        BloomFilter
            The filter with all hashes.
        """
        expected = len(hashes) if num_distinct is None else num_distinct
        size = optimal_num_bytes(expected, fpp, max_bytes)
        bloom_filter = cls(np.zeros(size, np.uint8))
        bloom_filter.insert(hashes)
        if num_distinct is None:
            bloom_filter._fold(fpp)
        return bloom_filter

    def insert(self, hashes: np.ndarray) -> None:
        """Insert hashes (uint64) from `hash_values`."""
        statistics_kernels.insert_into_bloom_filter(hashes, len(hashes), self.bitset, self.num_blocks)

    @property
    def num_blocks(self) -> int:
        """Number of 32-byte blocks."""
        return len(self.bitset) // BLOCK_BYTES

    def estimate_distinct(self) -> float:
        """Estimate the number of distinct inserted values from the share of set bits."""
        bits = 8 * len(self.bitset)
        unset = max(bits - int(np.bitwise_count(self.bitset.view(np.uint64)).sum(dtype=np.int64)), 1)
        # A value sets 1 of 32 bits in each word, so the share of unset bits is exp(-n / num_blocks / 32).
        return -32 * self.num_blocks * math.log(unset / bits)

    def _fold(self, fpp: float) -> None:
        """Halve the filter while its false-positive rate allows, by OR of neighbouring blocks."""
        size = optimal_num_bytes(self.estimate_distinct(), fpp, len(self.bitset))
        while len(self.bitset) > size:
            pairs = self.bitset.reshape(-1, 2, BLOCK_BYTES)
            self.bitset = (pairs[:, 0] | pairs[:, 1]).reshape(-1)

    @property
    def header(self) -> dict[str, Any]:
        """BloomFilterHeader as a dict, written before the bit set."""
        return {
            "numBytes": len(self.bitset),
            "algorithm": {"BLOCK": {}},
            "hash": {"XXHASH": {}},
            "compression": {"UNCOMPRESSED": {}},
        }

    def to_bytes(self) -> bytes:
        """Return the bit set as bytes."""
        return self.bitset.tobytes()

    def might_contain(self, hashes: int | np.integer | np.ndarray) -> Any:
        """Whether a hash may have been inserted; an array of hashes gives a bool array."""
        asked = np.atleast_1d(np.asarray(hashes, np.uint64))
        found = np.empty(len(asked), np.uint8)
        statistics_kernels.probe_bloom_filter(asked, len(asked), self.bitset, self.num_blocks, found)
        return found.view(np.bool_) if isinstance(hashes, np.ndarray) else bool(found[0])

    def __repr__(self) -> str:
        values = round(self.estimate_distinct())
        return f"<BloomFilter of {len(self.bitset)} bytes, about {values} {agree_noun(values, 'value')}>"


@fork_safe_lru_cache(256)
def decode_header(content: bytes) -> tuple[int, int]:
    """Return the length of a filter's header and of its bit set; (0, 0) if unsupported.

    Cached, because most filters of a file have equal headers.
    """
    wanted = thrift_layout("BloomFilterHeader")
    words, stack = np.empty(wanted.words, np.int64), decoder_stack(wanted.words, wanted.words)
    piece = np.frombuffer(content + bytes(SLACK), np.uint8)
    end = kernels.read_thrift_struct(piece, 0, len(content), wanted.table, words, 0, stack)
    kinds = ("algorithm.BLOCK", "hash.XXHASH", "compression.UNCOMPRESSED")
    if end < 0 or any(int(words[wanted.slot(kind.split(".")[0])]) != wanted.bit(kind) for kind in kinds):
        return 0, 0
    size = int(words[wanted.slot("numBytes")])
    return (end, size) if 0 < size <= MAX_BYTES and size % BLOCK_BYTES == 0 else (0, 0)
