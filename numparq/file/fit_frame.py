"""Fit the columns of a frame to those written before: by earlier frames, or in the file that is appended to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_
from typing import Any, TypeVar

import numpy as np

from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.errors import SchemaError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField
from numparq.format.physical_type import INT96
from numparq.format.schema import OPTIONAL, REPEATED
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.cast.table import EXACT_CASTS, cast_values, stored_kind
from numparq.from_pandas.column_values import ColumnValues
from numparq.from_pandas.frame import ShreddedFrame, plain_array, shred_column
from numparq.from_pandas.nested.column import nested_column
from numparq.from_pandas.nested.variant import variant_column
from numparq.from_pandas.user_schema import UserColumn, parse_column
from numparq.types.arrow_fields import LIST_KINDS
from numparq.types.common_type import describe_type
from numparq.types.parquet_type import parquet_type

from .append_schema import check_names, conform
from .null_leaves import is_null_leaf

_ADVICE = "convert the column, or begin the file with schema= and a type that holds all values"
_PANDAS_EXTENSIONS = ("pandas.period", "pandas.interval")
_ROWS_AT_ONCE = 1 << 20  # converted together to see whether they fit
_OPAQUE = ("ENUM", "JSON", "BSON", "GEOMETRY", "GEOGRAPHY", "INTERVAL", "VARIANT", "FILE")  # not told by Arrow types


def fit_frame(frame: ShreddedFrame, known: Sequence[UserColumn]) -> tuple[ShreddedFrame, list[UserColumn]]:
    """Return a frame with the known columns, and these with the frame's types where they had only nulls so far.

    Columns may come in another order, and values of another type are cast where all fit exactly. Raises SchemaError
    for other columns, or values that do not fit; so does reading the leaves.
    """
    order = _order([column.node.name for column in known], [column.node.name for column in frame.columns])
    columns, fitted = [], []
    for place, before in zip(order, known, strict=True):
        column, field = frame.columns[place], frame.arrow_fields[place]
        if column.node == before.node and (field == before.field or _meaning(field) == _meaning(before.field)):
            columns.append(column)
            fitted.append(before)
            continue
        with error_context(column=column.node.name):
            column, target = _fit_column(frame, place, before)
        columns.append(column)
        fitted.append(target)
    arrays, fields = [frame.arrays[place] for place in order], [column.field for column in fitted]
    return replace(frame, columns=columns, arrow_fields=fields, arrays=arrays), fitted


def fit_where_exact(frame: ShreddedFrame, known: Sequence[UserColumn]) -> ShreddedFrame:
    """Return a frame whose columns have the types of known ones of their names, where these hold all values.

    Other columns stay as they are, and all may have nulls. Columns that get another type are converted, to find out.
    Raises SchemaError for integers beside floats that no reader can merge.
    """
    targets = {column.node.name: _optional(column) for column in known}
    columns, fields = list(frame.columns), list(frame.arrow_fields)
    for position, column in enumerate(frame.columns):
        before = targets.get(column.node.name)
        if before is None or before.node.physical == INT96:  # which is deprecated, and merges with timestamps
            continue
        try:
            fitted, target = _fit_column(frame, position, before)
            if fitted.node == column.node and _meaning(fitted.field) == _meaning(fields[position]):
                continue
            _check_values(fitted, frame.num_rows)
        except SchemaError:
            _check_merge(frame, position, before)
            continue
        columns[position], fields[position] = fitted, target.field
    if all(map(is_, columns, frame.columns)):
        return frame
    return replace(frame, columns=columns, arrow_fields=fields, arrow_schema=None)


def check_merges(frame: ShreddedFrame, known: Sequence[UserColumn]) -> None:
    """Raise SchemaError if integers of a frame, beside files of known columns, are no floats."""
    targets = {column.node.name: column for column in known}
    for position, column in enumerate(frame.columns):
        if column.node.name in targets:
            _check_merge(frame, position, targets[column.node.name])


def _check_merge(frame: ShreddedFrame, position: int, before: UserColumn) -> None:
    """Raise SchemaError for an integer that no float64 holds, as which a column merges with known floats."""
    have, name = frame.arrow_fields[position].type, frame.columns[position].node.name
    if (have.kind, have.bit_width, before.field.type.kind) == ("int", 64, "float"):
        column, _ = _fit_column(frame, position, parse_column(name, ArrowType("float", 64)))
        with error_context(column=name):
            _check_values(column, frame.num_rows)


def _optional(column: UserColumn) -> UserColumn:
    return UserColumn(replace(column.node, repetition=OPTIONAL), replace(column.field, nullable=True))


def fits(frame: ShreddedFrame, known: Sequence[UserColumn]) -> bool:
    """Whether `fit_frame` can fit a frame; values of columns that get another type are all converted."""
    have = {column.slice_leaves for column in frame.columns}
    try:
        for column in fit_frame(frame, known)[0].columns:
            if column.slice_leaves not in have:
                _check_values(column, frame.num_rows)
    except SchemaError:
        return False
    return True


def _check_values(column: SourceColumn, num_rows: int) -> None:
    """Raise SchemaError if a value of a column cannot be converted."""
    for start in range(0, num_rows, _ROWS_AT_ONCE):
        column.read_leaves(start, min(start + _ROWS_AT_ONCE, num_rows))


def frame_schema(frame: ShreddedFrame) -> list[UserColumn]:
    """Return the columns of a frame, to which later frames are fitted."""
    fields = zip(frame.columns, frame.arrow_fields, strict=True)
    return [UserColumn(column.node, field) for column, field in fields]


def _order(known: list[str], names: list[str]) -> Sequence[int]:
    """Return the position in the frame of each known column."""
    if known == names:
        return range(len(known))
    check_names(known, names)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in known]


def _meaning(field: ArrowField) -> tuple[Any, ...]:
    """Return what decides the meaning of values beside their Parquet type: durations, pandas' extensions, lengths."""
    kind = field.type
    unit = kind.unit if kind.kind == "duration" else None
    length = kind.byte_width if kind.kind == "fixed_size_list" else None
    return unit, length, _extension(kind), tuple(map(_meaning, field.children))


