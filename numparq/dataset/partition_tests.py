"""What is asked of partition keys: decided by the names of directories, before a file is opened."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..predicate.bound import Leafy
from ..predicate.domain import Domain, domain_of
from ..predicate.evaluate import Values, evaluate
from ..predicate.expression import And, Constant, Expression, Or
from ..predicate.literals import cut
from ..predicate.normal import all_of, any_of
from ..schema import BOOLEAN, BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64, Leaf

if TYPE_CHECKING:
    from .asked import Asked
    from .partitions import Partitions

__all__ = ["PartitionTest", "decided", "with_partition_tests"]

Raw = str | None
_DTYPES = {BOOLEAN: "u1", INT32: "<i4", INT64: "<i8", FLOAT: "<f4", DOUBLE: "<f8"}
_FORMATS = {2: "<e", 4: "<f", 8: "<d"}


class PartitionTest(Expression):
    """A bound test of a partition key; its answer is the same for all rows of a file.

    Parameters
    ----------
    test : ValueTest, MemberTest or NullTest
        Bound to the key's leaf.
    key : int
        Which key it is, in order of the partitions.
    partitions : Partitions
        What knows the values of raw ones.
    """

    __slots__ = ("_answers", "_partitions", "key", "test")

    def __init__(self, test: Leafy, key: int, partitions: Partitions) -> None:
        self.test = test
        self.key = key
        self._partitions = partitions
        self._answers: dict[Raw, bool] = {}

    def __repr__(self) -> str:
        return repr(self.test)

    def answers(self, raws: Iterable[Raw]) -> np.ndarray:
        """Say which values of the key satisfy it.

        Parameters
        ----------
        raws : iterable of str or None
            As they stand in names of directories; None is the null partition.

        Returns
        -------
        bool array
            One item each; each value is tested once in the life of this object.
        """
        raws = list(raws)
        new = list(dict.fromkeys(raw for raw in raws if raw not in self._answers))
        if new:
            leaf = self.test.leaf
            values = _values(self._partitions, self._partitions.keys[self.key], leaf, new)
            found = evaluate(self.test, {leaf.index: values}, len(new))
            self._answers.update(zip(new, found.tolist(), strict=True))
        return np.array([self._answers[raw] for raw in raws], np.bool_)

    def answer(self, raw: Raw) -> bool:
        """Say whether one value satisfies it."""
        known = self._answers.get(raw)
        return bool(self.answers([raw])[0]) if known is None else known


def with_partition_tests(bound: Expression, items: Sequence[Asked], partitions: Partitions) -> Expression:
    """Wrap the tests of partition keys in a bound expression, so that they can be decided for a file.

    Parameters
    ----------
    bound : Expression
        Bound to the leaves of some items.
    items : sequence of Asked
        What they are, by the ordinals of the leaves.
    partitions : Partitions
        Of the dataset.

    Returns
    -------
    Expression
    """
    if isinstance(bound, Constant):
        return bound
    if isinstance(bound, (And, Or)):
        return type(bound)(tuple(with_partition_tests(part, items, partitions) for part in bound.parts))
    assert isinstance(bound, Leafy)
    key = items[bound.leaf.index].key
    return bound if key < 0 else PartitionTest(bound, key, partitions)


def decided(expression: Expression, values: Sequence[Raw]) -> Expression:
    """Decide the tests of partition keys for a file.

    Parameters
    ----------
    expression : Expression
        As `with_partition_tests` makes them.
    values : sequence of str or None
        The file's value of each key.

    Returns
    -------
    Expression
        Without such tests, and without the constants that they have become; the same object where there were none.
    """
    if isinstance(expression, PartitionTest):
        return Constant(expression.answer(values[expression.key]))
    if not isinstance(expression, (And, Or)):
        return expression
    parts = [decided(part, values) for part in expression.parts]
    if all(new is old for new, old in zip(parts, expression.parts, strict=True)):
        return expression
    return all_of(parts) if isinstance(expression, And) else any_of(parts)


# --- values out of names ----------------------------------------------------------------------------------------------


def _values(partitions: Partitions, key: str, leaf: Leaf, raws: Sequence[Raw]) -> Values:
    """Give values of a key as a decoded column of them."""
    values = [None if raw is None else partitions.value(key, raw) for raw in raws]
    validity = np.array([value is not None for value in values], np.uint8)
    domain = domain_of(leaf)
    if domain.type.kind == "int":
        numbers = [0 if value is None else int(value) for value in values]
        dtype = np.uint64 if domain.kind == "unsigned" else np.int64
        return Values(np.array(numbers, dtype).astype(_DTYPES[leaf.physical]), validity=validity)
    plain = [bytes(domain.width) if value is None else _plain(value, domain) for value in values]
    data = np.frombuffer(b"".join(plain) + bytes(8), np.uint8)
    if leaf.physical == BYTE_ARRAY:
        return Values(data, np.cumsum([0, *map(len, plain)]), validity)
    data = data[: len(data) - 8]
    return Values(data.view(_DTYPES.get(leaf.physical, np.uint8)), validity=validity)


def _plain(value: Any, domain: Domain) -> bytes:
    """Give a value of a key in the PLAIN form of its type."""
    found = cut(value, domain)
    if found is None:
        return struct.pack(_FORMATS[domain.width], np.nan)
    return domain.plain(found.at_least)
