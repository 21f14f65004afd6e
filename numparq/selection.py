"""What to read of a file: columns by name, rows by row group and position."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from .column.chunks import RowSlice
from .errors import SchemaError, located
from .schema import Leaf, Schema

if TYPE_CHECKING:
    from .column.shape import Shape

VIRTUAL_COLUMNS = ("file", "row_group", "row_number")
# The one that there is for exploded columns besides: where in its list an element stands.
POSITION = "position"


@dataclass(frozen=True, slots=True)
class NestedColumn:
    """A nested column to read, or a part of one.

    Parameters
    ----------
    name : str
        What it is called in the frame (unless the pandas metadata say otherwise).
    position : int
        Which top-level column it is, or is in.
    whole : Shape
        The tree of that column.
    shape : Shape
        The tree of what is wanted of it.
    is_pruned : bool
        Whether that is the same column with less in it.
    """

    name: str
    position: int
    whole: Shape
    shape: Shape
    is_pruned: bool = False

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves to read."""
        from .column.shape import leaves_of

        return list(leaves_of(self.shape))


def select_columns(schema: Schema, columns: Any, always: Sequence[str] = ()) -> list[Leaf | NestedColumn]:
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
        return [_column(schema, position) for position in range(len(schema.columns)) if schema.has_leaves(position)]
    found = together(select_column(schema, name) for name in names_of(columns))
    return found + always_read(schema, always, found)