def _extension(kind: ArrowType) -> tuple[str, str | None] | None:
    """Return name and parameters of an extension type of pandas."""
    return (kind.extension, kind.extension_metadata) if kind.extension in _PANDAS_EXTENSIONS else None


# --- types that are open ------------------------------------------------------------------------------------------


def _merge_types(known: UserColumn, have: UserColumn) -> UserColumn:
    """Return a known column with the types of another where it had only nulls so far."""
    node = _merge_node(known.node, have.node, (known.node.name,))
    return known if node == known.node else UserColumn(node, _merge_field(known.field, have.field))


def _merge_node(known: SchemaNode, have: SchemaNode, path: tuple[str, ...]) -> SchemaNode:
    if is_null_leaf(known) and not is_null_leaf(have):
        if have.repetition == REPEATED:
            raise SchemaError(
                "the column has only nulls so far, to which no lists without a LIST group can be added; "
                "begin the file with schema=, or with rows that have values",
                column=".".join(path),
            )
        return replace(have, name=known.name, repetition=OPTIONAL, field_id=known.field_id)
    children = tuple(
        child if other is None else _merge_node(child, other, (*path, child.name))
        for child, other in _paired(known, have)
    )
    return known if children == known.children else replace(known, children=children)


def _merge_field(known: ArrowField, have: ArrowField) -> ArrowField:
    if known.type.kind == "null":
        return replace(have, name=known.name, nullable=True)
    children = tuple(child if other is None else _merge_field(child, other) for child, other in _paired(known, have))
    return replace(known, children=children)


_Tree = TypeVar("_Tree", SchemaNode, ArrowField)


def _paired(known: _Tree, have: _Tree) -> list[tuple[_Tree, _Tree | None]]:
    """Pair the children of two nodes or fields: those of a struct by name, others by position."""
    if not _is_struct(known) and len(known.children) == len(have.children):
        return list(zip(known.children, have.children, strict=True))
    others = {child.name: child for child in have.children}
    return [(child, others.get(child.name)) for child in known.children]


def _is_struct(part: SchemaNode | ArrowField) -> bool:
    if isinstance(part, ArrowField):
        return part.type.kind == "struct"
    return part.logical is None and part.repetition != REPEATED


# --- values of another type -----------------------------------------------------------------------------------------


