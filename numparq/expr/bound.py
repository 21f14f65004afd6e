"""Bound expressions: predicates on leaf columns, with literals as key ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any, TypeVar

from numparq.format.bloom_filter import BloomFilter
from numparq.format.schema import Leaf

from .expression import And, Constant, Expression, Or
from .key_ranges import KeyRanges
from .like import LikePattern
from .sort_keys import KeyDomain


class LeafPredicate(Expression):
    """A predicate on one leaf column, or on several (`leaves`)."""

    __slots__ = ()

    leaf: Leaf

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Leaf columns that it reads."""
        return (self.leaf,)


@dataclass(frozen=True, slots=True)
class ValuePredicate(LeafPredicate):
    """Whether the value of a column is in a set of keys; false for nulls.

    Without `pattern`, a value matches if its key is in `ranges`, or if it is a NaN and `matches_nan` is set.
    With one, it must lie in `ranges` and match the pattern; `negated` then inverts the result.

    Attributes
    ----------
    ranges : KeyRanges
        Keys that match; without a pattern, a negation is already applied.
    text : str
        The predicate as the user wrote it.
    """

    leaf: Leaf
    domain: KeyDomain
    ranges: KeyRanges
    matches_nan: bool = False
    pattern: LikePattern | None = None
    negated: bool = False
    text: str = field(default="", compare=False)
    # The compiled matcher, set on first use by `matchers.compile`.
    matcher: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.ranges}>"


@dataclass(frozen=True, slots=True)
class BloomPredicate(LeafPredicate):
    """Whether the value of a column may be in a Bloom filter; false for nulls.

    Always true for NaNs, and for columns without canonical bytes (`sort_keys.has_canonical_bytes`) or in Spark's legacy
    calendar, which the filter cannot decide. Both zeros count as equal.

    Attributes
    ----------
    bloom_filter : BloomFilter
        Built from hashes of PLAIN values of the column's type.
    """

    leaf: Leaf
    domain: KeyDomain
    bloom_filter: BloomFilter
    text: str = field(default="", compare=False)
    matcher: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.bloom_filter!r}>"


@dataclass(frozen=True, slots=True)
class NullPredicate(LeafPredicate):
    """Whether a leaf, struct or list is null, or not null if `negated`; never unknown.

    Attributes
    ----------
    leaf : Leaf
        The leaf, or a leaf below the struct or list.
    definition_level : int
        Least definition level at which the node is not null: the leaf's maximum if it is the leaf itself.
    """

    leaf: Leaf
    definition_level: int
    negated: bool = False
    text: str = field(default="", compare=False)

    @property
    def is_leaf_level(self) -> bool:
        """Whether the predicate is on the leaf itself."""
        return self.definition_level == self.leaf.max_definition_level

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} is {'not ' * self.negated}null>"


@dataclass(frozen=True, slots=True)
class ContainsPredicate(LeafPredicate):
    """Whether a list has an element, or none if `negated`, that matches a predicate; unknown for a null list.

    Attributes
    ----------
    leaf : Leaf
        The elements.
    definition_level : int
        Least definition level at which the list is not null.
    """

    leaf: Leaf
    definition_level: int
    predicate: ValuePredicate
    negated: bool = False
    text: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return self.text or f"<{'~' * self.negated}{self.leaf.name} contains {self.predicate!r}>"


@dataclass(frozen=True, slots=True)
class ComparisonPredicate(LeafPredicate):
    """Whether the values of two columns compare as `op` says; false if either is null, also if `negated`.

    NaNs satisfy no `op`, hence every negated one.

    Attributes
    ----------
    op : str
        ``"=="``, ``"<"`` or ``"<="``.
    """

    leaf: Leaf
    domain: KeyDomain
    op: str
    other: Leaf
    other_domain: KeyDomain
    negated: bool = False
    text: str = field(default="", compare=False)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Leaf columns that it reads."""
        return self.leaf, self.other

    def __repr__(self) -> str:
        return self.text or f"<{'~' * self.negated}{self.leaf.name} {self.op} {self.other.name}>"


BoundPredicate = ValuePredicate | BloomPredicate | NullPredicate | ContainsPredicate | ComparisonPredicate

_Result = TypeVar("_Result")  # supports & and |
_LONGEST = 100


def bound_predicates(bound: Expression) -> Iterator[BoundPredicate]:
    """Yield the predicates of a bound expression, in order."""
    if isinstance(bound, (And, Or)):
        for part in bound.parts:
            yield from bound_predicates(part)
    elif not isinstance(bound, Constant):
        assert isinstance(bound, BoundPredicate)
        yield bound


def filter_leaves(bound: Expression) -> list[Leaf]:
    """Return the leaf columns that a bound expression reads, each once, in order."""
    if isinstance(bound, ValuePredicate):
        return [bound.leaf]
    return list({leaf.index: leaf for test in bound_predicates(bound) for leaf in test.leaves}.values())


def combine_bools(bound: Expression, answer: Callable[[Any], bool]) -> bool:
    """Combine the answers for the predicates of a bound expression: all parts of an AND, any part of an OR.

    Sound for both questions, "may any row match" and "do all rows match".
    """
    if isinstance(bound, Constant):
        return bound.value
    if isinstance(bound, And):
        return all(combine_bools(part, answer) for part in bound.parts)
    if isinstance(bound, Or):
        return any(combine_bools(part, answer) for part in bound.parts)
    return answer(bound)


def combine_results(
    bound: Expression, answer: Callable[[Any], _Result], constant: Callable[[bool], _Result]
) -> _Result:
    """Combine masks or row ranges of the predicates of a bound expression by ``&`` in an AND, ``|`` in an OR.

    `constant` returns the result of a Constant by its value.
    """
    if isinstance(bound, Constant):
        return constant(bound.value)
    if isinstance(bound, And):
        return reduce(and_, (combine_results(part, answer, constant) for part in bound.parts))
    if isinstance(bound, Or):
        return reduce(or_, (combine_results(part, answer, constant) for part in bound.parts))
    return answer(bound)


def conjuncts(bound: Expression) -> tuple[Expression, ...]:
    """Return the conjuncts of a bound expression, so that plans can show which of them pruned what."""
    return bound.parts if isinstance(bound, And) else (bound,)


def describe(bound: Expression) -> str:
    """Return a predicate as text, truncated to 100 characters."""
    text = repr(bound)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
