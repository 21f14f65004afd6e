"""Fields of many files made one: what is in any of them, of the types that hold the values of all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..arrow_schema import ArrowType, DictionaryIndex
from ..errors import SchemaError
from ..metadata.logical_type import LogicalType
from ..schema import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT96
from ..shred.storage import MAX_PRECISION, stored_as
from .fields import Field, Stored, described, special_of
from .labelling import Labels, labelled
from .widening import common_type, value_type

__all__ = ["Found", "united", "united_columns"]


@dataclass(frozen=True, slots=True)
class Found:
    """A field, and the name of a file that has it."""

    field: Field
    file: str


def united_columns(columns: Sequence[tuple[str, Sequence[Field | None]]], labels: Labels) -> list[Field]:
    """Unite the columns of files.

    Parameters
    ----------
    columns : sequence of (str, sequence of Field or None)
        For each file its name and its top-level columns.
    labels : callable
        Tells the columns of a file apart.

    Returns
    -------
    list of Field
        In the order of their first appearance; those that a file lacks are nullable.

    Raises
    ------
    SchemaError
        When two columns that are the same one have no type in common; it names both files, and both types.
    """
    return _members(columns, labels, ())


def _members(
    groups: Sequence[tuple[str, Sequence[Field | None]]], labels: Labels, path: tuple[str, ...]
) -> list[Field]:
    members: dict[Hashable, list[Found]] = {}
    for file, fields in groups:
        for label, field in zip(labelled(fields, labels, file, path), fields, strict=True):
            if field is not None:
                members.setdefault(label, []).append(Found(field, file))
    made = [united(found, len(found) == len(groups), labels, path) for found in members.values()]
    _check_names(made, path)
    return made


def _check_names(made: Sequence[Field], path: tuple[str, ...]) -> None:
    """Refuse two names that are equal: of columns that other labels than names tell apart."""
    known: set[str] = set()
    for field in made:
        if field.name in known:
            raise SchemaError(f"two different columns are called {field.name!r}, each in another file: with schema= "
                              "they can be given other names", column=".".join((*path, field.name)))  # fmt: skip
        known.add(field.name)


def united(found: Sequence[Found], is_complete: bool, labels: Labels, above: tuple[str, ...] = ()) -> Field:
    """Unite one column.

    Parameters
    ----------
    found : sequence of Found
        The column in the files that have it.
    is_complete : bool
        Whether all files have it.
    labels : callable
        As in `united_columns`.
    above : tuple of str
        The names of what it is in.

    Returns
    -------
    Field

    Raises
    ------
    SchemaError
        As in `united_columns`.
    """
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
    made = _KINDS[known[0].field.kind](known, labels, path)
    field_id = next((one.field.field_id for one in found if one.field.field_id is not None), None)
    return replace(made, name=first.name, field_id=field_id, nullable=nullable or len(known) < len(found))


def _conflict(first: Found, second: Found, path: tuple[str, ...]) -> SchemaError:
    here, there = described(second.field), described(first.field)
    return SchemaError(f"the column is {here} here, and {there} in {first.file!r}: no type holds the values of both "
                       "without a loss", file=second.file, column=".".join(path))  # fmt: skip


# --- groups ----------------------------------------------------------------------------------------------------------


def _structs(found: Sequence[Found], labels: Labels, path: tuple[str, ...]) -> Field:
    first = found[0].field
    others = [one for one in found if one.field.is_variant != first.is_variant]
    if others:
        raise _conflict(found[0], others[0], path)
    if first.is_variant:
        return _variants(found)
    logical = first.logical if all(one.field.logical == first.logical for one in found) else None
    children = _members([(one.file, one.field.children) for one in found], labels, path)
    return replace(first, children=tuple(children), logical=logical, type=_hint_of(found))


def _variants(found: Sequence[Found]) -> Field:
    """Unite VARIANTs: if these are shredded in different ways, in none."""
    first = found[0].field
    if all(one.field.children == first.children for one in found):
        return first
    parts = [Field(name, "leaf", name == "value", None, Stored(BYTE_ARRAY, 0, None), ArrowType("binary"))
             for name in ("metadata", "value")]  # fmt: skip
    return replace(first, children=tuple(parts), type=None)


def _collections(found: Sequence[Found], labels: Labels, path: tuple[str, ...]) -> Field:
    """Unite lists or maps: what is in them, by its place."""
    first = found[0].field
    inside = zip(*([Found(child, one.file) for child in one.field.children] for one in found), strict=True)
    children = tuple(united(members, True, labels, path) for members in inside)
    return replace(first, children=children, type=_hint_of(found))


def _hint_of(found: Sequence[Found]) -> ArrowType | None:
    """Give what the Arrow schema says of a group in all files, if that is the same."""
    hints = [one.field.type for one in found]
    if all(hint == hints[0] for hint in hints):
        return hints[0]
    return ArrowType("large_list") if any(hint is not None and hint.kind == "large_list" for hint in hints) else None


# --- leaves ----------------------------------------------------------------------------------------------------------


def _leaves(found: Sequence[Found], labels: Labels, path: tuple[str, ...]) -> Field:
    types = frozenset(value_type(_type(one.field)) for one in found)
    common = common_type(types)
    if common is not None and common.kind == "duration" and len(path) > 1 and len(types) > 1:
        common = None  # only the Arrow schema tells their units, and what is within others is not converted by that
    special = [one for one in found if special_of(one.field) != special_of(found[0].field)]
    if common is None or special:
        raise _conflict(*(_culprits(found) if common is None else (found[0], special[0])), path)
    return replace(found[0].field, stored=_stored(found, common), type=_dressed(found, common),
                   dictionary=_dictionary(found))  # fmt: skip


def _type(field: Field) -> ArrowType:
    assert field.type is not None
    return field.type


def _culprits(found: Sequence[Found]) -> tuple[Found, Found]:
    """Find two fields that have no type in common; where each two have one, the first and the last."""
    for first, second in combinations(found, 2):
        if common_type(frozenset((value_type(_type(first.field)), value_type(_type(second.field))))) is None:
            return first, second
    return found[0], found[-1]


def _stored(found: Sequence[Found], common: ArrowType) -> Stored:
    """Say how the united column would be stored: as one of the files has it, where that holds all values."""
    ways = [one.field.stored for one in found if one.field.stored is not None]
    if all(way == ways[0] for way in ways):
        return ways[0]
    if common.kind in _PLAINLY:
        return _PLAINLY[common.kind]
    for one in found:
        stored = one.field.stored
        if stored is not None and stored.physical != INT96 and value_type(_type(one.field)) == common:
            return replace(stored, logical=None) if common.kind == "fixed_size_binary" else stored
    return stored_of(common)


_PLAINLY = {"utf8": Stored(BYTE_ARRAY, 0, LogicalType("STRING")), "binary": Stored(BYTE_ARRAY, 0, None)}


def stored_of(arrow_type: ArrowType) -> Stored:
    """Say how values of a type are stored; decimals of any precision."""
    if arrow_type.kind == "decimal" and arrow_type.precision > MAX_PRECISION:
        return Stored(BYTE_ARRAY, 0, LogicalType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale))
    physical, length, logical = stored_as(arrow_type)
    return Stored(physical, length if physical == FIXED_LEN_BYTE_ARRAY else 0, logical)


def _dressed(found: Sequence[Found], common: ArrowType) -> ArrowType:
    """Give the united type what the Arrow schemas say besides, where they agree."""
    types = [_type(one.field) for one in found]
    if all(item == types[0] for item in types):
        return types[0]
    zones = {item.timezone for item in types}
    if common.timezone and len(zones) == 1:
        return replace(common, timezone=zones.pop())
    large = f"large_{common.kind}"
    return replace(common, kind=large) if any(item.kind == large for item in types) else common


def _dictionary(found: Sequence[Found]) -> DictionaryIndex | None:
    """Give how values were dictionary-encoded, if they were in all files."""
    indices = [one.field.dictionary for one in found]
    if any(index is None for index in indices):
        return None
    known = [index for index in indices if index is not None]
    return DictionaryIndex(max(index.bit_width for index in known), all(index.signed for index in known),
                           all(index.ordered for index in known))  # fmt: skip


_KINDS: dict[str, Callable[[Sequence[Found], Labels, tuple[str, ...]], Field]] = {
    "leaf": _leaves, "struct": _structs, "list": _collections, "map": _collections
}  # fmt: skip
