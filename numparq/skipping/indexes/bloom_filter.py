"""BloomFilter: Spark's filter of the values of a file, integers or strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from numparq.expr.bind import domain_predicate
from numparq.expr.expression import Expression
from numparq.expr.key_ranges import KeyRanges, intersection
from numparq.expr.sort_keys import key_domain
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import Leaf
from numparq.skipping.spark_bloom import hash_integers, hash_texts, probe_cells

from .bind_values import LiteralValue
from .index import Cells, unwrap_test

_MOST_INTEGERS = 4096  # of a range, asked one by one
_COMPARED = ("==", "in", "<", "<=", ">", ">=")
_INTEGER = Leaf(0, 0, ("value",), INT64, None, None, 1, 0)
_TEXT = Leaf(0, 0, ("value",), BYTE_ARRAY, None, LogicalType("STRING"), 1, 0)


class BloomFilterCells:
    """Answers predicates by Bloom filters; null and unreadable ones say nothing."""

    cost: ClassVar[int] = 2

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return which files may match all tests; see `CellReader`."""
        may = np.ones(cells.count, np.bool_)
        hashes = item_hashes(tests)
        leaves = cells.rows.part.leaves(cells.index.column)
        is_binary = len(leaves) == 1 and leaves[0].physical == BYTE_ARRAY and not leaves[0].is_nested
        if hashes is None or not is_binary:
            return may
        vector = cells.rows.column(leaves[0], cells.chosen)
        starts, ends = vector.string_bounds()
        answers = probe_cells(vector.values, starts, ends, hashes)
        if vector.codes is not None:
            there = vector.codes >= 0
            may[there] = answers[vector.codes[there]]
        else:
            there = np.ones(cells.count, np.bool_) if vector.validity is None else vector.validity.astype(np.bool_)
            may[there] = answers[: cells.count][there]
        return may


def item_hashes(tests: Sequence[Expression]) -> np.ndarray | None:
    """Return the hashes of all values that satisfy the tests; None if these are not a few integers or strings."""
    ranges: dict[str, KeyRanges] = {}
    for test in tests:
        predicate, negated = unwrap_test(test)
        kind = None if negated or predicate.op not in _COMPARED else _kind(predicate.op, predicate.operand)
        if kind is None:
            continue  # counts as true
        leaf = _INTEGER if kind == "integers" else _TEXT
        keys = domain_predicate(replace(predicate), leaf, key_domain(leaf), False).ranges
        ranges[kind] = intersection(ranges[kind], keys) if kind in ranges else keys
    if len(ranges) != 1:
        return None
    ((kind, keys),) = ranges.items()
    return _hash_integers(keys) if kind == "integers" else _hash_texts(keys)


def _kind(op: str, operand: LiteralValue) -> str | None:
    """Return the kind of literals, which all have to be of one."""
    values = list(operand) if op == "in" else [operand]
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)) for value in values):
        return "integers"
    return "texts" if all(isinstance(value, str) for value in values) else None


def _hash_integers(keys: KeyRanges) -> np.ndarray | None:
    if sum(end - low for low, end in keys) > max(_MOST_INTEGERS, len(keys)):
        return None
    return hash_integers(np.array([value for low, end in keys for value in range(low, end)], np.int64))


def _hash_texts(keys: KeyRanges) -> np.ndarray | None:
    if any(end != low + b"\0" for low, end in keys):
        return None
    return hash_texts([low for low, _ in keys])
