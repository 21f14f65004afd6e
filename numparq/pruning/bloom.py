"""Bloom filters of column chunks held against a predicate; of each no more is fetched than what it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from ..opened import OpenedFile
from ..predicate.bound import Leafy, decide, each_test, leaves_of
from ..predicate.expression import Expression
from ..predicate.probes import bloom_probes
from ..schema import Leaf
from .bloom_blocks import FilterBlocks
from .bloom_loading import load_blocks
from .places import BLOOM_FILTER, Places
from .reasons import conjuncts

__all__ = ["BloomFilters"]


class BloomFilters:
    """The Bloom filters of a file.

    Parameters
    ----------
    file : OpenedFile
        The file; what is read is kept in ``file.indexes``.
    places : Places
        Where they lie.
    """

    def __init__(self, file: OpenedFile, places: Places) -> None:
        self._file = file
        self._where = places

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
        places = self._places(leaves_of(bound), row_groups)
        if not places:
            return
        probes = _probes(bound, places)
        # A part is asked only if filters can refuse it: in an OR, that takes a filter for each test.
        parts = [part for part in conjuncts(bound) if not decide(part, lambda test: id(test) not in probes)]
        gone: list[list[int]] = [[] for _ in parts]
        for filters in load_blocks(self._file, _asked(parts, probes, places)):
            answered.update(filters)
            for group, blocks in _by_row_group(filters).items():
                for part, refused in zip(parts, gone, strict=True):
                    if not decide(part, lambda test: _may(test, probes, blocks)):  # noqa: B023
                        refused.append(group)
        yield from zip(parts, gone, strict=True)

    def _places(self, leaves: Sequence[Leaf], row_groups: Sequence[int]) -> dict[int, dict[int, tuple[int, int]]]:
        """Give where filters lie, and their lengths, by the ordinals of leaves and of row groups."""
        found: dict[int, dict[int, tuple[int, int]]] = {}
        chunks = [(group, leaf.index) for leaf in leaves for group in row_groups]
        for (group, leaf_index), *place in self._where.of(BLOOM_FILTER, chunks):
            found.setdefault(leaf_index, {})[group] = (place[0], place[1])
        return found


def _probes(bound: Expression, leaves: Collection[int]) -> dict[int, np.ndarray]:
    """Give the hashes that tests of some leaves ask for, by the ids of the tests; of those that filters can answer."""
    tests = [test for test in each_test(bound) if test.leaf.index in leaves]
    return {id(test): hashes for test in tests if (hashes := bloom_probes(test)) is not None}


def _asked(
    parts: Sequence[Expression], probes: Mapping[int, np.ndarray], places: Mapping[int, dict[int, tuple[int, int]]]
) -> dict[tuple[int, int], tuple[int, int, np.ndarray]]:
    """Give for each filter that can help where it lies, its length, and the hashes that it is asked for."""
    hashes: dict[int, list[np.ndarray]] = {}
    for test in (test for part in parts for test in each_test(part)):
        if id(test) in probes:
            hashes.setdefault(test.leaf.index, []).append(probes[id(test)])
    together = {leaf: np.concatenate(several) for leaf, several in hashes.items()}
    return {
        (group, leaf): (*place, several) for leaf, several in together.items() for group, place in places[leaf].items()
    }


def _by_row_group(filters: Mapping[tuple[int, int], FilterBlocks]) -> dict[int, dict[int, FilterBlocks]]:
    found: dict[int, dict[int, FilterBlocks]] = {}
    for (group, leaf), blocks in filters.items():
        found.setdefault(group, {})[leaf] = blocks
    return found


def _may(test: Leafy, probes: Mapping[int, np.ndarray], filters: Mapping[int, FilterBlocks]) -> bool:
    """Say whether a row of a row group may satisfy a test, by its filters."""
    blocks, hashes = filters.get(test.leaf.index), probes.get(id(test))
    return blocks is None or hashes is None or bool(blocks.might_contain(hashes).any())
