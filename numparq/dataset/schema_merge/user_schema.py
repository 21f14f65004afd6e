"""A schema given by the caller: parsed into fields, and checked against each file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import encode_arrow_schema
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import INT96
from numparq.format.schema import Schema
from numparq.format.schema_node import to_schema_elements
from numparq.format.thrift.encode import encode_struct
from numparq.from_pandas.user_schema import parse_schema
from numparq.types.common_type import can_cast_exactly, value_type

from .column_mapping import FieldKeyFunction, field_keys
from .conflicts import conflicting_field
from .fields import SchemaField, describe_field, fields_of, fields_of_schema, opaque_logical_type


def leaf_fits(wanted: SchemaField, known: SchemaField) -> bool:
    """Whether the values of a file's leaf can be cast to a schema's leaf, all of them or those that are exact."""
    asked, have = _values(wanted), _values(known)
    if known.storage is not None and known.storage.physical == INT96 and asked.timezone:
        have = replace(have, timezone="UTC")  # INT96 has no time zone of its own; the schema's counts
    special, stored = opaque_logical_type(wanted), opaque_logical_type(known)
    if (have.kind, asked.kind) in _TEXTS and special != stored:
        return False  # the bytes of a geometry or an INTERVAL are no text
    return (special is None or special == stored) and can_cast_exactly(have, asked)


_TEXTS = (("binary", "utf8"), ("fixed_size_binary", "utf8"))


_KINDS: dict[str, Callable[[SchemaField, SchemaField], bool]] = {
    "leaf": leaf_fits,
    "struct": lambda wanted, known: wanted.is_variant == known.is_variant,
    "list": lambda wanted, known: True,
    "map": lambda wanted, known: True,
}


def conform_columns(
    wanted: Sequence[SchemaField], file: str, fields: Sequence[SchemaField | None], key_function: FieldKeyFunction
) -> list[SchemaField]:
    """Check that a file's columns conform to a schema; return the schema's fields, nullable where the file requires it.

    Ignores other columns. A column whose values would be lost is a conflict, which names file, column and both types.
    """
    return _members(wanted, file, fields, key_function, ())


def _members(
    wanted: Sequence[SchemaField],
    file: str,
    fields: Sequence[SchemaField | None],
    key_function: FieldKeyFunction,
    path: tuple[str, ...],
) -> list[SchemaField]:
    have = dict(zip(field_keys(fields, key_function, file, path), fields, strict=True))
    made = []
    for label, field in zip(field_keys(wanted, key_function, file, path), wanted, strict=True):
        known = have.get(label)
        made.append(replace(field, nullable=True) if known is None else _fitted(field, known, file, key_function, path))
    return made


def _fitted(
    wanted: SchemaField, known: SchemaField, file: str, key_function: FieldKeyFunction, above: tuple[str, ...]
) -> SchemaField:
    if wanted.conflict is not None:
        return wanted
    try:
        return _conforming(wanted, known, file, key_function, above)
    except SchemaError as error:
        return conflicting_field(wanted, error)


def _conforming(
    wanted: SchemaField, known: SchemaField, file: str, key_function: FieldKeyFunction, above: tuple[str, ...]
) -> SchemaField:
    nullable = wanted.nullable or known.nullable or known.is_null
    path = (*above, wanted.name)
    if known.is_null:
        return replace(wanted, nullable=nullable)
    if known.kind != wanted.kind or not _KINDS[wanted.kind](wanted, known) or (above and _other_unit(wanted, known)):
        raise SchemaError(
            f"the column is {describe_field(known)} here, and cannot be cast to {describe_field(wanted)} of "
            "the schema without loss",
            file=file,
            column=".".join(path),
        )
    if wanted.kind == "leaf" or wanted.is_variant:
        return replace(wanted, nullable=nullable)
    if wanted.kind == "struct":
        children = _members(wanted.children, file, known.children, key_function, path)
    else:
        pairs = zip(wanted.children, known.children, strict=True)
        children = [_fitted(inner, theirs, file, key_function, path) for inner, theirs in pairs]
    return replace(wanted, nullable=nullable, children=tuple(children))


def _other_unit(wanted: SchemaField, known: SchemaField) -> bool:
    """Whether both are durations, but of different units: nested durations cannot be cast."""
    return wanted.kind == "leaf" and _values(wanted).kind == "duration" and _values(wanted) != _values(known)


def _values(field: SchemaField) -> ArrowType:
    assert field.type is not None
    return value_type(field.type)


def parse_user_schema(schema: Any) -> list[SchemaField]:
    """Parse a user's schema, in any form that `DatasetSchema.from_files` takes, into fields.

    Raises TypeError for another form or type, ValueError for a duplicate name, SchemaError if Parquet has no such type.
    """
    if not isinstance(schema, Iterable):
        raise TypeError(f"schema must be a pyarrow.Schema, a sequence of fields or a dict, not {type(schema).__name__}")
    if isinstance(schema, Schema):
        return [field for field in fields_of_schema(schema) if field is not None]
    columns = parse_schema(_mapping(schema)).columns.values()
    footer = encode_struct(
        "FileMetaData",
        {
            "version": 1,
            "schema": to_schema_elements([column.node for column in columns]),
            "num_rows": 0,
            "row_groups": [],
            "key_value_metadata": [
                {"key": "ARROW:schema", "value": encode_arrow_schema([column.field for column in columns])}
            ],
        },
    )
    file = OpenFile(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return [field for field in fields_of(file) if field is not None]


def _mapping(schema: Any) -> Any:
    """Return (name, type) pairs as a dict, anything else unchanged; raise ValueError for a duplicate name."""
    if isinstance(schema, (str, bytes, Mapping)) or not isinstance(schema, Iterable):
        return schema
    items = list(schema)
    if not items or not all(isinstance(item, tuple) and len(item) == 2 for item in items):
        return items
    names = [name for name, _ in items]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the schema has column {twice!r} twice")
    return dict(items)


def adopt_arrow_types(
    wanted: list[SchemaField], files: Sequence[Sequence[SchemaField | None]], key_function: FieldKeyFunction
) -> list[SchemaField]:
    """Return fields with the Arrow types that the files' Arrow schemas agree on; a numparq `Schema` has none."""
    have = [dict(zip(key_function(fields), fields, strict=True)) for fields in files]
    return [
        _dressed(field, [columns[label] for columns in have if columns.get(label) is not None], key_function)
        for label, field in zip(key_function(wanted), wanted, strict=True)
    ]


def _dressed(wanted: SchemaField, found: Sequence[SchemaField | None], key_function: FieldKeyFunction) -> SchemaField:
    known = [field for field in found if field is not None and field.kind == wanted.kind and not field.is_null]
    if not known:
        return wanted
    if wanted.kind == "leaf":
        same = all(
            (one.storage, one.type, one.dictionary) == (wanted.storage, known[0].type, known[0].dictionary)
            for one in known
        )
        return replace(wanted, type=known[0].type, dictionary=known[0].dictionary) if same else wanted
    if wanted.kind == "struct":
        return replace(
            wanted,
            children=tuple(adopt_arrow_types(list(wanted.children), [one.children for one in known], key_function)),
        )
    parts = zip(wanted.children, *(one.children for one in known), strict=True)
    return replace(wanted, children=tuple(_dressed(part[0], part[1:], key_function) for part in parts))