def _fit_column(frame: ShreddedFrame, position: int, before: UserColumn) -> tuple[SourceColumn, UserColumn]:
    """Return a column of a frame, cast to the type of one before, and that type under the names of both."""
    column, array = replace(frame.columns[position], field=frame.arrow_fields[position]), frame.arrays[position]
    name = column.node.name
    target = _merge_types(before, UserColumn(column.node, column.field))
    difference = _difference(column, target)
    if difference is None:
        return column, UserColumn(conform(target.node, column.node, (name,)), target.field)
    try:
        _check_castable(column.field, target, (name,), difference)
    except SchemaError:
        if _has_values(column, frame.num_rows):
            raise
        array = np.full(len(array), None, object)
        column = shred_column(name, array)
    if target.is_flat and not column.field.children:
        storage = (column.node.physical, column.node.type_length, column.node.logical)
        if storage != parquet_type(column.field.type):  # the user's schema asks for another
            raise difference
        values = ColumnValues(column.field.type, column.slice_leaves)
        return _advising(cast_values(values, target, EXACT_CASTS).column(name, target.node, target.field)), target
    objects = np.full(len(array), None, object) if column.field.type.kind == "null" else plain_array(array)
    nested = (
        variant_column(name, objects, target)
        if target.is_variant
        else nested_column(name, objects, target.node, target.field)
    )
    return _advising(nested.from_row(frame.first_row)), target


def _has_values(column: SourceColumn, num_rows: int) -> bool:
    """Whether a column has anything but nulls; pandas has one without values as float64, whatever its type before."""
    if column.node.physical is None or column.node.repetition == REPEATED:
        return True
    for start in range(0, num_rows, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, num_rows)
        (leaf,) = column.read_leaves(start, stop)
        if leaf.validity is None or leaf.validity.any():
            return True
    return num_rows == 0


def _difference(column: SourceColumn, target: UserColumn) -> SchemaError | None:
    """Return the difference between a column and a target; None if the values can be written as they are."""
    try:
        conform(target.node, column.node, (column.node.name,))
    except SchemaError as error:
        error.message += f"; {_ADVICE}"
        return error
    if _meaning(column.field) == _meaning(target.field):
        return None
    return _type_error(column.field, target.field, (column.node.name,))


def _type_error(have: ArrowField, known: ArrowField, path: tuple[str, ...]) -> SchemaError:
    ours, theirs = (
        f"{kind.extension}({kind.extension_metadata})" if _extension(kind) else describe_type(kind)
        for kind in (have.type, known.type)
    )
    return SchemaError(f"the file has {theirs}, the frame {ours}; {_ADVICE}", column=".".join(path))


def _check_castable(have: ArrowField, target: UserColumn, path: tuple[str, ...], difference: SchemaError) -> None:
    """Raise the difference if the values of a column mean something else than those of the target."""
    if have.type.kind != "null":
        if _is_opaque(target.node):
            raise difference
        _check_field(have, target.field, path, difference)


def _is_opaque(node: SchemaNode) -> bool:
    """Whether Arrow's types do not say what the values of a node are."""
    return (node.logical is not None and node.logical.kind in _OPAQUE) or any(map(_is_opaque, node.children))


def _check_field(have: ArrowField, known: ArrowField, path: tuple[str, ...], difference: SchemaError) -> None:
    """Raise SchemaError if values of a field cannot be cast to another, whatever they are."""
    kinds = have.type.kind, known.type.kind
    if kinds[0] == "null":
        return
    if _extension(have.type) != _extension(known.type):
        raise _type_error(have, known, path)
    if kinds == ("struct", "struct"):
        names = {child.name for child in known.children}
        extra = [child.name for child in have.children if child.name not in names]
        if extra:
            raise SchemaError(
                f"a dict has the key {extra[0]!r}, but the file does not; "
                "drop it, or begin the file with schema= and all keys",
                column=".".join(path),
            )
    elif have.children or known.children:
        is_list = kinds[0] in LIST_KINDS and kinds[1] in LIST_KINDS and kinds[1] != "fixed_size_list"
        if not is_list and have.type != known.type:
            raise difference
    elif not _is_castable(have.type, known.type, is_nested=len(path) > 1):
        raise _type_error(have, known, path) if len(path) > 1 else difference
    for child, other in _paired(known, have):
        if other is not None:
            _check_field(other, child, (*path, child.name), difference)


def _is_castable(have: ArrowType, known: ArrowType, is_nested: bool) -> bool:
    """Whether one type casts to another by the exact rules; within lists and dicts, floats are not narrowed."""
    kinds = stored_kind(have), stored_kind(known)
    if kinds == ("float", "float") and is_nested:
        return have.bit_width <= known.bit_width
    return kinds in EXACT_CASTS or kinds == ("bool", "bool")


def _advising(column: SourceColumn) -> SourceColumn:
    """Return a column whose errors say what to do."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        try:
            return column.slice_leaves(start, stop)
        except SchemaError as error:
            if _ADVICE not in error.message:
                error.message += f"; {_ADVICE}"
            raise

    return replace(column, slice_leaves=leaves, joinable=None)
