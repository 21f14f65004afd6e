"""Binding: an expression and a schema become tests on leaves, with literals as ranges of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..arrow_schema import ArrowType
from ..bloom_filter import BloomFilter
from ..errors import SchemaError
from ..schema import PHYSICAL_NAMES, Leaf, Schema
from .bound import ElementTest, Leafy, MemberTest, NullTest, ValueTest
from .columns import Columns, Found, find
from .domain import Domain, domain_of
from .expression import And, Column, Constant, Expression, Name, Not, Or, Test
from .literals import Cut, cut, prefix_bytes
from .many import ranges_of_many
from .normal import all_of, any_of, normal_form
from .pattern import Pattern, parsed, with_prefix
from .ranges import Ranges, complement, intersection, union
from .unfit import Unfit

_DEEPEST = 100
# What a comparison leaves of the keys, by where the literal cuts them.
_COMPARED: dict[str, Callable[[Cut, Domain], tuple[Any, Any]]] = {
    "==": lambda at, domain: (at.at_least, at.above),
    "<": lambda at, domain: (domain.low, at.at_least),
    "<=": lambda at, domain: (domain.low, at.above),
    ">": lambda at, domain: (at.above, domain.high),
    ">=": lambda at, domain: (at.at_least, domain.high),
}


def bind(
    expression: Expression, schema: Schema | Columns, origins: Mapping[int, ArrowType] | None = None
) -> Expression:
    """Bind an expression to the columns of a file.

    Parameters
    ----------
    expression : Expression
        Made by `numparq.col` or `as_expression`.
    schema : Schema or Columns
        The file's, or what finds leaves by names as a schema does; they are told apart by their ordinals.
    origins : mapping of int to ArrowType, optional
        Types by the file's ``ARROW:schema``, by the ordinals of leaves; only these know durations.

    Returns
    -------
    Expression
        Of And, Or, ValueTest, NullTest and ElementTest; or a Constant, where no row is looked at.

    Raises
    ------
    SchemaError
        When the file has no such column, or a literal cannot be compared with its values.
    InvalidFileError
        When the type of a column breaks the specification.
    ValueError
        When conditions are nested too deeply in one another.
    """
    if not isinstance(expression, Test):
        _check_depth(expression)
    return _bound(normal_form(expression), schema, origins or {})


def _check_depth(expression: Expression) -> None:
    """Refuse what whoever goes down it, level by level, would have no stack for."""
    level: list[Any] = [expression]
    for _ in range(_DEEPEST):
        level = [part for whole in level if not isinstance(whole, (Test, Constant)) for part in _parts(whole)]
        if not level:
            return
    raise ValueError(f"filters are nested more than {_DEEPEST} deep: join conditions by & or | at one level")


def _parts(expression: Any) -> tuple[Expression, ...]:
    return (expression.part,) if isinstance(expression, Not) else expression.parts


def _bound(expression: Expression, schema: Schema | Columns, origins: Mapping[int, ArrowType]) -> Expression:
    if isinstance(expression, (And, Or)):
        together = isinstance(expression, And)
        parts = merged([_bound(part, schema, origins) for part in expression.parts], together)
        return all_of(parts) if together else any_of(parts)
    if isinstance(expression, Constant):
        return expression
    negated = isinstance(expression, Not)
    test = expression.part if isinstance(expression, Not) else expression
    assert isinstance(test, Test)
    found = find(schema, test.name)
    origin = origins.get(found.leaf.index)
    if test.op == "is null":
        return _null_test(test, found, negated, repr(expression), origin)
    return simplified(bind_test(test, found, negated, origin))


def _null_test(test: Test, found: Found, negated: bool, text: str, origin: ArrowType | None) -> Expression:
    if found.lists:
        raise SchemaError(f"{test!r}: what is in a list has no value for each row", column=found.leaf.name)
    if found.is_leaf and domain_of(found.leaf, origin).kind == "none":
        return Constant(not negated)
    if found.level == 0:
        return Constant(negated)  # REQUIRED all the way down
    return NullTest(found.leaf, found.level, negated, text)


def bind_test(test: Test, found: Found, negated: bool, origin: ArrowType | None = None) -> Leafy:
    """Bind a test of values to a leaf.

    Parameters
    ----------
    test : Test
        Of the normal form, but not ``is null``.
    found : Found
        What its name leads to.
    negated : bool
        Whether a Not is around it.
    origin : ArrowType or None
        The leaf's type by ``ARROW:schema``.

    Raises
    ------
    SchemaError
        When the column is not of that kind, or a literal cannot be compared with its values.
    """
    leaf, text = found.leaf, repr(Not(test) if negated else test)
    if test.op == "contains":
        if not found.is_simple_list:
            raise SchemaError(f"{test!r}: contains is for lists of simple values, one deep", column=leaf.name)
        element = value_test(Test(test.name, "==", test.operand), leaf, False, origin, text)
        return ElementTest(leaf, _list_level(found), element, negated, text)
    _check_single(found, test)
    return value_test(test, leaf, negated, origin, text)


def bind_member(
    name: Name, bloom_filter: BloomFilter, schema: Schema | Columns, origins: Mapping[int, ArrowType] | None = None
) -> Expression:
    """Bind a question whether the values of a column may be in a Bloom filter.

    Parameters
    ----------
    name : str or tuple of str
        The column.
    bloom_filter : BloomFilter
        Of values of its type.
    schema, origins
        As in `bind`.

    Returns
    -------
    Expression
        A MemberTest, or a Constant where there are only nulls.

    Raises
    ------
    SchemaError
        When the file has no such column, or a row has not one value of it.
    """
    found, text = find(schema, name), f"({Column(name)!r} in {bloom_filter!r})"
    _check_single(found, text)
    domain = domain_of(found.leaf, (origins or {}).get(found.leaf.index))
    return Constant(False) if domain.kind == "none" else MemberTest(found.leaf, domain, bloom_filter, text)


def _check_single(found: Found, what: Test | str) -> None:
    """Fail where a row has not one value of a column."""
    if not found.is_leaf:
        kind = "is nested" if not found.leaf.max_repetition_level else "is a list, or has lists in it"
        raise SchemaError(f"{what}: the column {kind}; ask one of its fields, or contains()", column=found.leaf.name)
    if found.lists:
        raise SchemaError(f"{what}: the column is in a list; ask the list by contains()", column=found.leaf.name)


def _list_level(found: Found) -> int:
    """Give the definition level from which on the list around a leaf is there: one less than that of its elements."""
    return found.leaf.element_levels[1] - 1


def value_test(test: Test, leaf: Leaf, negated: bool, origin: ArrowType | None = None, text: str = "") -> ValueTest:
    """Make of a test and its literals the keys that satisfy it.

    Parameters
    ----------
    test : Test
        ``==``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``startswith`` or ``like``.
    leaf : Leaf
        The column.
    negated : bool
        Whether a Not is around it.
    origin : ArrowType or None
        The leaf's type by ``ARROW:schema``.
    text : str
        How it is shown.

    Raises
    ------
    SchemaError
        When a literal cannot be compared with the column's values.
    """
    domain = domain_of(leaf, origin)
    if domain.kind == "none":
        return ValueTest(leaf, domain, (), text=text)
    ranges, pattern = _satisfying(test, leaf, domain)
    if pattern is not None:
        return ValueTest(leaf, domain, ranges, False, pattern, negated, text)
    if negated:  # a NaN satisfies no comparison, and so every negated one
        ranges = complement(ranges, domain.low, domain.high)
    return ValueTest(leaf, domain, ranges, negated and domain.is_float, text=text)


def _satisfying(test: Test, leaf: Leaf, domain: Domain) -> tuple[Ranges, Pattern | None]:
    value = test.operand
    try:
        if test.op == "in":
            ranges = ranges_of_many(test.operand, domain)
            if ranges is not None:
                return ranges, None
            cuts = []
            for value in test.operand:
                cuts.append(cut(value, domain))
            return union(at for at in cuts if at is not None), None
        if test.op == "startswith":
            return with_prefix(prefix_bytes(value, domain)), None
        if test.op == "like":
            value, escape = test.operand
            escaped = None if escape is None else prefix_bytes(escape, domain)
            return parsed(prefix_bytes(value, domain), escaped, isinstance(value, str))
        at = cut(value, domain)
        return (() if at is None else union([_COMPARED[test.op](at, domain)])), None
    except Unfit as error:
        raise SchemaError(
            f"{value!r} cannot be compared with the column {leaf.name!r} of type {type_name(leaf)}: {error}",
            column=leaf.name,
        ) from None


def type_name(leaf: Leaf) -> str:
    """Name the type of a column, for messages."""
    return f"{PHYSICAL_NAMES[leaf.physical]} ({leaf.logical})" if leaf.logical else PHYSICAL_NAMES[leaf.physical]


# --- simpler forms ----------------------------------------------------------------------------------------------------


def simplified(test: Leafy) -> Expression:
    """Make a test that no value satisfies false, and one that every value does a question for nulls."""
    if isinstance(test, ElementTest):
        if isinstance(simplified(test.test), Constant) and not test.test.ranges:
            absent = NullTest(test.leaf, test.level, True, test.text)
            return (absent if test.level else Constant(True)) if test.negated else Constant(False)
        return test
    if not isinstance(test, ValueTest) or test.pattern is not None:
        return test
    if not test.ranges and not test.nan:
        return Constant(False)
    if test.ranges == test.domain.everything and (test.nan or not test.domain.is_float):
        level = test.leaf.max_definition_level
        return NullTest(test.leaf, level, True, test.text) if level else Constant(True)
    return test


def merged(parts: list[Expression], together: bool) -> list[Expression]:
    """Make one test of all those parts that ask the same column: keys that are in all of them, or in any."""
    places: dict[int, int] = {}
    kept: list[Expression] = []
    for part in parts:
        if not isinstance(part, ValueTest) or part.pattern is not None:
            kept.append(part)
        elif part.leaf.index not in places:
            places[part.leaf.index] = len(kept)
            kept.append(part)
        else:
            place = places[part.leaf.index]
            kept[place] = _both(kept[place], part, together)
    return [simplified(part) if isinstance(part, Leafy) else part for part in kept]


def _both(first: Any, second: ValueTest, together: bool) -> ValueTest:
    """Join two tests of one column."""
    join, sign = (intersection, "&") if together else (union, "|")
    nan = first.nan and second.nan if together else first.nan or second.nan
    text = f"{first.text} {sign} {second.text}"
    if len(first.text) + len(second.text) > _TEXT:
        text = first.text if first.text.endswith("...") else f"{first.text} {sign} ..."
    return replace(first, ranges=join(first.ranges, second.ranges), nan=nan, text=text)


_TEXT = 400
