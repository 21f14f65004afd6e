"""Merge the fields of many files: every column of any, each of the common type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT96
from numparq.types.common_type import common_type, value_type
from numparq.types.parquet_type import MAX_PRECISION, parquet_type

from .column_mapping import FieldKeyFunction, field_keys
from .conflicts import conflicting_field
from .fields import LeafStorage, SchemaField, describe_field, opaque_logical_type


@dataclass(frozen=True, slots=True)
class FieldOfFile:
    """A field, and the name of a file that has it."""

    field: SchemaField
    file: str


def merge_columns(
    columns: Sequence[tuple[str, Sequence[SchemaField | None]]], key_function: FieldKeyFunction
) -> list[SchemaField]:
    """Merge the top-level columns of files, given as (file name, fields), in order of first appearance.

    A column that a file lacks is nullable. One without a common type is a leaf with a conflict, which names both files
    and types. Raises SchemaError if two columns are mapped to one name.
    """
    return _members(columns, key_function, ())


def _members(
    groups: Sequence[tuple[str, Sequence[SchemaField | None]]], key_function: FieldKeyFunction, path: tuple[str, ...]
) -> list[SchemaField]:
    members: dict[Hashable, list[FieldOfFile]] = {}
    for file, fields in groups:
        for label, field in zip(field_keys(fields, key_function, file, path), fields, strict=True):
            if field is not None:
                members.setdefault(label, []).append(FieldOfFile(field, file))
    made = [merge_field(found, len(found) == len(groups), key_function, path) for found in members.values()]
    _check_names(made, path)
    return made


def _check_names(made: Sequence[SchemaField], path: tuple[str, ...]) -> None:
    """Raise SchemaError if two merged fields, matched by position or field id, have the same name."""
    known: set[str] = set()
    for field in made:
        if field.name in known:
            raise SchemaError(
                f"two different columns of different files are named {field.name!r}; rename them with schema=",
                column=".".join((*path, field.name)),
            )
        known.add(field.name)


def merge_field(
    found: Sequence[FieldOfFile], is_complete: bool, key_function: FieldKeyFunction, above: tuple[str, ...] = ()
) -> SchemaField:
    """Merge one field, found in some files or all (``is_complete``); ``above`` is the path of its parent.

    Without a common type, the result is a leaf with a conflict.
    """
    try:
        return _merge_field(found, is_complete, key_function, above)
    except SchemaError as error:
        return conflicting_field(found[0].field, error)


def _merge_field(
    found: Sequence[FieldOfFile], is_complete: bool, key_function: FieldKeyFunction, above: tuple[str, ...]
) -> SchemaField:
    first = found[0].field
    nullable = not is_complete or any(one.field.nullable for one in found)
    if all(one.field == first for one in found[1:]):
        return first if first.nullable == nullable else replace(first, nullable=nullable)
    path = (*above, first.name)
    known = [one for one in found if not one.field.is_null]
    if not known:
        return replace(first, nullable=True)
    others = [one for one in known if one.field.kind != known[0].field.kind]
    if others:
        raise _conflict(known[0], others[0], path)
    made = _KINDS[known[0].field.kind](known, key_function, path)
    field_id = next((one.field.field_id for one in found if one.field.field_id is not None), None)
    return replace(made, name=first.name, field_id=field_id, nullable=nullable or len(known) < len(found))


def _conflict(first: FieldOfFile, second: FieldOfFile, path: tuple[str, ...]) -> SchemaError:
    here, there = describe_field(second.field), describe_field(first.field)
    return SchemaError(
        f"the column is {here} here, but {there} in {first.file!r}; no type holds both without loss",
        file=second.file,
        column=".".join(path),
    )


# --- nested fields ---------------------------------------------------------------------------------------------------


def _structs(found: Sequence[FieldOfFile], key_function: FieldKeyFunction, path: tuple[str, ...]) -> SchemaField:
    first = found[0].field
    others = [one for one in found if one.field.is_variant != first.is_variant]
    if others:
        raise _conflict(found[0], others[0], path)
    if first.is_variant:
        return _variants(found)
    logical = first.logical if all(one.field.logical == first.logical for one in found) else None
    children = _members([(one.file, one.field.children) for one in found], key_function, path)
    return replace(first, children=tuple(children), logical=logical, type=_hint_of(found))


def _variants(found: Sequence[FieldOfFile]) -> SchemaField:
    """Merge VARIANT fields: unshredded, if files shred them differently."""
    first = found[0].field
    if all(one.field.children == first.children for one in found):
        return first
    parts = [
        SchemaField(name, "leaf", name == "value", None, LeafStorage(BYTE_ARRAY, 0, None), ArrowType("binary"))
        for name in ("metadata", "value")
    ]
    return replace(first, children=tuple(parts), type=None)


def _collections(found: Sequence[FieldOfFile], key_function: FieldKeyFunction, path: tuple[str, ...]) -> SchemaField:
    """Merge lists or maps, their children by position."""
    first = found[0].field
    inside = zip(*([FieldOfFile(child, one.file) for child in one.field.children] for one in found), strict=True)
    children = tuple(merge_field(members, True, key_function, path) for members in inside)
    return replace(first, children=children, type=_hint_of(found))


def _hint_of(found: Sequence[FieldOfFile]) -> ArrowType | None:
    """Return the Arrow type of a nested field if all files agree; else large_list if any file has that."""
    hints = [one.field.type for one in found]
    if all(hint == hints[0] for hint in hints):
        return hints[0]
    return ArrowType("large_list") if any(hint is not None and hint.kind == "large_list" for hint in hints) else None


# --- leaves ----------------------------------------------------------------------------------------------------------


def _leaves(found: Sequence[FieldOfFile], key_function: FieldKeyFunction, path: tuple[str, ...]) -> SchemaField:
    found = _int96_in_zone(found)
    types = frozenset(value_type(_type(one.field)) for one in found)
    common = common_type(types)
    if common is not None and common.kind == "duration" and len(path) > 1 and len(types) > 1:
        common = None  # units are in the Arrow schema alone, and nested durations are not cast
    special = [one for one in found if opaque_logical_type(one.field) != opaque_logical_type(found[0].field)]
    if common is None or special:
        raise _conflict(*(_culprits(found) if common is None else (found[0], special[0])), path)
    return replace(
        found[0].field, storage=_stored(found, common), type=_dressed(found, common), dictionary=_dictionary(found)
    )


def _int96_in_zone(found: Sequence[FieldOfFile]) -> Sequence[FieldOfFile]:
    """Return INT96 fields, which have no time zone of their own, as instants beside timestamps that are instants."""
    zones = [zone for one in found if (zone := _type(one.field).timezone)]
    if not zones:
        return found
    return [
        replace(one, field=replace(one.field, type=replace(_type(one.field), timezone=zones[0])))
        if one.field.storage is not None and one.field.storage.physical == INT96
        else one
        for one in found
    ]


def _type(field: SchemaField) -> ArrowType:
    assert field.type is not None
    return field.type


def _culprits(found: Sequence[FieldOfFile]) -> tuple[FieldOfFile, FieldOfFile]:
    """Return two fields without a common type; the first and last if every pair has one."""
    for first, second in combinations(found, 2):
        if common_type(frozenset((value_type(_type(first.field)), value_type(_type(second.field))))) is None:
            return first, second
    return found[0], found[-1]


def _stored(found: Sequence[FieldOfFile], common: ArrowType) -> LeafStorage:
    """Return the storage of a merged leaf: that of a file if it holds all values, else that of the common type."""
    ways = [one.field.storage for one in found if one.field.storage is not None]
    if all(way == ways[0] for way in ways):
        return ways[0]
    if common.kind in _PLAINLY:
        return _PLAINLY[common.kind]
    for one in found:
        stored = one.field.storage
        if stored is not None and stored.physical != INT96 and value_type(_type(one.field)) == common:
            return replace(stored, logical=None) if common.kind == "fixed_size_binary" else stored
    return storage_of_type(common)


_PLAINLY = {"utf8": LeafStorage(BYTE_ARRAY, 0, LogicalType("STRING")), "binary": LeafStorage(BYTE_ARRAY, 0, None)}


def storage_of_type(arrow_type: ArrowType) -> LeafStorage:
    """Return how values of an Arrow type are stored; decimals of any precision are possible."""
    if arrow_type.kind == "decimal" and arrow_type.precision > MAX_PRECISION:
        return LeafStorage(
            BYTE_ARRAY, 0, LogicalType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
        )
    physical, length, logical = parquet_type(arrow_type)
    return LeafStorage(physical, length if physical == FIXED_LEN_BYTE_ARRAY else 0, logical)


def _dressed(found: Sequence[FieldOfFile], common: ArrowType) -> ArrowType:
    """Return the common type with the time zone, or the large offsets, of the files' Arrow types."""
    types = [_type(one.field) for one in found]
    if all(item == types[0] for item in types):
        return types[0]
    zones = {item.timezone for item in types}
    if common.timezone and len(zones) == 1:
        return replace(common, timezone=zones.pop())
    large = f"large_{common.kind}"
    return replace(common, kind=large) if any(item.kind == large for item in types) else common


def _dictionary(found: Sequence[FieldOfFile]) -> DictionaryIndex | None:
    """Return the merged dictionary index type; None unless all files encode the column as a dictionary."""
    indices = [one.field.dictionary for one in found]
    if any(index is None for index in indices):
        return None
    known = [index for index in indices if index is not None]
    return DictionaryIndex(
        max(index.bit_width for index in known),
        all(index.signed for index in known),
        all(index.ordered for index in known),
    )


_KINDS: dict[str, Callable[[Sequence[FieldOfFile], FieldKeyFunction, tuple[str, ...]], SchemaField]] = {
    "leaf": _leaves,
    "struct": _structs,
    "list": _collections,
    "map": _collections,
}