class Selected(NamedTuple):
    """Columns that are read, and their leaves; made by `with_leaves`.

    Attributes
    ----------
    columns : list of Leaf or NestedColumn
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

    columns: list[Leaf | NestedColumn]
    leaves: list[Leaf]
    names: list[str]
    labels: list[str | None]
    is_flat: bool


def with_leaves(columns: Sequence[Leaf | NestedColumn]) -> Selected:
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
    return Selected([*columns], leaves, [leaf.name for leaf in leaves], labels, is_flat)


def names_of(columns: Any) -> list[Any]:
    """Check the ``columns`` argument, where it is given: a list of names."""
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns is a list of names, not {columns!r}; write [{columns!r}] for one column")
    return list(columns)


def top_level(schema: Schema, name: Any) -> tuple[int, tuple[str, ...]]:
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
        raise missing(name, schema.columns)
    return schema.positions[path[0]], path


def select_column(schema: Schema, name: Any) -> Leaf | NestedColumn:
    """Find one column to read, as `select_columns` does."""
    position, path = top_level(schema, name)
    return _column(schema, position) if len(path) == 1 else _part(schema, position, path, name)


def together(columns: Iterable[Any]) -> list[Any]:
    """Make one column of all parts of the same list or map, where the first of them is."""
    found: list[Any] = []
    parts: dict[int, int] = {}  # where in `found` what is left of a list or map is
    for column in columns:
        if isinstance(column, NestedColumn) and column.is_pruned:
            if column.position in parts:
                found[parts[column.position]] = _united(found[parts[column.position]], column)
                continue
            parts[column.position] = len(found)
        found.append(column)
    return found


def always_read(
    schema: Schema, names: Sequence[str], found: Sequence[Leaf | NestedColumn]
) -> list[Leaf | NestedColumn]:
    """Give the columns of some names that there are, and that are not among those found."""
    positions = [schema.positions[name] for name in names if name in schema.positions]
    asked = {column.column if isinstance(column, Leaf) else column.position for column in found}
    return [_column(schema, position) for position in positions if position not in asked]


def _column(schema: Schema, position: int) -> Leaf | NestedColumn:
    leaf = schema.flat_leaf(position)
    if leaf is not None:
        return leaf
    from .column.shape import shape_of  # most files have nothing nested

    name = schema.columns[position]
    with located(column=name):
        shape = shape_of(schema, position)
    return NestedColumn(name, position, shape, shape)


def _part(schema: Schema, position: int, path: tuple[str, ...], name: Any) -> NestedColumn:
    """Find what a path leads to."""
    column = _column(schema, position)
    leaves = [] if isinstance(column, Leaf) else [leaf for leaf in column.leaves if leaf.path[: len(path)] == path]
    if isinstance(column, Leaf) or not leaves:
        known = [".".join(schema.leaf(index).path) for index in schema.leaves_of(position)[:1000]]
        raise missing(name, known)
    field = column.whole
    for step in path[1:]:
        inside = [child for child in field.children if child.name == step] if field.kind == "struct" else []
        if not inside:
            break
        field = inside[0]
    else:
        return NestedColumn(path[-1], position, column.whole, field)
    from .column.shape import pruned

    kept = pruned(column.whole, {leaf.index for leaf in leaves})
    assert kept is not None
    return NestedColumn(column.name, position, column.whole, kept, True)


def _united(first: Any, second: NestedColumn) -> NestedColumn:
    """Give what two parts of one column hold together."""
    from .column.shape import pruned

    kept = pruned(second.whole, {leaf.index for part in (first, second) for leaf in part.leaves})
    assert kept is not None
    return replace(second, shape=kept)


def missing(name: Any, known: Sequence[str], where: str = "the file") -> SchemaError:
    """Make the error for a column that there is not, with names like it, or else with those that there are."""
    close = difflib.get_close_matches(str(name), known, n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else f"; there {_some(known)}"
    return SchemaError(f"{where} has no column {name!r}{hint}")


def _some(names: Sequence[str]) -> str:
    """List names, the first ones of many."""
    if not names:
        return "are none"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names[:_SHOWN]))}{more}"


_SHOWN = 8  # names in a message


def select_rows(
    num_rows: Sequence[int], row_groups: Any = None, row_range: Any = None, nrows: Any = None
) -> list[RowSlice]:
    """Find the rows to read.

    Parameters
    ----------
    num_rows : sequence of int
        Of each row group of the file.
    row_groups : sequence of int, or None
        Ordinals of row groups, in the order wanted; None stands for all.
    row_range : tuple of two ints, or None
        First row and the one behind the last, counted over the whole file; of the row groups wanted, only rows in
        that range are read. As in a slice, either may be None, and a stop behind the last row means the last row.
    nrows : int or None
        At most so many rows, the first ones of what the others leave.

    Returns
    -------
    list of RowSlice
        None of them empty.
    """
    first, stop = _range(row_range)
    left = None if nrows is None else checked_count(nrows, "nrows")
    starts = [0]
    for count in num_rows:
        starts.append(starts[-1] + count)
    slices: list[RowSlice] = []
    out = 0
    for group in _row_groups(row_groups, len(num_rows)):
        begin = max(first - starts[group], 0)
        end = min(num_rows[group], num_rows[group] if stop is None else stop - starts[group])
        if left is not None:
            end = min(end, begin + left - out)
        if begin < end:
            slices.append(RowSlice(group, begin, end, out))
            out += end - begin
    return slices


def _row_groups(row_groups: Any, count: int) -> list[int]:
    if row_groups is None:
        return list(range(count))
    try:
        wanted = [index(group) for group in row_groups]
    except TypeError:
        raise TypeError(f"row_groups is a list of ordinals, not {row_groups!r}") from None
    for group in wanted:
        if not 0 <= group < count:
            raise ValueError(f"there is no row group {group}: the file has {count}, counted from 0")
    return wanted


def _range(row_range: Any) -> tuple[int, int | None]:
    if row_range is None:
        return 0, None
    if isinstance(row_range, (range, slice)):
        if row_range.step not in (None, 1):
            raise ValueError("row_range must not have a step")
        row_range = row_range.start, row_range.stop
    try:
        first, stop = row_range
    except (TypeError, ValueError):
        raise TypeError(f"row_range is a pair (first, stop), not {row_range!r}") from None
    begin = 0 if first is None else checked_count(first, "the start of row_range")
    end = None if stop is None else checked_count(stop, "the stop of row_range")
    if end is not None and end < begin:
        raise ValueError(f"row_range ends at {end}, before it begins at {begin}")
    return begin, end


def checked_count(value: Any, what: str) -> int:
    """Check a number of rows; `what` is what messages call it."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} is a number of rows, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{what} must not be negative, and is {number}")
    return number


def virtual_columns(include: Any, of_rows: Sequence[str] = ()) -> list[str]:
    """Check the ``include`` argument: names out of VIRTUAL_COLUMNS, or of further ones, each once."""
    names = [include] if isinstance(include, str) else list(include)
    known = (*VIRTUAL_COLUMNS, *of_rows)
    for name in names:
        if name == POSITION and name not in known:
            raise ValueError(f"include={name!r} is the position of an element in its list: it needs explode=...")
        if name not in known:
            raise ValueError(f"include takes {', '.join(map(repr, known))}, not {name!r}")
    return list(dict.fromkeys(names))
