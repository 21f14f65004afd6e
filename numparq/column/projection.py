"""Projection: columns and nested paths by name, resolved to leaf columns; virtual columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numparq.errors import SchemaError, error_context
from numparq.format.schema import Leaf, Schema

if TYPE_CHECKING:
    from .nested.nested_type import NestedType

VIRTUAL_COLUMNS = ("file", "row_group", "row_number")
# The one that there is for exploded columns besides: where in its list an element stands.
POSITION_COLUMN = "position"


@dataclass(frozen=True, slots=True)
class NestedProjection:
    """A nested column to read, or a part of one.

    Parameters
    ----------
    name : str
        What it is called in the frame (unless the pandas metadata say otherwise).
    position : int
        Which top-level column it is, or is in.
    whole : NestedType
        The tree of that column.
    shape : NestedType
        The tree of what is wanted of it.
    is_pruned : bool
        Whether that is the same column with less in it.
    """

    name: str
    position: int
    whole: NestedType
    shape: NestedType
    is_pruned: bool = False

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves to read."""
        from .nested.nested_type import iter_leaves

        return list(iter_leaves(self.shape))


def select_columns(schema: Schema, columns: Any, always: Sequence[str] = ()) -> list[Leaf | NestedProjection]:
    """Find the columns to read.

    Parameters
    ----------
    schema : Schema
        The file's.
    columns : sequence of str or tuple, or None
        Names of top-level columns, or paths to what is in nested ones: tuples of names, or names joined by dots,
        where no column is called just that. None stands for all columns.
    always : sequence of str
        Columns to read in any case, behind the others (those of the index); left out where the file has none.

    Returns
    -------
    list of Leaf or NestedColumn
        In the order asked for. A field of structs is a column of its own, by the field's name, as pyarrow has it;
        what is within a list or map stays in it, and what stands beside it is left out.

    Raises
    ------
    SchemaError
        When the file has no such column.
    UnsupportedError
        For nested columns that are too deep.
    """
    if columns is None:
        return [
            _top_level_column(schema, position)
            for position in range(len(schema.columns))
            if schema.has_leaves(position)
        ]
    found = merge_parts(select_column(schema, name) for name in check_names(columns))
    return found + index_columns(schema, always, found)


class Projection(NamedTuple):
    """Columns that are read, and their leaves; made by `projection_of`.

    Attributes
    ----------
    columns : list of Leaf or NestedProjection
        The columns.
    leaves : list of Leaf
        The leaves of all of them.
    names : list of str
        Theirs.
    labels : list of str or None
        For each leaf the name of the column that it is, or begins; else None.
    is_flat : bool
        Whether no column is nested.
    """

    columns: list[Leaf | NestedProjection]
    leaves: list[Leaf]
    names: list[str]
    labels: list[str | None]
    is_flat: bool


def projection_of(columns: Sequence[Leaf | NestedProjection]) -> Projection:
    """Give columns along with their leaves."""
    leaves: list[Leaf] = []
    labels: list[str | None] = []
    for column in columns:
        if isinstance(column, Leaf):
            leaves.append(column)
            labels.append(column.name)
        else:
            found = column.leaves
            leaves.extend(found)
            labels.extend([column.name, *[None] * (len(found) - 1)])
    is_flat = all(isinstance(column, Leaf) for column in columns)
    return Projection([*columns], leaves, [leaf.name for leaf in leaves], labels, is_flat)


def check_names(columns: Any) -> list[Any]:
    """Check the ``columns`` argument, where it is given: a list of names."""
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns is a list of names, not {columns!r}; write [{columns!r}] for one column")
    return list(columns)


def resolve_top_level(schema: Schema, name: Any) -> tuple[int, tuple[str, ...]]:
    """Find the top-level column that a name or path begins with.

    Parameters
    ----------
    schema : Schema
        The file's.
    name : str or tuple of str
        As in `select_columns`.

    Returns
    -------
    position : int
        Which column it is.
    path : tuple of str
        The names from there on down; just one where it is the column itself.

    Raises
    ------
    SchemaError
        When the file has no such column.
    """
    key = name[0] if isinstance(name, tuple) and len(name) == 1 else name
    if not isinstance(key, tuple) and key in schema.positions:
        return schema.positions[key], (key,)
    path = key if isinstance(key, tuple) else tuple(str(key).split("."))
    if len(path) < 2 or path[0] not in schema.positions:
        raise unknown_column_error(name, schema.columns)
    return schema.positions[path[0]], path


