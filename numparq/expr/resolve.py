"""Resolve column names of an expression in a schema."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from numparq.errors import SchemaError
from numparq.format.schema import OPTIONAL, REPEATED, Leaf, Schema, SchemaElement

from .expression import ColumnName


class ResolvedColumn(NamedTuple):
    """What a name leads to.

    Attributes
    ----------
    leaf : Leaf
        The column itself, or the first leaf within it.
    is_leaf : bool
        Whether it is a leaf.
    level : int
        The definition level from which on it is there (a list: it itself, not an element).
    lists : int
        The lists that it lies in, without itself.
    leaves : list of Leaf
        All leaves within it.
    path : tuple of str
        The names down to it.
    """

    leaf: Leaf
    is_leaf: bool
    level: int
    lists: int
    leaves: list[Leaf]
    path: tuple[str, ...]

    @property
    def is_simple_list(self) -> bool:
        """Whether it is a list of leaves, one deep, in the form of three levels, of two, or of a repeated leaf."""
        below = len(self.leaf.path) - len(self.path)
        return len(self.leaves) == 1 and self.leaf.max_repetition_level == 1 and self.lists == 0 and below <= 2


class ColumnResolver:
    """What has columns, and is no schema of a file: many files with their partition keys. To be derived from."""

    def find(self, name: ColumnName) -> ResolvedColumn:
        """Find what a name of an expression leads to; parameters and errors as of the function `resolve_column`."""
        raise NotImplementedError


def resolve_column(schema: Schema | ColumnResolver, name: ColumnName) -> ResolvedColumn:
    """Find what a name of an expression leads to.

    Parameters
    ----------
    schema : Schema or ColumnResolver
        The file's, or what knows its columns by itself.
    name : str or tuple of str
        A top-level column of just that name, else a path joined by dots; a tuple is always a path.

    Raises
    ------
    SchemaError
        When there is no such column, or it is a group without fields.
    """
    if isinstance(schema, ColumnResolver):
        return schema.find(name)
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
    leaves = [leaf for leaf in map(schema.leaf, schema.leaves_of(position)) if leaf.path[: len(path)] == path]
    if not leaves:
        raise SchemaError(f"the column {name!r} is a group without fields")
    level = sum(element.repetition != 0 for element in chain[:-1]) + (chain[-1].repetition == OPTIONAL)
    lists = sum(element.repetition == REPEATED for element in chain[:-1])
    is_leaf = chain[-1].leaf is not None and chain[-1].repetition != REPEATED
    return ResolvedColumn(leaves[0], is_leaf, level, lists, leaves, path)


def _chain(schema: Schema, top: int, path: tuple[str, ...], name: ColumnName) -> list[SchemaElement]:
    """Give the elements from a top-level column down along a path."""
    chain = [schema.describe(top)]
    for step in path[1:]:
        inside = [child for child in map(schema.describe, chain[-1].children) if child.name == step]
        if not inside:
            raise _missing(schema, name)
        chain.append(inside[0])
    return chain


def _missing(schema: Schema, name: ColumnName) -> SchemaError:
    known = [*schema.columns, *(leaf.name for leaf in map(schema.leaf, range(min(schema.num_leaves, 1000))))]
    return unknown_column_error("the file", name, known)


def unknown_column_error(where: str, name: ColumnName, known: Iterable[str]) -> SchemaError:
    """Make the error that there is no such column, and name those that are called much the same.

    Parameters
    ----------
    where : str
        What has no such column.
    name : str or tuple of str
        As it was asked for.
    known : iterable of str
        What there is.

    Returns
    -------
    SchemaError
    """
    asked = name if isinstance(name, str) else ".".join(name)
    close = difflib.get_close_matches(asked, list(dict.fromkeys(known)), n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return SchemaError(f"{where} has no column {name!r}{hint}")
