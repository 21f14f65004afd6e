"""Bloom filters: the hashes that tests ask them for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..bloom_filter import BloomFilter, hash_values
from ..schema import BOOLEAN, BYTE_ARRAY, INT32, INT96, Leaf
from .bound import ElementTest, Leafy, MemberTest, NullTest, ValueTest, decide
from .domain import Domain
from .expression import Expression
from .ranges import TOP

# A range of so many keys is as good as a list of them; more are not worth their probes.
MAX_PROBES = 4096


def has_one_form(leaf: Leaf, domain: Domain) -> bool:
    """Say whether equal values of a column have the same bytes, apart from zeros and NaNs, so that a filter has them.

    Those of BYTE_ARRAY decimals, INT96 and integers narrower than their physical type need not; BOOLEAN has no filter.
    """
    narrow = leaf.physical == INT32 and domain.high - domain.low < 1 << 32
    several_forms = domain.kind == "decimal" and leaf.physical == BYTE_ARRAY
    return not (leaf.physical in (BOOLEAN, INT96) or narrow or several_forms or domain.kind == "none")


def bloom_probes(test: Leafy, max_probes: int = MAX_PROBES) -> np.ndarray | None:
    """Give the hashes of all values that satisfy a test.

    Parameters
    ----------
    test : ValueTest, MemberTest, NullTest or ElementTest
        Bound.
    max_probes : int
        More are not made.

    Returns
    -------
    uint64 array or None
        If a column's Bloom filter has none of them, no row satisfies the test. None where a filter cannot tell: too
        many values do, or NaNs do (they have many forms), or equal values may be stored in several ways, as in
        BYTE_ARRAY decimals, INT96, and integers narrower than their physical type. Of zero, both zeros are hashed.
    """
    if isinstance(test, ElementTest):
        return None if test.negated else bloom_probes(test.test, max_probes)
    if isinstance(test, (NullTest, MemberTest)) or test.nan or (test.pattern is not None and test.negated):
        return None
    leaf, domain = test.leaf, test.domain
    if not has_one_form(leaf, domain):
        return None
    plain = _bytes(test, max_probes) if domain.kind == "bytes" else _numbers(test, max_probes)
    if plain is None:
        return None
    if domain.width:
        plain = [value for value in plain if len(value) == domain.width]
    values = np.frombuffer(b"".join(plain), np.uint8)
    if leaf.physical != BYTE_ARRAY:
        return hash_values(leaf, values)
    ends = np.cumsum([len(value) for value in plain], dtype=np.int64)
    return hash_values(leaf, values, ends - [len(value) for value in plain], ends)


def _numbers(test: ValueTest, most: int) -> list[bytes] | None:
    if sum(high - low for low, high in test.ranges) > most:
        return None
    return [test.domain.plain(key) for low, high in test.ranges for key in range(low, high)]


def _bytes(test: ValueTest, most: int) -> list[bytes] | None:
    """List the values of ranges that have few: the first one, and it with more and more zero bytes behind."""
    if len(test.ranges) > most or any(
        high is TOP or high.rstrip(b"\0") != low.rstrip(b"\0") for low, high in test.ranges
    ):
        return None
    found = [(low, count) for low, high in test.ranges for count in range(min(len(high) - len(low), most + 1))]
    return [low + bytes(count) for low, count in found] if len(found) <= most else None


def may_contain(bound: Expression, filters: Mapping[int, Any]) -> bool:
    """Say whether any row of a row group may satisfy a bound expression, by its Bloom filters.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    filters : mapping of int to BloomFilter, or to callable
        By the ordinals of leaves; a callable takes hashes and says of each whether it may be in the filter.

    Returns
    -------
    bool
        False only if none can.
    """

    def answer(test: Leafy) -> bool:
        asked = filters.get(test.leaf.index)
        probes = None if asked is None else bloom_probes(test)
        if asked is None or probes is None:
            return True
        return bool(np.any(asked.might_contain(probes) if isinstance(asked, BloomFilter) else asked(probes)))

    return decide(bound, answer)
