"""PrefixList and SuffixList: first or last characters of all strings of a file. Indexes of numparq's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from numparq.expr.bound import ValuePredicate
from numparq.expr.expression import Expression
from numparq.format.physical_type import BYTE_ARRAY

from .bind_values import bind_tests
from .cell_values import CellValues, cell_values
from .definitions import LENGTH_PARAMETER
from .index import Cells, unwrap_test
from .intervals import Intervals

_LIST_LEVEL = 1
_AFTER_ALL_TEXT = 0xFF  # greater than any byte of UTF-8


class _AffixCells:
    """Base of both: reads the lists, and asks the class which of them may match."""

    cost: ClassVar[int] = 1

    def may_match(self, cells: Cells, tests: Sequence[Expression]) -> np.ndarray:
        """Return which files may match all tests; see `CellReader`."""
        may: np.ndarray = np.ones(cells.count, np.bool_)
        leaves = cells.rows.part.leaves(cells.index.column)
        length = cells.index.params.get(LENGTH_PARAMETER, "")
        is_list = len(leaves) == 1 and leaves[0].max_repetition_level == 1 and leaves[0].physical == BYTE_ARRAY
        if not is_list or not length.isdecimal() or int(length) < 1:
            return may
        lists = cell_values(leaves[0], cells.rows.column(leaves[0], cells.chosen))
        offsets = lists.vector.list_offsets
        if offsets is None or lists.domain.kind != "bytes":
            return may
        there = lists.vector.levels.get(_LIST_LEVEL)
        nothing = np.zeros(cells.count, np.bool_) if there is None else ~np.asarray(there[: cells.count], np.bool_)
        for test in tests:
            predicate, negated = unwrap_test(test)
            if predicate.op == "is null":
                may &= (np.diff(offsets) > 0) | (not negated)
                continue
            for bound in bind_tests([test], lists.leaf, lists.domain):
                for each in bound:
                    may &= self._match(each, lists, offsets, int(length))
        may |= nothing
        return may

    def _match(self, predicate: ValuePredicate, lists: CellValues, offsets: np.ndarray, length: int) -> np.ndarray:
        raise NotImplementedError


class PrefixListCells(_AffixCells):
    """Answers predicates by first characters."""

    def _match(self, predicate: ValuePredicate, lists: CellValues, offsets: np.ndarray, length: int) -> np.ndarray:
        starts, ends = lists.vector.string_bounds()
        data = lists.vector.values
        texts = [data[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        highs, lower, added = bytearray(), np.stack([starts, ends - starts], axis=1), []
        for text in texts:
            high = text + bytes([_AFTER_ALL_TEXT]) if _num_characters(text) >= length else text
            added.append((len(data) + len(highs), len(high)))
            highs += high
        upper = np.array(added, np.int64).reshape(-1, 2)
        whole = np.concatenate([data, np.frombuffer(bytes(highs), np.uint8)])
        no_nan = np.zeros(len(texts), np.bool_)
        return Intervals(lists.leaf, whole, (lower, upper), no_nan, offsets).may_match([predicate], lists.domain)


class SuffixListCells(_AffixCells):
    """Answers equality and patterns by last characters."""

    def _match(self, predicate: ValuePredicate, lists: CellValues, offsets: np.ndarray, length: int) -> np.ndarray:
        ends_of_matches = _ends(predicate)
        if ends_of_matches is None:
            return np.ones(len(offsets) - 1, np.bool_)
        starts, ends = lists.vector.string_bounds()
        data = lists.vector.values
        matches = np.zeros(len(starts) + 1, np.int64)
        for position, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            text = data[start:end].tobytes()
            is_whole = _num_characters(text) < length
            matches[position + 1] = any(_may_end(text, each, is_whole) for each in ends_of_matches)
        may: np.ndarray = np.diff(np.cumsum(matches)[offsets]) > 0
        return may


def _ends(predicate: ValuePredicate) -> list[bytes] | None:
    """Return texts of which one must be the end of a matching value; None if that is not known."""
    if predicate.pattern is not None:
        last = predicate.pattern.segments[-1]
        if predicate.negated or any(not isinstance(each, bytes) for each in last):
            return None
        return [b"".join(each for each in last if each is not None)]
    if any(end != low + b"\0" for low, end in predicate.ranges):
        return None
    return [low for low, _ in predicate.ranges]


def _may_end(suffix: bytes, text: bytes, is_whole: bool) -> bool:
    """Whether a value with this suffix, or that is it, may end with a text."""
    return suffix.endswith(text) or (not is_whole and text.endswith(suffix))


def _num_characters(text: bytes) -> int:
    """Return the number of characters of UTF-8."""
    return sum(byte & 0xC0 != 0x80 for byte in text)
