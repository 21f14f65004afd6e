"""Columns of nothing but nulls, by statistics: beside a type that theirs does not merge with, they count as UNKNOWN.

pandas writes a column without values as float64, whatever the type of other days.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace

from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.prune.statistics import row_group_statistics

from .column_mapping import FieldKeyFunction
from .fields import SchemaField
from .schema_groups import SchemaGroup
from .user_schema import leaf_fits


def empty_conflicting_columns(
    groups: Sequence[SchemaGroup],
    conflicts: Collection[Hashable],
    key_function: FieldKeyFunction,
    is_empty: Callable[[OpenFile, int], bool],
) -> None:
    """Replace the columns of groups without values by null columns, of those whose keys are `conflicts`.

    `is_empty` says whether a column of a file, by position, has no values.
    """
    for conflict in conflicts:
        holders: list[tuple[SchemaGroup, int]] = []
        for group in groups:
            keys = key_function(group.fields)
            at = keys.index(conflict) if conflict in keys else -1
            field = group.fields[at] if at >= 0 else None
            if field is not None and not field.is_null:
                holders.append((group, at))
        empty = [(group, at) for group, at in holders if all(is_empty(file, at) for file in group.files)]
        for group, at in empty[1:] if len(empty) == len(holders) else empty:  # the first one's type is as good as any
            _empty_columns(group, [at])


def empty_misfits(groups: Sequence[SchemaGroup], fields: Sequence[SchemaField], key_function: FieldKeyFunction) -> None:
    """Replace the columns of groups without values by null columns, where they do not fit a schema's columns."""
    known = dict(zip(key_function(fields), fields, strict=True))
    for group in groups:
        positions = misfits(group.fields, known.get, key_function)
        _empty_columns(group, [at for at in positions if all(has_no_values(file, at) for file in group.files)])


def misfits(
    fields: Sequence[SchemaField | None],
    column_of: Callable[[Hashable], SchemaField | None],
    key_function: FieldKeyFunction,
) -> list[int]:
    """Return the positions of a file's leaf columns that cannot be cast to the dataset's columns."""
    result = []
    for at, (key, field) in enumerate(zip(key_function(fields), fields, strict=True)):
        target = column_of(key)
        if field is None or target is None or field.kind != "leaf" or field.is_null or target.is_null:
            continue
        if target.kind != "leaf" or not leaf_fits(target, field):
            result.append(at)
    return result


def _empty_columns(group: SchemaGroup, positions: Sequence[int]) -> None:
    """Replace some columns of a group by null columns."""
    fields = list(group.fields)
    for at in positions:
        fields[at] = without_values(fields[at])
    group.fields = fields


def without_values(field: SchemaField | None) -> SchemaField | None:
    """Return a leaf column as one of type null."""
    return None if field is None else replace(field, type=ArrowType("null"), dictionary=None, nullable=True)


def has_no_values(file: OpenFile, position: int) -> bool:
    """Whether trusted statistics say that a flat column of a file holds only nulls, or the file has no rows."""
    leaf = file.schema.flat_leaf(position)
    if leaf is None:
        return False
    statistics = row_group_statistics(file.footer, leaf, range(file.num_row_groups))
    return bool((statistics.is_all_null(leaf) | (statistics.num_values == 0)).all())
