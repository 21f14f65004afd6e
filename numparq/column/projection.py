"""Projection: columns and nested paths by name, resolved to leaf columns; virtual columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numparq.errors import SchemaError, error_context
from numparq.format.schema import Leaf, Schema
from numparq.util.arguments import check_list, did_you_mean
from numparq.util.column_name import ColumnName, Columns

if TYPE_CHECKING:
    from .nested.nested_type import NestedType

VIRTUAL_COLUMNS = ("file", "row_group", "row_number")
# Virtual column of exploded columns: the index of the element in its list.
POSITION_COLUMN = "position"


@dataclass(frozen=True, slots=True)
class NestedProjection:
    """A nested column to read, or a part of one.

    Attributes
    ----------
    name : str
        Column name in the frame, unless the pandas metadata have another.
    position : int
        Ordinal of the top-level column.
    full_type : NestedType
        Type of that top-level column.
    type : NestedType
        Type of the projected part.
    is_pruned : bool
        Whether `type` is the whole column with some leaves left out.
    """

    name: str
    position: int
    full_type: NestedType
    type: NestedType
    is_pruned: bool = False

    @property
    def leaves(self) -> list[Leaf]:
        """Leaf columns to read."""
        from .nested.nested_type import iter_leaves

        return list(iter_leaves(self.type))


def select_columns(schema: Schema, columns: Columns, always: Sequence[str] = ()) -> list[Leaf | NestedProjection]:
    """Return the columns to read, in the order of `columns` (None: all), then those of `always` that exist.

    A tuple, or a dotted name that matches no column, is a path: struct fields become columns, lists keep their type.
    """
    if columns is None:
        return [
            _top_level_column(schema, position) for position in range(schema.num_columns) if schema.has_leaves(position)
        ]
    found = merge_parts(select_column(schema, name) for name in check_names(columns))
    return found + index_columns(schema, always, found)


class Projection(NamedTuple):
    """Projected columns and their leaf columns; made by `projection_of`.

    Attributes
    ----------
    names : list of str
        Name of each leaf.
    labels : list of str or None
        For each leaf, the name of the column that it is or begins; None for further leaves of a column.
    """

    columns: list[Leaf | NestedProjection]
    leaves: list[Leaf]
    names: list[str]
    labels: list[str | None]
    is_flat: bool


def projection_of(columns: Sequence[Leaf | NestedProjection]) -> Projection:
    """Return columns together with their leaves."""
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


def check_names(columns: Iterable[ColumnName]) -> list[ColumnName]:
    """Return the `columns` argument as a list; TypeError for a single string, or a list in the list."""
    names = check_list(columns, "columns")
    for name in names:
        if isinstance(name, (list, dict, set)):
            raise TypeError(f"columns must be a list of names or tuples, but {name!r} is in it")
    return names


def check_categories(names: Iterable[str], schema: Schema, others: Iterable[str] = ()) -> None:
    """Raise SchemaError if a name is neither a flat column of the schema nor one of `others`."""
    for name in set(names).difference(others):
        if name not in schema.positions:
            hint = did_you_mean(name, [*schema.columns, *others])
            raise SchemaError(f"categories names the column {name!r}, which does not exist{hint}")
        if schema.flat_leaf(schema.positions[name]) is None:
            raise SchemaError("categories names a nested column; only flat columns can be Categorical", column=name)


def resolve_top_level(schema: Schema, name: ColumnName) -> tuple[int, tuple[str, ...]]:
    """Return the ordinal of the top-level column that a name or path begins with, and the path from there.

    The path has one name if it is the column itself. Raises SchemaError for an unknown column.
    """
    key = name[0] if isinstance(name, tuple) and len(name) == 1 else name
    if not isinstance(key, tuple) and key in schema.positions:
        return schema.positions[key], (key,)
    path = key if isinstance(key, tuple) else tuple(str(key).split("."))
    if len(path) < 2 or path[0] not in schema.positions:
        raise unknown_column_error(name, schema.columns)
    return schema.positions[path[0]], path


def select_column(schema: Schema, name: ColumnName) -> Leaf | NestedProjection:
    """Return one column to read, as `select_columns` resolves it."""
    position, path = resolve_top_level(schema, name)
    return _top_level_column(schema, position) if len(path) == 1 else _nested_part(schema, position, path, name)


def merge_parts(columns: Iterable[Any]) -> list[Any]:
    """Merge parts of the same list or map into one column, at the position of the first part."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # position of a pruned list or map in `found`
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
    """Return the named columns that exist and are not already selected."""
    positions = [schema.positions[name] for name in names if name in schema.positions]
    if len(set(positions)) < len(positions):  # levels of one name
        positions = [place for place, name in enumerate(schema.columns) if name in names]
    asked = {column.column if isinstance(column, Leaf) else column.position for column in found}
    return [_top_level_column(schema, position) for position in positions if position not in asked]


