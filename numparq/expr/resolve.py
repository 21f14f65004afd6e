"""Resolve column names of an expression in a schema."""

from __future__ import annotations

from typing import NamedTuple

from numparq.column.projection import unknown_column_error
from numparq.errors import SchemaError
from numparq.format.schema import OPTIONAL, REPEATED, Leaf, Schema, SchemaElement

from .expression import ColumnName


class ResolvedColumn(NamedTuple):
    """Node of the schema that a column name resolves to.

    Attributes
    ----------
    leaf : Leaf
        The column, or the first leaf below it.
    is_leaf : bool
        Whether it is a leaf itself.
    definition_level : int
        Least definition level at which it is not null (for a list: the list itself, not its elements).
    list_depth : int
        Number of lists around it.
    leaves : list of Leaf
        All leaves below it.
    path : tuple of str
        Names from the top-level column down.
    """

    leaf: Leaf
    is_leaf: bool
    definition_level: int
    list_depth: int
    leaves: list[Leaf]
    path: tuple[str, ...]

    @property
    def is_simple_list(self) -> bool:
        """Whether it is a one-level list of leaves: three-level, two-level or a repeated leaf."""
        below = len(self.leaf.path) - len(self.path)
        return len(self.leaves) == 1 and self.leaf.max_repetition_level == 1 and self.list_depth == 0 and below <= 2


class ColumnResolver:
    """Base class of column sources other than a file's schema: many files with partition columns."""

    def resolve(self, name: ColumnName) -> ResolvedColumn:
        """Return what a name resolves to, as the function `resolve_column` does."""
        raise NotImplementedError


def resolve_column(schema: Schema | ColumnResolver, name: ColumnName) -> ResolvedColumn:
    """Return what a column name resolves to: a top-level column of that name, else a dotted path; a tuple is a path.

    Raises SchemaError for an unknown column, or a group without fields.
    """
    if isinstance(schema, ColumnResolver):
        return schema.resolve(name)
    path = (name,) if isinstance(name, str) else name
    if path[0] not in schema.positions and isinstance(name, str):
        path = tuple(name.split("."))
    if path[0] not in schema.positions:
        raise _missing(schema, name)
    position = schema.positions[path[0]]
    flat = schema.flat_leaf(position)
    if flat is not None:
        if len(path) > 1:
            raise _missing(schema, name)
        return ResolvedColumn(flat, True, flat.max_definition_level, 0, [flat], path)
    chain = _chain(schema, schema.column_element(position), path, name)
    leaves = [leaf for leaf in map(schema.leaf, schema.column_leaves(position)) if leaf.path[: len(path)] == path]
    if not leaves:
        raise SchemaError(f"the column {name!r} is a group without fields")
    level = sum(element.repetition != 0 for element in chain[:-1]) + (chain[-1].repetition == OPTIONAL)
    lists = sum(element.repetition == REPEATED for element in chain[:-1])
    is_leaf = chain[-1].leaf is not None and chain[-1].repetition != REPEATED
    return ResolvedColumn(leaves[0], is_leaf, level, lists, leaves, path)


def _chain(schema: Schema, top: int, path: tuple[str, ...], name: ColumnName) -> list[SchemaElement]:
    """Return the schema elements along a path, from its top-level column down."""
    chain = [schema.schema_element(top)]
    for step in path[1:]:
        inside = [child for child in map(schema.schema_element, chain[-1].children) if child.name == step]
        if not inside:
            raise _missing(schema, name)
        chain.append(inside[0])
    return chain


def _missing(schema: Schema, name: ColumnName) -> SchemaError:
    leaves = (leaf.name for leaf in map(schema.leaf, range(min(schema.num_leaves, 1000))))
    return unknown_column_error(name, list(dict.fromkeys([*schema.columns, *leaves])))
