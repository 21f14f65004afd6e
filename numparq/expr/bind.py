"""Bind an expression to a schema: names become leaf columns, literals become key ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.bloom_filter import BloomFilter
from numparq.format.physical_type import PHYSICAL_NAMES
from numparq.format.schema import Leaf, Schema
from numparq.util.bounded_cache import BoundedCache

from .bound import (
    BloomPredicate,
    ComparisonPredicate,
    ContainsPredicate,
    NullPredicate,
    ValuePredicate,
)
from .column import ColumnReference
from .expression import And, ColumnName, ColumnPredicate, Constant, Expression, LiteralError, Not, Or, OtherColumn
from .key_ranges import NO_KEYS, KeyRanges, RangeTuple, prefix_range, union
from .like import LikePattern, parse_like
from .literal_arrays import in_list_ranges
from .literals import literal_bytes, locate_literal
from .normalize import all_of, any_of, merge_predicates, normalize, simplify
from .resolve import ColumnResolver, ResolvedColumn, resolve_column
from .sort_keys import KeyDomain, comparable_kinds, key_domain
from .unwrap_cast import stored_ranges

_DEEPEST = 100
# Bounds of the keys that satisfy a comparison: positions in (first key, literal, behind the literal, end of keys).
_COMPARED = {"==": (1, 2), "<": (0, 1), "<=": (0, 2), ">": (2, 3), ">=": (1, 3)}
_MAX_CACHED = 1024


class FilterColumn(NamedTuple):
    """A column that filters name: what its name resolves to, and the sort keys of its values.

    Attributes
    ----------
    resolved : ResolvedColumn
        Node of the schema.
    domain : KeyDomain or None
        None unless the node is a leaf.
    has_one_value : bool
        Whether each row has one value or null.
    """

    resolved: ResolvedColumn
    domain: KeyDomain | None
    has_one_value: bool


class FilterSchema:
    """Columns of a file or dataset as filters name them; each is resolved once.

    `origins` are types by ``ARROW:schema``, by leaf ordinal.
    """

    def __init__(self, schema: Schema | ColumnResolver, origins: Mapping[int, ArrowType] | None = None) -> None:
        self.schema = schema
        self.origins: Mapping[int, ArrowType] = origins or {}
        self.columns = BoundedCache(_MAX_CACHED)

    def column(self, name: ColumnName) -> FilterColumn:
        """Return a column by its name; SchemaError if it does not exist."""
        known: FilterColumn | None = self.columns.get(name)
        return known or self.columns.get_or_make(name, lambda: self._resolve(name))

    def _resolve(self, name: ColumnName) -> FilterColumn:
        resolved = resolve_column(self.schema, name)
        domain = self.domain(resolved.leaf) if resolved.is_leaf else None
        return FilterColumn(resolved, domain, resolved.is_leaf and not resolved.list_depth)

    def domain(self, leaf: Leaf) -> KeyDomain:
        """Return the sort keys of a leaf."""
        return key_domain(leaf, self.origins.get(leaf.index))


def bind(
    expression: Expression,
    schema: Schema | ColumnResolver | FilterSchema,
    origins: Mapping[int, ArrowType] | None = None,
) -> Expression:
    """Bind an expression to the columns of a file or dataset; `origins` are types by ``ARROW:schema``, by leaf ordinal.

    SchemaError for an unknown column or incomparable literal, ValueError for nesting over 100 levels.
    """
    if not isinstance(expression, ColumnPredicate):
        _check_depth(expression)
    return _bind(normalize(expression), schema if isinstance(schema, FilterSchema) else FilterSchema(schema, origins))


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


def _bind(expression: Expression, schema: FilterSchema) -> Expression:
    if isinstance(expression, (And, Or)):
        together = isinstance(expression, And)
        parts = merge_predicates([_bind(part, schema) for part in expression.parts], together)
        return all_of(parts) if together else any_of(parts)
    if isinstance(expression, Constant):
        return expression
    negated = isinstance(expression, Not)
    test = expression.part if isinstance(expression, Not) else expression
    assert isinstance(test, ColumnPredicate)
    column = schema.columns.get(test.name) or schema.column(test.name)
    if test.op == "is null":
        return _null_test(test, column, negated, repr(expression))
    if test.op == "is nan" and not (column.domain is not None and column.domain.is_float):
        return _null_test(test, column, True, repr(expression)) if negated else Constant(False)
    if isinstance(test.operand, OtherColumn):
        return _comparison(test, negated, schema)
    return simplify(_bind_predicate(test, column, negated, schema))


def _null_test(test: ColumnPredicate, column: FilterColumn, negated: bool, text: str) -> Expression:
    resolved = column.resolved
    if resolved.list_depth:
        raise SchemaError(
            f"{test!r}: the column is inside a list; use is_null() on the list", column=resolved.leaf.name
        )
    if column.domain is not None and column.domain.kind == "none":
        return Constant(not negated)
    if resolved.definition_level == 0:
        return Constant(negated)  # all nodes of the path are REQUIRED
    return NullPredicate(resolved.leaf, resolved.definition_level, negated, text)


_SWAPPED = {">": "<", ">=": "<="}


def _comparison(test: ColumnPredicate, negated: bool, schema: FilterSchema) -> Expression:
    """Bind the comparison of two columns; SchemaError if they cannot be compared."""
    leaves = []
    for name in reversed(test.names) if test.op in _SWAPPED else test.names:
        column = schema.column(name)
        _check_single(column, test)
        leaves.append(column.resolved.leaf)
    (leaf, domain), (other, other_domain) = ((leaf, schema.domain(leaf)) for leaf in leaves)
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


def _bind_predicate(
    test: ColumnPredicate, column: FilterColumn, negated: bool, schema: FilterSchema
) -> ValuePredicate | ContainsPredicate:
    """Bind a predicate on values (in normal form, not ``is null``) to a column; `negated` if a Not is around it.

    Raises SchemaError if the column or a literal does not fit the predicate.
    """
    leaf, text = column.resolved.leaf, repr(Not(test) if negated else test)
    if test.op == "contains":
        if not column.resolved.is_simple_list:
            is_text = column.has_one_value and isinstance(test.operand, (str, bytes))
            hint = "; use like(), with % around a part of a text" if is_text else ""
            raise SchemaError(
                f"{test!r}: contains() needs a list of simple values, one level deep{hint}", column=leaf.name
            )
        equal = ColumnPredicate(test.name, "==", test.operand)
        element = domain_predicate(equal, leaf, schema.domain(leaf), False, text)
        return ContainsPredicate(leaf, _list_level(column.resolved), element, negated, text)
    if not column.has_one_value:
        _check_single(column, test)
    assert column.domain is not None
    return domain_predicate(test, leaf, column.domain, negated, text)


def bind_bloom_filter(
    name: ColumnName,
    bloom_filter: BloomFilter,
    schema: Schema | ColumnResolver,
    origins: Mapping[int, ArrowType] | None = None,
) -> Expression:
    """Bind "the value may be in a Bloom filter" to a column; a Constant if the column holds only nulls.

    Raises SchemaError for an unknown column, or one without a single value a row.
    """
    column, text = FilterSchema(schema, origins).column(name), f"({ColumnReference(name)!r} in {bloom_filter!r})"
    _check_single(column, text)
    assert column.domain is not None
    if column.domain.kind == "none":
        return Constant(False)
    return BloomPredicate(column.resolved.leaf, column.domain, bloom_filter, text)


def _check_single(column: FilterColumn, what: ColumnPredicate | str) -> None:
    """Raise SchemaError if a column has not one value a row."""
    resolved = column.resolved
    if not resolved.is_leaf:
        kind = "is nested" if not resolved.leaf.max_repetition_level else "is a list, or contains lists"
        raise SchemaError(
            f"{what}: the column {kind}; compare one of its fields, or use contains()", column=resolved.leaf.name
        )
    if resolved.list_depth:
        raise SchemaError(f"{what}: the column is inside a list; use contains() on the list", column=resolved.leaf.name)


def _list_level(column: ResolvedColumn) -> int:
    """Return the least definition level at which the list is not null: one less than that of its elements."""
    return column.leaf.element_levels[1] - 1


def domain_predicate(
    test: ColumnPredicate, leaf: Leaf, domain: KeyDomain, negated: bool, text: str = ""
) -> ValuePredicate:
    """Return the keys of a column that satisfy a predicate on values, other than ``contains``.

    Raises SchemaError if a literal cannot be compared with the column's values.
    """
    if domain.kind == "none":
        return ValuePredicate(leaf, domain, NO_KEYS, text=text)
    if test.op == "is nan":
        return ValuePredicate(leaf, domain, domain.all_keys if negated else NO_KEYS, not negated, text=text)
    ranges, pattern = _satisfying(test, leaf, domain)
    if pattern is not None:
        return ValuePredicate(leaf, domain, ranges, False, pattern, negated, text)
    if negated:  # a NaN matches no comparison, hence every negated one
        ranges = ranges.complement(domain.low, domain.high)
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
            return NO_KEYS, None
        first, end = _COMPARED[test.op]
        edges = (domain.low, *at, domain.high)
        if not edges[first] < edges[end]:
            return NO_KEYS, None
        return RangeTuple(((edges[first], edges[end]),)), None
    except LiteralError as error:
        raise SchemaError(
            f"{value!r} cannot be compared with the column {leaf.name!r} of type {describe_type(leaf)}: {error}",
            column=leaf.name,
        ) from None


def describe_type(leaf: Leaf) -> str:
    """Return the type of a column as text, for messages."""
    return f"{PHYSICAL_NAMES[leaf.physical]} ({leaf.logical})" if leaf.logical else PHYSICAL_NAMES[leaf.physical]
