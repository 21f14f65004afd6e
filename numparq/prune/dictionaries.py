"""Prune row groups by dictionaries of chunks that are fully dictionary-encoded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bound import (
    BloomPredicate,
    ContainsPredicate,
    ValuePredicate,
    bound_predicates,
    combine_bools,
    conjuncts,
    filter_leaves,
)
from numparq.expr.evaluate import evaluate_predicate
from numparq.expr.expression import Expression
from numparq.expr.matchers.vectors import ColumnVector
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.plan.plan_builder import PlanBuilder
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.util.byte_budget_cache import DICTIONARY_BYTES

from .dictionary_page import (
    decode_dictionary,
    dictionary_range,
    first_data_pages,
    is_fully_dictionary_encoded,
    supports_dictionary,
)

_LARGEST = 1 << 20
_SHARE = 4  # a dictionary is read if it is at most a quarter of the bytes that it may save
# Least bytes to save: reading fewer takes no longer than checking a dictionary (local), or a round trip (remote).
_WORTH_A_LOOK, _WORTH_A_TRIP = 1 << 10, 4 << 20
_MIN_BYTES_IN_MEMORY = 64 << 10  # in joined files
_TRIED = 2  # row groups tried first; if none of them is pruned, the others are not tried


class _DictionaryRequest(NamedTuple):
    """Dictionary page to fetch: row group, leaf, position among the columns, and byte range (exclusive stop)."""

    row_group: int
    leaf: int
    place: int
    start: int
    stop: int

    @property
    def key(self) -> tuple[str, int, int]:
        """Key of the decoded dictionary in the file's entry of the cache."""
        return "dictionary", self.row_group, self.leaf


