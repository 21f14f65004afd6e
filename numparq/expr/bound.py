"""Bound expressions: predicates on leaf columns, with literals as key ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from numparq.format.bloom_filter import BloomFilter
from numparq.format.schema import Leaf

from .expression import And, Constant, Expression, Or
from .key_ranges import KeyRanges
from .like import LikePattern
from .sort_keys import KeyDomain

__all__ = ["combine_results", "conjuncts", "describe"]


@dataclass(frozen=True, slots=True)
class ValuePredicate(Expression):
    """Whether the value of a column is one of some; a null is none.

    Without a pattern a value satisfies it if its key is in `ranges`, or if it is a NaN and `nan` is set. With one it
    has to match, which only values in `ranges` do; and if `negated`, it must not.

    Parameters
    ----------
    leaf : Leaf
        The column.
    domain : KeyDomain
        Its keys.
    ranges : KeyRanges
        Keys; negations are already taken from these.
    nan : bool
        Whether NaNs satisfy it.
    pattern : LikePattern or None
        Of LIKE, where a range does not tell all.
    negated : bool
        Whether pattern and range together are negated.
    text : str
        What the user wrote.
    """

    leaf: Leaf
    domain: KeyDomain
    ranges: KeyRanges
    nan: bool = False
    pattern: LikePattern | None = None
    negated: bool = False
    text: str = field(default="", compare=False)
    # What `asking` makes of it when it first meets values.
    ready: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.ranges}>"


@dataclass(frozen=True, slots=True)
class BloomPredicate(Expression):
    """Whether the value of a column may be in a Bloom filter; a null is not.

    Where a filter cannot tell, a value satisfies it: NaNs, and all values of columns where equal ones may be stored in
    several ways (`probes.has_one_form`). Of zeros, either is as good as the other.

    Parameters
    ----------
    leaf : Leaf
        The column.
    domain : KeyDomain
        Its keys.
    filter : BloomFilter
        Of values of the column's type, hashed in PLAIN form.
    text : str
        How it is shown.
    """

    leaf: Leaf
    domain: KeyDomain
    filter: BloomFilter
    text: str = field(default="", compare=False)
    ready: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.filter!r}>"


@dataclass(frozen=True, slots=True)
class NullPredicate(Expression):
    """Whether there is a null in a column, a struct or a list; never unknown.

    Parameters
    ----------
    leaf : Leaf
        The column; of a struct or list a leaf within it.
    level : int
        The definition level from which on it is there: the leaf's own maximum where the leaf itself is asked.
    negated : bool
        Whether it has to be there.
    text : str
        What the user wrote.
    """

    leaf: Leaf
    level: int
    negated: bool = False
    text: str = field(default="", compare=False)

    @property
    def is_leaf_level(self) -> bool:
        """Whether the leaf itself is asked."""
        return self.level == self.leaf.max_definition_level

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} is {'not ' * self.negated}null>"


@dataclass(frozen=True, slots=True)
class ContainsPredicate(Expression):
    """Whether a list has an element that satisfies a test; unknown where the list is null.

    Parameters
    ----------
    leaf : Leaf
        The elements.
    level : int
        The definition level from which on the list is there.
    test : ValuePredicate
        What an element has to satisfy.
    negated : bool
        Whether none may satisfy it.
    text : str
        What the user wrote.
    """

    leaf: Leaf
    level: int
    test: ValuePredicate
    negated: bool = False
    text: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return self.text or f"<{'~' * self.negated}{self.leaf.name} contains {self.test!r}>"


BoundPredicate = ValuePredicate | BloomPredicate | NullPredicate | ContainsPredicate

_LONGEST = 100


def bound_predicates(bound: Expression) -> Iterator[BoundPredicate]:
    """Give the tests of a bound expression, in its order."""
    if isinstance(bound, (And, Or)):
        for part in bound.parts:
            yield from bound_predicates(part)
    elif not isinstance(bound, Constant):
        assert isinstance(bound, BoundPredicate)
        yield bound


def filter_leaves(bound: Expression) -> list[Leaf]:
    """Give the leaves that a bound expression asks, each once, in its order."""
    if isinstance(bound, ValuePredicate):
        return [bound.leaf]
    return list({test.leaf.index: test.leaf for test in bound_predicates(bound)}.values())


def combine_bools(bound: Expression, answer: Callable[[Any], bool]) -> bool:
    """Join what is known of the tests: all parts of an AND, any of an OR.

    Parameters
    ----------
    bound : Expression
        A bound one.
    answer : callable
        Says of a test whether any row may satisfy it, or whether all rows do; the result means the same.
    """
    if isinstance(bound, Constant):
        return bound.value
    if isinstance(bound, And):
        return all(combine_bools(part, answer) for part in bound.parts)
    if isinstance(bound, Or):
        return any(combine_bools(part, answer) for part in bound.parts)
    return answer(bound)


def combine_results(bound: Expression, answer: Callable[[Any], Any], constant: Callable[[bool], Any]) -> Any:
    """Join what the tests of a bound expression answer: by ``&`` in an AND, by ``|`` in an OR.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    answer : callable
        Gives the answer of a test: a mask, or row ranges.
    constant : callable
        Gives that of a Constant, by its value.
    """
    if isinstance(bound, Constant):
        return constant(bound.value)
    if isinstance(bound, And):
        return reduce(lambda a, b: a & b, (combine_results(part, answer, constant) for part in bound.parts))
    if isinstance(bound, Or):
        return reduce(lambda a, b: a | b, (combine_results(part, answer, constant) for part in bound.parts))
    return answer(bound)


def conjuncts(bound: Expression) -> tuple[Expression, ...]:
    """Give the parts of which all have to hold, so that it can be told which of them cut what."""
    return bound.parts if isinstance(bound, And) else (bound,)


def describe(bound: Expression) -> str:
    """Give a predicate as it was written, cut short where it is long."""
    text = repr(bound)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
