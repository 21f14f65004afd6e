"""Bind an expression to a schema: names become leaf columns, literals become key ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.bloom_filter import BloomFilter
from numparq.format.physical_type import PHYSICAL_NAMES
from numparq.format.schema import Leaf, Schema

from .bound import (
    BloomPredicate,
    BoundPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
)
from .column import ColumnReference
from .expression import And, ColumnName, ColumnPredicate, Constant, Expression, LiteralError, Not, Or, OtherColumn
from .key_ranges import KeyRanges, complement, prefix_range, union
from .legacy_calendar import stored_ranges
from .like import LikePattern, parse_like
from .literals import LiteralPosition, in_list_ranges, literal_bytes, locate_literal
from .normalize import all_of, any_of, merge_predicates, normalize, simplify
from .resolve import ColumnResolver, ResolvedColumn, resolve_column
from .sort_keys import KeyDomain, comparable_kinds, key_domain

_DEEPEST = 100
# Keys that satisfy a comparison (first, exclusive end), by the literal's position.
_COMPARED: dict[str, Callable[[LiteralPosition, KeyDomain], tuple[Any, Any]]] = {
    "==": lambda at, domain: (at.left, at.right),
    "<": lambda at, domain: (domain.low, at.left),
    "<=": lambda at, domain: (domain.low, at.right),
    ">": lambda at, domain: (at.right, domain.high),
    ">=": lambda at, domain: (at.left, domain.high),
}


def bind(
    expression: Expression, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType] | None = None
) -> Expression:
    """Bind an expression to the columns of a file or dataset; `origins` are types by ``ARROW:schema``, by leaf ordinal.

    SchemaError for an unknown column or incomparable literal, ValueError for nesting over 100 levels.
    """
    if not isinstance(expression, ColumnPredicate):
        _check_depth(expression)
    return _bound(normalize(expression), schema, origins or {})


def _check_depth(expression: Expression) -> None:
    """Raise ValueError for expressions so deep that recursion would overflow the stack."""
    level: list[Any] = [expression]
    for _ in range(_DEEPEST):
        level = [
            part for whole in level if not isinstance(whole, (ColumnPredicate, Constant)) for part in _parts(whole)
        ]
        if not level:
            return
    raise ValueError(f"filters are nested more than {_DEEPEST} levels deep; join predicates by & or | at one level")


def _parts(expression: Any) -> tuple[Expression, ...]:
    return (expression.part,) if isinstance(expression, Not) else expression.parts


def _bound(expression: Expression, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType]) -> Expression:
    if isinstance(expression, (And, Or)):
        together = isinstance(expression, And)
        parts = merge_predicates([_bound(part, schema, origins) for part in expression.parts], together)
        return all_of(parts) if together else any_of(parts)
    if isinstance(expression, Constant):
        return expression
    negated = isinstance(expression, Not)
    test = expression.part if isinstance(expression, Not) else expression
    assert isinstance(test, ColumnPredicate)
    found = resolve_column(schema, test.name)
    origin = origins.get(found.leaf.index)
    if test.op == "is null":
        return _null_test(test, found, negated, repr(expression), origin)
    if test.op == "is nan" and not (found.is_leaf and key_domain(found.leaf, origin).is_float):
        return _null_test(test, found, True, repr(expression), origin) if negated else Constant(False)
    if isinstance(test.operand, OtherColumn):
        return _comparison(test, negated, schema, origins)
    return simplify(bind_predicate(test, found, negated, origin))


def _null_test(
    test: ColumnPredicate, found: ResolvedColumn, negated: bool, text: str, origin: ArrowType | None
) -> Expression:
    if found.list_depth:
        raise SchemaError(f"{test!r}: the column is inside a list; use is_null() on the list", column=found.leaf.name)
    if found.is_leaf and key_domain(found.leaf, origin).kind == "none":
        return Constant(not negated)
    if found.definition_level == 0:
        return Constant(negated)  # all nodes of the path are REQUIRED
    return NullPredicate(found.leaf, found.definition_level, negated, text)


_SWAPPED = {">": "<", ">=": "<="}


def _comparison(
    test: ColumnPredicate, negated: bool, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType]
) -> Expression:
    """Bind the comparison of two columns; SchemaError if they cannot be compared."""
    leaves = []
    for name in reversed(test.names) if test.op in _SWAPPED else test.names:
        found = resolve_column(schema, name)
        _check_single(found, test)
        leaves.append(found.leaf)
    (leaf, domain), (other, other_domain) = ((leaf, key_domain(leaf, origins.get(leaf.index))) for leaf in leaves)
    if "none" in (domain.kind, other_domain.kind):
        return Constant(False)
    if comparable_kinds(domain).isdisjoint(comparable_kinds(other_domain)):
        raise SchemaError(
            f"{test!r}: a column of type {describe_type(leaf)} cannot be compared with {other.name!r} of type "
            f"{describe_type(other)}",
            column=leaf.name,
        )
    op, text = _SWAPPED.get(test.op, test.op), repr(Not(test) if negated else test)
    return ComparisonPredicate(leaf, domain, op, other, other_domain, negated, text)


def bind_predicate(
    test: ColumnPredicate, found: ResolvedColumn, negated: bool, origin: ArrowType | None = None
) -> BoundPredicate:
    """Bind a predicate on values (in normal form, not ``is null``) to a leaf; `negated` if a Not is around it.

    Raises SchemaError if the column or a literal does not fit the predicate.
    """
    leaf, text = found.leaf, repr(Not(test) if negated else test)
    if test.op == "contains":
        if not found.is_simple_list:
            raise SchemaError(f"{test!r}: contains() needs a list of simple values, one level deep", column=leaf.name)
        element = value_predicate(ColumnPredicate(test.name, "==", test.operand), leaf, False, origin, text)
        return ContainsPredicate(leaf, _list_level(found), element, negated, text)
    _check_single(found, test)
    return domain_predicate(test, leaf, key_domain(leaf, origin), negated, text)


def bind_bloom_filter(
    name: ColumnName,
    bloom_filter: BloomFilter,
    schema: Schema | ColumnResolver,
    origins: Mapping[int, ArrowType] | None = None,
) -> Expression:
    """Bind "the value may be in a Bloom filter" to a column; a Constant if the column holds only nulls.

    Raises SchemaError for an unknown column, or one without a single value a row.
    """
    found, text = resolve_column(schema, name), f"({ColumnReference(name)!r} in {bloom_filter!r})"
    _check_single(found, text)
    domain = key_domain(found.leaf, (origins or {}).get(found.leaf.index))
    return Constant(False) if domain.kind == "none" else BloomPredicate(found.leaf, domain, bloom_filter, text)


def _check_single(found: ResolvedColumn, what: ColumnPredicate | str) -> None:
    """Raise SchemaError if a column has not one value a row."""
    if not found.is_leaf:
        kind = "is nested" if not found.leaf.max_repetition_level else "is a list, or contains lists"
        raise SchemaError(
            f"{what}: the column {kind}; compare one of its fields, or use contains()", column=found.leaf.name
        )
    if found.list_depth:
        raise SchemaError(f"{what}: the column is inside a list; use contains() on the list", column=found.leaf.name)


def _list_level(found: ResolvedColumn) -> int:
    """Return the least definition level at which the list is not null: one less than that of its elements."""
    return found.leaf.element_levels[1] - 1


def value_predicate(
    test: ColumnPredicate, leaf: Leaf, negated: bool, origin: ArrowType | None = None, text: str = ""
) -> ValuePredicate:
    """Return the keys of a column that satisfy a predicate on values, other than ``contains``.

    Raises SchemaError if a literal cannot be compared with the column's values.
    """
    return domain_predicate(test, leaf, key_domain(leaf, origin), negated, text)


def domain_predicate(
    test: ColumnPredicate, leaf: Leaf, domain: KeyDomain, negated: bool, text: str = ""
) -> ValuePredicate:
    """Return the same as `value_predicate`, given the sort keys of the column."""
    if domain.kind == "none":
        return ValuePredicate(leaf, domain, (), text=text)
    if test.op == "is nan":
        return ValuePredicate(leaf, domain, domain.all_keys if negated else (), not negated, text=text)
    ranges, pattern = _satisfying(test, leaf, domain)
    if pattern is not None:
        return ValuePredicate(leaf, domain, ranges, False, pattern, negated, text)
    if negated:  # a NaN matches no comparison, hence every negated one
        ranges = complement(ranges, domain.low, domain.high)
    ranges = ranges if leaf.rebase is None else stored_ranges(ranges, leaf, domain)
    return ValuePredicate(leaf, domain, ranges, negated and domain.is_float, text=text)


def _satisfying(test: ColumnPredicate, leaf: Leaf, domain: KeyDomain) -> tuple[KeyRanges, LikePattern | None]:
    value = test.operand
    try:
        if test.op == "in":
            ranges = in_list_ranges(test.operand, domain)
            if ranges is not None:
                return ranges, None
            cuts = []
            for value in test.operand:
                cuts.append(locate_literal(value, domain))
            return union(at for at in cuts if at is not None), None
        if test.op == "startswith":
            return prefix_range(literal_bytes(value, domain)), None
        if test.op == "like":
            value, escape = test.operand
            escaped = None if escape is None else literal_bytes(escape, domain)
            return parse_like(literal_bytes(value, domain), escaped, isinstance(value, str))
        at = locate_literal(value, domain)
        if at is None:
            return (), None
        low, high = _COMPARED[test.op](at, domain)
        return ((low, high),) if low < high else (), None
    except LiteralError as error:
        raise SchemaError(
            f"{value!r} cannot be compared with the column {leaf.name!r} of type {describe_type(leaf)}: {error}",
            column=leaf.name,
        ) from None


def describe_type(leaf: Leaf) -> str:
    """Return the type of a column as text, for messages."""
    return f"{PHYSICAL_NAMES[leaf.physical]} ({leaf.logical})" if leaf.logical else PHYSICAL_NAMES[leaf.physical]
