"""What to read of a file: columns by name, rows by row group and position."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from operator import index
from typing import Any

from .column.chunks import RowSlice
from .errors import SchemaError, UnsupportedError
from .schema import Leaf, Schema

VIRTUAL_COLUMNS = ("file", "row_group", "row_number")


def select_columns(schema: Schema, columns: Any, always: Sequence[str] = ()) -> list[Leaf]:
    """Find the leaves of the columns to read.

    Parameters
    ----------
    schema : Schema
        The file's.
    columns : sequence of str or tuple, or None
        Names of top-level columns, or paths; None stands for all.
    always : sequence of str
        Columns to read in any case, behind the others (those of the index); left out where the file has none.

    Returns
    -------
    list of Leaf
        In the order asked for.

    Raises
    ------
    SchemaError
        When the file has no such column.
    UnsupportedError
        For nested columns.
    """
    if columns is None:
        return [_leaf(schema, name, position) for position, name in enumerate(schema.columns)]
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns is a list of names, not {columns!r}; write [{columns!r}] for one column")
    count = len(schema.columns)
    places = dict(zip(reversed(schema.columns), range(count - 1, -1, -1), strict=True))  # the first of equal names
    leaves = []
    for name in list(columns):
        key = name[0] if isinstance(name, tuple) and len(name) == 1 else name
        if key not in places:
            raise _missing(schema, name, places)
        leaves.append(_leaf(schema, key, places[key]))
    asked = {leaf.index for leaf in leaves}
    more = [_leaf(schema, name, places[name]) for name in always if name in places]
    return leaves + [leaf for leaf in more if leaf.index not in asked]


def _leaf(schema: Schema, name: str, position: int) -> Leaf:
    leaf = schema.flat_leaf(position)
    if leaf is None:
        raise UnsupportedError(
            "numparq does not read nested columns (lists, structs, maps) yet; name the flat ones with columns=[...]",
            column=name,
        )
    return leaf


def _missing(schema: Schema, name: Any, places: dict[str, int]) -> SchemaError | UnsupportedError:
    first = name[0] if isinstance(name, tuple) and name else str(name).split(".")[0]
    if first in places and schema.flat_leaf(places[first]) is None:
        return UnsupportedError("numparq does not read fields of nested columns yet", column=str(name))
    close = difflib.get_close_matches(str(name), list(places), n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return SchemaError(f"the file has no column {name!r}{hint}")


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
    left = None if nrows is None else _count(nrows, "nrows")
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
    begin = 0 if first is None else _count(first, "the start of row_range")
    end = None if stop is None else _count(stop, "the stop of row_range")
    if end is not None and end < begin:
        raise ValueError(f"row_range ends at {end}, before it begins at {begin}")
    return begin, end


def _count(value: Any, what: str) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} is a number of rows, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{what} must not be negative, and is {number}")
    return number


def virtual_columns(include: Any) -> list[str]:
    """Check the ``include`` argument: names out of VIRTUAL_COLUMNS, each once."""
    names = [include] if isinstance(include, str) else list(include)
    for name in names:
        if name not in VIRTUAL_COLUMNS:
            raise ValueError(f"include takes {', '.join(map(repr, VIRTUAL_COLUMNS))}, not {name!r}")
    return list(dict.fromkeys(names))