def select_column(schema: Schema, name: Any) -> Leaf | NestedProjection:
    """Find one column to read, as `select_columns` does."""
    position, path = resolve_top_level(schema, name)
    return _top_level_column(schema, position) if len(path) == 1 else _nested_part(schema, position, path, name)


def merge_parts(columns: Iterable[Any]) -> list[Any]:
    """Make one column of all parts of the same list or map, where the first of them is."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # where in `found` what is left of a list or map is
    for column in columns:
        if isinstance(column, NestedProjection) and column.is_pruned:
            if column.position in parts:
                found[parts[column.position]] = _merge_two_parts(found[parts[column.position]], column)
                continue
            parts[column.position] = len(found)
        found.append(column)
    return found


def index_columns(
    schema: Schema, names: Sequence[str], found: Sequence[Leaf | NestedProjection]
) -> list[Leaf | NestedProjection]:
    """Give the columns of some names that there are, and that are not among those found."""
    positions = [schema.positions[name] for name in names if name in schema.positions]
    asked = {column.column if isinstance(column, Leaf) else column.position for column in found}
    return [_top_level_column(schema, position) for position in positions if position not in asked]


def _top_level_column(schema: Schema, position: int) -> Leaf | NestedProjection:
    leaf = schema.flat_leaf(position)
    if leaf is not None:
        return leaf
    from .nested.nested_type import resolve_nested_type  # most files have nothing nested

    name = schema.columns[position]
    with error_context(column=name):
        shape = resolve_nested_type(schema, position)
    return NestedProjection(name, position, shape, shape)


def _nested_part(schema: Schema, position: int, path: tuple[str, ...], name: Any) -> NestedProjection:
    """Find what a path leads to."""
    column = _top_level_column(schema, position)
    leaves = [] if isinstance(column, Leaf) else [leaf for leaf in column.leaves if leaf.path[: len(path)] == path]
    if isinstance(column, Leaf) or not leaves:
        known = [".".join(schema.leaf(index).path) for index in schema.leaves_of(position)[:1000]]
        raise unknown_column_error(name, known)
    field = column.whole
    for step in path[1:]:
        inside = [child for child in field.children if child.name == step] if field.kind == "struct" else []
        if not inside:
            break
        field = inside[0]
    else:
        return NestedProjection(path[-1], position, column.whole, field)
    from .nested.nested_type import project_leaves

    kept = project_leaves(column.whole, {leaf.index for leaf in leaves})
    assert kept is not None
    return NestedProjection(column.name, position, column.whole, kept, True)


def _merge_two_parts(first: Any, second: NestedProjection) -> NestedProjection:
    """Give what two parts of one column hold together."""
    from .nested.nested_type import project_leaves

    kept = project_leaves(second.whole, {leaf.index for part in (first, second) for leaf in part.leaves})
    assert kept is not None
    return replace(second, shape=kept)


def unknown_column_error(name: Any, known: Sequence[str], where: str = "the file") -> SchemaError:
    """Make the error for a column that there is not, with names like it, or else with those that there are."""
    close = difflib.get_close_matches(str(name), known, n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else f"; there {_list_names(known)}"
    return SchemaError(f"{where} has no column {name!r}{hint}")


def _list_names(names: Sequence[str]) -> str:
    """List names, the first ones of many."""
    if not names:
        return "are none"
    more = f" and {len(names) - _MAX_LISTED_NAMES:,} more" if len(names) > _MAX_LISTED_NAMES else ""
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names[:_MAX_LISTED_NAMES]))}{more}"


_MAX_LISTED_NAMES = 8  # names in a message


def check_include(include: Any, of_rows: Sequence[str] = ()) -> list[str]:
    """Check the ``include`` argument: names out of VIRTUAL_COLUMNS, or of further ones, each once."""
    names = [include] if isinstance(include, str) else list(include)
    known = (*VIRTUAL_COLUMNS, *of_rows)
    for name in names:
        if name == POSITION_COLUMN and name not in known:
            raise ValueError(f"include={name!r} is the position of an element in its list: it needs explode=...")
        if name not in known:
            raise ValueError(f"include takes {', '.join(map(repr, known))}, not {name!r}")
    return list(dict.fromkeys(names))
