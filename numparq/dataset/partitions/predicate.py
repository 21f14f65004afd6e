"""Predicates on partition columns, evaluated by directory names before a file is opened."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.expr.bind import domain_predicate
from numparq.expr.bound import BoundPredicate, ComparisonPredicate
from numparq.expr.evaluate import evaluate
from numparq.expr.expression import And, ColumnPredicate, Constant, Expression, Or
from numparq.expr.literals import exact_number, locate_literal
from numparq.expr.matchers.vectors import ColumnVector
from numparq.expr.normalize import all_of, any_of, simplify
from numparq.expr.sort_keys import KeyDomain, key_domain
from numparq.format.physical_type import BOOLEAN, BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64
from numparq.format.schema import Leaf

if TYPE_CHECKING:
    from numparq.dataset.prune.filter_columns import DatasetFilterColumn

    from .columns import DatasetPartitions

Raw = str | None
_DTYPES = {BOOLEAN: "u1", INT32: "<i4", INT64: "<i8", FLOAT: "<f4", DOUBLE: "<f8"}
_FORMATS = {2: "<e", 4: "<f", 8: "<d"}


class PartitionPredicate(Expression):
    """A bound predicate on a partition key, which is constant for each file.

    ``predicate`` is bound to the leaf of the key, whose ordinal among the partition keys is ``key``.
    """

    __slots__ = ("_answers", "_partitions", "key", "predicate")

    def __init__(self, test: BoundPredicate, key: int, partitions: DatasetPartitions) -> None:
        self.predicate = test
        self.key = key
        self._partitions = partitions
        self._answers: dict[Raw, bool] = {}

    def __repr__(self) -> str:
        return repr(self.predicate)

    def evaluate(self, raws: Iterable[Raw]) -> np.ndarray:
        """Evaluate the predicate for texts of directory names (None: null partition); return a bool for each.

        Results are cached: each distinct text is tested once.
        """
        raws = list(raws)
        new = list(dict.fromkeys(raw for raw in raws if raw not in self._answers))
        if new:
            leaf = self.predicate.leaf
            values = _values(self._partitions, self._partitions.keys[self.key], leaf, new)
            found = evaluate(self.predicate, {leaf.index: values}, len(new))
            self._answers.update(zip(new, found.tolist(), strict=True))
        return np.array([self._answers[raw] for raw in raws], np.bool_)

    def evaluate_one(self, raw: Raw) -> bool:
        """Evaluate the predicate for one text."""
        known = self._answers.get(raw)
        return bool(self.evaluate([raw])[0]) if known is None else known


class PartitionComparison(Expression):
    """A bound comparison of two columns, at least one of which is a partition key.

    ``keys`` are the ordinals of both among the partition keys, -1 for a column in the files, which ``domain`` is of.
    """

    __slots__ = ("keys", "partitions", "predicate")

    def __init__(self, test: ComparisonPredicate, keys: tuple[int, int], partitions: DatasetPartitions) -> None:
        self.predicate = test
        self.keys = keys
        self.partitions = partitions

    def __repr__(self) -> str:
        return repr(self.predicate)

    def with_values(self, raws: Sequence[Raw]) -> Expression:
        """Return the comparison for one file's texts of all keys: a predicate on the other column, or a Constant."""
        test = self.predicate
        sides = [(test.leaf, test.domain), (test.other, test.other_domain)]
        texts = [raws[key] if key >= 0 else "" for key in self.keys]
        if None in texts:
            return Constant(False)
        if min(self.keys) >= 0:
            columns = {
                leaf.index: _values(self.partitions, self.partitions.keys[key], leaf, [raw])
                for (leaf, _), key, raw in zip(sides, self.keys, texts, strict=True)
            }
            return Constant(bool(evaluate(test, columns, 1)[0]))
        which = self.keys.index(-1)
        leaf, domain = sides[which]
        key = self.keys[1 - which]
        value = self.partitions.value(self.partitions.keys[key], texts[1 - which])
        op = test.op if which == 0 else _SWAPPED[test.op]
        literal = exact_number(value) if isinstance(value, float) else value  # columns are compared exactly
        named = ColumnPredicate(leaf.path, op, literal)
        return simplify(domain_predicate(named, leaf, domain, test.negated, f"{test!r}, {op} {value!r}"))


_SWAPPED = {"==": "==", "<": ">", "<=": ">="}


def wrap_partition_predicates(
    bound: Expression, items: Sequence[DatasetFilterColumn], partitions: DatasetPartitions
) -> Expression:
    """Wrap each predicate on a partition key in a `PartitionPredicate`; ``items`` are indexed by leaf ordinal."""
    if isinstance(bound, Constant):
        return bound
    if isinstance(bound, (And, Or)):
        return type(bound)(tuple(wrap_partition_predicates(part, items, partitions) for part in bound.parts))
    assert isinstance(bound, BoundPredicate)
    keys = [items[leaf.index].key for leaf in bound.leaves]
    if max(keys) < 0:
        return bound
    if isinstance(bound, ComparisonPredicate):
        return PartitionComparison(bound, (keys[0], keys[1]), partitions)
    return PartitionPredicate(bound, keys[0], partitions)


def evaluate_partition_predicates(expression: Expression, values: Sequence[Raw]) -> Expression:
    """Replace partition predicates by their results for a file's ``values``, and simplify the expression.

    Returns the same object if it holds none.
    """
    if isinstance(expression, PartitionPredicate):
        return Constant(expression.evaluate_one(values[expression.key]))
    if isinstance(expression, PartitionComparison):
        return expression.with_values(values)
    if not isinstance(expression, (And, Or)):
        return expression
    parts = [evaluate_partition_predicates(part, values) for part in expression.parts]
    if all(new is old for new, old in zip(parts, expression.parts, strict=True)):
        return expression
    return all_of(parts) if isinstance(expression, And) else any_of(parts)


# --- texts to decoded values ------------------------------------------------------------------------------------------


def _values(partitions: DatasetPartitions, key: str, leaf: Leaf, raws: Sequence[Raw]) -> ColumnVector:
    """Return the values of a key's texts as a decoded column."""
    values = [None if raw is None else partitions.value(key, raw) for raw in raws]
    validity = np.array([value is not None for value in values], np.uint8)
    domain = key_domain(leaf)
    if domain.type.kind == "int":
        numbers = [0 if value is None else int(value) for value in values]
        dtype = np.uint64 if domain.kind == "unsigned" else np.int64
        return ColumnVector(np.array(numbers, dtype).astype(_DTYPES[leaf.physical]), validity=validity)
    plain = [bytes(domain.width) if value is None else _plain(value, domain) for value in values]
    data = np.frombuffer(b"".join(plain) + bytes(8), np.uint8)
    if leaf.physical == BYTE_ARRAY:
        return ColumnVector(data, np.cumsum([0, *map(len, plain)]), validity)
    data = data[: len(data) - 8]
    return ColumnVector(data.view(_DTYPES.get(leaf.physical, np.uint8)), validity=validity)


def _plain(value: Any, domain: KeyDomain) -> bytes:
    """Encode a key's value as PLAIN."""
    found = locate_literal(value, domain)
    if found is None:
        return struct.pack(_FORMATS[domain.width], np.nan)
    return domain.plain_value(found.left)