class DictionaryPruner:
    """Prunes the row groups of a file by dictionaries; `leaves` are the columns of `tables`, in order."""

    def __init__(self, file: OpenFile, leaves: Sequence[Leaf], tables: ChunkTables) -> None:
        self._file = file
        self._tables = tables
        self._place_of = {leaf.index: place for place, leaf in enumerate(leaves)}

    def prune(
        self, plan: PlanBuilder, bound: Expression, row_groups: Sequence[int], answered: set[tuple[int, int]]
    ) -> Iterator[tuple[Expression, list[int]]]:
        """Yield each conjunct, with the row groups in which no row matches it by the dictionaries.

        Skips chunks in `answered` (ordinals of row group and leaf), whose Bloom filters were probed before.
        """
        firsts: dict[int, dict[int, int]] = {}
        if self._file.footer.data_bounds is not None:
            row_groups = [group for group in row_groups if plan.groups[group].num_bytes >= _MIN_BYTES_IN_MEMORY]
        for part in conjuncts(bound):
            if combine_bools(part, lambda test: not _is_of_values(test)):
                continue
            for leaf in filter_leaves(part):
                if leaf.index not in firsts and leaf.index in self._place_of:
                    firsts[leaf.index] = self._first_pages(plan, row_groups, leaf)
            each = (self._request_dictionary(plan.groups[group], part, firsts, answered) for group in row_groups)
            asked = (found for found in each if found)
            gone = self._gone(part, [*islice(asked, _TRIED)])
            if gone:
                gone += self._gone(part, [*asked])
            yield part, gone

    def _first_pages(self, plan: PlanBuilder, row_groups: Sequence[int], leaf: Leaf) -> dict[int, int]:
        """Return the positions of the first data pages of a column's chunks; empty if its type has no dictionaries."""
        if not supports_dictionary(leaf):
            return {}
        chunks = {group: plan.groups[group].chunks[self._place_of[leaf.index]] for group in row_groups}
        located = {group: int(chunk.offsets[0]) for group, chunk in chunks.items() if chunk.is_indexed}
        others = [group for group in row_groups if group not in located]
        return located | (first_data_pages(self._file, others, leaf) if others else {})

    def _request_dictionary(
        self,
        group: RowGroupPlan,
        part: Expression,
        firsts: Mapping[int, Mapping[int, int]],
        answered: set[tuple[int, int]],
    ) -> list[_DictionaryRequest]:
        """Return the dictionaries of a row group that may refute a conjunct and are worth fetching, or none."""
        found: dict[int, tuple[Leaf, tuple[int, int]]] = {}
        for test in bound_predicates(part):
            leaf, place = test.leaf, self._place_of.get(test.leaf.index)
            first = firsts.get(leaf.index, {}).get(group.ordinal)
            if place is None or first is None or not _is_of_values(test) or (group.ordinal, leaf.index) in answered:
                continue
            where = dictionary_range(group.chunks[place], first)
            if where is not None and where[1] - where[0] <= _LARGEST:
                found[leaf.index] = leaf, where
        if not _refutable(part, found):
            return []
        requests = [
            _DictionaryRequest(group.ordinal, index, self._place_of[index], *where)
            for index, (leaf, where) in found.items()
            if is_fully_dictionary_encoded(self._file, group.ordinal, leaf)
        ]
        if len(requests) < len(found) and not _refutable(part, [one.leaf for one in requests]):
            return []
        missing = sum([one.stop - one.start for one in requests if one.key not in self._file.entry])
        return requests if not missing or self._is_worth_fetching(group.num_bytes, missing) else []

    def _is_worth_fetching(self, saved: int, num_bytes: int) -> bool:
        """Whether dictionaries of so many bytes are fetched for the chance to save so many others."""
        return _SHARE * num_bytes <= saved >= (_WORTH_A_TRIP if self._file.source.is_remote else _WORTH_A_LOOK)

    def _gone(self, part: Expression, asked: Sequence[list[_DictionaryRequest]]) -> list[int]:
        """Fetch dictionaries; return the row groups in which they refute the conjunct."""
        entry = self._file.entry
        every = [one for group in asked for one in group]
        loaded = self._load([one for one in every if one.key not in entry], part)
        known: dict[int, dict[int, ColumnVector]] = {}
        for one in every:
            values = loaded[one.key] if one.key in loaded else entry[one.key]
            if values is not None:
                known.setdefault(one.row_group, {})[one.leaf] = values
        return [group for group, values in known.items() if not combine_bools(part, lambda test: _may(test, values))]  # noqa: B023

    def _load(
        self, missing: Sequence[_DictionaryRequest], part: Expression
    ) -> dict[tuple[str, int, int], ColumnVector | None]:
        """Fetch and decode dictionaries, and add them to the file's entry as far as there is room."""
        loaded: dict[tuple[str, int, int], ColumnVector | None] = {}
        if not missing:
            return loaded
        ranges = np.array([(one.start, one.stop - one.start) for one in missing], np.int64)
        pieces = self._file.reader.read_modules(ranges)
        leaves = {test.leaf.index: test.leaf for test in bound_predicates(part)}
        for one, piece in zip(missing, pieces, strict=True):
            values = decode_dictionary(piece, one.row_group, one.place, leaves[one.leaf], self._tables)
            loaded[one.key] = values
            self._file.entry.put_dictionary(one.key, values, _num_bytes(values))
        return loaded


def _num_bytes(values: ColumnVector | None) -> int:
    """Return the memory of a decoded dictionary, views counted as what they keep alive."""
    arrays = () if values is None else (values.values, values.offsets)
    held = sum((array if array.base is None else array.base).nbytes for array in arrays if array is not None)
    return DICTIONARY_BYTES + held


def _is_of_values(predicate: Any) -> bool:
    """Whether the distinct values of a chunk are enough to refute a predicate."""
    return isinstance(predicate, (ValuePredicate, BloomPredicate)) or (
        isinstance(predicate, ContainsPredicate) and not predicate.negated
    )


def _refutable(part: Expression, leaves: Collection[int]) -> bool:
    """Whether the dictionaries of these leaves can refute a conjunct."""
    return not combine_bools(part, lambda test: test.leaf.index not in leaves or not _is_of_values(test))


def _may(predicate: Any, known: dict[int, ColumnVector]) -> bool:
    values = known.get(predicate.leaf.index)
    if values is None or not _is_of_values(predicate):
        return True
    return bool(
        evaluate_predicate(predicate.predicate if isinstance(predicate, ContainsPredicate) else predicate, values).any()
    )