def _top_level_column(schema: Schema, position: int) -> Leaf | NestedProjection:
    leaf = schema.flat_leaf(position)
    if leaf is not None:
        return leaf
    from .nested.nested_type import resolve_nested_type  # lazy: most files have nothing nested

    name = schema.column_name(position)
    with error_context(column=name):
        shape = resolve_nested_type(schema, position)
    return NestedProjection(name, position, shape, shape)


def _nested_part(schema: Schema, position: int, path: tuple[str, ...], name: ColumnName) -> NestedProjection:
    """Return the part of a nested column that a path selects."""
    column = _top_level_column(schema, position)
    leaves = [] if isinstance(column, Leaf) else [leaf for leaf in column.leaves if leaf.path[: len(path)] == path]
    if isinstance(column, Leaf) or not leaves:
        known = [".".join(schema.leaf(index).path) for index in schema.column_leaves(position)[:1000]]
        raise unknown_column_error(name, known)
    field = column.full_type
    for step in path[1:]:
        inside = [child for child in field.children if child.name == step] if field.kind == "struct" else []
        if not inside:
            break
        field = inside[0]
    else:
        return NestedProjection(path[-1], position, column.full_type, field)
    from .nested.nested_type import project_leaves

    kept = project_leaves(column.full_type, {leaf.index for leaf in leaves})
    assert kept is not None
    return NestedProjection(column.name, position, column.full_type, kept, True)


def _merge_two_parts(first: Any, second: NestedProjection) -> NestedProjection:
    """Return one projection with the leaves of two parts of a column."""
    from .nested.nested_type import project_leaves

    kept = project_leaves(second.full_type, {leaf.index for part in (first, second) for leaf in part.leaves})
    assert kept is not None
    return replace(second, type=kept)


def unknown_column_error(name: ColumnName, known: Sequence[str], where: str = "the file") -> SchemaError:
    """Return the error for an unknown column, with similar names, or else the existing ones."""
    return SchemaError(f"{where} has no column {name!r}{did_you_mean(name, known) or f'; {_list_names(known)}'}")


def _list_names(names: Sequence[str]) -> str:
    """Return the names as text, only the first of many."""
    if not names:
        return "it has no columns"
    subject = "its column is" if len(names) == 1 else "its columns are"
    more = f" and {len(names) - _MAX_LISTED_NAMES:,} more" if len(names) > _MAX_LISTED_NAMES else ""
    return f"{subject} {', '.join(map(repr, names[:_MAX_LISTED_NAMES]))}{more}"


_MAX_LISTED_NAMES = 8  # in an error message


def check_include(include: str | Iterable[str], of_rows: Sequence[str] = ()) -> list[str]:
    """Check the `include` argument: names out of VIRTUAL_COLUMNS or `of_rows`; duplicates are dropped."""
    names = [include] if isinstance(include, str) else check_list(include, "include", "virtual columns")
    known = (*VIRTUAL_COLUMNS, *of_rows)
    for name in names:
        if name == POSITION_COLUMN and name not in known:
            raise ValueError(f"include={name!r}, the position of an element in its list, needs explode=...")
        if name not in known:
            raise ValueError(f"include must name one of {', '.join(map(repr, known))}, not {name!r}")
    return list(dict.fromkeys(names))
