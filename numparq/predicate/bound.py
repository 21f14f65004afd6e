"""Expressions that know their column: what `bind` makes, and what decides, prunes and evaluates.

Bound expressions are And, Or and Constant of these tests; negations are within them. All of them are in the normal
form: a row is wanted where they are true, and unknown counts as false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..bloom_filter import BloomFilter
from ..schema import Leaf
from .domain import Domain
from .expression import And, Constant, Expression, Or
from .pattern import Pattern
from .ranges import Ranges


@dataclass(frozen=True, slots=True)
class ValueTest(Expression):
    """Whether the value of a column is one of some; a null is none.

    Without a pattern a value satisfies it if its key is in `ranges`, or if it is a NaN and `nan` is set. With one it
    has to match, which only values in `ranges` do; and if `negated`, it must not.

    Parameters
    ----------
    leaf : Leaf
        The column.
    domain : Domain
        Its keys.
    ranges : Ranges
        Keys; negations are already taken from these.
    nan : bool
        Whether NaNs satisfy it.
    pattern : Pattern or None
        Of LIKE, where a range does not tell all.
    negated : bool
        Whether pattern and range together are negated.
    text : str
        What the user wrote.
    """

    leaf: Leaf
    domain: Domain
    ranges: Ranges
    nan: bool = False
    pattern: Pattern | None = None
    negated: bool = False
    text: str = field(default="", compare=False)
    # What `asking` makes of it when it first meets values.
    ready: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.ranges}>"


@dataclass(frozen=True, slots=True)
class MemberTest(Expression):
    """Whether the value of a column may be in a Bloom filter; a null is not.

    Where a filter cannot tell, a value satisfies it: NaNs, and all values of columns where equal ones may be stored in
    several ways (`probes.has_one_form`). Of zeros, either is as good as the other.

    Parameters
    ----------
    leaf : Leaf
        The column.
    domain : Domain
        Its keys.
    filter : BloomFilter
        Of values of the column's type, hashed in PLAIN form.
    text : str
        How it is shown.
    """

    leaf: Leaf
    domain: Domain
    filter: BloomFilter
    text: str = field(default="", compare=False)
    ready: list[Any] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} in {self.filter!r}>"


@dataclass(frozen=True, slots=True)
class NullTest(Expression):
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
    def is_of_leaf(self) -> bool:
        """Whether the leaf itself is asked."""
        return self.level == self.leaf.max_definition_level

    def __repr__(self) -> str:
        return self.text or f"<{self.leaf.name} is {'not ' * self.negated}null>"


@dataclass(frozen=True, slots=True)
class ElementTest(Expression):
    """Whether a list has an element that satisfies a test; unknown where the list is null.

    Parameters
    ----------
    leaf : Leaf
        The elements.
    level : int
        The definition level from which on the list is there.
    test : ValueTest
        What an element has to satisfy.
    negated : bool
        Whether none may satisfy it.
    text : str
        What the user wrote.
    """

    leaf: Leaf
    level: int
    test: ValueTest
    negated: bool = False
    text: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return self.text or f"<{'~' * self.negated}{self.leaf.name} contains {self.test!r}>"


Leafy = ValueTest | MemberTest | NullTest | ElementTest


def each_test(bound: Expression) -> Iterator[Leafy]:
    """Give the tests of a bound expression, in its order."""
    if isinstance(bound, (And, Or)):
        for part in bound.parts:
            yield from each_test(part)
    elif not isinstance(bound, Constant):
        assert isinstance(bound, Leafy)
        yield bound


def leaves_of(bound: Expression) -> list[Leaf]:
    """Give the leaves that a bound expression asks, each once, in its order."""
    if isinstance(bound, ValueTest):
        return [bound.leaf]
    return list({test.leaf.index: test.leaf for test in each_test(bound)}.values())


def decide(bound: Expression, answer: Callable[[Any], bool]) -> bool:
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
        return all(decide(part, answer) for part in bound.parts)
    if isinstance(bound, Or):
        return any(decide(part, answer) for part in bound.parts)
    return answer(bound)
