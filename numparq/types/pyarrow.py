"""Arrow types and fields as pyarrow types, both ways."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from numparq.errors import SchemaError, UnsupportedError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.arrow import ArrowField, ArrowSchema
from numparq.util.optional import import_pyarrow
from numparq.util.pluralize import pluralize

from .arrow_fields import ELEMENT, LIST_KINDS, MAX_DEPTH, NESTED_KINDS
from .output_type import int_dtype


def _decimal_type(pa: Any, arrow_type: ArrowType) -> Any:
    if arrow_type.precision > 76:
        raise UnsupportedError(
            f"Arrow cannot hold decimals of {pluralize(arrow_type.precision, 'digit')}, only up to 76; "
            'use dtype_backend="numpy" for decimal.Decimal objects'
        )
    return getattr(pa, f"decimal{arrow_type.bit_width}")(arrow_type.precision, arrow_type.scale)


_PYARROW_TYPES: dict[str, Callable[[Any, ArrowType], Any]] = {
    "null": lambda pa, arrow_type: pa.null(),
    "bool": lambda pa, arrow_type: pa.bool_(),
    "int": lambda pa, arrow_type: pa.from_numpy_dtype(int_dtype(arrow_type)),
    "float": lambda pa, arrow_type: pa.from_numpy_dtype(np.dtype(f"f{arrow_type.bit_width // 8}")),
    "decimal": _decimal_type,
    "date": lambda pa, arrow_type: pa.date32(),
    "time": lambda pa, arrow_type: (pa.time32 if arrow_type.unit == "ms" else pa.time64)(arrow_type.unit),
    "timestamp": lambda pa, arrow_type: pa.timestamp(arrow_type.unit, arrow_type.timezone or None),
    "duration": lambda pa, arrow_type: pa.duration(arrow_type.unit),
    "utf8": lambda pa, arrow_type: pa.string(),
    "large_utf8": lambda pa, arrow_type: pa.large_string(),
    "utf8_view": lambda pa, arrow_type: pa.string_view(),
    "binary": lambda pa, arrow_type: pa.binary(),
    "large_binary": lambda pa, arrow_type: pa.large_binary(),
    "binary_view": lambda pa, arrow_type: pa.binary_view(),
    "fixed_size_binary": lambda pa, arrow_type: pa.binary(arrow_type.byte_width),
    "uuid": lambda pa, arrow_type: pa.uuid(),
}

_NESTED_KINDS = {"list", "large_list", "list_view", "large_list_view", "fixed_size_list", "struct", "map", "union"}

_VIEW_STORAGE = {"list_view": "list", "large_list_view": "large_list"}


def type_to_pyarrow(arrow_type: ArrowType) -> Any:
    """Return the pyarrow type of an `ArrowType`; UnsupportedError for decimals above 76 digits."""
    pa = import_pyarrow()
    storage = _PYARROW_TYPES[arrow_type.kind](pa, arrow_type)
    if arrow_type.dictionary is not None:
        index = arrow_type.dictionary
        width = np.dtype(f"{'i' if index.signed else 'u'}{index.bit_width // 8}")
        return pa.dictionary(pa.from_numpy_dtype(width), storage, index.ordered)
    if arrow_type.extension is not None:
        return registered_extension_type(pa, storage, arrow_type)
    return storage


def registered_extension_type(pa: Any, storage: Any, arrow_type: ArrowType) -> Any:
    """Return the extension type that pyarrow has registered; the storage type if it is unknown, invalid or unfit."""
    import pandas.core.arrays.arrow.extension_types  # noqa: F401  (registers pandas.period and pandas.interval)

    keys = {
        "ARROW:extension:name": arrow_type.extension or "",
        "ARROW:extension:metadata": arrow_type.extension_metadata or "",
    }
    schema = pa.schema([pa.field("", storage, metadata=keys)])
    try:
        found = pa.ipc.read_schema(pa.py_buffer(schema.serialize())).field(0).type
    except Exception:  # extension types' parsers may raise anything
        return storage
    # Some parsers ignore the storage type: pandas.period is always of int64.
    return found if isinstance(found, pa.BaseExtensionType) and found.storage_type == storage else storage


@lru_cache(maxsize=64)
def type_from_pyarrow(data_type: Any) -> ArrowType:
    """Return the `ArrowType` of a pyarrow type; SchemaError if Parquet cannot hold it."""
    import pyarrow as pa

    message = pa.schema([pa.field("", data_type)]).serialize()
    arrow_type = ArrowSchema(binascii.b2a_base64(message.to_pybytes()), 1).field_type(0)
    if arrow_type is None:
        raise SchemaError(f"values of Arrow type {data_type} cannot be written")
    return arrow_type


def is_nested_type(data_type: Any) -> bool:
    """Whether a pyarrow type has children."""
    return type_from_pyarrow(getattr(data_type, "storage_type", data_type)).kind in _NESTED_KINDS


def field_from_pyarrow(name: str, data_type: Any, nullable: bool = True, depth: int = 0) -> ArrowField:
    """Return the field of a pyarrow type with its children; SchemaError if Parquet cannot hold it.

    List views become lists; run-end encoded values and dictionaries of nested values become these values.
    """
    import pyarrow as pa

    if depth > 2 * MAX_DEPTH:  # of lists and of their elements
        raise SchemaError(f"types are nested more than {MAX_DEPTH} deep", column=name)
    storage = data_type
    while isinstance(storage, pa.BaseExtensionType):
        storage = storage.storage_type
    if isinstance(storage, pa.RunEndEncodedType) or is_nested_dictionary(storage):
        return field_from_pyarrow(name, storage.value_type, nullable, depth + 1)
    if not pa.types.is_nested(storage):
        return ArrowField(name, type_from_pyarrow(data_type), nullable=nullable)
    arrow_type = type_from_pyarrow(data_type)
    arrow_type = replace(arrow_type, kind=_VIEW_STORAGE.get(arrow_type.kind, arrow_type.kind))
    if arrow_type.kind not in NESTED_KINDS:
        raise SchemaError(f"values of Arrow type {data_type} cannot be written", column=name)
    if pa.types.is_map(storage):
        key = field_from_pyarrow("key", storage.key_type, False, depth + 1)
        item = field_from_pyarrow("value", storage.item_type, storage.item_field.nullable, depth + 1)
        children: tuple[ArrowField, ...] = (ArrowField("key_value", ArrowType("struct"), (key, item), False),)
    elif pa.types.is_struct(storage):
        children = tuple(field_from_pyarrow(inner.name, inner.type, inner.nullable, depth + 1) for inner in storage)
    else:
        if pa.types.is_fixed_size_list(storage):
            arrow_type = replace(arrow_type, byte_width=storage.list_size)
        inner = storage.value_field
        children = (field_from_pyarrow(ELEMENT, inner.type, inner.nullable, depth + 1),)
    return ArrowField(name, arrow_type, children, nullable)


def is_nested_dictionary(data_type: Any) -> bool:
    """Whether a type of pyarrow is a dictionary of nested values."""
    import pyarrow as pa

    return isinstance(data_type, pa.DictionaryType) and pa.types.is_nested(data_type.value_type)


def field_to_pyarrow(field: ArrowField) -> Any:
    """Return the pyarrow type of a field."""
    import pyarrow as pa

    inner = [
        pa.field(child.name, field_to_pyarrow(child), child.nullable or child.type.kind == "null")
        for child in field.children
    ]
    kind = field.type.kind
    if kind == "struct":
        return pa.struct(inner)
    if kind == "map":
        key, item = inner[0].type
        return pa.map_(key.type, item)
    if kind == "fixed_size_list":
        return pa.list_(inner[0], field.type.byte_width)
    if kind in LIST_KINDS:
        return pa.large_list(inner[0]) if kind == "large_list" else pa.list_(inner[0])
    return type_to_pyarrow(field.type)
