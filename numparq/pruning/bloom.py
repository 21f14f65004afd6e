"""Bloom filters of column chunks held against a predicate; of each no more is fetched than what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..opened import OpenedFile
from ..predicate.bound import ElementTest, Leafy, ValueTest, decide, each_test, leaves_of
from ..predicate.expression import Expression
from ..predicate.probes import bloom_probes, may_contain
from ..statistics.distrust import distrusted
from .bloom_blocks import load_blocks
from .places import BLOOM_FILTER, NOWHERE, places_of
from .reasons import conjuncts

__all__ = ["BloomFilters"]

_Chunk = tuple[int, int]  # ordinals of a row group and a leaf


class BloomFilters:
    """The Bloom filters of a file.

    Parameters
    ----------
    file : OpenedFile
        The file; what is read is kept in ``file.indexes``.
    """

    def __init__(self, file: OpenedFile) -> None:
        self._file = file

    def dropped(
        self, bound: Expression, row_groups: Sequence[int], answered: set[tuple[int, int]]
    ) -> Iterator[tuple[Expression, list[int]]]:
        """Find the row groups in which no row can satisfy a predicate.

        Parameters
        ----------
        bound : Expression
            Made by `bind`.
        row_groups : sequence of int
            Ordinals of those that are in question.
        answered : set of (int, int)
            Takes the chunks, by the ordinals of row group and leaf, whose filters were asked.

        Yields
        ------
        part : Expression
            One of the parts of `bound` that all have to hold.
        row_groups : list of int
            Those in which it cannot; a row group may come with several parts.
        """
        probes = _probes(bound)
        # A part is asked only if filters can refuse it: in an OR, that takes a filter for each test.
        parts = [part for part in conjuncts(bound) if not decide(part, lambda test: id(test) not in probes)]
        asked = self._asked(parts, probes, row_groups)
        if not asked:
            return
        filters = load_blocks(self._file, asked)
        answered.update(filters)
        for part in parts:
            leaves = [leaf.index for leaf in leaves_of(part)]
            gone = []
            for group in row_groups:
                known = {leaf: found for leaf in leaves if (found := filters.get((group, leaf))) is not None}
                if known and not may_contain(part, {leaf: blocks.might_contain for leaf, blocks in known.items()}):
                    gone.append(group)
            yield part, gone

    def _asked(
        self, parts: Sequence[Expression], probes: Mapping[int, np.ndarray], row_groups: Sequence[int]
    ) -> dict[_Chunk, tuple[int, int, np.ndarray]]:
        """Give for each filter that can help where it lies, its length, and the hashes that it is asked for."""
        found: dict[_Chunk, tuple[int, int, np.ndarray]] = {}
        places: dict[int, list[list[int]]] = {}
        for part in parts:
            for leaf in leaves_of(part):
                if leaf.index in places or BLOOM_FILTER in distrusted(self._file.footer.created_by, leaf):
                    continue
                leaves = [leaf.index] * len(row_groups)
                places[leaf.index] = places_of(self._file, BLOOM_FILTER, row_groups, leaves).tolist()
        hashes: dict[int, list[np.ndarray]] = {}
        for part in parts:
            for test in each_test(part):
                if id(test) in probes:
                    hashes.setdefault(test.leaf.index, []).append(probes[id(test)])
        for leaf_index, several in hashes.items():
            together = np.concatenate(several)
            for group, (start, length) in zip(row_groups, places.get(leaf_index, []), strict=False):
                if start != NOWHERE:
                    found[group, leaf_index] = start, length, together
        return found


def _probes(bound: Expression) -> dict[int, np.ndarray]:
    """Give the hashes that tests ask for, by the ids of the tests; of those that filters can answer."""
    tests: list[Leafy] = [test for test in each_test(bound) if isinstance(test, (ValueTest, ElementTest))]
    return {id(test): hashes for test in tests if (hashes := bloom_probes(test)) is not None}
