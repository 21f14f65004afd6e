"""Prune row groups by Bloom filters: hash the values of a predicate and probe."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from numparq.expr.bound import (
    BloomPredicate,
    BoundPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
    bound_predicates,
    combine_bools,
    conjuncts,
    filter_leaves,
)
from numparq.expr.expression import Expression
from numparq.expr.key_ranges import TOP
from numparq.expr.sort_keys import has_canonical_bytes
from numparq.format.bloom_filter import hash_values
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY
from numparq.format.schema import Leaf

from .bloom_blocks import BloomFilterBlocks, fetch_blocks
from .index_reader import BLOOM_FILTER, IndexLocations

# A range of up to so many keys is probed key by key; more are not worth their probes.
MAX_HASHES = 4096


def bloom_hashes(predicate: BoundPredicate, max_probes: int = MAX_HASHES) -> np.ndarray | None:
    """Return the hashes (uint64) of all values that match, one of which a chunk's Bloom filter must have.

    None if filters cannot decide: over `max_probes` values, or a NaN, match, or bytes are not canonical. Zero has two.
    """
    if isinstance(predicate, ContainsPredicate):
        return None if predicate.negated else bloom_hashes(predicate.predicate, max_probes)
    if (
        isinstance(predicate, (NullPredicate, BloomPredicate, ComparisonPredicate))
        or predicate.matches_nan
        or (predicate.pattern is not None and predicate.negated)
    ):
        return None
    leaf, domain = predicate.leaf, predicate.domain
    if not has_canonical_bytes(leaf, domain):
        return None
    plain = _bytes(predicate, max_probes) if domain.kind == "bytes" else _numbers(predicate, max_probes)
    if plain is None:
        return None
    if domain.width:
        plain = [value for value in plain if len(value) == domain.width]
    values = np.frombuffer(b"".join(plain), np.uint8)
    if leaf.physical != BYTE_ARRAY:
        return hash_values(leaf, values)
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    return hash_values(leaf, values, ends - [len(value) for value in plain], ends)


def _numbers(predicate: ValuePredicate, most: int) -> list[bytes] | None:
    if len(predicate.ranges) > most or sum(high - low for low, high in predicate.ranges) > most:
        return None
    return [predicate.domain.plain_value(key) for low, high in predicate.ranges for key in range(low, high)]


def _bytes(predicate: ValuePredicate, most: int) -> list[bytes] | None:
    """Return all byte strings in the ranges, if few: each range's first one, and it with zero bytes appended."""
    if len(predicate.ranges) > most or any(
        high is TOP or high.rstrip(b"\0") != low.rstrip(b"\0") for low, high in predicate.ranges
    ):
        return None
    found = [(low, count) for low, high in predicate.ranges for count in range(min(len(high) - len(low), most + 1))]
    return [low + bytes(count) for low, count in found] if len(found) <= most else None


class BloomFilterPruner:
    """Prunes the row groups of a file by Bloom filters; what is read is cached in ``file.indexes``."""

    def __init__(self, file: OpenFile, places: IndexLocations) -> None:
        self._file = file
        self._where = places

    def prune(
        self, bound: Expression, row_groups: Sequence[int], answered: set[tuple[int, int]]
    ) -> Iterator[tuple[Expression, list[int]]]:
        """Yield each conjunct that Bloom filters can decide, with the row groups in which no row matches it.

        Chunks whose filter was probed are added to `answered`, as ordinals of row group and leaf.
        """
        places = self._filter_locations(filter_leaves(bound), row_groups)
        if not places:
            return
        probes = _probes(bound, places)
        # Only conjuncts that filters can refute: in an OR, that takes a filter for each predicate.
        parts = [part for part in conjuncts(bound) if not combine_bools(part, lambda test: id(test) not in probes)]
        gone: list[list[int]] = [[] for _ in parts]
        for filters in fetch_blocks(self._file, _hashes_to_probe(parts, probes, places)):
            answered.update(filters)
            for group, blocks in _by_row_group(filters).items():
                for part, refused in zip(parts, gone, strict=True):
                    if not combine_bools(part, lambda test: _may(test, probes, blocks)):  # noqa: B023
                        refused.append(group)
        yield from zip(parts, gone, strict=True)

    def _filter_locations(
        self, leaves: Sequence[Leaf], row_groups: Sequence[int]
    ) -> dict[int, dict[int, tuple[int, int]]]:
        """Return position and length of Bloom filters, by ordinals of leaf and row group."""
        found: dict[int, dict[int, tuple[int, int]]] = {}
        chunks = [(group, leaf.index) for leaf in leaves for group in row_groups]
        keys = self._file.reader.keys
        for chunk, *place in self._where.locate(BLOOM_FILTER, chunks):
            if keys is None or not keys.is_sealed(*chunk) or not self._is_larger_than_chunk(chunk, place[1]):
                found.setdefault(chunk[1], {})[chunk[0]] = (place[0], place[1])
        return found

    def _is_larger_than_chunk(self, chunk: tuple[int, int], length: int) -> bool:
        """Whether an encrypted filter, which can only be decrypted as a whole, has more bytes than its chunk."""
        return length > int(self._file.footer.chunks["total_compressed_size"][chunk])


def _probes(bound: Expression, leaves: Collection[int]) -> dict[int, np.ndarray]:
    """Return the hashes to probe for the predicates that Bloom filters can decide, by ``id`` of the predicate."""
    tests = [test for test in bound_predicates(bound) if test.leaf.index in leaves]
    return {id(test): hashes for test in tests if (hashes := bloom_hashes(test)) is not None}


def _hashes_to_probe(
    parts: Sequence[Expression], probes: Mapping[int, np.ndarray], places: Mapping[int, dict[int, tuple[int, int]]]
) -> dict[tuple[int, int], tuple[int, int, np.ndarray]]:
    """Return position, length and the hashes to probe of each useful Bloom filter, by row group and leaf."""
    hashes: dict[int, list[np.ndarray]] = {}
    for test in (test for part in parts for test in bound_predicates(part)):
        if id(test) in probes:
            hashes.setdefault(test.leaf.index, []).append(probes[id(test)])
    together = {leaf: np.concatenate(several) for leaf, several in hashes.items()}
    return {
        (group, leaf): (*place, several) for leaf, several in together.items() for group, place in places[leaf].items()
    }


def _by_row_group(filters: Mapping[tuple[int, int], BloomFilterBlocks]) -> dict[int, dict[int, BloomFilterBlocks]]:
    found: dict[int, dict[int, BloomFilterBlocks]] = {}
    for (group, leaf), blocks in filters.items():
        found.setdefault(group, {})[leaf] = blocks
    return found


def _may(predicate: BoundPredicate, probes: Mapping[int, np.ndarray], filters: Mapping[int, BloomFilterBlocks]) -> bool:
    """Whether a row of a row group may match, by its Bloom filters."""
    blocks, hashes = filters.get(predicate.leaf.index), probes.get(id(predicate))
    return blocks is None or hashes is None or bool(blocks.might_contain(hashes).any())
