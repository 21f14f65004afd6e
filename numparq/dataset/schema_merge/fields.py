"""Fields: the columns of a file as a tree, comparable between files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from numparq.column.nested.nested_type import NestedType, child_hints, resolve_nested_type
from numparq.errors import SchemaError, error_context
from numparq.format.arrow_type import ArrowType, DictionaryIndex
from numparq.format.key_values.arrow import ArrowField, ArrowHint
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import INT96
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED, Leaf, Schema
from numparq.format.schema_node import SchemaNode
from numparq.types.common_type import describe_type
from numparq.types.parquet_type import infer_arrow_type
from numparq.util.bounded_cache import BoundedCache

NULL = "null"
_KEPT_GROUPS = ("VARIANT", "FILE")
_LIST_KINDS = ("list", "large_list", "fixed_size_list")
# The fields of files, by what they are made of, unless that is large.
_KEPT_BYTES = 64 << 10
_kept = BoundedCache(64)


@dataclass(frozen=True, slots=True)
class LeafStorage:
    """How the values of a leaf are stored: physical type, bytes of FIXED_LEN_BYTE_ARRAY (else 0), logical type."""

    physical: int
    type_length: int
    logical: LogicalType | None


class TypeConflict(NamedTuple):
    """Why files cannot share a column: a message, a file and the column's path, as a `SchemaError` has them."""

    message: str
    where: tuple[tuple[str, object], ...]

    @classmethod
    def from_error(cls, error: SchemaError) -> TypeConflict:
        """Return the conflict that an error describes."""
        return cls(error.message, tuple(error.where.items()))

    def to_error(self) -> SchemaError:
        """Return an error for reading the column."""
        return SchemaError(self.message, **dict(self.where))


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A column, or what is within one.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        As in `NestedType`: ``leaf``, ``struct``, ``list`` (one child: its element) or ``map`` (two: key and value).
    nullable : bool
        Whether it may be null.
    field_id : int or None
        The number that the writer gave it.
    storage : LeafStorage or None
        Of leaves.
    type : ArrowType or None
        Of leaves what the values mean, without dictionary; of others what the Arrow schema says, if it does.
    dictionary : DictionaryIndex or None
        Of leaves for which the Arrow schema says so: how they were dictionary-encoded in memory.
    logical : LogicalType or None
        Of structs that are a VARIANT or a FILE.
    children : tuple of SchemaField
        What is in it.
    groups : tuple of str
        Of lists and maps: the names in the schema of what is repeated, and of what is in that.
    conflict : TypeConflict or None
        Of a leaf that stands for a column which no type holds in all files.
    """

    name: str
    kind: str
    nullable: bool
    field_id: int | None = None
    storage: LeafStorage | None = None
    type: ArrowType | None = None
    dictionary: DictionaryIndex | None = None
    logical: LogicalType | None = None
    children: tuple[SchemaField, ...] = ()
    groups: tuple[str, ...] = ()
    conflict: TypeConflict | None = None

    @property
    def is_null(self) -> bool:
        """Whether it is a column of nothing but nulls, by its type."""
        return self.kind == "leaf" and self.type is not None and self.type.kind == NULL

    @property
    def is_variant(self) -> bool:
        """Whether it is a VARIANT."""
        return self.logical is not None and self.logical.kind == "VARIANT"


def describe_field(field: SchemaField) -> str:
    """Name the type of a field, as messages do."""
    if field.kind != "leaf" or field.type is None:
        return str(field.logical) if field.logical is not None else field.kind
    special = opaque_logical_type(field)
    return str(special) if special is not None else describe_type(field.type)


# Leaves that are bytes to Arrow, and are something of their own nevertheless.
_SPECIAL = ("GEOMETRY", "GEOGRAPHY", "INTERVAL")


def opaque_logical_type(field: SchemaField) -> LogicalType | None:
    """Return the logical type of a leaf that Arrow has as bytes, such as GEOMETRY; None for all others."""
    logical = field.storage.logical if field.storage is not None else None
    return logical if logical is not None and logical.kind in _SPECIAL else None


# --- out of a file ---------------------------------------------------------------------------------------------------


def fields_of(file: OpenFile) -> list[SchemaField | None]:
    """Return the top-level columns of a file.

    Returns
    -------
    list of Field or None
        By position; None for groups with nothing in them.

    Raises
    ------
    InvalidFileError, UnsupportedError
        When the type of a column breaks the specification, or is nested too deeply; both name the column.
    """

    def parse() -> list[SchemaField | None]:
        return _fields(file.schema, file.arrow_schema.field_hint)

    part, arrow = file.footer.schema_elements, file.footer.key_value_metadata.get("ARROW:schema")
    with error_context(file=file.source.name):
        if not part.is_cached or len(arrow or b"") > _KEPT_BYTES:
            return parse()
        return list(_kept.get_or_make((part, arrow, file.schema.calendar.int96_instants), parse))


def fields_of_schema(schema: Schema) -> list[SchemaField | None]:
    """Return the top-level columns of a schema without an Arrow schema; errors as of `fields_of`."""
    return _fields(schema, lambda position: None)


def _fields(schema: Schema, hint_of: Callable[[int], ArrowHint | None]) -> list[SchemaField | None]:
    found: list[SchemaField | None] = []
    for position, name in enumerate(schema.columns):
        if not schema.has_leaves(position):
            found.append(None)
            continue
        with error_context(column=name):
            leaf = schema.flat_leaf(position)
            if leaf is not None:
                field_id = schema.field_id(leaf.element)
                found.append(_leaf(name, leaf.repetition != REQUIRED, leaf, hint_of(position), field_id))
            else:
                ids = _field_ids(schema, position)
                found.append(_field(resolve_nested_type(schema, position), hint_of(position), ids))
    return found


def _field_ids(schema: Schema, position: int) -> dict[tuple[str, ...], int | None]:
    """Return the field ids of all elements of a column, by path."""
    found: dict[tuple[str, ...], int | None] = {}
    to_come: list[tuple[int, tuple[str, ...]]] = [(schema.column_element(position), ())]
    while to_come:
        number, above = to_come.pop()
        element = schema.schema_element(number)
        path = (*above, element.name)
        found.setdefault(path, schema.field_id(number))
        to_come += [(child, path) for child in element.children]
    return found


def _field(shape: NestedType, hint: ArrowHint | None, ids: dict[tuple[str, ...], int | None]) -> SchemaField:
    if shape.leaf is not None:
        return _leaf(shape.name, shape.nullable, shape.leaf, hint, ids.get(shape.path))
    hints = child_hints(shape, hint)
    children = tuple(_field(child, inner, ids) for child, inner in zip(shape.children, hints, strict=True))
    logical = shape.logical if shape.logical is not None and shape.logical.kind in _KEPT_GROUPS else None
    return SchemaField(
        shape.name,
        shape.kind,
        shape.nullable,
        ids.get(shape.path),
        type=hint.type if hint else None,
        logical=logical,
        children=children,
        groups=_groups(shape),
    )


def _groups(shape: NestedType) -> tuple[str, ...]:
    """Return the group names of a three-level list or map; nothing for older forms."""
    if shape.kind not in ("list", "map"):
        return ()
    inside = [child.path[len(shape.path) :] for child in shape.children]
    if any(len(path) != 2 or path[0] in ("array", f"{shape.name}_tuple") for path in inside):
        return ("list", "element") if shape.kind == "list" else ("key_value", "key", "value")
    return (inside[0][0], *(path[1] for path in inside))


def _leaf(name: str, nullable: bool, leaf: Leaf, hint: ArrowHint | None, field_id: int | None) -> SchemaField:
    meaning = _meaning(leaf.physical, leaf.type_length, leaf.logical, hint.type if hint is not None else None)
    return SchemaField(name, "leaf", nullable, field_id, *meaning)


@lru_cache(maxsize=1024)
def _meaning(
    physical: int, type_length: int | None, logical: LogicalType | None, origin: ArrowType | None
) -> tuple[LeafStorage, ArrowType, DictionaryIndex | None]:
    """Return how values are stored, their Arrow type, and their dictionary encoding in memory."""
    arrow_type = replace(infer_arrow_type(physical, type_length, logical, origin), dictionary=None)
    if physical == INT96:  # in a dataset they are in microseconds, which hold the years that they can have
        arrow_type = replace(arrow_type, unit="us")
    return (
        LeafStorage(physical, type_length or 0, logical),
        arrow_type,
        origin.dictionary if origin is not None else None,
    )


# --- into a file -----------------------------------------------------------------------------------------------------

_LIST, _MAP = LogicalType("LIST"), LogicalType("MAP")


def to_schema_node(field: SchemaField) -> SchemaNode:
    """Return the schema node of a field, lists and maps in three levels (LogicalTypes.md)."""
    repetition = OPTIONAL if field.nullable else REQUIRED
    if field.storage is not None:
        stored = field.storage
        return SchemaNode(
            field.name, repetition, stored.physical, stored.type_length, stored.logical, (), field.field_id
        )
    children = tuple(map(to_schema_node, field.children))
    if field.kind == "struct":
        return SchemaNode(field.name, repetition, logical=field.logical, children=children, field_id=field.field_id)
    repeated, *names = field.groups
    children = tuple(replace(child, name=name) for child, name in zip(children, names, strict=True))
    inner = SchemaNode(repeated, REPEATED, children=children)
    logical = _LIST if field.kind == "list" else _MAP
    return SchemaNode(field.name, repetition, logical=logical, children=(inner,), field_id=field.field_id)


def to_arrow_field(field: SchemaField) -> ArrowField:
    """Return a field as the Arrow schema of a file describes it."""
    if field.type is not None and field.kind == "leaf":
        return ArrowField(field.name, replace(field.type, dictionary=field.dictionary), nullable=field.nullable)
    children = tuple(map(to_arrow_field, field.children))
    if field.kind == "map":
        children = (ArrowField("key_value", ArrowType("struct"), children, False),)
    return ArrowField(field.name, _arrow_group(field), children, field.nullable)


def _arrow_group(field: SchemaField) -> ArrowType:
    known: Any = field.type
    if known is None or known.dictionary is not None:
        return ArrowType(field.kind)
    fits = known.kind == field.kind or (field.kind == "list" and known.kind in _LIST_KINDS)
    return known if fits else ArrowType(field.kind)
